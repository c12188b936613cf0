//! A system in slices, with a factor that is wide or narrow.

use super::choice::{Layout, Preconditioning};
use super::either::{Either, either};
use super::engine::{Engine, Site, Told, Workspace, as_matrix};
use super::log::Log;
use super::memory::Memory;
use crate::error::{SetupError, SolveError};
use crate::krylov::System;
use crate::matrix::{Csr, Pattern};
use crate::operator::LinearOperator;
use crate::precond::{Form, Kind, is_symmetric};
use crate::schedule::SlicePlan;
use crate::sliced::{NotSliced, Sliced, SlicedFactor, SlicedPattern, Stored};
use crate::space::{Space as _, Threads};
use std::sync::Arc;

type Space = Threads<f64>;

/// A, M and workspace in the order of the wavefronts.
pub(super) struct Slices {
    pub(super) pattern: Arc<SlicedPattern>,
    pub(super) a: Sliced,
    /// What the factor is made from, unless it has the pattern of A.
    source: Option<Sliced>,
    pub(super) m: AnySliced,
    pub(super) workspace: Workspace<Sliced, AnySliced>,
    pub(super) b: Vec<f64>,
    pub(super) x: Vec<f64>,
}

/// A, what its factor is made from, and where the factor has its entries, all in the order of the factor. The first two are the
/// same unless the preconditioner is made from another matrix, the last two unless there is fill.
pub(super) struct InSlices {
    of_a: Arc<SlicedPattern>,
    of_source: Arc<SlicedPattern>,
    of_factor: Arc<SlicedPattern>,
}

impl<A: 'static> Site<'_, A> {
    /// Slices for a factor of this form on this pattern, or why not.
    pub(super) fn slices(
        &self,
        form: Form,
        pattern: &Arc<Pattern>,
    ) -> Result<Result<InSlices, String>, SetupError> {
        let no = |why: &str| Ok(Err(why.into()));
        if self.options.layout == Layout::Rows {
            return no("as asked");
        }
        if form.transposed() {
            return no("sums of columns are kept");
        }
        if as_matrix(self.a).is_none() {
            return no("A is not a matrix");
        }
        let source = self.matrix.pattern();
        let shared = Arc::ptr_eq(source, pattern);
        let found = match shared {
            true => SlicedPattern::find(pattern),
            false => SlicedPattern::find_for_factor(pattern),
        };
        let of_factor = match found {
            Ok(found) if form.kind == Kind::Cholesky && !found.is_symmetric() => {
                return no("the pattern is not symmetric");
            }
            Ok(found) => Arc::new(found),
            Err(NotSliced::Unfit(error)) => return Err(error),
            Err(why) => return Ok(Err(why.to_string())),
        };
        if !shared && form.kind == Kind::Cholesky && !is_symmetric(source) {
            return no("the pattern of A is not symmetric");
        }
        let in_order = |pattern: &Arc<Pattern>| match of_factor.in_same_order(pattern) {
            Ok(sliced) => Ok(Arc::new(sliced)),
            Err(NotSliced::Unfit(SetupError::MissingDiagonal { .. })) => {
                Err("the diagonal is not full".into())
            }
            Err(why) => Err(format!("of A in the order of its factor {why}")),
        };
        let find = || {
            let of_source = if shared { Arc::clone(&of_factor) } else { in_order(source)? };
            let of_a = match self.other_matrix() {
                Some(a) => in_order(a.pattern())?,
                None => Arc::clone(&of_source),
            };
            self.fits(InSlices { of_a, of_source, of_factor: Arc::clone(&of_factor) })
        };
        Ok(find())
    }

    /// Slices hold a copy of A: rows are taken where a limit of the caller's has no room for it.
    fn fits(&self, found: InSlices) -> Result<InSlices, String> {
        let memory = found.memory(size_of::<f64>());
        if !self.has_room_for(memory.copy + memory.factor) {
            return Err("a copy of A in slices would exceed the limit of memory".into());
        }
        Ok(found)
    }
}

