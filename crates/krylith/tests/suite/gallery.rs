//! The gallery: matrices by hand, counts, symmetry, definiteness, the same bits on any number of threads.

use krylith::block::{BlockSize, natural_block};
use krylith::gallery::{Problem, problems, random_vector};
use krylith::matrix::Triangle;
use krylith::plan::{MANY_CORE, REFERENCE};
use krylith::schedule::Wavefronts;
use krylith::sparsify::Sparsify;
use krylith::{Csr, Method, Solver};
use proptest::prelude::*;

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

fn matrix(text: &str) -> Csr<f64> {
    problem(text).generate().unwrap()
}

fn dense(a: &Csr<f64>) -> Vec<Vec<f64>> {
    (0..a.nrows()).map(|i| (0..a.ncols()).map(|j| a.get(i, j)).collect()).collect()
}

/// The outputs of SplitMix64 started at 0, as other implementations print them.
#[test]
fn the_random_vector_is_that_of_splitmix64() {
    let outputs: [u64; 3] = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
    let expected = outputs.map(|h| 2.0 * (h >> 11) as f64 / (1u64 << 53) as f64 - 1.0);
    assert_eq!(random_vector(3), expected);
    let long = random_vector(100_000);
    assert_eq!(&long[..3], expected);
    assert!(long.iter().all(|v| (-1.0..1.0).contains(v)));
    // Mean 0 and variance 1/3 within four standard deviations of their estimates.
    let n = long.len() as f64;
    let (mean, square) = (long.iter().sum::<f64>() / n, long.iter().map(|v| v * v).sum::<f64>() / n);
    assert!(
        mean.abs() < 4.0 / (3.0 * n).sqrt() && (square - 1.0 / 3.0).abs() < 4.0 * (4.0 / 45.0 / n).sqrt()
    );
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| random_vector(100_000)), long);
}

/// One small problem of every name, of unequal sides.
fn small() -> Vec<Problem> {
    let sizes = [vec![], vec![7, 5], vec![5, 4, 3]];
    problems().iter().map(|info| Problem::new(info.name, &sizes[info.dims() - 1]).unwrap()).collect()
}

/// The first row whose pivot is not positive in a dense Cholesky factorization.
fn cholesky(mut a: Vec<Vec<f64>>) -> Result<(), usize> {
    let n = a.len();
    for j in 0..n {
        if a[j][j] <= 0.0 || a[j][j].is_nan() {
            return Err(j);
        }
        let root = a[j][j].sqrt();
        let column: Vec<f64> = (0..n).map(|i| a[i][j] / root).collect();
        for i in j + 1..n {
            for k in j + 1..=i {
                a[i][k] -= column[i] * column[k];
            }
        }
    }
    Ok(())
}

/// The least pivot of Gaussian elimination with row exchanges, relative to the largest entry.
fn least_pivot(mut a: Vec<Vec<f64>>) -> f64 {
    let (n, largest) = (a.len(), a.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs())));
    let mut least = f64::INFINITY;
    for j in 0..n {
        let best = (j..n).max_by(|&i, &k| a[i][j].abs().total_cmp(&a[k][j].abs())).unwrap();
        a.swap(j, best);
        let pivot = a[j].clone();
        least = least.min(pivot[j].abs());
        for row in &mut a[j + 1..] {
            let factor = row[j] / pivot[j];
            for k in j..n {
                row[k] -= factor * pivot[k];
            }
        }
    }
    least / largest
}

/// The first row whose pivot is not positive in IC(0): L has the pattern of the lower triangle of A,
/// lᵢⱼ = (aᵢⱼ − Σ lᵢₖ lⱼₖ)/lⱼⱼ.
fn ic0(a: &Csr<f64>) -> Result<(), usize> {
    let mut l = a.view().triangle(Triangle::Lower).unwrap();
    let pattern = l.pattern().clone();
    let (row_ptr, columns) = (pattern.row_ptr(), pattern.col_idx());
    // Where the entries of the current row are, by column.
    let mut place = vec![usize::MAX; a.nrows()];
    for i in 0..a.nrows() {
        let (start, diagonal) = (row_ptr[i], row_ptr[i + 1] - 1);
        let values = l.values_mut();
        for e in start..=diagonal {
            place[columns[e] as usize] = e;
        }
        for e in start..diagonal {
            let j = columns[e] as usize;
            let own = row_ptr[j + 1] - 1;
            for f in row_ptr[j]..own {
                if let Some(&factor) = values.get(place[columns[f] as usize]) {
                    values[e] -= factor * values[f];
                }
            }
            values[e] /= values[own];
            values[diagonal] -= values[e] * values[e];
        }
        if values[diagonal] <= 0.0 || values[diagonal].is_nan() {
            return Err(i);
        }
        values[diagonal] = values[diagonal].sqrt();
        for e in start..=diagonal {
            place[columns[e] as usize] = usize::MAX;
        }
    }
    Ok(())
}

