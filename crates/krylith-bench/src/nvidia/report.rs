//! The tables of the study.

use super::paper::{MATRICES, PRECONDITIONERS, PaperMatrix};
use super::{Row, Solved};
use crate::run::Run;
use crate::run::table::{digits, geometric_mean, grouped, table};

const TEXT: &str = "\
The protocol of NVIDIA's paper on incomplete factors (Naumov 2011): b = A·1, CG or BiCGStab to 1e-7 in at most 2000 iterations. Matrices are the gallery's stand-ins of its twelve, at their sizes where no other is given: they share the kind, not the numbers, so its iterations stand beside ours for orientation. FEM_3D_thermal2 and ASIC_320ks have no stand-in.

Everybody has the same preconditioner. `ilut(P,TOL)` is what MKL's `dcsrilut` computes, which the paper used, and that differs from its text in three points: a row's size is its root mean square, not its 2-norm; the quota of nnz/n + P entries holds for L and for U, not for both together; multipliers and fill are compared with the tolerance too, before they are used. Conjugate gradients need a symmetric M, and the paper writes it as RᵀR: for the definite matrices R is D^(-1/2) U with D and U of `ilut`, in all places. (With L and U as they are, whose entries were dropped differently, CG stagnates on four of the seven.)

Seconds: the numbers of the factor, copying A and the factor to the device, everything that depends on the pattern, and the iterations with the certificate (MKL has none). On threads Krylith chooses how to store the factor. The last column splits the iterations into products, preconditioner and vectors; on devices by the seconds of kernels, elsewhere by the clock.
";

pub(super) fn markdown(run: &Run<Row>) -> String {
    let mut text = format!("{}\n{TEXT}", run.head.markdown("NVIDIA's study of incomplete factors"));
    let places = places(&run.rows);
    for (k, preconditioner) in PRECONDITIONERS.iter().enumerate() {
        let rows: Vec<&Row> = run.rows.iter().filter(|row| row.preconditioner == *preconditioner).collect();
        if rows.is_empty() {
            continue;
        }
        text += &format!("\n## {preconditioner} (Table {})\n\n{}", k + 2, of_preconditioner(&rows, k));
        text += &format!(
            "\n{}* In the paper: MKL on its processor takes {} times as long in all as its GPU, in the geometric mean of its twelve.\n",
            speedups(&rows, &places),
            digits(of_paper(k))
        );
    }
    text
}

/// In the order of the study.
fn places(rows: &[Row]) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for row in rows {
        if !places.contains(&row.place.as_str()) {
            places.push(&row.place);
        }
    }
    places
}

fn of_preconditioner(rows: &[&Row], k: usize) -> String {
    let columns = [
        "stand-in",
        "rows",
        "entries",
        "place",
        "iterations",
        "the paper's, of its matrix",
        "relative residual",
        "factor, s",
        "copy, s",
        "analysis, s",
        "solve, s",
        "products, preconditioner, vectors, %",
    ];
    let cells = |row: &&Row| {
        let paper = MATRICES.iter().find(|matrix| matrix.name == row.matrix);
        let mut cells = vec![row.problem.clone(), grouped(row.rows), grouped(row.entries), row.place.clone()];
        let theirs = paper
            .map_or("–".into(), |paper: &PaperMatrix| format!("{} of {}", paper.iterations[k], paper.name));
        match &row.result {
            Ok(solved) => {
                let Solved {
                    outcome,
                    iterations,
                    relative_residual,
                    factor,
                    copy,
                    analyze,
                    solve,
                    split,
                    ..
                } = solved;
                let how = if outcome == "converged" {
                    String::new()
                } else {
                    format!(", {}", outcome.replace('_', " "))
                };
                let all = split.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                cells.extend([format!("{iterations}{how}"), theirs, format!("{relative_residual:.1e}")]);
                cells.extend([factor, copy, analyze, solve].map(|&seconds| digits(Some(seconds))));
                cells.push(split.map(|part| format!("{:.0}", 100.0 * part / all)).join(", "));
            }
            Err(why) => {
                cells.extend([why.clone(), theirs]);
                cells.extend((0..6).map(|_| "–".to_string()));
            }
        }
        cells
    };
    table(&columns, rows.iter().map(cells))
}

/// How much faster each place is than MKL, over the matrices where both converge.
fn speedups(rows: &[&Row], places: &[&str]) -> String {
    let converged = |matrix: &str, place: &str| {
        let row = rows.iter().find(|row| row.matrix == matrix && row.place == place)?;
        row.result.as_ref().ok().filter(|solved| solved.outcome == "converged")
    };
    let mut words = Vec::new();
    for place in places.iter().filter(|&&place| place != "MKL") {
        let ratio = |matrix: &PaperMatrix| {
            let (own, mkl) = (converged(matrix.name, place)?, converged(matrix.name, "MKL")?);
            Some((mkl.total() / own.total(), mkl.solve / own.solve))
        };
        let ratios: Vec<(f64, f64)> = MATRICES.iter().filter_map(ratio).collect();
        if ratios.is_empty() {
            continue;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| geometric_mean(&ratios.iter().map(of).collect::<Vec<_>>());
        words.push(format!(
            "{place}: MKL takes {} times as long in all, {} times for the solve, in the geometric mean of {} matrices where both converge",
            digits(mean(|r| r.0)),
            digits(mean(|r| r.1)),
            ratios.len()
        ));
    }
    words.iter().map(|word| format!("* {word}.\n")).collect()
}

/// The speedup of the paper's GPU by one of its preconditioners.
fn of_paper(k: usize) -> Option<f64> {
    let speedup = |matrix: &PaperMatrix| {
        let [factor, copy, cpu, gpu] = matrix.seconds[k];
        (factor + cpu) / (factor + copy + gpu)
    };
    geometric_mean(&MATRICES.iter().map(speedup).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Nothing;
    use crate::run::tests::run;

    fn row(place: &str, matrix: &str, solve: f64, outcome: &str) -> Row {
        let split = [0.25 * solve, 0.5 * solve, 0.25 * solve];
        let solved = Solved {
            outcome: outcome.into(),
            iterations: 12,
            relative_residual: 5e-8,
            factor: 0.5,
            copy: 0.0,
            analyze: 0.5,
            solve,
            split,
        };
        Row {
            matrix: matrix.into(),
            problem: "ecology:9".into(),
            rows: 81,
            entries: 300,
            preconditioner: "ilu0".into(),
            place: place.into(),
            result: Ok(solved),
        }
    }

    #[test]
    fn tables_have_the_papers_iterations_and_means_only_of_what_converges() {
        let rows = vec![
            row("threads", "ecology2", 1.0, "converged"),
            row("MKL", "ecology2", 3.0, "converged"),
            row("threads", "apache2", 1.0, "converged"),
            row("MKL", "apache2", 9.0, "max_iterations"),
        ];
        let text = markdown(&run(Nothing {}, rows));
        assert!(
            text.contains(
                "| threads | 12 | 1746 of ecology2 | 5.0e-8 | 0.50 | 0.00 | 0.50 | 1.00 | 25, 50, 25 |"
            ),
            "{text}"
        );
        assert!(text.contains("12, max iterations"), "{text}");
        assert!(text.contains("threads: MKL takes 2.00 times as long in all, 3.00 times for the solve, in the geometric mean of 1 "));
        assert!(!text.contains("ilut(5"), "{text}");
    }
}
