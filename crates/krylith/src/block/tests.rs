//! Block factors beside scalar ones, exact ones and each other.

use super::*;
use crate::elimination::{Incomplete, IncompleteFactor};
use crate::error::SetupError;
use crate::gallery::Problem;
use crate::krylov::{Cg, Status, System};
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::Jacobi;
use crate::schedule::Schedule;
use crate::space::Threads;
use crate::stop::{IterationLimit, Residual, StopReason};

pub(super) const KINDS: [BlockKind; 5] =
    [BlockKind::Jacobi, BlockKind::Ic0, BlockKind::Ilu0, BlockKind::Dic, BlockKind::Dilu];

pub(super) fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// `nodes` nodes with `size` unknowns each, coupled with up to `near` others; symmetric positive definite.
pub(super) fn blocky(size: usize, nodes: usize, near: usize) -> Csr<f64> {
    let mut couplings = std::collections::BTreeSet::new();
    for i in 0..nodes {
        couplings.insert((i, i));
        for k in 1..near {
            let j = (i + k * k * 37 + i * k % 11) % nodes;
            couplings.extend([(i, j), (j, i)]);
        }
    }
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, j) in couplings {
        for r in 0..size {
            for c in 0..size {
                let (row, column) = (i * size + r, j * size + c);
                let (a, b) = (row.min(column), row.max(column));
                let diagonal = if row == column { (4 * near * size) as f64 } else { 0.0 };
                rows.push(row as u32);
                columns.push(column as u32);
                values.push(((a * 31 + b * 7) as f64).sin() + diagonal);
            }
        }
    }
    Csr::from_triplets(nodes * size, nodes * size, &rows, &columns, &values).unwrap()
}

fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37) as f64).sin()).collect()
}

/// Runs a check for every size.
macro_rules! every_size {
    ($check:ident) => {
        $check::<1>();
        $check::<2>();
        $check::<3>();
        $check::<4>();
        $check::<5>();
        $check::<6>();
        $check::<7>();
        $check::<8>();
    };
}

fn factor<const B: usize>(
    space: &Threads,
    a: &Bsr<B>,
    recipe: BlockRecipe,
) -> Result<BlockFactor<B>, SetupError> {
    recipe.analyze(space, a)?.factor(space, a)
}

fn applied<M: LinearOperator<Threads>>(space: &Threads, m: &M, x: &Vec<f64>) -> Vec<f64> {
    let (mut z, mut scratch) = (vec![f64::NAN; x.len()], m.scratch(space).unwrap());
    // Twice: counters of progress go on from one run to the next.
    m.apply(space, x, &mut z, &mut scratch).unwrap();
    z.fill(f64::NAN);
    m.apply(space, x, &mut z, &mut scratch).unwrap();
    z
}

fn largest_difference(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, |a, b| if b.is_nan() { b } else { a.max(b) })
}

/// A dense matrix of order n.
fn dense_matrix(n: usize, entry: impl Fn(usize, usize) -> f64 + Sync) -> Csr<f64> {
    let fill = |i: usize, columns: &mut [u32], values: &mut [f64]| {
        for j in 0..n {
            (columns[j], values[j]) = (j as u32, entry(i, j));
        }
    };
    Csr::from_rows(n, n, |_| n, fill).unwrap()
}

