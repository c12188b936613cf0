//! Incomplete factors at the speed of a product: rows by wavefront, in slices of eight.
//!
//! A triangular solve in the order of the user's rows is a chain: on a grid every row waits for its neighbour, a few
//! nanoseconds each, whatever the width of the machine. Rows of one wavefront do not need each other. So the system is
//! reordered, P A Pᵀ, wavefront after wavefront (`order`), and cut into slices of eight rows of one wavefront each; eight rows
//! are then computed at once in the lanes of a vector register. Connected rows keep their order, so IC(0) and ILU(0) of the
//! reordered matrix are those of A, reordered: the same preconditioner, the same iterations up to rounding.
//!
//! Entries of a slice are stored by *strips* (`strips`): eight entries, one a lane, whose columns are consecutive, with a mask
//! of the lanes that are there. A strip costs 4 bytes for its first column and 1 for the mask where eight entries of compressed
//! rows cost 32, and its part of x is one load, not eight. On a grid, but not only there, neighbouring rows of a wavefront need
//! neighbouring rows of the ones before, and nearly all strips are full. Where they are not, the matrix keeps its rows and its
//! order; see [`SlicedPattern::find`].
//!
//! [`Solver`](crate::Solver) takes this path by itself where it pays. By hand:
//!
//! ```
//! use krylith::operator::{LinearOperator, Recipe, Symbolic};
//! use krylith::precond::Incomplete;
//! use krylith::sliced::{Sliced, SlicedPattern};
//! use krylith::{gallery::Problem, space::Threads};
//! use std::sync::Arc;
//!
//! let a = "poisson3d:20".parse::<Problem>()?.generate()?;
//! let space = Threads::new(2);
//! let pattern = Arc::new(SlicedPattern::find(a.pattern())?);
//! let mut sliced = Sliced::zeros(&pattern);
//! sliced.set(&space, &a)?;
//! let m = Incomplete::ic(0).analyze(&space, &sliced)?.factor(&space, &sliced)?;
//! // z = M⁻¹ b, in the new order and back.
//! let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
//! let (mut r, mut z) = (vec![0.0; pattern.positions()], vec![0.0; pattern.positions()]);
//! pattern.gather(&space, &b, &mut r)?;
//! m.apply(&space, &r, &mut z, &mut m.scratch(&space)?)?;
//! pattern.scatter(&space, &z, &mut x)?;
//! assert!(x.iter().all(|&x| x > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The iteration runs on reordered vectors; b and x are reordered once per solve. Wavefronts begin at multiples of eight: the rows
//! in between are empty and their entries of every vector zero. A and its factor share their strips.
//!
//! References: Ashcraft & Grimes 1988, doi:10.1137/0909009, and van der Vorst 1989, doi:10.1016/0167-8191(89)90094-5, for
//! wavefronts on vector computers; Kreutzer et al. 2014, doi:10.1137/130930352, for slices. Strips by offset with masks instead
//! of column indices are ours.

mod eliminate;
mod factor;
mod kernels;
mod matrix;
mod order;
mod repeated;
mod strips;

pub use crate::simd::StorageScalar;
pub use factor::{SlicedFactor, SlicedSymbolic};
pub use matrix::Sliced;
pub(crate) use order::LevelOrder;
pub(crate) use repeated::SharedSlices;
pub use strips::{NotSliced, SlicedPattern};

