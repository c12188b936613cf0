//! Incomplete factors hold what defines them: equality with A on the pattern, sums, diagonals, whatever the fill.

use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::precond::{Incomplete, IncompleteFactor, PreservedSums};
use krylith::schedule::Schedule;
use krylith::space::Threads;
use krylith::{Csr, Permutation};

const SYMMETRIC: [&str; 4] = ["poisson2d:9", "jump3d:5", "hpcg:4", "fem2d:9"];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn factor(recipe: Incomplete, a: &Csr<f64>) -> IncompleteFactor<f64> {
    let space = Threads::new(2);
    recipe.analyze(&space, a).unwrap().factor(&space, a).unwrap()
}

type Dense = Vec<Vec<f64>>;

fn dense(a: &Csr<f64>) -> Dense {
    let mut d = vec![vec![0.0; a.ncols()]; a.nrows()];
    for (i, row) in d.iter_mut().enumerate() {
        for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
            row[j as usize] = v;
        }
    }
    d
}

/// (I + L) D (I + U), and where it has entries of L, D or U.
fn product(f: &IncompleteFactor<f64>) -> (Dense, Vec<Vec<bool>>) {
    let (l, inverse, u) = f.parts();
    let n = inverse.len();
    let (l, u) = (dense(l), dense(u));
    let mut m = vec![vec![0.0; n]; n];
    let one = |x: &Dense, i: usize, j: usize| if i == j { 1.0 } else { x[i][j] };
    for i in 0..n {
        for j in 0..n {
            m[i][j] = (0..=i.min(j)).map(|k| one(&l, i, k) / inverse[k] * one(&u, k, j)).sum();
        }
    }
    let (below, above) = (f.parts().0, f.parts().2);
    let is_kept = |i: usize, j: usize| {
        i == j || below.pattern().find(i, j).is_some() || above.pattern().find(i, j).is_some()
    };
    (m, (0..n).map(|i| (0..n).map(|j| is_kept(i, j)).collect()).collect())
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "{what}: {found}, not {expected}");
}

/// Plain factors equal A on their pattern.
#[test]
fn factors_equal_the_matrix_on_their_pattern() {
    let symmetric = SYMMETRIC.iter().flat_map(|&name| [0, 1, 2, 5].map(|k| (name, Incomplete::ic(k))));
    let general = ["convection3d:5", "circuit:6", "fem2d:9"]
        .iter()
        .flat_map(|&name| [0, 1, 3].map(|k| (name, Incomplete::ilu(k))));
    for (name, recipe) in symmetric.chain(general) {
        let a = problem(name);
        let (m, kept) = product(&factor(recipe, &a));
        let a = dense(&a);
        for i in 0..m.len() {
            for j in (0..m.len()).filter(|&j| kept[i][j]) {
                close(m[i][j], a[i][j], &format!("{name} {recipe:?} at ({i}, {j})"));
            }
        }
    }
}

/// With fill at any distance nothing is dropped.
#[test]
fn enough_fill_is_the_whole_factor() {
    for name in SYMMETRIC {
        let a = problem(name);
        let space = Threads::new(2);
        let f = factor(Incomplete::ic(a.nrows()), &a);
        let x: Vec<f64> = (0..a.nrows()).map(|i| (i as f64).sin()).collect();
        let (mut b, mut z) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        a.mul_vec(&x, &mut b).unwrap();
        f.apply(&space, &b, &mut z, &mut f.scratch(&space).unwrap()).unwrap();
        for (z, x) in z.iter().zip(&x) {
            assert!((z - x).abs() < 1e-9, "{name}: {z} {x}");
        }
    }
}

