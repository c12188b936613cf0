//! Matchings against all permutations of small matrices, against the duality bounds on larger ones.

use super::Matching;
use crate::error::MatrixError;
use crate::matrix::{Csr, Permutation};
use crate::transform::MatchingError;
use proptest::prelude::*;

type Dense = Vec<Vec<f64>>;

/// Every place not `None` is stored, zeros too.
fn sparse(a: &[Vec<Option<f64>>]) -> Csr<f64> {
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for (i, row) in a.iter().enumerate() {
        for (j, value) in row.iter().enumerate() {
            if let Some(v) = *value {
                rows.push(i as u32);
                columns.push(j as u32);
                values.push(v);
            }
        }
    }
    Csr::from_triplets(a.len(), a.len(), &rows, &columns, &values).unwrap()
}

fn dense(a: &Csr<f64>) -> Dense {
    (0..a.nrows()).map(|i| (0..a.ncols()).map(|j| a.get(i, j)).collect()).collect()
}

/// The most rows that can have columns of their own, and the largest sum of log |a| over so many: by trying everything.
fn by_trial(a: &Dense, row: usize, taken: &mut Vec<bool>) -> (usize, f64) {
    if row == a.len() {
        return (0, 0.0);
    }
    let mut best = by_trial(a, row + 1, taken);
    for j in 0..a.len() {
        if a[row][j] != 0.0 && !taken[j] {
            taken[j] = true;
            let (rank, sum) = by_trial(a, row + 1, taken);
            taken[j] = false;
            let candidate = (rank + 1, sum + a[row][j].abs().ln());
            if candidate.0 > best.0 || candidate.0 == best.0 && candidate.1 > best.1 {
                best = candidate;
            }
        }
    }
    best
}

/// 1 on the matched entries, at most 1 elsewhere.
fn check_scaling(a: &Csr<f64>, matching: &Matching, tolerance: f64) {
    let b = matching.apply(a.view()).unwrap();
    for i in 0..b.nrows() {
        assert!((b.get(i, i).abs() - 1.0).abs() <= 4.0 * f64::EPSILON, "row {i}: {}", b.get(i, i));
        assert!(b.row(i).1.iter().all(|v| v.abs() <= 1.0 + tolerance), "row {i}: {:?}", b.row(i));
    }
}

fn check_against_trial(a: &Csr<f64>) {
    let full = dense(a);
    let n = a.nrows();
    let (rank, sum) = by_trial(&full, 0, &mut vec![false; n]);
    match Matching::find(a.view()) {
        Ok(matching) => {
            assert_eq!(rank, n, "{full:?}");
            let q = matching.columns.old();
            let found: f64 = (0..n).map(|i| full[i][q[i] as usize].abs().ln()).sum();
            assert!((found - sum).abs() <= 1e-12 * (1.0 + sum.abs()), "{found} instead of {sum}: {full:?}");
            check_scaling(a, &matching, 1e-12);
        }
        Err(MatchingError::StructurallySingular { rank: found, size, row }) => {
            assert!(rank < n && found == rank && size == n, "rank {found} instead of {rank}: {full:?}");
            // Without this row the rest has the same rank.
            let mut without = full.clone();
            without[row].fill(0.0);
            assert_eq!(by_trial(&without, 0, &mut vec![false; n]).0, rank, "row {row}: {full:?}");
        }
        Err(other) => panic!("{other}: {full:?}"),
    }
}

/// ```text
/// 1 9 .       by hand: 9 · 1 · 2 = 18 (columns 1 0 2) exceeds 1 · 4 · 2 = 8
/// 1 4 .
/// . 7 2
/// ```
#[test]
fn by_hand() {
    let a = sparse(&[
        vec![Some(1.0), Some(-9.0), None],
        vec![Some(-1.0), Some(4.0), None],
        vec![None, Some(7.0), Some(2.0)],
    ]);
    let matching = Matching::find(a.view()).unwrap();
    assert_eq!(matching.columns.old(), [1, 0, 2]);
    check_scaling(&a, &matching, 1e-15);
    let b = a.view().permute(&Permutation::identity(3).unwrap(), &matching.columns).unwrap();
    assert_eq!(b.diagonal().unwrap(), [-9.0, -1.0, 2.0]);
}

/// All patterns of up to three rows, and those of four up to the order of rows, with values that make ties and without.
#[test]
fn all_patterns_of_up_to_four_rows() {
    for n in 0..=4usize {
        for bits in 0..1u32 << (n * n) {
            let row = |i: usize| bits >> (i * n) & ((1 << n) - 1);
            if n == 4 && (1..n).any(|i| row(i) < row(i - 1)) {
                continue;
            }
            let place = |i: usize, j: usize| row(i) >> j & 1 == 1;
            let matrix = |value: &dyn Fn(usize, usize) -> f64| {
                let row = |i| (0..n).map(|j| place(i, j).then(|| value(i, j))).collect();
                sparse(&(0..n).map(row).collect::<Vec<_>>())
            };
            check_against_trial(&matrix(&|i, j| 1.0 + ((3 * i + 5 * j) % 3) as f64));
            check_against_trial(&matrix(&|i, j| 10f64.powi((7 * i * i + 11 * j) as i32 % 13 - 6)));
        }
    }
}

