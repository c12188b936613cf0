//! Stencil matrices and their factors against compressed rows.

use super::*;
use crate::block::{BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe};
use crate::elimination::{Form, Incomplete, Kind, PreservedSums};
use crate::error::SetupError;
use crate::krylov::{EisenstatCg, SplitSystem};
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::space::Threads;

/// A number in (-1, 1) from two.
fn hash(a: usize, b: usize) -> f64 {
    let mut h =
        (a as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (b as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    h ^= h >> 29;
    h = h.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    h ^= h >> 32;
    (h >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A diagonally dominant matrix of whole blocks on a stencil; `keep` decides which blocks are there.
fn matrix(
    grid: Grid,
    stencil: &Stencil,
    dof: usize,
    symmetric: bool,
    keep: impl Fn(usize, usize) -> bool + Sync,
) -> Csr<f64> {
    let neighbours = |number: usize| {
        let point = grid.point(number);
        let mut there: Vec<usize> =
            stencil.offsets().iter().filter_map(|&o| grid.at(point, o)).map(|p| grid.number(p)).collect();
        there.retain(|&other| other == number || keep(number, other));
        there.sort_unstable();
        there
    };
    let rows = grid.points() * dof;
    let weight = (stencil.len() * dof) as f64;
    Csr::from_rows(
        rows,
        rows,
        |row| neighbours(row / dof).len() * dof,
        |row, columns, values| {
            for (k, other) in neighbours(row / dof).into_iter().enumerate() {
                for c in 0..dof {
                    let column = other * dof + c;
                    let (i, j) = if symmetric { (row.min(column), row.max(column)) } else { (row, column) };
                    columns[k * dof + c] = column as u32;
                    values[k * dof + c] = if row == column { weight + hash(i, j) } else { hash(i, j) };
                }
            }
        },
    )
    .unwrap()
}

fn everything(_: usize, _: usize) -> bool {
    true
}

fn vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| hash(i, 7)).collect()
}

fn close(found: &[f64], expected: &[f64], what: &str, tolerance: f64) {
    let scale = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * scale, "{what}: {f} and {e} at {i}");
    }
}

/// The stencils of the paper, and two of our own.
fn stencils() -> Vec<Stencil> {
    vec![
        Stencil::star(3, 1).unwrap(),
        Stencil::star(3, 2).unwrap(),
        Stencil::filled_star(3).unwrap(),
        Stencil::diamond(3, 2).unwrap(),
        Stencil::cube(3, 1).unwrap(),
        Stencil::new(vec![[0; 3], [-1, 0, 0], [3, -1, 0], [2, 2, -1], [1, 0, 0], [-2, 1, 0], [0, -2, 2]])
            .unwrap(),
        Stencil::new(vec![[0; 3], [0, 0, 1], [0, 3, 0], [1, -3, 0]]).unwrap(),
    ]
}

fn grids() -> Vec<Grid> {
    [[13, 11, 7], [40, 9, 3], [3, 20, 5], [9, 1, 6], [30, 17, 1], [70, 5, 1], [5, 1, 1], [2, 3, 9]]
        .iter()
        .map(|n| Grid::new(n).unwrap())
        .collect()
}

#[test]
fn a_product_is_that_of_the_rows() {
    for (grid, stencil) in grids().into_iter().flat_map(|g| stencils().into_iter().map(move |s| (g, s))) {
        for dof in [1, 2, 3, 5, 8] {
            let csr = matrix(grid, &stencil, dof, false, |i, j| hash(i, j) > -0.7);
            let space = Threads::new(3);
            let a = StencilMatrix::from_csr(&space, grid, &stencil, dof, &csr).unwrap();
            let x = vector(csr.nrows());
            let mut expected = vec![0.0; x.len()];
            csr.mul_vec(&x, &mut expected).unwrap();
            let (mut px, mut py, mut y) = (a.vector(), a.vector(), vec![0.0; x.len()]);
            py.fill(f64::NAN);
            a.gather(&space, &x, &mut px).unwrap();
            a.apply(&space, &px, &mut py, &mut ()).unwrap();
            a.scatter(&space, &py, &mut y).unwrap();
            close(&y, &expected, &format!("{grid} {stencil} {dof}"), 1e-13);
            // Padding is zero.
            let sum: f64 = py.iter().map(|v| v.abs()).sum();
            let own: f64 = y.iter().map(|v| v.abs()).sum();
            assert!((sum - own).abs() <= 1e-12 * own);
        }
    }
}

