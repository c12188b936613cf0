//! What the numbers of Algorithm 2 are worth: other ratios, an exact condition number, other thresholds (the paper's section 3.2.3), and conditions
//! where fewer entries took fewer iterations (its section 5.4).
//!
//! The algorithm with other thresholds takes one of the ratios that were run, so nothing is solved again. With the exact condition number the indicator is
//! κ₂(Â) / ‖Â‖∞ · ‖S‖∞, that is the one with the estimate times κ₂(Â) / estimate.

use super::report::{Quantity, mean, share, speedup};
use super::study::{COUNTED, Case, RATIOS, Record, Trial};
use crate::folder::{digits, table};
use krylith::sparsify::{Paper, Selection};

/// Time is that of this model.
const MACHINE: &str = "device";
const TAUS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, f64::INFINITY];
const OMEGAS: [f64; 5] = [0.0, 5.0, 10.0, 20.0, 50.0];

pub fn markdown(record: &Record) -> String {
    ratios(record) + &thresholds(record) + &exact(record) + &conditions(record)
}

/// By ratio: what it does to wavefronts and iterations.
fn ratios(record: &Record) -> String {
    let mut all: Vec<&str> = RATIOS.into_iter().chain(COUNTED).collect();
    all.sort_by(|a, b| a.parse::<f64>().unwrap_or(0.0).total_cmp(&b.parse().unwrap_or(0.0)));
    let converging: Vec<&Case> = record.cases.iter().filter(|case| case.off().has_converged).collect();
    let rows = all.into_iter().map(|ratio| {
        let fewer = |case: &&Case| {
            let left = case.trial(ratio, MACHINE).map_or(case.wavefronts, |trial| trial.wavefronts);
            100.0 * (case.wavefronts as f64 - left as f64) / case.wavefronts as f64
        };
        let slow = |case: &&&Case| {
            case.trial(ratio, MACHINE).is_none_or(|trial| {
                !trial.has_converged || trial.iterations >= 2 * case.off().iterations.max(1)
            })
        };
        let reductions: Vec<f64> = record.cases.iter().map(|case| fewer(&case)).collect();
        let of = |quantity: Quantity, cases: &[&Case]| {
            let speedups = cases.iter().filter_map(|case| speedup(case, ratio, MACHINE, quantity));
            digits(mean(&speedups.collect::<Vec<_>>()))
        };
        let every: Vec<&Case> = record.cases.iter().collect();
        vec![
            format!("{ratio} %"),
            share(reductions.iter().filter(|v| **v < 5.0).count(), reductions.len()),
            share(reductions.iter().filter(|v| **v <= 0.0).count(), reductions.len()),
            share(converging.iter().filter(slow).count(), converging.len()),
            of(Quantity::Iteration, &every),
            of(Quantity::Total, &converging),
        ]
    });
    let columns = [
        "ratio",
        "less than 5 % of the wavefronts saved",
        "none saved",
        "no convergence, or twice the iterations",
        "per iteration",
        "end to end",
    ];
    format!(
        "\n## Other ratios\n\nShares of all matrices, and of those that converge without sparsification. Speedups on the device (modelled), per iteration of all, and end to end of those that converge without; a solve that ends without an answer is followed by one without sparsification.\n\n{}",
        table(&columns, rows)
    )
}

/// The trial that Algorithm 2 takes with these thresholds; `factor` is what the indicator is multiplied by.
fn taken(case: &Case, paper: Paper, factor: impl Fn(&Trial) -> Option<f64>) -> Option<&Trial> {
    let mut candidates = Vec::new();
    for ratio in RATIOS.into_iter().rev() {
        let trial = case.trial(ratio, MACHINE)?;
        let mut candidate = trial.tried?;
        candidate.indicator *= factor(trial)?;
        candidates.push(candidate);
    }
    let Selection { taken, .. } = paper.select(case.wavefronts, candidates);
    case.trial(RATIOS.into_iter().rev().nth(taken)?, MACHINE)
}

/// Geometric means per iteration and end to end, and the share that converges, of what is taken.
fn figures(cases: &[(&Case, &Trial)]) -> [String; 3] {
    let of = |quantity: Quantity| {
        let speedups =
            cases.iter().filter(|(case, _)| quantity == Quantity::Iteration || case.off().has_converged);
        let speedups = speedups.filter_map(|(case, trial)| speedup(case, &trial.setting, MACHINE, quantity));
        digits(mean(&speedups.collect::<Vec<_>>()))
    };
    let converging = cases.iter().filter(|(_, trial)| trial.has_converged).count();
    [of(Quantity::Iteration), of(Quantity::Total), share(converging, cases.len())]
}

