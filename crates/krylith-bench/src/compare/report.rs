//! A run as Markdown: machine, command, whole solves, single operations.

use super::record::{Entry, Matrix, Mode, Record, SHORTEST, Spread, apply_bytes, spmv_bytes};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole text but the pictures.
pub fn markdown(record: &Record) -> String {
    let mut text = String::new();
    head(&mut text, record);
    let threads = record.threads();
    if record.entries.iter().any(|e| e.mode == Mode::Solve) {
        for &threads in &threads {
            summary(&mut text, record, threads);
        }
    }
    if record.entries.iter().any(|e| e.mode == Mode::Kernels) {
        triads(&mut text, record, &threads);
        for &threads in &threads {
            fractions(&mut text, record, threads);
        }
    }
    for &threads in &threads {
        for matrix in &record.matrices {
            solves(&mut text, record, matrix, threads);
            kernels(&mut text, record, matrix, threads);
        }
    }
    text
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {{
        let _ = writeln!($text, $($arguments)*);
    }};
}

fn table(text: &mut String, columns: &[String]) {
    line!(text, "| {} |", columns.join(" | "));
    line!(text, "|{}", "---|".repeat(columns.len()));
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

fn head(text: &mut String, record: &Record) {
    line!(text, "# Comparison of {}\n", record.date);
    line!(text, "`{}`; {}.\n", record.command, record.machine.join("; "));
    line!(
        text,
        "x₀ = 0, ‖r‖₂/‖r₀‖₂ < {:e} (unpreconditioned norm) for everyone, residuals recomputed. Every contestant in a \
         process of its own, taking turns; the least of {} rounds, spread is the longest by the shortest. Set-up is what comes \
         between the library's matrix object and the first iteration. Threads are ranks for PETSc and hypre. Totals below \
         {SHORTEST} s are shown but not ranked. `compare.json.zst` has every repetition.\n",
        record.rtol,
        record.repetitions
    );
    table(
        text,
        &words(&["", "problem", "rows", "entries", "symmetric positive definite", "right-hand side"]),
    );
    for m in &record.matrices {
        let symmetric = if m.symmetric { "taken to be" } else { "no" };
        let rhs = m.rhs.formula();
        line!(text, "| {} | `{}` | {} | {} | {symmetric} | {rhs} |", m.name, m.spec, m.rows, m.nnz);
    }
    let mut versions = BTreeMap::new();
    for run in record.entries.iter().filter(|e| e.peer != "triad").flat_map(|e| &e.runs) {
        versions.insert(&run.peer, &run.version);
    }
    let list: Vec<String> = versions.iter().map(|(peer, version)| format!("{peer} {version}")).collect();
    line!(text, "\nVersions: {}.", list.join(", "));
    for absent in &record.absent {
        line!(text, "\nAbsent: {} (`{}`).", absent.peer, absent.install);
    }
}

/// Contestants down, problems across.
fn summary(text: &mut String, record: &Record, threads: usize) {
    line!(text, "\n## Whole solves, {}\n", counted(threads));
    line!(text, "Set-up + solve in seconds (iterations); in bold the least total of its column.\n");
    let mut columns = words(&["contestant"]);
    columns.extend(record.matrices.iter().map(|m| m.name.clone()));
    table(text, &columns);
    let mut titles = Vec::new();
    for entry in record.entries.iter().filter(|e| e.mode == Mode::Solve && e.threads == threads) {
        if !titles.contains(&plain_title(entry)) {
            titles.push(plain_title(entry));
        }
    }
    for title in titles {
        let cell = |m: &Matrix| {
            let mut entries = record.on(Mode::Solve, &m.name, threads);
            let Some(entry) = entries.find(|e| plain_title(e) == title) else { return "–".into() };
            let all = record.on(Mode::Solve, &m.name, threads).filter_map(Entry::counted);
            let least = all.min_by(f64::total_cmp);
            let cell = solved(entry);
            if entry.counted().is_some() && entry.counted() == least { format!("**{cell}**") } else { cell }
        };
        let cells: Vec<String> = record.matrices.iter().map(cell).collect();
        line!(text, "| {title} | {} |", cells.join(" | "));
    }
    let ratio = |m: &Matrix| {
        let own = record.on(Mode::Solve, &m.name, threads).filter(|e| e.peer == "krylith");
        let own = own.filter_map(Entry::counted).min_by(f64::total_cmp);
        own.zip(record.best_peer(&m.name, threads))
            .map_or("–".into(), |(own, best)| format!("{:.2}", own / best))
    };
    let cells: Vec<String> = record.matrices.iter().map(ratio).collect();
    line!(text, "| krylith's best / best peer | {} |", cells.join(" | "));
}

/// Without a parameter that differs between problems.
fn plain_title(entry: &Entry) -> String {
    entry.title().split(':').next().unwrap_or_default().to_owned()
}

/// `0.11 + 2.25 (83)`, or that it failed.
fn solved(entry: &Entry) -> String {
    if entry.failure.is_some() {
        return "failed".into();
    }
    let Some(best) = entry.best() else { return "–".into() };
    let seconds = |s: Option<f64>| digits(s.unwrap_or(f64::NAN));
    let iterations = best.iterations.map_or(String::new(), |i| format!(" ({i})"));
    format!("{} + {}{iterations}", seconds(best.setup_seconds), seconds(best.solve_seconds))
}

/// Three digits that count.
fn digits(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0}"),
        s if s >= 10.0 => format!("{s:.1}"),
        s if s >= 1.0 => format!("{s:.2}"),
        s => format!("{s:.3}"),
    }
}

