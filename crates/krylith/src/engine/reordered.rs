//! Systems whose rows and columns are permuted before anything else, and whose A is multiplied by a power of two where it is out of
//! range: 2ᵉ P A Q y = P b with x = 2ᵉ Q y.
//!
//! Permutations keep 2-norms, so the iteration on the permuted system stops by the user's residual.

use super::placed::InOrderOfA;
use super::{DynEngine, Engine, EngineWorkspace, Matrices, Operand, Run, SolverSpace, own, own_ref};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::Finish;
use crate::matrix::{Csr, Pattern, Permutation, SeenValues, exact_scale, require_pattern};
use crate::options::Method;
use crate::placement::{self, Placement, Side};
use crate::space::Threads;
use std::sync::{Arc, Mutex, PoisonError};

/// Permutations of rows and columns.
#[derive(Debug)]
pub(crate) struct Reordering<L> {
    rows: Permutation,
    columns: Permutation,
    size: L,
    /// Numbers on their way, in this process's memory.
    buffers: Mutex<[Vec<f64>; 2]>,
}

impl<L> Reordering<L> {
    /// `size` is that of vectors, in either order.
    pub(crate) fn new(rows: Permutation, columns: Permutation, size: L) -> Self {
        let n = rows.old().len();
        let buffers = Mutex::new([vec![0.0; n], vec![0.0; n]]);
        Reordering { rows, columns, size, buffers }
    }
}

/// The order of a permuted system whose A is multiplied by a power of two.
struct Scaled<'a, L> {
    reordering: &'a Reordering<L>,
    power: f64,
}

impl<L> Scaled<'_, L> {
    fn of(&self, side: Side) -> (&Permutation, f64) {
        match side {
            Side::Rows => (&self.reordering.rows, 1.0),
            Side::Columns => (&self.reordering.columns, self.power),
        }
    }
}

impl<S: SolverSpace<Size = L>, L: Clone> Placement<S> for Scaled<'_, L> {
    fn size(&self) -> L {
        self.reordering.size.clone()
    }

    fn load(&self, space: &S, side: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError> {
        let (permutation, power) = self.of(side);
        let mut buffers = self.reordering.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let [given, placed] = &mut *buffers;
        space.download(from, given)?;
        placement::gather(space.host(), permutation, given, placed)?;
        space.upload(placed, to)?;
        if power == 1.0 { Ok(()) } else { space.scale(1.0 / power, to) }
    }

    fn store(&self, space: &S, side: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError> {
        let (permutation, power) = self.of(side);
        let mut buffers = self.reordering.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let [given, placed] = &mut *buffers;
        space.download(from, placed)?;
        placement::scatter(space.host(), permutation, placed, given)?;
        space.upload(given, to)?;
        if power == 1.0 { Ok(()) } else { space.scale(power, to) }
    }

    fn user_row(&self, place: usize) -> Option<usize> {
        self.reordering.rows.old().get(place).map(|&row| row as usize)
    }
}

/// A matrix with its rows and columns permuted, multiplied by a power of two.
#[derive(Debug, Clone)]
pub(crate) struct PermutedMatrix {
    /// Of the matrix as given.
    source: Arc<Pattern>,
    /// For every entry of the permuted matrix its place in the given one.
    places: Vec<usize>,
    power: f64,
    /// The values that were taken over last.
    seen: Option<SeenValues>,
    pub(crate) matrix: Csr<f64>,
}

impl PermutedMatrix {
    /// P A Q times the power of two that brings A into range.
    pub(crate) fn new(
        host: &Threads<f64>,
        a: &Csr<f64>,
        rows: &Permutation,
        columns: &Permutation,
    ) -> Result<Self, SetupError> {
        let mut permuted = a.view().permute(rows, columns)?;
        let power = exact_scale(host, a)?;
        if power != 1.0 {
            permuted.values_mut().iter_mut().for_each(|v| *v *= power);
        }
        let mut places = Vec::with_capacity(permuted.nnz());
        for (i, &row) in rows.old().iter().enumerate() {
            for &j in permuted.pattern().row(i) {
                let column = columns.old()[j as usize] as usize;
                places.push(a.pattern().find(row as usize, column).expect("an entry of A"));
            }
        }
        let seen = Some(SeenValues::of(host, a));
        Ok(PermutedMatrix { source: Arc::clone(a.pattern()), places, power, seen, matrix: permuted })
    }

    /// Bytes that a copy of this matrix will take, with the place of each of its entries.
    pub(crate) fn predict(matrix: &Csr<f64>) -> usize {
        matrix.bytes() + size_of::<usize>() * matrix.nnz()
    }

    /// Whether the values are those of this matrix, which has the same pattern.
    fn holds(&self, host: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.are_those_of(host, a))
    }

    /// Takes over the values of a matrix of the same pattern; allocates nothing.
    fn set(&mut self, host: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())?;
        if self.holds(host, a) {
            return Ok(());
        }
        self.power = exact_scale(host, a)?;
        for (to, &place) in self.matrix.values_mut().iter_mut().zip(&self.places) {
            *to = a.values()[place] * self.power;
        }
        self.seen = Some(SeenValues::of(host, a));
        Ok(())
    }
}

/// The permuted system, and the engine that iterates on it.
pub(crate) struct Reordered<S: SolverSpace> {
    reordering: Reordering<S::Size>,
    matrices: Matrices<PermutedMatrix>,
    inner: DynEngine<S>,
}