/// M⁻¹ x by rows.
fn by_rows(csr: &Csr<f64>, recipe: &Incomplete, x: &[f64]) -> Vec<f64> {
    let space = Threads::new(1);
    let f = recipe.analyze(&space, csr).unwrap().factor(&space, csr).unwrap();
    let mut z = vec![0.0; x.len()];
    f.apply(&space, &x.to_vec(), &mut z, &mut f.scratch(&space).unwrap()).unwrap();
    z
}

/// M⁻¹ x on the grid, after it was seen to be the same bits on several numbers of threads.
fn on_grid<S: crate::sliced::StorageScalar>(
    a: (Grid, &Stencil, usize),
    csr: &Csr<f64>,
    form: Form,
    level: usize,
    x: &[f64],
) -> Vec<f64> {
    let mut bits: Option<Vec<f64>> = None;
    for threads in [1, 2, 3, 8] {
        let space = Threads::new(threads);
        let filled = a.1.with_fill(level).unwrap();
        let arrangement = StencilMatrix::arrangement_for(a.0, &[a.1, &filled], a.2).unwrap();
        let mut a = StencilMatrix::zeros(&arrangement, a.1, a.2).unwrap();
        a.set(&space, csr).unwrap();
        let mut f = StencilSymbolic::new(&a, form, level, threads).and_then(|s| s.allocate::<S>()).unwrap();
        assert!(f.bytes() == StencilSymbolic::new(&a, form, level, threads).unwrap().predicted_bytes::<S>());
        f.refactor(&space, &a).unwrap();
        let mut scratch = f.scratch(&space).unwrap();
        let (mut r, mut z) = (a.vector(), a.vector());
        a.gather(&space, x, &mut r).unwrap();
        for _ in 0..2 {
            f.apply(&space, &r, &mut z, &mut scratch).unwrap();
            assert_eq!(*bits.get_or_insert_with(|| z.clone()), z, "{threads} threads");
        }
        if threads == 8 {
            let mut out = vec![0.0; x.len()];
            a.scatter(&space, &z, &mut out).unwrap();
            return out;
        }
    }
    unreachable!()
}

/// Every stencil and number of unknowns of the paper's table: the same preconditioner as by rows.
#[test]
fn factors_are_those_of_the_rows() {
    for (grid, stencil) in grids().into_iter().flat_map(|g| stencils().into_iter().map(move |s| (g, s))) {
        for dof in [1, 2, 4, 6, 8] {
            let csr = matrix(grid, &stencil, dof, false, everything);
            let x = vector(csr.nrows());
            let expected = by_rows(&csr, &Incomplete::ilu(0), &x);
            let found = on_grid::<f64>((grid, &stencil, dof), &csr, Form::LU, 0, &x);
            close(&found, &expected, &format!("{grid} {stencil} {dof}"), 1e-13);
        }
    }
}

