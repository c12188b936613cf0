//! Factored sparse approximate inverses: rows beside a dense minimiser, the unit diagonal of G A Gᵀ, bits, whole solves.

use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::precond::fsai::{Fsai, FsaiFactor, PatternRule};
use krylith::space::Threads;
use krylith::{Csr, Layout, Method, Precision, PrecondSpec, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn factor(a: &Csr<f64>, threads: usize, (tau, power, delta): (f64, usize, f64)) -> FsaiFactor {
    let space = Threads::new(threads);
    let recipe = Fsai {
        pattern: PatternRule::Powers { tau: Some(tau), power: Some(power) },
        delta: Some(delta),
        pair: false,
        max_bytes: None,
    };
    recipe.analyze(&space, a).unwrap().factor(&space, a).unwrap()
}

/// w with A[P,P] w = e_m, by elimination with exchanges.
fn dense_solution(a: &Csr<f64>, indices: &[u32]) -> Vec<f64> {
    let m = indices.len();
    let entry = |p: usize, q: usize| a.get(indices[p] as usize, indices[q] as usize);
    let mut rows: Vec<Vec<f64>> = (0..m)
        .map(|p| (0..m).map(|q| entry(p, q)).chain([if p == m - 1 { 1.0 } else { 0.0 }]).collect())
        .collect();
    for k in 0..m {
        let pivot = (k..m).max_by(|&p, &q| rows[p][k].abs().total_cmp(&rows[q][k].abs())).unwrap();
        rows.swap(k, pivot);
        for p in (0..m).filter(|&p| p != k) {
            let multiple = rows[p][k] / rows[k][k];
            for q in k..=m {
                rows[p][q] -= multiple * rows[k][q];
            }
        }
    }
    (0..m).map(|k| rows[k][m] / rows[k][k]).collect()
}

/// gᵢ A gᵢᵀ.
fn square(a: &Csr<f64>, g: &Csr<f64>, i: usize) -> f64 {
    let (columns, values) = g.row(i);
    let entries = || columns.iter().zip(values);
    entries()
        .flat_map(|p| entries().map(move |q| (p, q)))
        .map(|((&p, x), (&q, y))| x * a.get(p as usize, q as usize) * y)
        .sum()
}

#[test]
fn rows_are_those_of_the_dense_minimiser() {
    for (name, power) in
        [("poisson2d:9", 3), ("elasticity3d:3", 1), ("jump3d:5", 2), ("fem2d:8", 4), ("hpcg:7", 3)]
    {
        let a = problem(name);
        let f = factor(&a, 2, (0.0, power, 0.0));
        for i in 0..a.nrows() {
            let (indices, values) = f.g().row(i);
            let w = dense_solution(&a, indices);
            let root = w[w.len() - 1].sqrt();
            let largest = w.iter().fold(0.0f64, |largest, w| largest.max(w.abs())) / root;
            for (value, w) in values.iter().zip(&w) {
                assert!((value - w / root).abs() <= 1e-10 * largest, "{name}, row {i}: {value} {}", w / root);
            }
        }
    }
}

#[test]
fn the_diagonal_of_the_preconditioned_matrix_is_one() {
    for name in ["poisson3d:8", "elasticity2d:12", "jump3d:8", "circuit:12"] {
        let a = problem(name);
        for parameters in [(0.0, 1, 0.0), (0.01, 2, 0.0), (0.0, 3, 0.05), (0.1, 2, 0.3)] {
            let f = factor(&a, 1, parameters);
            let worst = (0..a.nrows()).map(|i| (square(&a, f.g(), i) - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst <= 1e-10, "{name} {parameters:?}: {worst}");
        }
    }
}

/// Systems of more rows than a batch takes, by the kernels of complete factors.
#[test]
fn large_systems_too() {
    let a = problem("hpcg:9");
    let f = factor(&a, 2, (0.0, 5, 0.0));
    let longest = (0..a.nrows()).map(|i| f.g().row(i).0.len()).max().unwrap();
    assert!(longest > 200, "{longest}");
    let worst = (0..a.nrows()).map(|i| (square(&a, f.g(), i) - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst <= 1e-10, "{worst}");
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_in_a_refactorization() {
    let a = problem("thermal:40");
    let one = factor(&a, 1, (0.01, 3, 0.02));
    for threads in 2..=8 {
        assert_eq!(factor(&a, threads, (0.01, 3, 0.02)).g(), one.g(), "{threads}");
    }
    let mut other = a.clone();
    other.values_mut().iter_mut().for_each(|v| *v *= 3.0);
    let (space, mut again) = (Threads::new(2), one.clone());
    again.refactor(&space, &other).unwrap();
    assert_ne!(again.g(), one.g());
    again.refactor(&space, &a).unwrap();
    assert_eq!(again.g(), one.g());
    let (x, mut y, mut z): (Vec<f64>, _, _) =
        ((0..a.nrows()).map(|i| (i as f64).sin()).collect(), vec![0.0; a.nrows()], vec![0.0; a.nrows()]);
    again.apply(&space, &x, &mut y, &mut again.scratch(&space).unwrap()).unwrap();
    one.apply(&space, &x, &mut z, &mut one.scratch(&space).unwrap()).unwrap();
    assert_eq!(y, z);
}

/// An indefinite matrix, a zero on the diagonal, two equal rows: M is positive definite in all cases.
#[test]
fn what_is_not_definite_has_a_definite_factor() {
    let indefinite =
        Csr::from_entries(3, 3, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0), (2, 2, -4.0)]);
    let zero = Csr::from_entries(2, 2, [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)]);
    let ones = Csr::from_entries(4, 4, (0..16).map(|k| (k / 4, k % 4, 1.0)));
    for a in [indefinite, zero, ones].map(Result::unwrap) {
        let f = factor(&a, 1, (0.0, 2, 0.0));
        for i in 0..a.nrows() {
            let (columns, values) = f.g().row(i);
            assert_eq!(*columns.last().unwrap(), i as u32);
            assert!(*values.last().unwrap() > 0.0 && values.iter().all(|v| v.is_finite()), "{values:?}");
        }
    }
}

#[test]
fn higher_powers_take_fewer_iterations() {
    let a = problem("jump3d:20");
    let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
    let mut before = usize::MAX;
    for kind in [
        PrecondSpec::jacobi(),
        PrecondSpec::fsai(0.0, 1, 0.0),
        PrecondSpec::fsai(0.0, 2, 0.0),
        "fsai(0,3,0.01)".parse().unwrap(),
    ] {
        let solution = Solver::new().method(Method::Cg).preconditioner(kind.clone()).solve(&a, &b).unwrap();
        let iterations = solution.report.require_converged().unwrap().iterations;
        assert!(iterations < before, "{kind}: {iterations} {before}");
        before = iterations;
    }
}

/// A problem of the gallery with points in another order and in other units: in blocks, on no grid, with no two rows the same.
fn scattered(name: &str, unknowns: usize) -> Csr<f64> {
    let a = problem(name);
    let points = a.nrows() / unknowns;
    let place = |i: usize| i / unknowns * 7919 % points * unknowns + i % unknowns;
    let unit = |i: usize| 1.0 + (i * 31 % 17) as f64 / 17.0;
    let row = |i: usize| {
        let (columns, values) = a.row(i);
        let entry =
            move |(&j, &v): (&u32, &f64)| (place(i), place(j as usize), unit(i) * v * unit(j as usize));
        columns.iter().zip(values).map(entry)
    };
    Csr::from_entries(a.nrows(), a.ncols(), (0..a.nrows()).flat_map(row)).unwrap()
}

/// As stencils, in blocks, in slices and by rows the same preconditioner is applied, and a refactorization stores the new one.
#[test]
fn every_storage_has_the_same_preconditioner() {
    let solver = |layout| Solver::new().method(Method::Cg).threads(2).layout(layout);
    for (name, kind) in [
        ("poisson3d:14", PrecondSpec::fsai(0.0, 2, 0.0)),
        ("jump3d:64", PrecondSpec::fsai(0.0, 1, 0.0)),
        ("elasticity2d:12", PrecondSpec::fsai(0.0, 1, 0.0)),
        ("poisson2d:40", "fsai(0.1,2,0.05)".parse().unwrap()),
        ("fem2d:30", PrecondSpec::fsai(0.0, 2, 0.0)),
        ("jump3d:12", "afsai".parse().unwrap()),
        ("scattered elasticity3d:5", PrecondSpec::fsai(0.0, 1, 0.0)),
    ] {
        let mut a = match name.strip_prefix("scattered ") {
            Some(name) => scattered(name, 3),
            None => problem(name),
        };
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
        let mut iterations = Vec::new();
        for (layout, precision) in [
            (Layout::Auto, Precision::F64),
            (Layout::Slices, Precision::F64),
            (Layout::Slices, Precision::Mixed),
            (Layout::Rows, Precision::F64),
        ] {
            let solver = solver(layout).precision(precision).preconditioner(kind.clone());
            let mut prepared = solver.prepare(&a).unwrap();
            let mut x = vec![0.0; a.nrows()];
            let report = prepared.solve(&a, &b, &mut x).unwrap();
            iterations.push(report.require_converged().unwrap().iterations);
            let stored = report.layout.split(&[':', ' ']).next().unwrap().to_owned();
            let expected = match (layout, name) {
                (Layout::Auto, "jump3d:64") => "structured",
                (Layout::Auto, "scattered elasticity3d:5") => "dense",
                (Layout::Rows, _) => "rows",
                (_, "poisson3d:14" | "poisson2d:40") => "slices",
                _ => &stored,
            };
            assert_eq!(stored, expected, "{name}");
            assert_eq!(report.layout.contains("f32"), stored == "slices" && precision == Precision::Mixed);
            // Eight times A has an eighth of the inverse: the same iterations, another preconditioner.
            let before = a.clone();
            a.values_mut().iter_mut().for_each(|v| *v *= 8.0);
            prepared.refactor(&a).unwrap();
            x.fill(0.0);
            let again = prepared.solve(&a, &b, &mut x).unwrap();
            assert_eq!(again.iterations, report.iterations, "{name} {layout:?}");
            a = before;
        }
        let (least, most) = (iterations.iter().min().unwrap(), iterations.iter().max().unwrap());
        assert!(most - least <= 1, "{name}: {iterations:?}");
    }
}

/// Where entries differ much in size, a pattern that grows takes fewer iterations than a power with more entries.
#[test]
fn a_pattern_that_grows_is_better_than_a_power() {
    let a = problem("jump3d:24");
    let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
    let solve = |name: &str| {
        let solver = Solver::new().method(Method::Cg).preconditioner(name.parse().unwrap());
        let report = solver.solve(&a, &b).unwrap().report;
        (report.require_converged().unwrap().iterations, report.preconditioner_nnz)
    };
    let (grown, power) = (solve("afsai(4,3,0.001)"), solve("fsai(0,2)"));
    assert!(grown.0 < power.0 && grown.1 < power.1, "{grown:?} {power:?}");
}

fn pair(a: &Csr<f64>, threads: usize, (power, delta): (usize, f64)) -> FsaiFactor {
    let space = Threads::new(threads);
    let pattern = PatternRule::Powers { tau: Some(0.0), power: Some(power) };
    let recipe = Fsai { pattern, delta: Some(delta), pair: true, max_bytes: None };
    recipe.analyze(&space, a).unwrap().factor(&space, a).unwrap()
}

/// G_L A is zero in a row at all of its entries but the diagonal, A G_U in a column, and G_L A G_U has a unit diagonal, before and after the filter.
#[test]
fn a_pair_inverts_on_its_pattern() {
    for (name, power) in [("convection3d:6", 2), ("poisson2d:9", 3), ("atmosmod:6", 3), ("euler3d:3", 1)] {
        let a = problem(name);
        for delta in [0.0, 0.05] {
            let f = pair(&a, 2, (power, delta));
            let (rows, columns) = (f.g(), f.second().transpose());
            for i in 0..a.nrows() {
                let [(p, g), (q, h)] = [rows.row(i), columns.row(i)];
                let form = |x: (&[u32], &[f64]), y: (&[u32], &[f64])| -> f64 {
                    let all = x.0.iter().zip(x.1).flat_map(|l| y.0.iter().zip(y.1).map(move |r| (l, r)));
                    all.map(|((&k, x), (&j, y))| x * a.get(k as usize, j as usize) * y).sum()
                };
                assert!((form((p, g), (q, h)) - 1.0).abs() <= 1e-10, "{name} {delta}, row {i}");
                if delta == 0.0 {
                    let scale = a.get(i, i).abs().sqrt().max(1.0);
                    for &j in &p[..p.len() - 1] {
                        assert!(form((p, g), (&[j], &[1.0])).abs() <= 1e-10 * scale, "{name}, row {i}");
                        assert!(form((&[j], &[1.0]), (q, h)).abs() <= 1e-10 * scale, "{name}, column {i}");
                    }
                }
            }
        }
    }
}

/// Of a symmetric definite matrix a pair is G and its transpose.
#[test]
fn a_pair_of_a_symmetric_matrix_is_one_factor() {
    let a = problem("fem2d:14");
    let (one, two) = (factor(&a, 1, (0.0, 2, 0.0)), pair(&a, 3, (2, 0.0)));
    assert_eq!(one.g().pattern(), two.g().pattern());
    for (one, two) in [(one.g(), two.g()), (one.second(), two.second())] {
        let largest = one.values().iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(one.values().iter().zip(two.values()).all(|(x, y)| (x - y).abs() <= 1e-12 * largest));
    }
}

/// BiCGStab and GMRES take fewer iterations than with the diagonal, in every storage, with the same bits on any number of threads.
#[test]
fn pairs_precondition_what_is_not_symmetric() {
    for (name, method) in [("convection3d:24", Method::BiCgStab), ("atmosmod:16", Method::Gmres(30))] {
        let a = problem(name);
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
        let solve = |kind: &str, layout, threads| {
            let solver = Solver::new().method(method).layout(layout).threads(threads);
            let solution = solver.preconditioner(kind.parse().unwrap()).solve(&a, &b).unwrap();
            (solution.report.require_converged().unwrap().iterations, solution.x)
        };
        let (diagonal, _) = solve("jacobi", Layout::Auto, 1);
        for kind in ["fsai(0,2)", "afsai(3,3)"] {
            for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
                let one = solve(kind, layout, 1);
                assert!(one.0 < diagonal, "{name} {kind}: {} {diagonal}", one.0);
                assert!((2..=8).all(|threads| solve(kind, layout, threads).1 == one.1), "{name} {kind}");
            }
        }
    }
}
