//! Vectors on a device.
//!
//! Every update is one launch, and every reduction one launch for each 4 pairs or 32 vectors of a basis, and one copy of the pieces of all
//! sums to the host, which adds them. A piece is the [`BinnedSum`] of a chunk of [`CHUNK`] entries, or on GPUs of what a group of 256 items
//! strides over. So sums of the same terms have the bits of threads on every device.
#![allow(unsafe_code)]

use crate::device::{Argument, Buffer, Counts, Device, DeviceScalar, Queue, Value, values};
use crate::driver::Shape;
use crate::program::{GROUP_SIZE, Kernel, KernelShape, MANY, PAIRS};
use krylith::BackendError;
use krylith::space::{Activity, BinnedSum, CHUNK, Extremes, Space, Threads, require_same};
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sums that one copy to the host carries.
const SUMS: usize = 72;
/// Words of a piece: those of [`BinnedSum::to_words`].
const WORDS: usize = 5;
/// Groups that stride over a vector, at most, unless an item had more than [`CHUNK`] entries.
const GROUPS: usize = 1024;

/// A vector on a device.
pub type DeviceVector<T> = Buffer<T>;

/// The space of vectors on a device, with a queue of its own. Several solves at the same time use a space each.
///
/// ```no_run
/// use krylith::space::Space;
/// use krylith_gpu::{Device, DeviceOptions, DeviceSpace};
/// let device = Device::open(&"opencl".parse()?, DeviceOptions::default())?;
/// let space = DeviceSpace::<f64>::new(&device)?;
/// let mut x = space.zeros(&1000)?;
/// space.fill(2.0, &mut x)?;
/// assert_eq!(space.dot(&x, &x)?, 4000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceSpace<T: DeviceScalar> {
    queue: Queue,
    pieces: Mutex<Pieces>,
    host: Threads<f64>,
    numbers: PhantomData<fn() -> T>,
}

/// Where pieces of sums are, sized when vectors are made.
struct Pieces {
    device: Option<Buffer<u64>>,
    host: Vec<u64>,
}

impl<T: DeviceScalar> DeviceSpace<T> {
    /// A space on this device. Compiles the kernels, or finds them on disk.
    pub fn new(device: &Device) -> Result<Self, BackendError> {
        Self::with_host(device, Threads::all_cores())
    }

    /// The same with this many threads of the host.
    pub fn with_threads(device: &Device, threads: usize) -> Result<Self, BackendError> {
        Self::with_host(device, Threads::new(threads))
    }

    fn with_host(device: &Device, host: Threads<f64>) -> Result<Self, BackendError> {
        let queue = Queue::new(device, T::DOUBLE)?;
        let pieces = Mutex::new(Pieces { device: None, host: Vec::new() });
        Ok(DeviceSpace { queue, pieces, host, numbers: PhantomData })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.queue.device()
    }

    /// What was done since the last [`reset_counts`](Self::reset_counts).
    pub fn counts(&self) -> Result<Counts, BackendError> {
        self.queue.counts()
    }

    /// Counts from zero.
    pub fn reset_counts(&self) -> Result<(), BackendError> {
        self.queue.reset_counts()
    }

    /// Waits for all work.
    pub fn finish(&self) -> Result<(), BackendError> {
        self.queue.finish()
    }

    /// On a checked device: an error if a kernel has touched what is outside of a buffer, or the guard words of this vector have changed.
    pub fn verify(&self, x: &Buffer<T>) -> Result<(), BackendError> {
        self.queue.verify_accesses()?;
        self.queue.verify_guards(x)
    }

