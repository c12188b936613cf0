//! Tables in the form of the paper's table 1, over the same matrices in every column.

use super::study::{Case, RATIOS, Record, SETTINGS, Timing, Trial};
use crate::folder::{digits, rounds, table};

/// What is compared.
#[derive(Clone, Copy, PartialEq)]
pub enum Quantity {
    Iteration,
    Total,
}

impl Quantity {
    fn of(self, timing: &Timing) -> f64 {
        match self {
            Quantity::Iteration => timing.iteration,
            Quantity::Total => timing.total,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Quantity::Iteration => "per iteration",
            Quantity::Total => "end to end",
        }
    }
}

/// Timings of a trial on a machine.
fn timing<'a>(trial: &'a Trial, machine: &str) -> Option<&'a Timing> {
    trial.measured.iter().chain(&trial.modelled).find(|timing| timing.machine == machine)
}

/// Speedups of every setting over `off`; none where the case was not timed on this machine, or does not converge without sparsification.
pub fn speedups(case: &Case, machine: &str, quantity: Quantity) -> Option<Vec<f64>> {
    let off = case.trials.first().filter(|off| off.has_converged)?;
    let of = |trial: &Trial| Some(quantity.of(timing(off, machine)?) / quantity.of(timing(trial, machine)?));
    case.trials.iter().map(of).collect()
}

/// Machines with a timing, in their order.
pub fn machines(record: &Record) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let trials = record.cases.iter().flat_map(|case| &case.trials);
    let timings = trials.flat_map(|trial| trial.measured.iter().chain(&trial.modelled));
    for timing in timings {
        if !names.contains(&timing.machine) {
            names.push(timing.machine.clone());
        }
    }
    names.sort_by_key(|name| (!name.contains("thread"), name.clone()));
    names
}

pub fn markdown(record: &Record) -> String {
    let head = record.head.markdown("Wavefront-aware sparsification");
    let mut text = format!(
        "{head}\nCG with {}, random b, 1e-8; speedups over no sparsification, {}. `many-core` and `device` are models: bytes at the memory's rate and a wait \
         per wavefront, not measured. Oracles choose the best of 1, 5 and 10 percent, the second one also off.\n",
        record.preconditioner,
        rounds(record.head.rounds)
    );
    for machine in machines(record) {
        for quantity in [Quantity::Iteration, Quantity::Total] {
            text += &of_machine(record, &machine, quantity);
        }
    }
    let refused = record.refused.iter().map(|(name, why)| format!("\nNot studied: {name}, {why}.\n"));
    text + &convergence(record) + &of_cases(record) + &refused.collect::<String>()
}

/// The geometric mean.
pub fn mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

fn of_machine(record: &Record, machine: &str, quantity: Quantity) -> String {
    let all: Vec<Vec<f64>> =
        record.cases.iter().filter_map(|case| speedups(case, machine, quantity)).collect();
    if all.is_empty() {
        return String::new();
    }
    let place = |name: &str| SETTINGS.iter().position(|setting| *setting == name);
    let ratios: Vec<usize> = RATIOS.iter().filter_map(|ratio| place(ratio)).collect();
    let oracle = |row: &Vec<f64>| ratios.iter().map(|&k| row[k]).fold(0.0, f64::max);
    let mut columns: Vec<(String, Vec<f64>)> = SETTINGS
        .iter()
        .enumerate()
        .skip(1)
        .map(|(k, setting)| {
            let percent = if RATIOS.contains(setting) { " %" } else { "" };
            (format!("{setting}{percent}"), all.iter().map(|row| row[k]).collect())
        })
        .collect();
    columns.push(("oracle".into(), all.iter().map(oracle).collect()));
    columns.push(("oracle or off".into(), all.iter().map(|row| oracle(row).max(1.0)).collect()));
    let names: Vec<&str> = std::iter::once("").chain(columns.iter().map(|(name, _)| name.as_str())).collect();
    let line = |name: &str, of: &dyn Fn(&[f64]) -> String| {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|(_, values)| of(values))).collect()
    };
    let share = |values: &[f64]| {
        let faster = values.iter().filter(|&&v| v > 1.0).count();
        format!("{:.1} %", 100.0 * faster as f64 / values.len() as f64)
    };
    let worst = |values: &[f64]| digits(Some(values.iter().copied().fold(f64::INFINITY, f64::min)));
    let rows = [
        line("geometric mean", &|values| digits(Some(mean(values)))),
        line("accelerated", &share),
        line("worst", &worst),
    ];
    let correlation = match quantity {
        Quantity::Iteration => {
            let points = points(record, machine);
            format!(
                " Spearman's coefficient of wavefronts saved and speedups of the three ratios: {:.2}.",
                spearman(&points)
            )
        }
        Quantity::Total => String::new(),
    };
    let model = if machine.contains("thread") { "" } else { " (modelled)" };
    let (what, count) = (quantity.words(), all.len());
    format!("\n## {machine}{model}, {what}\n\n{count} matrices.{correlation}\n\n{}", table(&names, rows))
}

