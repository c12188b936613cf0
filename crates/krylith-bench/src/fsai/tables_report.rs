//! The tables of `tables` as Markdown.

use super::spans::PHASES;
use super::tables::{LeftOut, Matrix, Record, Solve, Way};
use crate::folder::{counted, digits, grouped, rounds, table};

/// The whole text.
pub fn markdown(record: &Record) -> String {
    let mut text = record.head.markdown("Approximate inverses on stand-ins for the matrices of the paper");
    text += &format!(
        "\nb = A·1, x₀ = 0, CG until ‖r‖₂ / ‖b‖₂ ≤ 1e-8, at most 10,000 iterations; the least of {} in which contestants take turns. \"Paper\" is \
         Bernaschi et al. 2016, doi:10.1137/15M1027826: its matrices are others of the same kinds, its machines a K80 and a Xeon E5645 with six \
         cores. \"Another τ\" is the least with which μ before filtration is at most the paper's. `tables.json.zst` has all figures.\n",
        rounds(record.head.rounds)
    );
    text += &section("Matrices", &matrices(record));
    text += &section("μ = nnz(G) / nnz(A) before and after filtration (table 5)", &densities(record));
    text += &section("Iterations (table 6)", &iterations(record));
    for threads in threads(record) {
        let words = counted(threads);
        text += &section(
            &format!("Set-up + solve = total in seconds (table 7), {words}"),
            &seconds(record, threads),
        );
        text += &section(
            &format!("Phases of the set-up in seconds (figure 5), {words}"),
            &phases(record, threads),
        );
    }
    text += &left_out(record);
    text + &layouts(record)
}

fn section(title: &str, body: &str) -> String {
    format!("\n## {title}\n\n{body}")
}

/// Numbers of threads, in the order of the run.
fn threads(record: &Record) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for solve in record.matrices.iter().flat_map(|m| &m.solves) {
        if !all.contains(&solve.threads) {
            all.push(solve.threads);
        }
    }
    all
}

/// How a contestant did, on whichever number of threads came first: what does not depend on it.
fn first(matrix: &Matrix, way: Way) -> Option<&Solve> {
    matrix.solves.iter().find(|s| s.way == way)
}

fn matrices(record: &Record) -> String {
    let columns =
        ["paper's matrix", "kind", "rows", "entries", "per row", "here", "rows", "entries", "per row"];
    let row = |m: &Matrix| {
        let size = |rows: u64, entries: u64| {
            [grouped(rows), grouped(entries), digits(Some(entries as f64 / rows as f64))]
        };
        let mut cells = vec![m.case.name.to_owned(), m.case.kind.to_owned()];
        cells.extend(size(m.case.rows, m.case.entries));
        cells.push(format!("`{}`", m.problem));
        cells.extend(size(m.rows, m.entries));
        cells
    };
    table(&columns, record.matrices.iter().map(row))
}

fn densities(record: &Record) -> String {
    let columns =
        ["matrix", "τ, k, δ", "paper", "the same here", "another τ", "with it", "`fsai`", "`afsai`"];
    let both = |[before, after]: [f64; 2]| format!("{before:.3}, {after:.3}");
    let row = |m: &Matrix| {
        let (tau, k, delta) = m.case.parameters;
        let of = |way| first(m, way).and_then(|s| s.density).map_or("–".into(), both);
        let mut cells = vec![m.case.name.to_owned(), format!("{tau}, {k}, {delta}"), both(m.case.density)];
        let other =
            first(m, Way::Density).map(|s| s.preconditioner.split(['(', ',']).nth(1).unwrap_or_default());
        cells.extend([of(Way::Paper), other.unwrap_or("–").to_owned()]);
        cells.extend([Way::Density, Way::Fsai, Way::Afsai].map(of));
        cells
    };
    table(&columns, record.matrices.iter().map(row))
}

