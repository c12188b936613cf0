//! Vectors in this process's memory, operations on a team of threads.
#![allow(unsafe_code)]

use super::activity::{Activity, Clock, Profile};
use super::updates::{self, CHUNK};
use super::{BinnedSum, Extremes, Space, require_same};
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::scalar::Scalar;
use crate::team::{Lease, Member, Team, TeamStatistics, ThreadLimit, cores, limit_threads};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sums of a member for which there is room from the beginning.
const SUMS: usize = 64;

/// The space of vectors on threads of this process.
///
/// The threads belong to this space alone: they are hot while operations follow each other and asleep otherwise. Two solves at
/// the same time use a space each; sharing one is correct, but the second caller then works alone.
///
/// Beside other programs that use the cores, operations run on fewer threads for a while where that is faster. Results have the
/// same bits on any number of threads; [`statistics`](Self::statistics) says how many there were.
///
/// ```
/// use krylith::space::{Space, Threads};
/// let space = Threads::<f64>::new(2);
/// let (x, mut y) = (vec![1.0; 1000], vec![2.0; 1000]);
/// space.axpby(3.0, &x, 1.0, &mut y)?;
/// assert_eq!(space.dot(&x, &y)?, 5000.0);
/// # Ok::<(), krylith::BackendError>(())
/// ```
pub struct Threads<T = f64> {
    team: Lease,
    requested: usize,
    limit: Option<ThreadLimit>,
    /// The sums of each member.
    sums: Mutex<Vec<BinnedSum>>,
    clock: Arc<Clock>,
    numbers: PhantomData<fn() -> T>,
}

impl<T: Scalar> Threads<T> {
    /// A space with this many threads, the caller's included; at most 4 per core, or 8 if that is more.
    pub fn new(threads: usize) -> Self {
        Self::with_limit(threads, limit_threads(threads, None))
    }

    /// A space for systems of this many rows: in addition at most one thread per 32 rows.
    ///
    /// ```
    /// use krylith::space::{Threads, ThreadLimit};
    /// let space = Threads::<f64>::for_rows(70_000, 40);
    /// assert_eq!(space.threads(), 1);
    /// assert_eq!(space.statistics().limit, Some(ThreadLimit::Rows));
    /// ```
    pub fn for_rows(threads: usize, rows: usize) -> Self {
        Self::with_limit(threads, limit_threads(threads, Some(rows)))
    }

    /// A space with one thread per core.
    pub fn all_cores() -> Self {
        Self::new(cores())
    }

    fn with_limit(requested: usize, (size, limit): (usize, Option<ThreadLimit>)) -> Self {
        let team = Lease::new(size);
        let limit = if team.size() < size { Some(ThreadLimit::System) } else { limit };
        let sums = Mutex::new(Vec::with_capacity(SUMS * team.size()));
        Threads { team, requested, limit, sums, clock: Arc::default(), numbers: PhantomData }
    }

    /// Threads that were started, the caller's included.
    pub fn threads(&self) -> usize {
        self.team.size()
    }

    /// How many threads there are, and how many of them ran the operations since the last reset.
    pub fn statistics(&self) -> TeamStatistics {
        let history = self.team.history();
        TeamStatistics {
            requested: self.requested,
            started: self.team.size(),
            limit: self.limit,
            operations: history.operations(),
            operations_with_fewer: history.with_fewer(),
            least_members: history.least_members(),
            shrinks: history.shrinks(),
        }
    }

    /// Counts operations from zero, at the start of a solve.
    pub fn reset_statistics(&self) {
        self.team.history().reset();
    }

    /// As many threads for numbers of another type. Their work is part of this space's profile.
    pub(crate) fn for_numbers<U: Scalar>(&self) -> Threads<U> {
        Threads { clock: Arc::clone(&self.clock), ..Threads::new(self.threads()) }
    }

    /// Measures from now on where the seconds of iterations go, or no longer does.
    pub(crate) fn restart_profile(&self, on: bool) {
        self.clock.restart(on);
    }