/// The percentage of wavefronts saved, and the speedup of an iteration, of each ratio.
pub fn points(record: &Record, machine: &str) -> Vec<(f64, f64)> {
    let of_case = |case: &Case| -> Option<Vec<(f64, f64)>> {
        let speedups = speedups(case, machine, Quantity::Iteration)?;
        let before = case.trials.first()?.wavefronts as f64;
        let pairs = case.trials.iter().zip(speedups);
        let ratios = pairs.filter(|(trial, _)| RATIOS.contains(&trial.setting.as_str()));
        Some(ratios.map(|(trial, v)| (100.0 * (before - trial.wavefronts as f64) / before, v)).collect())
    };
    record.cases.iter().filter_map(of_case).flatten().collect()
}

/// Spearman's rank correlation; equal values have the mean of their ranks.
fn spearman(points: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
        let mut ranks = vec![0.0; values.len()];
        let mut first = 0;
        while first < order.len() {
            let same = order[first..].iter().take_while(|&&k| values[k] == values[order[first]]).count();
            for &k in &order[first..first + same] {
                ranks[k] = first as f64 + (same - 1) as f64 / 2.0;
            }
            first += same;
        }
        ranks
    };
    let x = ranks(points.iter().map(|p| p.0).collect());
    let y = ranks(points.iter().map(|p| p.1).collect());
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt()
}

/// Convergence that is lost, and iterations that stay the same.
fn convergence(record: &Record) -> String {
    let converging: Vec<&Case> =
        record.cases.iter().filter(|case| case.trials.first().is_some_and(|off| off.has_converged)).collect();
    let rows = (1..SETTINGS.len()).map(|k| {
        let pairs = converging.iter().map(|case| (&case.trials[0], &case.trials[k]));
        let count = |holds: &dyn Fn(&Trial, &Trial) -> bool| {
            pairs.clone().filter(|(off, trial)| holds(off, trial)).count().to_string()
        };
        vec![
            SETTINGS[k].to_owned(),
            count(&|_, trial| !trial.has_converged),
            count(&|off, trial| trial.has_converged && trial.iterations < off.iterations),
            count(&|off, trial| trial.has_converged && trial.iterations == off.iterations),
            count(&|off, trial| {
                trial.has_converged && trial.iterations as f64 > 1.25 * off.iterations as f64 + 2.0
            }),
        ]
    });
    let columns =
        ["setting", "do not converge", "fewer iterations", "the same", "more than 1.25 times and 2"];
    let (all, some) = (record.cases.len(), converging.len());
    format!(
        "\n## Convergence\n\nOf {all} matrices {some} converge without sparsification.\n\n{}",
        table(&columns, rows)
    )
}

fn of_cases(record: &Record) -> String {
    let rows = record.cases.iter().map(|case| {
        let cell = |trial: &Trial| {
            let mark = if trial.has_converged { "" } else { "!" };
            format!("{} / {}{mark}", trial.wavefronts, trial.iterations)
        };
        let numbers = [case.rows.to_string(), case.entries.to_string()];
        std::iter::once(case.name.clone()).chain(numbers).chain(case.trials.iter().map(cell)).collect()
    });
    let columns: Vec<&str> = ["matrix", "rows", "entries"].into_iter().chain(SETTINGS).collect();
    format!(
        "\n## Matrices\n\nWavefronts / iterations; `!` where the solve ends without an answer.\n\n{}",
        table(&columns, rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate() {
        assert!((spearman(&[(1.0, 10.0), (2.0, 20.0), (3.0, 40.0)]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]) + 1.0).abs() < 1e-12);
        // x has ranks 0.5, 0.5 and 2, y 0, 1 and 2: 1.5 / √(1.5 · 2).
        let tied = spearman(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]);
        assert!((tied - 1.5 / 3f64.sqrt()).abs() < 1e-12);
        assert!((mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    }
}