/// A block-dense pattern has no fill to drop: M = A, and M⁻¹ A x = x.
fn exact<const B: usize>() {
    let space = Threads::new(2);
    let n = 6 * B;
    // Large entries beside the diagonal: rows within blocks must be exchanged.
    let beside = |i: usize, j: usize| j == i / B * B + (i + 1) % B;
    let general =
        dense_matrix(n, |i, j| ((i * n + j * (j + 5)) as f64).sin() + if beside(i, j) { 60.0 } else { 0.0 });
    let definite =
        dense_matrix(n, |i, j| (((i + j) * 31 + i * j) as f64).sin() + if i == j { 60.0 } else { 0.0 });
    for (a, kind) in [(general, BlockKind::Ilu0), (definite, BlockKind::Ic0)] {
        let m = factor(&space, &Bsr::<B>::new(&space, &a).unwrap(), BlockRecipe::new(kind)).unwrap();
        let x = wave(n);
        let mut b = vec![0.0; n];
        a.mul_vec(&x, &mut b).unwrap();
        let error = largest_difference(&applied(&space, &m, &b), &x);
        assert!(error < 1e-13, "B = {B}, {kind:?}: {error:e}");
    }
}

#[test]
fn a_dense_block_pattern_gives_the_exact_factor() {
    every_size!(exact);
}

/// (I + L) D (I + U) of blocks equals A wherever A has a block.
fn equals_the_matrix<const B: usize>() {
    let space = Threads::new(1);
    let a = blocky(B, 40, 4);
    let blocks = Bsr::<B>::new(&space, &a).unwrap();
    let n = a.nrows();
    for kind in [BlockKind::Ic0, BlockKind::Ilu0] {
        let m = factor(&space, &blocks, BlockRecipe::new(kind)).unwrap();
        let ((lower, upper), (l, inverse, u)) = (m.patterns(), m.parts());
        let dense = |pattern: &crate::matrix::Pattern, values: &[f64], i: usize, j: usize| {
            let place = pattern.find(i / B, j / B).map(|k| values[(k * B + i % B) * B + j % B]);
            place.unwrap_or(f64::from(i == j))
        };
        let d: Vec<f64> = inverse
            .chunks(B * B)
            .flat_map(|block| {
                let block = std::array::from_fn(|r| std::array::from_fn(|s| block[r * B + s]));
                dense::invert_one::<B>(dense::invert_general, &block).unwrap().concat()
            })
            .collect();
        // D (I + U), then all of it.
        let mut du = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let row = i / B * B;
                du[i * n + j] = (0..B).map(|s| d[i * B + s] * dense(upper, u, row + s, j)).sum();
            }
        }
        for i in 0..n {
            for &j in a.row(i).0 {
                let j = j as usize;
                let entry: f64 = (0..n).map(|k| dense(lower, l, i, k) * du[k * n + j]).sum();
                assert!((entry - a.get(i, j)).abs() < 1e-12, "B = {B}, {kind:?}, ({i}, {j})");
            }
        }
        if kind == BlockKind::Ic0 {
            // U = Lᵀ and D⁻¹ is symmetric, to the bit.
            let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
            for (i, j) in pairs.filter(|&(i, j)| i / B > j / B) {
                assert_eq!(dense(lower, l, i, j).to_bits(), dense(upper, u, j, i).to_bits());
            }
            for (k, &v) in inverse.iter().enumerate() {
                let (block, r, s) = (k / (B * B), k / B % B, k % B);
                assert_eq!(v.to_bits(), inverse[(block * B + s) * B + r].to_bits());
            }
        }
    }
}

#[test]
fn factors_equal_the_matrix_on_its_block_pattern() {
    every_size!(equals_the_matrix);
}

