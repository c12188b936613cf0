//! Analysis, factor and workspace of one matrix pattern, for any number of solves.

use super::Solver;
use super::certify::{Certifier, Ended};
use super::choice::{Method, Preconditioning};
use crate::error::{SetupError, SolveError};
use crate::krylov::{BiCgStab, Cg, Fgmres, Finish, Gmres, Minres, System};
use crate::matrix::{Csr, Summary};
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::{Ic0, Ilu0, Jacobi};
use crate::report::{Outcome, Recovery, Report, Seconds};
use crate::space::Threads;
use crate::stop::StoppingCriterion;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

type Space = Threads<f64>;
type Factor = DynPreconditioner<Space, Csr<f64>>;

/// Everything a solve needs but A, b and x.
///
/// ```
/// use krylith::{Solver, gallery::Problem};
/// let mut a = "poisson2d:20".parse::<Problem>()?.generate()?;
/// let b = vec![1.0; a.nrows()];
/// let mut prepared = Solver::new().threads(2).prepare(&a)?;
/// let mut x = vec![0.0; a.nrows()];
/// for _ in 0..3 {
///     prepared.solve(&a, &b, &mut x, &mut ())?.require_converged()?;
///     a.values_mut().iter_mut().for_each(|v| *v *= 1.1);
///     prepared.refactor(&a)?; // the pattern is the same: nothing is analyzed or allocated
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prepared<A: LinearOperator<Space>> {
    options: Solver,
    space: Arc<Space>,
    method: Method,
    factor: Built,
    workspace: Workspace<A>,
    choice: String,
    recovery: Vec<Recovery>,
    seconds: Seconds,
}

/// A preconditioner and what is told of it.
struct Built {
    m: Factor,
    kind: Preconditioning,
    nnz: usize,
    bytes: usize,
    schedule: Option<[String; 2]>,
}

impl Built {
    fn none(n: usize) -> Self {
        let m = Factor::new(Identity::new(n));
        Built { m, kind: Preconditioning::None, nnz: 0, bytes: 0, schedule: None }
    }
}

enum Workspace<A: LinearOperator<Space>> {
    Cg(Cg<Space, A, Factor>),
    BiCgStab(BiCgStab<Space, A, Factor>),
    Gmres(Gmres<Space, A, Factor>),
    Fgmres(Fgmres<Space, A, Factor>),
    Minres(Minres<Space, A, Factor>),
}

impl<A: LinearOperator<Space>> Workspace<A> {
    fn new(method: Method, system: System<'_, Space, A, Factor>) -> Result<Self, SolveError> {
        Ok(match method {
            Method::Cg => Workspace::Cg(Cg::new(system)?),
            Method::Gmres(restart) => Workspace::Gmres(Gmres::new(system, restart)?),
            Method::Fgmres(restart) => Workspace::Fgmres(Fgmres::new(system, restart)?),
            Method::Minres => Workspace::Minres(Minres::new(system)?),
            Method::BiCgStab | Method::Auto => Workspace::BiCgStab(BiCgStab::new(system)?),
        })
    }

    /// Runs the method; `again` after the residual was found to have drifted.
    fn run(
        &mut self,
        again: bool,
        system: System<'_, Space, A, Factor>,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, crate::BackendError> {
        match self {
            Workspace::Cg(w) if again => w.resume(system, b, x, stop, observer),
            Workspace::Cg(w) => w.solve(system, b, x, stop, observer),
            Workspace::BiCgStab(w) => w.solve(system, b, x, stop, observer),
            Workspace::Gmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Fgmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Minres(w) => w.solve(system, b, x, stop, observer),
        }
    }
}

