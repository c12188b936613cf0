//! From options and a matrix to an engine: the choice of method and preconditioner, and what follows a failure of the latter.

use super::options::Solver;
use super::reorder::{Permutations, reordered};
use crate::choice::{FillRule, Method, PrecondSpec, Threshold};
use crate::engine::{Engine, InOrder, OfMatrix, SolverSpace};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::{Csr, Symmetry};
use crate::operator::LinearOperator;
use crate::report::Recovery;
use crate::setup::{
    Built, LayoutBuilder, SetupContext, SetupOptions, SetupRecorder, SetupSummary, agree, in_layouts,
    no_preconditioner,
};

impl Solver {
    /// The rule of the module's head.
    pub(super) fn choose<S: SolverSpace>(
        &self,
        space: &S,
        matrix: &Csr<f64>,
    ) -> Result<(Method, PrecondSpec, String), SolveError> {
        // What holds for the parts of all processes.
        let everywhere =
            |holds: bool| Ok::<_, BackendError>(space.first((!holds).then_some((0, 0.0)))?.is_none());
        if self.method != Method::Auto && self.preconditioner != PrecondSpec::Auto {
            return Ok((self.method, self.preconditioner, "as asked".into()));
        }
        let Symmetry { symmetric, pattern, .. } = matrix.view().symmetry();
        let (symmetric, pattern) = (everywhere(symmetric)?, everywhere(pattern)?);
        let definite = everywhere(symmetric && has_positive_diagonal(matrix))?;
        let reason = match (definite, symmetric, pattern) {
            (true, _, true) => "symmetric with a positive diagonal",
            (true, _, false) => {
                "symmetric with a positive diagonal, but explicit zeros on one side keep IC(0) from it"
            }
            (false, true, _) => "symmetric, but the diagonal is not all positive",
            (false, false, _) => "not symmetric",
        };
        // Without IC(0) there is ILU(0), which needs another method than conjugate gradients.
        let method = match self.method {
            Method::Auto if definite && (pattern || self.preconditioner != PrecondSpec::Auto) => Method::Cg,
            Method::Auto => Method::BiCgStab,
            asked => asked,
        };
        // IC(0) goes with the methods that need a positive definite M, and with a matrix that can have one.
        let symmetric_method = matches!(method, Method::Cg | Method::Minres);
        let preconditioner = match self.preconditioner {
            PrecondSpec::Auto if definite && symmetric_method && pattern => PrecondSpec::Ic(0),
            PrecondSpec::Auto if definite && symmetric_method => PrecondSpec::Jacobi,
            PrecondSpec::Auto if symmetric_method => PrecondSpec::None,
            PrecondSpec::Auto => PrecondSpec::Ilu(0),
            asked => asked,
        };
        Ok((method, preconditioner, format!("{method} with {preconditioner}: the matrix is {reason}")))
    }

    pub(super) fn setup_options(&self) -> SetupOptions {
        let Solver { schedule, layout, precision, recover, max_bytes, max_memory, .. } = *self;
        SetupOptions { schedule, layout, precision, recover, max_bytes, max_memory }
    }

    /// `Err(Option)` for a number that no solve can work with.
    pub(super) fn validate(&self) -> Result<(), SolveError> {
        let not_negative = |name, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(invalid(name, value, "a finite number from 0 on is needed")),
        };
        not_negative("rtol", self.rtol)?;
        not_negative("atol", self.atol)?;
        match self.preconditioner {
            PrecondSpec::Mic(_, omega) | PrecondSpec::Milu(_, omega, _) => {
                let fits = (0.0..=1.0).contains(&omega);
                if fits { Ok(()) } else { Err(invalid("omega", omega, "a number from 0 to 1 is needed")) }
            }
            PrecondSpec::Ict(tau) => not_negative("the threshold of ict", tau),
            PrecondSpec::Ilut(Threshold { keep, tau, .. }) => {
                not_negative("the threshold of ilut", tau)?;
                match keep {
                    FillRule::Factor(factor) if !(factor.is_finite() && factor >= 1.0) => {
                        Err(invalid("the fill factor", factor, "a finite number from 1 on is needed"))
                    }
                    _ => Ok(()),
                }
            }
            PrecondSpec::Block(_, Some(size)) if !(1..=8).contains(&size) => {
                Err(invalid("the block size", size as f64, "a number from 1 to 8 is needed"))
            }
            _ => Ok(()),
        }
    }
}

fn invalid(name: &'static str, value: f64, needed: &'static str) -> SolveError {
    SolveError::Option { name, value: value.to_string(), needed }
}