    /// Threads of the host, for work on its matrices.
    pub fn threads(&self) -> &Threads<f64> {
        &self.host
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The shape of a launch that visits every entry of a vector; a sum over it has as many pieces as there are groups.
    pub(crate) fn over(&self, n: usize) -> Shape {
        match self.device().shape() {
            KernelShape::Cpu => Shape { groups: n.div_ceil(CHUNK), items: 1 },
            KernelShape::Gpu => {
                let most = GROUPS.max(n.div_ceil(GROUP_SIZE * CHUNK));
                Shape { groups: n.div_ceil(GROUP_SIZE).min(most), items: GROUP_SIZE }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for the pieces of [`SUMS`] sums over vectors of length `n`.
    fn reserve(&self, n: usize) -> Result<(), BackendError> {
        let needed = self.over(n).groups * SUMS * WORDS;
        let mut pieces = self.lock();
        if pieces.host.len() < needed || pieces.device.is_none() {
            pieces.device = None;
            pieces.host.clear();
            pieces.device = Some(self.queue.allocate(needed)?);
            pieces.host.resize(needed, 0);
        }
        Ok(())
    }

    /// Launches what fills the pieces of `out.len()` sums over vectors of length `n`, and adds them up.
    pub(crate) fn sum(
        &self,
        n: usize,
        out: &mut [T],
        launch: impl FnOnce(&Buffer<u64>, Shape, u64) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        debug_assert!(out.len() <= SUMS);
        let shape = self.over(n);
        let count = shape.groups;
        if count == 0 || out.is_empty() {
            out.fill(T::ZERO);
            return Ok(());
        }
        // Vectors of another space on the same device may be longer than those of this one.
        self.reserve(n)?;
        let mut pieces = self.lock();
        let Pieces { device: Some(device), host } = &mut *pieces else {
            return Err(BackendError::Failed { what: "there is no room for the pieces of sums".into() });
        };
        launch(device, shape, count as u64)?;
        let host = &mut host[..WORDS * count * out.len()];
        self.queue.download(device, host)?;
        let not_a_sum = || BackendError::Failed { what: "the pieces of a sum are no sums".into() };
        for (pieces, out) in host.as_chunks().0.chunks(count).zip(out) {
            let mut sum = BinnedSum::new();
            for piece in pieces {
                sum.add_sum(&BinnedSum::from_words(*piece).ok_or_else(not_a_sum)?);
            }
            *out = sum.value();
        }
        Ok(())
    }
}

/// `Err(Size)` unless the vectors have one length.
fn same<T>(what: &'static str, x: &Buffer<T>, y: &Buffer<T>) -> Result<(), BackendError> {
    require_same(what, &x.len(), &y.len())
}

impl<T: DeviceScalar> Space for DeviceSpace<T> {
    type Real = T;
    type Scalar = T;
    type Vector = Buffer<T>;
    type Size = usize;

    fn zeros(&self, n: &usize) -> Result<Buffer<T>, BackendError> {
        self.reserve(*n)?;
        let mut x = self.queue.allocate(*n)?;
        self.fill(T::ZERO, &mut x)?;
        Ok(x)
    }

    fn size(&self, x: &Buffer<T>) -> usize {
        x.len()
    }

    fn len(&self, n: &usize) -> usize {
        *n
    }

    fn upload(&self, from: &[T], to: &mut Buffer<T>) -> Result<(), BackendError> {
        self.queue.upload(from, to)
    }

    fn download(&self, from: &Buffer<T>, to: &mut [T]) -> Result<(), BackendError> {
        require_same("download", &from.len(), &to.len())?;
        self.queue.download(from, to)
    }

    fn extremes(&self, x: &Buffer<T>) -> Result<Extremes<T>, BackendError> {
        let (n, count) = (x.len(), x.len().div_ceil(CHUNK));
        let (sizes, places) = (self.queue.allocate::<T>(2 * count)?, self.queue.allocate::<u64>(count)?);
        let shape = match self.device().shape() {
            KernelShape::Cpu => Shape { groups: count, items: 1 },
            KernelShape::Gpu => Shape { groups: count.div_ceil(GROUP_SIZE), items: GROUP_SIZE },
        };
        let values = values![x, &sizes, &places, count as u64, n as u64];
        // SAFETY: the kernel's parameters; two sizes and one place per chunk.
        unsafe { self.queue.launch(Kernel::Extremes, shape, &values)? };
        let (mut found, mut bad) = (vec![T::ZERO; 2 * count], vec![0; count]);
        self.queue.download(&sizes, &mut found)?;
        self.queue.download(&places, &mut bad)?;
        let (mut largest, mut least) = (T::ZERO, T::from_f64(f64::INFINITY));
        for size in found.as_chunks::<2>().0 {
            largest = if size[0] > largest { size[0] } else { largest };
            least = if size[1] != T::ZERO && size[1] < least { size[1] } else { least };
        }
        let not_finite = match bad.into_iter().min().filter(|&place| place < n as u64) {
            Some(place) => {
                let mut all = vec![T::ZERO; n];
                self.queue.download(x, &mut all)?;
                Some((place as usize, all[place as usize]))
            }
            None => None,
        };
        Ok(Extremes { largest, least, not_finite })
    }

    fn reads_are_costly(&self) -> bool {
        true
    }

    fn during<R>(&self, activity: Activity, work: impl FnOnce() -> R) -> R {
        self.queue.during(activity, work)
    }

    fn scale(&self, a: T, x: &mut Buffer<T>) -> Result<(), BackendError> {
        // SAFETY: the kernel's parameters.
        unsafe { self.queue.launch(Kernel::Scale, self.over(x.len()), &values![&*x, a, x.len() as u64]) }
    }

    fn fill(&self, a: T, x: &mut Buffer<T>) -> Result<(), BackendError> {
        // SAFETY: the kernel's parameters.
        unsafe { self.queue.launch(Kernel::Fill, self.over(x.len()), &values![&*x, a, x.len() as u64]) }
    }

    fn copy(&self, x: &Buffer<T>, y: &mut Buffer<T>) -> Result<(), BackendError> {
        same("copy", x, y)?;
        self.queue.copy(x, y)
    }

    fn axpby(&self, a: T, x: &Buffer<T>, b: T, y: &mut Buffer<T>) -> Result<(), BackendError> {
        same("axpby", x, y)?;
        let values = values![x, &*y, a, b, x.len() as u64];
        // SAFETY: the kernel's parameters; both have as many entries.
        unsafe { self.queue.launch(Kernel::Axpby, self.over(x.len()), &values) }
    }

    fn dots(&self, pairs: &[(&Buffer<T>, &Buffer<T>)], out: &mut [T]) -> Result<(), BackendError> {
        for (x, y) in pairs {
            same("dots", x, y)?;
        }
        // Pairs of one length are summed together.
        let (mut pairs, mut out) = (pairs, out);
        while let Some(first) = pairs.first() {
            let n = first.0.len();
            let count = pairs.iter().take(SUMS).take_while(|pair| pair.0.len() == n).count();
            let (own, sums);
            (own, pairs) = pairs.split_at(count);
            (sums, out) = out.split_at_mut(count);
            self.sum(n, sums, |pieces, shape, number| self.launch_dots(own, (pieces, shape, number), 0))?;
        }
        Ok(())
    }

    fn basis_dots(&self, basis: &[Buffer<T>], y: &Buffer<T>, out: &mut [T]) -> Result<(), BackendError> {
        for v in basis {
            same("basis_dots", v, y)?;
        }
        for (basis, out) in basis.chunks(SUMS).zip(out.chunks_mut(SUMS)) {
            let out = &mut out[..basis.len()];
            self.sum(y.len(), out, |pieces, shape, number| {
                self.launch_basis(basis, y, (pieces, shape, number))
            })?;
        }
        Ok(())
    }

    fn combine(
        &self,
        coefficients: &[T],
        basis: &[Buffer<T>],
        y: &mut Buffer<T>,
    ) -> Result<(), BackendError> {
        let basis = &basis[..coefficients.len().min(basis.len())];
        for v in basis {
            same("combine", v, y)?;
        }
        let (shape, n) = (self.over(y.len()), y.len() as u64);
        if let ([a, b], [v, w]) = (coefficients, basis) {
            let values = values![v, w, *a, *b, &*y, 2u32, n];
            // SAFETY: the kernel's parameters; all have as many entries.
            return unsafe { self.queue.launch(Kernel::CombineTwo, shape, &values) };
        }
        for (coefficients, basis) in coefficients.chunks(MANY).zip(basis.chunks(MANY)) {
            let vector = |k: usize| basis.get(k).unwrap_or(&basis[0]).value();
            let factor = |k: usize| coefficients.get(k).copied().unwrap_or(T::ZERO).value();
            let rest = values![&*y, basis.len() as u32, n];
            let values: [Value; 2 * MANY + 3] = std::array::from_fn(|k| match k {
                k if k < MANY => vector(k),
                k if k < 2 * MANY => factor(k - MANY),
                k => rest[k - 2 * MANY],
            });
            // SAFETY: as above; vectors past the count are not read.
            unsafe { self.queue.launch(Kernel::CombineMany, shape, &values)? };
        }
        Ok(())
    }

    fn combine_dots(
        &self,
        coefficients: &[T],
        basis: &[Buffer<T>],
        y: &mut Buffer<T>,
        out: &mut [T],
    ) -> Result<(), BackendError> {
        let count = basis.len();
        self.combine(coefficients, basis, y)?;
        if count >= SUMS {
            self.basis_dots(basis, y, &mut out[..count])?;
            out[count] = self.dot(y, y)?;
            return Ok(());
        }
        let y = &*y;
        self.sum(y.len(), &mut out[..=count], |pieces, shape, number| {
            self.launch_basis(basis, y, (pieces, shape, number))?;
            self.launch_dots(&[(y, y)], (pieces, shape, number), count)
        })
    }

    fn bicgstab_direction(
        &self,
        r: &Buffer<T>,
        b: T,
        c: T,
        v: &Buffer<T>,
        p: &mut Buffer<T>,
    ) -> Result<(), BackendError> {
        same("bicgstab_direction", r, p)?;
        same("bicgstab_direction", v, p)?;
        let values = values![r, v, &*p, b, c, p.len() as u64];
        // SAFETY: the kernel's parameters; all have as many entries.
        unsafe { self.queue.launch(Kernel::BicgstabDirection, self.over(p.len()), &values) }
    }

    fn update_dots(
        &self,
        a: T,
        t: &Buffer<T>,
        r: &mut Buffer<T>,
        w: &Buffer<T>,
    ) -> Result<[T; 2], BackendError> {
        same("update_dots", t, r)?;
        same("update_dots", w, r)?;
        let mut out = [T::ZERO; 2];
        self.sum(r.len(), &mut out, |pieces, shape, number| {
            let values = values![t, &*r, w, pieces, a, number, r.len() as u64];
            // SAFETY: the kernel's parameters; all have as many entries; room for two sums.
            unsafe { self.queue.launch(Kernel::UpdateDots, shape, &values) }
        })?;
        Ok(out)
    }

    fn update_square(&self, a: T, q: &Buffer<T>, r: &mut Buffer<T>) -> Result<T, BackendError> {
        same("update_square", q, r)?;
        let mut out = [T::ZERO];
        self.sum(r.len(), &mut out, |pieces, shape, number| {
            let values = values![q, &*r, pieces, a, number, r.len() as u64];
            // SAFETY: the kernel's parameters; both have as many entries; room for a sum.
            unsafe { self.queue.launch(Kernel::UpdateNorm, shape, &values) }
        })?;
        Ok(out[0])
    }

    fn cg_direction(
        &self,
        a: T,
        z: &Buffer<T>,
        b: T,
        p: &mut Buffer<T>,
        x: &mut Buffer<T>,
    ) -> Result<(), BackendError> {
        same("cg_direction", z, p)?;
        same("cg_direction", x, p)?;
        let values = values![z, &*p, &*x, a, b, p.len() as u64];
        // SAFETY: the kernel's parameters; all have as many entries.
        unsafe { self.queue.launch(Kernel::CgDirection, self.over(p.len()), &values) }
    }
}

impl<T: DeviceScalar> DeviceSpace<T> {
    /// The products of pairs of one length, into pieces from this sum on.
    pub(crate) fn launch_dots(
        &self,
        pairs: &[(&Buffer<T>, &Buffer<T>)],
        (pieces, shape, number): (&Buffer<u64>, Shape, u64),
        first: usize,
    ) -> Result<(), BackendError> {
        for (round, pairs) in pairs.chunks(PAIRS).enumerate() {
            let (x, y) = (
                |k: usize| pairs.get(k).unwrap_or(&pairs[0]).0,
                |k: usize| pairs.get(k).unwrap_or(&pairs[0]).1,
            );
            let (count, first) = (pairs.len() as u32, (first + round * PAIRS) as u32);
            let n = x(0).len() as u64;
            let values =
                values![x(0), y(0), x(1), y(1), x(2), y(2), x(3), y(3), pieces, count, first, number, n];
            // SAFETY: the kernel's parameters; room for the pieces of all sums; pairs past the count are not read.
            unsafe { self.queue.launch(Kernel::Dots, shape, &values)? };
        }
        Ok(())
    }

    /// The products of a basis with y, into pieces from the first sum on.
    fn launch_basis(
        &self,
        basis: &[Buffer<T>],
        y: &Buffer<T>,
        (pieces, shape, number): (&Buffer<u64>, Shape, u64),
    ) -> Result<(), BackendError> {
        for (round, basis) in basis.chunks(MANY).enumerate() {
            let vector = |k: usize| basis.get(k).unwrap_or(&basis[0]).value();
            let first = (round * MANY) as u32;
            let rest = values![y, pieces, basis.len() as u32, first, number, y.len() as u64];
            let values: [Value; MANY + 6] =
                std::array::from_fn(|k| if k < MANY { vector(k) } else { rest[k - MANY] });
            // SAFETY: the kernel's parameters; all have as many entries; vectors past the count are not read.
            unsafe { self.queue.launch(Kernel::BasisDots, shape, &values)? };
        }
        Ok(())
    }
}
