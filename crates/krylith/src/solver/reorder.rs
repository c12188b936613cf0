//! Which permutations of rows and columns come before everything else, and the set-up of the permuted system.
//!
//! Scales of a matching are never applied to the system, only to what a threshold compares (see `precond::threshold`): an incomplete
//! factor on a given pattern does not depend on them.

use super::options::Solver;
use crate::engine::{Matrices, PermutedMatrix, Reordered, Reordering};
use crate::error::{BackendError, SetupError, SolveError};
use crate::facts::TINY;
use crate::matrix::{Csr, Permutation, exact_scale};
use crate::operator::SolverSpace;
use crate::options::{MatchingMode, Method};
use crate::outcome::Recovery;
use crate::precond::PrecondSpec;
use crate::precond::threshold::ByThreshold;
use crate::setup::{SetupContext, SetupRecorder, SetupSummary};
use crate::store::Scale;
use crate::store::{FindStore, in_stores};
use crate::transform::{Matching, MatchingError, Ordering, OrderingError, order};

/// How rows and columns are to be permuted, and the scales found with that.
pub(super) struct Permutations {
    rows: Permutation,
    columns: Permutation,
    scale: Scale,
    words: Vec<String>,
}

impl Permutations {
    /// Permutations that were asked for or are needed; none if rows and columns stay.
    pub(super) fn find<S: SolverSpace>(
        solver: &Solver,
        setup: &SetupContext<'_, S>,
        kind: &PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Option<Self>, SolveError> {
        let Some(a) = setup.a else { return Ok(None) };
        let source = setup.source;
        let pivots = kind.threshold().is_some_and(ByThreshold::exchanges_columns);
        let matches = !kind.is_none() && wants_matching(solver, setup, kind);
        let power = match std::ptr::eq(a, source) {
            true => setup.scale,
            false => exact_scale(setup.space.host(), a)?,
        };
        let scaled = power != 1.0 || setup.scale != 1.0;
        if solver.reorder == Ordering::Natural && !pivots && !matches && !scaled {
            return Ok(None);
        }
        let n = source.nrows();
        let identity = Permutation::identity(n).map_err(SetupError::from)?;
        let scale = Scale { rows: vec![1.0; n], columns: vec![1.0; n] };
        let mut found = Permutations { rows: identity.clone(), columns: identity, scale, words: Vec::new() };
        if matches {
            recorder
                .analyzing(|| found.match_columns(source))
                .map_or_else(|error| no_matching(error, recorder), |()| Ok(()))?;
        }
        if solver.reorder != Ordering::Natural {
            recorder.analyzing(|| found.order(source, solver.reorder))?;
        }
        if scaled {
            let scales = [("A", power), ("the matrix of the preconditioner", setup.scale)];
            let which = scales.into_iter().find(|&(_, scale)| scale != 1.0).unwrap_or(("A", power));
            found.words.push(format!("{} multiplied by {:e}", which.0, which.1));
        }
        let changed = pivots || !found.words.is_empty();
        Ok(changed.then_some(found))
    }
}

/// What is reported where there is no order.
pub(super) fn refused(error: OrderingError) -> SolveError {
    match error {
        OrderingError::Matrix(error) => SetupError::from(error).into(),
        other => BackendError::Failed { what: other.to_string() }.into(),
    }
}

fn wants_matching<S: SolverSpace>(solver: &Solver, setup: &SetupContext<'_, S>, kind: &PrecondSpec) -> bool {
    let symmetric = kind.info().symmetric || matches!(setup.method, Method::Cg | Method::Minres);
    match solver.matching {
        MatchingMode::Off => false,
        _ if symmetric => false,
        MatchingMode::On => true,
        // They match columns themselves.
        MatchingMode::Auto if kind.is_complete() => false,
        MatchingMode::Auto => {
            let known = setup.findings.values(setup.source).and_then(|known| known.tiny_diagonal);
            known.unwrap_or_else(|| has_tiny_diagonal(setup.source))
        }
    }
}

fn has_tiny_diagonal(a: &Csr<f64>) -> bool {
    crate::parallel::any(a.nrows(), |i| {
        let (columns, values) = a.row(i);
        let (mut largest, mut diagonal) = (0.0f64, 0.0f64);
        for (&j, v) in columns.iter().zip(values) {
            largest = largest.max(v.abs());
            diagonal = if j as usize == i { v.abs() } else { diagonal };
        }
        diagonal <= TINY * largest || diagonal.is_nan()
    })
}

/// A matrix that cannot be matched keeps its diagonal, and that is recorded.
fn no_matching(error: MatchingError, recorder: &mut SetupRecorder) -> Result<(), SolveError> {
    let row = match error {
        MatchingError::StructurallySingular { row, .. }
        | MatchingError::ScaleOutOfRange { row }
        | MatchingError::NotFinite { row, .. } => Some(row),
        MatchingError::Matrix(error) => return Err(SetupError::from(error).into()),
    };
    let failed = format!("matching: {error}");
    recorder.recovery.push(Recovery {
        failed,
        row,
        value: None,
        action: "columns stay where they are".into(),
    });
    Ok(())
}

impl Permutations {
    fn match_columns(&mut self, a: &Csr<f64>) -> Result<(), MatchingError> {
        let Matching { columns, row_scale, column_scale } = Matching::find(a.view())?;
        self.scale.columns = columns.old().iter().map(|&j| column_scale[j as usize]).collect();
        self.scale.rows = row_scale;
        self.columns = columns;
        self.words.push("columns by a maximum-product matching".into());
        Ok(())
    }

