//! From options and a matrix to an engine: the choice of method and preconditioner, and what follows a failure of the latter.

use super::Solver;
use super::choice::{Method, Preconditioning, Threshold};
use super::engine::{Engine, Site, Told};
use super::log::Log;
use crate::error::{SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::report::Recovery;
use crate::space::Threads;

impl Solver {
    /// The rule of the module's head.
    pub(super) fn choose(&self, matrix: &Csr<f64>) -> (Method, Preconditioning, String) {
        if self.method != Method::Auto && self.preconditioner != Preconditioning::Auto {
            return (self.method, self.preconditioner, "as asked".into());
        }
        let symmetric = matrix.view().symmetry().symmetric;
        let definite = symmetric && has_positive_diagonal(matrix);
        let why = match (definite, symmetric) {
            (true, _) => "symmetric with a positive diagonal",
            (false, true) => "symmetric, but the diagonal is not all positive",
            (false, false) => "not symmetric",
        };
        let method = match self.method {
            Method::Auto if definite => Method::Cg,
            Method::Auto => Method::BiCgStab,
            asked => asked,
        };
        // IC(0) goes with the methods that need a positive definite M, and with a matrix that can have one.
        let symmetric_method = matches!(method, Method::Cg | Method::Minres);
        let preconditioner = match self.preconditioner {
            Preconditioning::Auto if definite && symmetric_method => Preconditioning::Ic(0),
            Preconditioning::Auto if symmetric_method => Preconditioning::None,
            Preconditioning::Auto => Preconditioning::Ilu(0),
            asked => asked,
        };
        (method, preconditioner, format!("{method} with {preconditioner}: the matrix is {why}"))
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
            Preconditioning::Mic(_, omega) | Preconditioning::Milu(_, omega, _) => {
                let fits = (0.0..=1.0).contains(&omega);
                if fits { Ok(()) } else { Err(invalid("omega", omega, "a number from 0 to 1 is needed")) }
            }
            Preconditioning::Ict(tau) => not_negative("the threshold of ict", tau),
            Preconditioning::Ilut(Threshold { keep, tau, .. }) => {
                not_negative("the threshold of ilut", tau)?;
                match keep {
                    super::Keep::Factor(factor) if !(factor.is_finite() && factor >= 1.0) => {
                        Err(invalid("the fill factor", factor, "a finite number from 1 on is needed"))
                    }
                    _ => Ok(()),
                }
            }
            Preconditioning::Block(_, Some(size)) if !(1..=8).contains(&size) => {
                Err(invalid("the block size", size as f64, "a number from 1 to 8 is needed"))
            }
            _ => Ok(()),
        }
    }
}

fn invalid(name: &'static str, value: f64, needed: &'static str) -> SolveError {
    SolveError::Option { name, value: value.to_string(), needed }
}

/// Builds the preconditioner. A pivot that no shift repairs is followed by the diagonal in a form that cannot fail, fill that is out
/// of proportion by less of it, unless it was the caller who set the limit.
pub(super) fn build<A: LinearOperator<Threads<f64>> + 'static>(
    site: &Site<'_, A>,
    mut wanted: Preconditioning,
    log: &mut Log,
) -> Result<(Engine<A>, Told), SolveError> {
    let unlimited = site.options.max_bytes.is_none() && site.options.max_memory.is_none();
    loop {
        log.rows = None;
        let error = match Engine::new(site, wanted, log) {
            Err(SolveError::Setup(error)) if site.options.recover => error,
            Err(SolveError::Setup(error)) => return Err(of_the_whole(site.options, error).into()),
            done => return done,
        };
        let (row, value, next) = match error {
            SetupError::BadPivot { row, value } => (Some(row), Some(value), Preconditioning::Jacobi),
            SetupError::MissingDiagonal { row } => (Some(row), None, Preconditioning::Jacobi),
            SetupError::MemoryLimit { .. } if unlimited => match wanted.with_less_fill() {
                Some(next) => (None, None, next),
                None => return Err(error.into()),
            },
            other => return Err(of_the_whole(site.options, other).into()),
        };
        let action = match next {
            Preconditioning::Jacobi => "the diagonal, or the largest entry of a row where it has none".into(),
            other => format!("{other} instead"),
        };
        log.recovery.push(Recovery { failed: format!("{wanted}: {error}"), row, value, action });
        if next == Preconditioning::Jacobi && log.forgiving {
            return Err(error.into());
        }
        log.forgiving |= next == Preconditioning::Jacobi;
        wanted = next;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::BackendError;

    /// A name that is parsed but not built must not run without a preconditioner.
    #[test]
    fn a_kind_that_nothing_builds_is_an_error() {
        let (options, space, a) = (Solver::new(), Threads::new(1), Csr::<f64>::identity(4).unwrap());
        let site = Site {
            options: &options,
            space: &space,
            a: &a,
            matrix: &a,
            method: Method::Cg,
            scale: 1.0,
            reserved: 0,
        };
        let built = build(&site, Preconditioning::Auto, &mut Log::default());
        assert!(matches!(built.err(), Some(SolveError::Backend(BackendError::Unsupported { .. }))));
    }
}