/// M = (D + L) D⁻¹ (D + U) with the blocks of A beside the diagonal, where D comes from the recursion Dᵢ = Aᵢᵢ − Σ Aᵢₖ Dₖ⁻¹ Aₖᵢ.
fn updates_the_diagonal_alone<const B: usize>() {
    let (space, nodes) = (Threads::new(1), 30);
    let symmetric = blocky(B, nodes, 4);
    let mut general = symmetric.clone();
    general.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v += ((k * 13) as f64).sin());
    for (a, kind) in [(symmetric, BlockKind::Dic), (general, BlockKind::Dilu)] {
        let m = factor(&space, &Bsr::<B>::new(&space, &a).unwrap(), BlockRecipe::new(kind)).unwrap();
        let block = |i: usize, j: usize| -> [[f64; B]; B] {
            std::array::from_fn(|r| std::array::from_fn(|s| a.get(i * B + r, j * B + s)))
        };
        let product = |x: [[f64; B]; B], y: [[f64; B]; B]| -> [[f64; B]; B] {
            std::array::from_fn(|r| std::array::from_fn(|s| (0..B).map(|k| x[r][k] * y[k][s]).sum()))
        };
        let (mut d, mut inverse) = (vec![], vec![]);
        for i in 0..nodes {
            let mut pivot = block(i, i);
            for k in 0..i {
                let update = product(product(block(i, k), inverse[k]), block(k, i));
                (0..B * B).for_each(|e| pivot[e / B][e % B] -= update[e / B][e % B]);
            }
            d.push(pivot);
            inverse.push(dense::invert_one::<B>(dense::invert_general, &pivot).unwrap());
        }
        // M x, the factors applied one after the other.
        let x = wave(nodes * B);
        let times = |b: [[f64; B]; B], x: &[f64], j: usize, r: usize| -> f64 {
            (0..B).map(|s| b[r][s] * x[j * B + s]).sum()
        };
        let triangle = |x: &[f64], upper: bool| -> Vec<f64> {
            (0..nodes * B)
                .map(|row| {
                    let (i, r) = (row / B, row % B);
                    let others = if upper { i + 1..nodes } else { 0..i };
                    times(d[i], x, i, r) + others.map(|j| times(block(i, j), x, j, r)).sum::<f64>()
                })
                .collect()
        };
        let y = triangle(&x, true);
        let y: Vec<f64> = (0..nodes * B).map(|row| times(inverse[row / B], &y, row / B, row % B)).collect();
        let error = largest_difference(&applied(&space, &m, &triangle(&y, false)), &x);
        assert!(error < 1e-13, "B = {B}, {kind:?}: {error:e}");
    }
}

#[test]
fn dic_and_dilu_update_the_diagonal_alone() {
    every_size!(updates_the_diagonal_alone);
}

#[test]
fn blocks_of_one_are_the_scalar_factors() {
    let space = Threads::new(2);
    for (a, kind) in [
        (problem("poisson3d:9"), BlockKind::Ic0),
        (problem("convection3d:9"), BlockKind::Ilu0),
        (problem("convection3d:9"), BlockKind::Jacobi),
        (problem("hpcg:9"), BlockKind::Dic),
        (problem("convection3d:9"), BlockKind::Dilu),
    ] {
        let m = factor(&space, &Bsr::<1>::new(&space, &a).unwrap(), BlockRecipe::new(kind)).unwrap();
        let x = wave(a.nrows());
        let expected = match kind.form() {
            Some(form) => {
                let scalar =
                    Incomplete::new(form, 0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
                assert_eq!((scalar.parts().0.values(), scalar.parts().1), (m.parts().0, m.parts().1));
                assert_eq!(scalar.parts().2.values(), m.parts().2);
                applied(&space, &scalar, &x)
            }
            None => applied(
                &space,
                &Jacobi::default().analyze(&space, &a).unwrap().factor(&space, &a).unwrap(),
                &x,
            ),
        };
        let error = largest_difference(&applied(&space, &m, &x), &expected);
        assert!(error < 1e-14, "{kind:?}: {error:e}");
    }
}

fn same_bits<const B: usize>() {
    let a = blocky(B, 900, 5);
    let x = wave(a.nrows());
    for kind in KINDS {
        let run = |threads, schedule| {
            let space = Threads::new(threads);
            let recipe = BlockRecipe { schedule, ..BlockRecipe::new(kind) };
            let m = factor(&space, &Bsr::<B>::new(&space, &a).unwrap(), recipe).unwrap();
            let (l, inverse, u) = m.parts();
            [l, inverse, u, &applied(&space, &m, &x)].concat()
        };
        let alone = run(1, Schedule::Auto);
        assert!(alone.iter().all(|v| v.is_finite()));
        for threads in [2, 3, 8] {
            for schedule in [Schedule::Levels, Schedule::PointToPoint] {
                assert!(run(threads, schedule) == alone, "B = {B}, {kind:?}, {threads}, {schedule:?}");
            }
        }
    }
}

#[test]
fn factor_and_sweeps_are_the_same_on_every_plan_and_number_of_threads() {
    every_size!(same_bits);
}

/// Iterations of CG on A x = A·1 to 1e-8, and x.
fn cg<A: LinearOperator<Threads>, M: LinearOperator<Threads>>(
    space: &Threads,
    a: &A,
    m: &M,
) -> (usize, Vec<f64>) {
    let system = System { space, a, m };
    let mut b = vec![0.0; a.domain()];
    a.apply(space, &vec![1.0; a.domain()], &mut b, &mut a.scratch(space).unwrap()).unwrap();
    let mut x = vec![0.0; a.domain()];
    let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(5000));
    let finish = Cg::new(system).unwrap().solve(system, &b, &mut x, &mut stop, &mut ()).unwrap();
    assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
    (finish.iterations, x)
}