    fn order(&mut self, a: &Csr<f64>, ordering: Ordering) -> Result<(), SolveError> {
        let matched = a.view().permute(&self.rows, &self.columns).map_err(SetupError::from)?;
        let p = order(matched.pattern(), ordering).map_err(refused)?;
        self.rows = compose(&self.rows, &p)?;
        self.exchange(&p)?;
        self.scale.rows = p.old().iter().map(|&i| self.scale.rows[i as usize]).collect();
        self.words.push(format!("rows and columns by {ordering}"));
        Ok(())
    }

    /// Permutes the columns once more.
    fn exchange(&mut self, q: &Permutation) -> Result<(), SolveError> {
        self.columns = compose(&self.columns, q)?;
        self.scale.columns = q.old().iter().map(|&j| self.scale.columns[j as usize]).collect();
        Ok(())
    }
}

/// First p, then q: position j holds what p has at `q[j]`.
fn compose(p: &Permutation, q: &Permutation) -> Result<Permutation, SolveError> {
    let old = q.old().iter().map(|&j| p.old()[j as usize]).collect();
    Ok(Permutation::new(old).map_err(SetupError::from)?)
}

/// Sets up the permuted system.
pub(super) fn reordered<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    mut found: Permutations,
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<(Reordered<S>, SetupSummary), SolveError> {
    let SetupContext { options, space, method, source, .. } = *setup;
    let extra = bytes(setup);
    let mut outer = SetupContext::new(options, space, setup.size.clone(), setup.a, source, (method, 1.0));
    outer.reserved = setup.reserved + extra as u64;
    outer.require_room(kind)?;
    let mut matrices = found.permute(setup, recorder)?;
    let mut triangles = None;
    if let Some(threshold) = kind.threshold() {
        let inner = found.inner(setup, &matrices);
        let factor = threshold.triangles(&inner, kind, Some(&found.scale), recorder)?;
        if let Some(q) = &factor.0.columns {
            found.exchange(q)?;
            found.words.push("columns exchanged for larger pivots".into());
            matrices = found.permute(setup, recorder)?;
        }
        triangles = Some(factor);
    }
    let inner = found.inner(setup, &matrices);
    let (engine, mut summary) = in_stores(inner, stores, (kind, triangles), recorder)?;
    summary.predicted += extra;
    summary.held += extra;
    summary.ordering = found.words.join(", then ");
    let Permutations { rows, columns, .. } = found;
    let reordering = Reordering::new(rows, columns, setup.size.clone());
    Ok((Reordered::new(reordering, matrices, engine), summary))
}

/// Bytes that a permuted system takes besides: copies of the matrices; vectors, numbers on their way and permutations.
fn bytes<S: SolverSpace>(setup: &SetupContext<'_, S>) -> usize {
    let n = setup.source.nrows();
    let copies =
        PermutedMatrix::predict(setup.source) + setup.other_matrix().map_or(0, PermutedMatrix::predict);
    copies + 16 * n + 16 * n + 16 * n
}

impl Permutations {
    /// The permuted matrices.
    pub(super) fn permute<S: SolverSpace>(
        &self,
        setup: &SetupContext<'_, S>,
        recorder: &mut SetupRecorder,
    ) -> Result<Matrices<PermutedMatrix>, SetupError> {
        let permuted = |a: &Csr<f64>| PermutedMatrix::new(setup.space.host(), a, &self.rows, &self.columns);
        recorder.analyzing(|| {
            Ok(Matrices::new(permuted(setup.source)?, setup.other_matrix().map(permuted).transpose()?))
        })
    }

    /// The permuted system, to be set up.
    pub(super) fn inner<'a, S: SolverSpace>(
        &'a self,
        setup: &SetupContext<'a, S>,
        matrices: &'a Matrices<PermutedMatrix>,
    ) -> SetupContext<'a, S> {
        let (a, source) = (&matrices.a.matrix, &matrices.source().matrix);
        let SetupContext { options, space, method, .. } = *setup;
        let mut inner = SetupContext::new(options, space, setup.size.clone(), Some(a), source, (method, 1.0));
        inner.reserved = setup.reserved + bytes(setup) as u64;
        inner.own = setup.own;
        let permuted = |z: &Vec<f64>| self.columns.old().iter().map(|&j| z[j as usize]).collect();
        inner.near_null = setup.near_null.iter().map(permuted).collect();
        inner.rows = Some(self.rows.old());
        inner
    }
}
