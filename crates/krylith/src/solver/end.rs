//! The end of a solve without an answer: what can be said of A and b, and the best x that goes with it.

use super::certify::{Certifier, Ended};
use super::outside_range::Finding;
use super::prepared::Prepared;
use super::stage::work;
use crate::error::SolveError;
use crate::matrix::Csr;
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::Precision;
use crate::outcome::{Outcome, Recovery};
use crate::precond::PrecondSpec;
use crate::precond::direct::{DirectKind, DirectSymbolic};
use crate::precond::registry::Construction;
use crate::report::Rung;
use crate::setup::{Findings, SetupContext};
use std::sync::Arc;

/// The end of a run after which nothing more may be tried.
pub(super) struct End<'e, S: SolverSpace, A: LinearOperator<S>> {
    pub(super) prepared: &'e Prepared<A, S>,
    pub(super) ended: &'e Ended,
    pub(super) rungs: &'e [Rung],
}

impl<S: SolverSpace, A: LinearOperator<S>> End<'_, S, A> {
    /// The outcome. Where neither x nor its residual says why, a complete factor is asked for a proof that there is no answer: those
    /// that ran, or one that costs no more than what was spent where the residual looks like a left null vector.
    pub(super) fn conclude(
        &self,
        findings: &Findings,
        certifier: &mut Certifier<'_, S, A>,
        x: &S::Vector,
    ) -> Result<Outcome, SolveError> {
        let outcome = certifier.classify(self.ended, x)?;
        if matches!(outcome, Outcome::Converged | Outcome::Interrupted) {
            return Ok(outcome);
        }
        let (a, known) = (certifier.a(), certifier.finding());
        let certified = [Outcome::AttainableAccuracy, Outcome::LeastSquares];
        // What is singular may have its least squares in x, without a proof so far.
        let is_open = !certified.contains(&outcome) || known == Finding::NearlySingular;
        let Some(matrix) = a.matrix().filter(|_| certifier.is_alone() && is_open) else {
            return Ok(outcome);
        };
        for symbolic in factors((self.prepared, findings), certifier, matrix, self.rungs) {
            if certifier.finding() > known.max(Finding::NearlySingular) {
                break;
            }
            certifier.find_witness_by_factor(matrix, &symbolic)?;
        }
        Ok(match certifier.finding() {
            Finding::Nothing => outcome,
            finding => finding.outcome(),
        })
    }
}

/// The complete factors that ran, or LU where it costs no more than what was spent and the residual looks like a left null vector.
fn factors<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    certifier: &Certifier<'_, S, A>,
    matrix: &Csr<f64>,
    rungs: &[Rung],
) -> Vec<Arc<DirectSymbolic>> {
    let Prepared { options, plan, method, summary, .. } = prepared;
    let (space, size) = (certifier.space(), certifier.a().domain());
    let setup = options.setup_options(plan, Precision::F64);
    let setup = SetupContext::new(setup, space, size, Some(matrix), matrix, (*method, 1.0));
    let of_a = |kind: &PrecondSpec| *kind != summary.kind || prepared.factors_a(certifier.a());
    let mut kinds: Vec<_> =
        rungs.iter().map(|rung| rung.preconditioner.clone()).filter(|p| p.is_complete() && of_a(p)).collect();
    let ran = !kinds.is_empty();
    kinds.dedup();
    kinds.extend((!ran && certifier.looks_singular()).then(PrecondSpec::lu));
    let iteration = options.machine.iteration(&work(*method, (matrix, plan), summary));
    let spent = f64::max(certifier.iterations() as f64 * iteration, CHEAP);
    let factor = |kind: PrecondSpec| {
        let Construction::Direct(which) = kind.construct() else { return None };
        let symbolic = findings.complete(which, matrix, Some(setup.limit_of_complete())).ok()?;
        let affordable = ran || options.machine.direct(matrix, which, symbolic.cost()) <= spent;
        affordable.then_some(symbolic)
    };
    kinds.into_iter().filter_map(factor).collect()
}

/// Makes the least squares in x the shortest ones, where a factor for it is at hand or cheap.
pub(super) fn shorten<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    certifier: &mut Certifier<'_, S, A>,
    x: &mut S::Vector,
    (rungs, is_shortest): (&[Rung], bool),
) -> Result<(), SolveError> {
    let a = certifier.a();
    let Some(matrix) = a.matrix().filter(|_| certifier.is_alone()) else { return Ok(()) };
    let cheap = |symbolic: &&Arc<DirectSymbolic>| {
        !is_shortest || prepared.options.machine.direct(matrix, DirectKind::Lu, symbolic.cost()) <= CHEAP
    };
    match factors((prepared, &Findings::default()), certifier, matrix, rungs).iter().find(cheap) {
        Some(symbolic) => Ok(certifier.shorten(matrix, symbolic, x)?),
        None => Ok(()),
    }
}

/// Whether a multiple of a constant, or of a vector that A is known to be close to annihilating, added to x or alone, meets the tolerance.
pub(super) fn meets_along_null_vectors<S: SolverSpace, A: LinearOperator<S>>(
    certifier: &mut Certifier<'_, S, A>,
    x: &mut S::Vector,
    recovery: &mut Vec<Recovery>,
) -> Result<bool, SolveError> {
    if certifier.has_own_criterion() {
        return Ok(false);
    }
    let space = certifier.space();
    let mut constant = space.zeros(&space.size(x))?;
    space.fill(1.0, &mut constant)?;
    let meets = certifier.meets_along_any(&[constant], x)?;
    if meets {
        recovery.push(Recovery {
            failed: "A is nearly singular: A times a constant, or another vector, is nearly zero".into(),
            row: None,
            value: None,
            action: "the multiple of that vector with the least residual is added to x".into(),
        });
    }
    Ok(meets)
}

/// Nanoseconds that a factor may take for a proof, however little was spent before.
const CHEAP: f64 = 1e6;
