//! Where vectors live: threads of this process, a device, the memory of many processes.
//!
//! Krylov methods are written against [`Space`] alone. They run the same on every implementation: the control flow stays
//! with the caller, and a vector is only ever touched through these operations. A space that spans processes is entered by
//! all of them together (each holds its own part of every vector); every reduction gives the same number everywhere, so the
//! processes take the same branches.

mod activity;
mod agree;
mod binned;
pub(crate) mod device_report;
mod extremes;
mod process;
mod threads;
mod updates;

pub use crate::simd::LANES;
pub(crate) use crate::team::cores;
pub use crate::team::{TeamStatistics, ThreadLimit, most_threads};
pub use activity::{Activity, Profile, Spent};
pub(crate) use agree::agree;
pub use binned::BinnedSum;
pub(crate) use device_report::DeviceReport;
pub use extremes::Extremes;
pub use process::Process;
pub(crate) use process::{from_first, gather, holds_everywhere, received};
pub use threads::Threads;
pub use updates::CHUNK;

use crate::error::BackendError;
use crate::scalar::{Real, Scalar};
use std::fmt::Debug;

/// How many products the default [`Space::basis_dots`] asks for at once.
const DOTS_AT_ONCE: usize = 16;

/// A place where vectors live, and the operations on them that Krylov methods need.
///
/// Sums do not depend on the order of their terms where they are made by [`BinnedSum`], as those of [`Threads`] are: the same vectors give the same
/// bits, whatever the number of threads, of processes, and wherever vectors are cut.
pub trait Space {
    /// What norms are.
    type Real: Real;
    /// What entries are.
    type Scalar: Scalar<Real = Self::Real>;
    /// A vector (this process's part of it, where there are several).
    type Vector;
    /// What must agree for two vectors to be added: a length; for many processes also who holds what.
    type Size: Clone + PartialEq + Debug + Send + Sync;

    /// A vector of zeros. The only operation that allocates.
    fn zeros(&self, size: &Self::Size) -> Result<Self::Vector, BackendError>;

    /// The size of a vector.
    fn size(&self, x: &Self::Vector) -> Self::Size;

    /// How many numbers of a vector this process holds.
    fn len(&self, size: &Self::Size) -> usize;

    /// How many numbers a vector has, those of all processes together.
    fn total(&self, size: &Self::Size) -> usize {
        self.len(size)
    }

    /// Copies numbers of this process's memory, as many as [`len`](Self::len) says, into a vector.
    fn upload(&self, from: &[Self::Scalar], to: &mut Self::Vector) -> Result<(), BackendError>;

    /// Copies what this process holds of a vector into its memory.
    fn download(&self, from: &Self::Vector, to: &mut [Self::Scalar]) -> Result<(), BackendError>;

    /// The largest and the smallest size of an entry, and the first entry that is not finite, in one synchronisation.
    fn extremes(&self, x: &Self::Vector) -> Result<Extremes<Self::Real>, BackendError>;

    /// Which of the processes that share the space this is. A space of several overrides this, [`exchange`](Self::exchange),
    /// [`first`](Self::first) and [`total`](Self::total) together.
    fn process(&self) -> Process {
        Process::ALONE
    }

