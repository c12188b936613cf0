//! Vectors in this process's memory, operations on a team of threads.
#![allow(unsafe_code)]

use super::activity::{Activity, Clock, Profile};
use super::lanes::{self, CHUNK};
use super::{Extremes, Space, require_same};
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::scalar::Scalar;
use crate::team::{Lease, Member, Team, TeamStatistics, ThreadLimit, cores, limit_threads};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Dot products that one synchronisation can carry.
const DOTS: usize = 64;

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
    /// Sums of chunks, pair after pair; sized when vectors are made.
    sums: Mutex<Vec<T>>,
    clock: Arc<Clock>,
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
        Threads { team, requested, limit, sums: Mutex::new(Vec::new()), clock: Arc::default() }
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

    /// Room for the sums of `pairs` dot products of vectors of length `n`.
    fn sums(&self, n: usize, pairs: usize) -> MutexGuard<'_, Vec<T>> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = n.div_ceil(CHUNK) * pairs;
        if sums.len() < needed {
            sums.resize(needed, T::ZERO);
        }
        sums
    }

    /// Sums a function of every chunk, in the order of [`lanes::sum`]; members take equal numbers of chunks.
    pub(crate) fn sum_chunks(&self, n: usize, chunk: impl Fn(Range<usize>) -> T + Sync) -> T {
        self.sum_chunks_of(n, |member| member.part(n, CHUNK), chunk)
    }

    /// The same with another division: `divide` gives each member a range that begins at a multiple of [`CHUNK`].
    pub(crate) fn sum_chunks_of(
        &self,
        n: usize,
        divide: impl Fn(&Member<'_>) -> Range<usize> + Sync,
        chunk: impl Fn(Range<usize>) -> T + Sync,
    ) -> T {
        let [sum] = self.sums_of_chunks(n, divide, |range| [chunk(range)]);
        sum
    }

    /// The same for `K` functions at once.
    fn sums_of_chunks<const K: usize>(
        &self,
        n: usize,
        divide: impl Fn(&Member<'_>) -> Range<usize> + Sync,
        chunk: impl Fn(Range<usize>) -> [T; K] + Sync,
    ) -> [T; K] {
        let chunks = n.div_ceil(CHUNK);
        let mut sums = self.sums(n, K);
        {
            let parts = DisjointSlice::new(&mut sums[..K * chunks]);
            self.team.run(|member| {
                let own = divide(&member);
                for first in own.clone().step_by(CHUNK) {
                    for (k, sum) in chunk(first..(first + CHUNK).min(own.end)).into_iter().enumerate() {
                        // SAFETY: ranges begin at multiples of CHUNK and do not overlap, so each chunk has one member.
                        unsafe { parts.write(k * chunks + first / CHUNK, sum) };
                    }
                }
            });
        }
        std::array::from_fn(|k| lanes::sum(&sums[k * chunks..(k + 1) * chunks]))
    }

    /// Sums a function of every chunk of what the members write, each chunk as soon as it is written: `write` says of each piece, in
    /// ascending order without gaps, that it is there. So the pieces need not begin at multiples of [`CHUNK`]; the few chunks of which two
    /// members have written a part are summed at the end.
    ///
    /// # Safety
    /// `write` says of what it has written, and of nothing else, and no two members write the same place.
    pub(crate) unsafe fn sum_written(
        &self,
        n: usize,
        write: impl Fn(Member<'_>, &mut dyn FnMut(Range<usize>)) + Sync,
        chunk: impl Fn(Range<usize>) -> T + Sync,
    ) -> T {
        let chunks = n.div_ceil(CHUNK);
        let range_of = |index: usize| index * CHUNK..((index + 1) * CHUNK).min(n);
        let mut sums = self.sums(n, 2);
        let (sums, is_summed) = sums[..2 * chunks].split_at_mut(chunks);
        is_summed.fill(T::ZERO);
        {
            let (sums, is_summed) = (DisjointSlice::new(sums), DisjointSlice::new(is_summed));
            self.team.run(|member| {
                let mut next = None;
                write(member, &mut |written| {
                    let first = next.get_or_insert(written.start.div_ceil(CHUNK));
                    while *first < chunks && range_of(*first).end <= written.end {
                        // SAFETY: this member has written the whole chunk, and nobody else any of it.
                        unsafe {
                            sums.write(*first, chunk(range_of(*first)));
                            is_summed.write(*first, T::ONE);
                        }
                        *first += 1;
                    }
                });
            });
        }
        for index in (0..chunks).filter(|&index| is_summed[index] == T::ZERO) {
            sums[index] = chunk(range_of(index));
        }
        lanes::sum(sums)
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
        Ok(self.sums_of_chunks(n, in_parts, |range| {
            // SAFETY: every chunk is visited once, by one member.
            let (own_r, own_z) = unsafe { (r.get(range.clone()), z.get(range.clone())) };
            lanes::update_diagonal(a, &q[range.clone()], &d[range], own_r, own_z)
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
    type Layout = usize;

    fn zeros(&self, n: &usize) -> Result<Vec<T>, BackendError> {
        drop(self.sums(*n, DOTS));
        let mut x = vec![T::ZERO; *n];
        crate::huge::advise_huge_pages(&mut x);
        // The system gives untouched pages: each member is the first to write its own.
        self.fill(T::ZERO, &mut x)?;
        Ok(x)
    }

    fn layout(&self, x: &Vec<T>) -> usize {
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
            lanes::axpby(a, &x[part.clone()], b, unsafe { y.get(part) });
        });
        Ok(())
    }

    fn dots(&self, pairs: &[(&Vec<T>, &Vec<T>)], out: &mut [T]) -> Result<(), BackendError> {
        for (x, y) in pairs {
            require_same("dots", &x.len(), &y.len())?;
        }
        for (pairs, out) in pairs.chunks(DOTS).zip(out.chunks_mut(DOTS)) {
            self.sum_pairs(pairs.len(), |k| pairs[k], out);
        }
        Ok(())
    }

    fn basis_dots(&self, basis: &[Vec<T>], y: &Vec<T>, out: &mut [T]) -> Result<(), BackendError> {
        for v in basis {
            require_same("basis_dots", &v.len(), &y.len())?;
        }
        for (basis, out) in basis.chunks(DOTS).zip(out.chunks_mut(DOTS)) {
            self.sum_pairs(basis.len(), |k| (&basis[k], y), out);
        }
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
                    lanes::axpby(c, &v[range.clone()], T::ONE, y);
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
        if count >= DOTS {
            self.combine(coefficients, basis, y)?;
            self.basis_dots(basis, y, &mut out[..count])?;
            out[count] = self.dot(y, y)?;
            return Ok(());
        }
        for v in basis {
            require_same("combine_dots", &v.len(), &n)?;
        }
        let chunks = n.div_ceil(CHUNK);
        let mut sums = self.sums(n, count + 1);
        {
            let (y, parts) = (DisjointSlice::new(y), DisjointSlice::new(&mut sums[..chunks * (count + 1)]));
            self.team.run(|member| {
                // A chunk of the basis stays in cache from the updates to the products.
                for first in member.part(n, CHUNK).step_by(CHUNK) {
                    let range = first..(first + CHUNK).min(n);
                    // SAFETY: parts begin at multiples of CHUNK, so each chunk has one member.
                    let y = unsafe { y.get(range.clone()) };
                    for (&c, v) in coefficients.iter().zip(basis) {
                        lanes::axpby(c, &v[range.clone()], T::ONE, y);
                    }
                    for k in 0..=count {
                        let sum = match basis.get(k) {
                            Some(v) => lanes::dot(&v[range.clone()], y),
                            None => lanes::dot(y, y),
                        };
                        // SAFETY: as above, for each chunk of each product.
                        unsafe { parts.write(k * chunks + first / CHUNK, sum) };
                    }
                }
            });
        }
        for (k, out) in out[..=count].iter_mut().enumerate() {
            *out = lanes::sum(&sums[k * chunks..(k + 1) * chunks]);
        }
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
            lanes::bicgstab_direction(&r[part.clone()], b, c, &v[part.clone()], unsafe { p.get(part) });
        });
        Ok(())
    }

    fn update_dots(&self, a: T, t: &Vec<T>, r: &mut Vec<T>, w: &Vec<T>) -> Result<[T; 2], BackendError> {
        require_same("update_dots", &t.len(), &r.len())?;
        require_same("update_dots", &w.len(), &r.len())?;
        let n = r.len();
        let r = DisjointSlice::new(r);
        let in_parts = |member: &Member<'_>| member.part(n, CHUNK);
        Ok(self.sums_of_chunks(n, in_parts, |range| {
            // SAFETY: every chunk is visited once, by one member.
            let r = unsafe { r.get(range.clone()) };
            lanes::axpby(a, &t[range.clone()], T::ONE, r);
            [lanes::dot(r, r), lanes::dot(&w[range], r)]
        }))
    }

    fn update_square(&self, a: T, q: &Vec<T>, r: &mut Vec<T>) -> Result<T, BackendError> {
        require_same("update_square", &q.len(), &r.len())?;
        let n = r.len();
        let r = DisjointSlice::new(r);
        Ok(self.sum_chunks(n, |range| {
            let q = &q[range.clone()];
            // SAFETY: every chunk is visited once, by one member.
            let r = unsafe { r.get(range) };
            lanes::update_square(a, q, r)
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
            lanes::cg_direction(a, &z[part], b, p, x);
        });
        Ok(())
    }
}

impl<T: Scalar> Threads<T> {
    /// Up to [`DOTS`] dot products of one length each, in one synchronisation.
    fn sum_pairs<'v>(
        &self,
        count: usize,
        pair: impl Fn(usize) -> (&'v Vec<T>, &'v Vec<T>) + Sync,
        out: &mut [T],
    ) {
        let longest = (0..count).map(|k| pair(k).0.len()).max().unwrap_or(0);
        let chunks = longest.div_ceil(CHUNK);
        let mut sums = self.sums(longest, count);
        {
            let parts = DisjointSlice::new(&mut sums[..chunks * count]);
            self.team.run(|member| {
                for first in member.part(longest, CHUNK).step_by(CHUNK) {
                    for k in 0..count {
                        let (x, y) = pair(k);
                        let range = first.min(x.len())..(first + CHUNK).min(x.len());
                        let sum = lanes::dot(&x[range.clone()], &y[range]);
                        let place = k * chunks + first / CHUNK;
                        // SAFETY: parts begin at multiples of CHUNK, so each chunk of each pair has one member.
                        unsafe { parts.write(place, sum) };
                    }
                }
            });
        }
        for (k, out) in out.iter_mut().enumerate() {
            *out = lanes::sum(&sums[k * chunks..(k + 1) * chunks]);
        }
    }
}
