//! Counts of outcomes, checks and failures.

use super::axes::{Kind, Of, kind_of};
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
    kept: Vec<Value>,
    /// Failures of a check that are printed and kept.
    most: usize,
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
            kept: Vec::new(),
            most,
        }
    }

    /// Counts a system; prints what failed.
    pub fn record(
        &mut self,
        system: &System,
        runs: &[(usize, Vec<Made>)],
        findings: Findings,
        command: &str,
    ) {
        self.systems += 1;
        let kind = kind_of(system.choice.get(Of::Family));
        let column = KINDS.iter().position(|(known, _)| *known == kind).unwrap_or(0);
        for made in runs.iter().flat_map(|(_, made)| made) {
            let name = match (&made.ended, made.what) {
                (Ended::Done, _) => continue,
                (Ended::Solved(report, _), _) => report.outcome.name().to_owned(),
                (Ended::Failed(error), What::Solve { .. }) => format!("error {}", error_name(error)),
                (Ended::Failed(error), What::Prepare) => format!("error {} of prepare", error_name(error)),
                (Ended::Failed(error), What::Refactor) => format!("error {} of refactor", error_name(error)),
                (Ended::Panicked(_), _) => "panic".into(),
            };
            self.solves += u64::from(matches!(made.what, What::Solve { .. }));
            self.outcomes.entry(name).or_default()[column] += 1;
        }
        self.worse_within_rounding += findings.worse_within_rounding;
        for (total, made) in self.made.iter_mut().zip(findings.made) {
            *total += made;
        }
        for (check, words) in findings.failed {
            self.failed[check as usize] += 1;
            if self.failed[check as usize] <= self.most as u64 {
                println!("FAILED {}: {words}\n    {command}", check.name());
                self.kept.push(json!({
                    "check": check.name(),
                    "what": words,
                    "command": command,
                    "choice": system.choice.describe(),
                }));
            }
        }
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
        println!("\n| check | made | failed |\n|---|---|---|");
        for check in Check::ALL {
            println!(
                "| {} | {} | {} |",
                check.name(),
                self.made[check as usize],
                self.failed[check as usize]
            );
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
            json!({ "check": check.name(), "made": made, "failed": failed })
        });
        json!({
            "cases": self.cases,
            "systems": self.systems,
            "solves": self.solves,
            "outcomes": outcomes.collect::<serde_json::Map<_, _>>(),
            "checks": checks,
            "worse_within_rounding": self.worse_within_rounding,
            "failures": self.kept,
        })
    }
}
