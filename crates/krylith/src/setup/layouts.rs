//! The layouts of a space, tried one after the other.

use super::{
    Attempt, Built, LayoutBuilder, SetupContext, SetupRecorder, SetupSummary, Storing, vector_bytes,
};
use crate::choice::Method;
use crate::engine::SolverSpace;
use crate::error::{BackendError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Identity};
use crate::precond::PrecondSpec;

/// The first layout that takes the system, with rows and columns as they are.
pub(crate) fn in_layouts<S: SolverSpace>(
    mut setup: SetupContext<'_, S>,
    layouts: &[&dyn LayoutBuilder<S>],
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<(Built<S>, SetupSummary), SolveError> {
    if kind.is_none() {
        for layout in layouts {
            if let Some(engine) = layout.without_preconditioner(&setup)? {
                let (_, summary) = no_preconditioner(setup.space, setup.layout, setup.method);
                return Ok((Built::Placed(engine), summary));
            }
        }
        let (m, summary) = no_preconditioner(setup.space, setup.layout, setup.method);
        return Ok((Built::InOrder(m), summary));
    }
    setup.choose_precision(kind, recorder);
    for layout in layouts {
        match layout.build(&setup, kind, recorder)? {
            Attempt::Built(built, mut summary) => {
                summary.storing.kind = layout.kind();
                summary.storing.narrow = setup.narrow && kind.incomplete().is_some();
                return Ok((built, summary));
            }
            Attempt::Refused(reason) => setup.refusals.borrow_mut().push(reason),
        }
    }
    // What no layout has built must not run without a preconditioner.
    Err(BackendError::Unsupported { what: "this preconditioner" }.into())
}

/// No preconditioner, in any space.
pub(crate) fn no_preconditioner<S: SolverSpace>(
    space: &S,
    layout: S::Layout,
    method: Method,
) -> (DynPreconditioner<S, Csr<f64>>, SetupSummary) {
    let n = space.len(&layout);
    let bytes = vector_bytes(method, n) as usize;
    let summary = SetupSummary {
        kind: PrecondSpec::none(),
        nnz: 0,
        bytes: 0,
        shift: 0.0,
        schedule: None,
        layout: "rows as given".into(),
        ordering: String::new(),
        predicted: bytes,
        held: bytes,
        storing: Storing::BY_ROWS,
    };
    (DynPreconditioner::new(Identity::<S>::new(layout)), summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Layout, Precision};
    use crate::schedule::Schedule;
    use crate::setup::SetupOptions;
    use crate::solver::LAYOUTS;
    use crate::space::Threads;

    /// A name that is parsed but not built must not run without a preconditioner.
    #[test]
    fn a_kind_that_nothing_builds_is_an_error() {
        let (space, a) = (Threads::new(1), Csr::<f64>::identity(4).unwrap());
        let options = SetupOptions {
            schedule: Schedule::Auto,
            layout: Layout::Auto,
            precision: Precision::F64,
            recover: true,
            max_bytes: None,
            max_memory: None,
        };
        let setup = SetupContext::new(options, &space, 4, Some(&a), &a, (Method::Cg, 1.0));
        let built = in_layouts(setup, LAYOUTS, PrecondSpec::auto(), &mut SetupRecorder::default());
        assert!(matches!(built.err(), Some(SolveError::Backend(BackendError::Unsupported { .. }))));
    }
}