/// What a solve of a permuted system writes.
struct ReorderedWorkspace<S: SolverSpace> {
    b: S::Vector,
    x: S::Vector,
    inner: EngineWorkspace,
    /// A, where it has other values than the matrix that is permuted already.
    own_a: Option<PermutedMatrix>,
}

/// What an application of M writes.
struct ReorderedApplication<S: SolverSpace> {
    r: S::Vector,
    z: S::Vector,
    inner: EngineWorkspace,
}

impl<S: SolverSpace> Reordered<S> {
    pub(crate) fn new(
        reordering: Reordering<S::Size>,
        matrices: Matrices<PermutedMatrix>,
        inner: DynEngine<S>,
    ) -> Self {
        Reordered { reordering, matrices, inner }
    }

    fn scaled(&self, a: &PermutedMatrix) -> Scaled<'_, S::Size> {
        Scaled { reordering: &self.reordering, power: a.power }
    }
}

impl<S: SolverSpace> Engine<S> for Reordered<S> {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        let permuted = self.matrices.source_mut();
        permuted.set(space.host(), source)?;
        let result = self.inner.refactor(space, &permuted.matrix, shift);
        result.map_err(|error| error.in_order_of_a(Some(self.reordering.rows.old())))
    }

    fn workspace(&self, space: &S, _: Operand<'_, S>, method: Method) -> Result<EngineWorkspace, SolveError> {
        let size = &self.reordering.size;
        let inner = self.inner.workspace(space, Operand::Rows(&self.matrices.a.matrix), method)?;
        let (b, x) = (space.zeros(size)?, space.zeros(size)?);
        Ok(Box::new(ReorderedWorkspace::<S> { b, x, inner, own_a: None }))
    }

    fn begin(
        &self,
        workspace: &mut EngineWorkspace,
        space: &S,
        a: Operand<'_, S>,
        (b, x): (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError> {
        let ReorderedWorkspace::<S> { b: own_b, x: own_x, inner, own_a } = own(workspace)?;
        let (stored, a) = (&self.matrices.a, a.rows()?);
        require_pattern(&stored.source, a.pattern())?;
        match stored.holds(space.host(), a) {
            true => *own_a = None,
            false => own_a.get_or_insert_with(|| stored.clone()).set(space.host(), a)?,
        }
        let a = own_a.as_ref().unwrap_or(stored);
        let order = self.scaled(a);
        order.load(space, Side::Rows, b, own_b)?;
        order.load(space, Side::Columns, x, own_x)?;
        self.inner.begin(inner, space, Operand::Rows(&a.matrix), (own_b, own_x), directions)
    }

    fn run(&self, workspace: &mut EngineWorkspace, run: Run<'_, S>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, x, stop, observer, .. } = run;
        let ReorderedWorkspace::<S> { b, x: own_x, inner, own_a } = own(workspace)?;
        let stored = own_a.as_ref().unwrap_or(&self.matrices.a);
        let (a, order) = (Operand::Rows(&stored.matrix), self.scaled(stored));
        let finish = match observer.wants_directions() {
            false => self.inner.run(inner, Run { start, space, a, b, x: own_x, stop, observer })?,
            true => {
                let size = &self.reordering.size;
                let vectors = [space.zeros(size)?, space.zeros(size)?];
                let (factor, placement) = (order.power, &order);
                let mut watched = InOrderOfA { observer, space, placement, vectors, factor, failed: None };
                let observer = &mut watched;
                let finish = self.inner.run(inner, Run { start, space, a, b, x: own_x, stop, observer })?;
                watched.failed.map_or(Ok(finish), Err)?
            }
        };
        order.store(space, Side::Columns, own_x, x)?;
        Ok(finish)
    }

    fn application(&self, space: &S) -> Result<EngineWorkspace, BackendError> {
        let size = &self.reordering.size;
        let (r, z) = (space.zeros(size)?, space.zeros(size)?);
        Ok(Box::new(ReorderedApplication::<S> { r, z, inner: self.inner.application(space)? }))
    }

    fn precondition(
        &self,
        application: &mut EngineWorkspace,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
    ) -> Result<(), BackendError> {
        let ReorderedApplication::<S> { r: own_r, z: own_z, inner } = own(application)?;
        let order = self.scaled(self.matrices.source());
        order.load(space, Side::Rows, r, own_r)?;
        self.inner.precondition(inner, space, own_r, own_z)?;
        order.store(space, Side::Columns, own_z, z)
    }

    fn restore_kept(
        &self,
        workspace: &EngineWorkspace,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        let workspace = own_ref::<ReorderedWorkspace<S>>(workspace)?;
        let mut kept = space.zeros(&self.reordering.size)?;
        let found = self.inner.restore_kept(&workspace.inner, space, &mut kept)?;
        if found {
            let a = workspace.own_a.as_ref().unwrap_or(&self.matrices.a);
            self.scaled(a).store(space, Side::Columns, &kept, x)?;
        }
        Ok(found)
    }

    fn is_scaled(&self) -> bool {
        self.matrices.a.power != 1.0
    }

    fn is_without_product(&self, workspace: &EngineWorkspace) -> bool {
        let own = own_ref::<ReorderedWorkspace<S>>(workspace);
        own.is_ok_and(|own| self.inner.is_without_product(&own.inner))
    }
}
