//! The tables of a study.

use super::contestants::{self, Contestant};
use super::record::{LeftOut, Record, Run};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Everything: how it was done, totals, each matrix, and why Krylith fails where it does.
pub fn markdown(record: &Record) -> String {
    let mut text = head(record);
    text.push_str(&totals(record));
    text.push_str(&each_matrix(record));
    text.push_str(&own_failures(record));
    text.push_str(&selection(&record.left_out));
    text
}

/// Those with a run, in the order of the tables.
fn present(record: &Record) -> Vec<&'static Contestant> {
    contestants::all(record.study).iter().filter(|c| record.total(c.name).1 > 0).collect()
}

fn head(record: &Record) -> String {
    let mut text = format!("# Incomplete factorizations, study `{}`\n\n", record.study.name());
    let _ = writeln!(
        text,
        "{}. `{}`. {}, x₀ = 0; converged: ‖b − A x‖₂ ≤ {:e} ‖b‖₂, recomputed from A and x by the study; at most {} iterations \
         (inner ones of GMRES) and {} s on one thread. A peer whose own residual met the tolerance while the recomputed one did \
         not went on from its x, up to 20 times; Krylith does so by itself. Outcomes only: nothing is timed but the limit.\n",
        record.date,
        record.command,
        record.rhs.formula(),
        record.rtol,
        record.max_iterations,
        record.seconds
    );
    let _ = writeln!(text, "Machine: {}.\n", record.machine.join("; "));
    let mut versions: Vec<&str> = record.versions.values().map(String::as_str).collect();
    versions.sort_unstable();
    versions.dedup();
    let _ = writeln!(text, "Versions: {}.\n", versions.join("; "));
    for skipped in &record.skipped {
        let _ = writeln!(text, "**Skipped:** {}: {}.\n", skipped.contestant, skipped.why);
    }
    text
}

/// How many matrices each contestant, and the best of each team, succeeds on.
pub fn totals(record: &Record) -> String {
    let mut text = format!("## Totals over {} matrices\n\n", record.matrices.len());
    text.push_str("| contestant | converged | after going on from x | otherwise |\n|---|---|---|---|\n");
    let mut teams: Vec<(&str, Vec<&str>)> = Vec::new();
    for contestant in present(record) {
        let (good, all) = record.total(contestant.name);
        let again = record.runs.iter().filter(|r| r.contestant == contestant.name && r.succeeded());
        let again = again.filter(|r| r.rounds > 1).count();
        let mut otherwise: Vec<String> = record
            .outcomes(contestant.name)
            .iter()
            .filter(|(outcome, _)| !["converged", "set_up"].contains(*outcome))
            .map(|(outcome, count)| format!("{outcome} {count}"))
            .collect();
        if all < record.matrices.len() {
            otherwise.push(format!("not run {}", record.matrices.len() - all));
        }
        let _ = writeln!(text, "| {} | {good} | {again} | {} |", contestant.name, otherwise.join(", "));
        match teams.iter_mut().find(|(team, _)| *team == contestant.team) {
            Some((_, names)) => names.push(contestant.name),
            None if contestant.team.is_empty() => {}
            None => teams.push((contestant.team, vec![contestant.name])),
        }
    }
    for (team, names) in teams.iter().filter(|(_, names)| names.len() > 1) {
        let _ = writeln!(text, "| **best of {team}** | {} | | |", record.best(names));
    }
    text.push('\n');
    text
}

/// A run in a table: iterations and residual, after the outcome unless it is converged.
pub fn cell(run: Option<&Run>) -> String {
    let Some(run) = run else { return String::new() };
    let iterations = run.iterations.map(|k| k.to_string());
    let residual = run.residual.map(|r| format!("{r:.1e}"));
    let figures: Vec<String> = [iterations, residual].into_iter().flatten().collect();
    match (run.outcome.as_str(), figures.is_empty()) {
        ("set_up", _) => "set up".into(),
        ("converged", _) => figures.join(", "),
        (outcome, true) => format!("*{outcome}*"),
        (outcome, false) => format!("*{outcome}* {}", figures.join(", ")),
    }
}