#[test]
fn every_kind_of_factor_is_that_of_the_rows() {
    let grid = Grid::new(&[21, 13, 6]).unwrap();
    let recipes = [
        Incomplete::ic(0),
        Incomplete::ilu(0),
        Incomplete::mic(0, 0.9),
        Incomplete::milu(0, 0.9, PreservedSums::Rows),
        Incomplete::dic(),
        Incomplete::dilu(),
        Incomplete::ic(1),
        Incomplete::ilu(1),
        Incomplete::mic(1, 0.9),
        Incomplete::ilu(2),
    ];
    for stencil in [Stencil::star(3, 1).unwrap(), Stencil::star(2, 1).unwrap(), Stencil::cube(3, 1).unwrap()]
    {
        for recipe in recipes {
            let form = recipe.form;
            let csr = matrix(grid, &stencil, 1, form.kind == Kind::Cholesky, everything);
            let x = vector(csr.nrows());
            if recipe.level > 0 && stencil.with_fill(recipe.level).is_none() {
                continue;
            }
            let expected = by_rows(&csr, &recipe, &x);
            let what = format!("{stencil} {recipe:?}");
            let found = on_grid::<f64>((grid, &stencil, 1), &csr, form, recipe.level, &x);
            close(&found, &expected, &what, 1e-13);
            let narrow = on_grid::<f32>((grid, &stencil, 1), &csr, form, recipe.level, &x);
            close(&narrow, &expected, &what, 1e-5);
        }
    }
}

/// Entries that are not there stay away, as they do by rows.
#[test]
fn holes_stay_holes() {
    let grid = Grid::new(&[21, 13, 6]).unwrap();
    for stencil in [Stencil::cube(3, 1).unwrap(), Stencil::star(3, 2).unwrap()] {
        let csr = matrix(grid, &stencil, 1, false, |i, j| hash(i.min(j), i.max(j)) > -0.7);
        let x = vector(csr.nrows());
        for recipe in [Incomplete::ilu(0), Incomplete::milu(0, 0.9, PreservedSums::Rows)] {
            let expected = by_rows(&csr, &recipe, &x);
            let found = on_grid::<f64>((grid, &stencil, 1), &csr, recipe.form, 0, &x);
            close(&found, &expected, &format!("{stencil} {recipe:?}"), 1e-13);
        }
    }
}

/// Constant coefficients are one number per offset; neither product nor factor differs, and changed values are noticed.
#[test]
fn constant_coefficients_change_nothing() {
    for name in ["poisson2d:37x21", "poisson3d:19", "hpcg:11", "convection3d:13"] {
        let mut csr = name.parse::<crate::gallery::Problem>().unwrap().generate().unwrap();
        let n = csr.nrows();
        let (grid, stencil) = match name {
            "poisson2d:37x21" => (Grid::new(&[37, 21]).unwrap(), Stencil::star(2, 1).unwrap()),
            "poisson3d:19" => (Grid::new(&[19; 3]).unwrap(), Stencil::star(3, 1).unwrap()),
            "hpcg:11" => (Grid::new(&[11; 3]).unwrap(), Stencil::cube(3, 1).unwrap()),
            _ => (Grid::new(&[13; 3]).unwrap(), Stencil::star(3, 1).unwrap()),
        };
        let space = Threads::new(2);
        let mut a = StencilMatrix::from_csr(&space, grid, &stencil, 1, &csr).unwrap();
        assert!(a.is_constant(), "{name}");
        let x = vector(n);
        for form in [Form::LU, Incomplete::milu(0, 0.95, PreservedSums::Rows).form] {
            let recipe = Incomplete { form, ..Incomplete::ilu(0) };
            let found = on_grid::<f64>((grid, &stencil, 1), &csr, form, 0, &x);
            close(&found, &by_rows(&csr, &recipe, &x), name, 1e-13);
        }
        let product = |a: &StencilMatrix| {
            let (mut px, mut py) = (a.vector(), a.vector());
            a.gather(&space, &x, &mut px).unwrap();
            a.apply(&space, &px, &mut py, &mut ()).unwrap();
            py
        };
        let constant = product(&a);
        csr.values_mut()[5] *= 2.0;
        a.set(&space, &csr).unwrap();
        assert!(!a.is_constant());
        let full = product(&a);
        assert_eq!(full.iter().zip(&constant).filter(|(f, c)| f != c).count(), 1);
        csr.values_mut()[5] *= 0.5;
        a.set(&space, &csr).unwrap();
        assert!(a.is_constant());
        assert_eq!(product(&a), constant);
    }
}

