//! The one driver of incomplete factors, whatever their storage.
//!
//! A storage has kernels ([`Triangular`]) for a *unit* of its rows: a row, a range of slices, a piece of a grid. The driver has what all
//! have in common: a plan for each sweep, the team that runs along it, the mirror image of a symmetric factor, the first bad pivot, the
//! shift, and whether there is a factor. Elimination needs the rows before a row, as the forward sweep does, so it runs along the plan
//! of that sweep; its result does not depend on the plan. Of several bad pivots the smallest row is reported on any plan.
//!
//! Kernels are called statically: the driver adds nothing to a row.
#![allow(unsafe_code)]

use super::pivot::FirstBadPivot;
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::operator::{LinearOperator, Preconditioner, SplitSweeps};
use crate::scalar::Real;
use crate::schedule::SweepPlan;
use crate::space::{Threads, require_same};
use std::ops::Range;
use std::sync::Arc;

type Unit<K> = <<K as Triangular>::Plan as SweepPlan>::Unit;

/// Values of a factor in one storage, and the kernels for its units.
pub trait Triangular: Sync + Sized {
    /// What is computed with.
    type Scalar: Real;
    /// The storage of matrices that can be factored.
    type Source;
    /// How the sweeps are divided.
    type Plan: SweepPlan + 'static;
    /// What members share while they eliminate.
    type Elimination<'e>: Sync
    where
        Self: 'e;

    /// Numbers of a vector.
    fn len(&self) -> usize;

    /// `Err(PatternChanged)` unless the matrix is one that this factor was made for.
    fn require(&self, source: &Self::Source) -> Result<(), SetupError>;

