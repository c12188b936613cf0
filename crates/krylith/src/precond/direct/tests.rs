use super::*;
use crate::gallery::Problem;
use proptest::prelude::*;

fn factor(kind: DirectKind, a: &Csr<f64>) -> Result<DirectFactor, SetupError> {
    let space = Threads::new(1);
    Direct { kind, max_bytes: None }.symbolic(a)?.factor(&space, a)
}

fn solve(m: &DirectFactor, b: &[f64]) -> Vec<f64> {
    let space = Threads::new(1);
    let mut x = vec![0.0; b.len()];
    let mut scratch = m.scratch(&space).unwrap();
    m.apply(&space, &b.to_vec(), &mut x, &mut scratch).unwrap();
    x
}

/// ‖b − A x‖ / (‖A‖ ‖x‖ + ‖b‖) in the largest numbers.
fn backward_error(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let largest = |x: &[f64]| x.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let row = |i: usize| a.row(i).0.iter().zip(a.row(i).1).map(|(&j, v)| v * x[j as usize]).sum::<f64>();
    let r: Vec<f64> = (0..a.nrows()).map(|i| b[i] - row(i)).collect();
    let norm = (0..a.nrows()).map(|i| a.row(i).1.iter().map(|v| v.abs()).sum()).fold(0.0, f64::max);
    largest(&r) / (norm * largest(x) + largest(b))
}

/// [ 4 2 ]      L = [ 2 0 ]
/// [ 2 5 ]          [ 1 2 ]
#[test]
fn by_hand() {
    let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[4.0, 2.0, 2.0, 5.0]).unwrap();
    for kind in [DirectKind::Cholesky, DirectKind::Lu] {
        let x = solve(&factor(kind, &a).unwrap(), &[8.0, 12.0]);
        assert!((x[0] - 1.0).abs() < 1e-15 && (x[1] - 2.0).abs() < 1e-15, "{x:?}");
    }
}

#[test]
fn gallery() {
    for name in ["poisson2d:30", "poisson3d:9", "fem2d:12", "convection3d:8", "circuit:12", "elasticity3d:4"]
    {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 37 % 101) as f64 - 50.0) / 50.0).collect();
        let definite = a.symmetry().symmetric;
        for kind in [DirectKind::Lu, DirectKind::Cholesky].into_iter().take(1 + usize::from(definite)) {
            let m = factor(kind, &a).unwrap();
            let error = backward_error(&a, &solve(&m, &b), &b);
            assert!(error < 1e-14, "{name} {kind:?}: {error:e}");
            assert_eq!(m.replaced_pivots(), 0);
        }
    }
}

/// Zeros on the diagonal, and an exactly singular matrix.
#[test]
fn small_pivots() {
    let swap = Csr::from_triplets(2, 2, &[0, 1], &[1, 0], &[3.0, 7.0]).unwrap();
    let x = solve(&factor(DirectKind::Lu, &swap).unwrap(), &[3.0, 14.0]);
    assert!((x[0] - 2.0).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15, "{x:?}");
    let ones = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1.0; 4]).unwrap();
    assert_eq!(factor(DirectKind::Lu, &ones).unwrap().replaced_pivots(), 1);
    assert!(matches!(
        factor(DirectKind::Cholesky, &ones),
        Err(SetupError::BadPivot { row: 1, .. }) | Err(SetupError::BadPivot { row: 0, .. })
    ));
    // A row of zeros: the column that is left comes to its diagonal.
    let empty = Csr::from_triplets(2, 2, &[0, 0], &[0, 1], &[1.0; 2]).unwrap();
    assert_eq!(factor(DirectKind::Lu, &empty).unwrap().replaced_pivots(), 1);
    assert!(factor(DirectKind::Lu, &Csr::from_triplets(0, 0, &[], &[], &[]).unwrap()).is_ok());
}

#[test]
fn refactoring_gives_the_same_bits_as_factoring() {
    let mut a = "convection3d:7".parse::<Problem>().unwrap().generate().unwrap();
    let mut m = factor(DirectKind::Lu, &a).unwrap();
    let b = vec![1.0; a.nrows()];
    let before = solve(&m, &b);
    a.values_mut().iter_mut().for_each(|v| *v *= 2.0);
    m.refactor(&Threads::new(1), &a).unwrap();
    assert!(solve(&m, &b).iter().zip(&before).all(|(x, y)| 2.0 * x == *y));
}

