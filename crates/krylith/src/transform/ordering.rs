//! Orderings by name.

use super::colouring::multicolouring;
use super::dissection::nested_dissection;
use super::error::OrderingError;
use super::graph::symmetrized;
use super::minimum_degree::approximate_minimum_degree;
use super::rcm::reverse_cuthill_mckee;
use crate::matrix::{Pattern, Permutation};
use crate::names;
use crate::names::NameError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// A symmetric reordering P A Pᵀ of a square matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "std::borrow::Cow<'_, str>")]
#[non_exhaustive]
pub enum Ordering {
    /// As given.
    #[default]
    Natural,
    /// Reverse Cuthill–McKee: a small bandwidth.
    Rcm,
    /// Approximate minimum degree: little fill.
    Amd,
    /// Nested dissection by METIS: little fill, short chains. Needs the cargo feature `metis`.
    NestedDissection,
    /// By colour, rows of one colour not being neighbours: few wavefronts.
    Colouring,
}

impl Ordering {
    /// Every ordering there is, the natural one first.
    pub const ALL: [Ordering; 5] =
        [Ordering::Natural, Ordering::Rcm, Ordering::Amd, Ordering::NestedDissection, Ordering::Colouring];

    fn name(self) -> &'static str {
        match self {
            Ordering::Natural => "natural",
            Ordering::Rcm => "rcm",
            Ordering::Amd => "amd",
            Ordering::NestedDissection => "nd",
            Ordering::Colouring => "colour",
        }
    }
}

impl FromStr for Ordering {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let lower = name.trim().to_lowercase();
        let meant = if lower == "color" { "colour" } else { &lower };
        let known = Ordering::ALL.into_iter().find(|o| o.name() == meant);
        known.ok_or_else(|| {
            let hint = names::hint(name, &Ordering::ALL.map(Ordering::name));
            NameError::Unknown { what: "ordering", name: name.into(), hint }
        })
    }
}

impl From<Ordering> for &'static str {
    fn from(ordering: Ordering) -> Self {
        ordering.name()
    }
}

impl TryFrom<Cow<'_, str>> for Ordering {
    type Error = NameError;

    fn try_from(name: Cow<'_, str>) -> Result<Self, NameError> {
        name.parse()
    }
}

