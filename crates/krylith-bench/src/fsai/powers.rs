//! Powers of a pattern: seconds and output sizes as in the paper's table 1, τ = 0, k = 2 to 7.
//!
//! The paper's matrix is Cube3D, elasticity of 190,581 rows and 7,531,389 entries; here it is a problem of the gallery of about as many rows. Every power is
//! computed twice: whole, and with the rows of systems of bounded size that `fsai` solves. The pattern of a whole power has 4 bytes an entry;
//! one that would take more than [`MOST_BYTES`] is given up, and the entries found by then are reported.

use super::Options;
use crate::Failure;
use crate::folder::{self, Head, counted, digits, grouped, table};
use krylith::gallery::Problem;
use krylith::matrix::Pattern;
use krylith::precond::fsai::phases::{MOST_INDICES, Most, Rows, large_entries, powers};
use krylith::space::Threads;
use serde::Serialize;
use std::time::Instant;

const PROBLEM: &str = "elasticity3d:40";
const QUICK: &str = "elasticity3d:6";
const STEPS: std::ops::RangeInclusive<usize> = 2..=7;

/// What the column indices of a pattern may take.
const MOST_BYTES: u64 = 3_000_000_000;

/// k, entries, milliseconds on a K80 and on a Xeon E5645 with six cores: table 1.
const PAPER: [(usize, u64, f64, f64); 6] = [
    (2, 19_880_688, 17.7, 355.2),
    (3, 60_114_684, 98.0, 1_450.9),
    (4, 134_573_295, 351.6, 7_920.1),
    (5, 250_615_200, 701.0, 11_818.4),
    (6, 413_949_594, 1_448.7, 33_771.2),
    (7, 628_388_562, 2_711.5, 79_311.8),
];

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    problem: String,
    rows: u64,
    entries: u64,
    /// Seconds of Ã from A, by number of threads.
    large_entries: Vec<Timed>,
    powers: Vec<Power>,
}

/// The least seconds on some threads.
#[derive(Debug, Clone, Serialize)]
struct Timed {
    threads: usize,
    seconds: f64,
}

#[derive(Debug, Clone, Serialize)]
struct Power {
    k: usize,
    /// Entries of a row at most; `None` for the whole power.
    of_a_row: Option<usize>,
    /// Entries of the output; of one that was given up, those that were found by then.
    entries: u64,
    given_up: bool,
    timed: Vec<Timed>,
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(options.rounds(), &options.threads)?;
    let folder = folder::of_results(options.output.as_deref(), &head, "fsai-powers")?;
    let usual = if options.quick { QUICK } else { PROBLEM };
    let problem = options.problems.first().map_or(usual, String::as_str);
    let record = measure(options, problem, head)?;
    let text = markdown(&record);
    folder::write(&folder, "powers", &record, &text)?;
    println!("{text}\nwritten to {}", folder.display());
    Ok(())
}

/// All powers on all numbers of threads.
fn measure(options: &Options, problem: &str, head: Head) -> Result<Record, Failure> {
    let a = problem.parse::<Problem>()?.generate()?;
    let spaces: Vec<Threads<f64>> = options.threads.iter().map(|&threads| Threads::new(threads)).collect();
    let large = large_entries(&Threads::new(1), &a, 0.0);
    let prefilter =
        |space: &Threads<f64>| least(options.rounds(), space, || large_entries(space, &a, 0.0).nnz());
    let mut record = Record {
        head,
        problem: problem.to_owned(),
        rows: a.nrows() as u64,
        entries: a.nnz() as u64,
        large_entries: spaces.iter().map(|space| prefilter(space).0).collect(),
        powers: Vec::new(),
    };
    for k in STEPS {
        for of_a_row in [None, Some(MOST_INDICES)] {
            let power = measure_power(options.rounds(), &spaces, &large, (k, of_a_row));
            eprintln!("k = {k}, rows up to {of_a_row:?}: {} entries", power.entries);
            record.powers.push(power);
        }
    }
    Ok(record)
}

fn measure_power(
    rounds: usize,
    spaces: &[Threads<f64>],
    large: &Pattern,
    (k, of_a_row): (usize, Option<usize>),
) -> Power {
    let most = Most { of_a_row: of_a_row.unwrap_or(usize::MAX), in_all: MOST_BYTES / 4 };
    let mut power = Power { k, of_a_row, entries: 0, given_up: false, timed: Vec::new() };
    for space in spaces {
        let (timed, result) =
            least(rounds, space, || powers(space, large, k, Rows::all(large.nrows()), most).map(|p| p.nnz()));
        match result {
            Ok(entries) => power.entries = entries as u64,
            Err(_) => {
                (power.entries, power.given_up) = (most.in_all, true);
                break;
            }
        }
        power.timed.push(timed);
    }
    power
}

