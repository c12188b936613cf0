//! Solves on threads of this process, the space that [`Solver`] takes by itself.

use super::options::Solver;
use super::prepared::{Prepared, Seen};
use super::runs::Watch;
use crate::error::{BackendError, SolveError};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{
    AnyOperator, DynOperator, DynPreconditioner, LinearOperator, Preconditioner, SolverSpace,
};
use crate::plan::SolvePlan;
use crate::report::Report;
use crate::space::{Profile, Threads, cores, require_same};
use crate::stop::StoppingCriterion;
use crate::store::{ByRows, FindStore, InBlocks, InSingle, InSlices, OnGrid};
use std::sync::{Arc, Mutex, PoisonError};

/// The stores of systems on threads, in the order in which they are asked.
pub const STORES: &[&dyn FindStore<Threads<f64>>] = &[&InSingle, &OnGrid, &InBlocks, &InSlices, &ByRows];

impl SolverSpace for Threads<f64> {
    fn host(&self) -> &Threads<f64> {
        self
    }

    fn operator_of_rows<'a>(&self, a: &'a Csr<f64>) -> Result<&'a dyn AnyOperator<Self>, BackendError> {
        Ok(a)
    }

    fn operator_of_own_rows(&self, rows: Csr<f64>, _: usize) -> Result<DynOperator<Self>, BackendError> {
        Ok(Box::new(rows))
    }

    fn begin_report(&self, profile: bool) {
        self.restart_profile(profile);
    }

    fn profile(&self) -> Option<Profile> {
        Threads::profile(self)
    }

    fn beside(&self) -> Option<Self> {
        Some(Threads::new(1))
    }
}

/// An answer and its report.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an answer may not have converged: see its report"]
pub struct Solution {
    /// The answer; where the solve did not converge, the best iterate that was found.
    pub x: Vec<f64>,
    /// What was done and reached.
    pub report: Report,
}

/// Solves A x = b with default options: ‖b − A x‖₂ ≤ 10⁻⁸ ‖b‖₂ on all cores.
pub fn solve(a: &Csr<f64>, b: &[f64]) -> Result<Solution, SolveError> {
    Solver::new().solve(a, b)
}

impl Solver {
    /// Solves A x = b from x = 0.
    pub fn solve(&self, a: &Csr<f64>, b: &[f64]) -> Result<Solution, SolveError> {
        let mut x = vec![0.0; a.ncols()];
        let report = self.solve_from(a, b, &mut x)?;
        Ok(Solution { x, report })
    }

    /// Solves A x = b from the guess in `x`.
    pub fn solve_from(&self, a: &Csr<f64>, b: &[f64], x: &mut [f64]) -> Result<Report, SolveError> {
        self.prepare(a)?.solve(a, b, x)
    }

    /// What a solve of this matrix will do, and why. It analyzes, and factors nothing, unless a sparser matrix is to be decided about.
    pub fn plan(&self, a: &Csr<f64>) -> Result<SolvePlan, SolveError> {
        self.plan_with(a, a)
    }

    /// The same for an A whose preconditioner is made from another matrix: what [`prepare_with`](Self::prepare_with) will do.
    pub fn plan_with<A: LinearOperator<Threads<f64>>>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<SolvePlan, SolveError> {
        let threads = self.threads.unwrap_or_else(cores);
        self.plan_on(&Threads::for_rows(threads, matrix.nrows()), STORES, a, matrix)
    }

    /// Analyzes and factors A, and allocates what solving needs.
    pub fn prepare(&self, a: &Csr<f64>) -> Result<Prepared<Csr<f64>>, SolveError> {
        self.prepare_with(a, a)
    }

    /// Analyzes and factors for an A that is only applied (`LinearOperator`), with a matrix for the preconditioner. Where A is a matrix too, of
    /// any other pattern, its facts choose the method, and both are stored in the order that suits the factor. Otherwise the facts of `matrix` do.
    pub fn prepare_with<A: LinearOperator<Threads<f64>>>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A>, SolveError> {
        let threads = self.threads.unwrap_or_else(cores);
        self.prepare_on(Threads::for_rows(threads, matrix.nrows()), STORES, a, matrix)
    }