#[test]
fn three_ways_to_make_a_matrix() {
    let (grid, stencil, dof) = (Grid::new(&[12, 10, 3]).unwrap(), Stencil::cube(3, 1).unwrap(), 2);
    let space = Threads::new(2);
    let value = |point: [usize; 3], o: Offset, r: usize, c: usize| {
        hash(grid.number(point) * 4 + 2 * r + c, stencil.find(o).unwrap())
    };
    let a = StencilMatrix::from_fn(&space, grid, &stencil, dof, |point, o, block| {
        block.iter_mut().enumerate().for_each(|(k, b)| *b = value(point, o, k / dof, k % dof));
    })
    .unwrap();
    let arrays: Vec<Vec<f64>> = stencil
        .offsets()
        .iter()
        .map(|&o| (0..grid.points() * 4).map(|k| value(grid.point(k / 4), o, k / 2 % 2, k % 2)).collect())
        .collect();
    let slices: Vec<&[f64]> = arrays.iter().map(Vec::as_slice).collect();
    let b = StencilMatrix::from_arrays(&space, grid, &stencil, dof, &slices).unwrap();
    let x = vector(grid.points() * dof);
    let (mut px, mut ya, mut yb) = (a.vector(), a.vector(), a.vector());
    a.gather(&space, &x, &mut px).unwrap();
    a.apply(&space, &px, &mut ya, &mut ()).unwrap();
    b.apply(&space, &px, &mut yb, &mut ()).unwrap();
    assert_eq!(ya, yb);
    assert!(ya.iter().any(|v| *v != 0.0));
    assert!(StencilMatrix::from_arrays(&space, grid, &stencil, dof, &slices[1..]).is_err());
    assert!(StencilMatrix::from_fn(&space, grid, &stencil, 9, |_, _, _| ()).is_err());
}

#[test]
fn an_entry_off_the_stencil_is_refused() {
    let grid = Grid::new(&[12, 10, 3]).unwrap();
    let csr = matrix(grid, &Stencil::cube(3, 1).unwrap(), 1, false, everything);
    let space = Threads::new(2);
    let error = StencilMatrix::from_csr(&space, grid, &Stencil::star(3, 1).unwrap(), 1, &csr).unwrap_err();
    assert!(matches!(error, crate::error::SetupError::PatternChanged), "{error:?}");
}

#[test]
fn of_several_bad_pivots_the_smallest_row_is_found() {
    let grid = Grid::new(&[20, 17, 9]).unwrap();
    for dof in [1, 3] {
        let mut csr = matrix(grid, &Stencil::cube(3, 1).unwrap(), dof, true, everything);
        for row in [1234, 77, 900] {
            let k = csr.pattern().find(row, row).unwrap();
            csr.values_mut()[k] = -1.0;
        }
        for threads in [1, 2, 4] {
            let space = Threads::new(threads);
            let a = StencilMatrix::from_csr(&space, grid, &Stencil::cube(3, 1).unwrap(), dof, &csr).unwrap();
            let mut f = StencilSymbolic::new(&a, Form::CHOLESKY, 0, threads)
                .and_then(|s| s.allocate::<f64>())
                .unwrap();
            let error = f.refactor(&space, &a).unwrap_err();
            assert!(
                matches!(error, crate::error::SetupError::BadPivot { row: 77, value } if value < 0.0),
                "{error:?}"
            );
            f.set_shift(2.0);
            f.refactor(&space, &a).unwrap();
        }
    }
}

/// A block factor of the same matrix, or its error.
fn in_blocks(csr: &Csr<f64>, dof: usize, kind: BlockKind) -> Result<BlockPreconditioner, SetupError> {
    let space = Threads::new(2);
    let a = BlockMatrix::new(&space, csr, dof).unwrap();
    let mut m = BlockPreconditioner::new(&space, &a, &BlockRecipe::new(kind)).unwrap();
    m.refactor(&space, &a).map(|()| m)
}

