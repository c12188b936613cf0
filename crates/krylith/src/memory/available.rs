//! How much memory this process may still take: the least of what the machine has free, what its control groups leave, and what its
//! own limit of address space leaves.

use std::fs::read_to_string;
use std::path::Path;

/// What the system says this process can still have without swapping; `None` where it does not say.
///
/// Read on Linux from `/proc/meminfo`, the control groups of the process (versions 1 and 2) and `/proc/self/limits`.
pub fn available_memory() -> Option<u64> {
    let root = Path::new("/sys/fs/cgroup");
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    [machine(), left_by_groups(root, &groups), left_of_address_space()].into_iter().flatten().min()
}

fn machine() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The least that a control group of the process, or one above it, leaves. `groups` has lines `0::/path` (version 2) or
/// `7:memory:/path` (version 1).
fn left_by_groups(root: &Path, groups: &str) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (base, limit, used) = match controllers {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        // Inside a container the path is that of the host, and the group itself is mounted at the base.
        let below = base.join(path.trim_start_matches('/'));
        for folder in below.ancestors().take_while(|folder| folder.starts_with(&base)) {
            let number = |name| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
            if let Some(limit) = number(limit) {
                let left = limit.saturating_sub(number(used).unwrap_or(0));
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
        }
    }
    least
}

fn left_of_address_space() -> Option<u64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    let status = read_to_string("/proc/self/status").ok()?;
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let taken: u64 = taken.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(address_space(&limits)?.saturating_sub(taken.saturating_mul(1024)))
}

/// The soft limit; none where it is unlimited.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_tightest_group_above_the_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("user/job");
        create_dir_all(&inner).unwrap();
        let set = |folder: &Path, limit: &str, used: &str| {
            write(folder.join("memory.max"), limit).unwrap();
            write(folder.join("memory.current"), used).unwrap();
        };
        set(&inner, "max\n", "10\n");
        set(&root.path().join("user"), "1000\n", "400\n");
        set(root.path(), "5000\n", "450\n");
        assert_eq!(left_by_groups(root.path(), "0::/user/job\n"), Some(600));
        assert_eq!(left_by_groups(root.path(), "0::/gone\n"), Some(4550));
        assert_eq!(left_by_groups(root.path(), "3:cpu:/user\n"), None);
        let old = root.path().join("memory/job");
        create_dir_all(&old).unwrap();
        write(old.join("memory.limit_in_bytes"), "700\n").unwrap();
        write(old.join("memory.usage_in_bytes"), "900\n").unwrap();
        assert_eq!(left_by_groups(root.path(), "4:cpu,memory:/job\n"), Some(0));
    }

    #[test]
    fn limits_of_address_space() {
        let text = |soft: &str| {
            format!(
                "Max cpu time   unlimited  unlimited  seconds\nMax address space   {soft}   unlimited   bytes\n"
            )
        };
        assert_eq!(address_space(&text("unlimited")), None);
        assert_eq!(address_space(&text("4294967296")), Some(1 << 32));
    }
}