impl Display for Ordering {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The permutation of an ordering, from the pattern of A + Aᵀ; the diagonal does not count.
///
/// Any square pattern will do: in several parts, with empty rows, without any row. Numbers only depend on the pattern.
///
/// ```
/// use krylith::{gallery::Problem, transform::{Ordering, order}};
/// let a = "poisson2d:30x4".parse::<Problem>()?.generate()?;
/// let p = order(a.pattern(), Ordering::Rcm)?;
/// let b = a.view().permute_symmetric(&p)?;
/// assert_eq!(b.nnz(), a.nnz());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn order(pattern: &Pattern, ordering: Ordering) -> Result<Permutation, OrderingError> {
    pattern.require_square()?;
    let old = match ordering {
        Ordering::Natural => return Ok(Permutation::identity(pattern.nrows())?),
        Ordering::Rcm => reverse_cuthill_mckee(&symmetrized(pattern)?),
        Ordering::Amd => approximate_minimum_degree(&symmetrized(pattern)?)?,
        Ordering::NestedDissection => nested_dissection(&symmetrized(pattern)?)?,
        Ordering::Colouring => multicolouring(&symmetrized(pattern)?),
    };
    Ok(Permutation::new(old)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MatrixError;
    use crate::gallery::Problem;
    use crate::transform::OrderingQuality;
    use crate::transform::graph::permuted;
    use crate::transform::graph::tests::{from_entries, patterns};
    use proptest::prelude::*;

    /// What this build has.
    fn available() -> impl Iterator<Item = Ordering> {
        let metis = cfg!(feature = "metis");
        Ordering::ALL.into_iter().filter(move |&o| metis || o != Ordering::NestedDissection)
    }

    fn grid(problem: &str) -> std::sync::Arc<Pattern> {
        problem.parse::<Problem>().unwrap().generate().unwrap().pattern().clone()
    }

    /// A fixed shuffle: by a hash of the index.
    fn shuffle(n: usize) -> Permutation {
        let mut old: Vec<u32> = (0..n as u32).collect();
        old.sort_by_key(|&i| u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ 0x5555);
        Permutation::new(old).unwrap()
    }

    #[test]
    fn names() {
        for o in Ordering::ALL {
            assert_eq!(o.to_string().parse(), Ok(o));
        }
        assert_eq!(Ordering::default(), Ordering::Natural);
        let error = "metis".parse::<Ordering>().unwrap_err().to_string();
        assert_eq!(error, "unknown ordering `metis`; known: natural, rcm, amd, nd, colour");
    }

    #[cfg(not(feature = "metis"))]
    #[test]
    fn what_is_not_in_this_build_says_how_to_get_it() {
        let error = order(&from_entries(2, &[(0, 1)]), Ordering::NestedDissection).unwrap_err();
        assert_eq!(error, OrderingError::FeatureMissing { ordering: "nd", feature: "metis" });
        assert!(error.to_string().contains("enable the cargo feature `metis`"));
    }

    #[test]
    fn no_row_one_row_no_entry() {
        for o in available() {
            for n in [0, 1, 7] {
                let p = order(&from_entries(n, &[]), o).unwrap();
                assert_eq!(p.len(), n, "{o}");
            }
            let dense: Vec<(u32, u32)> = (0..9).flat_map(|i| (0..9).map(move |j| (i, j))).collect();
            assert_eq!(order(&from_entries(9, &dense), o).unwrap().len(), 9, "{o}");
        }
    }

    #[test]
    fn a_rectangle_is_refused() {
        let p = Pattern::new(1, 2, vec![0, 0], vec![]).unwrap();
        for o in available() {
            assert_eq!(order(&p, o), Err(MatrixError::NotSquare { nrows: 1, ncols: 2 }.into()));
        }
    }

    /// On a grid of 60 x 12 the bandwidth cannot be below 12, and breadth-first levels from a corner are 12 long.
    #[test]
    fn rcm_finds_the_short_side_of_a_shuffled_grid() {
        let a = permuted(&grid("poisson2d:60x12"), &shuffle(720));
        let natural = OrderingQuality::new(&a, &Permutation::identity(720).unwrap()).unwrap();
        let rcm = OrderingQuality::new(&a, &order(&a, Ordering::Rcm).unwrap()).unwrap();
        assert!(natural.bandwidth > 40 * 12, "shuffled: {}", natural.bandwidth);
        assert!((12..=13).contains(&rcm.bandwidth), "{}", rcm.bandwidth);
    }

    #[test]
    fn less_fill_than_by_bandwidth_and_few_wavefronts_by_colour() {
        let a = permuted(&grid("poisson2d:60"), &shuffle(3600));
        let quality = |o| OrderingQuality::new(&a, &order(&a, o).unwrap()).unwrap();
        let rcm = quality(Ordering::Rcm);
        for o in available().filter(|o| matches!(o, Ordering::Amd | Ordering::NestedDissection)) {
            let fill = quality(o).cholesky_entries;
            assert!(2 * fill < rcm.cholesky_entries, "{o}: {fill}, rcm {}", rcm.cholesky_entries);
        }
        let colour = quality(Ordering::Colouring);
        assert!(colour.wavefronts <= 5, "degree 4: {}", colour.wavefronts);
        assert_eq!(colour.lower_entries, rcm.lower_entries);
    }

    proptest! {
        #[test]
        fn every_pattern_has_every_ordering_twice_the_same(a in patterns(40)) {
            for o in available() {
                let p = order(&a, o).unwrap();
                prop_assert_eq!(p.len(), a.nrows());
                prop_assert_eq!(&p, &order(&a, o).unwrap());
                prop_assert_eq!(&p, &order(&a.transpose(), o).unwrap(), "A + Aᵀ alone counts");
            }
        }
    }
}
