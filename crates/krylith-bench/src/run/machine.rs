//! The machine, the day and the command of a run.

use std::time::{SystemTime, UNIX_EPOCH};

/// Processor, cores, memory, kernel: what the system says of itself.
pub fn describe() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let mut facts = Vec::new();
    facts.extend(field(&cpu, "model name").map(|model| format!("processor: {model}")));
    let [family, model] = ["cpu family", "model"].map(|name| field(&cpu, name));
    facts.extend(family.zip(model).map(|(f, m)| format!("family {f}, model {m}")));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    facts.push(format!("cores: {cores}"));
    facts.extend(field(&cpu, "cache size").map(|size| format!("last-level cache: {size}")));
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kilobytes = memory.as_deref().and_then(|m| m.trim_end_matches("kB").trim().parse::<f64>().ok());
    facts.extend(kilobytes.map(|kb| format!("memory: {:.0} GiB", kb / 1024.0 / 1024.0)));
    let kernel = read("/proc/sys/kernel/osrelease");
    // What follows the numbers names the build, not the kernel.
    let numbers = kernel.trim().split('-').next().filter(|numbers| !numbers.is_empty());
    facts.extend(numbers.map(|numbers| format!("kernel: Linux {numbers}")));
    facts
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The command of this run, without the folders of this machine.
pub fn command() -> String {
    without_folders(std::env::args().skip(1))
}

/// Options whose values are places on this machine.
const PLACES: [&str; 4] = ["--work", "--output", "--peers", "--python"];

fn without_folders(arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["krylith-bench".to_owned()];
    let mut skip = false;
    for word in arguments {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let place = PLACES.contains(&name);
        if !skip && !place {
            // Of a path only its end means something elsewhere.
            let path = std::path::Path::new(&word);
            let end = path.file_name().filter(|_| path.is_absolute());
            words.push(end.map_or(word.clone(), |end| end.to_string_lossy().into_owned()));
        }
        skip = place && name == word;
    }
    words.join(" ")
}

/// Today in Greenwich, as 2026-01-31.
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day counted from 1970-01-01. Years are counted from March, so that a leap day is the last.
/// Reference: Hinnant, "chrono-compatible low-level date algorithms".
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn the_command_names_no_folder() {
        let described = |words: &[&str]| without_folders(words.iter().map(|&w| w.to_owned()));
        let words = ["compare", "--work", "/somewhere", "--output=/elsewhere", "--quick"];
        assert_eq!(described(&words), "krylith-bench compare --quick");
        let words = ["profile", "/data/matrices", "--python", "/usr/bin/python3", "--seconds", "9"];
        assert_eq!(described(&words), "krylith-bench profile matrices --seconds 9");
    }

    #[test]
    fn fields_by_name() {
        assert_eq!(field("a : 1\nmodel\t: 207\nmodel name : X\n", "model"), Some("207".into()));
        assert_eq!(field("", "model"), None);
    }
}
