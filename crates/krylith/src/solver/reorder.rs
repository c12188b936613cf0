//! Systems whose rows and columns are permuted before anything else, and whose A is multiplied by a power of two where it is out of
//! range: 2ᵉ P A Q y = P b with x = 2ᵉ Q y.
//!
//! Permutations keep 2-norms, so the iteration on the permuted system stops by the user's residual. Scales of a matching are never
//! applied to the system, only to what a threshold compares (see `by_threshold`): an incomplete factor on a given pattern does not
//! depend on them.

use super::by_threshold::multiply;
use super::choice::{Match, Method, Preconditioning};
use super::engine::{Engine, Site, Told, as_matrix};
use super::log::{Log, in_order_of_a};
use super::magnitude::Magnitude;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::Finish;
use crate::matrix::{Csr, Pattern, Permutation, SeenValues};
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::precond::require_pattern;
use crate::report::Recovery;
use crate::space::Threads;
use crate::stop::StoppingCriterion;
use crate::transform::{Matching, MatchingError, Ordering, OrderingError, order};
use std::sync::Arc;

type Space = Threads<f64>;

/// A diagonal entry below this part of the largest of its row is tiny.
const TINY: f64 = 1e-8;

/// Scales of rows and columns, in the order of the permuted matrix.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    pub(super) rows: Vec<f64>,
    pub(super) columns: Vec<f64>,
}

impl Scale {
    /// R A C.
    pub(super) fn apply(&self, a: &Csr<f64>) -> Csr<f64> {
        let mut scaled = a.clone();
        // One after the other: the product of both scales may overflow where that of all three does not.
        multiply(&mut scaled, |i, _| self.rows[i]);
        multiply(&mut scaled, |_, j| self.columns[j]);
        scaled
    }
}

/// How rows and columns are to be permuted, and the scales found with that.
pub(super) struct Front {
    rows: Permutation,
    columns: Permutation,
    scale: Scale,
    /// The power of two that A is multiplied by.
    power: f64,
    words: Vec<String>,
}

impl<A: LinearOperator<Space> + 'static> Site<'_, A> {
    /// Permutations that were asked for or are needed; none if rows and columns stay.
    pub(super) fn reorder(&self, kind: Preconditioning, log: &mut Log) -> Result<Option<Front>, SolveError> {
        let Some(a) = as_matrix(self.a) else { return Ok(None) };
        let pivots = matches!(kind, Preconditioning::Ilut(threshold) if threshold.pivoting);
        let matches = self.wants_matching(kind);
        let power = match self.other_matrix() {
            Some(_) => Magnitude::of_matrix(self.space, a)?.exact_scale(),
            None => self.scale,
        };
        let matches = matches && kind != Preconditioning::None;
        let scaled = power != 1.0 || self.scale != 1.0;
        if self.options.reorder == Ordering::Natural && !pivots && !matches && !scaled {
            return Ok(None);
        }
        let n = self.matrix.nrows();
        let identity = Permutation::identity(n).map_err(SetupError::from)?;
        let ones = Scale { rows: vec![1.0; n], columns: vec![1.0; n] };
        let mut front =
            Front { rows: identity.clone(), columns: identity, scale: ones, power, words: Vec::new() };
        if matches {
            log.analyzing(|| front.match_columns(self.matrix))
                .map_or_else(|error| no_matching(error, log), |()| Ok(()))?;
        }
        if self.options.reorder != Ordering::Natural {
            log.analyzing(|| front.order(self.matrix, self.options.reorder))?;
        }
        if scaled {
            front.words.push(format!("A multiplied by {power:e}"));
        }
        let changed = pivots || !front.words.is_empty();
        Ok(changed.then_some(front))
    }

    fn wants_matching(&self, kind: Preconditioning) -> bool {
        let symmetric = kind.is_symmetric() || matches!(self.method, Method::Cg | Method::Minres);
        match self.options.matching {
            Match::Off => false,
            _ if symmetric => false,
            Match::On => true,
            Match::Auto => has_tiny_diagonal(self.matrix),
        }
    }
}

