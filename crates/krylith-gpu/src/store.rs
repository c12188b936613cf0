//! The one store of systems on a device: A and M there, rows in the order of A.
//!
//! Factors without fill are eliminated there; whatever else threads of the host have made is applied there by its parts.

use crate::factor::{DeviceFactor, Eliminated};
use crate::matrix::{DeviceMatrix, DeviceStorage};
use crate::program::KernelShape;
use crate::space::DeviceSpace;
use crate::sweeps::DeviceTriangles;
use krylith::matrix::require_diagonal;
use krylith::operator::Preconditioner;
use krylith::placement::{AsGiven, KeptMatrix, SharedPlacement};
use krylith::plan::{Outlook, StorageKind};
use krylith::precond::{Form, Incomplete, Kind, require_symmetric};
use krylith::setup::{Memory, SetupContext, SetupRecorder, Storing};
use krylith::space::Threads;
use krylith::store::{FindStore, Found, Kept, Made, Needs, OverStore, Request, Role, Store};
use krylith::{BackendError, Csr, Precision, SetupError, SolveError};
use std::sync::Arc;

type Space = DeviceSpace<f64>;
type Context<'a> = SetupContext<'a, Space>;

/// The stores of a device.
pub(crate) static STORES: &[&dyn FindStore<Space>] = &[&DeviceMemory];

/// Bytes per row of b, x and the recomputed residual, and of the pieces of 72 sums in chunks of 2048.
const AROUND: usize = 26;

/// The memory of a device.
struct DeviceMemory;

impl FindStore<Space> for DeviceMemory {
    fn name(&self) -> &'static str {
        "device"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    /// Whatever the mesh, in `f64`.
    fn is_likely(&self, outlook: &Outlook<'_>) -> bool {
        outlook.precision == Precision::F64
    }

    /// There are no kernels for them.
    fn has_transposes(&self) -> bool {
        false
    }

    /// The host applies them.
    fn has_complete_factors(&self) -> bool {
        true
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Space>, SolveError> {
        if setup.a.is_none() {
            return Ok(Found::Refused("A has no matrix".into()));
        }
        if let Needs::Products(_) = request.needs {
            return Ok(Found::Refused("approximate inverses are copied to the device".into()));
        }
        let source = setup.source;
        let rows = source.nrows();
        let eliminated = recorder.analyzing(|| eliminated(&request.needs, source));
        let triangles = || {
            let entries = request.kind.predicted_entries(source.pattern()).unwrap_or(0);
            DeviceTriangles::predict(rows, 2 * entries as usize)
        };
        let factor = match (eliminated, request.needs) {
            (Some(form), _) => Eliminated::predict(form, rows, source.nnz()),
            (None, Needs::Triangles(_)) => triangles(),
            (None, _) => 0,
        };
        let shape = setup.space.device().shape();
        // Of another matrix than A the device needs no values.
        let a = setup.other_matrix().unwrap_or(source).pattern();
        let copy = DeviceStorage::choose(a, shape).bytes(a, shape);
        let layout = format!("on the device {}", setup.space.device().info().selector());
        let memory = Memory::in_order(layout, rows, copy, factor as usize);
        Ok(Found::Store(Box::new(DeviceStore { eliminated, rows, shape, memory })))
    }
}

/// The factor that the device eliminates: one without fill of a matrix with a full diagonal; for Cholesky with a symmetric pattern.
fn eliminated(needs: &Needs<'_>, a: &Csr<f64>) -> Option<Kind> {
    let Needs::Triangles(Incomplete { form, level: 0, .. }) = *needs else { return None };
    let full = require_diagonal(a.pattern()).is_ok();
    let suits = form == Form::LU || form == Form::CHOLESKY && require_symmetric(a.pattern()).is_ok();
    (full && suits && a.nnz() < u32::MAX as usize).then_some(form.kind)
}

/// A system on a device.
struct DeviceStore {
    eliminated: Option<Kind>,
    rows: usize,
    shape: KernelShape,
    memory: Memory,
}

impl DeviceStore {
    /// `Err(MemoryLimit)` if the caller does not allow A, vectors and a factor of these bytes on the device and on the host, `Err(OutOfMemory)` if the device has no
    /// room for them.
    fn require_room(&self, setup: &Context<'_>, (factor, on_host): (usize, usize)) -> Result<(), SetupError> {
        let (device, allowed) = (setup.space.device(), setup.options.max_memory.unwrap_or(u64::MAX));
        let bytes = (self.memory.copy + factor + self.vector_bytes(setup)) as u64;
        let all = bytes + on_host as u64;
        if all > allowed {
            return Err(SetupError::MemoryLimit { predicted: all, limit: allowed });
        }
        match bytes > device.info().memory_bytes.saturating_sub(device.live_bytes()) {
            true => Err(BackendError::OutOfMemory { device: device.info().name.clone(), bytes }.into()),
            false => Ok(()),
        }
    }