    /// Prepares for an A that is only applied, without a matrix and so without a preconditioner: BiCGStab unless a method is asked for.
    /// An error if a preconditioner is asked for.
    ///
    /// ```
    /// use krylith::{Method, Solver, operator::FnOperator};
    /// let mesh = vec![0.01; 100]; // borrowed, not moved
    /// let a = FnOperator::new(100, |x: &[f64], y: &mut [f64]| {
    ///     for i in 0..100 {
    ///         let left = if i > 0 { x[i - 1] } else { 0.0 };
    ///         let right = if i < 99 { x[i + 1] } else { 0.0 };
    ///         y[i] = (2.0 * x[i] - left - right) / mesh[i];
    ///     }
    /// });
    /// let prepared = Solver::new().method(Method::Cg).prepare_operator(&a)?;
    /// let (b, mut x) = (vec![1.0; 100], vec![0.0; 100]);
    /// prepared.solve(&a, &b, &mut x)?.require_converged()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare_operator<A: LinearOperator<Threads<f64>>>(
        &self,
        a: &A,
    ) -> Result<Prepared<A>, SolveError> {
        let threads = self.threads.unwrap_or_else(cores);
        self.prepare_operator_on(Threads::for_rows(threads, a.domain()), STORES, a)
    }
}

impl Solver {
    /// The same with a preconditioner of the caller's, under this name: z = M⁻¹ r.
    ///
    /// ```
    /// use krylith::operator::{FnOperator, FnPreconditioner};
    /// use krylith::{Method, Solver};
    /// let weights: Vec<f64> = (1..=200).map(f64::from).collect();
    /// let a = FnOperator::new(200, |x: &[f64], y: &mut [f64]| (0..200).for_each(|i| y[i] = weights[i] * x[i]));
    /// let inverse: Vec<f64> = weights.iter().map(|w| 1.0 / w).collect();
    /// let m = FnPreconditioner::new(200, move |r: &[f64], z: &mut [f64]| (0..200).for_each(|i| z[i] = inverse[i] * r[i]));
    /// let prepared = Solver::new().method(Method::Cg).prepare_operator_with(&a, "weights", m)?;
    /// let (b, mut x) = (vec![1.0; 200], vec![0.0; 200]);
    /// let report = prepared.solve(&a, &b, &mut x)?;
    /// assert_eq!((report.iterations, report.preconditioner.as_str()), (1, "weights"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare_operator_with<A, M>(&self, a: &A, name: &str, m: M) -> Result<Prepared<A>, SolveError>
    where
        A: LinearOperator<Threads<f64>>,
        M: Preconditioner<Threads<f64>, Csr<f64>> + Send + Sync + 'static,
    {
        let threads = self.threads.unwrap_or_else(cores);
        let space = Threads::for_rows(threads, a.domain());
        self.prepare_operator_with_on(space, STORES, a, (name, DynPreconditioner::new(m)))
    }
}

/// What is known of Aᵀ.
pub(super) struct Transposed {
    /// The A that it is the transpose of.
    of: Seen,
    /// Aᵀ, prepared; none where A is its own transpose.
    other: Option<(Csr<f64>, Prepared<Csr<f64>>)>,
}

impl<A: LinearOperator<Threads<f64>>> Prepared<A> {
    /// Solves A x = b from the guess in `x`. The answer is judged by the residual recomputed from A, x and b. A matrix with other
    /// values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise. Where the solve does not
    /// converge, `x` is whichever of the last iterate, the best iterate kept, the guess and 0 has the smallest residual.
    ///
    /// Several threads may solve with one `Prepared` at the same time: the first has its team of threads, the others one thread
    /// each. Answers have the same bits either way.
    pub fn solve(&self, a: &A, b: &[f64], x: &mut [f64]) -> Result<Report, SolveError> {
        self.solve_watched(a, b, x, Watch::default())
    }

    /// Like [`solve`](Self::solve), with an observer that sees every iteration and may end the solve.
    pub fn solve_observed(
        &self,
        a: &A,
        b: &[f64],
        x: &mut [f64],
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        self.solve_watched(a, b, x, Watch { observer: Some(observer), stop: None })
    }

