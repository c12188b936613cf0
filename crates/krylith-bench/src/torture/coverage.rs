//! Which pairs of values of two axes have come up together.

use super::axes::{AXES, Available, COUNT, Choice, excluded, missing};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Pairs of values, each of two different axes.
pub struct Coverage {
    /// Where the values of an axis begin.
    first: [usize; COUNT],
    values: usize,
    seen: Vec<bool>,
    available: Available,
}

/// Counts of pairs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    pub covered: usize,
    pub possible: usize,
    /// Pairs that are left out, by reason.
    pub excluded: BTreeMap<&'static str, usize>,
    /// `axis=value axis=value`
    pub uncovered: Vec<String>,
}

impl Coverage {
    pub fn new(available: Available) -> Self {
        let (mut first, mut values) = ([0; COUNT], 0);
        for (k, axis) in AXES.iter().enumerate() {
            first[k] = values;
            values += axis.values.len();
        }
        Coverage { first, values, seen: vec![false; values * values], available }
    }

    fn place(&self, axis: usize, value: usize, other: usize, other_value: usize) -> usize {
        (self.first[axis] + value) * self.values + self.first[other] + other_value
    }

    /// Counts every pair of this choice.
    pub fn record(&mut self, choice: &Choice) {
        for j in 1..AXES.len() {
            for i in 0..j {
                let place = self.place(i, choice.index(i), j, choice.index(j));
                self.seen[place] = true;
            }
        }
    }

    /// Every pair, covered, uncovered or excluded.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for j in 1..AXES.len() {
            for i in 0..j {
                for (u, (first, _)) in AXES[i].values.iter().enumerate() {
                    for (v, (second, _)) in AXES[j].values.iter().enumerate() {
                        let reason = missing(i, u, self.available)
                            .or(missing(j, v, self.available))
                            .or(excluded(i, u, j, v));
                        if let Some(reason) = reason {
                            *counts.excluded.entry(reason).or_default() += 1;
                            continue;
                        }
                        counts.possible += 1;
                        match self.seen[self.place(i, u, j, v)] {
                            true => counts.covered += 1,
                            false => counts
                                .uncovered
                                .push(format!("{}={first} {}={second}", AXES[i].name, AXES[j].name)),
                        }
                    }
                }
            }
        }
        counts
    }
}

impl Counts {
    /// For a report: the uncovered pairs are listed up to this many.
    pub fn print(&self, most: usize) {
        println!("pairs of values covered: {} of {}", self.covered, self.possible);
        for (reason, count) in &self.excluded {
            println!("pairs left out: {count}, because {reason}");
        }
        match self.uncovered.len() {
            0 => {}
            few if few <= most => {
                println!("pairs not covered:");
                self.uncovered.iter().for_each(|pair| println!("    {pair}"));
            }
            many => println!("pairs not covered: {many}, of which the first are"),
        }
        if self.uncovered.len() > most {
            self.uncovered[..most].iter().for_each(|pair| println!("    {pair}"));
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "covered": self.covered,
            "possible": self.possible,
            "excluded": self.excluded,
            "uncovered": self.uncovered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::axes::{Kind, Of};
    use super::super::rng::Rng;
    use super::*;

    const WITHOUT: Available = Available { dissection: false, catalogue: false };

    fn choice(seed: u64) -> Choice {
        Choice::draw(&mut Rng::new(&[seed]), |kind| kind == Kind::Hostile, WITHOUT)
    }

    #[test]
    fn one_choice_covers_each_pair_of_its_values_once() {
        let mut coverage = Coverage::new(WITHOUT);
        assert_eq!(coverage.counts().covered, 0);
        coverage.record(&choice(1));
        coverage.record(&choice(1));
        assert_eq!(coverage.counts().covered, AXES.len() * (AXES.len() - 1) / 2);
    }

    /// A choice that differs in one value shares every pair without it.
    #[test]
    fn another_value_of_one_axis_adds_its_pairs() {
        let mut coverage = Coverage::new(WITHOUT);
        let one = choice(1).with(Of::Matching, "on");
        coverage.record(&one);
        coverage.record(&one.with(Of::Matching, "off"));
        let n = AXES.len();
        assert_eq!(coverage.counts().covered, n * (n - 1) / 2 + n - 1);
    }

    #[test]
    fn covered_uncovered_and_excluded_pairs_are_all_pairs() {
        let mut coverage = Coverage::new(WITHOUT);
        (0..500).for_each(|k| coverage.record(&choice(k)));
        let counts = coverage.counts();
        let mut all = 0;
        for j in 1..AXES.len() {
            all += (0..j).map(|i| AXES[i].values.len() * AXES[j].values.len()).sum::<usize>();
        }
        assert_eq!(counts.covered + counts.uncovered.len(), counts.possible);
        assert_eq!(counts.possible + counts.excluded.values().sum::<usize>(), all);
        assert!(counts.uncovered.contains(&"family=grid problem=poisson2d".to_string()));
        assert!(!counts.uncovered.iter().any(|pair| pair.contains("=nd") || pair.contains("catalogue")));
    }
}
