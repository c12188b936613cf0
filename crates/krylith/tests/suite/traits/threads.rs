//! Vectors in this process's memory, operations on rayon's threads, reductions over fixed chunks combined in order.

use super::{check, conformance, poisson, solve};
use krylith::krylov::{Cg, Status, System};
use krylith::observe::Iteration;
use krylith::operator::{DynPreconditioner, Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::space::{Extremes, Space};
use krylith::stop::{IterationLimit, StopReason};
use krylith::{BackendError, Csr, Pattern, SetupError};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Entries summed as one piece: part of the definition of `dots`, not a tuning parameter.
const CHUNK: usize = 64;

pub struct Threads;

impl Space for Threads {
    type Real = f64;
    type Scalar = f64;
    type Vector = Vec<f64>;
    type Size = usize;

    fn zeros(&self, n: &usize) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; *n])
    }

    fn size(&self, x: &Vec<f64>) -> usize {
        x.len()
    }

    fn len(&self, n: &usize) -> usize {
        *n
    }

    fn upload(&self, from: &[f64], to: &mut Vec<f64>) -> Result<(), BackendError> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &Vec<f64>, to: &mut [f64]) -> Result<(), BackendError> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn extremes(&self, x: &Vec<f64>) -> Result<Extremes<f64>, BackendError> {
        let sizes = || x.iter().map(|x| x.abs());
        Ok(Extremes {
            largest: sizes().fold(0.0, f64::max),
            least: sizes().filter(|&x| x > 0.0).fold(f64::INFINITY, f64::min),
            not_finite: x.iter().position(|x| !x.is_finite()).map(|k| (k, x[k])),
        })
    }

    fn scale(&self, a: f64, x: &mut Vec<f64>) -> Result<(), BackendError> {
        x.iter_mut().for_each(|x| *x *= a);
        Ok(())
    }

    fn fill(&self, a: f64, x: &mut Vec<f64>) -> Result<(), BackendError> {
        x.par_iter_mut().for_each(|x| *x = a);
        Ok(())
    }

    fn copy(&self, x: &Vec<f64>, y: &mut Vec<f64>) -> Result<(), BackendError> {
        same("copy", x, y)?;
        y.copy_from_slice(x);
        Ok(())
    }

    fn axpby(&self, a: f64, x: &Vec<f64>, b: f64, y: &mut Vec<f64>) -> Result<(), BackendError> {
        same("axpby", x, y)?;
        let update = |(x, y): (&f64, &mut f64)| *y = if b == 0.0 { a * x } else { a * x + b * *y };
        x.par_iter().zip(y).for_each(update);
        Ok(())
    }

    fn dots(&self, pairs: &[(&Vec<f64>, &Vec<f64>)], out: &mut [f64]) -> Result<(), BackendError> {
        for ((x, y), out) in pairs.iter().zip(out) {
            same("dots", x, y)?;
            let piece = |(x, y): (&[f64], &[f64])| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            let pieces: Vec<f64> = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK)).map(piece).collect();
            *out = pieces.into_iter().sum();
        }
        Ok(())
    }
}

fn same(what: &'static str, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
    let length = |x: &[f64]| x.len().to_string();
    if x.len() == y.len() {
        Ok(())
    } else {
        Err(BackendError::Size { what, left: length(x), right: length(y) })
    }
}

/// Compressed rows as an operator on these vectors.
pub struct Rows(pub Csr<f64>);

impl LinearOperator<Threads> for Rows {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.0.ncols()
    }

    fn range(&self) -> usize {
        self.0.nrows()
    }

    fn scratch(&self, _: &Threads) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, _: &Threads, x: &Vec<f64>, y: &mut Vec<f64>, _: &mut ()) -> Result<(), BackendError> {
        self.0.mul_vec(x, y).map_err(|e| BackendError::Failed { what: e.to_string() })
    }
}

/// The inverse of the diagonal.
pub struct Jacobi;

pub struct JacobiSymbolic {
    pattern: Arc<Pattern>,
    diagonal: Vec<usize>,
}

pub struct JacobiFactor {
    pattern: Arc<Pattern>,
    diagonal: Vec<usize>,
    inverse: Vec<f64>,
}

impl Recipe<Threads, Csr<f64>> for Jacobi {
    type Symbolic = JacobiSymbolic;