    /// Like [`solve`](Self::solve), with the caller's stopping criterion instead of the tolerance. The criterion sees the residual of the
    /// recurrence; when it is satisfied it is asked again with the recomputed residual, and only then the outcome is `Converged`.
    ///
    /// ```
    /// use krylith::{Solver, gallery::Problem, observe::Iteration};
    /// let a = "poisson2d:40".parse::<Problem>()?.generate()?;
    /// let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
    /// // A residual below 1e-3 in the units of b, whatever the size of b.
    /// let mut small = |at: &Iteration<f64>| at.residual_norm < 1e-3;
    /// let report = Solver::new().prepare(&a)?.solve_until(&a, &b, &mut x, &mut small)?;
    /// report.require_converged()?;
    /// assert_eq!(report.certificate.criterion, "the caller's");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve_until(
        &self,
        a: &A,
        b: &[f64],
        x: &mut [f64],
        stop: &mut impl StoppingCriterion<f64>,
    ) -> Result<Report, SolveError> {
        self.solve_watched(a, b, x, Watch { observer: None, stop: Some(stop) })
    }

    /// Solves A X = B for the columns of B, one after the other in `b`, from the guesses in `x`. With as many columns as threads or more
    /// each thread has columns of its own; the bits are those of `solve` column by column. The reports are in the order of
    /// columns.
    ///
    /// ```
    /// use krylith::{Solver, gallery::Problem};
    /// let a = "poisson2d:30".parse::<Problem>()?.generate()?;
    /// let n = a.nrows();
    /// let b: Vec<f64> = (0..3 * n).map(|k| (k % 7) as f64).collect();
    /// let mut x = vec![0.0; 3 * n];
    /// for report in Solver::new().prepare(&a)?.solve_many(&a, &b, &mut x)? {
    ///     report.require_converged()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve_many(&self, a: &A, b: &[f64], x: &mut [f64]) -> Result<Vec<Report>, SolveError>
    where
        A: Sync,
        A::Scratch: Send,
    {
        let (rows, columns) = (a.range(), a.domain());
        let count = b.len().checked_div(rows).unwrap_or(0);
        require_same("B and whole columns of it", &b.len(), &(count * rows))?;
        require_same("X and as many columns as B has", &x.len(), &(count * columns))?;
        let workers = self.space.threads().min(cores()).min(count);
        // All columns begin with what is known before them, whoever solves which first.
        let known = self.memory.of(&self.space, a.matrix());
        let solve = |beside, (b, x): (&[f64], &mut [f64])| {
            let watch = (Watch::default(), known.clone());
            self.pool.take(self, a, beside).and_then(|lease| self.solve_leased(lease, a, (b, x), watch))
        };
        let note = |(report, found)| {
            self.memory.note(&self.space, a.matrix(), found);
            report
        };
        if workers < self.space.threads() || workers < 2 {
            let pairs = b.chunks(rows.max(1)).zip(x.chunks_mut(columns.max(1)));
            return pairs.map(|pair| solve(false, pair).map(note)).collect();
        }
        let work = Mutex::new(b.chunks(rows).zip(x.chunks_mut(columns)).enumerate());
        let done = Mutex::new(Vec::with_capacity(count));
        let next = || work.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((column, pair)) = next() {
                        let report = solve(true, pair);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((column, report));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(column, _)| *column);
        done.into_iter().map(|(_, report)| report.map(note)).collect()
    }
}

impl Prepared<Csr<f64>> {
    /// Solves Aᵀ x = b from the guess in `x`; the answer is judged by b − Aᵀx. A matrix that is its own transpose is solved with as it is. For any other, the first call
    /// prepares Aᵀ, with the same options, which takes as long and as much memory as A did; later calls for the same values do not.
    pub fn solve_transposed(&self, a: &Csr<f64>, b: &[f64], x: &mut [f64]) -> Result<Report, SolveError> {
        let mut cached = self.transposed.lock().unwrap_or_else(PoisonError::into_inner);
        let current = cached.take().filter(|known| known.of.is(&*self.space, a));
        let current = match current {
            Some(known) => known,
            None => {
                let prepare = || {
                    let transposed = a.view().transpose();
                    let near_null = Arc::from([]);
                    let options = Solver { is_of_transposed: true, near_null, ..self.options.clone() };
                    let prepared = options.prepare(&transposed)?;
                    Ok::<_, SolveError>((transposed, prepared))
                };
                // What is known of the matrix that was prepared says nothing about this one.
                let other = if a.symmetry().symmetric { None } else { Some(prepare()?) };
                Arc::new(Transposed { of: Seen::new(&*self.space, a), other })
            }
        };
        *cached = Some(Arc::clone(&current));
        drop(cached);
        match &current.other {
            Some((transposed, prepared)) => prepared.solve(transposed, b, x),
            None => self.solve(a, b, x),
        }
    }
}