#[test]
fn a_limit_is_kept() {
    let a = "poisson2d:20".parse::<Problem>().unwrap().generate().unwrap();
    let error = Direct { kind: DirectKind::Lu, max_bytes: Some(1000) }.analyze(&Threads::new(1), &a).err();
    assert!(matches!(error, Some(SetupError::MemoryLimit { limit: 1000, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Any pattern with a diagonal that dominates: accurate to rounding.
    #[test]
    fn random_patterns(n in 1usize..40, entries in prop::collection::vec((0usize..40, 0usize..40, -1.0f64..1.0), 0..200), shift in 0usize..40) {
        // The large entries stand on a cyclic diagonal, which columns must be exchanged for.
        let large = (0..n).map(|i| (i, (i + shift) % n, 300.0));
        let all = entries.into_iter().map(|(i, j, v)| (i % n, j % n, v)).chain(large);
        let a = Csr::from_entries(n, n, all).unwrap();
        let b: Vec<f64> = (0..n).map(|i| i as f64 - 3.5).collect();
        let m = factor(DirectKind::Lu, &a).unwrap();
        let error = backward_error(&a, &solve(&m, &b), &b);
        prop_assert!(error < 1e-14, "{error:e}");
    }
}

/// yᵀ M⁻¹ x = xᵀ M⁻ᵀ y, with exchanges, columns permuted and scales.
#[test]
fn transposes() {
    for name in ["convection3d:6", "circuit:10", "poisson2d:9"] {
        let mut a = name.parse::<Problem>().unwrap().generate().unwrap();
        if a.symmetry().symmetric {
            // No longer definite.
            for i in 0..a.nrows() {
                let diagonal = a.pattern().find(i, i).unwrap();
                a.values_mut()[diagonal] -= 3.0;
            }
        }
        let n = a.nrows();
        let x: Vec<f64> = (0..n).map(|i| ((i * 37 % 101) as f64 - 50.0) / 50.0).collect();
        let y: Vec<f64> = (0..n).map(|i| ((i * 53 % 97) as f64 - 48.0) / 48.0).collect();
        let kinds = [DirectKind::Lu, DirectKind::Ldlt];
        for kind in kinds.into_iter().take(1 + usize::from(a.symmetry().symmetric)) {
            let m = factor(kind, &a).unwrap();
            let space = Threads::new(1);
            let (mut forth, mut back) = (vec![0.0; n], vec![0.0; n]);
            let mut scratch = m.scratch(&space).unwrap();
            m.apply(&space, &x, &mut forth, &mut scratch).unwrap();
            m.apply_transpose(&space, &y, &mut back, &mut scratch).unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (one, other) = (dot(&y, &forth), dot(&x, &back));
            let size = dot(&y, &y).sqrt() * dot(&forth, &forth).sqrt();
            assert!((one - other).abs() <= 1e-11 * size, "{name} {kind:?}: {one} {other}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Symmetric, with zeros and numbers of either sign on the diagonal: refined twice, accurate to rounding.
    #[test]
    fn random_symmetric_patterns(n in 1usize..40, entries in prop::collection::vec((0usize..40, 0usize..40, -1.0f64..1.0), 0..200)) {
        // Large entries in twos off the diagonal.
        let twos = (0..n / 2).map(|k| (2 * k, 2 * k + 1, 300.0));
        let last = (n % 2 == 1).then_some((n - 1, n - 1, -150.0));
        let all: Vec<_> = entries.into_iter().map(|(i, j, v)| (i % n, j % n, v)).chain(twos).chain(last).collect();
        let mirrored = all.iter().flat_map(|&(i, j, v)| [(i, j, v), (j, i, v)]);
        let a = Csr::from_entries(n, n, mirrored).unwrap();
        let b: Vec<f64> = (0..n).map(|i| i as f64 - 3.5).collect();
        let m = factor(DirectKind::Ldlt, &a).unwrap();
        prop_assert_eq!(m.replaced_pivots(), 0);
        let error = backward_error(&a, &solve(&m, &b), &b);
        prop_assert!(error < 1e-13, "{error:e}");
    }
}