fn each_matrix(record: &Record) -> String {
    let contestants = present(record);
    let mut text = String::from(
        "## Each matrix\n\nIterations and final residual; what did not converge is in italics.\n\n",
    );
    let names: Vec<&str> = contestants.iter().map(|c| c.name).collect();
    let _ = writeln!(text, "| matrix | n | nnz | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---|---|{}", "---|".repeat(names.len()));
    for matrix in &record.matrices {
        let cells: Vec<String> = names.iter().map(|name| cell(record.run(&matrix.file, name))).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            short(&matrix.file),
            matrix.rows,
            matrix.nnz,
            cells.join(" | ")
        );
    }
    text.push('\n');
    text
}

/// The file without its folder and ending.
fn short(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

fn own_failures(record: &Record) -> String {
    let own = present(record).into_iter().filter(|c| c.is_own());
    let mut text = String::new();
    for contestant in own {
        let failed = record.runs.iter().filter(|r| r.contestant == contestant.name && !r.succeeded());
        for run in failed {
            let mut why = vec![run.detail.clone()];
            why.extend(run.recovery.iter().map(|step| {
                let word = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
                format!("{}, then {}", word("failed"), word("action"))
            }));
            why.retain(|w| !w.is_empty());
            // A bar would end the cell.
            let why = why.join("; ").replace('|', "/");
            let _ = writeln!(
                text,
                "| {} | {} | {} | {why} |",
                short(&run.file),
                contestant.name,
                cell(Some(run)).replace('*', "")
            );
        }
    }
    match text.is_empty() {
        true => text,
        false => format!(
            "## Where Krylith fails\n\n| matrix | contestant | outcome | report |\n|---|---|---|---|\n{text}\n"
        ),
    }
}

fn selection(left_out: &[LeftOut]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for gone in left_out {
        let reason = gone.why.split(':').next().unwrap_or(&gone.why);
        reasons.entry(reason).or_default().push(short(&gone.file));
    }
    let mut text = format!("## Left out: {}\n\n", left_out.len());
    for (reason, names) in reasons {
        let _ = writeln!(text, "* {reason}, {}: {}", names.len(), names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{record, run};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_tables_tell_outcomes_totals_and_reasons() {
        let (a, b) = ("spd/a.mtx.xz", "spd/b.mtx.xz");
        let mut failed = run(b, "Krylith ic0", "setup_failed");
        (failed.iterations, failed.residual) = (None, None);
        failed.detail = "bad pivot -1e0 in row 3".into();
        failed.recovery = vec![json!({ "failed": "ic0: bad pivot", "action": "shift 1e-3" })];
        let mut again = run(a, "PETSc ICC(0) none", "converged");
        again.rounds = 2;
        let mut record = record(vec![
            again,
            run(b, "PETSc ICC(0) none", "false_convergence"),
            run(a, "PETSc ICC(0) nonzero", "time_limit"),
            run(b, "PETSc ICC(0) nonzero", "converged"),
            run(a, "Krylith ic0", "converged"),
            failed,
        ]);
        let why = "structurally singular: rank 1 of 2".into();
        record.left_out = vec![LeftOut { file: "general/c.mtx.xz".into(), why }];
        let text = markdown(&record);
        for line in [
            "| PETSc ICC(0) none | 1 | 1 | false_convergence 1 |",
            "| PETSc ICC(0) nonzero | 1 | 0 | time_limit 1 |",
            "| **best of PETSc** | 2 | | |",
            "| a | 10 | 28 | 7, 3.0e-9 | *time_limit* 7, 3.0e-9 | 7, 3.0e-9 |",
            "| b | Krylith ic0 | setup_failed | bad pivot -1e0 in row 3; ic0: bad pivot, then shift 1e-3 |",
            "* structurally singular, 1: c",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
