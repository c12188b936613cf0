//! A run as Markdown: machine, command, whole solves, single operations.

use super::record::{Entry, Matrix, Mode, Record, SHORTEST, Spread, apply_bytes, spmv_bytes};
use crate::run::table::{or_dash, table, threads as counted};
use std::collections::BTreeMap;

/// The whole text but the pictures.
pub fn markdown(record: &Record) -> String {
    let mut text = head(record);
    let threads = record.threads();
    let has = |mode: Mode| record.rows.iter().any(|e| e.mode == mode);
    if has(Mode::Solve) {
        text.extend(threads.iter().map(|&threads| summary(record, threads)));
    }
    if has(Mode::Kernels) {
        text += &triads(record, &threads);
        text.extend(threads.iter().map(|&threads| fractions(record, threads)));
    }
    for &threads in &threads {
        for matrix in &record.facts.matrices {
            text += &solves(record, matrix, threads);
            text += &kernels(record, matrix, threads);
        }
    }
    text
}

/// A row of a table: a title and a cell for each matrix.
fn across(record: &Record, titles: &[&str], cell: impl FnMut(&Matrix) -> String) -> Vec<String> {
    titles.iter().map(|&title| title.to_owned()).chain(record.facts.matrices.iter().map(cell)).collect()
}

fn head(record: &Record) -> String {
    let cells = |m: &Matrix| {
        let symmetric = if m.symmetric { "taken to be" } else { "no" };
        let [name, spec] = [m.name.clone(), format!("`{}`", m.spec)];
        vec![name, spec, m.rows.to_string(), m.nnz.to_string(), symmetric.into(), m.rhs.formula().into()]
    };
    let columns = ["", "problem", "rows", "entries", "symmetric positive definite", "right-hand side"];
    let mut versions = BTreeMap::new();
    for run in record.rows.iter().filter(|e| e.peer != "triad").flat_map(|e| &e.runs) {
        versions.insert(&run.peer, &run.version);
    }
    let versions: Vec<String> = versions.iter().map(|(peer, version)| format!("{peer} {version}")).collect();
    let absent =
        record.facts.absent.iter().map(|gone| format!("\nAbsent: {} (`{}`).\n", gone.peer, gone.install));
    format!(
        "# Comparison of {}\n\n`{}`; {}.\n\n\
         x₀ = 0, ‖r‖₂/‖r₀‖₂ < {:e} (unpreconditioned norm) for everyone, residuals recomputed. Every contestant in a \
         process of its own, taking turns; the least of {} rounds, spread is the longest by the shortest. Set-up is what comes \
         between the library's matrix object and the first iteration. Threads are ranks for PETSc and hypre. Totals below \
         {SHORTEST} s are shown but not ranked. `compare.json.zst` has every repetition.\n\n{}\nVersions: {}.\n{}",
        record.head.date,
        record.head.command,
        record.head.machine.join("; "),
        record.facts.rtol,
        record.head.rounds,
        table(&columns, record.facts.matrices.iter().map(cells)),
        versions.join(", "),
        absent.collect::<String>()
    )
}

