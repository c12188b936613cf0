//! `Solver` on a device.
//!
//! A and M are copied to the device once, b and x for each solve. The answer is certified on the host: residuals are recomputed from the
//! caller's own A and b, in the arithmetic of solves on threads.

use crate::device::{Buffer, Device};
use crate::info::DeviceKind;
use crate::space::DeviceSpace;
use crate::store::STORES;
use krylith::operator::{LinearOperator, NormalResidual, ResidualNorms, SolverSpace};
use krylith::plan::{DEVICE, PROCESSOR_DEVICE, SolvePlan};
use krylith::report::{DeviceReport, KernelTime};
use krylith::space::{Profile, Space, Threads};
use krylith::{BackendError, Csr, Prepared, Report, SetupError, Solution, SolveError, Solver, Watch};

impl SolverSpace for DeviceSpace<f64> {
    fn host(&self) -> &Threads<f64> {
        self.threads()
    }

    fn publish(&self) -> Result<(), BackendError> {
        self.finish()
    }

    fn begin_report(&self, _: bool) {
        // What cannot be counted shows when the solve begins.
        let _ = self.reset_counts();
    }

    fn profile(&self) -> Option<Profile> {
        let counts = self.finish().and_then(|()| self.counts());
        counts.ok().map(|counts| counts.profile).filter(|_| self.device().is_timed())
    }

    fn device_report(&self) -> Option<DeviceReport> {
        let info = self.device().info();
        let selector = info.selector();
        let reproducible = self.device().is_reproducible();
        let mut report = DeviceReport::new(selector, info.name.clone(), info.driver.clone(), reproducible);
        let counts = self.finish().and_then(|()| self.counts()).unwrap_or_default();
        report.launches = counts.launches;
        report.bytes_to_device = counts.bytes_up;
        report.bytes_from_device = counts.bytes_down;
        report.synchronisations = counts.synchronisations;
        report.allocations = counts.allocations;
        let time = |(kernel, (launches, seconds)): (&'static str, (u64, f64))| KernelTime {
            kernel: kernel.into(),
            launches,
            seconds,
        };
        report.kernels = counts.kernels.into_iter().map(time).collect();
        Some(report)
    }

    fn beside(&self) -> Option<Self> {
        DeviceSpace::with_threads(self.device(), 1).ok()
    }
}

/// Vectors of the host, for residuals.
#[derive(Default)]
pub struct HostVectors {
    x: Vec<f64>,
    b: Vec<f64>,
    r: Vec<f64>,
}

/// The caller's own matrix: residuals are those of the host.
impl LinearOperator<DeviceSpace<f64>> for Csr<f64> {
    type Scratch = HostVectors;

    fn domain(&self) -> usize {
        self.ncols()
    }

    fn range(&self) -> usize {
        self.nrows()
    }

    fn scratch(&self, _: &DeviceSpace<f64>) -> Result<HostVectors, BackendError> {
        let zeros = |n: usize| vec![0.0; n];
        Ok(HostVectors { x: zeros(self.ncols()), b: zeros(self.nrows()), r: zeros(self.nrows()) })
    }

    fn apply(
        &self,
        space: &DeviceSpace<f64>,
        x: &Buffer<f64>,
        y: &mut Buffer<f64>,
        scratch: &mut HostVectors,
    ) -> Result<(), BackendError> {
        let HostVectors { x: from, r: to, .. } = scratch;
        space.download(x, from)?;
        LinearOperator::<Threads<f64>>::apply(self, space.threads(), from, to, &mut ())?;
        space.upload(to, y)
    }

    fn residual(
        &self,
        space: &DeviceSpace<f64>,
        (x, b): (&Buffer<f64>, &Buffer<f64>),
        precise: bool,
        r: &mut Buffer<f64>,
        scratch: &mut HostVectors,
    ) -> Result<ResidualNorms<f64>, BackendError> {
        let HostVectors { x: own_x, b: own_b, r: own_r } = scratch;
        space.download(x, own_x)?;
        space.download(b, own_b)?;
        let (threads, vectors) = (space.threads(), (&*own_x, &*own_b));
        let norms =
            LinearOperator::<Threads<f64>>::residual(self, threads, vectors, precise, own_r, &mut ())?;
        space.upload(own_r, r)?;
        Ok(norms)
    }

