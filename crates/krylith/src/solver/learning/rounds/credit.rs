//! What learning may take: solves earn a share of their own predicted seconds, and collecting, training and probes spend it.

use super::{BATCH, Learner};
use crate::matrix::Csr;
use crate::solver::Prepared;

/// Fewer pairs are not worth a probe.
const LEAST_PAIRS: usize = 64;
/// Bytes that pairs may take.
const BYTES: usize = 1 << 28;
/// A training that takes less than this many times its probe is put off until more is earned: probes would take what training needs.
const WORTH: f64 = 2.0;
/// Seconds of a step per entry of L and per row, on one thread with all vectors in its cache; up to 1.6 times as many where they are not. Rough: it only decides how soon a
/// round is affordable.
const STEP: [f64; 2] = [8e-9, 16e-9];
/// Seconds of copying a pair, per row: rough likewise.
pub(super) const COPY: f64 = 8e-9;

impl Learner {
    /// What a solve of so many seconds earned and saved; collecting took so many of its predicted seconds.
    pub(super) fn account(&mut self, mut spent: f64, collecting: f64) {
        let report = &mut self.report;
        report.solves += 1;
        report.solve_seconds += spent;
        if self.last > 0.0 {
            self.credit += self.learning.share * self.last - collecting;
            let seconds = spent * collecting / (self.last + collecting);
            report.collecting_seconds += seconds;
            spent -= seconds;
        }
        if self.uses_trained && self.cost.is_finite() {
            // A solve with the given factor would have taken as much longer as the probe does.
            let saved = spent * (self.cost / self.trained_cost - 1.0);
            report.saved_seconds += saved;
            let paid = report.seconds + report.collecting_seconds;
            let left = (paid - report.saved_seconds).max(0.0) / saved.max(f64::MIN_POSITIVE);
            if report.break_even.is_none_or(|solve| solve >= report.solves) {
                report.break_even = Some(report.solves + left.min(1e9).ceil() as usize);
            }
        }
    }

    /// Takes what training or a probe was predicted to take.
    pub(super) fn spend(&mut self, seconds: f64) {
        self.credit -= seconds;
        self.spent += seconds;
    }

    /// How many pairs a round can be paid for if the next solve is like the last one; 0 where they are not worth collecting.
    pub(super) fn affordable_pairs(&self, a: &Csr<f64>) -> usize {
        let most = self.most_pairs();
        if self.report.finished {
            return 0;
        }
        if self.learning.share.is_infinite() {
            return most;
        }
        let prepared = self.trained.as_ref().filter(|_| self.uses_trained).unwrap_or(&self.base);
        let spent = products(prepared, a, self.iterations) + self.price_of_confirmation();
        let earned = self.credit + self.learning.share * self.last - spent;
        let pair = self.training(BATCH) / BATCH as f64 + COPY * self.model.nrows() as f64;
        let left = earned - self.price_of_probes();
        if left < (LEAST_PAIRS.min(most) as f64 * pair).max(self.least_training()) {
            return 0;
        }
        most.min((left / pair) as usize)
    }

    /// Pairs that a solve may leave.
    fn most_pairs(&self) -> usize {
        self.learning.pairs.min(BYTES / (8 * self.model.nrows().max(1))).max(2 * BATCH)
    }

    /// Whether there is something to learn, and enough was earned for it.
    pub(in crate::solver::learning) fn is_due(&self) -> bool {
        self.can_confirm() || self.can_train()
    }

    pub(super) fn can_train(&self) -> bool {
        !self.report.finished
            && (self.trained.is_none() && self.report.solves > 0 || self.pairs.len() >= BATCH)
            && self.credit >= self.price_of_round() + self.price_of_confirmation()
    }

    pub(super) fn can_confirm(&self) -> bool {
        self.unconfirmed && self.credit >= self.price_of_confirmation()
    }

    /// Predicted seconds of the second probe, which training waits for; 0 where none is needed, or where conjugate gradients break down with the given factor, so that there
    /// is nothing to compare with.
    fn price_of_confirmation(&self) -> f64 {
        if !self.unconfirmed || self.cost.is_infinite() {
            return 0.0;
        }
        let given = if self.second_cost.is_none() { self.cost } else { 0.0 };
        given + self.trained_cost
    }

    /// Predicted seconds of a round on the pairs that there are; of the first probes, where nothing has been trained yet.
    fn price_of_round(&self) -> f64 {
        let training = match &self.trained {
            Some(_) => self.training(self.pairs.len()).max(self.least_training()),
            None => 0.0,
        };
        self.price_of_probes() + training
    }

    /// Predicted seconds of the probes of a round.
    fn price_of_probes(&self) -> f64 {
        match &self.trained {
            None => self.last * self.first_probes() as f64,
            Some(_) => self.probe() * if self.changed { 2.0 } else { 1.0 },
        }
    }

    /// Predicted seconds of a probe with the best trained factor.
    fn probe(&self) -> f64 {
        if self.trained_cost.is_finite() { self.trained_cost } else { self.last }
    }

    /// Predicted seconds of a training that is worth its probe; less where all passes through all pairs take less.
    fn least_training(&self) -> f64 {
        let all = self.learning.passes.max(1) as f64 * self.training(self.most_pairs());
        if self.trained.is_some() { all.min(WORTH * self.probe()) } else { 0.0 }
    }

    /// Predicted seconds of a pass through so many pairs.
    pub(super) fn training(&self, pairs: usize) -> f64 {
        let [entry, row] = STEP;
        let step = entry * self.model.nnz() as f64 + row * self.model.nrows() as f64;
        (pairs / BATCH) as f64 * step
    }

    /// How often the pairs are gone through: as often as can be paid for together with a probe.
    pub(super) fn affordable_passes(&self) -> usize {
        let found = (self.credit - self.price_of_probes()) / self.training(self.pairs.len());
        (found as usize).clamp(1, self.learning.passes.max(1))
    }
}

/// Predicted seconds of products that so many iterations form only because somebody wants directions.
pub(super) fn products(prepared: &Prepared<Csr<f64>>, a: &Csr<f64>, iterations: usize) -> f64 {
    let with = prepared.predicted_iteration_with_directions(a);
    let without = prepared.predicted_iteration(a);
    iterations as f64 * with.zip(without).map_or(0.0, |(with, without)| with - without)
}