/// ω = 1 keeps sums, of rows or of columns, not those of a scaled matrix; ω = 0 is the plain factor.
#[test]
fn modified_factors_keep_sums() {
    for (name, level) in
        [("poisson2d:9", 0), ("jump3d:5", 0), ("jump3d:5", 1), ("convection3d:5", 0), ("convection3d:5", 1)]
    {
        let mut a = problem(name);
        let symmetric = a.view().symmetry().symmetric;
        // Rows and columns of different sizes, the matrix not of unit diagonal.
        let scale = |i: usize| 3.0 + 0.05 * (i % 7) as f64;
        let pattern = a.pattern().clone();
        for i in 0..pattern.nrows() {
            for k in pattern.row_range(i) {
                a.values_mut()[k] *= scale(i) * scale(pattern.col_idx()[k] as usize);
            }
        }
        let d = dense(&a);
        for sums in [PreservedSums::Rows, PreservedSums::Columns] {
            let recipe =
                if symmetric { Incomplete::mic(level, 1.0) } else { Incomplete::milu(level, 1.0, sums) };
            let (m, _) = product(&factor(recipe, &a));
            for i in 0..m.len() {
                let sum = |x: &Dense| -> (f64, f64) {
                    let entry = |j: usize| if sums == PreservedSums::Rows { x[i][j] } else { x[j][i] };
                    (0..x.len()).map(entry).fold((0.0, 0.0), |(s, t), v| (s + v, t + v.abs()))
                };
                let ((found, _), (expected, size)) = (sum(&m), sum(&d));
                assert!((found - expected).abs() <= 1e-12 * size, "{name} {sums:?} {i}: {found} {expected}");
            }
            let plain = if symmetric { Incomplete::ic(level) } else { Incomplete::ilu(level) };
            let relaxed =
                if symmetric { Incomplete::mic(level, 0.0) } else { Incomplete::milu(level, 0.0, sums) };
            let (plain, relaxed) = (factor(plain, &a), factor(relaxed, &a));
            for (p, r) in plain.parts().1.iter().zip(relaxed.parts().1) {
                assert!((p - r).abs() <= 1e-12 * p.abs());
            }
        }
    }
}

/// M = (D + L) D⁻¹ (D + U) with the triangles of A, and the diagonal of A.
#[test]
fn diagonal_factors_have_the_triangles_of_the_matrix() {
    for (name, recipe) in [
        ("poisson2d:9", Incomplete::dic()),
        ("hpcg:4", Incomplete::dic()),
        ("convection3d:5", Incomplete::dilu()),
    ] {
        let a = problem(name);
        let f = factor(recipe, &a);
        let (l, inverse, u) = f.parts();
        let (m, _) = product(&f);
        for i in 0..a.nrows() {
            close(m[i][i], a.get(i, i), name);
            for (&j, &v) in l.row(i).0.iter().zip(l.row(i).1) {
                close(v / inverse[j as usize], a.get(i, j as usize), name);
            }
            for (&j, &v) in u.row(i).0.iter().zip(u.row(i).1) {
                close(v / inverse[i], a.get(i, j as usize), name);
            }
        }
    }
}

/// By hand: a triangle of three vertices and a fourth; MIC(0) of
/// [4 −1 −1 0; −1 4 0 −1; −1 0 4 −1; 0 −1 −1 4]. Eliminating row 1 makes the entry (3, 2) of −1/4, dropped: it is subtracted
/// from d₂ = 4 − 1/4 and from d₃ = 4 − 1/4.
#[test]
fn modified_by_hand() {
    let (rows, columns) = ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3]);
    let values = [4.0, -1.0, -1.0, -1.0, 4.0, -1.0, -1.0, 4.0, -1.0, -1.0, -1.0, 4.0];
    let a = Csr::from_triplets(4, 4, &rows, &columns, &values).unwrap();
    let pivots = |recipe| factor(recipe, &a).parts().1.iter().map(|d| 1.0 / d).collect::<Vec<f64>>();
    let ic = pivots(Incomplete::ic(0));
    let mic = pivots(Incomplete::mic(0, 1.0));
    let last = |d: f64| 4.0 - 2.0 / d;
    for (found, expected) in
        ic.iter().chain(&mic).zip([4.0, 3.75, 3.75, last(3.75), 4.0, 3.5, 3.5, last(3.5)])
    {
        close(*found, expected, "pivot");
    }
}