/// The rows of each point in another order: large entries stand beside the diagonal, and the first entry of each block is zero.
fn exchanged(csr: &Csr<f64>, dof: usize) -> Csr<f64> {
    let mut values = csr.values().to_vec();
    for row in 0..csr.nrows() {
        let from = row / dof * dof + (row + 1) % dof;
        values[csr.pattern().row_range(row)].copy_from_slice(csr.row(from).1);
        if row % dof == 0 {
            values[csr.pattern().find(row, row).unwrap()] = 0.0;
        }
    }
    Csr::with_pattern(csr.pattern().clone(), values).unwrap()
}

/// ILU(0) exchanges rows within a point as it does within a block.
#[test]
fn zeros_on_the_diagonal_of_blocks_are_passed_as_in_blocks() {
    let space = Threads::new(2);
    for (grid, stencil) in grids().into_iter().flat_map(|g| stencils().into_iter().map(move |s| (g, s))) {
        for dof in [2, 3, 5] {
            let csr = exchanged(&matrix(grid, &stencil, dof, false, everything), dof);
            let m = in_blocks(&csr, dof, BlockKind::Ilu0).unwrap();
            let (x, mut expected) = (vector(csr.nrows()), vec![0.0; csr.nrows()]);
            m.apply(&space, &x, &mut expected, &mut m.scratch(&space).unwrap()).unwrap();
            let found = on_grid::<f64>((grid, &stencil, dof), &csr, Form::LU, 0, &x);
            close(&found, &expected, &format!("{grid} {stencil} {dof}"), 1e-12);
        }
    }
}

/// With several unknowns per point every factor is that of the blocks.
#[test]
fn every_kind_of_block_factor_is_that_of_the_blocks() {
    let (grid, space) = (Grid::new(&[21, 13, 6]).unwrap(), Threads::new(2));
    for stencil in [Stencil::star(3, 1).unwrap(), Stencil::cube(3, 1).unwrap(), Stencil::star(3, 2).unwrap()]
    {
        for kind in [BlockKind::Ic0, BlockKind::Ilu0, BlockKind::Dic, BlockKind::Dilu] {
            for dof in [2, 3, 5] {
                let form = kind.form().unwrap();
                let csr = matrix(grid, &stencil, dof, form.kind == Kind::Cholesky, everything);
                let m = in_blocks(&csr, dof, kind).unwrap();
                let (x, mut expected) = (vector(csr.nrows()), vec![0.0; csr.nrows()]);
                m.apply(&space, &x, &mut expected, &mut m.scratch(&space).unwrap()).unwrap();
                let found = on_grid::<f64>((grid, &stencil, dof), &csr, form, 0, &x);
                close(&found, &expected, &format!("{stencil} {kind:?} {dof}"), 1e-13);
            }
        }
    }
}