#[test]
fn no_row_and_one_row() {
    let matching = Matching::find(Csr::<f64>::identity(0).unwrap().view()).unwrap();
    assert!(matching.columns.is_empty());
    for value in [f64::from_bits(1), f64::MIN_POSITIVE, 1.0, -3.0, f64::MAX] {
        let a = sparse(&[vec![Some(value)]]);
        let matching = Matching::find(a.view()).unwrap();
        assert!(matching.row_scale[0].is_normal() && matching.column_scale[0].is_normal());
        check_scaling(&a, &matching, 0.0);
    }
}

#[test]
fn stored_zeros_are_missing() {
    let a = sparse(&[vec![Some(0.0), Some(2.0)], vec![Some(3.0), Some(-0.0)]]);
    assert_eq!(Matching::find(a.view()).unwrap().columns.old(), [1, 0]);
    let a = sparse(&[vec![Some(1.0), Some(2.0)], vec![Some(0.0), Some(0.0)]]);
    let error = Matching::find(a.view()).unwrap_err();
    assert_eq!(error, MatchingError::StructurallySingular { rank: 1, size: 2, row: 1 });
    assert_eq!(
        error.to_string(),
        "structurally singular: rank 1 of 2 at most; row 1 (counted from 0) is one that cannot be matched"
    );
}

#[test]
fn what_is_refused() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let a = sparse(&[vec![Some(1.0), None], vec![Some(2.0), Some(bad)]]);
        assert_eq!(Matching::find(a.view()), Err(MatchingError::NotFinite { row: 1, column: 1 }));
    }
    let a = Csr::from_triplets(1, 2, &[0], &[1], &[1.0]).unwrap();
    let error = MatrixError::NotSquare { nrows: 1, ncols: 2 };
    assert_eq!(Matching::find(a.view()), Err(error.into()));
    let matching = Matching::find(Csr::identity(3).unwrap().view()).unwrap();
    assert!(matching.apply(Csr::identity(2).unwrap().view()).is_err());
}

/// 1 on the diagonal and a large number above it: the only matching is the diagonal, and every step to the right needs a
/// column scale smaller by that number.
#[test]
fn scales_outside_of_the_range_are_reported() {
    let chain = |above: f64, n: usize| {
        let row = |i: usize| {
            let value = |j| if j == i { Some(1.0) } else { (j == i + 1).then_some(above) };
            (0..n).map(value).collect()
        };
        sparse(&(0..n).map(row).collect::<Vec<_>>())
    };
    let near = chain(1e300, 3);
    check_scaling(&near, &Matching::find(near.view()).unwrap(), 1e-12);
    let far = chain(1e300, 4);
    assert!(matches!(Matching::find(far.view()), Err(MatchingError::ScaleOutOfRange { .. })));
}

/// Independent parts of very different magnitude do not hinder each other.
#[test]
fn parts_have_scales_of_their_own() {
    let (tiny, huge) = (f64::from_bits(3), f64::MAX);
    let a = sparse(&[
        vec![Some(tiny), Some(tiny), None, None],
        vec![Some(tiny), None, None, None],
        vec![None, None, Some(huge), Some(huge)],
        vec![None, None, None, Some(1.0)],
    ]);
    let matching = Matching::find(a.view()).unwrap();
    assert_eq!(matching.columns.old(), [1, 0, 2, 3]);
    check_scaling(&a, &matching, 1e-12);
}

/// A large matrix whose matching is known: a strictly dominant diagonal, with the columns in another order.
#[test]
fn a_dominant_diagonal_is_found_again() {
    let a = "convection3d:12".parse::<crate::gallery::Problem>().unwrap().generate().unwrap();
    let n = a.nrows();
    let mut old: Vec<u32> = (0..n as u32).collect();
    old.sort_by_key(|&i| u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let shuffle = Permutation::new(old).unwrap();
    let b = a.view().permute(&Permutation::identity(n).unwrap(), &shuffle).unwrap();
    let matching = Matching::find(b.view()).unwrap();
    assert_eq!(matching.columns, shuffle.inverse());
    check_scaling(&b, &matching, 1e-12);
}

fn entry() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(0.0)),
        2 => (1..4i32).prop_map(|v| Some(f64::from(v))),
        3 => (-1.0..1.0f64, -30..30i32).prop_map(|(v, e)| Some(v * 10f64.powi(e))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_trial(a in (0..=6usize).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(entry(), n), n))) {
        check_against_trial(&sparse(&a));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The bounds prove that no other matching has a larger product: ∏ |r a c| ≤ 1 for any of them.
    #[test]
    fn bounds_hold_on_sparse_matrices(
        n in 1..120u32,
        entries in prop::collection::vec((any::<u32>(), any::<u32>(), -20.0..20.0f64), 0..600),
    ) {
        // A hidden permutation makes it matchable.
        let rows: Vec<u32> = entries.iter().map(|e| e.0 % n).chain(0..n).collect();
        let columns: Vec<u32> = entries.iter().map(|e| e.1 % n).chain((0..n).map(|i| n - 1 - i)).collect();
        let values: Vec<f64> = entries.iter().map(|e| e.2.exp()).chain((0..n).map(|_| 1e-9)).collect();
        let a = Csr::from_triplets(n as usize, n as usize, &rows, &columns, &values).unwrap();
        let matching = Matching::find(a.view()).unwrap();
        check_scaling(&a, &matching, 1e-12);
        prop_assert_eq!(matching, Matching::find(a.view()).unwrap());
    }
}