    /// A factor that is there, with the shift it needed.
    fn made(
        &self,
        setup: &Context<'_>,
        m: DeviceFactor,
        shift: f64,
        predicted: usize,
    ) -> Result<Made<Space>, SolveError> {
        setup.space.finish()?;
        let (nnz, bytes, schedule, words) =
            (m.entries(), m.bytes(), m.schedule(), format!(", {}", m.describe()));
        let made = Made::new(OverStore::new::<DeviceMatrix<f64>>(m), nnz, bytes);
        Ok(Made { predicted: Some(predicted), shift, schedule, words, ..made })
    }
}

impl Store<Space> for DeviceStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn vector_bytes(&self, setup: &Context<'_>) -> usize {
        setup.method.workspace_bytes(self.rows) as usize + AROUND * self.rows
    }

    fn placement(&self) -> Option<SharedPlacement<Space>> {
        Some(Arc::new(AsGiven(self.rows)))
    }

    fn keep(
        &self,
        setup: &Context<'_>,
        role: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Space>, SetupError> {
        // M is made from the rows of another matrix than A, and nothing on the device multiplies by it.
        if role == Role::Source && setup.other_matrix().is_some() {
            return Ok(KeptMatrix::new(DeviceMatrix::pattern_only(setup.space, matrix)?));
        }
        let factor = if self.eliminated.is_some() { self.memory.factor } else { 0 };
        self.require_room(setup, (factor, 0))?;
        let mut kept = recorder.copying(|| DeviceMatrix::new(setup.space, matrix))?;
        kept.remember(setup.space, matrix);
        Ok(KeptMatrix::new(kept))
    }

    fn has_sweeps(&self) -> bool {
        self.eliminated.is_some()
    }

    fn triangles(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        _: Option<&KeptMatrix<Space>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Space>, SolveError> {
        let unsupported = || BackendError::Unsupported { what: "triangular factors that are not eliminated" };
        let form = self.eliminated.ok_or_else(unsupported)?;
        let SetupContext { space, source, .. } = *setup;
        let new = recorder.analyzing(|| Eliminated::new(space, form, source.pattern()))?;
        let mut m = DeviceFactor::Eliminated(Box::new(new));
        let shift = recorder.factor(space, setup.attempts(request.kind), |shift| {
            m.set_shift(shift);
            m.refactor_from(space, source)
        })?;
        m.set_shift(shift);
        self.made(setup, m, shift, self.memory.factor)
    }

    fn precision_of_host(&self, _: Precision) -> Precision {
        Precision::F64
    }

    fn adopt(
        &self,
        setup: &Context<'_>,
        made: Made<Threads<f64>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Space>, SolveError> {
        let OverStore::InOrder(host) = made.m else {
            return Err(BackendError::Unsupported { what: "a factor in another order than A" }.into());
        };
        let (space, rows) = (setup.space, self.rows);
        let predicted = DeviceFactor::predict(&host, rows, space.device().shape()) as usize;
        self.require_room(setup, (predicted, host.parts().map_or(host.bytes(), |_| 0)))?;
        let mut m = recorder.copying(|| DeviceFactor::of_host(space, host, rows))?;
        m.set_shift(made.shift);
        self.made(setup, m, made.shift, predicted)
    }

    fn describe(&self, kept: &Kept<'_, Space>, _: bool) -> (String, Storing) {
        let a = kept.matrices.and_then(|matrices| matrices.a.get::<DeviceMatrix<f64>>());
        let storage = a.map_or(DeviceStorage::Rows, DeviceMatrix::storage);
        (format!("{}: {storage} in the {} shape", self.memory.layout, self.shape), Storing::BY_ROWS)
    }
}