/// The least seconds of some calls, and what the last of them gives.
fn least<R>(rounds: usize, space: &Threads<f64>, call: impl Fn() -> R) -> (Timed, R) {
    let once = || {
        let started = Instant::now();
        let result = call();
        (started.elapsed().as_secs_f64(), result)
    };
    let (mut seconds, mut result) = once();
    for _ in 1..rounds {
        let again = once();
        (seconds, result) = (seconds.min(again.0), again.1);
    }
    (Timed { threads: space.threads(), seconds }, result)
}

fn markdown(record: &Record) -> String {
    let Record { problem, rows, entries, .. } = record;
    let seconds = |t: &Timed| format!("{} ms on {}", digits(Some(1e3 * t.seconds)), counted(t.threads));
    let prefilter: Vec<String> = record.large_entries.iter().map(seconds).collect();
    let mut text = record.head.markdown("Powers of a pattern");
    text += &format!(
        "\n`{problem}`: {} rows, {} entries, τ = 0; the least of {}. Ã from A: {}. Output entries and milliseconds as in table 1 of Bernaschi et \
         al. 2016, whose matrix Cube3D has 190,581 rows and 7,531,389 entries, half as many per row. A whole power that would have more \
         than {} entries is given up.\n",
        grouped(*rows),
        grouped(*entries),
        folder::rounds(record.head.rounds),
        prefilter.join(", "),
        grouped(MOST_BYTES / 4),
    );
    let bounded =
        format!("Rows of {} entries at most, which is what `fsai` takes", grouped(MOST_INDICES as u64));
    for (title, is_whole) in [("Whole powers", true), (bounded.as_str(), false)] {
        text += &format!("\n## {title}\n\n");
        text += &of_kind(record, is_whole);
    }
    text
}

/// A table of powers, whole or not.
fn of_kind(record: &Record, is_whole: bool) -> String {
    let threads: Vec<usize> = record.large_entries.iter().map(|t| t.threads).collect();
    let mut columns = vec!["k".to_owned(), "output entries".to_owned()];
    columns.extend(threads.iter().map(|&t| format!("ms, {}", counted(t))));
    columns.push("entries per µs, most threads".to_owned());
    if is_whole {
        columns.extend(["paper: entries", "K80, ms", "E5645, 6 cores, ms"].map(String::from));
    }
    let row = |power: &Power| {
        let entries = grouped(power.entries);
        let mut cells =
            vec![power.k.to_string(), if power.given_up { format!("above {entries}") } else { entries }];
        let of =
            |threads: &usize| power.timed.iter().find(|t| t.threads == *threads).map(|t| 1e3 * t.seconds);
        cells.extend(threads.iter().map(|t| digits(of(t))));
        let last = threads.last().and_then(of);
        cells.push(digits(last.map(|ms| 1e-3 * power.entries as f64 / ms)));
        if let Some((_, entries, gpu, cpu)) = PAPER.iter().find(|p| p.0 == power.k).filter(|_| is_whole) {
            cells.extend([grouped(*entries), digits(Some(*gpu)), digits(Some(*cpu))]);
        }
        cells
    };
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    table(&columns, record.powers.iter().filter(|p| p.of_a_row.is_none() == is_whole).map(row))
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::folder::tests::head;

    #[test]
    fn a_small_matrix_in_all_powers() {
        let record = measure(&options(&["--quick", "--threads", "1,2"]), "elasticity3d:4", head()).unwrap();
        assert_eq!(record.powers.len(), 12);
        // Three steps reach all of 4 x 4 x 4 nodes: the whole lower triangle.
        let n = record.rows;
        assert!(record.powers[2..].iter().all(|p| p.entries == n * (n + 1) / 2 && p.timed.len() == 2));
    }

    #[test]
    fn what_is_given_up_is_told() {
        let timed = |threads, seconds| Timed { threads, seconds };
        let power =
            Power { k: 2, of_a_row: None, entries: 1000, given_up: false, timed: vec![timed(1, 0.002)] };
        let above = Power { k: 7, given_up: true, timed: Vec::new(), ..power.clone() };
        let record = Record {
            head: head(),
            problem: "elasticity3d:40".into(),
            rows: 192_000,
            entries: 14_787_288,
            large_entries: vec![timed(1, 0.1)],
            powers: vec![power, above],
        };
        let text = markdown(&record);
        assert!(text.contains("| 2 | 1,000 | 2.00 | 0.50 | 19,880,688 | 17.7 | 355 |"), "{text}");
        assert!(text.contains("| 7 | above 1,000 | – | – | 628,388,562 |"), "{text}");
    }
}
