//! The report of a solve for people: what was reached, how, and what there is to know about it.
//!
//! The first line says how the solve ended. Warnings, recovery steps and the shift are always shown; how the work was arranged is shown
//! with `--verbose`.

use crate::report::{bytes, count, counted, entries};
use crate::solve::Done;
use krylith::plan::ReasonCode;
use krylith::report::advice::Change;
use krylith::report::{DeviceReport, KernelTime, Recovery, Rung};
use krylith::space::{Profile, TeamStatistics};
use krylith::sparsify::Sparsify;
use krylith::transform::Ordering;
use krylith::{Method, Outcome, Precision, PrecondSpec, Report};
use std::fmt::Write;

/// The whole report.
pub fn text(done: &Done, r: &Report) -> String {
    let mut text = format!("{}\n", headline(r));
    let mut line = |label: &str, value: String| {
        writeln!(text, "  {label:18}{value}").expect("writing to a string");
    };
    if let Some(meaning) = meaning(r) {
        line("outcome", meaning);
    }
    line("method", format!("{} with {}, {}", r.solver, r.preconditioner, threads(&r.team)));
    line("because", because(r));
    if let Some(choice) = done.place.choice() {
        line("device", choice);
    }
    if let Some(device) = &r.device {
        for (k, words) in work(device).into_iter().enumerate() {
            line(if k == 0 { "on the device" } else { "" }, words);
        }
    }
    if let Some(sparsification) = &r.plan.sparsification {
        line("sparsification", sparsification.to_string());
    }
    let a = &done.loaded.matrix;
    line("matrix", format!("{}, {}, {}", done.loaded.name, counted(a.nrows(), "row"), entries(a)));
    if let Some(source) = done.source {
        line("precond matrix", format!("{}, {}", source.name, entries(&source.matrix)));
    }
    line("right-hand side", done.rhs.origin.clone());
    for warning in done.warnings(r) {
        line("warning", warning);
    }
    for (k, words) in left(r).into_iter().enumerate() {
        line(if k == 0 { "left" } else { "" }, words);
    }
    for step in r.recovery.iter().filter(|step| !is_of_rung(r, step)) {
        line("recovery", format!("{}; {}", failed(step), step.action));
    }
    if r.shift > 0.0 {
        line("shift", format!("{:.2e} of the diagonal's size", r.shift));
    }
    if done.options.verbose {
        details(r, done.options.rtol, &mut line);
    }
    let (held, predicted) = (bytes(r.bytes as u64), bytes(r.predicted_bytes as u64));
    line("memory", format!("{held} besides A, b and x; {predicted} predicted"));
    line("seconds", seconds(done, r));
    if let Some(profile) = &r.profile {
        line("profile", split(profile));
    }
    if let Some(command) = replay(done, r) {
        line("replay", command);
    }
    for (k, advice) in r.advice().into_iter().enumerate() {
        line(if k == 0 { "next" } else { "" }, advice.worded(in_options));
    }
    text
}

/// What an option of advice is called on the command line.
fn in_options(change: &Change) -> String {
    let flag = match change.option {
        "method" => "--solver".into(),
        "preconditioner" => "--precond".into(),
        other => format!("--{}", other.replace('_', "-")),
    };
    match &change.value {
        // The command takes one from a file as well.
        Some(value) if change.option == "null_space" => format!("{flag} {value} or FILE"),
        Some(value) => format!("{flag} {value}"),
        None => flag,
    }
}

/// What a device did: its work in one line, and the kernels that took the longest where they were timed.
fn work(device: &DeviceReport) -> Vec<String> {
    let mut lines = vec![format!(
        "{} launches, {}, {} to it and {} back",
        count(device.launches),
        counted(device.synchronisations as usize, "synchronisation"),
        bytes(device.bytes_to_device),
        bytes(device.bytes_from_device)
    )];
    let mut kernels: Vec<_> = device.kernels.iter().collect();
    kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let time = |k: &&KernelTime| format!("{:.4} s in {} of {}", k.seconds, count(k.launches), k.kernel);
    lines.extend(kernels.iter().take(8).map(time));
    lines
}

/// Where the seconds of the iterations went.
fn split(profile: &Profile) -> String {
    let share =
        |seconds: f64| format!("{seconds:.3} s ({:.0} %)", 100.0 * seconds / profile.seconds().max(1e-300));
    let Profile { products, preconditioner, vectors, .. } = profile;
    format!(
        "{} in {}, {} in {} of the preconditioner, {} on vectors",
        share(products.seconds),
        counted(products.calls as usize, "product"),
        share(preconditioner.seconds),
        counted(preconditioner.calls as usize, "application"),
        share(*vectors)
    )
}