impl Solver {
    /// The same for an A that is only applied (`LinearOperator`), with a matrix for the preconditioner and the choices.
    pub fn prepare_with<A: LinearOperator<Threads<f64>> + 'static>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A>, SolveError> {
        matrix.pattern().require_square().map_err(SetupError::from)?;
        let space = match self.threads {
            Some(threads) => Threads::new(threads),
            None => Threads::all_cores(),
        };
        let started = Instant::now();
        let (method, wanted, choice) = self.choose(matrix);
        let mut seconds = Seconds { analyze: started.elapsed().as_secs_f64(), ..Seconds::default() };
        let mut recovery = Vec::new();
        let automatic = self.preconditioner == Preconditioning::Auto;
        let factor = self.build(&space, matrix, wanted, automatic, &mut recovery, &mut seconds)?;
        let workspace = Workspace::new(method, System { space: &space, a, m: &factor.m })?;
        Ok(Prepared {
            options: self.clone(),
            space: Arc::new(space),
            method,
            factor,
            workspace,
            choice,
            recovery,
            seconds,
        })
    }

    /// The rule of the module's head.
    fn choose(&self, matrix: &Csr<f64>) -> (Method, Preconditioning, String) {
        if self.method != Method::Auto && self.preconditioner != Preconditioning::Auto {
            return (self.method, self.preconditioner, "as asked".into());
        }
        let facts = Summary::new(matrix);
        let definite = facts.symmetry.symmetric && facts.diagonal.positive == matrix.nrows();
        let why = match (definite, facts.symmetry.symmetric) {
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
            Preconditioning::Auto if definite && symmetric_method => Preconditioning::Ic0,
            Preconditioning::Auto if symmetric_method => Preconditioning::None,
            Preconditioning::Auto => Preconditioning::Ilu0,
            asked => asked,
        };
        (method, preconditioner, format!("{method} with {preconditioner}: the matrix is {why}"))
    }

    /// Builds the preconditioner; if the choice is ours, Jacobi follows a bad pivot and none a zero on the diagonal.
    fn build(
        &self,
        space: &Space,
        matrix: &Csr<f64>,
        wanted: Preconditioning,
        automatic: bool,
        recovery: &mut Vec<Recovery>,
        seconds: &mut Seconds,
    ) -> Result<Built, SolveError> {
        let mut wanted = wanted;
        loop {
            match self.build_one(space, matrix, wanted, seconds) {
                Ok(built) => return Ok(built),
                Err(error) => {
                    let (row, value) = match error {
                        SetupError::BadPivot { row, value } => (Some(row), Some(value)),
                        SetupError::MissingDiagonal { row } => (Some(row), None),
                        other => return Err(other.into()),
                    };
                    if !automatic {
                        return Err(error.into());
                    }
                    let next = match wanted {
                        Preconditioning::Ic0 | Preconditioning::Ilu0 => Preconditioning::Jacobi,
                        _ => Preconditioning::None,
                    };
                    let failed = format!("{wanted}: {error}");
                    recovery.push(Recovery { failed, row, value, action: format!("{next} instead") });
                    wanted = next;
                }
            }
        }
    }

    fn build_one(
        &self,
        space: &Space,
        matrix: &Csr<f64>,
        kind: Preconditioning,
        seconds: &mut Seconds,
    ) -> Result<Built, SetupError> {
        let schedule = self.schedule;
        let why = |(down, up): (&crate::schedule::Plan, &crate::schedule::Plan)| {
            Some([down.why().to_owned(), up.why().to_owned()])
        };
        let (m, nnz, bytes, schedule) = match kind {
            Preconditioning::None | Preconditioning::Auto => return Ok(Built::none(matrix.nrows())),
            Preconditioning::Jacobi => {
                let f = timed(&Jacobi, space, matrix, seconds)?;
                let (nnz, bytes) = (matrix.nrows(), f.bytes());
                (Factor::new(f), nnz, bytes, None)
            }
            Preconditioning::Ic0 => {
                let f = timed(&Ic0 { schedule }, space, matrix, seconds)?;
                let (nnz, bytes, plans) = (f.nnz(), f.bytes(), why(f.plans()));
                (Factor::new(f), nnz, bytes, plans)
            }
            Preconditioning::Ilu0 => {
                let f = timed(&Ilu0 { schedule }, space, matrix, seconds)?;
                let (nnz, bytes, plans) = (f.nnz(), f.bytes(), why(f.plans()));
                (Factor::new(f), nnz, bytes, plans)
            }
        };
        Ok(Built { m, kind, nnz, bytes, schedule })
    }
}

/// Analyzes and factors, adding up the seconds.
fn timed<R: Recipe<Space, Csr<f64>>>(
    recipe: &R,
    space: &Space,
    matrix: &Csr<f64>,
    seconds: &mut Seconds,
) -> Result<<R::Symbolic as Symbolic<Space, Csr<f64>>>::Factor, SetupError> {
    let started = Instant::now();
    let symbolic = recipe.analyze(space, matrix);
    seconds.analyze += started.elapsed().as_secs_f64();
    let started = Instant::now();
    let factor = symbolic?.factor(space, matrix);
    seconds.factor += started.elapsed().as_secs_f64();
    factor
}

