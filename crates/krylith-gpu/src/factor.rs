//! Preconditioners on a device.
//!
//! IC(0) and ILU(0), of a sparsified matrix too, are eliminated there if no diagonal entry is missing, level by level, with the shifts and the smallest bad row of threads. Every other factor is made by
//! threads of the host: its triangles, or the matrices of an approximate inverse, are uploaded and applied on the device; a
//! refactorization uploads values only. What has neither, such as a complete factor, is applied by the host, with a copy in each direction.
#![allow(unsafe_code)]

use crate::device::{Buffer, values};
use crate::matrix::{DeviceMatrix, DeviceStorage};
use crate::program::{Kernel, KernelShape};
use crate::space::DeviceSpace;
use crate::sweeps::DeviceTriangles;
use krylith::matrix::require_pattern;
use krylith::operator::{DynPreconditioner, LinearOperator, Parts, Preconditioner};
use krylith::precond::{Kind, SMALLEST_PIVOT, starting_pivots, strict};
use krylith::space::{Activity, Space, Threads, require_same};
use krylith::{BackendError, Csr, Pattern, SetupError};
use std::sync::Arc;

/// A preconditioner of threads.
pub(crate) type HostPreconditioner = DynPreconditioner<Threads<f64>, Csr<f64>>;

/// No bad pivot.
const NONE: u32 = u32::MAX;

/// A preconditioner on a device.
pub(crate) enum DeviceFactor {
    /// Eliminated on the device.
    Eliminated(Box<Eliminated>),
    /// Triangles that the host makes.
    Triangles(Box<DeviceTriangles>, HostPreconditioner),
    /// z = d x.
    Diagonal(Buffer<f64>, HostPreconditioner),
    /// z = B A x.
    Products(Box<[DeviceMatrix<f64>; 2]>, HostPreconditioner),
    /// Applied by the host.
    OnHost(HostPreconditioner, usize),
}

/// What an application writes besides.
pub(crate) enum FactorScratch {
    Nothing,
    /// A x, of two products.
    Vector(Buffer<f64>),
    /// Of the host: x, z, and its own.
    Host(Vec<f64>, Vec<f64>, Box<dyn std::any::Any + Send>),
}

/// A factor without fill, and what its elimination needs.
pub(crate) struct Eliminated {
    kind: Kind,
    source: Arc<Pattern>,
    triangles: DeviceTriangles,
    /// For Cholesky, where in L each entry of U comes from.
    mirror: Option<Buffer<u32>>,
    sizes: Buffer<f64>,
    bad: Buffer<u32>,
    shift: f64,
    /// Values on their way to the device: L, U, pivots, sizes.
    staged: [Vec<f64>; 4],
}

impl Eliminated {
    /// For matrices of this square pattern, whose diagonal is full; that of Cholesky is symmetric.
    pub(crate) fn new(
        space: &DeviceSpace<f64>,
        kind: Kind,
        source: &Arc<Pattern>,
    ) -> Result<Self, SetupError> {
        let (lower, upper) = (strict(source, true), strict(source, false));
        let triangles = DeviceTriangles::new(space, &lower, &upper)?;
        let mirror = match kind {
            Kind::Cholesky => {
                let place = |i: usize, &j: &u32| lower.find(j as usize, i).unwrap_or_default() as u32;
                let rows = (0..upper.nrows()).flat_map(|i| upper.row(i).iter().map(move |j| place(i, j)));
                Some(space.queue().upload_new(&rows.collect::<Vec<u32>>())?)
            }
            Kind::Lu => None,
        };
        let n = source.nrows();
        let staged = [vec![0.0; lower.nnz()], vec![0.0; upper.nnz()], vec![0.0; n], vec![0.0; n]];
        Ok(Eliminated {
            kind,
            source: Arc::clone(source),
            triangles,
            mirror,
            sizes: space.queue().allocate(n)?,
            bad: space.queue().allocate(1)?,
            shift: 0.0,
            staged,
        })
    }

    /// Bytes for a pattern of this many rows and entries.
    pub(crate) fn predict(kind: Kind, rows: usize, nnz: usize) -> u64 {
        let entries = nnz - rows;
        let mirror = if kind == Kind::Cholesky { 4 * (entries as u64 / 2) } else { 0 };
        DeviceTriangles::predict(rows, entries) + 8 * rows as u64 + mirror
    }

