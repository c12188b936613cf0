//! What every space must do, whoever implements it. Each space's own tests call [`check`].

use krylith::BackendError;
use krylith::space::Space;

/// Runs the suite on two layouts of at least 40 entries in all. `entry` looks at one entry of this process's part, `clone`
/// copies a vector.
pub fn check<S>(
    space: &S,
    layout: &S::Size,
    other: &S::Size,
    clone: impl Fn(&S::Vector) -> S::Vector,
    entry: impl Fn(usize, &S::Vector) -> f64,
) where
    S: Space<Real = f64, Scalar = f64>,
{
    let vector = |a: f64| {
        let mut x = space.zeros(layout).unwrap();
        space.fill(a, &mut x).unwrap();
        x
    };
    assert!(layout != other);
    assert_eq!(space.size(&vector(0.0)), *layout);
    assert_eq!(entry(0, &space.zeros(layout).unwrap()), 0.0);

    // axpby, copy, fill
    let (x, mut y) = (vector(2.0), vector(5.0));
    space.axpby(3.0, &x, -1.0, &mut y).unwrap();
    assert_eq!(entry(1, &y), 1.0);
    space.fill(f64::NAN, &mut y).unwrap();
    space.axpby(3.0, &x, 0.0, &mut y).unwrap();
    assert_eq!(entry(1, &y), 6.0, "with b = 0 the old y is not read");
    let mut z = vector(0.0);
    space.copy(&y, &mut z).unwrap();
    assert_eq!(entry(2, &z), 6.0);

    // operands of different layouts are an error, not a truncation or a panic
    let mut long = space.zeros(other).unwrap();
    let layout_error = |result: Result<(), BackendError>| {
        assert!(matches!(result, Err(BackendError::Size { .. })), "{result:?}");
    };
    layout_error(space.copy(&x, &mut long));
    layout_error(space.axpby(1.0, &x, 1.0, &mut long));
    layout_error(space.dots(&[(&x, &long)], &mut [0.0]));

    // dots in one call equal dots one by one; n from ones
    let ones = vector(1.0);
    let n = space.dot(&ones, &ones).unwrap();
    assert!(n >= 40.0);
    let mut out = [0.0; 3];
    space.dots(&[(&x, &x), (&x, &y), (&ones, &y)], &mut out).unwrap();
    assert_eq!(out, [4.0 * n, 12.0 * n, 6.0 * n]);
    assert_eq!(space.norm(&x).unwrap(), (4.0 * n).sqrt());

    // a basis longer than one round of the default
    let basis: Vec<S::Vector> = (0..37).map(|k| vector(k as f64)).collect();
    let mut out = [0.0; 37];
    space.basis_dots(&basis, &x, &mut out).unwrap();
    assert!(out.iter().enumerate().all(|(k, &d)| d == 2.0 * k as f64 * n));
    let mut sum = vector(1.0);
    space.combine(&[1.0, 10.0], &basis[1..3], &mut sum).unwrap();
    assert_eq!(entry(0, &sum), 22.0);

    // fused updates equal their parts
    let (mut p, q, mut x, mut r) = (vector(0.3), vector(0.7), vector(1.1), vector(1.3));
    let (mut p2, mut x2, mut r2) = (clone(&p), clone(&x), clone(&r));
    let norm = space.update_norm(-0.9, &q, &mut r).unwrap();
    space.axpby(-0.9, &q, 1.0, &mut r2).unwrap();
    assert_eq!((entry(3, &r), norm), (entry(3, &r2), space.norm(&r2).unwrap()));
    space.cg_direction(0.9, &r, 0.4, &mut p, &mut x).unwrap();
    space.axpby(0.9, &p2, 1.0, &mut x2).unwrap();
    space.axpby(1.0, &r, 0.4, &mut p2).unwrap();
    assert_eq!((entry(3, &x), entry(3, &p)), (entry(3, &x2), entry(3, &p2)));

    // so do a direction and an update with its products
    let (v, mut p, mut p2) = (vector(0.7), vector(1.1), vector(1.1));
    space.bicgstab_direction(&r, 0.3, 0.9, &v, &mut p).unwrap();
    space.axpby(-0.9, &v, 1.0, &mut p2).unwrap();
    space.axpby(1.0, &r, 0.3, &mut p2).unwrap();
    assert_eq!(entry(3, &p), entry(3, &p2));
    let products = space.update_dots(-0.4, &v, &mut r, &p).unwrap();
    space.axpby(-0.4, &v, 1.0, &mut r2).unwrap();
    assert_eq!(entry(3, &r), entry(3, &r2));
    assert_eq!(products, [space.dot(&r2, &r2).unwrap(), space.dot(&p, &r2).unwrap()]);
    let (mut y, mut y2, mut out) = (clone(&r), clone(&r), [0.0; 38]);
    let coefficients: Vec<f64> = (0..37).map(|k| 0.1 * k as f64).collect();
    space.combine_dots(&coefficients, &basis, &mut y, &mut out).unwrap();
    space.combine(&coefficients, &basis, &mut y2).unwrap();
    let mut out2 = [0.0; 37];
    space.basis_dots(&basis, &y2, &mut out2).unwrap();
    assert_eq!((&out[..37], out[37]), (&out2[..], space.dot(&y2, &y2).unwrap()));
}
