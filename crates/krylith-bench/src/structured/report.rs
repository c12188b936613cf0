//! A run of the study as Markdown: machine, cases, milliseconds of every operation, how near the bounds the own paths come.

use super::case::{Case, Operation};
use super::record::{Others, Record, STRUCTURED};
use crate::compare::record::{Mode, Spread};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {{
        let _ = writeln!($text, $($arguments)*);
    }};
}

/// The whole text but the pictures.
pub fn markdown(record: &Record) -> String {
    let mut text = String::new();
    head(&mut text, record);
    cases(&mut text, record);
    for operation in Operation::ALL {
        for threads in record.threads() {
            times(&mut text, record, operation, threads);
        }
    }
    for threads in record.threads() {
        nearness(&mut text, record, threads);
    }
    setup(&mut text, record);
    failures(&mut text, record);
    text
}

fn table(text: &mut String, columns: &[String]) {
    line!(text, "| {} |", columns.join(" | "));
    line!(text, "|{}", "---|".repeat(columns.len()));
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

fn counted(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads or ranks") }
}

fn head(text: &mut String, record: &Record) {
    line!(text, "# Kernels on structured grids, {}\n", record.date);
    line!(text, "`{}`; {}.\n", record.command, record.machine.join("; "));
    line!(
        text,
        "Milliseconds, the least of {} rounds in which contestants take turns, each in a process of its own. A call is timed in \
         pieces of at least 0.1 s. Matrices are not symmetric, in natural order, with full blocks of DoF × DoF; all contestants \
         make the same ILU(0). Analysis is not counted, for anyone. Threads are ranks for PETSc: there its triangles and its \
         factorization are those of block Jacobi, another preconditioner, shown in brackets and never the fastest other. MKL \
         has no ILU(0) of blocks: its BSR solves with the factor of its CSR. PETSc's AIJ takes rows of equal pattern together \
         unless asked not to, which is AIJ-plain. `structured.json.zst` has every repetition.\n",
        record.repetitions
    );
    let mut versions = BTreeMap::new();
    for run in record.entries.iter().filter(|e| e.mode == Mode::Kernels).flat_map(|e| &e.runs) {
        versions.insert(&run.peer, &run.version);
    }
    let list: Vec<String> = versions.iter().map(|(peer, version)| format!("{peer} {version}")).collect();
    line!(text, "Versions: {}.\n", list.join(", "));
    for absent in &record.absent {
        line!(text, "Absent: {} (`{}`).\n", absent.peer, absent.install);
    }
    let far = |pick: fn(&super::record::Check) -> Option<f64>| {
        record.checks.iter().filter_map(pick).fold(0.0, f64::max)
    };
    line!(
        text,
        "Before they were timed, all answers were compared with the first contestant's: largest difference relative to the \
         largest entry {:.1e} of A x and {:.1e} of U⁻¹L⁻¹x.\n",
        far(|check| Some(check.product)),
        far(|check| check.apply)
    );
}

fn cases(text: &mut String, record: &Record) {
    line!(text, "## Matrices, and what the machine can do\n");
    let mut columns = words(&["", "grid", "rows", "entries", "values, MB"]);
    for threads in record.threads() {
        let count = counted(threads);
        columns.extend([format!("triad GB/s, {count}"), format!("Gflop/s apart, fused, {count}")]);
    }
    table(text, &columns);
    for case in &record.cases {
        let mut cells = vec![case.to_string(), format!("{}³", case.n), case.rows().to_string()];
        cells.extend([case.nnz().to_string(), format!("{:.0}", 8e-6 * case.nnz() as f64)]);
        for threads in record.threads() {
            let giga = |rate: Option<f64>| rate.map_or("–".into(), |r| format!("{:.1}", 1e-9 * r));
            cells.push(giga(record.triad(case, threads)));
            cells.push(["apart", "fused"].map(|how| giga(record.peak(case, threads, how))).join(", "));
        }
        line!(text, "| {} |", cells.join(" | "));
    }
}

/// Milliseconds: cases down, contestants across.
fn times(text: &mut String, record: &Record, operation: Operation, threads: usize) {
    line!(text, "\n## Milliseconds: {}, {}\n", operation.name(), counted(threads));
    let series = record.series();
    let mut columns = words(&["", "bound"]);
    columns.extend(series.iter().cloned());
    columns.extend(words(&["fastest other", "by structured"]));
    table(text, &columns);
    for case in &record.cases {
        let bound = record.bound(case, threads, operation);
        let by = |memory: bool| if memory { "memory" } else { "arithmetic" };
        let mut cells = vec![case.to_string()];
        cells.push(bound.map_or("–".into(), |b| format!("{} {}", milli(b.seconds), by(b.by_memory))));
        cells.extend(series.iter().map(|name| cell(record, case, threads, name, operation)));
        let best = record.best_of(Others::All, case, threads, operation);
        cells.push(best.map_or("–".into(), |(name, _)| name));
        let speedup = record.speedup(Others::All, case, threads, operation);
        cells.push(speedup.map_or("–".into(), |s| format!("{s:.2}")));
        line!(text, "| {} |", cells.join(" | "));
    }
    for (others, who) in [(Others::All, "other"), (Others::General, "of peers and Krylith's rows")] {
        let speedups: Vec<f64> =
            record.cases.iter().filter_map(|case| record.speedup(others, case, threads, operation)).collect();
        let Some(mean) = geometric_mean(&speedups) else { continue };
        let (least, most) = speedups.iter().fold((mean, mean), |(l, m), &s| (l.min(s), m.max(s)));
        line!(
            text,
            "\nThe structured path beside the fastest {who}: {mean:.2} times as fast in the geometric mean, {least:.2} to {most:.2}."
        );
    }
}

/// Milliseconds; in brackets for another preconditioner.
fn cell(record: &Record, case: &Case, threads: usize, name: &str, operation: Operation) -> String {
    let Some(entry) = record.entry(case, threads, name) else { return "–".into() };
    let Some(seconds) = record.seconds(case, threads, name, operation) else {
        return if entry.failure.is_some() { "failed".into() } else { "–".into() };
    };
    let other = operation != Operation::Product && entry.title() != name;
    if other { format!("({})", milli(seconds)) } else { milli(seconds) }
}

/// The bound by the time taken, of Krylith's paths, with GB/s or Gflop/s, whichever binds.
fn nearness(text: &mut String, record: &Record, threads: usize) {
    let own: Vec<String> = record.series().into_iter().filter(|name| name.starts_with("krylith")).collect();
    if own.is_empty() {
        return;
    }
    line!(text, "\n## Fractions of the bound, and the rate that binds, {}\n", counted(threads));
    line!(
        text,
        "The bound is the longer of two times: bytes that must be moved by the triad's rate, and operations by the rate of fused \
         arithmetic. Product: 8 nnz + 16 rows bytes; triangles: 8 nnz + 32 rows; factorization: 16 nnz. The triad also \
         reads what it writes, which is not counted: what mostly reads can exceed its bound by up to a third.\n"
    );
    let mut columns = words(&["", "operation"]);
    columns.extend(own.iter().map(|name| name.trim_start_matches("krylith ").to_owned()));
    table(text, &columns);
    for case in &record.cases {
        for operation in Operation::ALL {
            let Some(bound) = record.bound(case, threads, operation) else { continue };
            let fraction = |name: &String| {
                let Some(seconds) = record.seconds(case, threads, name, operation) else {
                    return "–".into();
                };
                let (amount, unit) = match bound.by_memory {
                    true => (case.bytes(operation), "GB/s"),
                    false => (case.flops(operation), "Gflop/s"),
                };
                format!("{:.2} ({:.1} {unit})", bound.seconds / seconds, 1e-9 * amount as f64 / seconds)
            };
            let cells: Vec<String> = own.iter().map(fraction).collect();
            line!(text, "| {case} | {} | {} |", operation.name(), cells.join(" | "));
        }
    }
}

/// Seconds that are counted for no one: analysis, and taking over values.
fn setup(text: &mut String, record: &Record) {
    line!(text, "\n## Not counted above: analysis + taking over values by rows, ms\n");
    line!(text, "That of Krylith's rows has a first factorization in it.\n");
    let series = record.series();
    let mut columns = words(&["", "threads"]);
    columns.extend(series.iter().cloned());
    table(text, &columns);
    for case in &record.cases {
        for threads in record.threads() {
            let described = |name: &String| {
                let entry = record.entry(case, threads, name);
                let least = |key: &str| Some(entry?.kernel(key)?.least);
                let analyze = least("analyze").map_or("–".into(), milli);
                least("convert").map_or(analyze.clone(), |convert| format!("{analyze} + {}", milli(convert)))
            };
            let cells: Vec<String> = series.iter().map(described).collect();
            line!(text, "| {case} | {threads} | {} |", cells.join(" | "));
        }
    }
    let spread = |operation: Operation| {
        let all = record.entries.iter().filter(|e| e.mode == Mode::Kernels);
        let ratios = all.filter_map(|e| e.kernel(operation.key())).map(|s| s.most / s.least);
        Spread::of(ratios).map_or("–".into(), |s| format!("{:.2} ({:.2})", s.median, s.most))
    };
    let [product, apply, factor] = Operation::ALL.map(spread);
    line!(
        text,
        "\nThe longest round by the shortest, in the middle of all contestants (and the largest): product {product}, triangles \
         {apply}, factorization {factor}."
    );
}

fn failures(text: &mut String, record: &Record) {
    let failed: Vec<_> = record.entries.iter().filter(|e| e.failure.is_some()).collect();
    if failed.is_empty() {
        return;
    }
    line!(text, "\n## Not measured\n");
    table(text, &words(&["", "threads", "contestant", "why"]));
    for entry in failed {
        let why = entry.failure.as_deref().unwrap_or_default();
        line!(text, "| {} | {} | {} | {why} |", entry.problem, entry.threads, entry.title());
    }
}

/// Three digits that count.
fn milli(seconds: f64) -> String {
    match 1e3 * seconds {
        ms if ms >= 99.95 => format!("{ms:.0}"),
        ms if ms >= 9.995 => format!("{ms:.1}"),
        ms if ms >= 0.9995 => format!("{ms:.2}"),
        ms => format!("{ms:.4}"),
    }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|v| v.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

/// What a picture says of the speedup.
pub fn times_as_fast(speedup: f64) -> String {
    format!("{speedup:.2}x")
}

/// The path that pictures are about.
pub fn is_structured(name: &str) -> bool {
    name.strip_prefix("krylith ").is_some_and(|path| path.starts_with(STRUCTURED))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn times_bounds_and_speedups_are_told() {
        let text = markdown(&record());
        let has = |line: &str| assert!(text.contains(line), "{line}\n{text}");
        has("| Star-7P-2 | 2³ | 16 | 128 | 0 | 1.0 | 0.5, 1.0 | 1.0 | 0.5, 1.0 |");
        // Factorization on one thread: 16 · 128 bytes in 2048 ns.
        has("| Star-7P-2 | 0.0020 memory | 0.0090 | 0.0030 | 0.0003 | failed | 0.0060 | petsc baij | 2.00 |");
        has("| Star-7P-2 | 0.0020 memory | 0.0090 | 0.0030 | 0.0003 | – | (0.0010) | krylith rows | 3.00 |");
        has("| Star-7P-2 | factorization ILU(0) | 0.23 (0.2 GB/s) | 0.68 (0.7 GB/s) |");
        has("| Star-7P-2 | 1 | mkl bsr | exceeded 300 s |");
        has("3.0e-16 of U⁻¹L⁻¹x");
        has("2.00 times as fast in the geometric mean, 2.00 to 2.00");
    }

    #[test]
    fn means_and_digits() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!([1e-5, 1.234e-3, 0.01234, 0.1234].map(milli), ["0.0100", "1.23", "12.3", "123"]);
    }
}