    pub(crate) fn profile(&self) -> Option<Profile> {
        self.clock.profile()
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// `count` sums: `work` visits every term once, each member its own, and adds it to the sums that it is given.
    fn sum_by_members(
        &self,
        count: usize,
        work: impl Fn(Member<'_>, &mut [BinnedSum]) + Sync,
    ) -> MutexGuard<'_, Vec<BinnedSum>> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.clear();
        sums.resize(count * self.team.size(), BinnedSum::new());
        {
            let parts = DisjointSlice::new(&mut sums);
            self.team.run(|member| {
                let first = count * member.rank();
                // SAFETY: each member has sums of its own.
                work(member, unsafe { parts.get(first..first + count) });
            });
        }
        let (all, others) = sums.split_at_mut(count);
        for other in others.chunks(count) {
            all.iter_mut().zip(other).for_each(|(all, other)| all.add_sum(other));
        }
        sums
    }

    /// `K` sums over 0..n: `divide` gives each member a range, of which `chunk` adds one piece after the other, of at most [`CHUNK`] places.
    pub(crate) fn sums_over<const K: usize>(
        &self,
        n: usize,
        divide: impl Fn(&Member<'_>) -> Range<usize> + Sync,
        chunk: impl Fn(Range<usize>, &mut [BinnedSum; K]) + Sync,
    ) -> [T; K] {
        let sums = self.sum_by_members(K, |member, sums| {
            let own = divide(&member);
            debug_assert!(own.end <= n);
            let mut local = [BinnedSum::new(); K];
            for first in own.clone().step_by(CHUNK) {
                chunk(first..(first + CHUNK).min(own.end), &mut local);
            }
            sums.copy_from_slice(&local);
        });
        std::array::from_fn(|k| sums[k].value())
    }

    /// The sum of a function of pieces of 0..n; members take equal parts.
    pub(crate) fn sum_chunks(&self, n: usize, chunk: impl Fn(Range<usize>, &mut BinnedSum) + Sync) -> T {
        let [sum] = self.sums_over(n, |member| member.part(n, CHUNK), |range, [sum]| chunk(range, sum));
        sum
    }

    /// The sum over 0..n of what `chunk` makes of every [`CHUNK`] places.
    pub(crate) fn sum_of(&self, n: usize, chunk: impl Fn(Range<usize>) -> T + Sync) -> T {
        self.sum_chunks(n, |range, sum| sum.add_terms(&[chunk(range)]))
    }

    /// Σ conj(xₖ) yₖ of what the members write, summed while it is in cache: `write` says of each piece that it is
    /// there, and `products` adds those of a range.
    ///
    /// # Safety
    /// `write` says of what it has written, and of nothing else, and no two members write the same place.
    pub(crate) unsafe fn sum_written(
        &self,
        write: impl Fn(Member<'_>, &mut dyn FnMut(Range<usize>)) + Sync,
        products: impl Fn(Range<usize>, &mut BinnedSum) + Sync,
    ) -> T {
        let sums = self.sum_by_members(1, |member, sums| {
            let (mut waiting, sum) = (0..0, &mut sums[0]);
            write(member, &mut |written| {
                if waiting.end != written.start {
                    products(waiting.clone(), sum);
                    waiting.start = written.start;
                }
                waiting.end = written.end;
                if waiting.len() >= CHUNK {
                    products(waiting.clone(), sum);
                    waiting.start = waiting.end;
                }
            });
            products(waiting, sum);
        });
        sums[0].value()
    }

    /// r += a q and z = d r entry by entry, and then rᴴr and rᴴz, in one pass.
    pub(crate) fn update_diagonal(
        &self,
        (a, q): (T, &[T]),
        d: &[T],
        r: &mut [T],
        z: &mut [T],
    ) -> Result<[T; 2], BackendError> {
        let n = r.len();
        require_same("q and the diagonal", &q.len(), &d.len())?;
        require_same("r and the diagonal", &n, &d.len())?;
        require_same("z and the diagonal", &z.len(), &d.len())?;
        let (r, z) = (DisjointSlice::new(r), DisjointSlice::new(z));
        let in_parts = |member: &Member<'_>| member.part(n, CHUNK);
        Ok(self.sums_over(n, in_parts, |range, sums| {
            // SAFETY: every chunk is visited once, by one member.
            let own = unsafe { (r.get(range.clone()), z.get(range.clone())) };
            updates::update_diagonal(a, &q[range.clone()], &d[range], own, sums);
        }))
    }
}

impl<T: Scalar> Threads<T> {
    fn copy_slice(&self, x: &[T], y: &mut [T]) {
        let y = DisjointSlice::new(y);
        self.team.run(|member| {
            let part = member.part(x.len(), CHUNK);
            // SAFETY: the parts of the members do not overlap.
            unsafe { y.get(part.clone()) }.copy_from_slice(&x[part]);
        });
    }
}

impl<T: Scalar> Space for Threads<T> {
    type Real = T::Real;
    type Scalar = T;
    type Vector = Vec<T>;
    type Size = usize;

    fn zeros(&self, n: &usize) -> Result<Vec<T>, BackendError> {
        let mut x = vec![T::ZERO; *n];
        crate::memory::large_pages::advise_huge_pages(&mut x);
        // The system gives untouched pages: each member is the first to write its own.
        self.fill(T::ZERO, &mut x)?;
        Ok(x)
    }

    fn size(&self, x: &Vec<T>) -> usize {
        x.len()
    }

    fn len(&self, n: &usize) -> usize {
        *n
    }

    fn upload(&self, from: &[T], to: &mut Vec<T>) -> Result<(), BackendError> {
        require_same("upload", &from.len(), &to.len())?;
        self.copy_slice(from, to);
        Ok(())
    }

    fn download(&self, from: &Vec<T>, to: &mut [T]) -> Result<(), BackendError> {
        require_same("download", &from.len(), &to.len())?;
        self.copy_slice(from, to);
        Ok(())
    }

    fn extremes(&self, x: &Vec<T>) -> Result<Extremes<T::Real>, BackendError> {
        Ok(self.extremes_of(x))
    }

    fn during<R>(&self, activity: Activity, work: impl FnOnce() -> R) -> R {
        self.clock.during(activity, work)
    }

    fn scale(&self, a: T, x: &mut Vec<T>) -> Result<(), BackendError> {
        let n = x.len();
        let x = DisjointSlice::new(x);
        self.team.run(|member| {
            // SAFETY: the parts of the members do not overlap.
            unsafe { x.get(member.part(n, CHUNK)) }.iter_mut().for_each(|x| *x *= a);
        });
        Ok(())
    }

    fn fill(&self, a: T, x: &mut Vec<T>) -> Result<(), BackendError> {
        let n = x.len();
        let x = DisjointSlice::new(x);
        self.team.run(|member| {
            // SAFETY: the parts of the members do not overlap.
            unsafe { x.get(member.part(n, CHUNK)) }.fill(a);
        });
        Ok(())
    }

    fn copy(&self, x: &Vec<T>, y: &mut Vec<T>) -> Result<(), BackendError> {
        require_same("copy", &x.len(), &y.len())?;
        self.copy_slice(x, y);
        Ok(())
    }

    fn axpby(&self, a: T, x: &Vec<T>, b: T, y: &mut Vec<T>) -> Result<(), BackendError> {
        require_same("axpby", &x.len(), &y.len())?;
        let y = DisjointSlice::new(y);
        self.team.run(|member| {
            let part = member.part(x.len(), CHUNK);
            // SAFETY: the parts of the members do not overlap.
            updates::axpby(a, &x[part.clone()], b, unsafe { y.get(part) });
        });
        Ok(())
    }

    fn dots(&self, pairs: &[(&Vec<T>, &Vec<T>)], out: &mut [T]) -> Result<(), BackendError> {
        for (x, y) in pairs {
            require_same("dots", &x.len(), &y.len())?;
        }
        let sums = self.sum_pairs(pairs.len(), |k| pairs[k]);
        out.iter_mut().zip(&*sums).for_each(|(out, sum)| *out = sum.value());
        Ok(())
    }

    fn basis_dots(&self, basis: &[Vec<T>], y: &Vec<T>, out: &mut [T]) -> Result<(), BackendError> {
        for v in basis {
            require_same("basis_dots", &v.len(), &y.len())?;
        }
        let sums = self.sum_pairs(basis.len(), |k| (&basis[k], y));
        out.iter_mut().zip(&*sums).for_each(|(out, sum)| *out = sum.value());
        Ok(())
    }

    fn combine(&self, coefficients: &[T], basis: &[Vec<T>], y: &mut Vec<T>) -> Result<(), BackendError> {
        for v in basis {
            require_same("combine", &v.len(), &y.len())?;
        }
        let n = y.len();
        let y = DisjointSlice::new(y);
        self.team.run(|member| {
            let own = member.part(n, CHUNK);
            // A chunk of y stays in cache while all vectors are added to it.
            for first in own.clone().step_by(CHUNK) {
                let range = first..(first + CHUNK).min(n);
                // SAFETY: the parts of the members do not overlap.
                let y = unsafe { y.get(range.clone()) };
                for (&c, v) in coefficients.iter().zip(basis) {
                    updates::axpby(c, &v[range.clone()], T::ONE, y);
                }
            }
        });
        Ok(())
    }

    fn combine_dots(
        &self,
        coefficients: &[T],
        basis: &[Vec<T>],
        y: &mut Vec<T>,
        out: &mut [T],
    ) -> Result<(), BackendError> {
        let (count, n) = (basis.len(), y.len());
        for v in basis {
            require_same("combine_dots", &v.len(), &n)?;
        }
        let y = DisjointSlice::new(y);
        let sums = self.sum_by_members(count + 1, |member, sums| {
            // A chunk of the basis stays in cache from the updates to the products.
            for first in member.part(n, CHUNK).step_by(CHUNK) {
                let range = first..(first + CHUNK).min(n);
                // SAFETY: parts begin at multiples of CHUNK, so each chunk has one member.
                let y = unsafe { y.get(range.clone()) };
                for (&c, v) in coefficients.iter().zip(basis) {
                    updates::axpby(c, &v[range.clone()], T::ONE, y);
                }
                let (last, others) =
                    sums.split_last_mut().unwrap_or_else(|| unreachable!("one more than vectors"));
                others.iter_mut().zip(basis).for_each(|(sum, v)| sum.add_products(&v[range.clone()], y));
                last.add_products(y, y);
            }
        });
        out[..=count].iter_mut().zip(&*sums).for_each(|(out, sum)| *out = sum.value());
        Ok(())
    }

    fn bicgstab_direction(
        &self,
        r: &Vec<T>,
        b: T,
        c: T,
        v: &Vec<T>,
        p: &mut Vec<T>,
    ) -> Result<(), BackendError> {
        require_same("bicgstab_direction", &r.len(), &p.len())?;
        require_same("bicgstab_direction", &v.len(), &p.len())?;
        let p = DisjointSlice::new(p);
        self.team.run(|member| {
            let part = member.part(r.len(), CHUNK);
            // SAFETY: the parts of the members do not overlap.
            updates::bicgstab_direction(&r[part.clone()], b, c, &v[part.clone()], unsafe { p.get(part) });
        });
        Ok(())
    }

    fn update_dots(&self, a: T, t: &Vec<T>, r: &mut Vec<T>, w: &Vec<T>) -> Result<[T; 2], BackendError> {
        require_same("update_dots", &t.len(), &r.len())?;
        require_same("update_dots", &w.len(), &r.len())?;
        let n = r.len();
        let r = DisjointSlice::new(r);
        let in_parts = |member: &Member<'_>| member.part(n, CHUNK);
        Ok(self.sums_over(n, in_parts, |range, [square, product]| {
            // SAFETY: every chunk is visited once, by one member.
            let r = unsafe { r.get(range.clone()) };
            updates::update_square(a, &t[range.clone()], r, square);
            product.add_products(&w[range], r);
        }))
    }

    fn update_square(&self, a: T, q: &Vec<T>, r: &mut Vec<T>) -> Result<T, BackendError> {
        require_same("update_square", &q.len(), &r.len())?;
        let n = r.len();
        let r = DisjointSlice::new(r);
        Ok(self.sum_chunks(n, |range, sum| {
            let q = &q[range.clone()];
            // SAFETY: every chunk is visited once, by one member.
            let r = unsafe { r.get(range) };
            updates::update_square(a, q, r, sum);
        }))
    }

    fn cg_direction(
        &self,
        a: T,
        z: &Vec<T>,
        b: T,
        p: &mut Vec<T>,
        x: &mut Vec<T>,
    ) -> Result<(), BackendError> {
        require_same("cg_direction", &z.len(), &p.len())?;
        require_same("cg_direction", &x.len(), &p.len())?;
        let (p, x) = (DisjointSlice::new(p), DisjointSlice::new(x));
        self.team.run(|member| {
            let part = member.part(z.len(), CHUNK);
            // SAFETY: the parts of the members do not overlap.
            let (p, x) = unsafe { (p.get(part.clone()), x.get(part.clone())) };
            updates::cg_direction(a, &z[part], b, p, x);
        });
        Ok(())
    }
}

impl<T: Scalar> Threads<T> {
    /// Dot products in one synchronisation.
    fn sum_pairs<'v>(
        &self,
        count: usize,
        pair: impl Fn(usize) -> (&'v Vec<T>, &'v Vec<T>) + Sync,
    ) -> MutexGuard<'_, Vec<BinnedSum>> {
        let longest = (0..count).map(|k| pair(k).0.len()).max().unwrap_or(0);
        self.sum_by_members(count, |member, sums| {
            for first in member.part(longest, CHUNK).step_by(CHUNK) {
                for (k, sum) in sums.iter_mut().enumerate() {
                    let (x, y) = pair(k);
                    let range = first.min(x.len())..(first + CHUNK).min(x.len());
                    sum.add_products(&x[range.clone()], &y[range]);
                }
            }
        })
    }
}