/// Methods that are shown of those that were left.
const MOST_LEFT: usize = 3;

/// The methods that were left, and why.
fn left(r: &Report) -> Vec<String> {
    let words = |rung: &Rung| {
        let why = rung.left.as_ref()?;
        Some(format!(
            "{} with {} after {} and {:.3} s, at {:.1e}: {why}",
            rung.method,
            rung.preconditioner,
            counted(rung.iterations, "iteration"),
            rung.seconds,
            rung.relative_residual
        ))
    };
    let mut all: Vec<String> = r.rungs.iter().filter_map(words).collect();
    if all.len() > MOST_LEFT {
        let others = all.len() - (MOST_LEFT - 1);
        all.truncate(MOST_LEFT - 1);
        all.push(format!("and {others} others (--json has all)"));
    }
    all
}

/// Whether a step is that from one method to the next.
fn is_of_rung(r: &Report, step: &Recovery) -> bool {
    r.rungs.iter().any(|rung| {
        let why = rung.left.as_deref().unwrap_or_default();
        step.failed == format!("{} with {}: {why}", rung.method, rung.preconditioner)
    })
}

/// The command that repeats the last method without the search; none where nothing was left to be chosen.
fn replay(done: &Done, r: &Report) -> Option<String> {
    let asked = r.plan.reasons.first().map(|reason| reason.code);
    let last = r.rungs.last()?;
    if matches!(asked, Some(ReasonCode::AsAsked | ReasonCode::AsPlanned)) || r.outcome != Outcome::Converged {
        return None;
    }
    let mut command = format!("krylith solve {} --solver {}", done.options.input.matrix, last.method);
    if let Method::Gmres(restart) | Method::Fgmres(restart) = last.method {
        write!(command, " --restart {restart}").expect("writing to a string");
    }
    let name = last.preconditioner.to_string();
    let quote = if name.contains('(') { "'" } else { "" };
    write!(command, " --precond {quote}{name}{quote}").expect("writing to a string");
    if last.precision == Precision::Mixed {
        command += " --precision mixed";
    }
    if last.ordering != Ordering::Natural {
        write!(command, " --reorder {}", last.ordering).expect("writing to a string");
    }
    // Another factor than the planned one is made from A.
    let factor = |rung: &Rung| (rung.preconditioner.clone(), rung.precision, rung.ordering);
    if let Some(source) = done.options.precond_matrix.as_ref().filter(|_| factor(&r.rungs[0]) == factor(last))
    {
        write!(command, " --precond-matrix {source}").expect("writing to a string");
    }
    if done.options.shift > 0.0 {
        write!(command, " --shift {}", done.options.shift).expect("writing to a string");
    }
    let sparsify = r.replay().sparsify;
    if sparsify != Sparsify::Off {
        write!(command, " --sparsify '{sparsify}'").expect("writing to a string");
    }
    if let Some(device) = &r.device {
        write!(command, " --device {}", device.device).expect("writing to a string");
        command += if done.options.reproducible { " --reproducible" } else { "" };
    }
    Some(command)
}

/// How it ended: `converged in 34 iterations, relative residual 9.1e-9 (recomputed)`.
fn headline(r: &Report) -> String {
    let iterations = counted(r.iterations, "iteration");
    let ended = match r.outcome {
        Outcome::Converged => format!("converged in {iterations}"),
        Outcome::Interrupted => format!("interrupted after {iterations}"),
        Outcome::LeastSquares => format!("least squares after {iterations}"),
        other => format!("not converged ({}) after {iterations}", other.name().replace('_', " ")),
    };
    format!("{ended}, relative residual {:.1e} (recomputed)", r.relative_residual)
}

/// What an outcome means, where the first line leaves a question.
fn meaning(r: &Report) -> Option<String> {
    let null = r.certificate.null_vector.as_ref();
    let least = null.map_or(String::new(), |null| format!(" below {:.1e}", null.least_residual));
    let words = match r.outcome {
        Outcome::Converged => return None,
        Outcome::MaxIterations => "the limit of --max-iterations is reached",
        Outcome::AttainableAccuracy if null.is_some() => {
            "A is nearly singular: an answer within the tolerance would be larger than 64 bits have digits for"
        }
        Outcome::AttainableAccuracy => "x is as good as the arithmetic allows; the tolerance asks for more",
        Outcome::LeastSquares => {
            let projected = r.projected_residual.unwrap_or(f64::NAN);
            return Some(format!(
                "b has a part outside of the range of A: no x has a residual{least}, and x is within {projected:.1e} of it"
            ));
        }
        Outcome::Singular => {
            return Some(format!("A is singular and b is not in its range: no x has a residual{least}"));
        }
        Outcome::Diverged => "the residual grew without bound",
        Outcome::Breakdown => "the method cannot go on",
        Outcome::IndefiniteOperator => "A is not positive definite, as the method needs it",
        Outcome::IndefinitePreconditioner => {
            "the preconditioner is not positive definite, as the method needs it"
        }
        Outcome::NotFinite => "an infinite number or NaN came up in the first iteration",
        Outcome::Interrupted => "x is the best answer so far",
        _ => return None,
    };
    Some(words.into())
}

