//! Scales of matrices, right-hand sides and initial guesses.

use super::entries::Entries;
use super::rng::{Rng, power_of_two};
use krylith::Csr;
use std::sync::Arc;

/// Numbers that overflow are cut to this size, so that they stay finite.
const LARGEST: f64 = 1e300;

fn kept_finite(value: f64) -> f64 {
    if value.is_finite() { value } else { LARGEST.copysign(value) }
}

/// The matrix with its entries scaled as the axis `scale` says; powers of two, so that exact properties survive.
pub fn scaled(a: &Csr<f64>, scale: &str, rng: &mut Rng) -> Csr<f64> {
    let exponents = |rng: &mut Rng, n: usize, ranges: &[i32]| -> Vec<i32> {
        let range = rng.pick(ranges);
        (0..n).map(|_| rng.between(-range, range)).collect()
    };
    let by_place = |exponent: &dyn Fn(usize, usize) -> i32| {
        changed(a, |i, j, value| {
            // In two steps, since the power alone may be out of range.
            let e = exponent(i, j);
            kept_finite(value * power_of_two(e / 2) * power_of_two(e - e / 2))
        })
    };
    match scale {
        "as-is" => a.clone(),
        "all" => {
            let e = rng.pick(&[-900, -600, -300, -20, 20, 300, 600, 900]);
            by_place(&|_, _| e)
        }
        "rows" => {
            let rows = exponents(rng, a.nrows(), &[20, 100, 300]);
            by_place(&|i, _| rows[i])
        }
        "columns" => {
            let columns = exponents(rng, a.ncols(), &[20, 100, 300]);
            by_place(&|_, j| columns[j])
        }
        "both" => {
            let both = exponents(rng, a.nrows().max(a.ncols()), &[10, 50, 150, 400]);
            by_place(&|i, j| both[i] + both[j])
        }
        "few" => {
            let mut a = a.clone();
            let nnz = a.nnz();
            for _ in 0..if nnz == 0 { 0 } else { 1 + rng.below(3) } {
                let value = &mut a.values_mut()[rng.below(nnz)];
                let e = rng.pick(&[-1000, -500, -60, -30, 30, 60, 500, 1000]);
                *value = kept_finite(*value * power_of_two(e));
            }
            a
        }
        "zeros" => changed(a, |_, _, value| if rng.once_in(4) { rng.pick(&[0.0, -0.0]) } else { value }),
        "wide" => changed(a, |_, _, value| kept_finite(value * power_of_two(rng.between(-1000, 1000)))),
        "not-finite" => with_a_bad_entry(a, rng),
        other => panic!("no scale is called {other}"),
    }
}

/// The matrix with other values.
fn changed(a: &Csr<f64>, mut change: impl FnMut(usize, usize, f64) -> f64) -> Csr<f64> {
    let mut changed = a.clone();
    let pattern = Arc::clone(a.pattern());
    let values = changed.values_mut();
    for i in 0..pattern.nrows() {
        for k in pattern.row_range(i) {
            values[k] = change(i, pattern.col_idx()[k] as usize, values[k]);
        }
    }
    changed
}

fn bad_number(rng: &mut Rng) -> f64 {
    rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
}

fn with_a_bad_entry(a: &Csr<f64>, rng: &mut Rng) -> Csr<f64> {
    let mut a = if a.nnz() == 0 && a.nrows() == a.ncols() {
        let mut entries = Entries::new(a.nrows());
        entries.set(0, 0, 1.0);
        entries.to_csr()
    } else {
        a.clone()
    };
    let k = rng.below(a.nnz());
    if let Some(value) = a.values_mut().get_mut(k) {
        *value = bad_number(rng);
    }
    a
}

