//! Tables in the form of the paper's table 1, over the same matrices in every column, and what is behind them.

use super::study::{COUNTED, Case, RATIOS, Record, TIMED, Timing, Trial};
use crate::folder::{digits, rounds, table};
use std::collections::BTreeMap;

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

    pub fn words(self) -> &'static str {
        match self {
            Quantity::Iteration => "per iteration",
            Quantity::Total => "end to end",
        }
    }
}

/// What is decided, after what is dropped by a ratio.
pub const DECIDED: [&str; 2] = ["paper", "auto"];

/// The time without sparsification over that with a setting; none where one of both was not timed on this machine. A solve that ends without an answer is
/// followed by one without sparsification, if that has one.
pub fn speedup(case: &Case, setting: &str, machine: &str, quantity: Quantity) -> Option<f64> {
    let of = |trial: &Trial| trial.timing(machine).map(|timing| quantity.of(timing));
    let trial = case.trial(setting, machine)?;
    let (off, with) = (of(case.off())?, of(trial)?);
    let is_lost = case.off().has_converged && !trial.has_converged;
    let again = if is_lost && quantity == Quantity::Total { off } else { 0.0 };
    Some(off / (with + again))
}

/// Matrices of a table: all of them per iteration; end to end those that converge, without sparsification or with every setting.
pub fn compared<'a>(record: &'a Record, machine: &str, quantity: Quantity) -> Vec<&'a Case> {
    let timed = |case: &&Case| speedup(case, "auto", machine, quantity).is_some();
    let converges =
        |setting: &str, case: &Case| case.trial(setting, machine).is_some_and(|trial| trial.has_converged);
    let settings = || TIMED.into_iter().chain(["auto"]);
    let suits = |case: &&Case| match (quantity, record.all_converge) {
        (Quantity::Iteration, _) => true,
        (Quantity::Total, false) => case.off().has_converged,
        (Quantity::Total, true) => settings().all(|setting| converges(setting, case)),
    };
    record.cases.iter().filter(timed).filter(suits).collect()
}

/// The best of the ratios.
fn oracle(case: &Case, machine: &str, quantity: Quantity) -> f64 {
    let of = |setting: &str| speedup(case, setting, machine, quantity).unwrap_or(0.0);
    RATIOS.into_iter().map(of).fold(0.0, f64::max)
}

/// Machines with a timing, those that were measured first, and whether they are models.
pub fn machines(record: &Record) -> Vec<(String, bool)> {
    let mut names: Vec<(String, bool)> = Vec::new();
    let trials = record.cases.iter().flat_map(|case| &case.trials);
    for timing in trials.flat_map(|trial| &trial.timings) {
        if !names.iter().any(|(name, _)| *name == timing.machine) {
            names.push((timing.machine.clone(), timing.is_modelled));
        }
    }
    names.sort_by_key(|(name, is_modelled)| (*is_modelled, name.clone()));
    names
}

/// A machine's name, labelled where it is a model.
pub fn label((name, is_modelled): &(String, bool)) -> String {
    format!("{name}{}", if *is_modelled { " (modelled)" } else { "" })
}

pub fn markdown(record: &Record) -> String {
    let head = record.head.markdown("Wavefront-aware sparsification");
    let compared = match record.all_converge {
        true => "End to end: the matrices on which all of the settings in the table converge.",
        false => {
            "End to end: the matrices on which CG converges without sparsification; a solve that ends without an answer is followed by one without."
        }
    };
    let is_timed = machines(record).iter().any(|(_, is_modelled)| !is_modelled);
    let timed = if is_timed { rounds(record.head.rounds) } else { "none of them timed".into() };
    let mut text = format!(
        "{head}\n{}; speedups over no sparsification, {}. `many-core` and `device` are models: bytes at the memory's rate and a wait \
         per wavefront, not measured. Oracles choose the best of 1, 5 and 10 percent, the second one also off. {compared}\n",
        record.protocol, timed
    );
    let machines = machines(record);
    for machine in &machines {
        for quantity in [Quantity::Iteration, Quantity::Total] {
            text += &of_machine(record, machine, quantity);
        }
    }
    text += &convergence(record);
    text += &categories(record);
    text += &of_cases(record);
    let refused = record.refused.iter().map(|(name, why)| format!("* {name}: {why}\n")).collect::<String>();
    text + &if refused.is_empty() { refused } else { format!("\n## Left out\n\n{refused}") }
}