impl InSlices {
    /// What it will take, with numbers of this many bytes in the factor.
    fn memory(&self, number: usize) -> Memory {
        let mut memory = Memory::in_slices(&self.of_a, &self.of_factor, number);
        if !Arc::ptr_eq(&self.of_source, &self.of_a) {
            let pattern = if Arc::ptr_eq(&self.of_source, &self.of_factor) {
                0
            } else {
                self.of_source.bytes_besides(&self.of_a)
            };
            memory.copy += pattern + self.of_source.bytes_of_values(8) + self.of_source.bytes_of_uniform();
        }
        memory
    }
}

impl Slices {
    pub(super) fn build<S: Stored, A: LinearOperator<Space> + 'static>(
        site: &Site<'_, A>,
        found: InSlices,
        form: Form,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Engine<A>, Told), SolveError>
    where
        AnySliced: From<SlicedFactor<S>>,
    {
        let Site { space, options, .. } = *site;
        let memory = found.memory(size_of::<S>());
        let InSlices { of_a, of_source, of_factor } = found;
        let plan = || SlicedFactor::<S>::new(&of_factor, form, space.threads(), options.schedule);
        let mut m = AnySliced::from(log.analyzing(plan)?);
        let stored = |pattern: &Arc<SlicedPattern>, matrix: &Csr<f64>| {
            let mut sliced = Sliced::zeros(pattern);
            sliced.set(space, matrix).map(|()| sliced)
        };
        let (a, source) = log.factoring(|| match site.other_matrix() {
            Some(a) => Ok((stored(&of_a, a)?, Some(stored(&of_source, site.matrix)?))),
            None => Ok::<_, SetupError>((stored(&of_a, site.matrix)?, None)),
        })?;
        let from = source.as_ref().unwrap_or(&a);
        let shift = log.factor(options.recover, kind, 0.0, |shift| m.refactor(space, from, shift))?;
        let n = of_a.positions();
        let workspace = Workspace::new(site.method, System { space, a: &a, m: &m })?;
        let (b, x) = (space.zeros(&n)?, space.zeros(&n)?);
        let vectors = memory.vectors(site.method);
        let extra = if Arc::ptr_eq(&of_a, &of_factor) { 0 } else { of_factor.bytes_besides(&of_a) };
        let pattern_of_source = match &source {
            Some(_) if !Arc::ptr_eq(&of_source, &of_factor) => of_source.bytes_besides(&of_a),
            _ => 0,
        };
        let copies = a.bytes() + source.as_ref().map_or(0, Sliced::bytes) + pattern_of_source;
        let told = Told {
            kind,
            nnz: m.nnz(),
            bytes: m.bytes() + extra,
            shift,
            schedule: Some(m.plans().map(|plan| plan.why().to_owned())),
            predicted: memory.copy + memory.factor + vectors,
            held: of_a.bytes() + extra + copies + m.bytes() + vectors,
            layout: memory.layout,
            ordering: String::new(),
        };
        Ok((Engine::Slices(Box::new(Slices { pattern: of_a, a, source, m, workspace, b, x })), told))
    }

    pub(super) fn refactor(
        &mut self,
        space: &Space,
        matrix: &Csr<f64>,
        shift: f64,
    ) -> Result<(), SetupError> {
        let from = self.source.as_mut().unwrap_or(&mut self.a);
        from.set(space, matrix)?;
        self.m.refactor(space, from, shift)
    }
}

/// A factor in slices, wide or narrow.
pub(super) type AnySliced = Either<SlicedFactor<f64>, SlicedFactor<f32>>;

impl AnySliced {
    pub(super) fn refactor(&mut self, space: &Space, a: &Sliced, shift: f64) -> Result<(), SetupError> {
        either!(self, m => {
            m.set_shift(shift);
            m.refactor(space, a)
        })
    }

    fn nnz(&self) -> usize {
        either!(self, m => m.nnz())
    }

    fn bytes(&self) -> usize {
        either!(self, m => m.bytes())
    }

    fn plans(&self) -> [&SlicePlan; 2] {
        either!(self, m => m.plans())
    }
}

impl From<SlicedFactor<f64>> for AnySliced {
    fn from(m: SlicedFactor<f64>) -> Self {
        Either::Wide(m)
    }
}

impl From<SlicedFactor<f32>> for AnySliced {
    fn from(m: SlicedFactor<f32>) -> Self {
        Either::Narrow(m)
    }
}