fn iterations(record: &Record) -> String {
    let columns = [
        "matrix",
        "Jacobi",
        "`fsai` as in the paper",
        "another τ",
        "`fsai`",
        "`afsai`",
        "Jacobi / `fsai` as in the paper",
        "/ another τ",
        "/ `fsai`",
        "/ `afsai`",
        "paper: FSAI",
        "Jacobi",
        "Jacobi / FSAI",
    ];
    let row = |m: &Matrix| {
        let mut cells = vec![m.case.name.to_owned()];
        cells.extend(Way::ALL.map(|way| first(m, way).map_or("–".into(), counted_iterations)));
        cells.extend([Way::Paper, Way::Density, Way::Fsai, Way::Afsai].map(|way| ratio(m, way)));
        let (with, jacobi) = m.case.iterations;
        let by = |jacobi: usize| format!("{:.1}", jacobi as f64 / with as f64);
        cells.push(with.to_string());
        cells.push(jacobi.map_or("> 10000".into(), |jacobi| jacobi.to_string()));
        cells.push(jacobi.map_or_else(|| format!("> {}", by(10_000)), by));
        cells
    };
    table(&columns, record.matrices.iter().map(row))
}

/// The number, marked where the solve did not converge.
fn counted_iterations(solve: &Solve) -> String {
    let Solve { iterations, outcome, .. } = solve;
    if solve.has_converged { iterations.to_string() } else { format!("{iterations} ({outcome})") }
}

/// Iterations with Jacobi by those of a contestant; a bound where Jacobi did not converge.
fn ratio(matrix: &Matrix, way: Way) -> String {
    match (first(matrix, Way::Jacobi), first(matrix, way).filter(|s| s.has_converged)) {
        (Some(jacobi), Some(other)) => {
            let bound = if jacobi.has_converged { "" } else { "> " };
            format!("{bound}{:.1}", jacobi.iterations as f64 / other.iterations.max(1) as f64)
        }
        _ => "–".into(),
    }
}

fn seconds(record: &Record, threads: usize) -> String {
    let columns = [
        "matrix",
        "Jacobi",
        "`fsai` as in the paper",
        "another τ",
        "`fsai`",
        "`afsai`",
        "paper: K80",
        "E5645, 6 cores",
    ];
    let sum = |[setup, solve]: [f64; 2]| {
        format!("{} + {} = {}", digits(Some(setup)), digits(Some(solve)), digits(Some(setup + solve)))
    };
    let row = |m: &Matrix| {
        let of = |way| match m.solve(way, threads) {
            Some(s) if s.has_converged => sum([s.setup, s.solve]),
            Some(s) => format!("{} ({})", sum([s.setup, s.solve]), s.outcome),
            None => "–".into(),
        };
        let mut cells = vec![m.case.name.to_owned()];
        cells.extend(Way::ALL.map(of));
        cells.extend([sum(m.case.gpu), sum(m.case.cpu)]);
        cells
    };
    table(&columns, record.matrices.iter().map(row))
}

/// Columns of the table of phases and the spans that each adds up. Systems are gathered and solved in one.
const COLUMNS: [(&str, &[&str]); 7] = [
    ("equal rows", &["compare", "copy"]),
    ("prefilter + powers", &["choose", "prefilter", "powers"]),
    ("growing", &["grow"]),
    ("gather + solve", &["solve"]),
    ("filter + scale", &["filter"]),
    ("transpose", &["transpose"]),
    ("storing", &["store"]),
];

fn phases(record: &Record, threads: usize) -> String {
    let mut columns = vec!["matrix", "preconditioner"];
    columns.extend(COLUMNS.map(|(title, _)| title));
    columns.extend(["other", "set-up"]);
    let row = |(m, s): (&Matrix, &Solve)| {
        let of = |(_, spans): (&str, &[&str])| -> f64 {
            PHASES.iter().zip(&s.phases).filter(|(name, _)| spans.contains(name)).map(|(_, s)| s).sum()
        };
        let parts = COLUMNS.map(of);
        let other = s.setup - parts.iter().sum::<f64>();
        let mut cells = vec![m.case.name.to_owned(), format!("`{}`", s.preconditioner)];
        let numbers = parts.into_iter().chain([other, s.setup]);
        cells.extend(numbers.map(|seconds| format!("{seconds:.3}")));
        cells
    };
    let solves = record.matrices.iter().flat_map(|m| m.solves.iter().map(move |s| (m, s)));
    table(&columns, solves.filter(|(_, s)| s.threads == threads && s.way != Way::Jacobi).map(row))
}