fn has_tiny_diagonal(a: &Csr<f64>) -> bool {
    use rayon::prelude::*;
    (0..a.nrows()).into_par_iter().with_min_len(1 << 12).any(|i| {
        let largest = a.row(i).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let diagonal = a.get(i, i).abs();
        diagonal <= TINY * largest || diagonal.is_nan()
    })
}

/// A matrix that cannot be matched keeps its diagonal, and that is told.
fn no_matching(error: MatchingError, log: &mut Log) -> Result<(), SolveError> {
    let row = match error {
        MatchingError::StructurallySingular { row, .. }
        | MatchingError::ScaleOutOfRange { row }
        | MatchingError::NotFinite { row, .. } => Some(row),
        MatchingError::Matrix(error) => return Err(SetupError::from(error).into()),
    };
    let failed = format!("matching: {error}");
    log.recovery.push(Recovery { failed, row, value: None, action: "columns stay where they are".into() });
    Ok(())
}

impl Front {
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
        let p = order(matched.pattern(), ordering).map_err(|error| match error {
            OrderingError::Matrix(error) => SolveError::from(SetupError::from(error)),
            other => BackendError::Failed { what: other.to_string() }.into(),
        })?;
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

/// A matrix with its rows and columns permuted, multiplied by a power of two.
struct Permuted {
    /// Of the matrix as given.
    source: Arc<Pattern>,
    /// For every entry of the permuted matrix its place in the given one.
    places: Vec<usize>,
    power: f64,
    /// The values that were taken over last.
    seen: Option<SeenValues>,
    matrix: Csr<f64>,
}

impl Permuted {
    fn new(space: &Space, matrix: &Csr<f64>, power: f64, front: &Front) -> Result<Self, SetupError> {
        let mut permuted = matrix.view().permute(&front.rows, &front.columns)?;
        if power != 1.0 {
            permuted.values_mut().iter_mut().for_each(|v| *v *= power);
        }
        Ok(Permuted {
            source: Arc::clone(matrix.pattern()),
            places: places(matrix, &permuted, front),
            power,
            seen: Some(SeenValues::of(space, matrix)),
            matrix: permuted,
        })
    }

    /// Bytes that a copy of this matrix will take, with the place of each of its entries.
    fn predict(matrix: &Csr<f64>) -> usize {
        matrix.bytes() + size_of::<usize>() * matrix.nnz()
    }

    /// Takes over the values of a matrix of the same pattern; allocates nothing.
    fn set(&mut self, space: &Space, matrix: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, matrix.pattern())?;
        if self.seen.is_some_and(|seen| seen.are_those_of(space, matrix)) {
            return Ok(());
        }
        self.power = Magnitude::of_matrix(space, matrix)?.exact_scale();
        for (to, &place) in self.matrix.values_mut().iter_mut().zip(&self.places) {
            *to = matrix.values()[place] * self.power;
        }
        self.seen = Some(SeenValues::of(space, matrix));
        Ok(())
    }
}

/// The permuted system.
pub(super) struct Reordered {
    rows: Permutation,
    columns: Permutation,
    a: Permuted,
    /// What the preconditioner is made from, unless it has the pattern of A.
    source: Option<Permuted>,
    b: Vec<f64>,
    x: Vec<f64>,
    inner: Engine<Csr<f64>>,
}

