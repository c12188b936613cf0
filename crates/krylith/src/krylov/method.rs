//! Methods behind one interface, for whoever chooses one at run time.

use super::{BiCgStab, Cg, Fgmres, Finish, Gmres, Lsmr, Minres, System};
use crate::error::BackendError;
use crate::observe::Observer;
use crate::options::Method;
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
pub trait KrylovMethod<S: Space> {
    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down; `x` then holds the
    /// last iterate. Allocates nothing.
    fn run(
        &mut self,
        start: Start,
        system: System<'_, S>,
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
        impl<S: Space> KrylovMethod<S> for $name<S> {
            fn run(
                &mut self,
                start: Start,
                system: System<'_, S>,
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

/// The workspace of a method for a system; `auto` is BiCGStab.
pub fn for_method<S: Space + 'static>(
    method: Method,
    system: System<'_, S>,
) -> Result<Box<dyn KrylovMethod<S> + Send>, BackendError>
where
    S::Vector: Send,
{
    Ok(match method {
        Method::Cg => Box::new(Cg::new(system)?),
        Method::Gmres(restart) => Box::new(Gmres::new(system, restart)?),
        Method::Fgmres(restart) => Box::new(Fgmres::new(system, restart)?),
        Method::Minres => Box::new(Minres::new(system)?),
        Method::Lsmr => Box::new(Lsmr::new(system)?),
        Method::BiCgStab | Method::Auto => Box::new(BiCgStab::new(system)?),
    })
}