/// What is tried one after the other where a factor breaks down.
const SHIFTS: [f64; 5] = [0.0, 1e-3, 1e-2, 0.1, 1.0];

/// A with its diagonal multiplied by 1 + shift.
fn shifted(a: &Csr<f64>, shift: f64) -> Csr<f64> {
    let mut a = a.clone();
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] *= 1.0 + shift;
    }
    a
}

/// The scalar factor of the shifted matrix.
fn scalar_ic(space: &Threads, a: &Csr<f64>, shift: f64) -> Option<IncompleteFactor<f64>> {
    let a = shifted(a, shift);
    Incomplete::ic(0).analyze(space, &a).unwrap().factor(space, &a).ok()
}

/// The block factor with the smallest of [`SHIFTS`] for which it exists.
fn block_ic(space: &Threads, a: &Bsr<3>) -> (f64, BlockFactor<3>) {
    let recipe = |shift| BlockRecipe { shift, ..BlockRecipe::new(BlockKind::Ic0) };
    SHIFTS.iter().find_map(|&shift| Some((shift, factor(space, a, recipe(shift)).ok()?))).unwrap()
}

/// All blocks of elasticity are full, so block IC(0) is the scalar one: the same breakdown, shift, operator and iterations.
#[test]
fn where_blocks_are_full_the_factor_is_the_scalar_one() {
    let (a, space) = (problem("elasticity3d:8"), Threads::new(2));
    let blocks = Bsr::<3>::new(&space, &a).unwrap();
    let scalar_error = Incomplete::ic(0).analyze(&space, &a).unwrap().factor(&space, &a).map(|_| ());
    let error = factor(&space, &blocks, BlockRecipe::new(BlockKind::Ic0)).map(|_| ());
    let (
        Err(SetupError::BadPivot { row, value }),
        Err(SetupError::BadPivot { row: scalar_row, value: scalar_value }),
    ) = (&error, &scalar_error)
    else {
        panic!("{error:?} {scalar_error:?}")
    };
    assert!(row == scalar_row && (value - scalar_value).abs() < 1e-13, "{error:?} {scalar_error:?}");

    let (shift, m) = block_ic(&space, &blocks);
    let found = SHIFTS.iter().find_map(|&shift| Some((shift, scalar_ic(&space, &a, shift)?)));
    let (scalar_shift, scalar) = found.unwrap();
    assert_eq!(shift, scalar_shift);
    let x = wave(a.nrows());
    let (z, expected) = (applied(&space, &m, &x), applied(&space, &scalar, &x));
    let size = expected.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    assert!(largest_difference(&z, &expected) < 1e-13 * size);
    let (iterations, scalar_iterations) = (cg(&space, &blocks, &m).0, cg(&space, &a, &scalar).0);
    assert!(iterations.abs_diff(scalar_iterations) <= 1, "{iterations} {scalar_iterations}");

    // ILU(0), with the same shift: without one its triangles are too ill conditioned to compare.
    let recipe = BlockRecipe { shift, ..BlockRecipe::new(BlockKind::Ilu0) };
    let (m, a) = (factor(&space, &blocks, recipe).unwrap(), shifted(&a, shift));
    let scalar = Incomplete::ilu(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
    let (z, expected) = (applied(&space, &m, &x), applied(&space, &scalar, &x));
    assert!(largest_difference(&z, &expected) < 1e-13 * size);
}

/// The scalar IC(0) breaks down here, and a solver that then falls back takes Jacobi.
#[test]
fn block_ic_solves_elasticity_in_fewer_iterations_than_jacobi() {
    let a = problem("elasticity3d:8");
    let run = |threads| {
        let space = Threads::new(threads);
        let blocks = Bsr::<3>::new(&space, &a).unwrap();
        let (shift, m) = block_ic(&space, &blocks);
        let (iterations, x) = cg(&space, &blocks, &m);
        (shift, iterations, x)
    };
    let (shift, iterations, x) = run(1);
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-4));
    for threads in [2, 3, 8] {
        assert!(run(threads) == (shift, iterations, x.clone()), "{threads} threads");
    }
    let space = Threads::new(2);
    let jacobi =
        cg(&space, &a, &Jacobi::default().analyze(&space, &a).unwrap().factor(&space, &a).unwrap()).0;
    let blocks = Bsr::<3>::new(&space, &a).unwrap();
    let block_jacobi = factor(&space, &blocks, BlockRecipe::new(BlockKind::Jacobi)).unwrap();
    let block_jacobi = cg(&space, &blocks, &block_jacobi).0;
    println!("block IC(0) {iterations} at {shift}, block Jacobi {block_jacobi}, Jacobi {jacobi}");
    assert!(iterations < block_jacobi && iterations < jacobi, "{iterations} {block_jacobi} {jacobi}");
}