#[test]
fn poisson_by_hand() {
    let expected =
        [[4.0, -1.0, -1.0, 0.0], [-1.0, 4.0, 0.0, -1.0], [-1.0, 0.0, 4.0, -1.0], [0.0, -1.0, -1.0, 4.0]];
    assert_eq!(dense(&matrix("poisson2d:2")), expected);
    assert_eq!(dense(&matrix("poisson2d:2x1")), [[4.0, -1.0], [-1.0, 4.0]]);
    assert_eq!(dense(&matrix("poisson3d:1x1x2")), [[6.0, -1.0], [-1.0, 6.0]]);
    assert_eq!(dense(&matrix("poisson3d:1")), [[6.0]]);
}

#[test]
fn convection_by_hand() {
    // h = 1/2, 1/2, 1/3: v h = 100, 70, 80/3.
    let c = 80.0 * (1.0 / 3.0);
    let d = (2.0 + 100.0) + (2.0 + 70.0) + (2.0 + c);
    assert_eq!(dense(&matrix("convection3d:1x1x2")), [[d, -1.0], [-(1.0 + c), d]]);
}

#[test]
fn hpcg_by_hand() {
    let a = matrix("hpcg:3");
    assert!(a.diagonal().unwrap().iter().all(|&d| d == 26.0));
    let (columns, values) = a.row(13);
    assert_eq!(columns, (0..27).collect::<Vec<u32>>());
    assert_eq!(values.iter().sum::<f64>(), 0.0);
    assert_eq!(a.row(0).0, [0, 1, 3, 4, 9, 10, 12, 13]);
}

#[test]
fn counts_of_poisson_and_hpcg() {
    for n in [1, 2, 3, 10, 21] {
        assert_eq!(matrix(&format!("poisson2d:{n}")).nnz(), 5 * n * n - 4 * n);
        assert_eq!(matrix(&format!("poisson3d:{n}")).nnz(), 7 * n * n * n - 6 * n * n);
        assert_eq!(matrix(&format!("hpcg:{n}")).nnz(), (3 * n - 2).pow(3));
    }
}

#[test]
fn stand_ins_have_the_published_sizes() {
    for (name, rows, nnz) in [
        ("ecology", 999_999, 4_995_991),
        ("parabolic", 525_825, 3_674_625),
        ("apache", 715_176, 4_817_870),
        ("atmosmod", 1_270_432, 8_814_880),
        ("pflow", 742_500, 34_455_952),
    ] {
        assert_eq!((problem(name).rows(), problem(name).nnz_estimate()), (rows, nnz), "{name}");
        let a = matrix(name);
        assert_eq!((a.nrows() as u64, a.nnz() as u64), (rows, nnz), "{name}");
    }
    for (name, rows, nnz) in [("thermal", 1_228_045.0, 8_580_313.0), ("circuit", 1_585_478.0, 7_660_826.0)] {
        let a = matrix(name);
        let near = |found: usize, published: f64| (found as f64 / published - 1.0).abs() < 2e-3;
        assert!(near(a.nrows(), rows) && near(a.nnz(), nnz), "{name}: {} {}", a.nrows(), a.nnz());
        assert!(a.symmetry().symmetric, "{name}");
    }
    for (name, rows, nnz) in [
        ("offshore", 259_789.0, 4_242_673.0),
        ("shell", 504_855.0, 17_562_051.0),
        ("thermomech", 204_316.0, 2_846_228.0),
        ("cage", 445_315.0, 7_479_343.0),
    ] {
        let a = matrix(name);
        let within =
            |found: usize, published: f64, bound: f64| (found as f64 / published - 1.0).abs() < bound;
        let near = within(a.nrows(), rows, 0.01) && within(a.nnz(), nnz, 0.1);
        assert!(near, "{name}: {} {}", a.nrows(), a.nnz());
    }
}

#[test]
fn estimates_hold() {
    for problem in small() {
        let a = problem.generate().unwrap();
        assert_eq!(a.nrows() as u64, problem.rows(), "{problem}");
        let bound = ["fem2d", "thermal", "circuit", "graph-laplacian"].contains(&problem.info().name);
        let (nnz, estimate) = (a.nnz() as u64, problem.nnz_estimate());
        assert!(if bound { nnz <= estimate } else { nnz == estimate }, "{problem}: {nnz} {estimate}");
    }
}

