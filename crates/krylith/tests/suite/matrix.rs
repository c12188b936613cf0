//! Properties of matrices, on random ones of every shape, and the errors of hand-made bad ones.

use krylith::matrix::{Mirror, Triangle};
use krylith::{Csr, CsrRef, MatrixError, Pattern, Permutation};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Entries in any order with repeated places, in a matrix of up to 30 × 30 with empty rows; 0 × 0 and 1 × 1 among them.
/// Values are small integers, so that sums are exact in any order.
fn entries() -> impl Strategy<Value = (usize, usize, Vec<(u32, u32, i8)>)> {
    (0usize..30, 0usize..30).prop_flat_map(|(m, n)| {
        let count = if m * n == 0 { 0..1 } else { 0..80 };
        let one = (0..m.max(1) as u32, 0..n.max(1) as u32, any::<i8>());
        (Just(m), Just(n), prop::collection::vec(one, count))
    })
}

fn build((m, n, e): &(usize, usize, Vec<(u32, u32, i8)>)) -> Csr<f64> {
    let rows: Vec<u32> = e.iter().map(|e| e.0).collect();
    let columns: Vec<u32> = e.iter().map(|e| e.1).collect();
    let values: Vec<f64> = e.iter().map(|e| f64::from(e.2)).collect();
    Csr::from_triplets(*m, *n, &rows, &columns, &values).unwrap()
}

fn square() -> impl Strategy<Value = Csr<f64>> {
    entries().prop_map(|(m, n, e)| {
        let k = m.max(n);
        build(&(k, k, e))
    })
}

fn permutation(n: usize) -> impl Strategy<Value = Permutation> {
    Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle().prop_map(|p| Permutation::new(p).unwrap())
}

proptest! {
    #[test]
    fn duplicates_are_summed_and_rows_sorted(e in entries()) {
        let a = build(&e);
        let mut places = BTreeMap::new();
        for &(i, j, v) in &e.2 {
            *places.entry((i, j)).or_insert(0.0) += f64::from(v);
        }
        prop_assert_eq!(a.nnz(), places.len());
        for (&(i, j), &v) in &places {
            prop_assert_eq!(a.get(i as usize, j as usize), v);
        }
        // What came out passes the checked constructor.
        let p = a.pattern();
        prop_assert!(Pattern::new(p.nrows(), p.ncols(), p.row_ptr().to_vec(), p.col_idx().to_vec()).is_ok());
    }

    #[test]
    fn the_transpose_of_the_transpose_is_the_matrix(e in entries()) {
        let a = build(&e);
        let t = a.transpose();
        prop_assert_eq!((t.nrows(), t.ncols()), (a.ncols(), a.nrows()));
        for i in 0..a.nrows() {
            for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
                prop_assert_eq!(t.get(j as usize, i), v);
            }
        }
        prop_assert_eq!(t.transpose(), a);
    }

    #[test]
    fn the_same_matrix_on_any_number_of_threads(e in entries()) {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (build(&e), build(&e).transpose()))
        };
        prop_assert_eq!(run(1), run(4));
    }

    #[test]
    fn permuting_and_back_is_the_matrix(
        (a, p, q) in entries().prop_flat_map(|e| (Just(build(&e)), permutation(e.0), permutation(e.1)))
    ) {
        let b = a.view().permute(&p, &q).unwrap();
        for i in 0..b.nrows() {
            for j in 0..b.ncols() {
                prop_assert_eq!(b.get(i, j), a.get(p.old()[i] as usize, q.old()[j] as usize));
            }
        }
        prop_assert_eq!(b.view().permute(&p.inverse(), &q.inverse()).unwrap(), a);
    }

    #[test]
    fn a_triangle_expands_to_a_symmetric_matrix(a in square(), upper: bool, skew: bool) {
        let triangle = if upper { Triangle::Upper } else { Triangle::Lower };
        let mirror = if skew { Mirror::Skew } else { Mirror::Symmetric };
        let half = a.view().triangle(triangle).unwrap();
        let full = half.expand(triangle, mirror).unwrap();
        let s = full.symmetry();
        prop_assert!(s.pattern);
        let no_diagonal = full.diagonal().unwrap().iter().all(|&d| d == 0.0);
        let expected = if skew { s.skew == no_diagonal } else { s.symmetric };
        prop_assert!(expected);
        prop_assert_eq!(full.view().triangle(triangle).unwrap(), half);
    }

    #[test]
    fn symmetry_is_what_comparing_with_the_transpose_says(a in square()) {
        let n = a.nrows();
        let t = a.transpose();
        let s = a.symmetry();
        let all = |f: &dyn Fn(usize, usize) -> bool| (0..n).all(|i| (0..n).all(|j| f(i, j)));
        prop_assert_eq!(s.symmetric, all(&|i, j| a.get(i, j) == t.get(i, j)));
        prop_assert_eq!(s.skew, all(&|i, j| a.get(i, j) == -t.get(i, j)));
        prop_assert_eq!(s.pattern, a.pattern() == t.pattern());
    }

    #[test]
    fn the_product_is_the_dense_one(e in entries()) {
        let a = build(&e);
        let x: Vec<f64> = (0..a.ncols()).map(|j| j as f64 - 3.0).collect();
        let mut y = vec![f64::NAN; a.nrows()];
        a.mul_vec(&x, &mut y).unwrap();
        for i in 0..a.nrows() {
            prop_assert_eq!(y[i], (0..a.ncols()).map(|j| a.get(i, j) * x[j]).sum::<f64>());
        }
    }

    #[test]
    fn casting_to_single_and_back_keeps_what_fits(e in entries()) {
        let a = build(&e);
        prop_assert_eq!(a.cast::<f32>().cast::<f64>(), a);
    }
}