    /// Sends words to every process, message k to process k, and returns what each has sent to this one, in their order. All call it
    /// together.
    fn exchange(&self, messages: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>, BackendError> {
        Ok(messages)
    }

    /// Of a place and a number from each process the one with the smallest place; `None` where nobody has one. So all of them
    /// know of the first bad pivot of anybody, and go on alike.
    fn first(&self, own: Option<(usize, Self::Real)>) -> Result<Option<(usize, Self::Real)>, BackendError> {
        Ok(own)
    }

    /// Whether the host waits for the space whenever it reads a result, as on a device: methods then ask for several at once, even where one
    /// of them may turn out not to be needed.
    fn reads_are_costly(&self) -> bool {
        false
    }

    /// Does some work of an iteration, whose time a space that is asked for a profile keeps apart.
    fn during<R>(&self, _activity: Activity, work: impl FnOnce() -> R) -> R {
        work()
    }

    /// x = a x.
    fn scale(&self, a: Self::Scalar, x: &mut Self::Vector) -> Result<(), BackendError>;

    /// x = a in every entry.
    fn fill(&self, a: Self::Scalar, x: &mut Self::Vector) -> Result<(), BackendError>;

    /// y = x.
    fn copy(&self, x: &Self::Vector, y: &mut Self::Vector) -> Result<(), BackendError>;

    /// y = a x + b y. With b = 0 the old y is not read, so it may hold anything.
    fn axpby(
        &self,
        a: Self::Scalar,
        x: &Self::Vector,
        b: Self::Scalar,
        y: &mut Self::Vector,
    ) -> Result<(), BackendError>;

    /// out\[k\] = xₖᴴ yₖ for every pair, in one synchronisation.
    fn dots(
        &self,
        pairs: &[(&Self::Vector, &Self::Vector)],
        out: &mut [Self::Scalar],
    ) -> Result<(), BackendError>;

    /// xᴴ y.
    fn dot(&self, x: &Self::Vector, y: &Self::Vector) -> Result<Self::Scalar, BackendError> {
        let mut out = [Self::Scalar::ZERO];
        self.dots(&[(x, y)], &mut out)?;
        Ok(out[0])
    }

    /// ‖x‖₂.
    fn norm(&self, x: &Self::Vector) -> Result<Self::Real, BackendError> {
        Ok(self.dot(x, x)?.real().sqrt())
    }

    /// out\[k\] = vₖᴴ y for every vector of a basis. A space that can do it in one synchronisation overrides this;
    /// here it takes one for every 16 vectors.
    fn basis_dots(
        &self,
        basis: &[Self::Vector],
        y: &Self::Vector,
        out: &mut [Self::Scalar],
    ) -> Result<(), BackendError> {
        for (vectors, results) in basis.chunks(DOTS_AT_ONCE).zip(out.chunks_mut(DOTS_AT_ONCE)) {
            let mut pairs = [(y, y); DOTS_AT_ONCE];
            for (pair, v) in pairs.iter_mut().zip(vectors) {
                *pair = (v, y);
            }
            self.dots(&pairs[..vectors.len()], results)?;
        }
        Ok(())
    }

    /// y += Σ cₖ vₖ, added one after the other.
    fn combine(
        &self,
        coefficients: &[Self::Scalar],
        basis: &[Self::Vector],
        y: &mut Self::Vector,
    ) -> Result<(), BackendError> {
        for (&c, v) in coefficients.iter().zip(basis) {
            self.axpby(c, v, Self::Scalar::ONE, y)?;
        }
        Ok(())
    }

    /// y += Σ cₖ vₖ, and then out\[k\] = vₖᴴ y for the same vectors and at last yᴴ y: one pass where a space overrides it; here
    /// one synchronisation for every 16 products.
    fn combine_dots(
        &self,
        coefficients: &[Self::Scalar],
        basis: &[Self::Vector],
        y: &mut Self::Vector,
        out: &mut [Self::Scalar],
    ) -> Result<(), BackendError> {
        self.combine(coefficients, basis, y)?;
        let y = &*y;
        let vector = |k: usize| basis.get(k).unwrap_or(y);
        for (round, results) in out[..=basis.len()].chunks_mut(DOTS_AT_ONCE).enumerate() {
            let pairs: [_; DOTS_AT_ONCE] = std::array::from_fn(|k| (vector(round * DOTS_AT_ONCE + k), y));
            self.dots(&pairs[..results.len()], results)?;
        }
        Ok(())
    }

    /// p = r + b (p − c v): the direction of BiCGStab, one pass where a space overrides it.
    fn bicgstab_direction(
        &self,
        r: &Self::Vector,
        b: Self::Scalar,
        c: Self::Scalar,
        v: &Self::Vector,
        p: &mut Self::Vector,
    ) -> Result<(), BackendError> {
        self.axpby(-c, v, Self::Scalar::ONE, p)?;
        self.axpby(Self::Scalar::ONE, r, b, p)
    }

    /// r += a t, and then rᴴr and wᴴr: one pass where a space overrides it.
    fn update_dots(
        &self,
        a: Self::Scalar,
        t: &Self::Vector,
        r: &mut Self::Vector,
        w: &Self::Vector,
    ) -> Result<[Self::Scalar; 2], BackendError> {
        self.axpby(a, t, Self::Scalar::ONE, r)?;
        let mut out = [Self::Scalar::ZERO; 2];
        self.dots(&[(&*r, &*r), (w, &*r)], &mut out)?;
        Ok(out)
    }

    /// r += a q, and rᴴr of the new r: one pass where a space overrides it.
    fn update_square(
        &self,
        a: Self::Scalar,
        q: &Self::Vector,
        r: &mut Self::Vector,
    ) -> Result<Self::Scalar, BackendError> {
        self.axpby(a, q, Self::Scalar::ONE, r)?;
        self.dot(r, r)
    }

    /// r += a q, and ‖r‖₂ of the new r.
    fn update_norm(
        &self,
        a: Self::Scalar,
        q: &Self::Vector,
        r: &mut Self::Vector,
    ) -> Result<Self::Real, BackendError> {
        Ok(self.update_square(a, q, r)?.real().sqrt())
    }

    /// x += a p, and then p = z + b p: the step of conjugate gradients and their next direction, one pass where a space overrides
    /// it.
    fn cg_direction(
        &self,
        a: Self::Scalar,
        z: &Self::Vector,
        b: Self::Scalar,
        p: &mut Self::Vector,
        x: &mut Self::Vector,
    ) -> Result<(), BackendError> {
        self.axpby(a, p, Self::Scalar::ONE, x)?;
        self.axpby(Self::Scalar::ONE, z, b, p)
    }
}

/// `Err(Size)` unless the two sizes agree.
pub fn require_same<L: PartialEq + Debug>(
    what: &'static str,
    left: &L,
    right: &L,
) -> Result<(), BackendError> {
    if left == right {
        Ok(())
    } else {
        Err(BackendError::Size { what, left: format!("{left:?}"), right: format!("{right:?}") })
    }
}