/// Problems with several unknowns per point, and how many.
const SYSTEMS: [(&str, usize); 3] = [("navierstokes3d", 4), ("euler3d", 5), ("cahnhilliard3d", 2)];

#[test]
fn systems_are_nonsymmetric_and_regular() {
    for (name, _) in SYSTEMS {
        for size in [[5, 4, 3], [1, 1, 1], [2, 1, 3], [1, 7, 2]] {
            let a = Problem::new(name, &size).unwrap().generate().unwrap();
            assert!(a.symmetry().pattern, "{name}");
            assert!(least_pivot(dense(&a)) > 1e-2, "{name} {size:?}: {}", least_pivot(dense(&a)));
        }
        assert!(!matrix(&format!("{name}:5x4x3")).symmetry().symmetric, "{name}");
    }
    // Of the flow even the symmetric part is positive definite.
    let a = dense(&matrix("navierstokes3d:5x4x3"));
    let part = |i: usize| (0..a.len()).map(|j| 0.5 * (a[i][j] + a[j][i])).collect();
    assert_eq!(cholesky((0..a.len()).map(part).collect()), Ok(()));
}

/// Every neighbour in the grid has its whole block: pairs of points of a cube of side n, times the square.
#[test]
fn systems_have_whole_blocks() {
    for n in [1usize, 2, 3, 6, 9] {
        let two = n.saturating_sub(2);
        let star = n.pow(3) + 6 * n * n * (n - 1) + 6 * n * n * two;
        let diamond = star + 12 * n * (n - 1) * (n - 1);
        let pairs = [(3 * n - 2).pow(3), star, diamond];
        for ((name, unknowns), pairs) in SYSTEMS.into_iter().zip(pairs) {
            let a = matrix(&format!("{name}:{n}"));
            assert_eq!(a.nnz(), unknowns * unknowns * pairs, "{name}:{n}");
            if n > 3 {
                assert_eq!(natural_block(a.pattern()), BlockSize { size: unknowns, fill: 1.0 }, "{name}:{n}");
            }
        }
    }
}

/// What the systems are for: neither trivial nor out of reach. Block and scalar factors are the same up to rounding.
#[test]
fn systems_are_solved_with_ilu0() {
    for ((name, _), iterations) in SYSTEMS.into_iter().zip([12, 16, 22]) {
        let a = matrix(&format!("{name}:20"));
        let mut b = vec![0.0; a.nrows()];
        a.mul_vec(&vec![1.0; a.nrows()], &mut b).unwrap();
        for precond in ["ilu0", "bilu0"] {
            let solver = Solver::new().method(Method::Gmres(30)).preconditioner(precond.parse().unwrap());
            let report = solver.rtol(1e-7).recover(false).solve(&a, &b).unwrap().report;
            assert!(report.require_converged().is_ok(), "{name} {precond}");
            assert_eq!(report.iterations, iterations, "{name} {precond}");
        }
    }
}

/// Constants are in the null spaces of these.
const SINGULAR: [&str; 4] = ["neumann2d", "neumann3d", "elasticity3d-free", "graph-laplacian"];

#[test]
fn symmetric_positive_definite_or_dominant() {
    let others = |problem: &Problem| {
        SYSTEMS.iter().map(|(name, _)| *name).chain(["thermomech"]).all(|name| name != problem.info().name)
    };
    for problem in small().into_iter().filter(others) {
        let a = problem.generate().unwrap();
        let symmetry = a.symmetry();
        assert!(symmetry.pattern, "{problem}");
        if ["convection3d", "atmosmod", "cage"].contains(&problem.info().name) {
            assert!(!symmetry.symmetric, "{problem}");
            for (i, row) in dense(&a).iter().enumerate() {
                let others: f64 = row.iter().map(|v| v.abs()).sum::<f64>() - row[i];
                assert!(row[i] > others * (1.0 - 1e-14), "{problem}");
            }
        } else {
            assert!(symmetry.symmetric, "{problem}");
            match SINGULAR.contains(&problem.info().name) {
                true => {
                    let sums = dense(&a).iter().map(|row| row.iter().sum::<f64>().abs()).fold(0.0, f64::max);
                    assert!(
                        sums < 1e-13 * a.values().iter().fold(0.0, |m: f64, v| m.max(v.abs())),
                        "{problem}"
                    );
                }
                false => assert_eq!(cholesky(dense(&a)), Ok(()), "{problem}"),
            }
        }
    }
}

