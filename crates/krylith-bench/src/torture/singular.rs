//! Small singular and nearly singular matrices of 2 to 6 rows.
//!
//! Four families are made of small integers and exactly singular; four are singular up to perturbations of 10⁻¹⁶ to 10⁻⁶.

use super::entries::Entries;
use super::rng::{Rng, power_of_two};
use krylith::Csr;

type Dense = Vec<Vec<f64>>;

/// A matrix of a singular or nearly singular family.
pub fn singular(family: &str, rng: &mut Rng) -> Csr<f64> {
    let n = 2 + rng.below(5);
    let dense = match family {
        "outer-product" | "outer-square" | "equal-rows" | "equal-columns" => exactly(family, n, rng),
        "perturbed" => perturbed(n, rng),
        "nearly-equal" => nearly_equal(n, rng),
        "graded" => graded(n, rng),
        "shifted-laplacian" => shifted_laplacian(n, rng),
        other => panic!("no singular family is called {other}"),
    };
    let zeros = rng.once_in(2);
    let mut entries = Entries::new(n);
    for (i, row) in dense.iter().enumerate() {
        for (j, &value) in row.iter().enumerate() {
            if zeros || value != 0.0 {
                entries.set(i, j, value);
            }
        }
    }
    entries.to_csr()
}

fn integers(n: usize, rng: &mut Rng) -> Vec<f64> {
    let most = rng.pick(&[1, 3, 3, 100]);
    (0..n).map(|_| f64::from(rng.between(-most, most))).collect()
}

/// Integers, of rank n − 1 at most.
fn exactly(family: &str, n: usize, rng: &mut Rng) -> Dense {
    match family {
        "outer-product" | "outer-square" => {
            let rank = 1 + rng.below(n - 1);
            let sign = rng.pick(&[1.0, 1.0, 1.0, -1.0]);
            let mut a = vec![vec![0.0; n]; n];
            for _ in 0..rank {
                let u = integers(n, rng);
                let v = if family == "outer-square" { u.clone() } else { integers(n, rng) };
                for i in 0..n {
                    for j in 0..n {
                        a[i][j] += sign * u[i] * v[j];
                    }
                }
            }
            a
        }
        _ => {
            let mut a: Dense = (0..n).map(|_| integers(n, rng)).collect();
            let (from, step) = (rng.below(n), 1 + rng.below(n - 1));
            let (to, factor) = ((from + step) % n, rng.pick(&[1.0, 1.0, -1.0, 2.0, -4.0]));
            a[to] = a[from].iter().map(|v| factor * v).collect();
            if family == "equal-columns" {
                a = (0..n).map(|i| (0..n).map(|j| a[j][i]).collect()).collect();
            }
            a
        }
    }
}

/// A perturbation of 10⁻¹⁶ to 10⁻⁸, as a power of two or not.
fn small(rng: &mut Rng) -> f64 {
    rng.signed() * power_of_two(rng.between(-54, -26))
}

/// An exactly singular matrix with one entry or all of them perturbed, or scaled by numbers that round.
fn perturbed(n: usize, rng: &mut Rng) -> Dense {
    let family = rng.pick(&["outer-product", "outer-square", "equal-rows", "equal-columns"]);
    let mut a = exactly(family, n, rng);
    match rng.below(4) {
        0 => {
            let (i, j) = (rng.below(n), rng.below(n));
            a[i][j] += small(rng) * a[i][j].abs().max(1.0);
        }
        1 => {
            // Symmetric matrices stay so.
            for i in 0..n {
                for j in i..n {
                    let factor = 1.0 + small(rng);
                    a[i][j] *= factor;
                    if i != j {
                        a[j][i] *= factor;
                    }
                }
            }
        }
        2 => {
            let scale: Vec<f64> = (0..n).map(|_| rng.signed()).collect();
            (0..n).for_each(|i| (0..n).for_each(|j| a[i][j] = a[i][j] * scale[i] * scale[j]));
        }
        _ => {
            let shift = small(rng);
            (0..n).for_each(|i| a[i][i] += shift);
        }
    }
    a
}

/// Two rows, or all, are equal up to a perturbation; entries near 1.
fn nearly_equal(n: usize, rng: &mut Rng) -> Dense {
    let row: Vec<f64> = match rng.below(3) {
        0 => vec![1.0; n],
        1 => (0..n).map(|_| rng.signed()).collect(),
        _ => integers(n, rng).iter().map(|v| v / 3.0).collect(),
    };
    let all = rng.once_in(2);
    let mut a: Dense = (0..n).map(|_| row.clone()).collect();
    for (i, own) in a.iter_mut().enumerate().skip(1) {
        match all || i == 1 {
            true => own[i] += small(rng),
            false => own.iter_mut().for_each(|v| *v = rng.signed()),
        }
    }
    a
}

