//! Which column of A stands at which place: as given, or exchanged by pivoting.

use crate::error::SetupError;
use crate::matrix::Permutation;
use crate::scalar::Real;

/// The order of the columns while rows are eliminated. In row i the places before i are settled.
pub(super) trait Columns<T> {
    /// Where column `c` stands.
    fn place(&self, c: u32) -> u32;
    /// The column at a place.
    fn column(&self, place: u32) -> u32;
    /// Whether an entry of the pivot's row is to take the pivot's place.
    fn prefers(&self, entry: T, pivot: T) -> bool;
    /// Exchanges the columns at two places.
    fn swap(&mut self, a: u32, b: u32);
    /// The order reached.
    fn finish(self) -> Result<Option<Permutation>, SetupError>;
}

/// Columns as given.
pub(super) struct Given;

impl<T: Real> Columns<T> for Given {
    fn place(&self, c: u32) -> u32 {
        c
    }

    fn column(&self, place: u32) -> u32 {
        place
    }

    fn prefers(&self, _: T, _: T) -> bool {
        false
    }

    fn swap(&mut self, _: u32, _: u32) {}

    fn finish(self) -> Result<Option<Permutation>, SetupError> {
        Ok(None)
    }
}

/// Columns exchanged where an entry times `tolerance` exceeds the pivot.
pub(super) struct Exchanged<T> {
    tolerance: T,
    column: Vec<u32>,
    place: Vec<u32>,
}

impl<T: Real> Exchanged<T> {
    /// Of n columns, n ≤ 2³².
    pub(super) fn new(n: usize, tolerance: f64) -> Self {
        let column: Vec<u32> = (0..n).map(|c| c as u32).collect();
        Exchanged { tolerance: T::from_f64(tolerance.clamp(0.0, 1.0)), place: column.clone(), column }
    }
}

impl<T: Real> Columns<T> for Exchanged<T> {
    fn place(&self, c: u32) -> u32 {
        self.place[c as usize]
    }

    fn column(&self, place: u32) -> u32 {
        self.column[place as usize]
    }

    fn prefers(&self, entry: T, pivot: T) -> bool {
        entry.abs() * self.tolerance > pivot.abs()
    }

    fn swap(&mut self, a: u32, b: u32) {
        self.column.swap(a as usize, b as usize);
        self.place[self.column[a as usize] as usize] = a;
        self.place[self.column[b as usize] as usize] = b;
    }

    fn finish(self) -> Result<Option<Permutation>, SetupError> {
        Ok(Some(Permutation::new(self.column)?))
    }
}
