//! Hand-computed factors, exact factors, quotas, repairs and limits.

use super::{IctOptions, IlutOptions, Repairs, Rule, Triangles, ict, ilut};
use crate::error::{MatrixError, SetupError};
use crate::gallery::Problem;
use crate::{Csr, Real};

const RULES: [Rule; 3] = [
    Rule::Mkl { maxfil: usize::MAX },
    Rule::Saad { p: usize::MAX },
    Rule::FillFactor { factor: f64::INFINITY },
];

/// From rows; zeros are not stored.
fn sparse<const N: usize>(rows: [[f64; N]; N]) -> Csr<f64> {
    let stored = |i: usize| (0..N).filter(move |&j| rows[i][j] != 0.0);
    Csr::from_rows(
        N,
        N,
        |i| stored(i).count(),
        |i, columns, values| {
            for (k, j) in stored(i).enumerate() {
                (columns[k], values[k]) = (j as u32, rows[i][j]);
            }
        },
    )
    .unwrap()
}

fn generated(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// Entries between −1 and 1 by a hash of their place, about a third of them; some diagonals small or absent.
fn scattered(n: usize, seed: u64) -> Csr<f64> {
    let hash = |i: usize, j: usize| {
        let mut h = seed ^ ((i * n + j) as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h = (h ^ (h >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        h ^ (h >> 29)
    };
    let stored = move |i: usize| (0..n).filter(move |&j| hash(i, j) % 3 == 0);
    Csr::from_rows(
        n,
        n,
        |i| stored(i).count(),
        |i, columns, values| {
            for (k, j) in stored(i).enumerate() {
                (columns[k], values[k]) = (j as u32, (hash(i, j) >> 12) as f64 / (1u64 << 51) as f64 - 1.0);
            }
        },
    )
    .unwrap()
}

fn options(rule: Rule, tau: f64) -> IlutOptions {
    IlutOptions { rule, tau, permtol: None, max_bytes: u64::MAX }
}

fn spd(tau: f64, p: Option<usize>, shift: f64) -> IctOptions {
    IctOptions { tau, p, shift, max_bytes: u64::MAX }
}

/// L, D and D U in one matrix, zeros elsewhere.
fn dense<T: Real>(m: &Triangles<T>) -> Vec<Vec<f64>> {
    let n = m.inverse.len();
    let mut rows = vec![vec![0.0; n]; n];
    for i in 0..n {
        let d = 1.0 / m.inverse[i].to_f64();
        rows[i][i] = d;
        let ((l_columns, l), (u_columns, u)) = (m.lower.row(i), m.upper.row(i));
        l_columns.iter().zip(l).for_each(|(&j, v)| rows[i][j as usize] = v.to_f64());
        u_columns.iter().zip(u).for_each(|(&j, v)| rows[i][j as usize] = v.to_f64() * d);
    }
    rows
}

/// max |M − A Q| relative to max |L| |D U|, which bounds the rounding.
fn distance(m: &Triangles<f64>, a: &Csr<f64>) -> f64 {
    let (lu, n) = (dense(m), a.nrows());
    let (mut worst, mut scale): (f64, f64) = (0.0, 0.0);
    for i in 0..n {
        for j in 0..n {
            let column = m.columns.as_ref().map_or(j, |q| q.old()[j] as usize);
            let (mut sum, mut sizes) = (0.0, 0.0);
            for k in 0..=i.min(j) {
                let l = if k == i { 1.0 } else { lu[i][k] };
                sum += l * lu[k][j];
                sizes += (l * lu[k][j]).abs();
            }
            worst = worst.max((sum - a.get(i, column)).abs());
            scale = scale.max(sizes);
        }
    }
    worst / scale
}

fn assert_close(found: &[Vec<f64>], expected: &[&[f64]]) {
    for (found, expected) in found.iter().zip(expected) {
        for (f, e) in found.iter().zip(*expected) {
            assert!((f - e).abs() <= 1e-14 * e.abs(), "{found:?} {expected:?}");
        }
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn what_mkl_computes() {
    // Written down from dcsrilut, tol = 0.02, maxfil = 3.
    let a = sparse([
        [8.0, -1.0, 2.0, 0.0, 3.0, 0.0],
        [4.0, 9.0, 0.0, -1.5, 2.0, 1.0],
        [-3.0, 0.0, 7.0, 1.0, 0.0, -2.0],
        [1.0, 2.0, 0.0, 6.0, -1.0, 0.5],
        [0.0, -4.0, 1.0, 0.0, 10.0, 3.0],
        [2.0, 0.5, -1.0, 5.0, 0.0, 11.0],
    ]);
    let m = ilut(a.view(), &options(Rule::Mkl { maxfil: 3 }, 0.02)).unwrap();
    let expected: [&[f64]; 6] = [
        &[8.0, -1.0, 2.0, 0.0, 3.0, 0.0],
        &[0.5, 9.5, -1.0, -1.5, 0.0, 1.0],
        &[-0.375, 0.0, 7.75, 1.0, 1.125, -2.0],
        &[0.125, 0.2236842105263158, 0.0, 6.3355263157894735, -1.375, 0.2763157894736842],
        &[0.0, -0.42105263157894735, 0.0, 0.0, 10.0, 3.4210526315789473],
        &[0.25, 0.0, -0.1935483870967742, 0.8197501088667806, 0.0, 10.38639332730379],
    ];
    assert_close(&dense(&m), &expected);
}

#[test]
fn three_rules_drop_differently() {
    let a = sparse([[4.0, 0.1, 1.0], [1.0, 4.0, 0.0], [0.4, 2.0, 8.0]]);
    // Mkl, τ = 0.05: 0.1 ≤ τ √(17.01/3); l₂₀ = 0.1 ≤ τ √(68.16/3).
    let m = ilut(a.view(), &options(Rule::Mkl { maxfil: 3 }, 0.05)).unwrap();
    let dropped: [&[f64]; 3] = [&[4.0, 0.0, 1.0], &[0.25, 4.0, -0.25], &[0.0, 0.5, 8.125]];
    assert_close(&dense(&m), &dropped);
    // Saad: 0.1 > τ 5.1/3; l₂₀ = 0.1 > τ.
    let m = ilut(a.view(), &options(Rule::Saad { p: 3 }, 0.05)).unwrap();
    let l = 1.99 / 3.975;
    let kept: [&[f64]; 3] = [&[4.0, 0.1, 1.0], &[0.25, 3.975, -0.25], &[0.1, l, 7.9 + 0.25 * l]];
    assert_close(&dense(&m), &kept);
    // FillFactor: 0.1 ≤ τ 4; w₂₀ = 0.4 ≤ τ 8.
    let m = ilut(a.view(), &options(Rule::FillFactor { factor: 10.0 }, 0.05)).unwrap();
    assert_close(&dense(&m), &dropped);
}

#[test]
fn small_fill_is_not_begun_by_mkl_and_gathered_by_saad() {
    let a = sparse([[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.5], [0.3, 0.3, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);
    let mkl = ilut(a.view(), &options(Rule::Mkl { maxfil: 4 }, 0.15)).unwrap();
    assert_eq!((mkl.lower.row(2).1, mkl.upper.row(2).0), (&[0.3, 0.3][..], &[][..]));
    let saad = ilut(a.view(), &options(Rule::Saad { p: 4 }, 0.15)).unwrap();
    assert_eq!(saad.upper.row(2), (&[3][..], &[-0.15][..]));
}

#[test]
fn the_largest_are_kept() {
    let a =
        sparse([[9.0, 1.0, 3.0, -2.0], [0.0, 9.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0], [-3.0, 2.0, 3.0, 9.0]]);
    let m = ilut(a.view(), &options(Rule::Saad { p: 2 }, 0.0)).unwrap();
    assert_eq!(m.upper.row(0), (&[2, 3][..], &[3.0 * (1.0 / 9.0), -2.0 * (1.0 / 9.0)][..]));
    // l₃ₖ = −1/3, 2/9, 3/9 + 1/9.
    assert_eq!(m.lower.row(3).0, [0, 2]);
    let none = ilut(a.view(), &options(Rule::Mkl { maxfil: 0 }, 0.0)).unwrap();
    assert_eq!((none.lower.nnz(), none.upper.nnz(), none.nnz()), (0, 0, 4));
}

#[test]
fn nothing_dropped_is_lu() {
    for name in ["convection3d:5", "jump3d:4", "circuit:8", "atmosmod:4"] {
        let a = generated(name);
        for rule in RULES {
            for permtol in [None, Some(0.0), Some(0.5), Some(1.0)] {
                let m = ilut(a.view(), &IlutOptions { permtol, ..options(rule, 0.0) }).unwrap();
                assert_eq!(m.repairs, Repairs::default());
                assert_eq!(m.columns.is_some(), permtol.is_some());
                let d = distance(&m, &a);
                assert!(d < 1e-14, "{name} {rule:?} {permtol:?}: {d:e}");
            }
        }
    }
}

#[test]
fn pivots_obey_their_tolerance() {
    for seed in 0..20 {
        let a = scattered(30, seed);
        for permtol in [0.1, 0.5, 1.0] {
            for (rule, tau) in [(RULES[0], 0.0), (RULES[1], 0.05), (Rule::FillFactor { factor: 1.5 }, 0.01)] {
                let m =
                    ilut(a.view(), &IlutOptions { permtol: Some(permtol), ..options(rule, tau) }).unwrap();
                assert_eq!(m.repairs.count, 0);
                let largest = m.upper.values().iter().fold(0.0f64, |l, u| l.max(u.abs()));
                assert!(largest * permtol <= 1.0 + 1e-15, "{seed} {permtol} {rule:?}: {largest}");
                if tau == 0.0 {
                    assert!(distance(&m, &a) < 1e-13, "{seed} {permtol}");
                }
            }
        }
    }
}

#[test]
fn columns_change_places() {
    // Row 0 takes column 1 (3 > 1); row 1 has then 2 − 1/3 · 0 at column 0 and 4 at column 2, which it takes.
    let a = sparse([[1.0, 3.0, 0.0], [2.0, 0.0, 4.0], [1.0, 1.0, 1.0]]);
    let m = ilut(a.view(), &IlutOptions { permtol: Some(1.0), ..options(RULES[1], 0.0) }).unwrap();
    assert_eq!(m.columns.as_ref().unwrap().old(), [1, 2, 0]);
    let (third, sixth) = (1.0 / 3.0, 1.0 - 1.0 / 3.0 - 0.5);
    assert_close(&dense(&m), &[&[3.0, 0.0, 1.0], &[0.0, 4.0, 2.0], &[third, 0.25, sixth]]);
    // 3 · 0.3 does not exceed 1.
    let m = ilut(a.view(), &IlutOptions { permtol: Some(0.3), ..options(RULES[1], 0.0) }).unwrap();
    assert_eq!(m.columns.unwrap().old(), [0, 1, 2]);
    // Of equal ones the first.
    let a = sparse([[0.0, 0.0, 2.0, -2.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);
    let m = ilut(a.view(), &IlutOptions { permtol: Some(0.1), ..options(RULES[0], 0.0) }).unwrap();
    assert_eq!(m.columns.unwrap().old(), [2, 1, 0, 3]);
}

#[test]
fn the_fill_factor_bounds_all_entries() {
    let a = generated("poisson3d:10");
    let full = ilut(a.view(), &options(RULES[2], 0.0)).unwrap().nnz();
    let mut before = 0;
    for factor in [0.0, 1.0, 1.5, 10.0, 20.0, 30.0, 40.0] {
        let m = ilut(a.view(), &options(Rule::FillFactor { factor }, 0.0)).unwrap();
        let allowed = ((factor * a.nnz() as f64) as usize).max(a.nrows());
        assert!(m.nnz() <= allowed && m.nnz() >= before, "{factor}: {} of {allowed}", m.nnz());
        // What may be used is used: this matrix could fill more.
        assert!(m.nnz() * 100 >= allowed.min(full) * 95, "{factor}: {} of {allowed}", m.nnz());
        assert_eq!(m.repairs.count, 0);
        before = m.nnz();
    }
}

#[test]
fn bad_pivots_are_replaced_and_noted() {
    let a = sparse([[0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let m = ilut(a.view(), &options(Rule::Saad { p: 3 }, 0.1)).unwrap();
    assert_eq!(m.repairs, Repairs { count: 1, first: Some((0, 0.0)) });
    assert_eq!(m.inverse[0], 1.0 / ((1e-4 + 0.1) * 2.0));
    // MKL's: −0.01 ≤ 0.1 √(0.5), whatever its sign; row 2 likewise.
    let a = sparse([[-0.01, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 4.0, 0.1]]);
    let m = ilut(a.view(), &options(Rule::Mkl { maxfil: 3 }, 0.1)).unwrap();
    assert_eq!(m.repairs, Repairs { count: 2, first: Some((0, -0.01)) });
    assert_eq!(m.inverse[0], 1.0 / ((1e-4 + 0.1) * (1.0001f64 / 2.0).sqrt()));
    assert_eq!(ilut(a.view(), &options(Rule::Saad { p: 3 }, 0.1)).unwrap().repairs.count, 0);
}

#[test]
fn what_cannot_be_a_number_names_its_row() {
    let row = |rows, rule, tau| match ilut(sparse(rows).view(), &options(rule, tau)) {
        Err(SetupError::BadPivot { row, .. }) => row,
        other => panic!("{other:?}"),
    };
    for rule in RULES {
        assert_eq!(row([[1.0, 0.0], [0.0, 0.0]], rule, 0.1), 1, "a row of zeros");
        assert_eq!(row([[1.0, 0.0], [f64::NAN, 1.0]], rule, 0.1), 1);
        assert_eq!(row([[1.0, f64::INFINITY], [0.0, 1.0]], rule, 0.1), 0);
        assert_eq!(row([[1e-300, 1e10], [0.0, 1.0]], rule, 0.0), 0, "1e10 / 1e-300");
        assert_eq!(row([[1e-200, 0.0], [1e200, 1.0]], rule, 0.0), 1, "1e200 / 1e-200");
        assert_eq!(row([[1.0, 1e200], [1e200, 1.0]], rule, 0.0), 1, "1 − 1e400");
        let m = ilut(generated("poisson2d:5").view(), &options(rule, f64::NAN)).unwrap();
        assert_eq!(m, ilut(generated("poisson2d:5").view(), &options(rule, -1.0)).unwrap());
    }
    // Nothing exceeds an infinite tolerance: the diagonal is left, and by MKL's rule is small as well.
    assert_eq!(row([[1.0, 0.5], [0.5, 1.0]], RULES[0], f64::INFINITY), 0);
    for rule in &RULES[1..] {
        assert_eq!(ilut(generated("poisson2d:5").view(), &options(*rule, f64::INFINITY)).unwrap().nnz(), 25);
    }
    let wide = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
    let square = SetupError::Matrix(MatrixError::NotSquare { nrows: 1, ncols: 2 });
    assert_eq!(ilut(wide.view(), &options(RULES[0], 0.0)), Err(square.clone()));
    assert_eq!(ict(wide.view(), &spd(0.0, None, 0.0)), Err(square));
}

#[test]
fn no_rows_are_a_factor() {
    let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    for rule in RULES {
        assert_eq!(ilut(empty.view(), &options(rule, 0.1)).unwrap().nnz(), 0);
    }
    assert_eq!(Rule::nvidia(empty.view(), 5), Rule::Mkl { maxfil: 5 });
    assert_eq!(ict(empty.view(), &spd(0.1, None, 0.0)).unwrap().nnz(), 0);
}

#[test]
fn bytes_are_counted_exactly() {
    let a = generated("convection3d:6");
    for permtol in [None, Some(0.1)] {
        let free = IlutOptions { permtol, ..options(Rule::nvidia(a.view(), 5), 1e-3) };
        let m = ilut(a.view(), &free).unwrap();
        let bytes = m.bytes() as u64;
        assert_eq!(ilut(a.view(), &IlutOptions { max_bytes: bytes, ..free }).unwrap(), m);
        let limit = bytes - 1;
        let error = ilut(a.view(), &IlutOptions { max_bytes: limit, ..free }).unwrap_err();
        assert_eq!(error, SetupError::MemoryLimit { predicted: bytes, limit });
        let size = format!("{:.2} kB", bytes as f64 / 1e3);
        assert!(error.to_string().starts_with(&size), "{error}");
        let none = ilut(a.view(), &IlutOptions { max_bytes: 0, ..free });
        assert!(matches!(none, Err(SetupError::MemoryLimit { limit: 0, .. })));
    }
    let (a, free) = (generated("poisson2d:8"), spd(1e-2, None, 0.0));
    let bytes = ict(a.view(), &free).unwrap().bytes() as u64;
    assert!(ict(a.view(), &IctOptions { max_bytes: bytes, ..free }).is_ok());
    let limited = ict(a.view(), &IctOptions { max_bytes: bytes - 1, ..free });
    assert!(matches!(limited, Err(SetupError::MemoryLimit { predicted, .. }) if predicted >= bytes));
}

#[test]
fn single_precision_is_near() {
    let a = generated("jump3d:6");
    let rule = Rule::nvidia(a.view(), 5);
    let wide = dense(&ilut(a.view(), &options(rule, 0.0)).unwrap());
    let narrow = dense(&ilut(a.cast::<f32>().view(), &options(rule, 0.0)).unwrap());
    let diagonal = |m: &[Vec<f64>]| m.iter().enumerate().map(|(i, row)| row[i]).collect::<Vec<_>>();
    for (w, n) in diagonal(&wide).iter().zip(diagonal(&narrow)) {
        assert!((w - n).abs() <= 1e-4 * w.abs(), "{w} {n}");
    }
}

#[test]
fn cholesky_by_hand() {
    let a = sparse([[4.0, 2.0, -1.0], [2.0, 4.0, 0.0], [-1.0, 0.0, 3.0]]);
    let m = ict(a.view(), &spd(0.0, None, 0.0)).unwrap();
    // Column 0: l = 1/2, −1/4. Column 1: d = 4 − 4/4 = 3, w = 0 + 2/4 = 1/2, l = 1/6. d₂ = 3 − 1/4 − 1/12.
    assert_close(&dense(&m), &[&[4.0, 2.0, -1.0], &[0.5, 3.0, 0.5], &[-0.25, 1.0 / 6.0, 3.0 - 1.0 / 3.0]]);
    // Scaled to a unit diagonal, column 0 is (1, 1/2, −1/√12) of norm √(1 + 1/4 + 1/12): τ = 0.3 drops the last. Column 1 has
    // nothing then.
    let m = ict(a.view(), &spd(0.3, None, 0.0)).unwrap();
    assert_close(&dense(&m), &[&[4.0, 2.0, 0.0], &[0.5, 3.0, 0.0], &[0.0, 0.0, 3.0]]);
    // So does p = 1.
    assert_eq!(ict(a.view(), &spd(0.0, Some(1), 0.0)).unwrap(), m);
    // A shift of 1: d = 8, 8 − 4/8, 6.
    let m = ict(a.view(), &spd(0.3, Some(1), 1.0)).unwrap();
    assert_close(&dense(&m), &[&[8.0, 2.0, 0.0], &[0.25, 7.5, 0.0], &[0.0, 0.0, 6.0]]);
}

#[test]
fn nothing_dropped_is_cholesky() {
    for name in ["poisson2d:9", "poisson3d:5", "jump3d:5", "elasticity2d:6", "fem2d:9"] {
        let a = generated(name);
        let m = ict(a.view(), &spd(0.0, None, 0.0)).unwrap();
        assert!(distance(&m, &a) < 1e-14, "{name}: {:e}", distance(&m, &a));
        assert_eq!(m.lower.transpose(), m.upper);
        let lu = ilut(a.view(), &options(RULES[1], 0.0)).unwrap();
        for (ic, ilu) in m.inverse.iter().zip(&lu.inverse) {
            assert!((ic - ilu).abs() <= 1e-12 * ilu.abs(), "{name}");
        }
    }
}

#[test]
fn scaling_changes_nothing_but_the_scale() {
    let a = generated("jump3d:6");
    let power = |i: usize| [1.0, 4.0, 0.5, 32.0, 0.125][i % 5];
    let mut b = a.clone();
    let pattern = std::sync::Arc::clone(a.pattern());
    for i in 0..a.nrows() {
        for k in pattern.row_range(i) {
            b.values_mut()[k] *= power(i) * power(pattern.col_idx()[k] as usize);
        }
    }
    let free = spd(1e-2, Some(6), 0.0);
    let (m, scaled) = (ict(a.view(), &free).unwrap(), ict(b.view(), &free).unwrap());
    assert!(m.nnz() > 2 * a.nrows() && m.lower.pattern() == scaled.lower.pattern());
    for i in 0..a.nrows() {
        assert_eq!(scaled.inverse[i] * power(i) * power(i), m.inverse[i]);
        for (k, &j) in m.lower.row(i).0.iter().enumerate() {
            let back = scaled.lower.row(i).1[k] * power(j as usize) / power(i);
            assert_eq!(back, m.lower.row(i).1[k]);
        }
    }
}

#[test]
fn a_tolerance_and_a_quota_bound_the_columns() {
    let a = generated("elasticity2d:12");
    let mut before = usize::MAX;
    for tau in [0.0, 1e-4, 1e-3, 1e-2, 1e-1] {
        let m = ict(a.view(), &spd(tau, None, 0.5)).unwrap();
        assert!(m.nnz() < before, "{tau}: {}", m.nnz());
        before = m.nnz();
        let m = ict(a.view(), &spd(tau, Some(7), 0.5)).unwrap();
        assert!((0..a.nrows()).all(|j| m.upper.row(j).0.len() <= 7));
        assert_eq!(m.lower.transpose(), m.upper);
    }
}

#[test]
fn a_pivot_that_is_not_positive_ends_it_and_a_shift_avoids_it() {
    let a = sparse([[1.0, 2.0], [2.0, 1.0]]);
    let bad = ict(a.view(), &spd(0.0, None, 0.0)).unwrap_err();
    assert_eq!(bad, SetupError::BadPivot { row: 1, value: -3.0 });
    assert_eq!(ict(a.view(), &spd(0.0, None, 1.0)).unwrap_err(), SetupError::BadPivot { row: 1, value: 0.0 });
    let m = ict(a.view(), &spd(0.0, None, 1.5)).unwrap();
    assert_eq!(m.inverse, [1.0 / 2.5, 1.0 / (2.5 - 0.8 * (2.5 * 0.8))]);
    let row = |a: Csr<f64>| match ict(a.view(), &spd(0.0, None, 0.0)) {
        Err(SetupError::BadPivot { row, .. }) => row,
        other => panic!("{other:?}"),
    };
    // The first bad row, though a later diagonal is negative.
    assert_eq!(row(sparse([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, -1.0]])), 1);
    assert_eq!(row(sparse([[1.0, 0.0], [0.0, -1.0]])), 1);
    assert_eq!(row(sparse([[1.0, f64::NAN], [f64::NAN, 1.0]])), 0);
    assert_eq!(row(sparse([[1e-300, 1e10], [1e10, 1.0]])), 0);
    assert!(ict(a.view(), &spd(0.0, None, f64::NAN)).is_err());
    let hole = sparse([[1.0, 1.0], [1.0, 0.0]]);
    assert_eq!(ict(hole.view(), &spd(0.0, None, 0.0)), Err(SetupError::MissingDiagonal { row: 1 }));
}
