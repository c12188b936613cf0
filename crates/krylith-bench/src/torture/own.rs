//! A preconditioner as a caller writes it: IC(0) or ILU(0) by a recipe that looks at what it is given.

use super::system::{Call, Preparation, Which};
use krylith::operator::{Given, Recipe};
use krylith::precond::{Incomplete, IncompleteSymbolic};
use krylith::schedule::Schedule;
use krylith::space::Threads;
use krylith::{Csr, SetupError};
use std::ops::RangeInclusive;

/// Names that are drawn, and how often each is.
pub const NAMES: [(&str, u32); 2] = [("own-ic0", 2), ("own-ilu0", 2)];

/// The recipe; it panics where what it is given is not what the caller gave.
pub struct Own {
    symmetric: bool,
    /// How many vectors it must be given: [`largest_of_columns`] or none. Of the transpose it is given none, so that either is right where
    /// it is solved with, too.
    vectors: RangeInclusive<usize>,
    /// All matrices have the values that the vectors were made from.
    same_values: bool,
}

/// The largest entry of each column, in size: numbers that go with the columns wherever they are moved to.
pub fn largest_of_columns(a: &Csr<f64>) -> Vec<f64> {
    let mut largest = vec![0.0; a.ncols()];
    for i in 0..a.nrows() {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).for_each(|(&j, v)| largest[j as usize] = v.abs().max(largest[j as usize]));
    }
    largest
}

/// Whether these are the largest entries of the columns, up to a factor: a matrix may be scaled, and negligible entries left out.
fn goes_with_columns(z: &[f64], a: &Csr<f64>) -> bool {
    let largest = largest_of_columns(a);
    let factor =
        largest.iter().zip(z).find(|(largest, _)| **largest > 0.0).map_or(1.0, |(largest, z)| largest / z);
    z.len() == largest.len() && largest.iter().zip(z).all(|(largest, z)| *largest == factor * z)
}

impl Own {
    /// The recipe of a name among [`NAMES`], for a solver that was given near-null vectors or not and makes these calls.
    pub fn new(name: &str, counts: bool, (preparation, calls): &(Preparation, Vec<Call>)) -> Self {
        let most = usize::from(counts);
        let transposes = calls.iter().any(|call| matches!(call, Call::Solve { transposed: true, .. }));
        let is_of_a =
            |call: &Call| matches!(call, Call::Refactor(Which::A) | Call::Solve { matrix: Which::A, .. });
        Own {
            symmetric: name == "own-ic0",
            vectors: if transposes { 0 } else { most }..=most,
            same_values: *preparation != Preparation::FromOther && calls.iter().all(is_of_a),
        }
    }
}

impl Recipe<Threads<f64>, Csr<f64>> for Own {
    type Symbolic = IncompleteSymbolic;

    fn analyze(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<IncompleteSymbolic, SetupError> {
        self.analyze_given(space, a, &Given::new(&[], Schedule::Auto))
    }

    fn analyze_given(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        given: &Given<'_>,
    ) -> Result<IncompleteSymbolic, SetupError> {
        let vectors = given.near_null.len();
        assert!(self.vectors.contains(&vectors), "{vectors} near-null vectors, not {:?}", self.vectors);
        for z in given.near_null {
            assert_eq!(z.len(), a.ncols());
            assert!(
                !self.same_values || goes_with_columns(z, a),
                "{z:?} does not go with the columns of {a:?}"
            );
        }
        let recipe = if self.symmetric { Incomplete::ic(0) } else { Incomplete::ilu(0) };
        Incomplete { schedule: given.schedule, ..recipe }.analyze(space, a)
    }

    fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    fn can_shift(&self) -> bool {
        true
    }
}