/// A system to be set up, and where.
pub(super) struct System<'a, S: SolverSpace, A> {
    pub(super) solver: &'a Solver,
    pub(super) space: &'a S,
    pub(super) layouts: &'a [&'a dyn LayoutBuilder<S>],
    pub(super) a: &'a A,
    pub(super) source: &'a Csr<f64>,
    /// The power of two that brings the source into range.
    pub(super) scale: f64,
    pub(super) method: Method,
}

/// An engine and what the report says of it.
pub(super) type SetUp<S, A> = (Box<dyn Engine<S, A>>, SetupSummary);

impl<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static> System<'_, S, A> {
    /// Builds the preconditioner. A pivot that no shift repairs is followed by the diagonal in a form that cannot fail, fill that is
    /// out of proportion by less of it, unless it was the caller who set the limit.
    pub(super) fn set_up(
        &self,
        mut wanted: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<SetUp<S, A>, SolveError> {
        let options = self.solver;
        let unlimited = options.max_bytes.is_none() && options.max_memory.is_none();
        loop {
            recorder.rows = None;
            let error = match self.set_up_one(wanted, recorder) {
                Err(SolveError::Setup(error)) if options.recover => error,
                Err(SolveError::Setup(error)) => return Err(of_the_whole(options, error).into()),
                done => return done,
            };
            let (row, value, next) = match error {
                SetupError::BadPivot { row, value } => (Some(row), Some(value), PrecondSpec::Jacobi),
                SetupError::MissingDiagonal { row } => (Some(row), None, PrecondSpec::Jacobi),
                SetupError::MemoryLimit { .. } if unlimited => match wanted.with_less_fill() {
                    Some(next) => (None, None, next),
                    None => return Err(error.into()),
                },
                other => return Err(of_the_whole(options, other).into()),
            };
            let action = match next {
                PrecondSpec::Jacobi => "the diagonal, or the largest entry of a row where it has none".into(),
                other => format!("{other} instead"),
            };
            recorder.recovery.push(Recovery { failed: format!("{wanted}: {error}"), row, value, action });
            if next == PrecondSpec::Jacobi && recorder.robust {
                return Err(error.into());
            }
            recorder.robust |= next == PrecondSpec::Jacobi;
            wanted = next;
        }
    }

    /// Analyzes and factors, adding up the seconds; what fails on the way and is recovered from is recorded.
    pub(super) fn set_up_one(
        &self,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<SetUp<S, A>, SolveError> {
        let System { solver, space, layouts, a, source, scale, method } = *self;
        let (options, own) = (solver.setup_options(), a.matrix());
        let setup = SetupContext::new(options, space, a.domain(), own, source, (method, scale));
        agree(space, setup.require_room(kind))?;
        if let Some((engine, summary)) = set_up_permuted(solver, &setup, layouts, kind, recorder)? {
            return Ok((Box::new(OfMatrix(engine)), summary));
        }
        let (built, summary) = in_layouts(setup, layouts, kind, recorder)?;
        Ok(match built {
            Built::Placed(engine) => (Box::new(OfMatrix(engine)), summary),
            Built::InOrder(m) => (Box::new(InOrder::new(space, a, m, method)?), summary),
        })
    }
}

/// Sets up the permuted and scaled system, if rows and columns do not stay as they are.
pub(super) fn set_up_permuted<S: SolverSpace>(
    solver: &Solver,
    setup: &SetupContext<'_, S>,
    layouts: &[&dyn LayoutBuilder<S>],
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Option<SetUp<S, Csr<f64>>>, SolveError> {
    let Some(found) = Permutations::find(solver, setup, kind, recorder)? else { return Ok(None) };
    let (engine, summary) = reordered(setup, layouts, found, kind, recorder)?;
    Ok(Some((Box::new(engine), summary)))
}

/// No preconditioner, for an operator that is no matrix.
pub(super) fn without<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static>(
    space: &S,
    a: &A,
    method: Method,
) -> Result<SetUp<S, A>, SolveError> {
    let (m, summary) = no_preconditioner(space, a.domain(), method);
    Ok((Box::new(InOrder::new(space, a, m, method)?), summary))
}

/// With a limit on the whole solve, an error says what the whole solve takes: `limit` was what vectors had left of it.
fn of_the_whole(options: &Solver, error: SetupError) -> SetupError {
    match (error, options.max_bytes, options.max_memory) {
        (SetupError::MemoryLimit { predicted, limit }, None, Some(whole)) => {
            SetupError::MemoryLimit { predicted: predicted.saturating_add(whole - limit), limit: whole }
        }
        (other, ..) => other,
    }
}

fn has_positive_diagonal(a: &Csr<f64>) -> bool {
    use rayon::prelude::*;
    (0..a.nrows()).into_par_iter().with_min_len(1 << 12).all(|i| a.get(i, i) > 0.0)
}
