//! Tables in the form of the paper's table 1, over the same matrices in every column, and what is behind them.

use super::record::{COUNTED, Case, RATIOS, Record, TIMED, Trial};
use super::speedup::{
    DECIDED, Quantity, compared, label, machines, oracle, points, spearman, speedup, takes_the_best,
};
use crate::run::table::{digits, geometric_mean, rounds, share, table};
use std::collections::BTreeMap;

pub fn markdown(record: &Record) -> String {
    let head = record.head.markdown("Wavefront-aware sparsification");
    let compared = match record.facts.all_converge {
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
        record.facts.protocol, timed
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
    let refused =
        record.facts.refused.iter().map(|(name, why)| format!("* {name}: {why}\n")).collect::<String>();
    text + &if refused.is_empty() { refused } else { format!("\n## Left out\n\n{refused}") }
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
    let top = geometric_mean(&best_or_off).unwrap_or(1.0);
    let rows = [
        line("geometric mean", &|values| digits(geometric_mean(values))),
        line("of that of the oracle or off", &|values| digits(geometric_mean(values).map(|v| v / top))),
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
        let others = digits(geometric_mean(&auto[..auto.len().saturating_sub(2)]));
        notes += &format!(
            " Speedups of `auto` are {least} to {most}; without the two largest the mean is {others}."
        );
    }
    format!("\n## {}, {}\n\n{notes}\n\n{}", label(machine), quantity.words(), table(&names, rows))
}

/// Convergence that is lost, and iterations that stay the same.
fn convergence(record: &Record) -> String {
    let converging: Vec<&Case> = record.rows.iter().filter(|case| case.off().has_converged).collect();
    let mut settings: Vec<(&str, Option<&str>)> = Vec::new();
    for trial in record.rows.iter().flat_map(|case| &case.trials).filter(|trial| trial.setting != "off") {
        if !settings.contains(&trial.decided()) {
            settings.push(trial.decided());
        }
    }
    let rows = settings.into_iter().map(|setting| {
        let pairs = converging.iter().filter_map(|case| {
            let trial = case.trials.iter().find(|trial| trial.decided() == setting)?;
            Some((case.off(), trial))
        });
        let name = match setting {
            (_, Some(machine)) => format!("auto for {machine}"),
            (name, None) => name.to_owned(),
        };
        beside_off(name, &pairs.collect::<Vec<_>>())
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
    let gained = record.rows.iter().filter(|case| !case.off().has_converged);
    let gained = gained.filter(|case| case.trials.iter().any(|trial| trial.has_converged)).count();
    let residuals = sorted(converging.iter().filter_map(|case| case.off().residual));
    let residuals = match (residuals.first(), residuals.get(residuals.len() / 2), residuals.last()) {
        (Some(least), Some(median), Some(most)) => {
            format!(" Their recomputed residuals are {least:.0e} to {most:.0e}, {median:.0e} in the median.")
        }
        _ => String::new(),
    };
    let dropped = ["many-core", "device"].map(|machine| dropped_by_auto(record, machine)).concat();
    format!(
        "\n## Convergence\n\nOf {} matrices {} converge without sparsification, and {gained} only with some of it.{residuals}{dropped}\n\n{}",
        record.rows.len(),
        converging.len(),
        table(&names, rows)
    )
}

/// A setting on matrices that converge without it: pairs of `off` and the setting.
fn beside_off(name: String, pairs: &[(&Trial, &Trial)]) -> Vec<String> {
    let iterations: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|(_, trial)| trial.has_converged)
        .map(|(off, trial)| (off.iterations as f64, trial.iterations as f64))
        .collect();
    let count = |holds: &dyn Fn(f64, f64) -> bool| {
        iterations.iter().filter(|&&(off, now)| holds(off, now)).count().to_string()
    };
    let ratios: Vec<f64> = iterations.iter().map(|(off, now)| now.max(1.0) / off.max(1.0)).collect();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    vec![
        name,
        pairs.len().to_string(),
        (pairs.len() - iterations.len()).to_string(),
        count(&|off, now| now < off),
        count(&|off, now| now == off),
        count(&|off, now| (now - off).abs() <= 0.05 * off),
        count(&|off, now| now > 1.25 * off + 2.0),
        digits(geometric_mean(&ratios)),
        digits(Some(worst)),
    ]
}

/// On how many matrices `auto` drops something, and what it saves there.
fn dropped_by_auto(record: &Record, machine: &str) -> String {
    let saved = sorted(record.rows.iter().filter_map(|case| {
        let taken = case.trial("auto", machine)?.taken?;
        Some(taken.reduction(case.wavefronts))
    }));
    let Some(median) = saved.get(saved.len() / 2) else { return String::new() };
    let (count, all) = (saved.len(), record.rows.len());
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
            digits(geometric_mean(&cases.iter().filter_map(speedup).collect::<Vec<_>>()))
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
    let rows = record.rows.iter().map(|case| {
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
