//! Sizes that cannot be: each is a typed error, and none ends the process.

use krylith::block::{BlockKind, BlockRecipe};
use krylith::gallery::{GalleryError, Problem, problems};
use krylith::krylov::{Fgmres, Gmres, System};
use krylith::matrix::Triangle;
use krylith::observe::History;
use krylith::operator::Identity;
use krylith::precond::threshold::{IctOptions, ict};
use krylith::precond::{Form, IncompleteFactor};
use krylith::schedule::{Plan, Schedule};
use krylith::setup::Memory;
use krylith::sliced::{SlicedPattern, SlicedSymbolic};
use krylith::space::Threads;
use krylith::structured::{Grid, Stencil, StencilMatrix, StencilSymbolic};
use krylith::{Csr, MatrixError, Method, Permutation, PrecondSpec, SetupError, SolveError, Solver};
use std::sync::Arc;

/// Numbers that a mistake of the caller, or of a file, may put in the place of a size.
const HUGE: [usize; 4] = [usize::MAX, usize::MAX - 1, usize::MAX / 2 + 1, 1 << 40];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

#[test]
fn block_sizes_are_one_to_eight() {
    let a = problem("poisson2d:12");
    for kind in [BlockKind::Jacobi, BlockKind::Ic0, BlockKind::Ilu0, BlockKind::Dic, BlockKind::Dilu] {
        for size in [0, 9, 1 << 33, usize::MAX] {
            let solver = Solver::new().preconditioner(PrecondSpec::block(kind, Some(size))).threads(1);
            let error = solver.solve(&a, &[1.0; 144]).map(|_| ()).unwrap_err();
            assert!(matches!(error, SolveError::Option { .. }), "{kind:?} {size}: {error}");
        }
    }
}

#[test]
fn rows_have_no_more_entries_than_columns() {
    for length in HUGE {
        let a = Csr::<f64>::from_rows(10, 10, |i| if i < 2 { 1 } else { length }, |_, _, _| ());
        assert_eq!(a, Err(MatrixError::RowTooLong { row: 2, length, ncols: 10 }));
    }
    // As many as there are columns, but more than any memory holds.
    let a = Csr::<f64>::from_rows(5000, 1 << 32, |_| 1 << 32, |_, _, _| ());
    assert_eq!(a, Err(MatrixError::OutOfMemory { bytes: 4 * (5000 << 32) }));
}

#[test]
fn dimensions_beyond_32_bits_are_errors() {
    for n in HUGE {
        let too_large = |result: Result<(), MatrixError>| matches!(result, Err(MatrixError::TooLarge { .. }));
        assert!(too_large(Csr::<f64>::identity(n).map(|_| ())));
        assert!(too_large(Csr::<f64>::from_triplets(n, 1, &[], &[], &[]).map(|_| ())));
        assert!(too_large(Csr::<f64>::from_triplets(1, n, &[], &[], &[]).map(|_| ())));
        assert!(too_large(Csr::<f64>::new(n, n, vec![0], vec![], vec![]).map(|_| ())));
        assert!(too_large(Permutation::identity(n).map(|_| ())));
        assert!(Grid::new(&[n]).is_err() && Grid::new(&[n, n, n]).is_err() && Grid::new(&[2, n]).is_err());
        for info in problems() {
            let text = format!("{}:{n}", info.name);
            assert!(matches!(text.parse::<Problem>(), Err(GalleryError::TooLarge { .. })), "{text}");
        }
    }
}

/// Any size that is accepted can be counted, however its axes differ; making it ends in an error if there is no memory.
#[test]
fn the_largest_problems_are_counted() {
    for info in problems() {
        for axis in 0..info.dims() {
            let of = |long: usize| {
                let mut size = vec![info.least_size; info.dims()];
                size[axis] = long;
                Problem::new(info.name, &size)
            };
            let largest = (0..64).rev().map(|k| 1usize << k).find_map(|long| of(long).ok()).unwrap();
            assert!(largest.nnz_estimate() > 0 && largest.rows() > 1 << 20, "{largest}");
        }
    }
    let elasticity: Problem = "elasticity3d:1127".parse().unwrap();
    let error = elasticity.generate().unwrap_err();
    assert!(
        matches!(error, GalleryError::Matrix(MatrixError::OutOfMemory { bytes }) if bytes > 1 << 41),
        "{error}"
    );
}