    fn normal_residual(
        &self,
        space: &DeviceSpace<f64>,
        r: &Buffer<f64>,
        low: Option<&Buffer<f64>>,
    ) -> Result<Option<NormalResidual<f64>>, BackendError> {
        let own = |v: &Buffer<f64>| {
            let mut own = vec![0.0; v.len()];
            space.download(v, &mut own).map(|()| own)
        };
        let (r, low) = (own(r)?, low.map(own).transpose()?);
        LinearOperator::<Threads<f64>>::normal_residual(self, space.threads(), &r, low.as_ref())
    }

    fn matrix(&self) -> Option<&Csr<f64>> {
        Some(self)
    }
}

/// Solves on a device with the options of a [`Solver`].
pub trait OnDevice {
    /// These options, on this device. Costs are predicted for a processor driven as a device, or for a GPU, unless a machine was given.
    ///
    /// ```no_run
    /// use krylith::Solver;
    /// use krylith_gpu::{Device, DeviceOptions, OnDevice};
    /// let a = "poisson3d:50".parse::<krylith::gallery::Problem>()?.generate()?;
    /// let b = vec![1.0; a.nrows()];
    /// let device = Device::open(&"opencl".parse()?, DeviceOptions::default())?;
    /// let solution = Solver::new().rtol(1e-10).on(&device).solve(&a, &b)?;
    /// solution.report.require_converged()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn on(self, device: &Device) -> DeviceSolver;
}

impl OnDevice for Solver {
    fn on(self, device: &Device) -> DeviceSolver {
        let is_reference = self.predicts_for_reference();
        let solver = match device.info().kind {
            _ if !is_reference => self,
            DeviceKind::Cpu => self.machine(PROCESSOR_DEVICE),
            DeviceKind::Gpu | DeviceKind::Accelerator => self.machine(DEVICE),
        };
        DeviceSolver { solver, device: device.clone() }
    }
}

/// Options and a device.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until something is solved with them"]
pub struct DeviceSolver {
    solver: Solver,
    device: Device,
}

impl DeviceSolver {
    fn space(&self) -> Result<DeviceSpace<f64>, BackendError> {
        match self.solver.threads_asked_for() {
            Some(threads) => DeviceSpace::with_threads(&self.device, threads),
            None => DeviceSpace::new(&self.device),
        }
    }

    /// What a solve of this matrix will do, and why.
    pub fn plan(&self, a: &Csr<f64>) -> Result<SolvePlan, SolveError> {
        self.plan_with(a, a)
    }

    /// The same with a preconditioner made from another matrix.
    pub fn plan_with(&self, a: &Csr<f64>, matrix: &Csr<f64>) -> Result<SolvePlan, SolveError> {
        self.solver.plan_on(&self.space()?, STORES, a, matrix)
    }

    /// Analyzes and factors A, copies it to the device, and allocates what solving needs.
    pub fn prepare(&self, a: &Csr<f64>) -> Result<DevicePrepared, SolveError> {
        self.prepare_with(a, a)
    }

    /// The same with a preconditioner made from another matrix.
    pub fn prepare_with(&self, a: &Csr<f64>, matrix: &Csr<f64>) -> Result<DevicePrepared, SolveError> {
        let prepared = self.solver.prepare_on(self.space()?, STORES, a, matrix)?;
        Ok(DevicePrepared { prepared })
    }

    /// Solves A x = b from x = 0.
    pub fn solve(&self, a: &Csr<f64>, b: &[f64]) -> Result<Solution, SolveError> {
        let mut x = vec![0.0; a.ncols()];
        let report = self.prepare(a)?.solve(a, b, &mut x)?;
        Ok(Solution { x, report })
    }
}

/// A system that is set up on a device. Several threads may solve with it at the same time.
pub struct DevicePrepared {
    prepared: Prepared<Csr<f64>, DeviceSpace<f64>>,
}

impl DevicePrepared {
    /// Solves A x = b from the guess in `x`.
    pub fn solve(&self, a: &Csr<f64>, b: &[f64], x: &mut [f64]) -> Result<Report, SolveError> {
        self.solve_watched(a, b, x, Watch::default())
    }

    /// The same, watched.
    pub fn solve_watched(
        &self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut [f64],
        watch: Watch<'_>,
    ) -> Result<Report, SolveError> {
        self.prepared.solve_watched(a, b, x, watch)
    }

    /// z = M⁻¹ r, in the order of A.
    pub fn precondition(&self, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        self.prepared.precondition(r, z)
    }

    /// The factor of a matrix of the same pattern.
    pub fn refactor(&mut self, a: &Csr<f64>) -> Result<(), SetupError> {
        self.prepared.refactor(a)
    }

    /// What was decided, and why.
    pub fn plan(&self) -> &SolvePlan {
        self.prepared.plan()
    }
}
