//! `krylith solve --explain` and `--plan`: what will be done and why, to read, to keep and to follow.

use crate::Failure;
use crate::args::Solve;
use crate::input::Loaded;
use crate::report::{bytes, count, counted, entries, print, write_json};
use krylith::plan::{Facts, Failure as Fault, Fallback, Machine, Machines, Remedy, SolvePlan};
use krylith::sparsify::Sparsify;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// The plan in a file.
pub fn read(path: &Path) -> Result<SolvePlan, Failure> {
    read_json(
        path,
        |text| serde_json::from_str(text),
        "is not a plan",
        "krylith solve A --explain --json FILE",
    )
}

/// The machine of this name, or its figures in a file, which may have those of several places: `device` is the name of the one that solves, none for threads.
/// None where the file has no figures of that place.
pub fn read_machine(path: &Path, device: Option<&str>) -> Result<Option<Machine>, Failure> {
    if let Some(machine) = path.to_str().and_then(Machine::preset) {
        return Ok(Some(machine));
    }
    let wrong = "does not describe a machine";
    let machine = read_json(path, profile, wrong, MEASURES)?.machine_for(device);
    match machine.as_ref().map_or(Ok(()), Machine::validate) {
        Ok(()) => Ok(machine),
        Err(error) => Err(unreadable(path, wrong, &error, MEASURES)),
    }
}

/// What writes a file for `--machine`.
pub const MEASURES: &str = "krylith devices --bench --machine FILE";

/// What is wrong is said about one machine.
fn profile(text: &str) -> serde_json::Result<Machines> {
    serde_json::from_str(text).or_else(|_| Ok(Machines::One(Box::new(serde_json::from_str(text)?))))
}

/// What is in a JSON file, or what is wrong with it and which command writes such a file.
fn read_json<T>(
    path: &Path,
    parse: fn(&str) -> serde_json::Result<T>,
    wrong: &str,
    writer: &str,
) -> Result<T, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    parse(&text).map_err(|error| unreadable(path, wrong, &error, writer))
}

fn unreadable(path: &Path, wrong: &str, error: &dyn Error, writer: &str) -> Failure {
    format!("{} {wrong} ({error}); `{writer}` writes one", path.display()).into()
}

/// Prints the plan for a matrix, whose preconditioner may be made from another one, or writes it as JSON.
pub fn explain(
    options: &Solve,
    plan: &SolvePlan,
    loaded: &Loaded,
    source: Option<&Loaded>,
) -> Result<(), Failure> {
    if let Some(path) = &options.json {
        write_json(path, &serde_json::to_value(plan)?)?;
    }
    if options.json.as_deref() == Some(Path::new("-")) { Ok(()) } else { print(&text(plan, loaded, source)) }
}

fn text(plan: &SolvePlan, loaded: &Loaded, source: Option<&Loaded>) -> String {
    let mut text = format!("{}\n", loaded.name);
    let fallbacks = fallbacks(&plan.fallbacks);
    let mut line = |label: &str, value: String| {
        writeln!(text, "  {label:18}{value}").expect("writing to a string");
    };
    let a = &loaded.matrix;
    line("matrix", format!("{}, {}", counted(a.nrows(), "row"), entries(a)));
    if let Some(source) = source {
        line("precond matrix", format!("{}, {}", source.name, entries(&source.matrix)));
    }
    line("plan", format!("{} with {}", plan.method, plan.preconditioner));
    for (k, reason) in plan.reasons.iter().enumerate() {
        line(if k == 0 { "because" } else { "" }, reason.text.clone());
    }
    let label = if plan.preconditioner_facts.is_some() { "facts of A" } else { "facts" };
    for (label, facts) in [(label, &plan.facts), ("of the other", &plan.preconditioner_facts)] {
        for (k, words) in facts.iter().flat_map(Facts::words).enumerate() {
            line(if k == 0 { label } else { "" }, words);
        }
    }
    for (k, proposal) in plan.proposals.iter().enumerate() {
        line(if k == 0 { "proposals" } else { "" }, proposal.to_string());
    }
    if let Some(sparsification) = &plan.sparsification {
        line("sparsification", sparsification.to_string());
    }
    for considered in &plan.considered {
        let label = if considered.taken { "layout" } else { "not taken" };
        line(label, format!("{}: {}", considered.layout, considered.reason));
    }
    match plan.predicted_entries {
        Some(entries) => line("preconditioner", format!("{} entries predicted", count(entries))),
        None => line("preconditioner", "its entries are known only after the analysis".into()),
    }
    if let Some(predicted) = plan.predicted_bytes {
        line("memory", format!("{} besides A, b and x predicted", bytes(predicted)));
    }
    for (k, fallback) in fallbacks.into_iter().enumerate() {
        line(if k == 0 { "fallbacks" } else { "" }, fallback);
    }
    let decides = matches!(plan.sparsify, Sparsify::Auto | Sparsify::Chains(_));
    let found = plan.sparsification.as_ref().filter(|found| decides && !found.candidates.is_empty());
    text += match found {
        None => "Nothing was factored.",
        Some(_) => "One factor was made, to see which entries are small.",
    };
    text += " Leave out --explain to solve; --json FILE keeps the plan for --plan FILE.\n";
    text
}

/// A fallback after so many kinds of failure is one after any.
const MANY: usize = 6;

/// What follows which failures, one line each: `bad pivot: shift the diagonal, by as little as works`.
fn fallbacks(all: &[Fallback]) -> Vec<String> {
    let mut before: Vec<Fault> = Vec::new();
    let mut lines = Vec::new();
    for fallback in all {
        let failures = fallback.after.iter().map(|failure| {
            let again = if before.contains(failure) { " again" } else { "" };
            format!("{}{again}", failure_in_short(*failure))
        });
        let failures = match fallback.after.len() >= MANY {
            true => "any failure, slow progress too".into(),
            false => failures.collect::<Vec<_>>().join(", "),
        };
        lines.push(format!("{failures}: {}", remedy_in_short(&fallback.then)));
        before.extend(&fallback.after);
    }
    lines
}

fn failure_in_short(failure: Fault) -> String {
    match failure {
        Fault::BadPivot => "bad pivot".into(),
        Fault::MissingDiagonal => "no diagonal entry".into(),
        Fault::MemoryLimit => "factor too large".into(),
        Fault::IndefiniteOperator => "indefinite A".into(),
        Fault::IndefinitePreconditioner => "indefinite preconditioner".into(),
        Fault::Breakdown => "breakdown".into(),
        Fault::NotFinite => "infinity or NaN".into(),
        other => other.to_string(),
    }
}

fn remedy_in_short(remedy: &Remedy) -> String {
    match remedy {
        Remedy::ShiftDiagonal => "shift the diagonal, by as little as works".into(),
        Remedy::Diagonal => "take the diagonal alone".into(),
        Remedy::LessFill => "take less fill".into(),
        Remedy::DoublePrecision => "the same in f64".into(),
        Remedy::Method { method, preconditioner: Some(preconditioner), .. } if preconditioner.is_none() => {
            format!("{method} with no preconditioner")
        }
        other => other.to_string(),
    }
}