/// Any plan and number of threads gives the same bits, narrow or wide, with fill, shifted or modified.
#[test]
fn every_member_has_the_same_bits_on_any_number_of_threads() {
    let spd = problem("jump3d:7");
    let general = problem("convection3d:7");
    let members = [
        (Incomplete::ic(2), &spd),
        (Incomplete::mic(1, 0.95), &spd),
        (Incomplete::dic(), &spd),
        (Incomplete::ilu(2), &general),
        (Incomplete::milu(0, 1.0, PreservedSums::Rows), &general),
        (Incomplete::milu(1, 1.0, PreservedSums::Columns), &general),
        (Incomplete::dilu(), &general),
    ];
    for (recipe, a) in members {
        let x: Vec<f64> = (0..a.nrows()).map(|i| (i as f64).cos()).collect();
        let mut bits: Option<Vec<f64>> = None;
        for threads in [1, 2, 3, 8] {
            for schedule in [Schedule::Levels, Schedule::PointToPoint] {
                let space = Threads::new(threads);
                let mut f = recipe.schedule(schedule).analyze(&space, a).unwrap().factor(&space, a).unwrap();
                assert!(f.set_shift(0.01));
                f.refactor(&space, a).unwrap();
                let mut z = vec![f64::NAN; x.len()];
                f.apply(&space, &x, &mut z, &mut f.scratch(&space).unwrap()).unwrap();
                assert_eq!(*bits.get_or_insert_with(|| z.clone()), z, "{recipe:?} {threads} {schedule:?}");
            }
        }
    }
}

/// A shifted Cholesky factor is that of the shifted matrix, and of its scaled form.
#[test]
fn a_shift_is_relative_to_the_diagonal() {
    let a = problem("jump3d:5");
    let space = Threads::new(2);
    let mut f = factor(Incomplete::ic(0), &a);
    f.set_shift(0.25);
    f.refactor(&space, &a).unwrap();
    let mut shifted = a.clone();
    for i in 0..a.nrows() {
        let k = a.pattern().find(i, i).unwrap();
        shifted.values_mut()[k] *= 1.25;
    }
    let expected = factor(Incomplete::ic(0), &shifted);
    assert_eq!(f.parts().0, expected.parts().0);
    assert_eq!(f.parts().1, expected.parts().1);
}

/// Levels depend on the order of rows: the same grid numbered backwards has the same count by symmetry.
#[test]
fn fill_of_a_reversed_grid_is_the_same() {
    let a = problem("poisson2d:12");
    let n = a.nrows() as u32;
    let backwards = Permutation::new((0..n).rev().collect()).unwrap();
    let reversed = a.view().permute_symmetric(&backwards).unwrap();
    for k in 0..4 {
        assert_eq!(factor(Incomplete::ic(k), &a).nnz(), factor(Incomplete::ic(k), &reversed).nnz());
    }
}

/// Triangles from elsewhere are checked before they are relied on.
#[test]
fn frozen_triangles_are_checked() {
    use krylith::precond::Form;
    use krylith::precond::threshold::{IctOptions, Triangles, ict};
    let a = problem("poisson2d:5");
    let good = ict(a.view(), &IctOptions { tau: 0.01, p: None, shift: 0.0, max_bytes: u64::MAX }).unwrap();
    let frozen = |form: Form, t: Triangles<f64>| {
        IncompleteFactor::<f64>::frozen(form, a.pattern(), t, 2, Schedule::Auto).map(|_| ())
    };
    assert!(frozen(Form::CHOLESKY, good.clone()).is_ok());
    let short = Triangles { inverse: vec![1.0; 3], ..good.clone() };
    assert!(frozen(Form::LU, short).unwrap_err().to_string().contains("length 3"));
    let whole = Triangles { lower: a.clone(), ..good.clone() };
    assert!(frozen(Form::LU, whole).unwrap_err().to_string().contains("strict lower"));
    let crossed = Triangles { upper: good.lower.clone(), ..good.clone() };
    assert!(frozen(Form::LU, crossed).is_err());
    let other = problem("poisson2d:6");
    let larger =
        ict(other.view(), &IctOptions { tau: 0.01, p: None, shift: 0.0, max_bytes: u64::MAX }).unwrap();
    assert!(frozen(Form::LU, larger).is_err());
}