    fn analyze(&self, _: &Threads, a: &Csr<f64>) -> Result<JacobiSymbolic, SetupError> {
        a.pattern().require_square()?;
        let find = |row| a.pattern().find(row, row).ok_or(SetupError::MissingDiagonal { row });
        let diagonal = (0..a.nrows()).map(find).collect::<Result<_, _>>()?;
        Ok(JacobiSymbolic { pattern: Arc::clone(a.pattern()), diagonal })
    }
}

impl Symbolic<Threads, Csr<f64>> for JacobiSymbolic {
    type Factor = JacobiFactor;

    fn factor(&self, space: &Threads, a: &Csr<f64>) -> Result<JacobiFactor, SetupError> {
        let mut factor = JacobiFactor {
            pattern: Arc::clone(&self.pattern),
            diagonal: self.diagonal.clone(),
            inverse: vec![0.0; self.diagonal.len()],
        };
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl Preconditioner<Threads, Csr<f64>> for JacobiFactor {
    fn refactor(&mut self, _: &Threads, a: &Csr<f64>) -> Result<(), SetupError> {
        if !Arc::ptr_eq(&self.pattern, a.pattern()) && self.pattern != *a.pattern() {
            return Err(SetupError::PatternChanged);
        }
        for (row, (inverse, &k)) in self.inverse.iter_mut().zip(&self.diagonal).enumerate() {
            let value = a.values()[k];
            if value == 0.0 || !value.is_finite() {
                return Err(SetupError::BadPivot { row, value });
            }
            *inverse = 1.0 / value;
        }
        Ok(())
    }
}

impl LinearOperator<Threads> for JacobiFactor {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.inverse.len()
    }

    fn range(&self) -> usize {
        self.inverse.len()
    }

    fn scratch(&self, _: &Threads) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, _: &Threads, x: &Vec<f64>, y: &mut Vec<f64>, _: &mut ()) -> Result<(), BackendError> {
        for (y, (x, d)) in y.iter_mut().zip(x.iter().zip(&self.inverse)) {
            *y = x * d;
        }
        Ok(())
    }
}

#[test]
fn conforms() {
    conformance::check(&Threads, &100, &101, |x| x.clone(), |k, x| x[k]);
}

#[test]
fn cg_on_compressed_rows() {
    let a = Rows(poisson());
    let (x, finish, history) = solve(&Threads, &a, &Identity::new(a.domain())).unwrap();
    check(&x, finish, &history);
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let a = Rows(poisson());
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| solve(&Threads, &a, &Identity::new(a.domain())).unwrap().0)
    };
    let alone = run(1);
    for threads in [2, 3, 8] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
}

#[test]
fn analyze_factor_refactor() {
    let mut a = poisson();
    let symbolic = Jacobi.analyze(&Threads, &a).unwrap();
    let mut factor = symbolic.factor(&Threads, &a).unwrap();
    let mut y = vec![0.0; a.nrows()];
    factor.apply(&Threads, &vec![1.0; a.nrows()], &mut y, &mut ()).unwrap();
    assert!(y.iter().all(|&y| y == 0.25));

    a.values_mut().iter_mut().for_each(|v| *v *= 2.0);
    factor.refactor(&Threads, &a).unwrap();
    factor.apply(&Threads, &vec![1.0; a.nrows()], &mut y, &mut ()).unwrap();
    assert!(y.iter().all(|&y| y == 0.125));

    let k = a.pattern().find(7, 7).unwrap();
    a.values_mut()[k] = 0.0;
    assert_eq!(factor.refactor(&Threads, &a), Err(SetupError::BadPivot { row: 7, value: 0.0 }));
    let other = Csr::identity(a.nrows()).unwrap();
    assert_eq!(factor.refactor(&Threads, &other), Err(SetupError::PatternChanged));
}

#[test]
fn a_preconditioner_chosen_at_run_time() {
    let a = poisson();
    let factor = || Jacobi.analyze(&Threads, &a).unwrap().factor(&Threads, &a).unwrap();
    let operator = Rows(a.clone());
    let (x, finish, history) = solve(&Threads, &operator, &factor()).unwrap();
    check(&x, finish, &history);
    let mut erased = DynPreconditioner::<Threads, Csr<f64>>::new(factor());
    erased.refactor(&Threads, &a).unwrap();
    assert_eq!(solve(&Threads, &operator, &erased).unwrap().0, x);
    let mut wrong: Box<dyn std::any::Any + Send> = Box::new(3);
    let mut y = vec![0.0; a.nrows()];
    assert!(erased.apply(&Threads, &x, &mut y, &mut wrong).is_err());
}