/// The Laplacian of a graph plus 2⁻ᵏ I, k from 20 to 53: from nearly singular to singular, since 1 + 2⁻⁵³ is 1. Where b is constant, so is the exact
/// answer, and it is an `f64`.
fn shifted_laplacian(n: usize, rng: &mut Rng) -> Dense {
    let mut a = vec![vec![0.0; n]; n];
    let weight = rng.pick(&[1.0, 1.0, 2.0, 0.75]);
    let mut join = |i: usize, j: usize| {
        if i != j && a[i][j] == 0.0 {
            (a[i][j], a[j][i]) = (-weight, -weight);
            (a[i][i], a[j][j]) = (a[i][i] + weight, a[j][j] + weight);
        }
    };
    match rng.below(3) {
        0 => (1..n).for_each(|i| join(i - 1, i)),
        1 => (0..n).for_each(|i| join(i, (i + 1) % n)),
        _ => (1..n).for_each(|i| (0..i).for_each(|j| join(i, j))),
    }
    let shift = power_of_two(-rng.between(20, 53));
    (0..n).for_each(|i| a[i][i] += shift);
    a
}

/// Hilbert matrices, ones above the diagonal of a triangle, and diagonals that fall to nothing, rotated.
fn graded(n: usize, rng: &mut Rng) -> Dense {
    let places = |value: &dyn Fn(usize, usize) -> f64| -> Dense {
        (0..n).map(|i| (0..n).map(|j| value(i, j)).collect()).collect()
    };
    match rng.below(3) {
        0 => places(&|i, j| 1.0 / (i + j + 1) as f64),
        1 => {
            let ratio = power_of_two(-rng.between(1, 20));
            places(&|i, j| {
                if i == j {
                    ratio.powi(i as i32)
                } else if j > i {
                    -ratio.powi(i as i32)
                } else {
                    0.0
                }
            })
        }
        _ => {
            // D − 2 (v vᵀD + D v vᵀ) + 4 v vᵀ(vᵀD v): a reflection on both sides, v of norm 1 up to rounding.
            let v: Vec<f64> = (0..n).map(|_| rng.signed()).collect();
            let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let v: Vec<f64> = v.iter().map(|x| x / norm).collect();
            let step = rng.between(5, 30);
            let d: Vec<f64> = (0..n as i32).map(|k| power_of_two(-step * k)).collect();
            let inner: f64 = v.iter().zip(&d).map(|(v, d)| v * v * d).sum();
            places(&|i, j| {
                let own = if i == j { d[i] } else { 0.0 };
                own - 2.0 * v[i] * v[j] * (d[i] + d[j]) + 4.0 * v[i] * v[j] * inner
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The determinant of integers, by elimination without fractions (Bareiss 1968).
    fn determinant(a: &Csr<f64>) -> i128 {
        let n = a.nrows();
        let mut m: Vec<Vec<i128>> = (0..n).map(|i| (0..n).map(|j| a.get(i, j) as i128).collect()).collect();
        let (mut before, mut sign) = (1, 1);
        for k in 0..n - 1 {
            let Some(pivot) = (k..n).find(|&i| m[i][k] != 0) else { return 0 };
            if pivot != k {
                m.swap(pivot, k);
                sign = -sign;
            }
            for i in k + 1..n {
                for j in k + 1..n {
                    m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) / before;
                }
            }
            before = m[k][k];
        }
        sign * m[n - 1][n - 1]
    }

    #[test]
    fn determinants_by_hand() {
        let of = |values: [f64; 9]| {
            let columns = vec![0, 1, 2, 0, 1, 2, 0, 1, 2];
            determinant(&Csr::new(3, 3, vec![0, 3, 6, 9], columns, values.to_vec()).unwrap())
        };
        assert_eq!(of([0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 3.0, 0.0, 2.0]), -7);
        assert_eq!(of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), 0);
    }

    #[test]
    fn integer_families_are_exactly_singular() {
        for family in ["outer-product", "outer-square", "equal-rows", "equal-columns"] {
            for seed in 0..2_000 {
                let a = singular(family, &mut Rng::new(&[seed]));
                assert!((2..=6).contains(&a.nrows()));
                assert!(a.values().iter().all(|v| v.fract() == 0.0 && v.abs() < 1e6), "{family} {seed}");
                assert_eq!(determinant(&a), 0, "{family} {seed}: {a:?}");
            }
        }
    }

    #[test]
    fn perturbed_families_are_mostly_regular_and_finite() {
        for family in ["perturbed", "nearly-equal", "graded", "shifted-laplacian"] {
            for seed in 0..500 {
                let a = singular(family, &mut Rng::new(&[seed]));
                assert!(a.values().iter().all(|v| v.is_finite()), "{family} {seed}");
            }
        }
        // (1 1; 1 1+δ): the determinant is δ, which is not zero.
        let regular = (0..500).filter(|&seed| {
            let a = singular("nearly-equal", &mut Rng::new(&[seed]));
            a.nrows() == 2 && a.get(0, 0) == 1.0 && a.get(1, 1) != 1.0
        });
        assert!(regular.count() > 10);
    }
}
