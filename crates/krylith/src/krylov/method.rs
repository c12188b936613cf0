//! Methods behind one interface, for whoever chooses one at run time.

use super::{BiCgStab, Cg, Fgmres, Finish, Gmres, Lsmr, Minres, System};
use crate::choice::Method;
use crate::error::BackendError;
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::space::Space;
use crate::stop::StoppingCriterion;

/// What a run begins with besides the guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    Fresh,
    /// The search direction of the run before, for a method that can use it: the residual of its recurrence has drifted from the
    /// true one.
    KeepDirection,
}

/// The workspace of a method.
pub trait KrylovMethod<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> {
    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down; `x` then holds the
    /// last iterate. Allocates nothing.
    fn run(
        &mut self,
        start: Start,
        system: System<'_, S, A, M>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut dyn StoppingCriterion<S::Real>,
        observer: &mut dyn Observer<S::Real, S::Vector>,
    ) -> Result<Finish<S::Real>, BackendError>;

    /// The best iterate of the last run that was left for a worse one, and its residual norm by the recurrence.
    fn kept(&self) -> Option<(&S::Vector, S::Real)>;
}

macro_rules! method {
    ($name:ident, $again:ident) => {
        impl<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> KrylovMethod<S, A, M> for $name<S, A, M> {
            fn run(
                &mut self,
                start: Start,
                system: System<'_, S, A, M>,
                b: &S::Vector,
                x: &mut S::Vector,
                stop: &mut dyn StoppingCriterion<S::Real>,
                observer: &mut dyn Observer<S::Real, S::Vector>,
            ) -> Result<Finish<S::Real>, BackendError> {
                match start {
                    Start::Fresh => self.solve(system, b, x, stop, observer),
                    Start::KeepDirection => self.$again(system, b, x, stop, observer),
                }
            }

            fn kept(&self) -> Option<(&S::Vector, S::Real)> {
                self.kept()
            }
        }
    };
}

method!(Cg, resume);
method!(BiCgStab, solve);
method!(Gmres, solve);
method!(Fgmres, solve);
method!(Minres, solve);
method!(Lsmr, solve);

/// Any of the methods, without a box: A may borrow what it likes.
pub enum AnyMethod<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> {
    /// Conjugate gradients.
    Cg(Cg<S, A, M>),
    /// BiCGStab.
    BiCgStab(BiCgStab<S, A, M>),
    /// GMRES.
    Gmres(Gmres<S, A, M>),
    /// Flexible GMRES.
    Fgmres(Fgmres<S, A, M>),
    /// MINRES.
    Minres(Minres<S, A, M>),
    /// LSMR.
    Lsmr(Lsmr<S, A, M>),
}

/// The same expression for every method.
macro_rules! with_method {
    ($any:expr, $method:ident => $work:expr) => {
        match $any {
            AnyMethod::Cg($method) => $work,
            AnyMethod::BiCgStab($method) => $work,
            AnyMethod::Gmres($method) => $work,
            AnyMethod::Fgmres($method) => $work,
            AnyMethod::Minres($method) => $work,
            AnyMethod::Lsmr($method) => $work,
        }
    };
}

impl<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> AnyMethod<S, A, M> {
    /// Allocates the workspace of a method for a system; `auto` is BiCGStab.
    pub fn new(method: Method, system: System<'_, S, A, M>) -> Result<Self, BackendError> {
        Ok(match method {
            Method::Cg => AnyMethod::Cg(Cg::new(system)?),
            Method::Gmres(restart) => AnyMethod::Gmres(Gmres::new(system, restart)?),
            Method::Fgmres(restart) => AnyMethod::Fgmres(Fgmres::new(system, restart)?),
            Method::Minres => AnyMethod::Minres(Minres::new(system)?),
            Method::Lsmr => AnyMethod::Lsmr(Lsmr::new(system)?),
            Method::BiCgStab | Method::Auto => AnyMethod::BiCgStab(BiCgStab::new(system)?),
        })
    }
}

impl<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> KrylovMethod<S, A, M> for AnyMethod<S, A, M> {
    fn run(
        &mut self,
        start: Start,
        system: System<'_, S, A, M>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut dyn StoppingCriterion<S::Real>,
        observer: &mut dyn Observer<S::Real, S::Vector>,
    ) -> Result<Finish<S::Real>, BackendError> {
        with_method!(self, method => method.run(start, system, b, x, stop, observer))
    }

    fn kept(&self) -> Option<(&S::Vector, S::Real)> {
        with_method!(self, method => method.kept())
    }
}