    fn refactor(&mut self, space: &DeviceSpace<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())?;
        let Eliminated { kind, triangles, sizes, bad, shift, staged: [l, u, pivots, measures], .. } = self;
        let (queue, mut places) = (space.queue(), (0, 0));
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                match (j as usize).cmp(&i) {
                    std::cmp::Ordering::Less => {
                        l[places.0] = v;
                        places.0 += 1;
                    }
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => {
                        u[places.1] = v;
                        places.1 += 1;
                    }
                }
            }
        }
        starting_pivots(*kind, a, *shift, pivots, measures);
        triangles.lower.set(space, l)?;
        queue.upload(pivots, &triangles.inverse)?;
        queue.upload(measures, sizes)?;
        queue.upload(&[NONE], bad)?;
        if *kind == Kind::Lu {
            triangles.upper.set(space, u)?;
        }
        self.eliminate(space)?;
        let mut first = [NONE];
        space.queue().download(&self.bad, &mut first)?;
        if first[0] == NONE {
            return Ok(());
        }
        let row = first[0] as usize;
        space.queue().download(&self.triangles.inverse, &mut self.staged[2])?;
        Err(SetupError::BadPivot { row, value: self.staged[2][row] })
    }

    fn eliminate(&self, space: &DeviceSpace<f64>) -> Result<(), BackendError> {
        let DeviceTriangles { lower, upper, inverse } = &self.triangles;
        let [order, l_ptr, l_idx, l] = lower.values();
        let [_, u_ptr, u_idx, u] = upper.values();
        let [inverse, sizes, bad, smallest] = values![inverse, &self.sizes, &self.bad, SMALLEST_PIVOT];
        // SAFETY: the kernels' parameters; the triangles are those of one square pattern with as many rows as D.
        unsafe {
            match self.kind {
                Kind::Cholesky => {
                    let values = [order, l_ptr, l_idx, l, inverse, sizes, bad, smallest];
                    lower.levels.run(space, (Kernel::Cholesky, Kernel::CholeskyLevels), &values)?;
                }
                Kind::Lu => {
                    let values = [order, l_ptr, l_idx, l, u_ptr, u_idx, u, inverse, sizes, bad, smallest];
                    lower.levels.run(space, (Kernel::Lu, Kernel::LuLevels), &values)?;
                }
            }
            if let Some(from) = &self.mirror {
                let n = upper.values.len();
                let values = values![from, &lower.values, &upper.values, n as u64];
                space.queue().launch(Kernel::Mirror, space.over(n), &values)?;
            }
        }
        Ok(())
    }
}

impl DeviceFactor {
    /// Bytes that this takes on the device.
    pub(crate) fn predict(host: &HostPreconditioner, rows: usize, shape: KernelShape) -> u64 {
        let product =
            |a: &Csr<f64>| DeviceStorage::choose(a.pattern(), shape).bytes(a.pattern(), shape) as u64;
        match host.parts() {
            Some(Parts::Diagonal(_)) => 8 * rows as u64,
            Some(Parts::Triangles { lower, upper, .. }) => {
                DeviceTriangles::predict(rows, lower.nnz() + upper.nnz())
            }
            Some(Parts::Products([first, second])) => product(first) + product(second) + 8 * rows as u64,
            None => 0,
        }
    }

    /// Takes over what the host has made.
    pub(crate) fn of_host(
        space: &DeviceSpace<f64>,
        host: HostPreconditioner,
        rows: usize,
    ) -> Result<Self, SetupError> {
        match host.parts() {
            Some(Parts::Diagonal(d)) => Ok(DeviceFactor::Diagonal(space.queue().upload_new(d)?, host)),
            Some(Parts::Triangles { lower, inverse, upper }) => {
                let triangles = DeviceTriangles::new(space, lower.pattern(), upper.pattern())?;
                triangles.set(space, lower, inverse, upper)?;
                Ok(DeviceFactor::Triangles(Box::new(triangles), host))
            }
            Some(Parts::Products([first, second])) => {
                let both = [DeviceMatrix::new(space, first)?, DeviceMatrix::new(space, second)?];
                Ok(DeviceFactor::Products(Box::new(both), host))
            }
            None => Ok(DeviceFactor::OnHost(host, rows)),
        }
    }

