//! Counts of outcomes, checks and failures.

use super::axes::{AXES, Kind, Of, kind_of};
use super::check::{Check, Findings, error_name};
use super::run::{Ended, Made, What};
use super::system::System;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kinds of matrices, a column of the table each.
const KINDS: [(Kind, &str); 4] = [
    (Kind::Hostile, "hostile"),
    (Kind::Singular, "singular"),
    (Kind::Catalogue, "catalogue"),
    (Kind::Grid, "grids"),
];

/// Characters of a failure that are printed; the JSON has all.
const WIDEST: usize = 400;

/// Values that are listed with a check.
const WORST: usize = 6;

/// Systems with a value, below which a rate says little.
const ENOUGH: u64 = 20;

/// What a campaign has seen.
pub struct Tally {
    pub cases: u64,
    pub systems: u64,
    pub solves: u64,
    /// By outcome or error, for each kind of matrix.
    outcomes: BTreeMap<String, [u64; KINDS.len()]>,
    made: [u64; Check::ALL.len()],
    failed: [u64; Check::ALL.len()],
    worse_within_rounding: u64,
    /// Seconds of calls and of judging them, for each kind of matrix.
    seconds: [f64; KINDS.len()],
    /// For each value of each axis: systems, and those in which a check failed.
    by_value: Vec<Vec<(u64, [u64; Check::ALL.len()])>>,
    kept: Vec<Value>,
    /// Failures of each check that were printed, and the number of the last system with one.
    shown: [usize; Check::ALL.len()],
    last: [u64; Check::ALL.len()],
    /// Failures of a check that are printed and kept.
    most: usize,
}

/// A system, what was called and how to run it again.
pub struct Attacked<'a> {
    pub system: &'a System,
    pub runs: &'a [(usize, Vec<Made>)],
    pub command: &'a str,
    pub seconds: f64,
}

/// The outcome or error of a call; none if it did what it should and has no more to say.
fn outcome(made: &Made) -> Option<String> {
    let name = match &made.ended {
        Ended::Done => return None,
        Ended::Solved(report, _) => return Some(report.outcome.name().into()),
        Ended::Panicked(_) => return Some("panic".into()),
        Ended::Failed(error) => error_name(error),
    };
    Some(match made.what {
        What::Solve { .. } => format!("error {name}"),
        What::Prepare => format!("error {name} of prepare"),
        What::Refactor => format!("error {name} of refactor"),
    })
}

impl Tally {
    pub fn new(most: usize) -> Self {
        Tally {
            cases: 0,
            systems: 0,
            solves: 0,
            outcomes: BTreeMap::new(),
            made: [0; Check::ALL.len()],
            failed: [0; Check::ALL.len()],
            worse_within_rounding: 0,
            seconds: [0.0; KINDS.len()],
            by_value: AXES.iter().map(|axis| vec![Default::default(); axis.values.len()]).collect(),
            kept: Vec::new(),
            shown: [0; Check::ALL.len()],
            last: [0; Check::ALL.len()],
            most,
        }
    }

