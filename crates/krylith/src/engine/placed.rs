//! A system in a placement: A, the matrix that its preconditioner is made from, and M, stored in one order.

use super::{Engine, EngineWorkspace, Matrices, Operand, Run, SolverSpace, own, own_ref};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{EisenstatCg, Finish, KrylovMethod, SplitSystem, Start, for_method};
use crate::matrix::Csr;
use crate::observe::{Direction, Iteration, Observer};
use crate::operator::{AnyScratch, DynPreconditioner, LinearOperator, Preconditioner};
use crate::options::Method;
use crate::placement::{KeptMatrix, Placement, SharedPlacement, Side, Storage};
use crate::space::Space;
use crate::stop::StoppingCriterion;
use std::ops::ControlFlow;

type Factor<S> = DynPreconditioner<S, KeptMatrix<S>>;

/// What iterates.
enum Iterating<S: SolverSpace> {
    Method(Box<dyn KrylovMethod<S> + Send>),
    /// Conjugate gradients without products with A.
    WithoutProduct(EisenstatCg<S>),
}

/// A and M in a placement.
///
/// Conjugate gradients run without products with A where M has the triangles of A ([`EisenstatCg`]) and nobody wants to see
/// directions.
pub struct PlacedEngine<S: SolverSpace> {
    placement: SharedPlacement<S>,
    matrices: Matrices<KeptMatrix<S>>,
    m: Factor<S>,
}

/// What a solve in a placement writes.
struct PlacedWorkspace<S: SolverSpace> {
    method: Method,
    iteration: Iterating<S>,
    /// b and x in the placement, unless it is the order of A.
    vectors: Option<[S::Vector; 2]>,
    /// A, where it has other values than the matrix that is stored: M is that of an earlier one.
    own_a: Option<KeptMatrix<S>>,
}

/// What an application of M in a placement writes.
struct PlacedApplication<S: SolverSpace> {
    /// r and z in the placement, unless it is the order of A.
    vectors: Option<[S::Vector; 2]>,
    scratch: AnyScratch,
}

impl<S: SolverSpace> Iterating<S> {
    fn run(
        &mut self,
        start: Start,
        system: SplitSystem<'_, S, KeptMatrix<S>, Factor<S>>,
        (b, x): (&S::Vector, &mut S::Vector),
        stop: &mut dyn StoppingCriterion<f64>,
        observer: &mut dyn Observer<f64, S::Vector>,
    ) -> Result<Finish<f64>, BackendError> {
        match self {
            Iterating::Method(method) => method.run(start, system.erased(), b, x, stop, observer),
            Iterating::WithoutProduct(cg) => cg.solve(system, b, x, stop, observer),
        }
    }

    fn kept(&self) -> Option<(&S::Vector, f64)> {
        match self {
            Iterating::Method(method) => method.kept(),
            Iterating::WithoutProduct(cg) => cg.kept(),
        }
    }
}

impl<S: SolverSpace> PlacedEngine<S> {
    /// M has been made from the source in `matrices`.
    pub fn new(placement: SharedPlacement<S>, matrices: Matrices<KeptMatrix<S>>, m: Factor<S>) -> Self {
        PlacedEngine { placement, matrices, m }
    }

    /// A right-hand side and an answer in the placement; none where that is the order of A.
    fn vectors(&self, space: &S) -> Result<Option<[S::Vector; 2]>, BackendError> {
        if self.placement.is_identity() {
            return Ok(None);
        }
        let size = self.placement.size();
        Ok(Some([space.zeros(&size)?, space.zeros(&size)?]))
    }

    fn can_leave_product(&self, own_a: Option<&KeptMatrix<S>>, method: Method) -> bool {
        let a = own_a.unwrap_or(&self.matrices.a);
        let shared = || self.m.split_sweeps().is_some_and(|sweeps| sweeps.has_triangles_of(a));
        method == Method::Cg && self.matrices.are_one() && shared()
    }

    fn iteration(
        &self,
        space: &S,
        without_product: bool,
        method: Method,
    ) -> Result<Iterating<S>, BackendError> {
        let system = SplitSystem { space, a: &self.matrices.a, m: &self.m };
        if without_product && let Some(cg) = EisenstatCg::new(system)? {
            return Ok(Iterating::WithoutProduct(cg));
        }
        Ok(Iterating::Method(for_method(method, system.erased())?))
    }
}