#[test]
fn symmetric_at_larger_sizes() {
    for text in ["jump3d:30", "apache:40x30x8", "ecology:150", "elasticity2d:40", "elasticity3d:10"] {
        assert!(matrix(text).symmetry().symmetric, "{text}");
    }
    for text in [
        "fem2d:200",
        "thermal:200",
        "circuit:200",
        "parabolic:100x50",
        "pflow:20x21x9",
        "offshore:12",
        "shell:30",
    ] {
        assert!(matrix(text).symmetry().symmetric, "{text}");
    }
}

/// What the elasticity problems are for.
#[test]
fn ic0_breaks_down_on_elasticity_and_not_on_poisson() {
    for n in (20..=200).step_by(20) {
        assert!(ic0(&matrix(&format!("elasticity2d:{n}"))).is_err(), "{n}");
    }
    for n in (8..=30).step_by(11) {
        assert!(ic0(&matrix(&format!("elasticity3d:{n}"))).is_err(), "{n}");
    }
    for text in ["poisson3d:10", "hpcg:8", "jump3d:10", "fem2d:30"] {
        assert_eq!(ic0(&matrix(text)), Ok(()), "{text}");
    }
    // Positive definite all the same.
    for text in ["elasticity2d:16", "elasticity3d:5"] {
        assert_eq!(cholesky(dense(&matrix(text))), Ok(()), "{text}");
    }
}

#[test]
fn same_bits_on_any_number_of_threads() {
    let on = |threads: usize, problem: &Problem| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| problem.generate().unwrap())
    };
    for info in problems() {
        // Several pieces of parallel work each.
        let problem = Problem::new(info.name, if info.dims() == 2 { &[120] } else { &[24] }).unwrap();
        let (one, four) = (on(1, &problem), on(4, &problem));
        assert_eq!(one.pattern(), four.pattern(), "{problem}");
        let same = one.values().iter().zip(four.values()).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{problem}");
    }
}

#[test]
fn wavefronts_of_grids() {
    let count = |text: &str| Wavefronts::new(matrix(text).pattern(), Triangle::Lower).unwrap().count();
    for n in [1, 2, 9, 20] {
        assert_eq!(count(&format!("poisson2d:{n}")), 2 * n - 1);
        assert_eq!(count(&format!("poisson3d:{n}")), 3 * n - 2);
        // The wavefront of cell (x, y, z) is x + 2 y + 4 z.
        assert_eq!(count(&format!("hpcg:{n}")), 7 * n - 6);
    }
}

#[test]
fn the_list_is_complete() {
    for info in problems() {
        assert!(!info.name.is_empty() && !info.description.is_empty() && !info.formula.is_empty());
        let problem = Problem::new(info.name, &[]).unwrap();
        assert_eq!(problem.size(), info.default_size);
        assert_eq!(problem.to_string().parse::<Problem>().unwrap(), problem);
    }
}

proptest! {
    #[test]
    fn any_text_is_a_problem_or_an_error(text in ".*") {
        let _ = text.parse::<Problem>();
    }

    #[test]
    fn sizes_are_taken_or_refused(name in "poisson2d|hpcg|elasticity3d|euler3d|cahnhilliard3d|ecology|circuit", size in "[0-9x:]{0,24}") {
        if let Ok(problem) = format!("{name}:{size}").parse::<Problem>() {
            prop_assert!(problem.rows() > 0 && problem.rows() < 1 << 32);
            prop_assert!(problem.nnz_estimate() >= problem.rows());
            prop_assert_eq!(problem.to_string().parse::<Problem>().unwrap(), problem);
        }
    }
}

/// What `plan` shows is what a solve follows: choices, reasons, stores that were asked, sparsification. A plan shows facts and predictions besides that a solve
/// does not need.
#[test]
fn plans_are_those_of_solves() {
    let machines = [REFERENCE, MANY_CORE];
    for a in small().iter().map(|p| p.generate().unwrap()) {
        let b: Vec<f64> = (0..a.nrows()).map(|i| (i % 7) as f64 - 3.0).collect();
        for (precond, machine) in ["auto", "ic1", "fsai", "ilut(10,0.01)"].iter().zip(machines.iter().cycle())
        {
            for sparsify in [None, Some(Sparsify::auto())] {
                let mut solver =
                    Solver::new().machine(machine.clone()).preconditioner(precond.parse().unwrap());
                if let Some(sparsify) = sparsify {
                    solver = solver.sparsify(sparsify);
                }
                let mut plan = solver.plan(&a).unwrap();
                let report = solver.max_iterations(5).solve(&a, &b).unwrap().report;
                (plan.predicted_entries, plan.predicted_bytes) = (None, None);
                assert!(!plan.considered.is_empty());
                assert_eq!(plan, report.plan);
            }
        }
    }
}