impl Reordered {
    pub(super) fn build<A: LinearOperator<Space> + 'static>(
        site: &Site<'_, A>,
        mut front: Front,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Engine<A>, Told), SolveError> {
        let Site { options, space, method, matrix, .. } = *site;
        let n = matrix.nrows();
        // Copies of the matrices, and vectors and permutations.
        let other = site.other_matrix();
        let extra = Permuted::predict(matrix) + other.map_or(0, Permuted::predict) + 16 * n + 16 * n;
        let reserved = extra as u64;
        Site { reserved, ..*site }.require_room(kind)?;
        let permute = |front: &Front| {
            let source = Permuted::new(space, matrix, site.scale, front)?;
            Ok::<_, SetupError>(match other {
                Some(a) => (Permuted::new(space, a, front.power, front)?, Some(source)),
                None => (source, None),
            })
        };
        let (mut a, mut source) = log.analyzing(|| permute(&front))?;
        log.rows = Some(front.rows.old().to_vec());
        let mut triangles = None;
        if let Some(threshold) = kind.threshold() {
            let matrix = &source.as_ref().unwrap_or(&a).matrix;
            let inner = Site { options, space, a: &a.matrix, matrix, method, scale: 1.0, reserved };
            let found = threshold.triangles(&inner, kind, Some(&front.scale), log)?;
            if let Some(q) = &found.0.columns {
                front.exchange(q)?;
                front.words.push("columns exchanged for larger pivots".into());
                (a, source) = log.analyzing(|| permute(&front))?;
            }
            triangles = Some(found);
        }
        let from = &source.as_ref().unwrap_or(&a).matrix;
        let inner = Site { options, space, a: &a.matrix, matrix: from, method, scale: 1.0, reserved };
        let (engine, mut told) = match triangles {
            Some(found) => Engine::with_triangles(&inner, kind, found, log)?,
            None => Engine::in_order(&inner, kind, log)?,
        };
        log.rows = None;
        told.predicted += extra;
        told.held += extra;
        told.ordering = front.words.join(", then ");
        let Front { rows, columns, .. } = front;
        let reordered =
            Reordered { rows, columns, a, source, b: vec![0.0; n], x: vec![0.0; n], inner: engine };
        Ok((Engine::Reordered(Box::new(reordered)), told))
    }

    /// Another method with the same preconditioner.
    pub(super) fn change_method(&mut self, space: &Space, method: Method) -> Result<(), SolveError> {
        self.inner.change_method(space, &self.a.matrix, method)
    }

    pub(super) fn is_scaled(&self) -> bool {
        self.a.power != 1.0
    }

    /// Puts the best iterate that the last run left for a worse one into `x`; `false` if there is none.
    pub(super) fn restore_kept(&self, space: &Space, x: &mut [f64]) -> Result<bool, BackendError> {
        let mut kept = vec![0.0; self.x.len()];
        let found = self.inner.restore_kept(space, &mut kept)?;
        if found {
            self.store(&kept, x);
        }
        Ok(found)
    }

    /// x = 2ᵉ Q y.
    fn store(&self, y: &[f64], x: &mut [f64]) {
        for (from, &j) in y.iter().zip(self.columns.old()) {
            x[j as usize] = *from * self.a.power;
        }
    }

    pub(super) fn refactor(&mut self, space: &Space, a: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        let from = self.source.as_mut().unwrap_or(&mut self.a);
        from.set(space, a)?;
        let result = self.inner.refactor(space, &from.matrix, shift);
        result.map_err(|error| in_order_of_a(error, Some(self.rows.old())))
    }

    pub(super) fn begin(
        &mut self,
        space: &Space,
        a: &Csr<f64>,
        b: &[f64],
        x: &[f64],
    ) -> Result<(), SolveError> {
        self.a.set(space, a)?;
        for (to, &i) in self.b.iter_mut().zip(self.rows.old()) {
            *to = b[i as usize];
        }
        for (to, &j) in self.x.iter_mut().zip(self.columns.old()) {
            *to = x[j as usize] / self.a.power;
        }
        self.inner.begin(space, &self.a.matrix, &self.b, &self.x)
    }

    pub(super) fn run(
        &mut self,
        again: bool,
        space: &Space,
        x: &mut [f64],
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, BackendError> {
        let finish = self.inner.run(again, space, &self.a.matrix, &self.b, &mut self.x, stop, observer)?;
        self.store(&self.x, x);
        Ok(finish)
    }
}

/// Where each entry of the permuted matrix comes from.
fn places(a: &Csr<f64>, permuted: &Csr<f64>, front: &Front) -> Vec<usize> {
    let mut places = Vec::with_capacity(permuted.nnz());
    for i in 0..permuted.nrows() {
        let row = front.rows.old()[i] as usize;
        for &j in permuted.pattern().row(i) {
            let column = front.columns.old()[j as usize] as usize;
            places.push(a.pattern().find(row, column).expect("an entry of A"));
        }
    }
    places
}
