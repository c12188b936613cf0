//! A whole iteration in `f32`, refined in `f64`.
//!
//!   r = b − A x in f64;  A d = r / ‖r‖ by the method in f32, to [`INNER`];  x += ‖r‖ d;  again
//!
//! Each step gains some four digits while cond(A) is well below 1/ε of f32, and what is reached is checked in f64 as always. Where a step does not
//! halve the residual, f32 is at its end, and so is the run. The caller's criterion and observer see every inner iteration with the residual
//! that the recurrence implies. A, M and vectors of the iteration take half of the bytes; A is scaled to fit by the caller.
//!
//! Storage: A and M by rows in f32, the vectors of the method in f32, r in f64.
//! References: Wilkinson 1963, Rounding Errors in Algebraic Processes, ch. 3; with Krylov methods, Anzt, Heuveline & Rocker 2011,
//! doi:10.1007/978-3-642-28145-7_12; Carson & Higham 2018, doi:10.1137/17M1140819, for the conditions.

use super::{Engine, EngineWorkspace, Operand, Run, own};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, KrylovMethod, Start, Status, System, for_method};
use crate::matrix::{Csr, SeenValues, require_pattern};
use crate::observe::{Iteration, Observer};
use crate::operator::{AnyScratch, DynPreconditioner, LinearOperator, Preconditioner};
use crate::options::Method;
use crate::space::{Space, Threads};
use crate::stop::{StopReason, StoppingCriterion};
use std::ops::ControlFlow;

/// The residual that an inner solve goes down to, relative to where it begins.
const INNER: f32 = 1e-4;

type Factor = DynPreconditioner<Threads<f32>, Csr<f32>>;

/// A and M in `f32`.
pub(crate) struct Refined {
    a: Csr<f32>,
    seen: SeenValues,
    m: Factor,
}

/// What a solve writes.
struct RefinedWorkspace {
    space: Threads<f32>,
    method: Box<dyn KrylovMethod<Threads<f32>> + Send>,
    /// r / ‖r‖ and d.
    inner: [Vec<f32>; 2],
    r: Vec<f64>,
    /// x before a step.
    before: Vec<f64>,
    /// A in `f32`, where it has other values than the one that M was made from.
    own_a: Option<(Csr<f32>, SeenValues)>,
}

/// What an application of M writes.
struct RefinedApplication {
    space: Threads<f32>,
    r: Vec<f32>,
    z: Vec<f32>,
    scratch: AnyScratch,
}

/// The matrix with its numbers rounded.
pub(crate) fn rounded(a: &Csr<f64>) -> Csr<f32> {
    Csr::trusted(std::sync::Arc::clone(a.pattern()), a.values().iter().map(|&v| v as f32).collect())
}

impl Refined {
    pub(crate) fn new(space: &Threads<f64>, source: &Csr<f64>, a: Csr<f32>, m: Factor) -> Self {
        Refined { a, seen: SeenValues::of(space, source), m }
    }
}

impl Engine<Threads<f64>> for Refined {
    fn refactor(&mut self, space: &Threads<f64>, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        require_pattern(self.a.pattern(), source.pattern())?;
        for (to, &from) in self.a.values_mut().iter_mut().zip(source.values()) {
            *to = from as f32;
        }
        self.seen = SeenValues::of(space, source);
        self.m.set_shift(shift);
        self.m.refactor(&Threads::new(space.threads()), &self.a)
    }

    fn workspace(
        &self,
        space: &Threads<f64>,
        _: Operand<'_, Threads<f64>>,
        method: Method,
    ) -> Result<EngineWorkspace, SolveError> {
        let n = self.a.nrows();
        let inner = space.for_numbers();
        let method = for_method(method, System { space: &inner, a: &self.a, m: &self.m })?;
        let vectors = [vec![0.0; n], vec![0.0; n]];
        let (r, before) = (vec![0.0; n], vec![0.0; n]);
        Ok(Box::new(RefinedWorkspace { space: inner, method, inner: vectors, r, before, own_a: None }))
    }

    fn begin(
        &self,
        workspace: &mut EngineWorkspace,
        space: &Threads<f64>,
        a: Operand<'_, Threads<f64>>,
        _: (&Vec<f64>, &Vec<f64>),
        _: bool,
    ) -> Result<(), SolveError> {
        let a = a.rows()?;
        require_pattern(self.a.pattern(), a.pattern())?;
        let own = &mut own::<RefinedWorkspace>(workspace)?.own_a;
        if self.seen.are_those_of(space, a) {
            *own = None;
        } else if !own.as_ref().is_some_and(|(_, seen)| seen.are_those_of(space, a)) {
            *own = Some((rounded(a), SeenValues::of(space, a)));
        }
        Ok(())
    }