/// Contestants whose systems take too many operations.
fn left_out(record: &Record) -> String {
    let row = |(m, l): (&Matrix, &LeftOut)| {
        let density = format!("{:.3}", l.density);
        vec![
            m.case.name.to_owned(),
            format!("`{}`", l.preconditioner),
            density,
            format!("{:.1e}", l.operations),
        ]
    };
    let all = record.matrices.iter().flat_map(|m| m.left_out.iter().map(move |l| (m, l)));
    let rows: Vec<_> = all.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["matrix", "preconditioner", "μ before filtration", "operations of the systems"];
    section("Left out", &table(&columns, rows))
}

fn layouts(record: &Record) -> String {
    let row = |(m, s): (&Matrix, &Solve)| {
        vec![m.case.name.to_owned(), format!("`{}`", s.preconditioner), s.layout.clone()]
    };
    let solves = record.matrices.iter().flat_map(|m| Way::ALL.map(|way| first(m, way).map(|s| (m, s))));
    section("Storage", &table(&["matrix", "preconditioner", "A and G"], solves.flatten().map(row)))
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::small;
    use super::*;
    use crate::folder::tests::head;

    #[test]
    fn a_run_at_small_sizes_has_all_tables() {
        let mut matrix = small();
        for (solve, iterations) in matrix.solves.iter_mut().zip([1000, 100, 150, 300, 200]) {
            solve.iterations = iterations;
            (solve.setup, solve.solve) = (1.0, 2.0);
            solve.phases = [0.0, 0.04, 0.125, 0.125, 0.0, 0.01, 0.2, 0.0, 0.1, 0.15];
        }
        let record = Record { head: head(), matrices: vec![matrix] };
        let text = markdown(&record);
        let has = |line: &str| assert!(text.contains(line), "{line}\n{text}");
        has("| PFlow_742 | porous flow | 742,793 | 37,138,461 | 50.0 | `pflow:8x8x4` | 256 |");
        has("| PFlow_742 | 1000 | 100 | 150 | 300 | 200 | 10.0 | 6.7 | 3.3 | 5.0 | 1529 | > 10000 | > 6.5 |");
        has("| PFlow_742 | 0.05, 5, 0.0035 | 1.818, 1.168 |");
        assert!(!text.contains("## Left out"));
        has("| PFlow_742 | 1.00 + 2.00 = 3.00 |");
        has("| `afsai` | 0.050 | 0.250 | 0.000 | 0.200 | 0.000 | 0.100 | 0.150 | 0.250 | 1.000 |");
    }

    #[test]
    fn what_does_not_converge_is_marked() {
        let mut matrix = small();
        matrix.solves[0].has_converged = false;
        matrix.solves[0].outcome = "iteration_limit".into();
        (matrix.solves[0].iterations, matrix.solves[1].iterations) = (10_000, 2000);
        assert_eq!(ratio(&matrix, Way::Paper), "> 5.0");
        assert_eq!(counted_iterations(&matrix.solves[0]), "10000 (iteration_limit)");
        let preconditioner = "fsai(0.025,6,0.01)".into();
        matrix.left_out.push(LeftOut { preconditioner, density: 11.5, operations: 6e13 });
        matrix.solves.retain(|s| s.way != Way::Paper);
        assert_eq!(ratio(&matrix, Way::Paper), "–");
        let text = markdown(&Record { head: head(), matrices: vec![matrix] });
        assert!(text.contains("| PFlow_742 | `fsai(0.025,6,0.01)` | 11.500 | 6.0e13 |"), "{text}");
    }
}