impl<S: SolverSpace> Engine<S> for PlacedEngine<S> {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        let stored = self.matrices.source_mut();
        stored.require(source)?;
        self.m.release();
        stored.set(space, source)?;
        self.m.set_shift(shift);
        self.m.refactor_by_rows(space, stored, source)
    }

    fn workspace(&self, space: &S, _: Operand<'_, S>, method: Method) -> Result<EngineWorkspace, SolveError> {
        let without_product = self.can_leave_product(None, method);
        let iteration = self.iteration(space, without_product, method)?;
        let vectors = self.vectors(space)?;
        Ok(Box::new(PlacedWorkspace { method, iteration, vectors, own_a: None }))
    }

    fn begin(
        &self,
        workspace: &mut EngineWorkspace,
        space: &S,
        a: Operand<'_, S>,
        (b, x): (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError> {
        let PlacedWorkspace { method, iteration, vectors, own_a } = own(workspace)?;
        let (stored, a) = (&self.matrices.a, a.rows()?);
        stored.require(a)?;
        match stored.holds(space, a) {
            true => *own_a = None,
            false => match own_a {
                Some(own) => own.set(space, a)?,
                None => *own_a = Some(stored.with_values_of(space, a)?),
            },
        }
        // With a factor that is kept while A changes, M has other triangles than A.
        let without_product = !directions && self.can_leave_product(own_a.as_ref(), *method);
        if without_product != matches!(iteration, Iterating::WithoutProduct(_)) {
            *iteration = self.iteration(space, without_product, *method)?;
        }
        if let Some([placed_b, placed_x]) = vectors {
            self.placement.load(space, Side::Rows, b, placed_b)?;
            self.placement.load(space, Side::Columns, x, placed_x)?;
        }
        Ok(())
    }

    fn run(&self, workspace: &mut EngineWorkspace, run: Run<'_, S>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, b, x, stop, observer, .. } = run;
        let PlacedWorkspace { iteration, vectors, own_a, .. } = own(workspace)?;
        let system = SplitSystem { space, a: own_a.as_ref().unwrap_or(&self.matrices.a), m: &self.m };
        let Some([placed_b, placed_x]) = vectors else {
            return iteration.run(start, system, (b, x), stop, observer);
        };
        let finish = match observer.wants_directions() {
            false => iteration.run(start, system, (placed_b, placed_x), stop, observer)?,
            true => {
                let size = space.size(b);
                let vectors = [space.zeros(&size)?, space.zeros(&size)?];
                let placement = &*self.placement;
                let mut watched =
                    InOrderOfA { observer, space, placement, vectors, factor: 1.0, failed: None };
                let finish = iteration.run(start, system, (placed_b, placed_x), stop, &mut watched)?;
                watched.failed.map_or(Ok(finish), Err)?
            }
        };
        self.placement.store(space, Side::Columns, placed_x, x)?;
        Ok(finish)
    }

    fn application(&self, space: &S) -> Result<EngineWorkspace, BackendError> {
        let vectors = self.vectors(space)?;
        Ok(Box::new(PlacedApplication::<S> { vectors, scratch: self.m.scratch(space)? }))
    }

    fn precondition(
        &self,
        application: &mut EngineWorkspace,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
    ) -> Result<(), BackendError> {
        let PlacedApplication::<S> { vectors, scratch } = own(application)?;
        let Some([placed_r, placed_z]) = vectors else { return self.m.apply(space, r, z, scratch) };
        self.placement.load(space, Side::Rows, r, placed_r)?;
        self.m.apply(space, placed_r, placed_z, scratch)?;
        self.placement.store(space, Side::Columns, placed_z, z)
    }

    fn restore_kept(
        &self,
        workspace: &EngineWorkspace,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        match own_ref::<PlacedWorkspace<S>>(workspace)?.iteration.kept() {
            Some((kept, _)) => self.placement.store(space, Side::Columns, kept, x).map(|()| true),
            None => Ok(false),
        }
    }

    fn is_without_product(&self, workspace: &EngineWorkspace) -> bool {
        let own = own_ref::<PlacedWorkspace<S>>(workspace);
        own.is_ok_and(|own| matches!(own.iteration, Iterating::WithoutProduct(_)))
    }
}

/// Shows directions in the order of A.
pub(super) struct InOrderOfA<'a, S: Space> {
    pub(super) observer: &'a mut dyn Observer<f64, S::Vector>,
    pub(super) space: &'a S,
    pub(super) placement: &'a dyn Placement<S>,
    pub(super) vectors: [S::Vector; 2],
    /// What curvatures are multiplied by.
    pub(super) factor: f64,
    /// What went wrong on the way.
    pub(super) failed: Option<BackendError>,
}

impl<S: Space<Real = f64>> Observer<f64, S::Vector> for InOrderOfA<'_, S> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        match self.failed {
            Some(_) => ControlFlow::Break(()),
            None => self.observer.iterated(iteration),
        }
    }

    fn wants_directions(&self) -> bool {
        true
    }

    fn wants_direction(&self, index: usize) -> bool {
        self.observer.wants_direction(index)
    }

    fn direction(&mut self, direction: &Direction<'_, f64, S::Vector>) {
        let Direction { index, p, a_p, curvature } = *direction;
        let [own_p, own_a_p] = &mut self.vectors;
        let stored = self
            .placement
            .store(self.space, Side::Columns, p, own_p)
            .and_then(|()| self.placement.store(self.space, Side::Rows, a_p, own_a_p));
        match stored {
            Ok(()) => {
                let curvature = self.factor * curvature;
                self.observer.direction(&Direction { index, p: own_p, a_p: own_a_p, curvature });
            }
            Err(error) => self.failed = Some(error),
        }
    }
}