/// The geometric mean; none of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    let sum = values.iter().map(|v| v.ln()).sum::<f64>();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// A share in percent.
pub fn share(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn of_machine(record: &Record, machine: &(String, bool), quantity: Quantity) -> String {
    let (name, cases) = (&machine.0, compared(record, &machine.0, quantity));
    if cases.is_empty() {
        return String::new();
    }
    let of = |setting: &str| -> Vec<f64> {
        cases.iter().filter_map(|case| speedup(case, setting, name, quantity)).collect()
    };
    let best: Vec<f64> = cases.iter().map(|case| oracle(case, name, quantity)).collect();
    let best_or_off: Vec<f64> = best.iter().map(|v| v.max(1.0)).collect();
    let ratios = RATIOS.iter().map(|ratio| (format!("{ratio} %"), of(ratio)));
    let decided = DECIDED.iter().map(|&setting| (setting.to_owned(), of(setting)));
    let oracles = [("oracle".to_owned(), best), ("oracle or off".to_owned(), best_or_off.clone())];
    let columns: Vec<(String, Vec<f64>)> = ratios.chain(decided).chain(oracles).collect();
    let names: Vec<&str> = std::iter::once("").chain(columns.iter().map(|(name, _)| name.as_str())).collect();
    let line = |name: &str, of: &dyn Fn(&[f64]) -> String| {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|(_, values)| of(values))).collect()
    };
    let count = |holds: &dyn Fn(usize, f64) -> bool, values: &[f64]| {
        share(values.iter().enumerate().filter(|&(k, &v)| holds(k, v)).count(), values.len())
    };
    let top = mean(&best_or_off).unwrap_or(1.0);
    let rows = [
        line("geometric mean", &|values| digits(mean(values))),
        line("of that of the oracle or off", &|values| digits(mean(values).map(|v| v / top))),
        line("accelerated", &|values| count(&|_, v| v > 1.0, values)),
        line("at most 5 % behind the oracle or off", &|values| {
            count(&|k, v| v >= 0.95 * best_or_off[k], values)
        }),
        line("worst", &|values| digits(Some(values.iter().copied().fold(f64::INFINITY, f64::min)))),
    ];
    let chosen = cases.iter().filter(|case| takes_the_best(case, name, quantity)).count();
    let mut notes = format!(
        "{} matrices. The paper's algorithm takes the oracle's ratio on {}.",
        cases.len(),
        share(chosen, cases.len())
    );
    if quantity == Quantity::Iteration {
        let coefficient = spearman(&points(record, name));
        notes += &format!(
            " Spearman's coefficient of the factor's wavefronts saved and speedups of the three ratios: {coefficient:.2}."
        );
    }
    if quantity == Quantity::Total {
        let auto = sorted(of("auto").into_iter());
        let (least, most) = (digits(auto.first().copied()), digits(auto.last().copied()));
        let others = digits(mean(&auto[..auto.len().saturating_sub(2)]));
        notes += &format!(
            " Speedups of `auto` are {least} to {most}; without the two largest the mean is {others}."
        );
    }
    format!("\n## {}, {}\n\n{notes}\n\n{}", label(machine), quantity.words(), table(&names, rows))
}

/// Whether the paper's algorithm takes the best of its ratios.
fn takes_the_best(case: &Case, machine: &str, quantity: Quantity) -> bool {
    let paper = case.trial("paper", machine);
    let percent = paper.and_then(|trial| trial.taken.or(trial.tried)).map(|taken| taken.percent);
    let best = oracle(case, machine, quantity);
    let best = RATIOS.into_iter().find(|ratio| speedup(case, ratio, machine, quantity) == Some(best));
    best.and_then(|ratio| ratio.parse().ok()) == percent
}