/// 2 I, which can do more than it must: its own `apply_dot` and transpose.
struct Double(usize);

impl LinearOperator<Threads> for Double {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.0
    }

    fn range(&self) -> usize {
        self.0
    }

    fn scratch(&self, _: &Threads) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, space: &Threads, x: &Vec<f64>, y: &mut Vec<f64>, _: &mut ()) -> Result<(), BackendError> {
        space.axpby(2.0, x, 0.0, y)
    }

    fn apply_dot(
        &self,
        _: &Threads,
        _: &Vec<f64>,
        _: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        Ok(77.0)
    }

    fn apply_transpose(
        &self,
        space: &Threads,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut (),
    ) -> Result<(), BackendError> {
        self.apply(space, x, y, scratch)
    }
}

impl Preconditioner<Threads, Csr<f64>> for Double {
    fn refactor(&mut self, _: &Threads, _: &Csr<f64>) -> Result<(), SetupError> {
        Ok(())
    }
}

#[test]
fn an_erased_preconditioner_can_do_what_it_could_before() {
    let erased = DynPreconditioner::<Threads, Csr<f64>>::new(Double(3));
    let mut scratch = erased.scratch(&Threads).unwrap();
    let (x, mut y) = (vec![1.0; 3], vec![0.0; 3]);
    assert_eq!(erased.apply_dot(&Threads, &x, &mut y, &mut scratch), Ok(77.0));
    erased.apply_transpose(&Threads, &x, &mut y, &mut scratch).unwrap();
    assert_eq!(y, [2.0; 3]);
}

#[test]
fn an_indefinite_preconditioner_is_told() {
    let a = Rows(poisson());
    let mut negative = poisson();
    negative.values_mut().iter_mut().for_each(|v| *v = -*v);
    let m = Jacobi.analyze(&Threads, &negative).unwrap().factor(&Threads, &negative).unwrap();
    assert_eq!(solve(&Threads, &a, &m).unwrap().1.status, Status::IndefinitePreconditioner);
}

#[test]
fn one_operator_in_two_solves_at_once() {
    let a = Rows(poisson());
    let m = Identity::new(a.domain());
    std::thread::scope(|s| {
        let solves = [(); 2].map(|()| s.spawn(|| solve(&Threads, &a, &m).unwrap().0));
        let [x, y] = solves.map(|s| s.join().unwrap());
        assert_eq!(x, y);
    });
}

#[test]
fn limits_observers_and_breakdowns_end_it() {
    let a = Rows(poisson());
    let m = Identity::new(a.domain());
    let system = System { space: &Threads, a: &a, m: &m };
    let b = vec![1.0; a.domain()];
    let mut cg = Cg::new(system).unwrap();
    let mut x = vec![0.0; a.domain()];
    let finish = cg.solve(system, &b, &mut x, &mut IterationLimit(3), &mut ()).unwrap();
    assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::IterationLimit), 3));

    let mut third = |i: &Iteration<f64>| match i.index {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let finish = cg.solve(system, &b, &mut x, &mut IterationLimit(9), &mut third).unwrap();
    assert_eq!((finish.status, finish.iterations), (Status::Interrupted, 2));

    let finish = cg.solve(system, &vec![f64::NAN; b.len()], &mut x, &mut IterationLimit(9), &mut ()).unwrap();
    assert_eq!((finish.status, finish.iterations), (Status::NotFinite, 0));

    let short = vec![1.0; 3];
    let error = cg.solve(system, &short, &mut x, &mut IterationLimit(9), &mut ());
    assert!(matches!(error, Err(BackendError::Size { .. })));

    // An exact solution leaves nothing to improve, even if nobody asks for a residual.
    let mut exact = vec![0.0; b.len()];
    let finish = cg.solve(system, &vec![0.0; b.len()], &mut exact, &mut IterationLimit(9), &mut ()).unwrap();
    assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 0));

    let mut negative = poisson();
    negative.values_mut().iter_mut().for_each(|v| *v = -*v);
    let negative = Rows(negative);
    let system = System { space: &Threads, a: &negative, m: &m };
    let mut x = vec![0.0; b.len()];
    let finish = Cg::new(system).unwrap().solve(system, &b, &mut x, &mut IterationLimit(9), &mut ());
    assert_eq!(finish.unwrap().status, Status::IndefiniteOperator);
}