/// Contestants down, problems across.
fn summary(record: &Record, threads: usize) -> String {
    let mut titles = Vec::new();
    for entry in record.rows.iter().filter(|e| e.mode == Mode::Solve && e.threads == threads) {
        if !titles.contains(&plain_title(entry)) {
            titles.push(plain_title(entry));
        }
    }
    let least = |m: &Matrix, own: bool| {
        let entries = record.on(Mode::Solve, &m.name, threads).filter(|e| !own || e.peer == "krylith");
        entries.filter_map(Entry::counted).min_by(f64::total_cmp)
    };
    let of_title = |title: &String| {
        across(record, &[title], |m| {
            let mut entries = record.on(Mode::Solve, &m.name, threads);
            let Some(entry) = entries.find(|e| plain_title(e) == *title) else { return "–".into() };
            let cell = solved(entry);
            let is_least = entry.counted().is_some() && entry.counted() == least(m, false);
            if is_least { format!("**{cell}**") } else { cell }
        })
    };
    let ratio = across(record, &["krylith's best / best peer"], |m| {
        let both = least(m, true).zip(record.best_peer(&m.name, threads));
        or_dash(both, |(own, best)| format!("{:.2}", own / best))
    });
    let rows = titles.iter().map(of_title).chain([ratio]);
    format!(
        "\n## Whole solves, {}\n\nSet-up + solve in seconds (iterations); in bold the least total of its column.\n\n{}",
        counted(threads),
        table(&across(record, &["contestant"], |m| m.name.clone()), rows)
    )
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

fn triads(record: &Record, threads: &[usize]) -> String {
    let cells = |entry: &Entry| {
        let seconds = entry.kernel("seconds_a_byte")?;
        let what = match entry.mode {
            Mode::BigTriad => "three arrays".into(),
            _ => format!("as {}'s product", entry.problem),
        };
        Some(vec![
            entry.threads.to_string(),
            format!("{what}, {}", entry.config),
            format!("{:.1}", 1e-9 / seconds.least),
            format!("{:.2}", seconds.most / seconds.least),
        ])
    };
    let of_threads = |&threads: &usize| {
        let own = record.rows.iter().filter(move |e| e.threads == threads);
        own.filter(|e| matches!(e.mode, Mode::Triad | Mode::BigTriad)).filter_map(cells)
    };
    let columns = ["threads", "footprint", "GB/s", "spread"];
    format!("\n## Triad, GB/s\n\n{}", table(&columns, threads.iter().flat_map(of_threads)))
}

/// GB/s of the two memory-bound operations by the byte model, as a fraction of the triad at the same footprint.
fn fractions(record: &Record, threads: usize) -> String {
    let mut rows = Vec::new();
    for (kernel, name) in [("spmv", "product"), ("apply", "L + U")] {
        let title = |e: &Entry| match kernel {
            "spmv" if is_by_rows(e) => kernel_title(e),
            "spmv" => e.peer.clone(),
            _ => format!("{} {}", e.peer, preconditioner(e)),
        };
        let mut titles: Vec<String> = Vec::new();
        for e in record.rows.iter().filter(|e| e.mode == Mode::Kernels && e.threads == threads) {
            if e.kernel(kernel).is_some() && !titles.contains(&title(e)) {
                titles.push(title(e));
            }
        }
        rows.extend(titles.iter().map(|own| {
            across(record, &[name, own], |m| {
                let mut entries = record.on(Mode::Kernels, &m.name, threads);
                let fraction =
                    entries.find(|e| title(e) == *own).and_then(|e| fraction(record, m, e, kernel));
                or_dash(fraction, |f| format!("{f:.2}"))
            })
        }));
    }
    format!(
        "\n## Fractions of the triad at the same footprint, {}\n\n\
         Product: 12 nnz + 20 n bytes. L + U solves: 12 nnz + 40 n bytes, nnz being the entries of A.\n\n{}",
        counted(threads),
        table(&across(record, &["operation", "contestant"], |m| m.name.clone()), rows)
    )
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

/// A row with the title and the reason of a failure; the other cells are empty.
fn failed(title: String, reason: &str, cells: usize) -> Vec<String> {
    let mut row = vec![String::new(); cells];
    (row[0], row[1]) = (title, reason.to_owned());
    row
}

fn solves(record: &Record, matrix: &Matrix, threads: usize) -> String {
    let best = record.best_peer(&matrix.name, threads);
    let cells = |entry: &Entry| {
        if let Some(reason) = &entry.failure {
            return Some(failed(entry.title(), reason, 6));
        }
        let (line, Spread { least, most, .. }) = (entry.best()?, entry.totals()?);
        let ratio = match (entry.counted(), best) {
            (Some(own), Some(best)) => format!("{:.2}", own / best),
            (None, _) => "too short".into(),
            (_, None) => "–".into(),
        };
        let residual = line.relative_residual.unwrap_or(f64::NAN);
        let spread = format!("{:.2}", most / least);
        Some(vec![entry.title(), solved(entry), digits(least), ratio, spread, format!("{residual:.1e}")])
    };
    let columns =
        ["contestant", "set-up + solve, s (iterations)", "total, s", "by best peer", "spread", "residual"];
    of_mode(record, matrix, (Mode::Solve, threads), "solves", &columns, cells)
}

fn kernels(record: &Record, matrix: &Matrix, threads: usize) -> String {
    const NAMES: [&str; 6] = ["spmv", "apply", "analyze", "factor", "dot", "axpy"];
    let cells = |entry: &Entry| {
        let title = kernel_title(entry);
        if let Some(reason) = &entry.failure {
            return Some(failed(title, reason, 8));
        }
        let spreads = NAMES.map(|name| entry.kernel(name));
        // Of the product and the solves: the others are short or rare.
        let spread = spreads[..2].iter().flatten().map(|s| s.most / s.least).fold(1.0, f64::max);
        let milliseconds = spreads.map(|s| or_dash(s, |s| digits(1e3 * s.least)));
        Some([vec![title], milliseconds.to_vec(), vec![format!("{spread:.2}")]].concat())
    };
    let columns = ["contestant", "product", "L + U", "analyze", "factor", "dot", "axpy", "spread"];
    of_mode(record, matrix, (Mode::Kernels, threads), "milliseconds a call", &columns, cells)
}

/// A table of what was measured on a matrix; empty if nothing was.
fn of_mode(
    record: &Record,
    matrix: &Matrix,
    (mode, threads): (Mode, usize),
    what: &str,
    columns: &[&str],
    cells: impl FnMut(&Entry) -> Option<Vec<String>>,
) -> String {
    let mut entries = record.on(mode, &matrix.name, threads).peekable();
    if entries.peek().is_none() {
        return String::new();
    }
    let title = format!("{}, `{}`, {}: {what}", matrix.name, matrix.spec, counted(threads));
    format!("\n### {title}\n\n{}", table(columns, entries.filter_map(cells)))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::solved as entry;
    use super::super::record::{Absent, Setting};
    use super::*;
    use crate::driver::Line;
    use crate::run::tests::run;

    fn record(entries: Vec<Entry>) -> Record {
        let matrices = vec![Matrix {
            name: "P2".into(),
            spec: "poisson3d:100".into(),
            rows: 1_000_000,
            nnz: 6_940_000,
            symmetric: true,
            rhs: Default::default(),
        }];
        let absent = vec![Absent { peer: "mkl".into(), install: "pip install mkl".into() }];
        run(Setting { rtol: 1e-7, matrices, absent }, entries)
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