    /// Takes what elimination needs of the matrix.
    fn begin<'e>(
        &'e mut self,
        source: &'e Self::Source,
        shift: f64,
        bad: &'e FirstBadPivot,
    ) -> Self::Elimination<'e>;

    /// Computes a unit: a bad pivot is left in the place of its inverse and its row reported.
    ///
    /// # Safety
    /// Each unit is computed once, after those that its lower triangle needs, which are visible to this thread.
    unsafe fn eliminate(elimination: &Self::Elimination<'_>, unit: Unit<Self>);

    /// Parts of the mirror image U = Lᵀ, if there is one, and how many at least are worth a member.
    fn mirror_parts(&self) -> Option<(usize, usize)> {
        None
    }

    /// Computes these parts of the mirror image.
    ///
    /// # Safety
    /// L is finished and visible; every part has one caller.
    unsafe fn mirror(_elimination: &Self::Elimination<'_>, _parts: Range<usize>) {}

    /// After an elimination without bad pivots.
    fn finished(&mut self, _source: &Self::Source) {}

    /// Lets go of what is shared with the matrix that was factored.
    fn release(&mut self) {}

    /// The bad pivot of a row.
    fn pivot(&self, row: usize) -> f64;

    /// z = (I + L)⁻¹ x for a unit.
    ///
    /// # Safety
    /// x and z have [`len`](Self::len) numbers; each unit is computed once, after those that it needs.
    unsafe fn forward(&self, unit: Unit<Self>, x: *const Self::Scalar, z: *mut Self::Scalar);

    /// z = (I + U)⁻¹ D⁻¹ z for a unit, in place.
    ///
    /// # Safety
    /// As above; the forward sweep is finished.
    unsafe fn backward(&self, unit: Unit<Self>, z: *mut Self::Scalar);

    /// For a factor without triangles: the parts of a vector, and how many at least are worth a member.
    fn diagonal_parts(&self) -> Option<(usize, usize)> {
        None
    }

    /// z = D⁻¹ x for these parts.
    ///
    /// # Safety
    /// x and z have [`len`](Self::len) numbers; every part has one caller.
    unsafe fn scale(&self, _parts: Range<usize>, _x: *const Self::Scalar, _z: *mut Self::Scalar) {}

    /// Entries of the factor; of a symmetric one those of L and D.
    fn nnz(&self) -> usize;

    /// Bytes of the values and of indices that are not shared.
    fn bytes(&self) -> usize;

    /// Sweeps without products, where the factor may have the triangles of its source.
    fn split_sweeps(_factor: &Factor<Self>) -> Option<&dyn SplitSweeps<Threads<Self::Scalar>, Self::Source>> {
        None
    }
}

/// The plans of the forward and the backward sweep.
#[derive(Debug)]
pub struct Plans<P> {
    pub(crate) down: P,
    pub(crate) up: P,
}

/// An incomplete factor: a preconditioner.
#[derive(Debug)]
pub struct Factor<K: Triangular> {
    kernels: K,
    plans: Arc<Plans<K::Plan>>,
    shift: f64,
    /// There is a factor.
    ready: bool,
    /// Progress of `refactor`, which runs along the plan of the forward sweep.
    refactoring: <K::Plan as SweepPlan>::Scratch,
}

/// Progress of both sweeps.
#[derive(Debug)]
pub struct FactorScratch<P: SweepPlan> {
    down: P::Scratch,
    up: P::Scratch,
}

impl<K: Triangular> Factor<K> {
    /// Room for a factor: `refactor` comes before its use.
    pub(crate) fn with_room(kernels: K, plans: Arc<Plans<K::Plan>>) -> Self {
        let refactoring = plans.down.scratch();
        Factor { kernels, plans, shift: 0.0, ready: false, refactoring }
    }

    /// A factor whose values are there already.
    pub(crate) fn computed(kernels: K, plans: Arc<Plans<K::Plan>>) -> Self {
        Factor { ready: true, ..Self::with_room(kernels, plans) }
    }

    /// The values are there now.
    pub(super) fn set_computed(&mut self) {
        self.ready = true;
    }

    pub(crate) fn kernels(&self) -> &K {
        &self.kernels
    }

    pub(crate) fn kernels_mut(&mut self) -> &mut K {
        &mut self.kernels
    }

    pub(crate) fn plans(&self) -> &Plans<K::Plan> {
        &self.plans
    }

    /// Entries of L, D and U; of a symmetric factor those of L and D.
    pub fn nnz(&self) -> usize {
        self.kernels.nnz()
    }

    /// Bytes of the factor and its plans.
    pub fn bytes(&self) -> usize {
        self.kernels.bytes() + self.plans.down.bytes() + self.plans.up.bytes()
    }

    /// How the forward and the backward sweep are divided on a team of `threads`, and why.
    pub fn schedule(&self, threads: usize) -> [String; 2] {
        [self.plans.down.reason(threads), self.plans.up.reason(threads)]
    }

    pub(crate) fn require_ready(&self) -> Result<(), BackendError> {
        match self.ready {
            true => Ok(()),
            false => Err(BackendError::Failed { what: "there is no factor".into() }),
        }
    }
}

impl<K: Triangular> LinearOperator<Threads<K::Scalar>> for Factor<K> {
    type Scratch = FactorScratch<K::Plan>;

    fn domain(&self) -> usize {
        self.kernels.len()
    }

    fn range(&self) -> usize {
        self.kernels.len()
    }

    fn scratch(&self, _: &Threads<K::Scalar>) -> Result<Self::Scratch, BackendError> {
        Ok(FactorScratch { down: self.plans.down.scratch(), up: self.plans.up.scratch() })
    }

    fn apply(
        &self,
        space: &Threads<K::Scalar>,
        x: &Vec<K::Scalar>,
        z: &mut Vec<K::Scalar>,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.require_ready()?;
        let (kernels, n) = (&self.kernels, self.kernels.len());
        require_same("x and the factor", &x.len(), &n)?;
        require_same("z and the factor", &z.len(), &n)?;
        let (x, z) = (x.as_slice(), DisjointSlice::new(z));
        if let Some((parts, grain)) = kernels.diagonal_parts() {
            space.team().run(|member| {
                // SAFETY: lengths were checked; the parts of the members do not overlap.
                unsafe { kernels.scale(member.part(parts, grain), x.as_ptr(), z.as_mut_ptr()) };
            });
            return Ok(());
        }
        let down = self.plans.down.begin(&mut scratch.down, space.threads());
        let up = self.plans.up.begin(&mut scratch.up, space.threads());
        space.team().run(|member| {
            K::Plan::for_each_ready(down, &member, |unit| {
                // SAFETY: lengths were checked; the plan visits each unit once, after those that it needs.
                unsafe { kernels.forward(unit, x.as_ptr(), z.as_mut_ptr()) };
            });
            member.barrier();
            K::Plan::for_each_ready(up, &member, |unit| {
                // SAFETY: as above; the forward sweep ended at the barrier.
                unsafe { kernels.backward(unit, z.as_mut_ptr()) };
            });
        });
        Ok(())
    }
}

impl<K: Triangular> Preconditioner<Threads<K::Scalar>, K::Source> for Factor<K> {
    fn refactor(&mut self, space: &Threads<K::Scalar>, a: &K::Source) -> Result<(), SetupError> {
        self.kernels.require(a)?;
        self.ready = false;
        let (bad, mirror) = (FirstBadPivot::default(), self.kernels.mirror_parts());
        let run = self.plans.down.begin(&mut self.refactoring, space.threads());
        {
            let elimination = self.kernels.begin(a, self.shift, &bad);
            space.team().run(|member| {
                // SAFETY: the plan visits each unit once, after those that it needs.
                K::Plan::for_each_ready(run, &member, |unit| unsafe { K::eliminate(&elimination, unit) });
                if let Some((parts, grain)) = mirror {
                    member.barrier();
                    // SAFETY: the parts of the members do not overlap; L is finished since the barrier.
                    unsafe { K::mirror(&elimination, member.part(parts, grain)) };
                }
            });
        }
        bad.into_result(|row| self.kernels.pivot(row))?;
        self.kernels.finished(a);
        self.ready = true;
        Ok(())
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.shift = shift;
        true
    }

    fn release(&mut self) {
        self.ready = false;
        self.kernels.release();
    }

    fn entries(&self) -> usize {
        self.nnz()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<Threads<K::Scalar>, K::Source>> {
        K::split_sweeps(self)
    }
}