    /// Counts a system that took so many seconds; prints what failed.
    pub fn record(&mut self, attacked: &Attacked<'_>, findings: Findings) {
        let Attacked { system, runs, command, seconds } = attacked;
        self.systems += 1;
        let kind = kind_of(system.choice.get(Of::Family));
        let column = KINDS.iter().position(|(known, _)| *known == kind).unwrap_or(0);
        self.seconds[column] += seconds;
        for made in runs.iter().flat_map(|(_, made)| made) {
            self.solves += u64::from(matches!(made.what, What::Solve { .. }));
            if let Some(name) = outcome(made) {
                self.outcomes.entry(name).or_default()[column] += 1;
            }
        }
        self.worse_within_rounding += findings.worse_within_rounding;
        for (total, made) in self.made.iter_mut().zip(findings.made) {
            *total += made;
        }
        let mut here = [0; Check::ALL.len()];
        for (check, words) in findings.failed {
            let k = check as usize;
            self.failed[k] += 1;
            here[k] = 1;
            let kept = &mut self.shown[k];
            // One failure of a kind in a case: the others are often the same.
            if self.last[k] != self.systems && *kept < self.most {
                (self.last[k], *kept) = (self.systems, *kept + 1);
                let shown: String = words.chars().take(WIDEST).collect();
                println!("FAILED {}: {shown}\n    {command}", check.name());
                self.kept.push(json!({
                    "check": check.name(),
                    "what": words,
                    "command": command,
                    "choice": system.choice.describe(),
                }));
            }
        }
        for (axis, values) in self.by_value.iter_mut().enumerate() {
            let (systems, failed) = &mut values[system.choice.index(axis)];
            *systems += 1;
            failed.iter_mut().zip(here).for_each(|(total, here)| *total += here);
        }
    }

    /// The values with which a check fails most often, by the part of their systems in which it does.
    fn worst_values(&self, check: Check) -> Vec<(String, f64)> {
        let mut rates = Vec::new();
        for (axis, values) in AXES.iter().zip(&self.by_value) {
            for ((name, _), (systems, failed)) in axis.values.iter().zip(values) {
                if failed[check as usize] > 0 && *systems >= ENOUGH {
                    let rate = failed[check as usize] as f64 / *systems as f64;
                    rates.push((format!("{}={name}", axis.name), rate));
                }
            }
        }
        rates.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        rates.truncate(WORST);
        rates
    }

    /// Failures of all checks.
    pub fn failures(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Where it stands, in one line.
    pub fn line(&self) -> String {
        let Tally { cases, systems, solves, .. } = self;
        format!("{cases} cases, {systems} systems, {solves} solves, {} failures", self.failures())
    }

    pub fn print(&self) {
        let names = KINDS.map(|(_, name)| name).join(" | ");
        println!("\n| outcome | {names} |\n|---|---|---|---|---|");
        for (name, counts) in &self.outcomes {
            println!("| {name} | {} |", counts.map(|count| count.to_string()).join(" | "));
        }
        println!("| seconds | {} |", self.seconds.map(|s| format!("{s:.1}")).join(" | "));
        println!("\n| check | made | failed |\n|---|---|---|");
        for check in Check::ALL {
            println!(
                "| {} | {} | {} |",
                check.name(),
                self.made[check as usize],
                self.failed[check as usize]
            );
        }
        for check in Check::ALL.into_iter().filter(|&check| self.failed[check as usize] > 0) {
            let worst = self.worst_values(check);
            let words: Vec<String> =
                worst.iter().map(|(name, rate)| format!("{name} {:.1} %", 100.0 * rate)).collect();
            println!("\n{} fails most often with {}", check.name(), words.join(", "));
        }
        println!(
            "\nanswers worse than their guess by less than rounding of a residual: {} (not a failure)\n",
            self.worse_within_rounding
        );
    }

    pub fn json(&self) -> Value {
        let outcomes = self.outcomes.iter().map(|(name, counts)| {
            let by_kind: serde_json::Map<String, Value> =
                KINDS.iter().zip(counts).map(|((_, kind), &count)| ((*kind).into(), count.into())).collect();
            (name.clone(), Value::Object(by_kind))
        });
        let checks = Check::ALL.map(|check| {
            let (made, failed) = (self.made[check as usize], self.failed[check as usize]);
            let worst = self.worst_values(check);
            json!({ "check": check.name(), "made": made, "failed": failed, "worst_values": worst })
        });
        json!({
            "cases": self.cases,
            "systems": self.systems,
            "solves": self.solves,
            "outcomes": outcomes.collect::<serde_json::Map<_, _>>(),
            "checks": checks,
            "seconds_by_kind": self.seconds,
            "worse_within_rounding": self.worse_within_rounding,
            "failures": self.kept,
        })
    }
}
