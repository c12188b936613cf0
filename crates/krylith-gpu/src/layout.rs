//! The one layout of systems on a device: A and M there, rows in the order of A.

use crate::factor::{DeviceFactor, Eliminated};
use crate::matrix::{DeviceMatrix, DeviceStorage};
use crate::space::DeviceSpace;
use crate::sweeps::DeviceTriangles;
use krylith::engine::{DynEngine, Matrices, PlacedEngine};
use krylith::operator::{DynPreconditioner, Identity, Preconditioner};
use krylith::placement::AsGiven;
use krylith::precond::registry::Construction;
use krylith::precond::{Form, Incomplete, Kind, require_diagonal, require_symmetric};
use krylith::setup::{
    Attempt, Built, LayoutBuilder, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use krylith::solver::PrecondSpec;
use krylith::{BackendError, Csr, SetupError, SolveError};

type Context<'a> = SetupContext<'a, DeviceSpace<f64>>;

/// On the device.
pub(crate) struct DeviceLayout;

/// The layouts of a device.
pub(crate) static LAYOUTS: &[&dyn LayoutBuilder<DeviceSpace<f64>>] = &[&DeviceLayout];

/// Bytes per row of b, x and the recomputed residual, and of the pieces of 72 sums in chunks of 2048.
const AROUND: u64 = 25;

/// A factor without fill of a matrix with a full diagonal, which the device eliminates; for Cholesky with a symmetric pattern.
fn eliminated(kind: PrecondSpec, a: &Csr<f64>) -> Option<Kind> {
    let Construction::Incomplete(Incomplete { form, level: 0, .. }) = kind.construct() else { return None };
    let full = require_diagonal(a.pattern()).is_ok();
    let suits = form == Form::LU || form == Form::CHOLESKY && require_symmetric(a.pattern()).is_ok();
    (full && suits && a.nnz() < u32::MAX as usize).then_some(form.kind)
}

/// Bytes of A, of vectors, and of a factor of this many entries on the device, before anything is allocated there.
fn predict(setup: &Context<'_>, factor: u64) -> u64 {
    let (shape, rows) = (setup.space.device().shape(), setup.source.nrows());
    let matrix = |a: &Csr<f64>| DeviceStorage::choose(a.pattern(), shape).bytes(a.pattern(), shape);
    // Of another matrix than A the device needs no values.
    matrix(setup.other_matrix().unwrap_or(setup.source)) as u64
        + factor
        + setup.method.workspace_bytes(rows)
        + AROUND * rows as u64
}

/// `Err(MemoryLimit)` if the caller does not allow this many bytes, `Err(OutOfMemory)` if the device has no room for them.
fn require_room(setup: &Context<'_>, predicted: u64) -> Result<(), SetupError> {
    let (device, allowed) = (setup.space.device(), setup.options.max_memory.unwrap_or(u64::MAX));
    if predicted > allowed {
        return Err(SetupError::MemoryLimit { predicted, limit: allowed });
    }
    let room = device.info().memory_bytes.saturating_sub(device.live_bytes());
    match predicted > room {
        true => {
            Err(BackendError::OutOfMemory { device: device.info().name.clone(), bytes: predicted }.into())
        }
        false => Ok(()),
    }
}

/// A, and the matrix that M is made from where that is another, on the device.
fn matrices(setup: &Context<'_>) -> Result<Matrices<DeviceMatrix<f64>>, SetupError> {
    let upload = |a: &Csr<f64>| {
        let mut matrix = DeviceMatrix::new(setup.space, a)?;
        matrix.remember(setup.space, a);
        Ok::<_, SetupError>(matrix)
    };
    Ok(match setup.other_matrix() {
        // M is made from the rows of the other, and nothing on the device multiplies by it.
        Some(a) => Matrices::new(DeviceMatrix::pattern_only(setup.space, setup.source)?, Some(upload(a)?)),
        None => Matrices::new(upload(setup.source)?, None),
    })
}

impl LayoutBuilder<DeviceSpace<f64>> for DeviceLayout {
    fn name(&self) -> &'static str {
        "device"
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        _: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        if setup.a.is_none() {
            return Ok(Prospect::Refuses("A has no matrix".into()));
        }
        let rows = setup.source.nrows();
        let layout = format!("on the device {}", setup.space.device().info().selector());
        let entries = kind.predicted_entries(setup.source.pattern());
        let bytes =
            entries.map(|entries| predict(setup, DeviceTriangles::predict(rows, 2 * entries as usize)));
        Ok(Prospect::Takes { layout, bytes })
    }

    fn without_preconditioner(
        &self,
        setup: &Context<'_>,
    ) -> Result<Option<DynEngine<DeviceSpace<f64>>>, SolveError> {
        if setup.a.is_none() {
            return Ok(None);
        }
        require_room(setup, predict(setup, 0))?;
        let layout = setup.layout;
        let m = DynPreconditioner::new(Identity::new(layout));
        Ok(Some(DynEngine::new(PlacedEngine::new(Box::new(AsGiven(layout)), matrices(setup)?, m))))
    }

    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<DeviceSpace<f64>>, SolveError> {
        if setup.a.is_none() {
            return Ok(Attempt::Refused("A has no matrix".into()));
        }
        let SetupContext { space, source, options, .. } = *setup;
        let rows = source.nrows();
        let on_device = recorder.analyzing(|| eliminated(kind, source));
        let (mut m, shift, predicted) = match on_device {
            Some(form) => {
                let predicted = predict(setup, Eliminated::predict(form, rows, source.nnz()));
                require_room(setup, predicted)?;
                let new = recorder.analyzing(|| Eliminated::new(space, form, source.pattern()))?;
                let mut m = DeviceFactor::Eliminated(Box::new(new));
                let shift = recorder.factor(space, (options.recover, kind), 0.0, |shift| {
                    m.set_shift(shift);
                    m.refactor_from(space, source)
                })?;
                (m, shift, predicted)
            }
            None => {
                let (host, summary) = setup.build_on_host(kind, recorder)?;
                let predicted = predict(setup, DeviceFactor::predict(&host, rows, space.device().shape()));
                require_room(setup, predicted)?;
                let m = recorder.copying(|| DeviceFactor::of_host(space, host, rows))?;
                (m, summary.shift, predicted)
            }
        };
        m.set_shift(shift);
        let matrices = recorder.copying(|| matrices(setup))?;
        space.finish()?;
        let storage = matrices.a.storage();
        let (nnz, bytes) = (m.entries(), m.bytes());
        let held = bytes
            + matrices.bytes(DeviceMatrix::bytes)
            + setup.method.workspace_bytes(rows) as usize
            + AROUND as usize * rows;
        let summary = SetupSummary {
            kind,
            nnz,
            bytes,
            shift,
            schedule: m.schedule(),
            layout: format!(
                "on the device {}: {storage} in the {} shape, {}",
                space.device().info().selector(),
                space.device().shape(),
                m.describe()
            ),
            ordering: String::new(),
            predicted: predicted as usize,
            held,
            storing: Storing::BY_ROWS,
        };
        let engine = PlacedEngine::new(Box::new(AsGiven(setup.layout)), matrices, DynPreconditioner::new(m));
        Ok(Attempt::Built(Built::Placed(DynEngine::new(engine)), summary))
    }
}