/// Sums that depend on their order, in many more rows than one task takes.
#[test]
fn duplicates_are_summed_in_the_order_given_on_any_number_of_threads() {
    let n = 10_000u32;
    let hash = |k: u32| (u64::from(k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32;
    let rows: Vec<u32> = (0..20 * n).map(|k| hash(k) % n).collect();
    let columns: Vec<u32> = (0..20 * n).map(|k| hash(k) / n % 2).collect();
    let values: Vec<f64> = (0..20 * n).map(|k| 0.1 * f64::from(hash(k) % 1000)).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Csr::from_triplets(n as usize, 2, &rows, &columns, &values).unwrap())
    };
    let alone = run(1);
    let mut sums = BTreeMap::new();
    for ((&i, &j), &v) in rows.iter().zip(&columns).zip(&values) {
        *sums.entry((i, j)).or_insert(0.0) += v;
    }
    assert!(sums.iter().all(|(&(i, j), &v)| alone.get(i as usize, j as usize) == v));
    for threads in [2, 3, 8] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
}

/// Rows of 0 to 150 entries, at columns from both ends of the range, each taken about three times; zeros of both signs among them.
#[test]
fn rows_of_every_length_are_sorted_and_summed_to_the_last_bit() {
    let hash = |k: u32| (u64::from(k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32;
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    let mut sums = BTreeMap::<(u32, u32), f64>::new();
    for i in 0..9000u32 {
        let length = i % 151;
        for k in 0..length {
            let h = hash(1000 * i + k);
            let near = h % (length / 3 + 1);
            let j = if h & 1 << 20 == 0 { near } else { u32::MAX - near };
            let v = [0.1 * f64::from(h % 1000), -0.0, 0.0, 1e17][[0, 0, 0, 1, 1, 2, 3][h as usize / 7 % 7]];
            rows.push(i);
            columns.push(j);
            values.push(v);
            sums.entry((i, j)).and_modify(|sum| *sum += v).or_insert(v);
        }
    }
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let a = pool.install(|| Csr::from_triplets(9000, 1 << 32, &rows, &columns, &values).unwrap());
        let found = (0..9000).flat_map(|i| {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).map(move |(&j, &v)| ((i as u32, j), v.to_bits()))
        });
        assert!(found.eq(sums.iter().map(|(&place, v)| (place, v.to_bits()))), "{threads} threads");
    }
}

#[test]
fn long_rows_and_many_rows_in_parallel() {
    // 20,000 rows, more than a task takes; row 0 full, given backwards.
    let n = 20_000u32;
    let mut rows: Vec<u32> = vec![0; n as usize];
    let mut columns: Vec<u32> = (0..n).rev().collect();
    rows.extend(1..n);
    columns.extend(1..n);
    let values: Vec<f64> = (0..rows.len()).map(|k| k as f64).collect();
    let a = Csr::from_triplets(n as usize, n as usize, &rows, &columns, &values).unwrap();
    assert_eq!(a.nnz(), 2 * n as usize - 1);
    assert_eq!(a.get(0, 5), f64::from(n - 1 - 5));
    assert_eq!(a.get(7, 7), f64::from(n + 6));
    assert_eq!(a.transpose().transpose(), a);
}