/// Why the method was chosen, without its name where that stands in the line above. Where others followed, that line has the last of them.
fn because(r: &Report) -> String {
    let name = |method: Method, preconditioner: &PrecondSpec| format!("{method} with {preconditioner}");
    let first = name(r.plan.method, &r.plan.preconditioner);
    let reasons = r.choice.strip_prefix(&format!("{first}: ")).unwrap_or(&r.choice);
    // What could not be set up has no rung.
    let names = r.rungs.iter().map(|rung| name(rung.method, &rung.preconditioner));
    let others: Vec<String> =
        names.enumerate().filter(|(k, name)| *k > 0 || *name != first).map(|(_, name)| name).collect();
    if others.is_empty() {
        return reasons.into();
    }
    let link = if reasons == r.choice { "" } else { "because " };
    let mut text = format!("first choice: {first} {link}{reasons}");
    let shown = others.len().min(MOST_LEFT - 1);
    for other in &others[..shown] {
        text += &format!("; then {other}");
    }
    match &others[shown..] {
        [] => {}
        [last] => text += &format!("; then {last}"),
        [between @ .., last] => text += &format!("; then {} more, and {last}", between.len()),
    }
    text
}

/// How the work was arranged.
fn details(r: &Report, rtol: f64, line: &mut impl FnMut(&str, String)) {
    let backward = r.backward_error.map_or(String::new(), |e| format!(", backward error {e:.2e}"));
    line("residual", format!("{:.3e} relative, {rtol:e} asked for{backward}", r.relative_residual));
    if !r.ordering.is_empty() {
        line("ordering", r.ordering.clone());
    }
    line("layout", r.layout.clone());
    if let Some([down, up]) = &r.schedule {
        line("sweeps", format!("down {down}"));
        line("", format!("up {up}"));
    }
    if let Some(share) = short_of_cores(&r.team) {
        line("cores", share);
    }
    if r.preconditioner_bytes > 0 {
        let (nnz, size) = (count(r.preconditioner_nnz), bytes(r.preconditioner_bytes as u64));
        line("preconditioner", format!("{nnz} entries, {size}"));
    }
}

fn seconds(done: &Done, r: &Report) -> String {
    let (read, total) = (done.read, done.total);
    let (analyze, factor, solve) = (r.seconds.analyze, r.seconds.factor, r.seconds.solve);
    let copy = match r.device {
        Some(_) => format!("copy {:.3}, ", r.seconds.copy),
        None => String::new(),
    };
    format!(
        "read {read:.3}, analyze {analyze:.3}, factor {factor:.3}, {copy}solve {solve:.3}, total {total:.3}"
    )
}

/// What failed before a recovery step, with its row and its value in four digits.
fn failed(step: &Recovery) -> String {
    let words = match step.value {
        None => step.failed.clone(),
        Some(value) => step.failed.replacen(&format!("pivot {value:e} "), &format!("pivot {value:.3e} "), 1),
    };
    match step.row {
        None => words,
        Some(_) if words.contains("counted from 0") => words,
        Some(row) => format!("{words}, in row {row} (counted from 0)"),
    }
}

/// How many threads there are, and why not as many as were requested.
fn threads(team: &TeamStatistics) -> String {
    let started = counted(team.started, "thread");
    match team.limit {
        Some(limit) => format!("{started} of {} requested ({limit})", count(team.requested)),
        None => started,
    }
}

/// What part of the operations had fewer threads than the team has, where that is worth a line.
fn short_of_cores(team: &TeamStatistics) -> Option<String> {
    let share = team.operations_with_fewer as f64 / team.operations.max(1) as f64;
    (share >= 0.01).then(|| {
        let least = team.least_members;
        format!(
            "{:.0} % of the operations ran on fewer threads, at least {least}, beside other programs",
            100.0 * share
        )
    })
}