/// The percentage of the factor's wavefronts saved, and the speedup of an iteration, of each ratio.
pub fn points(record: &Record, machine: &str) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for case in compared(record, machine, Quantity::Iteration) {
        let before = case.off().sweeps.wavefronts as f64;
        points.extend(RATIOS.into_iter().filter_map(|ratio| {
            let left = case.trial(ratio, machine)?.sweeps.wavefronts as f64;
            Some((100.0 * (before - left) / before, speedup(case, ratio, machine, Quantity::Iteration)?))
        }));
    }
    points
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
    let converging: Vec<&Case> = record.cases.iter().filter(|case| case.off().has_converged).collect();
    let mut columns: Vec<(String, String, Option<String>)> = Vec::new();
    for trial in record.cases.iter().flat_map(|case| &case.trials).filter(|trial| trial.setting != "off") {
        let name = match &trial.decided_for {
            Some(machine) => format!("auto for {machine}"),
            None => trial.setting.clone(),
        };
        if !columns.iter().any(|(known, ..)| *known == name) {
            columns.push((name, trial.setting.clone(), trial.decided_for.clone()));
        }
    }
    let rows = columns.into_iter().map(|(name, setting, decided_for)| {
        let pairs: Vec<(&Trial, &Trial)> = converging
            .iter()
            .filter_map(|case| {
                let suits = |trial: &&Trial| trial.setting == setting && trial.decided_for == decided_for;
                Some((case.off(), case.trials.iter().find(suits)?))
            })
            .collect();
        let count = |holds: &dyn Fn(f64, f64) -> bool| {
            let holds = |off: &Trial, trial: &Trial| {
                trial.has_converged && holds(off.iterations as f64, trial.iterations as f64)
            };
            pairs.iter().filter(|(off, trial)| holds(off, trial)).count().to_string()
        };
        let lost = pairs.iter().filter(|(_, trial)| !trial.has_converged).count();
        let ratios: Vec<f64> = pairs
            .iter()
            .filter(|(_, trial)| trial.has_converged)
            .map(|(off, trial)| trial.iterations.max(1) as f64 / off.iterations.max(1) as f64)
            .collect();
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        vec![
            name,
            pairs.len().to_string(),
            lost.to_string(),
            count(&|off, now| now < off),
            count(&|off, now| now == off),
            count(&|off, now| (now - off).abs() <= 0.05 * off),
            count(&|off, now| now > 1.25 * off + 2.0),
            digits(mean(&ratios)),
            digits(Some(worst)),
        ]
    });
    let names = [
        "setting",
        "matrices",
        "do not converge",
        "fewer iterations",
        "the same",
        "within 5 %",
        "more than 1.25 times and 2",
        "times as many, mean",
        "most",
    ];
    let gained = record.cases.iter().filter(|case| !case.off().has_converged);
    let gained = gained.filter(|case| case.trials.iter().any(|trial| trial.has_converged)).count();
    let (all, some) = (record.cases.len(), converging.len());
    let residuals = sorted(converging.iter().filter_map(|case| case.off().residual));
    let residuals = match (residuals.first(), residuals.get(residuals.len() / 2), residuals.last()) {
        (Some(least), Some(median), Some(most)) => {
            format!(" Their recomputed residuals are {least:.0e} to {most:.0e}, {median:.0e} in the median.")
        }
        _ => String::new(),
    };
    let dropped = ["many-core", "device"].map(|machine| dropped_by_auto(record, machine)).concat();
    format!(
        "\n## Convergence\n\nOf {all} matrices {some} converge without sparsification, and {gained} only with some of it.{residuals}{dropped}\n\n{}",
        table(&names, rows)
    )
}

/// On how many matrices `auto` drops something, and what it saves there.
fn dropped_by_auto(record: &Record, machine: &str) -> String {
    let saved = sorted(record.cases.iter().filter_map(|case| {
        let taken = case.trial("auto", machine)?.taken?;
        Some(taken.reduction(case.wavefronts))
    }));
    let Some(median) = saved.get(saved.len() / 2) else { return String::new() };
    let (count, all) = (saved.len(), record.cases.len());
    format!(
        " For `{machine}` `auto` drops something on {count} of {all}, and saves {median:.0} % of the wavefronts there in the median."
    )
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Geometric means of matrices that come from the same.
fn categories(record: &Record) -> String {
    let machine = "device";
    let mut kinds: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in compared(record, machine, Quantity::Total) {
        kinds.entry(&case.kind).or_default().push(case);
    }
    let rows = kinds.into_iter().map(|(kind, cases)| {
        let of = |setting: &str, quantity: Quantity| {
            let speedup = |case: &&Case| speedup(case, setting, machine, quantity);
            digits(mean(&cases.iter().filter_map(speedup).collect::<Vec<_>>()))
        };
        let figures = DECIDED
            .map(|setting| format!("{}, {}", of(setting, Quantity::Iteration), of(setting, Quantity::Total)));
        [kind.to_owned(), cases.len().to_string()].into_iter().chain(figures).collect()
    });
    let names = ["what they come from", "matrices", "paper", "auto"];
    format!(
        "\n## Categories\n\nSpeedups on the device (modelled), per iteration and end to end.\n\n{}",
        table(&names, rows)
    )
}

fn of_cases(record: &Record) -> String {
    let settings = || TIMED.into_iter().chain(COUNTED);
    let rows = record.cases.iter().map(|case| {
        let cell = |trial: &Trial| {
            let mark = if trial.has_converged { "" } else { "!" };
            format!("{} / {}{mark}", trial.wavefronts, trial.iterations)
        };
        let fill = case.fill.map_or(String::new(), |fill| format!(" (K = {fill})"));
        let name = format!("{}{fill}", case.name);
        let numbers = [case.rows.to_string(), case.entries.to_string()];
        let models = ["many-core", "device"].map(|machine| case.trial("auto", machine));
        let trials = settings().map(|setting| case.trial(setting, "")).chain(models);
        let cells = trials.map(|trial| trial.map_or("–".into(), cell));
        std::iter::once(name).chain(numbers).chain(cells).collect()
    });
    let heads = ["matrix", "rows", "entries"].into_iter().chain(settings());
    let columns: Vec<&str> = heads.chain(["auto for many-core", "auto for device"]).collect();
    format!(
        "\n## Matrices\n\nWavefronts of what M is made from / iterations; `!` where the solve ends without an answer.\n\n{}",
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
        assert!((mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12 && mean(&[]).is_none());
    }
}
