//! Speedups over no sparsification, and on which matrices they are compared.

use super::record::{Case, RATIOS, Record, TIMED, Timing, Trial};

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
    let suits = |case: &&Case| match (quantity, record.facts.all_converge) {
        (Quantity::Iteration, _) => true,
        (Quantity::Total, false) => case.off().has_converged,
        (Quantity::Total, true) => settings().all(|setting| converges(setting, case)),
    };
    record.rows.iter().filter(timed).filter(suits).collect()
}

/// The best of the ratios.
pub fn oracle(case: &Case, machine: &str, quantity: Quantity) -> f64 {
    let of = |setting: &str| speedup(case, setting, machine, quantity).unwrap_or(0.0);
    RATIOS.into_iter().map(of).fold(0.0, f64::max)
}

/// Machines with a timing, those that were measured first, and whether they are models.
pub fn machines(record: &Record) -> Vec<(String, bool)> {
    let mut names: Vec<(String, bool)> = Vec::new();
    let trials = record.rows.iter().flat_map(|case| &case.trials);
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

/// Whether the paper's algorithm takes the best of its ratios.
pub fn takes_the_best(case: &Case, machine: &str, quantity: Quantity) -> bool {
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
pub fn spearman(points: &[(f64, f64)]) -> f64 {
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
    }
}