    /// The factor of a matrix of the same pattern.
    pub(crate) fn refactor_from(&mut self, space: &DeviceSpace<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        let threads = space.threads();
        match self {
            DeviceFactor::Eliminated(eliminated) => return eliminated.refactor(space, a),
            DeviceFactor::Triangles(_, host)
            | DeviceFactor::Diagonal(_, host)
            | DeviceFactor::Products(_, host)
            | DeviceFactor::OnHost(host, _) => host.refactor(threads, a)?,
        }
        match self {
            DeviceFactor::Triangles(triangles, host) => match host.parts() {
                Some(Parts::Triangles { lower, inverse, upper }) => {
                    triangles.set(space, lower, inverse, upper)?
                }
                _ => return Err(SetupError::PatternChanged),
            },
            DeviceFactor::Diagonal(buffer, host) => match host.parts() {
                Some(Parts::Diagonal(d)) => space.queue().upload(d, buffer)?,
                _ => return Err(SetupError::PatternChanged),
            },
            DeviceFactor::Products(matrices, host) => match host.parts() {
                Some(Parts::Products(both)) => {
                    for (matrix, values) in matrices.iter_mut().zip(both) {
                        krylith::placement::Storage::set(matrix, space, values)?;
                    }
                }
                _ => return Err(SetupError::PatternChanged),
            },
            DeviceFactor::Eliminated(_) | DeviceFactor::OnHost(..) => {}
        }
        Ok(())
    }

    /// How it is applied, for the report.
    pub(crate) fn describe(&self) -> String {
        match self {
            DeviceFactor::Eliminated(_) => "eliminated and applied on the device".into(),
            DeviceFactor::Triangles(..) => "factored on the host, applied on the device".into(),
            DeviceFactor::Diagonal(..) => "the diagonal on the device".into(),
            DeviceFactor::Products(..) => "two products on the device".into(),
            DeviceFactor::OnHost(..) => "applied on the host".into(),
        }
    }

    /// How the sweeps are divided.
    pub(crate) fn schedule(&self) -> Option<[String; 2]> {
        let triangles = self.triangles()?;
        Some([triangles.lower.levels.describe(), triangles.upper.levels.describe()])
    }

    fn triangles(&self) -> Option<&DeviceTriangles> {
        match self {
            DeviceFactor::Eliminated(eliminated) => Some(&eliminated.triangles),
            DeviceFactor::Triangles(triangles, _) => Some(triangles),
            _ => None,
        }
    }

    fn rows(&self) -> usize {
        match self {
            DeviceFactor::Eliminated(eliminated) => eliminated.triangles.inverse.len(),
            DeviceFactor::Triangles(triangles, _) => triangles.inverse.len(),
            DeviceFactor::Diagonal(d, _) => d.len(),
            DeviceFactor::Products(both, _) => both[0].domain(),
            DeviceFactor::OnHost(_, rows) => *rows,
        }
    }

    fn check(&self, x: &Buffer<f64>, z: &Buffer<f64>) -> Result<(), BackendError> {
        require_same("a vector and the preconditioner", &x.len(), &self.rows())?;
        require_same("a vector and the preconditioner", &z.len(), &self.rows())
    }
}

impl LinearOperator<DeviceSpace<f64>> for DeviceFactor {
    type Scratch = FactorScratch;

    fn domain(&self) -> usize {
        self.rows()
    }

    fn range(&self) -> usize {
        self.rows()
    }

    fn scratch(&self, space: &DeviceSpace<f64>) -> Result<FactorScratch, BackendError> {
        Ok(match self {
            DeviceFactor::Products(both, _) => FactorScratch::Vector(space.zeros(&both[0].range())?),
            DeviceFactor::OnHost(host, rows) => {
                FactorScratch::Host(vec![0.0; *rows], vec![0.0; *rows], host.scratch(space.threads())?)
            }
            _ => FactorScratch::Nothing,
        })
    }

    fn apply(
        &self,
        space: &DeviceSpace<f64>,
        x: &Buffer<f64>,
        z: &mut Buffer<f64>,
        scratch: &mut FactorScratch,
    ) -> Result<(), BackendError> {
        self.check(x, z)?;
        match (self, scratch) {
            (DeviceFactor::Eliminated(eliminated), _) => eliminated.triangles.solve(space, x, z),
            (DeviceFactor::Triangles(triangles, _), _) => triangles.solve(space, x, z),
            (DeviceFactor::Diagonal(d, _), _) => {
                let values = values![d, x, &*z, x.len() as u64];
                // SAFETY: the kernel's parameters; all have as many entries.
                unsafe { space.queue().launch(Kernel::Multiply, space.over(x.len()), &values) }
            }
            (DeviceFactor::Products(both, _), FactorScratch::Vector(between)) => {
                both[0].apply(space, x, between, &mut ())?;
                both[1].apply(space, between, z, &mut ())
            }
            (DeviceFactor::OnHost(host, _), FactorScratch::Host(from, to, own)) => {
                space.download(x, from)?;
                host.apply(space.threads(), from, to, own)?;
                space.upload(to, z)
            }
            _ => Err(BackendError::Failed { what: "the scratch belongs to another operator".into() }),
        }
    }