/// Another matrix of the same pattern: what comes next in a sequence, of another symmetry or rank now and then. The pattern is shared or a copy.
pub fn successor(a: &Csr<f64>, rng: &mut Rng) -> Csr<f64> {
    let way = rng.below(8);
    let sums: Vec<(f64, f64)> = (0..a.nrows()).map(|i| off_diagonal(a, i)).collect();
    let factor = power_of_two(rng.between(-60, 60));
    let other = changed(a, |i, j, value| {
        kept_if_bad(
            value,
            match way {
                0 => value * (1.0 + 0.1 * rng.signed()),
                1 => value * factor,
                2 if rng.once_in(10) => -value,
                3 if rng.once_in(10) => 0.0,
                4 if i == j => 2.0 * value,
                // No longer symmetric.
                5 if i != j => value * if j > i { 1.9 } else { 0.1 },
                // Regular.
                6 if i == j => sums[i].1 + 1.0,
                // Rows sum up to zero: singular.
                7 if i == j => -sums[i].0,
                _ => value,
            },
        )
    });
    if rng.once_in(2) {
        return other;
    }
    let (pattern, values) = other.into_parts();
    Csr::with_pattern(Arc::new((*pattern).clone()), values).expect("the same pattern")
}

/// The sums of the entries of a row off the diagonal, and of their sizes.
fn off_diagonal(a: &Csr<f64>, i: usize) -> (f64, f64) {
    let (columns, values) = a.row(i);
    let others = columns.iter().zip(values).filter(|&(&j, _)| j as usize != i);
    others.fold((0.0, 0.0), |(sum, size), (_, v)| (sum + v, size + v.abs()))
}

/// The matrix that a preconditioner for A is made from, where it is not A itself.
pub fn stand_in(a: &Csr<f64>, rng: &mut Rng) -> Csr<f64> {
    match rng.below(3) {
        0 => a.transpose(),
        1 => {
            let entries = Entries::from_csr(a);
            let n = entries.n;
            entries.moved(n, |i, j| i.abs_diff(j).le(&1).then_some((i, j))).to_csr()
        }
        _ => successor(a, rng),
    }
}

fn kept_if_bad(value: f64, changed: f64) -> f64 {
    if value.is_finite() { kept_finite(changed) } else { value }
}

/// A v, rounded; entries that overflow are cut.
fn product(a: &Csr<f64>, v: &[f64]) -> Vec<f64> {
    let row = |i: usize| -> f64 {
        let (columns, values) = a.row(i);
        let sum: f64 = columns.iter().zip(values).map(|(&j, value)| value * v[j as usize]).sum();
        if sum.is_nan() { 1.0 } else { kept_finite(sum) }
    };
    (0..a.nrows()).map(row).collect()
}

fn random(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| rng.signed()).collect()
}

/// Numbers of every size from 10⁻³⁰⁰ to 10³⁰⁰, or of a narrower range.
fn mixed(n: usize, rng: &mut Rng) -> Vec<f64> {
    let range = rng.pick(&[60, 500, 990]);
    (0..n).map(|_| rng.signed() * power_of_two(rng.between(-range, range))).collect()
}

/// The right-hand side that the axis `rhs` names.
pub fn rhs(a: &Csr<f64>, kind: &str, rng: &mut Rng) -> Vec<f64> {
    let n = a.nrows();
    let ones = |a: &Csr<f64>| product(a, &vec![1.0; a.ncols()]);
    let plain = |rng: &mut Rng| if rng.once_in(2) { random(n, rng) } else { ones(a) };
    let of_size = |size: f64, rng: &mut Rng| {
        let base = plain(rng);
        let largest = base.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let unit = |v: f64| if largest > 0.0 { v / largest } else { v };
        base.iter().map(|&v| unit(v) * size).collect()
    };
    match kind {
        "ones" => ones(a),
        "range" => {
            let z: Vec<f64> = (0..a.ncols()).map(|_| f64::from(rng.between(-3, 3))).collect();
            product(a, &z)
        }
        "random" => random(n, rng),
        "unit" => {
            let mut b = vec![0.0; n];
            b[rng.below(n)] = 1.0;
            b
        }
        "zero" => vec![0.0; n],
        "huge-200" => of_size(1e200, rng),
        "huge-300" => of_size(1e300, rng),
        "tiny-162" => of_size(1e-162, rng),
        "tiny-200" => of_size(1e-200, rng),
        "tiny-300" => of_size(1e-300, rng),
        "mixed" => mixed(n, rng),
        "not-finite" => spoilt(random(n, rng), rng),
        "wrong-length" => random(wrong_length(n, rng), rng),
        other => panic!("no right-hand side is called {other}"),
    }
}