/// [2 1; 1 2] beside [1 2; 2 1], which is not positive definite: step 1 has the pivot 1 − 4 = −3.
#[test]
fn of_several_bad_blocks_the_smallest_row_is_told() {
    let space = Threads::new(1);
    let values = [2.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 1.0];
    let (rows, columns) = ([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 2, 3, 2, 3]);
    let a = Csr::from_triplets(4, 4, &rows, &columns, &values).unwrap();
    let blocks = Bsr::<2>::new(&space, &a).unwrap();
    let error = factor(&space, &blocks, BlockRecipe::new(BlockKind::Ic0)).map(|_| ());
    assert_eq!(error, Err(SetupError::BadPivot { row: 3, value: -3.0 }));
    // 1 + shift = 4: [4 2; 2 4] is positive definite.
    let recipe = BlockRecipe { shift: 3.0, ..BlockRecipe::new(BlockKind::Ic0) };
    let m = factor(&space, &blocks, recipe).unwrap();
    assert_eq!(m.parts().1[4..], [4.0 / 12.0, -2.0 / 12.0, -2.0 / 12.0, 0.25 + 0.25 / 3.0]);
    // As a recipe for an analysis that goes on with another shift.
    let symbolic = BlockRecipe::new(BlockKind::Ic0).analyze(&space, &blocks).unwrap();
    let mut later = symbolic.allocate::<2>();
    assert!(later.refactor(&space, &blocks).is_err());
    later.set_shift(3.0);
    later.refactor(&space, &blocks).unwrap();
    assert_eq!(later.parts(), m.parts());

    let mut a = blocky(3, 700, 5);
    for row in [1000, 322, 1500] {
        let place = a.pattern().find(row, row).unwrap();
        a.values_mut()[place] = -500.0;
    }
    for threads in [1, 2, 4] {
        for schedule in [Schedule::Levels, Schedule::PointToPoint] {
            let space = Threads::new(threads);
            let recipe = BlockRecipe { schedule, ..BlockRecipe::new(BlockKind::Ic0) };
            let error = factor(&space, &Bsr::<3>::new(&space, &a).unwrap(), recipe).map(|_| ()).unwrap_err();
            let SetupError::BadPivot { row, value } = error else { panic!("{error}") };
            assert!(row == 322 && value < -500.0, "{row} {value}");
        }
    }
    for kind in [BlockKind::Jacobi, BlockKind::Ilu0] {
        let singular = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1.0, 2.0, 2.0, 4.0]).unwrap();
        let blocks = Bsr::<2>::new(&space, &singular).unwrap();
        let error = factor(&space, &blocks, BlockRecipe::new(kind)).map(|_| ());
        assert_eq!(error, Err(SetupError::BadPivot { row: 1, value: 0.0 }));
    }
    let hole = Csr::from_triplets(4, 4, &[0, 2], &[1, 0], &[1.0, 1.0]).unwrap();
    let blocks = Bsr::<2>::new(&space, &hole).unwrap();
    let error = BlockRecipe::new(BlockKind::Ilu0).analyze(&space, &blocks).map(|_| ());
    assert_eq!(error, Err(SetupError::MissingDiagonal { row: 2 }));
}