#[test]
fn raw_parts_are_refused_with_the_place() {
    let new = |row_ptr: &[usize], col_idx: &[u32]| {
        Pattern::new(2, 3, row_ptr.to_vec(), col_idx.to_vec()).map(|_| ()).unwrap_err()
    };
    use MatrixError::*;
    assert_eq!(new(&[0, 1], &[0]), RowPtrLength { expected: 3, found: 2 });
    assert_eq!(new(&[1, 1, 1], &[0]), RowPtrStart { first: 1 });
    assert_eq!(new(&[0, 2, 1], &[0]), RowPtrDecreases { row: 1 });
    assert_eq!(new(&[0, 1, 3], &[0, 1]), RowPtrEnd { end: 3, nnz: 2 });
    assert_eq!(new(&[0, 1, 2], &[0, 3]), ColumnOutOfRange { row: 1, column: 3, ncols: 3 });
    assert_eq!(new(&[0, 2, 3], &[1, 0, 7]), ColumnsUnsorted { row: 0, column: 0 });
    assert_eq!(new(&[0, 2, 2], &[1, 1]), ColumnsUnsorted { row: 0, column: 1 });
    let too_large = Pattern::new((1 << 32) + 1, 1, vec![], vec![]).unwrap_err();
    assert_eq!(too_large, TooLarge { what: "rows", count: (1 << 32) + 1 });
    let short = CsrRef::new(1, 1, &[0, 1], &[0], &[0.0; 0]).unwrap_err();
    assert_eq!(short, Length { what: "values", expected: 1, found: 0 });
    let outside = Csr::from_triplets(2, 2, &[0, 2], &[0, 0], &[1.0, 1.0]).unwrap_err();
    assert_eq!(outside, RowOutOfRange { entry: 1, row: 2, nrows: 2 });
}

#[test]
fn only_permutations_are_permutations() {
    let error = |p: &[u32]| Permutation::new(p.to_vec()).unwrap_err();
    let seen = MatrixError::NotAPermutation { position: 2, index: 1, why: "seen before" };
    assert_eq!(error(&[1, 0, 1]), seen);
    let outside = MatrixError::NotAPermutation { position: 0, index: 3, why: "outside of the range" };
    assert_eq!(error(&[3, 0, 1]), outside);
}

#[test]
fn an_entry_outside_of_the_triangle_is_named() {
    let a = Csr::from_triplets(2, 2, &[0, 1], &[1, 0], &[1.0, 1.0]).unwrap();
    let error = a.expand(Triangle::Lower, Mirror::Symmetric).unwrap_err();
    assert_eq!(error, MatrixError::NotTriangular { row: 0, column: 1, triangle: "lower" });
}

#[test]
fn a_row_function_that_writes_columns_out_of_order_is_refused() {
    let error = Csr::<f64>::from_rows(2, 2, |_| 2, |_, columns, _| columns.copy_from_slice(&[1, 0]));
    assert_eq!(error.unwrap_err(), MatrixError::ColumnsUnsorted { row: 0, column: 0 });
}

#[cfg(feature = "sprs")]
#[test]
fn sprs_and_back() {
    let a = build(&(3, 4, vec![(0, 3, 1), (2, 0, 2), (2, 2, 3)]));
    let s: sprs::CsMatI<f64, u32, usize> = a.clone().into();
    assert_eq!(s.get(2, 2), Some(&3.0));
    assert_eq!(Csr::try_from(s.clone()).unwrap(), a);
    assert_eq!(Csr::try_from(s.to_csc()).unwrap(), a);
    let wide: sprs::CsMat<f64> = s.to_other_types();
    assert_eq!(Csr::try_from(wide).unwrap(), a);
}

#[cfg(feature = "nalgebra-sparse")]
#[test]
fn nalgebra_and_back() {
    let a = build(&(3, 4, vec![(0, 3, 1), (2, 0, 2), (2, 2, 3)]));
    let n: nalgebra_sparse::CsrMatrix<f64> = a.clone().into();
    assert_eq!(n.get_entry(2, 2).unwrap().into_value(), 3.0);
    assert_eq!(Csr::try_from(n).unwrap(), a);
}

#[cfg(feature = "faer")]
#[test]
fn faer_and_back() {
    let a = build(&(3, 4, vec![(0, 3, 1), (2, 0, 2), (2, 2, 3)]));
    let f: faer::sparse::SparseRowMat<usize, f64> = a.clone().into();
    assert_eq!(f.get(2, 2), Some(&3.0));
    assert_eq!(Csr::try_from(&f).unwrap(), a);
}