/// The initial guess that the axis `guess` names.
pub fn guess(n: usize, kind: &str, rng: &mut Rng) -> Vec<f64> {
    match kind {
        "zero" => vec![0.0; n],
        "random" => random(n, rng),
        "ones" => vec![1.0; n],
        "huge" => {
            let size = rng.pick(&[1e10, 1e100, 1e200, 1e300]);
            random(n, rng).iter().map(|v| v * size).collect()
        }
        "mixed" => mixed(n, rng),
        "not-finite" => spoilt(random(n, rng), rng),
        "wrong-length" => random(wrong_length(n, rng), rng),
        other => panic!("no guess is called {other}"),
    }
}

fn spoilt(mut v: Vec<f64>, rng: &mut Rng) -> Vec<f64> {
    let k = rng.below(v.len());
    v[k] = bad_number(rng);
    v
}

fn wrong_length(n: usize, rng: &mut Rng) -> usize {
    if n > 0 && rng.once_in(2) { n - 1 } else { n + 1 + rng.below(3) }
}

#[cfg(test)]
mod tests {
    use super::super::axes::{AXES, Of};
    use super::*;

    fn names(axis: Of) -> impl Iterator<Item = &'static str> {
        AXES[axis as usize].values.iter().map(|&(name, _)| name)
    }

    fn matrix() -> Csr<f64> {
        super::super::families::hostile("sparse", 30, &mut Rng::new(&[1]))
    }

    fn finite(v: &[f64]) -> bool {
        v.iter().all(|v| v.is_finite())
    }

    #[test]
    fn every_scale_keeps_the_pattern_and_all_but_one_stay_finite() {
        let a = matrix();
        for scale in names(Of::Scale) {
            for seed in 0..20 {
                let b = scaled(&a, scale, &mut Rng::new(&[seed]));
                assert_eq!(a.pattern(), b.pattern());
                assert_eq!(finite(b.values()), scale != "not-finite", "{scale}");
            }
        }
    }

    #[test]
    fn every_rhs_and_guess_can_be_made() {
        let a = scaled(&matrix(), "wide", &mut Rng::new(&[2]));
        for kind in names(Of::Rhs) {
            let b = rhs(&a, kind, &mut Rng::new(&[3]));
            assert_eq!(b.len() == a.nrows(), kind != "wrong-length", "{kind}");
            assert_eq!(finite(&b), kind != "not-finite", "{kind}");
        }
        for kind in names(Of::Guess) {
            let x = guess(30, kind, &mut Rng::new(&[3]));
            assert_eq!(x.len() == 30, kind != "wrong-length", "{kind}");
            assert_eq!(finite(&x), kind != "not-finite", "{kind}");
        }
        let largest = |kind: &str| {
            let b = rhs(&matrix(), kind, &mut Rng::new(&[4]));
            b.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
        };
        assert!(largest("huge-200") > 1e199 && largest("tiny-162") < 1e-161 && largest("zero") == 0.0);
    }

    #[test]
    fn successors_have_the_same_pattern_and_mostly_other_values() {
        let a = matrix();
        let others: Vec<Csr<f64>> = (0..20).map(|seed| successor(&a, &mut Rng::new(&[seed]))).collect();
        assert!(others.iter().all(|b| b.pattern() == a.pattern() && finite(b.values())));
        assert!(others.iter().filter(|b| b.values() != a.values()).count() > 15);
        assert!(others.iter().any(|b| !Arc::ptr_eq(a.pattern(), b.pattern())));
    }
}