#[test]
fn grids_without_memory_for_their_entries_are_errors() {
    let (space, grid) = (Threads::new(1), Grid::new(&[2000, 1000, 20]).unwrap());
    let cube = Stencil::cube(3, 3).unwrap();
    let result = StencilMatrix::from_fn(&space, grid, &cube, 8, |_, _, _| ()).map(|_| ());
    assert!(matches!(result, Err(SetupError::Matrix(MatrixError::OutOfMemory { .. }))), "{result:?}");
}

#[test]
fn unknowns_a_point_are_one_to_eight() {
    let (space, grid, star) = (Threads::new(1), Grid::new(&[4, 4]).unwrap(), Stencil::star(2, 1).unwrap());
    for dof in HUGE.into_iter().chain([0, 9]) {
        let expected = Err(SetupError::Matrix(MatrixError::BlockSize { size: dof }));
        assert_eq!(
            StencilMatrix::from_arrays(&space, grid, &star, dof, &[[].as_slice(); 5]).map(|_| ()),
            expected
        );
        assert_eq!(StencilMatrix::from_fn(&space, grid, &star, dof, |_, _, _| ()).map(|_| ()), expected);
        assert_eq!(
            StencilMatrix::from_csr(&space, grid, &star, dof, &problem("poisson2d:4")).map(|_| ()),
            expected
        );
    }
}

#[test]
fn plans_for_impossible_teams_are_errors() {
    let (space, a) = (Threads::new(1), problem("poisson3d:12"));
    let sliced = Arc::new(SlicedPattern::find(a.pattern()).unwrap());
    let star = Stencil::star(3, 1).unwrap();
    let grid = StencilMatrix::from_csr(&space, Grid::new(&[12; 3]).unwrap(), &star, 1, &a).unwrap();
    let options = IctOptions { tau: 0.01, p: None, shift: 0.0, max_bytes: u64::MAX };
    let triangles = ict(a.view(), &options).unwrap();
    for threads in HUGE {
        let refused = |result: Result<(), SetupError>| matches!(result, Err(SetupError::Matrix(MatrixError::TooManyThreads { threads: t, .. })) if t == threads);
        for schedule in [Schedule::Auto, Schedule::Levels, Schedule::PointToPoint] {
            let plan = Plan::new(a.pattern(), Triangle::Lower, threads, schedule);
            assert!(refused(plan.map(|_| ()).map_err(SetupError::from)));
            let recipe = BlockRecipe { schedule, ..BlockRecipe::new(BlockKind::Ilu0) };
            assert!(refused(recipe.analyze_pattern::<1>(a.pattern(), threads).map(|_| ())));
            let factor = SlicedSymbolic::new(&sliced, Form::LU, threads, schedule);
            assert!(refused(factor.map(|_| ())));
            let frozen = IncompleteFactor::<f64>::frozen(
                Form::CHOLESKY,
                a.pattern(),
                triangles.clone(),
                threads,
                schedule,
            );
            assert!(refused(frozen.map(|_| ())));
        }
        assert!(refused(
            StencilSymbolic::new(&grid, Form::LU, 0, threads).and_then(|s| s.allocate::<f64>()).map(|_| ())
        ));
    }
}

#[test]
fn a_restart_without_memory_is_an_error() {
    let (space, a) = (Threads::new(1), problem("poisson2d:6"));
    let m = Identity::new(36);
    let system = System { space: &space, a: &a, m: &m };
    let memory = Memory::predict(a.pattern());
    for restart in HUGE {
        assert!(Gmres::new(system, restart).is_err() && Fgmres::new(system, restart).is_err());
        for method in [Method::Gmres(restart), Method::Fgmres(restart)] {
            // A solver knows how many iterations there can be.
            let solution = Solver::new().method(method).threads(1).solve(&a, &[1.0; 36]).unwrap();
            assert!(solution.report.bytes < 1 << 20);
            assert!(method.vectors() >= restart && memory.vectors(method) >= restart);
        }
    }
}

#[test]
fn a_history_of_any_capacity_takes_iterations() {
    for iterations in HUGE {
        let mut history = History::<f64>::with_capacity(iterations);
        history.residual_norms.push(1.0);
        assert_eq!(history.residual_norms, [1.0]);
    }
}