    fn run(
        &self,
        workspace: &mut EngineWorkspace,
        run: Run<'_, Threads<f64>>,
    ) -> Result<Finish<f64>, BackendError> {
        let Run { space, a, b, x, stop, observer, .. } = run;
        let RefinedWorkspace { space: inner_space, method, inner: [rhs, d], r, before, own_a } =
            own(workspace)?;
        let a = a.rows()?;
        let narrow = own_a.as_ref().map_or(&self.a, |(a, _)| a);
        let system = System { space: inner_space, a: narrow, m: &self.m };
        let rhs_norm = space.norm(b)?;
        let mut norm = residual(space, a, b, x, r)?;
        let mut iterations = 0;
        loop {
            let end = |status, norm| Ok(Finish { status, iterations, residual_norm: norm });
            if !norm.is_finite() {
                return end(Status::NotFinite, norm);
            }
            rhs.iter_mut().zip(&*r).for_each(|(to, &from)| *to = (from / norm.max(f64::MIN_POSITIVE)) as f32);
            d.fill(0.0);
            let at = Place { before: iterations, norm, rhs_norm };
            let mut stop = InnerStop { at, stop: &mut *stop, ended: None };
            let mut observer = InnerObserver { at, observer: &mut *observer };
            let finish = method.run(Start::Fresh, system, rhs, d, &mut stop, &mut observer)?;
            let ended = stop.ended;
            iterations += finish.iterations;
            before.copy_from_slice(x);
            x.iter_mut().zip(&*d).for_each(|(x, &d)| *x += norm * f64::from(d));
            let next = residual(space, a, b, x, r)?;
            let end = |status, norm| Ok(Finish { status, iterations, residual_norm: norm });
            if next >= norm || next.is_nan() {
                x.copy_from_slice(before);
                return end(ended.map_or(AT_ITS_END, Status::Stopped), norm);
            }
            match (ended, finish.status) {
                (Some(reason), _) => return end(Status::Stopped(reason), next),
                (None, Status::Stopped(_)) if next < 0.5 * norm => norm = next,
                (None, Status::Stopped(_)) => return end(AT_ITS_END, next),
                (None, other) => return end(other, next),
            }
        }
    }

    fn application(&self, space: &Threads<f64>) -> Result<EngineWorkspace, BackendError> {
        let (n, space) = (self.a.nrows(), space.for_numbers());
        let scratch = self.m.scratch(&space)?;
        Ok(Box::new(RefinedApplication { space, r: vec![0.0; n], z: vec![0.0; n], scratch }))
    }

    fn precondition(
        &self,
        application: &mut EngineWorkspace,
        space: &Threads<f64>,
        r: &Vec<f64>,
        z: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        let RefinedApplication { space: inner, r: own_r, z: own_z, scratch } = own(application)?;
        // Of any size in `f64`, of one that `f32` has.
        let largest = space.extremes(r)?.largest;
        let scale = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
        own_r.iter_mut().zip(r).for_each(|(to, &from)| *to = (from / scale) as f32);
        self.m.apply(inner, own_r, own_z, scratch)?;
        z.iter_mut().zip(&*own_z).for_each(|(to, &from)| *to = scale * f64::from(from));
        Ok(())
    }

    fn restore_kept(
        &self,
        _: &EngineWorkspace,
        _: &Threads<f64>,
        _: &mut Vec<f64>,
    ) -> Result<bool, BackendError> {
        Ok(false)
    }
}

/// Refinement gains nothing more.
const AT_ITS_END: Status = Status::Breakdown { what: "refinement in f32 is at its end; f64 goes further" };

/// r = b − A x and its norm.
fn residual(
    space: &Threads<f64>,
    a: &Csr<f64>,
    b: &Vec<f64>,
    x: &Vec<f64>,
    r: &mut Vec<f64>,
) -> Result<f64, BackendError> {
    a.apply(space, x, r, &mut ())?;
    space.axpby(1.0, b, -1.0, r)?;
    space.norm(r)
}

/// Where an inner solve stands in the whole one.
#[derive(Clone, Copy)]
struct Place {
    /// Iterations before it.
    before: usize,
    /// ‖r‖ that it began with.
    norm: f64,
    rhs_norm: f64,
}

impl Place {
    fn of(&self, at: &Iteration<f32>) -> Iteration<f64> {
        Iteration {
            index: self.before + at.index,
            residual_norm: self.norm * f64::from(at.residual_norm),
            rhs_norm: self.rhs_norm,
        }
    }
}

struct InnerStop<'s> {
    at: Place,
    stop: &'s mut dyn StoppingCriterion<f64>,
    /// The whole solve ends here.
    ended: Option<StopReason>,
}

impl StoppingCriterion<f32> for InnerStop<'_> {
    fn check(&mut self, at: &Iteration<f32>) -> Option<StopReason> {
        self.ended = self.stop.check(&self.at.of(at));
        self.ended.or_else(|| (at.residual_norm <= INNER).then_some(StopReason::ResidualMet))
    }
}

struct InnerObserver<'o> {
    at: Place,
    observer: &'o mut dyn Observer<f64, Vec<f64>>,
}

impl Observer<f32, Vec<f32>> for InnerObserver<'_> {
    fn iterated(&mut self, iteration: &Iteration<f32>) -> ControlFlow<()> {
        self.observer.iterated(&self.at.of(iteration))
    }
}