/// Blocks that cannot be inverted are the same on the grid and in blocks, with the same pivot, and a later shift forgets them.
#[test]
fn bad_blocks_are_those_of_the_block_factor() {
    let (grid, stencil) = (Grid::new(&[20, 17, 9]).unwrap(), Stencil::star(3, 1).unwrap());
    let alone = [1234, 77, 900];
    // The blocks of these points: singular after an exchange, nearly singular, not definite, zero.
    let bad: [fn(usize, usize) -> f64; 4] = [
        |r, c| [[0.0, 2.0, 4.0], [1.0, 0.0, 0.0], [0.0, 1.0, 2.0]][r][c],
        |r, c| [[1.0, 1.0, 0.0], [1.0, 1.0 + 1e-15, 0.0], [0.0, 0.0, 1.0]][r][c],
        |r, c| if r == c { 1.0 } else { 2.0 },
        |_, _| 0.0,
    ];
    let mut rows = Vec::new();
    for (which, block) in bad.into_iter().enumerate() {
        for (form, kind) in [(Form::LU, BlockKind::Ilu0), (Form::CHOLESKY, BlockKind::Ic0)] {
            let symmetric = form.kind == Kind::Cholesky;
            let keep = |i: usize, j: usize| !alone.contains(&i) && !alone.contains(&j);
            let mut csr = matrix(grid, &stencil, 3, symmetric, keep);
            for (row, column) in
                alone.iter().flat_map(|&p| (0..9).map(move |k| (3 * p + k / 3, 3 * p + k % 3)))
            {
                let k = csr.pattern().find(row, column).unwrap();
                csr.values_mut()[k] = block(row % 3, column % 3);
            }
            let expected = in_blocks(&csr, 3, kind).map(|_| ());
            for threads in [1, 2, 4] {
                let space = Threads::new(threads);
                let a = StencilMatrix::from_csr(&space, grid, &stencil, 3, &csr).unwrap();
                let mut f =
                    StencilSymbolic::new(&a, form, 0, threads).and_then(|s| s.allocate::<f64>()).unwrap();
                assert_eq!(f.refactor(&space, &a), expected, "{which} {kind:?}");
                f.set_shift(10.0);
                f.refactor(&space, &a).unwrap();
            }
            rows.push(expected.err().map(|error| match error {
                SetupError::BadPivot { row, .. } => row - 3 * 77,
                other => panic!("{other}"),
            }));
        }
    }
    assert_eq!(rows, [Some(2), Some(0), Some(0), Some(0), None, Some(1), Some(0), Some(0)]);
}

/// The table at the head of the module.
#[test]
fn the_usual_stencils_in_figures() {
    let grid = Grid::new(&[50, 40, 30]).unwrap();
    for (stencil, lower, updates, off_diagonal, levels) in [
        (Stencil::star(2, 1).unwrap(), 2, 2, 0, 50 + 40 - 1),
        (Stencil::cube(2, 1).unwrap(), 4, 12, 8, 50 + 2 * 40 - 2),
        (Stencil::star(3, 1).unwrap(), 3, 3, 0, 50 + 40 + 30 - 2),
        (Stencil::star(3, 2).unwrap(), 6, 12, 6, 50 + 40 + 30 - 2),
        (Stencil::filled_star(3).unwrap(), 6, 22, 16, 50 + 2 * 40 + 3 * 30 - 5),
        (Stencil::diamond(3, 2).unwrap(), 12, 82, 70, 50 + 2 * 40 + 3 * 30 - 5),
        (Stencil::cube(3, 1).unwrap(), 13, 101, 88, 50 + 2 * 40 + 4 * 30 - 6),
    ] {
        let targets: Vec<usize> = stencil.eliminations().iter().filter_map(|step| step.target).collect();
        let off = targets.iter().filter(|&&target| target != stencil.centre()).count();
        assert_eq!((stencil.lower().len(), targets.len(), off), (lower, updates, off_diagonal), "{stencil}");
        let grid = if stencil.dims() == 2 { Grid::new(&[50, 40]).unwrap() } else { grid };
        assert_eq!(Mapping::new(&stencil).levels(&grid), levels, "{stencil}");
    }
}