/// Rows of a slice, lanes of a strip.
pub(crate) use crate::simd::LANES;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elimination::{Form, Incomplete, Kind, PreservedSums};
    use crate::gallery::Problem;
    use crate::matrix::{Csr, Pattern};
    use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
    use crate::schedule::Schedule;
    use crate::space::{Space, Threads};
    use std::sync::Arc;

    const PROBLEMS: [&str; 7] =
        ["poisson2d:40", "poisson3d:14", "hpcg:11", "convection3d:13", "jump3d:12", "ecology:37", "fem2d:40"];

    fn problem(name: &str) -> (Csr<f64>, Arc<SlicedPattern>) {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        let pattern = SlicedPattern::find_with(a.pattern(), 4.0, 4.0).unwrap();
        (a, Arc::new(pattern))
    }

    fn vector(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 37) as f64).sin()).collect()
    }

    fn close(found: &[f64], expected: &[f64], what: &str, tolerance: f64) {
        let scale = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for (i, (f, e)) in found.iter().zip(expected).enumerate() {
            assert!((f - e).abs() <= tolerance * scale, "{what}: {f} and {e} at {i}");
        }
    }

    #[test]
    fn a_product_is_that_of_the_rows() {
        for name in PROBLEMS {
            let (a, pattern) = problem(name);
            let space = Threads::new(2);
            let mut sliced = Sliced::zeros(&pattern);
            sliced.set(&space, &a).unwrap();
            let x = vector(a.nrows());
            let mut expected = vec![0.0; a.nrows()];
            a.mul_vec(&x, &mut expected).unwrap();
            let (mut px, mut py) = (vec![0.0; pattern.positions()], vec![f64::NAN; pattern.positions()]);
            pattern.gather(&Threads::new(1), &x, &mut px).unwrap();
            sliced.apply(&space, &px, &mut py, &mut ()).unwrap();
            let mut y = vec![f64::NAN; a.nrows()];
            pattern.scatter(&space, &py, &mut y).unwrap();
            close(&y, &expected, name, 1e-13);
            let dot = space.dot(&px, &py).unwrap();
            let mut again = vec![f64::NAN; pattern.positions()];
            assert_eq!(sliced.apply_dot(&space, &px, &mut again, &mut ()).unwrap().to_bits(), dot.to_bits());
            assert_eq!(again, py);
        }
    }

    /// Constant coefficients are read once per strip; one entry that differs ends that. Neither changes a bit of the product, and
    /// changed values are noticed.
    #[test]
    fn uniform_strips_change_nothing() {
        let (mut a, pattern) = problem("hpcg:11");
        let x = vector(a.nrows());
        let mut px = vec![0.0; pattern.positions()];
        pattern.gather(&Threads::new(1), &x, &mut px).unwrap();
        let product = |sliced: &Sliced, threads| {
            let mut y = vec![f64::NAN; pattern.positions()];
            sliced.apply(&Threads::new(threads), &px, &mut y, &mut ()).unwrap();
            y
        };
        let space = Threads::new(2);
        let mut sliced = Sliced::zeros(&pattern);
        sliced.set(&space, &a).unwrap();
        assert!(sliced.is_uniform());
        let uniform = product(&sliced, 3);
        // One entry twice as large: every strip is stored in full.
        let row = 700;
        let k = a.pattern().find(row, row + 1).unwrap();
        let value = a.values()[k];
        a.values_mut()[k] = 2.0 * value;
        sliced.set(&space, &a).unwrap();
        assert!(!sliced.is_uniform());
        let full = product(&sliced, 3);
        let changed: Vec<usize> = (0..full.len()).filter(|&p| full[p] != uniform[p]).collect();
        assert_eq!(changed.len(), 1, "row {row} alone");
        // Infinite entries stay in their rows, equal or not.
        let mut infinite = a.clone();
        infinite.values_mut().fill(f64::INFINITY);
        sliced.set(&space, &infinite).unwrap();
        assert!(!sliced.is_uniform());
        a.values_mut()[k] = value;
        sliced.set(&space, &a).unwrap();
        assert!(sliced.is_uniform());
        assert_eq!(product(&sliced, 1), uniform);
    }

    /// A as strips in the order of a factor with fill, and that factor's.
    fn with_fill(a: &Csr<f64>, recipe: &Incomplete) -> (Arc<SlicedPattern>, Arc<SlicedPattern>) {
        let pattern = recipe.pattern(a.pattern()).unwrap();
        let of_factor = Arc::new(SlicedPattern::find_with(&pattern, 8.0, 8.0).unwrap());
        (Arc::new(of_factor.in_same_order_with(a.pattern(), 8.0).unwrap()), of_factor)
    }

    /// Every factor applied equals the one by rows, and is the same bits on every plan and number of threads.
    #[test]
    fn sweeps_are_those_of_the_rows() {
        let recipes = [
            Incomplete::ic(0),
            Incomplete::ilu(0),
            Incomplete::ic(1),
            Incomplete::ilu(2),
            Incomplete::mic(0, 0.9),
            Incomplete::milu(1, 0.9, PreservedSums::Rows),
            Incomplete::dic(),
            Incomplete::dilu(),
        ];
        for (name, recipe) in PROBLEMS.iter().flat_map(|&name| recipes.map(|recipe| (name, recipe))) {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            if name == "convection3d:13" && recipe.form.kind == Kind::Cholesky {
                continue;
            }
            let (of_a, of_factor) = with_fill(&a, &recipe);
            let x = vector(a.nrows());
            let mut expected = vec![0.0; a.nrows()];
            let space = Threads::new(1);
            let f = recipe.analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
            f.apply(&space, &x, &mut expected, &mut f.scratch(&space).unwrap()).unwrap();
            let bits = on_all_plans::<f64>(&a, &of_a, &of_factor, &recipe, &x);
            let mut z = vec![f64::NAN; a.nrows()];
            of_a.scatter(&space, &bits, &mut z).unwrap();
            close(&z, &expected, &format!("{name} {recipe:?}"), 1e-13);
            let narrow = on_all_plans::<f32>(&a, &of_a, &of_factor, &recipe, &x);
            of_a.scatter(&space, &narrow, &mut z).unwrap();
            close(&z, &expected, &format!("{name} {recipe:?} in f32"), 1e-5);
        }
    }

    /// M⁻¹ x, after it was seen to be the same on all plans.
    fn on_all_plans<S: StorageScalar>(
        a: &Csr<f64>,
        of_a: &Arc<SlicedPattern>,
        of_factor: &Arc<SlicedPattern>,
        recipe: &Incomplete,
        x: &[f64],
    ) -> Vec<f64> {
        let mut px = vec![0.0; of_a.positions()];
        of_a.gather(&Threads::new(1), x, &mut px).unwrap();
        let mut bits: Option<Vec<f64>> = None;
        for threads in [1, 3] {
            for schedule in [Schedule::Levels, Schedule::PointToPoint] {
                let space = Threads::new(threads);
                let mut sliced = Sliced::zeros(of_a);
                sliced.set(&space, a).unwrap();
                let mut f =
                    SlicedSymbolic::new(of_factor, recipe.form, threads, schedule).unwrap().allocate::<S>();
                f.refactor(&space, &sliced).unwrap();
                let mut scratch = f.scratch(&space).unwrap();
                for _ in 0..2 {
                    let mut z = vec![f64::NAN; of_a.positions()];
                    f.apply(&space, &px, &mut z, &mut scratch).unwrap();
                    assert_eq!(*bits.get_or_insert_with(|| z.clone()), z, "{threads} {schedule:?}");
                }
            }
        }
        bits.unwrap()
    }

    /// What does not pay is refused with a reason.
    #[test]
    fn chains_and_scattered_rows_are_left_alone() {
        let why = SlicedPattern::find(&Arc::new(tridiagonal(1000))).unwrap_err().to_string();
        assert!(why.contains("wavefronts are too small"), "{why}");
        // Rows that need random rows of the level before.
        let n = 4096;
        let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
        for i in 0..n {
            if i >= n / 2 {
                let mut js: Vec<u32> = (0..4).map(|k| ((i * 7919 + k * 104_729) % (n / 2)) as u32).collect();
                js.sort_unstable();
                js.dedup();
                col_idx.extend(js);
            }
            col_idx.push(i as u32);
            row_ptr.push(col_idx.len());
        }
        let scattered = Pattern::new(n, n, row_ptr, col_idx).unwrap();
        let why = SlicedPattern::find(&Arc::new(scattered)).unwrap_err().to_string();
        assert!(why.contains("neighbouring rows differ"), "{why}");
    }

    fn tridiagonal(n: usize) -> Pattern {
        let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
        for i in 0..n as u32 {
            col_idx.extend((i.saturating_sub(1)..=i + 1).filter(|&j| (j as usize) < n));
            row_ptr.push(col_idx.len());
        }
        Pattern::new(n, n, row_ptr, col_idx).unwrap()
    }

    #[test]
    fn of_several_bad_pivots_the_smallest_row_is_found() {
        let (mut a, pattern) = problem("poisson2d:40");
        for row in [1234, 77, 900] {
            let k = a.pattern().find(row, row).unwrap();
            a.values_mut()[k] = -1.0;
        }
        for threads in [1, 2, 4] {
            let space = Threads::new(threads);
            let mut sliced = Sliced::zeros(&pattern);
            sliced.set(&space, &a).unwrap();
            let mut f = SlicedSymbolic::new(&pattern, Form::CHOLESKY, threads, Schedule::Auto)
                .unwrap()
                .allocate::<f64>();
            let error = f.refactor(&space, &sliced).unwrap_err();
            assert!(
                matches!(error, crate::error::SetupError::BadPivot { row: 77, value } if value < 0.0),
                "{error:?}"
            );
        }
    }
}