    fn update_apply_dots(
        &self,
        space: &DeviceSpace<f64>,
        (a, q): (f64, &Buffer<f64>),
        r: &mut Buffer<f64>,
        z: &mut Buffer<f64>,
        scratch: &mut FactorScratch,
    ) -> Result<[f64; 2], BackendError> {
        self.check(q, r)?;
        self.check(r, z)?;
        let (n, mut out) = (r.len(), [0.0; 2]);
        if let DeviceFactor::Diagonal(d, _) = self {
            space.sum(n, &mut out, |pieces, shape, number| {
                let values = values![d, q, &*r, &*z, pieces, a, number, n as u64];
                // SAFETY: the kernel's parameters; all have as many entries; room for two sums.
                unsafe { space.queue().launch(Kernel::UpdateMultiply, shape, &values) }
            })?;
            return Ok(out);
        }
        if matches!(self, DeviceFactor::OnHost(..)) {
            // It reads and writes vectors in between.
            space.axpby(a, q, 1.0, r)?;
            space.during(Activity::Preconditioner, || self.apply(space, r, z, scratch))?;
            space.dots(&[(r, r), (r, z)], &mut out)?;
            return Ok(out);
        }
        space.sum(n, &mut out, |pieces, shape, number| {
            let values = values![q, &*r, pieces, a, number, n as u64];
            // SAFETY: the kernel's parameters; both have as many entries; room for two sums.
            unsafe { space.queue().launch(Kernel::UpdateNorm, shape, &values)? };
            space.during(Activity::Preconditioner, || self.apply(space, r, z, scratch))?;
            space.launch_dots(&[(r, z)], (pieces, shape, number), 1)
        })?;
        Ok(out)
    }
}

impl Preconditioner<DeviceSpace<f64>, DeviceMatrix<f64>> for DeviceFactor {
    fn refactor(&mut self, _: &DeviceSpace<f64>, _: &DeviceMatrix<f64>) -> Result<(), SetupError> {
        Err(BackendError::Unsupported { what: "a factor of a matrix that is only on the device" }.into())
    }

    fn refactor_by_rows(
        &mut self,
        space: &DeviceSpace<f64>,
        _: &DeviceMatrix<f64>,
        rows: &Csr<f64>,
    ) -> Result<(), SetupError> {
        self.refactor_from(space, rows)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        match self {
            DeviceFactor::Eliminated(eliminated) => {
                eliminated.shift = shift;
                true
            }
            DeviceFactor::Triangles(_, host)
            | DeviceFactor::Diagonal(_, host)
            | DeviceFactor::Products(_, host)
            | DeviceFactor::OnHost(host, _) => host.set_shift(shift),
        }
    }

    fn entries(&self) -> usize {
        match self {
            DeviceFactor::Eliminated(eliminated) => {
                let above = match eliminated.kind {
                    Kind::Cholesky => 0,
                    Kind::Lu => eliminated.staged[1].len(),
                };
                eliminated.staged[0].len() + above + eliminated.source.nrows()
            }
            DeviceFactor::Triangles(_, host)
            | DeviceFactor::Diagonal(_, host)
            | DeviceFactor::Products(_, host)
            | DeviceFactor::OnHost(host, _) => host.entries(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            DeviceFactor::Eliminated(eliminated) => {
                let mirror = eliminated.mirror.as_ref().map_or(0, Buffer::len);
                eliminated.triangles.bytes() + 4 * mirror + 8 * eliminated.sizes.len() + 4
            }
            DeviceFactor::Triangles(triangles, _) => triangles.bytes(),
            DeviceFactor::Diagonal(d, _) => 8 * d.len(),
            DeviceFactor::Products(both, _) => both.iter().map(DeviceMatrix::bytes).sum(),
            DeviceFactor::OnHost(host, _) => host.bytes(),
        }
    }
}