fn infinity_norm(a: &Csr<f64>) -> f64 {
    use rayon::prelude::*;
    let row = |i| a.row(i).1.iter().map(|v: &f64| v.abs()).sum::<f64>();
    (0..a.nrows()).into_par_iter().map(row).reduce(|| 0.0, f64::max)
}

impl<A: LinearOperator<Space> + 'static> Prepared<A> {
    /// Takes over the values of a matrix of the same pattern; allocates nothing.
    pub fn refactor(&mut self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let started = Instant::now();
        self.factor.m.refactor(&self.space, matrix)?;
        self.seconds = Seconds { analyze: 0.0, factor: started.elapsed().as_secs_f64(), solve: 0.0 };
        Ok(())
    }

    /// Solves A x = b from the guess in `x`. The answer is judged by the residual recomputed from A, x and b.
    pub fn solve(
        &mut self,
        a: &A,
        b: &[f64],
        x: &mut Vec<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        let started = Instant::now();
        let b = b.to_vec();
        let mut certifier = Certifier::new(&self.space, a, &b, &self.options)?;
        let mut recovery = self.recovery.clone();
        if certifier.is_zero() {
            // Nothing to find out: A 0 = 0, whatever the guess.
            x.fill(0.0);
        }
        let mut ended = self.iterate(a, &b, x, &mut certifier, observer)?;
        // The rule of `auto` goes on with a more patient method from where this one ended.
        if self.options.method == Method::Auto
            && let Some((next, none)) = successor(self.method, ended.outcome)
            && certifier.iterations() < self.options.max_iterations
        {
            let failed = format!("{}: {}", self.method, ended.what);
            let with = if none { "none" } else { "the same preconditioner" };
            recovery.push(Recovery { failed, row: None, value: None, action: format!("{next} with {with}") });
            if none {
                self.factor = Built::none(b.len());
            }
            if !x.iter().all(|x| x.is_finite()) {
                x.fill(0.0);
            }
            self.method = next;
            self.workspace = Workspace::new(next, System { space: &*self.space, a, m: &self.factor.m })?;
            ended = self.iterate(a, &b, x, &mut certifier, observer)?;
        }
        let seconds = Seconds { solve: started.elapsed().as_secs_f64(), ..self.seconds };
        let matrix = (a as &dyn Any).downcast_ref::<Csr<f64>>();
        let backward_error = matrix.map(|a| certifier.backward_error(infinity_norm(a), x, &b));
        Ok(self.report(ended, certifier, recovery, seconds, backward_error))
    }

    /// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
    fn iterate(
        &mut self,
        a: &A,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        certifier: &mut Certifier<'_, A>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Ended, SolveError> {
        let system = System { space: &*self.space, a, m: &self.factor.m };
        let mut again = false;
        loop {
            let finish = certifier
                .watch(observer, |stop, observer| self.workspace.run(again, system, b, x, stop, observer))?;
            match certifier.judge(finish, b, x)? {
                Some(ended) => return Ok(ended),
                None => again = true,
            }
        }
    }

    fn report(
        &self,
        ended: Ended,
        certifier: Certifier<'_, A>,
        recovery: Vec<Recovery>,
        seconds: Seconds,
        backward_error: Option<f64>,
    ) -> Report {
        Report {
            outcome: ended.outcome,
            solver: self.method.to_string(),
            preconditioner: self.factor.kind.to_string(),
            choice: self.choice.clone(),
            threads: self.space.threads(),
            iterations: certifier.iterations(),
            relative_residual: certifier.relative_residual(),
            backward_error,
            residual_replacements: certifier.replacements(),
            history: certifier.into_history(),
            preconditioner_nnz: self.factor.nnz,
            preconditioner_bytes: self.factor.bytes,
            schedule: self.factor.schedule.clone(),
            recovery,
            seconds,
        }
    }
}

/// What `auto` goes on with, and whether the preconditioner is left out.
fn successor(method: Method, outcome: Outcome) -> Option<(Method, bool)> {
    match (method, outcome) {
        (Method::Cg, Outcome::IndefiniteOperator | Outcome::IndefinitePreconditioner) => {
            Some((Method::Minres, true))
        }
        (Method::BiCgStab, Outcome::Breakdown | Outcome::NotFinite) => Some((Method::Gmres(30), false)),
        _ => None,
    }
}
