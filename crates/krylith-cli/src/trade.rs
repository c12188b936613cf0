//! `krylith info --sparsify`: what dropping small entries does to the matrix that a preconditioner is made from.

use crate::Failure;
use crate::report::count;
use krylith::Csr;
use krylith::sparsify::{Candidate, Sparsification, Sparsify};
use serde_json::{Value, json};

/// The percentages that are shown.
const PERCENT: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Percentages, and what the paper's algorithm decides.
pub struct Trade {
    wavefronts: usize,
    candidates: Vec<Candidate>,
    paper: Sparsification,
}

impl Trade {
    pub fn new(a: &Csr<f64>) -> Result<Self, Failure> {
        a.pattern().require_square()?;
        let of = |sparsify: Sparsify| sparsify.apply(a).map(|(found, _)| found);
        let found = PERCENT.into_iter().filter_map(|percent| of(Sparsify::Percent(percent)));
        let candidates = found.flat_map(|found| found.candidates).collect();
        let paper = of(Sparsify::paper()).ok_or("the paper's algorithm has no answer")?;
        Ok(Trade { wavefronts: paper.wavefronts.unwrap_or(0), candidates, paper })
    }

    pub fn json(&self) -> Value {
        json!({ "wavefronts": self.wavefronts, "candidates": self.candidates, "paper": self.paper })
    }

    pub fn table(&self, line: &mut impl FnMut(&str, String), entries: usize) {
        let heads = ["dropped", "left", "wavefronts", "fewer", "indicator"];
        line("sparsification", row("", heads.map(String::from)));
        line("", row("off", ["0".into(), count(entries), count(self.wavefronts), "".into(), "".into()]));
        for candidate in &self.candidates {
            let Candidate { percent, dropped, indicator, wavefronts, .. } = *candidate;
            let fewer = format!("{:.1} %", candidate.reduction(self.wavefronts));
            let cells = [count(dropped), count(entries - dropped), count(wavefronts), fewer];
            let [dropped, left, wavefronts, fewer] = cells;
            let indicator = format!("{indicator:.2e}");
            line("", row(&format!("{percent} %"), [dropped, left, wavefronts, fewer, indicator]));
        }
        line("", format!("paper: {}", self.paper));
    }
}

fn row(name: &str, [dropped, left, wavefronts, fewer, indicator]: [String; 5]) -> String {
    format!("{name:8} {dropped:>12} {left:>14} {wavefronts:>12} {fewer:>8} {indicator:>11}")
}