fn counted(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

fn triads(text: &mut String, record: &Record, threads: &[usize]) {
    line!(text, "\n## Triad, GB/s\n");
    table(text, &words(&["threads", "footprint", "GB/s", "spread"]));
    for &threads in threads {
        let all = record.entries.iter().filter(|e| e.threads == threads);
        for entry in all.filter(|e| matches!(e.mode, Mode::Triad | Mode::BigTriad)) {
            if let Some(s) = entry.kernel("seconds_a_byte") {
                let what = match entry.mode {
                    Mode::BigTriad => "three arrays".into(),
                    _ => format!("as {}'s product", entry.problem),
                };
                let rate = 1e-9 / s.least;
                line!(text, "| {threads} | {what}, {} | {rate:.1} | {:.2} |", entry.config, s.most / s.least);
            }
        }
    }
}

/// GB/s of the two memory-bound operations by the byte model, as a fraction of the triad at the same footprint.
fn fractions(text: &mut String, record: &Record, threads: usize) {
    line!(text, "\n## Fractions of the triad at the same footprint, {}\n", counted(threads));
    line!(
        text,
        "Product: 12 nnz + 20 n bytes. L + U solves: 12 nnz + 40 n bytes, nnz being the entries of A.\n"
    );
    let mut columns = words(&["operation", "contestant"]);
    columns.extend(record.matrices.iter().map(|m| m.name.clone()));
    table(text, &columns);
    for (kernel, name) in [("spmv", "product"), ("apply", "L + U")] {
        let title = |e: &Entry| match kernel {
            "spmv" if is_by_rows(e) => kernel_title(e),
            "spmv" => e.peer.clone(),
            _ => format!("{} {}", e.peer, preconditioner(e)),
        };
        let mut titles: Vec<String> = Vec::new();
        for e in record.entries.iter().filter(|e| e.mode == Mode::Kernels && e.threads == threads) {
            if e.kernel(kernel).is_some() && !titles.contains(&title(e)) {
                titles.push(title(e));
            }
        }
        for own in titles {
            let cell = |m: &Matrix| {
                let mut entries = record.on(Mode::Kernels, &m.name, threads);
                let fraction = entries.find(|e| title(e) == own).and_then(|e| fraction(record, m, e, kernel));
                fraction.map_or("–".into(), |f| format!("{f:.2}"))
            };
            let cells: Vec<String> = record.matrices.iter().map(cell).collect();
            line!(text, "| {name} | {own} | {} |", cells.join(" | "));
        }
    }
}

fn preconditioner(entry: &Entry) -> &str {
    entry.config.split_once('+').map_or("", |(_, preconditioner)| preconditioner)
}

/// Krylith's operations without a preconditioner: its product is that by rows. With one it is that in slices, where they pay.
fn is_by_rows(entry: &Entry) -> bool {
    entry.peer == "krylith" && preconditioner(entry) == "none"
}

fn kernel_title(entry: &Entry) -> String {
    if is_by_rows(entry) { "krylith by rows".into() } else { entry.title() }
}

/// GB/s of a kernel by the byte model; `None` where it was not measured.
pub fn rate(matrix: &Matrix, entry: &Entry, kernel: &str) -> Option<f64> {
    let bytes = match kernel {
        "spmv" => spmv_bytes(matrix.rows, matrix.nnz),
        "apply" => apply_bytes(matrix.rows, matrix.nnz),
        _ => return None,
    };
    Some(1e-9 * bytes as f64 / entry.kernel(kernel)?.least)
}

fn fraction(record: &Record, matrix: &Matrix, entry: &Entry, kernel: &str) -> Option<f64> {
    Some(rate(matrix, entry, kernel)? / record.triad(&matrix.name, entry.threads)?)
}

fn solves(text: &mut String, record: &Record, matrix: &Matrix, threads: usize) {
    if record.on(Mode::Solve, &matrix.name, threads).next().is_none() {
        return;
    }
    line!(text, "\n### {}, `{}`, {}: solves\n", matrix.name, matrix.spec, counted(threads));
    let columns =
        ["contestant", "set-up + solve, s (iterations)", "total, s", "by best peer", "spread", "residual"];
    table(text, &words(&columns));
    let best = record.best_peer(&matrix.name, threads);
    for entry in record.on(Mode::Solve, &matrix.name, threads) {
        if let Some(reason) = &entry.failure {
            line!(text, "| {} | {reason} | | | | |", entry.title());
            continue;
        }
        let (Some(line), Some(Spread { least, most, .. })) = (entry.best(), entry.totals()) else { continue };
        let ratio = match (entry.counted(), best) {
            (Some(own), Some(best)) => format!("{:.2}", own / best),
            (None, _) => "too short".into(),
            (_, None) => "–".into(),
        };
        let residual = line.relative_residual.unwrap_or(f64::NAN);
        line!(
            text,
            "| {} | {} | {} | {ratio} | {:.2} | {residual:.1e} |",
            entry.title(),
            solved(entry),
            digits(least),
            most / least
        );
    }
}

fn kernels(text: &mut String, record: &Record, matrix: &Matrix, threads: usize) {
    if record.on(Mode::Kernels, &matrix.name, threads).next().is_none() {
        return;
    }
    const NAMES: [&str; 6] = ["spmv", "apply", "analyze", "factor", "dot", "axpy"];
    line!(text, "\n### {}, `{}`, {}: milliseconds a call\n", matrix.name, matrix.spec, counted(threads));
    table(text, &words(&["contestant", "product", "L + U", "analyze", "factor", "dot", "axpy", "spread"]));
    for entry in record.on(Mode::Kernels, &matrix.name, threads) {
        if let Some(reason) = &entry.failure {
            line!(text, "| {} | {reason} | | | | | | |", kernel_title(entry));
            continue;
        }
        let spreads = NAMES.map(|name| entry.kernel(name));
        let cells = spreads.map(|s| s.map_or("–".into(), |s| digits(1e3 * s.least)));
        // Of the product and the solves: the others are short or rare.
        let spread = spreads[..2].iter().flatten().map(|s| s.most / s.least).fold(1.0, f64::max);
        line!(text, "| {} | {} | {spread:.2} |", kernel_title(entry), cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::solved as entry;
    use super::super::record::{Absent, Line};
    use super::*;

    fn record(entries: Vec<Entry>) -> Record {
        Record {
            date: "2026-01-31".into(),
            command: "krylith-bench compare".into(),
            machine: vec!["cores: 2".into()],
            rtol: 1e-7,
            repetitions: 2,
            matrices: vec![Matrix {
                name: "P2".into(),
                spec: "poisson3d:100".into(),
                rows: 1_000_000,
                nnz: 6_940_000,
                symmetric: true,
                rhs: Default::default(),
            }],
            absent: vec![Absent { peer: "mkl".into(), install: "pip install mkl".into() }],
            entries,
        }
    }

    fn measured(mode: Mode, peer: &str, figures: &[(&str, f64)]) -> Entry {
        let kernels = figures.iter().map(|&(name, s)| (name.to_owned(), Some(s))).collect();
        let mut entry = entry(peer, "cg+ic0", &[]);
        entry.mode = mode;
        entry.runs.push(Line { kernels, ..Line::default() });
        entry
    }

    #[test]
    fn solves_are_compared_to_the_best_peer() {
        let mut failed = entry("hypre", "cg+boomeramg:0.5", &[]);
        failed.failure = Some("exceeded 300 s".into());
        let entries = vec![
            entry("krylith", "cg+ic0", &[(0.1, 0.9), (0.1, 1.4)]),
            entry("petsc", "cg+icc0", &[(0.11, 2.25), (0.11, 1.89)]),
            failed,
        ];
        let text = markdown(&record(entries));
        assert!(text.contains("| krylith cg+ic0 | **0.100 + 0.900 (83)** |"), "{text}");
        assert!(
            text.contains("| petsc cg+icc0 | 0.110 + 1.89 (83) | 2.00 | 1.00 | 1.18 | 9.0e-8 |"),
            "{text}"
        );
        assert!(text.contains("| krylith's best / best peer | 0.50 |"), "{text}");
        assert!(
            text.contains("| hypre cg+boomeramg | failed |") && text.contains("exceeded 300 s"),
            "{text}"
        );
        assert!(text.contains("Absent: mkl (`pip install mkl`)"), "{text}");
    }

    #[test]
    fn kernels_are_fractions_of_the_triad() {
        // 103.28 MB in 5.164 ms is 20 GB/s, of 25.
        let mut by_rows = measured(Mode::Kernels, "krylith", &[("spmv", 10.328e-3)]);
        by_rows.config = "cg+none".into();
        let entries = vec![
            measured(Mode::Triad, "triad", &[("seconds_a_byte", 1.0 / 25e9)]),
            by_rows,
            measured(Mode::Kernels, "krylith", &[("spmv", 5.164e-3), ("apply", 6.164e-3)]),
        ];
        let text = markdown(&record(entries));
        assert!(text.contains("| product | krylith | 0.80 |"), "{text}");
        assert!(text.contains("| product | krylith by rows | 0.40 |"), "{text}");
        assert!(text.contains("| krylith by rows | 10.3 | – | – | – | – | – | 1.00 |"), "{text}");
        assert!(text.contains("| L + U | krylith ic0 | 0.80 |"), "{text}");
        assert!(text.contains("| krylith cg+ic0 | 5.16 | 6.16 | – | – | – | – | 1.00 |"), "{text}");
    }

    #[test]
    fn three_digits_that_count() {
        assert_eq!([0.0123, 1.234, 12.34, 123.4].map(digits), ["0.012", "1.23", "12.3", "123"]);
    }
}