fn thresholds(record: &Record) -> String {
    let rows = TAUS.iter().map(|&tau| {
        let cells = OMEGAS.iter().map(|&omega| {
            let taken = |case| Some((case, taken(case, Paper { tau, omega }, |_| Some(1.0))?));
            figures(&record.cases.iter().filter_map(taken).collect::<Vec<_>>()).join(", ")
        });
        std::iter::once(format!("τ = {tau}")).chain(cells).collect()
    });
    let names: Vec<String> =
        std::iter::once(String::new()).chain(OMEGAS.iter().map(|omega| format!("ω = {omega} %"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!(
        "\n## Other thresholds\n\nAlgorithm 2 on the device (modelled): speedup per iteration, end to end where CG converges without (a solve that ends without an answer is followed by one without sparsification), and the share that converges.\n\n{}",
        table(&names, rows)
    )
}

fn exact(record: &Record) -> String {
    let known: Vec<(&Case, &Trial, &Trial)> = record
        .cases
        .iter()
        .filter_map(|case| {
            let exact = |trial: &Trial| Some(trial.condition? / trial.estimate?);
            let by_estimate = taken(case, Paper::default(), |_| Some(1.0))?;
            Some((case, by_estimate, taken(case, Paper::default(), exact)?))
        })
        .collect();
    if known.is_empty() {
        return String::new();
    }
    let same = known.iter().filter(|(_, one, other)| one.setting == other.setting).count();
    let line = |name: &str, cases: Vec<(&Case, &Trial)>| {
        std::iter::once(name.to_owned()).chain(figures(&cases)).collect::<Vec<_>>()
    };
    let rows = [
        line("‖Â‖∞ / min aᵢᵢ", known.iter().map(|&(case, one, _)| (case, one)).collect()),
        line("κ₂(Â)", known.iter().map(|&(case, _, other)| (case, other)).collect()),
    ];
    let columns = ["condition by", "per iteration", "end to end", "converge"];
    format!(
        "\n## The exact condition number\n\n{} matrices whose κ₂ was computed; the same ratio is taken on {}. The device (modelled).\n\n{}",
        known.len(),
        share(same, known.len()),
        table(&columns, rows)
    )
}

/// Where fewer entries took fewer iterations, and stand-ins, of the size and family alone, for two of the three matrices that the paper reports this of.
fn conditions(record: &Record) -> String {
    let trials = |case: &Case| -> Vec<Trial> {
        ["off"]
            .into_iter()
            .chain(RATIOS)
            .filter_map(|setting| case.trial(setting, MACHINE).cloned())
            .collect()
    };
    let iterations = |trial: &Trial| if trial.has_converged { trial.iterations } else { usize::MAX };
    let shown = |case: &&Case| {
        let stem = case.name.rsplit('/').next().unwrap_or_default();
        let asked = ["ecology", "thermal"].iter().any(|name| stem.starts_with(name));
        let trials = trials(case);
        asked || trials[1..].iter().any(|trial| iterations(trial) < iterations(&trials[0]))
    };
    let rows = record.cases.iter().filter(shown).map(|case| {
        let cell = |trial: &Trial| {
            let number = |value: Option<f64>, digits: usize| match value {
                Some(value) => format!("{value:.digits$e}"),
                None => "–".into(),
            };
            let mark = if trial.has_converged { "" } else { "!" };
            let conditions = [trial.estimate, trial.condition].map(|value| number(value, 2)).join("; ");
            format!("{}{mark}; {conditions}; {}", trial.iterations, number(trial.residual, 0))
        };
        std::iter::once(case.name.clone()).chain(trials(case).iter().map(cell)).collect()
    });
    let columns = ["matrix", "off", "1 %", "5 %", "10 %"];
    format!(
        "\n## Conditions\n\nMatrices on which a ratio takes fewer iterations than none, and `ecology` and `thermal`: iterations; ‖Â‖∞ / min aᵢᵢ; κ₂(Â); ‖b − A x‖ / ‖b‖.\n\n{}",
        table(&columns, rows)
    )
}