/// Where the diagonal is positive and the largest entry of its row, a shift multiplies it.
#[test]
fn a_shift_multiplies_a_large_diagonal() {
    let space = Threads::new(2);
    let a = problem("elasticity2d:9");
    let [shifted, a] = [shifted(&a, 4.0), a].map(|a| Bsr::<2>::new(&space, &a).unwrap());
    for kind in KINDS {
        let m = factor(&space, &a, BlockRecipe { shift: 4.0, ..BlockRecipe::new(kind) }).unwrap();
        let expected = factor(&space, &shifted, BlockRecipe::new(kind)).unwrap();
        assert_eq!(m.parts(), expected.parts(), "{kind:?}");
    }
}

#[test]
fn a_size_at_run_time_is_the_same() {
    let space = Threads::new(2);
    for size in 1..=8 {
        let a = blocky(size, 150, 4);
        let mut blocks = BlockMatrix::new(&space, &a, size).unwrap();
        assert_eq!((blocks.size(), blocks.nrows(), blocks.to_csr()), (size, a.nrows(), a.clone()));
        for kind in KINDS {
            let mut m = BlockPreconditioner::new(&space, &blocks, &BlockRecipe::new(kind)).unwrap();
            m.refactor(&space, &blocks).unwrap();
            assert!(m.bytes() > 8 * m.nnz() && m.kind() == kind);
            let (_, x) = cg(&space, &blocks, &m);
            assert!(largest_difference(&x, &vec![1.0; a.nrows()]) < 1e-6, "{size} {kind:?}");
        }
        let twice = Csr::with_pattern(a.pattern().clone(), a.values().iter().map(|v| 2.0 * v).collect());
        blocks.set(&space, twice.as_ref().unwrap()).unwrap();
        assert_eq!(blocks.to_csr(), twice.unwrap());
    }
    let a = blocky(2, 20, 3);
    let error = BlockMatrix::new(&space, &a, 9).map(|_| ());
    assert_eq!(error, Err(crate::error::MatrixError::BlockSize { size: 9 }.into()));
    let (two, one) = (BlockMatrix::new(&space, &a, 2).unwrap(), BlockMatrix::new(&space, &a, 1).unwrap());
    let mut m = BlockPreconditioner::new(&space, &two, &BlockRecipe::new(BlockKind::Ilu0)).unwrap();
    assert_eq!(m.refactor(&space, &one), Err(SetupError::PatternChanged));
}