/// A diagonal matrix is solved in one step, which is reported as such.
#[test]
fn an_exact_residual_of_zero_is_met() {
    use crate::krylov::Status;
    use crate::stop::{IterationLimit, StopReason};
    let (grid, space) = (Grid::new(&[20, 16, 4]).unwrap(), Threads::new(2));
    let point = Stencil::new(vec![[0; 3]]).unwrap();
    let a = StencilMatrix::from_fn(&space, grid, &point, 1, |_, _, block| block[0] = 2.0).unwrap();
    let mut m = StencilSymbolic::new(&a, Form::CHOLESKY, 0, 2).and_then(|s| s.allocate::<f64>()).unwrap();
    let (mut b, mut x) = (a.vector(), a.vector());
    a.gather(&space, &vector(grid.points()), &mut b).unwrap();
    let system = SplitSystem { space: &space, a: &a, m: &m };
    assert!(EisenstatCg::new(system).unwrap().is_none(), "there is no factor yet");
    m.refactor(&space, &a).unwrap();
    let system = SplitSystem { space: &space, a: &a, m: &m };
    let mut cg = EisenstatCg::new(system).unwrap().unwrap();
    let mut limit = IterationLimit(5);
    let finish = cg.solve(system, &b, &mut x, &mut limit, &mut ()).unwrap();
    assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
    assert_eq!((finish.iterations, finish.residual_norm), (1, 0.0));
    // Another matrix of as many positions is not this one.
    let other = StencilMatrix::from_fn(&space, grid, &point, 1, |_, _, block| block[0] = 3.0).unwrap();
    let system = SplitSystem { space: &space, a: &other, m: &m };
    assert!(cg.solve(system, &b, &mut x, &mut limit, &mut ()).is_err());
    m.release();
    let system = SplitSystem { space: &space, a: &a, m: &m };
    assert!(cg.solve(system, &b, &mut x, &mut limit, &mut ()).is_err(), "there is no factor any more");
    assert!(m.apply(&space, &b, &mut x, &mut m.scratch(&space).unwrap()).is_err());
}

/// An entry that is on the stencil by its distance alone, around the end of a line, is refused.
#[test]
fn an_entry_around_the_end_of_a_line_is_refused() {
    let (grid, star) = (Grid::new(&[9, 9]).unwrap(), Stencil::star(2, 1).unwrap());
    let proper = matrix(grid, &star, 1, true, everything);
    // Row (0, 1) gets the last point of line 0, and row (5, 5) loses a neighbour: as many entries as before, all -1 or 4.
    let entries = |i: usize| {
        let mut columns: Vec<u32> = proper.row(i).0.to_vec();
        match i {
            9 => columns.push(8),
            50 => columns.retain(|&j| j != 51),
            _ => {}
        }
        columns.sort_unstable();
        columns
    };
    let wrapped = Csr::from_rows(
        81,
        81,
        |i| entries(i).len(),
        |i, columns, values| {
            for (k, j) in entries(i).into_iter().enumerate() {
                (columns[k], values[k]) = (j, if j as usize == i { 4.0 } else { -1.0 });
            }
        },
    )
    .unwrap();
    assert_eq!(wrapped.nnz(), proper.nnz());
    let error = StencilMatrix::from_csr(&Threads::new(2), grid, &star, 1, &wrapped).unwrap_err();
    assert!(matches!(error, crate::error::SetupError::PatternChanged), "{error:?}");
}

/// A team larger than was said, and a number that is none: the row that has it is reported, or, where zeros times it reach others, one
/// of those.
#[test]
fn more_threads_than_said_and_rows_that_are_not_finite() {
    let grid = Grid::new(&[20, 17, 9]).unwrap();
    for stencil in [Stencil::star(3, 1).unwrap(), Stencil::cube(3, 1).unwrap()] {
        let mut csr = matrix(grid, &stencil, 1, false, everything);
        let space = Threads::new(4);
        let mut a = StencilMatrix::from_csr(&space, grid, &stencil, 1, &csr).unwrap();
        let mut f = StencilSymbolic::new(&a, Form::LU, 0, 1).and_then(|s| s.allocate::<f64>()).unwrap();
        f.refactor(&space, &a).unwrap();
        let k = csr.pattern().find(500, 501).unwrap();
        csr.values_mut()[k] = f64::NAN;
        f.release();
        a.set(&space, &csr).unwrap();
        let error = f.refactor(&space, &a).unwrap_err();
        let crate::error::SetupError::BadPivot { row, value } = error else { panic!("{stencil}: {error:?}") };
        assert!(value.is_nan() && (row == 500 || stencil.len() > 7), "{stencil}: {row}");
    }
}
