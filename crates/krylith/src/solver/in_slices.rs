//! A system in slices, with a factor that is wide or narrow.

use super::choice::{Layout, Preconditioning};
use super::either::{Either, either};
use super::engine::{Engine, Site, Told, Workspace, as_matrix};
use super::log::Log;
use super::memory::Memory;
use crate::error::{SetupError, SolveError};
use crate::krylov::System;
use crate::matrix::Pattern;
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
    pub(super) m: AnySliced,
    pub(super) workspace: Workspace<Sliced, AnySliced>,
    pub(super) b: Vec<f64>,
    pub(super) x: Vec<f64>,
}

/// A in slices, and where its factor has its entries: the same, unless there is fill.
pub(super) struct InSlices {
    of_a: Arc<SlicedPattern>,
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
        let Some(a) = as_matrix(self.a) else { return no("A is not a matrix") };
        if !Arc::ptr_eq(a.pattern(), self.matrix.pattern()) {
            return no("the preconditioner is made from another matrix");
        }
        let shared = Arc::ptr_eq(a.pattern(), pattern);
        let found = match shared {
            true => SlicedPattern::find(pattern),
            false => SlicedPattern::find_for_factor(pattern),
        };
        let found = match found {
            Ok(found) if form.kind == Kind::Cholesky && !found.is_symmetric() => {
                return no("the pattern is not symmetric");
            }
            Ok(found) => Arc::new(found),
            Err(NotSliced::Unfit(error)) => return Err(error),
            Err(why) => return Ok(Err(why.to_string())),
        };
        if shared {
            return Ok(self.fits(InSlices { of_a: Arc::clone(&found), of_factor: found }));
        }
        if form.kind == Kind::Cholesky && !is_symmetric(a.pattern()) {
            return no("the pattern of A is not symmetric");
        }
        match found.part(a.pattern()) {
            Ok(of_a) => Ok(self.fits(InSlices { of_a: Arc::new(of_a), of_factor: found })),
            Err(NotSliced::Unfit(SetupError::MissingDiagonal { .. })) => no("the diagonal is not full"),
            Err(why) => no(&format!("of A in the order of its factor {why}")),
        }
    }

    /// Slices hold a copy of A: rows are taken where a limit of the caller's has no room for it.
    fn fits(&self, found: InSlices) -> Result<InSlices, String> {
        let memory = Memory::in_slices(&found.of_a, &found.of_factor, size_of::<f64>());
        if !self.has_room_for(memory.copy + memory.factor) {
            return Err("a copy of A in slices would exceed the limit of memory".into());
        }
        Ok(found)
    }
}

impl Slices {
    pub(super) fn build<S: Stored, A: LinearOperator<Space>>(
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
        let InSlices { of_a, of_factor } = found;
        let plan = || SlicedFactor::<S>::new(&of_factor, form, space.threads(), options.schedule);
        let mut m = AnySliced::from(log.analyzing(plan)?);
        let a = log.factoring(|| {
            let mut a = Sliced::zeros(&of_a);
            a.set(space, site.matrix).map(|()| a)
        })?;
        let shift = log.factor(options.recover, kind, 0.0, |shift| m.refactor(space, &a, shift))?;
        let n = of_a.positions();
        let workspace = Workspace::new(site.method, System { space, a: &a, m: &m })?;
        let (b, x) = (space.zeros(&n)?, space.zeros(&n)?);
        let memory = Memory::in_slices(&of_a, &of_factor, size_of::<S>());
        let vectors = memory.vectors(site.method);
        let extra = if Arc::ptr_eq(&of_a, &of_factor) { 0 } else { of_factor.bytes_besides(&of_a) };
        let told = Told {
            kind,
            nnz: m.nnz(),
            bytes: m.bytes() + extra,
            shift,
            schedule: Some(m.plans().map(|plan| plan.why().to_owned())),
            predicted: memory.copy + memory.factor + vectors,
            held: of_a.bytes() + extra + a.bytes() + m.bytes() + vectors,
            layout: memory.layout,
            ordering: String::new(),
        };
        Ok((Engine::Slices(Box::new(Slices { pattern: of_a, a, m, workspace, b, x })), told))
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
