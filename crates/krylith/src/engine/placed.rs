//! A system in a placement: A, the matrix that its preconditioner is made from, and M, stored in one order.

use super::method::workspace;
use super::{Engine, Matrices, Run, SolverSpace};
use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{EisenstatCg, Finish, KrylovMethod, System};
use crate::matrix::Csr;
use crate::observe::{Direction, Iteration, Observer};
use crate::operator::{DynPreconditioner, Preconditioner};
use crate::placement::{Placement, Side, Storage};
use crate::space::Space;
use std::ops::ControlFlow;

type Factor<S, K> = DynPreconditioner<S, K>;
type Workspace<S, K> = Box<dyn KrylovMethod<S, K, Factor<S, K>> + Send>;

/// A and M in a placement, and the workspace of a method.
///
/// Conjugate gradients run without products with A where M has the triangles of A ([`EisenstatCg`]) and nobody wants to see
/// directions.
pub struct PlacedEngine<S: SolverSpace, K: Storage<S>> {
    placement: Box<dyn Placement<S> + Send>,
    matrices: Matrices<K>,
    m: Factor<S, K>,
    method: Method,
    workspace: Workspace<S, K>,
    /// The workspace is that of Eisenstat's trick.
    without_product: bool,
    /// b and x in the placement, unless it is the order of A.
    vectors: Option<[S::Vector; 2]>,
}

impl<S: SolverSpace, K: Storage<S, Scratch: Send> + Send + 'static> PlacedEngine<S, K> {
    /// Allocates the workspace. M has been made from the source in `matrices`.
    pub fn new(
        space: &S,
        placement: Box<dyn Placement<S> + Send>,
        matrices: Matrices<K>,
        m: Factor<S, K>,
        method: Method,
    ) -> Result<Self, BackendError> {
        let without_product = can_leave_product(&matrices, &m, method);
        let workspace = workspace_of(without_product, method, System { space, a: &matrices.a, m: &m })?;
        let layout = placement.layout();
        let vectors = match placement.is_identity() {
            true => None,
            false => Some([space.zeros(&layout)?, space.zeros(&layout)?]),
        };
        Ok(PlacedEngine { placement, matrices, m, method, workspace, without_product, vectors })
    }

    fn choose_workspace(&mut self, space: &S, without_product: bool) -> Result<(), BackendError> {
        let system = System { space, a: &self.matrices.a, m: &self.m };
        self.workspace = workspace_of(without_product, self.method, system)?;
        self.without_product = without_product;
        Ok(())
    }
}

fn can_leave_product<S: SolverSpace, K: Storage<S>>(
    matrices: &Matrices<K>,
    m: &Factor<S, K>,
    method: Method,
) -> bool {
    let shared = || m.split_sweeps().is_some_and(|sweeps| sweeps.has_triangles_of(&matrices.a));
    method == Method::Cg && matrices.are_one() && shared()
}

fn workspace_of<S: SolverSpace, K: Storage<S, Scratch: Send> + Send + 'static>(
    without_product: bool,
    method: Method,
    system: System<'_, S, K, Factor<S, K>>,
) -> Result<Workspace<S, K>, BackendError> {
    if without_product && let Some(cg) = EisenstatCg::new(system)? {
        return Ok(Box::new(cg));
    }
    workspace(method, system)
}

impl<S: SolverSpace, K: Storage<S, Scratch: Send> + Send + 'static> Engine<S, Csr<f64>>
    for PlacedEngine<S, K>
{
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        let stored = self.matrices.source_mut();
        stored.require(source)?;
        self.m.release();
        stored.set(space, source)?;
        self.m.set_shift(shift);
        self.m.refactor(space, stored)
    }

    fn use_method(&mut self, space: &S, _: &Csr<f64>, method: Method) -> Result<(), SolveError> {
        self.method = method;
        let without_product = can_leave_product(&self.matrices, &self.m, method);
        Ok(self.choose_workspace(space, without_product)?)
    }

    fn begin(
        &mut self,
        space: &S,
        a: &Csr<f64>,
        b: &S::Vector,
        x: &S::Vector,
        directions: bool,
    ) -> Result<(), SolveError> {
        self.matrices.a.set(space, a)?;
        // With a factor that is kept while A changes, M has other triangles than A.
        let without_product = !directions && can_leave_product(&self.matrices, &self.m, self.method);
        if without_product != self.without_product {
            self.choose_workspace(space, without_product)?;
        }
        if let Some([placed_b, placed_x]) = &mut self.vectors {
            self.placement.load(space, Side::Rows, b, placed_b)?;
            self.placement.load(space, Side::Columns, x, placed_x)?;
        }
        Ok(())
    }

    fn run(&mut self, run: Run<'_, S, Csr<f64>>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, b, x, stop, observer, .. } = run;
        let system = System { space, a: &self.matrices.a, m: &self.m };
        let Some([placed_b, placed_x]) = &mut self.vectors else {
            return self.workspace.run(start, system, b, x, stop, observer);
        };
        let finish = match observer.wants_directions() {
            false => self.workspace.run(start, system, placed_b, placed_x, stop, observer)?,
            true => {
                let layout = space.layout(b);
                let vectors = [space.zeros(&layout)?, space.zeros(&layout)?];
                let placement = &*self.placement;
                let mut watched =
                    InOrderOfA { observer, space, placement, vectors, factor: 1.0, failed: None };
                let finish = self.workspace.run(start, system, placed_b, placed_x, stop, &mut watched)?;
                watched.failed.map_or(Ok(finish), Err)?
            }
        };
        self.placement.store(space, Side::Columns, placed_x, x)?;
        Ok(finish)
    }

    fn restore_kept(&self, space: &S, x: &mut S::Vector) -> Result<bool, BackendError> {
        match self.workspace.kept() {
            Some((kept, _)) => self.placement.store(space, Side::Columns, kept, x).map(|()| true),
            None => Ok(false),
        }
    }

    fn is_without_product(&self) -> bool {
        self.without_product
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
