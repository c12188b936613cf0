//! What is said at the limit of `f64`: answers that other roundings would miss, and no proof of singularity where there is an answer.

use krylith::gallery::Problem;
use krylith::{
    Csr, Layout, MatchingMode, Method, NullSpace, Outcome, Precision, PrecondSpec, Solver, TripletBuilder,
};

fn rhs(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect()
}

/// The residual that an exact answer of the size of `x` is left with, relative to b, if each of its entries is rounded to the nearest number.
fn rounded_to_nearest(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut squares = vec![0.0; a.ncols()];
    for i in 0..a.nrows() {
        a.row(i).0.iter().zip(a.row(i).1).for_each(|(&j, v)| squares[j as usize] += v * v);
    }
    let spacing = |x: f64| x.abs().next_up() - x.abs();
    let sum: f64 = squares.iter().zip(x).map(|(s, &x)| s * spacing(x).powi(2) / 12.0).sum();
    (sum / b.iter().map(|v| v * v).sum::<f64>()).sqrt()
}

/// Rounding to the nearest number is not the best rounding: less than its residual is reached on any number of threads, with the same bits. Without the
/// search for other numbers the residual is 0.98 of it.
#[test]
fn an_answer_has_a_smaller_residual_than_rounding_to_nearest_gives() {
    let mut a = "poisson2d:40".parse::<Problem>().unwrap().generate().unwrap();
    // Ten digits between the first and the last row, so that large entries of x meet small ones.
    let n = a.nrows();
    let scale = |i: usize| 10f64.powf(-5.0 * i as f64 / n as f64);
    let pattern = a.pattern().clone();
    for i in 0..n {
        for k in pattern.row_range(i) {
            a.values_mut()[k] *= scale(i) * scale(pattern.col_idx()[k] as usize);
        }
    }
    let b = rhs(n);
    let x = Solver::new().solve(&a, &b).unwrap().x;
    let nearest = rounded_to_nearest(&a, &x, &b);
    let solver = Solver::new().preconditioner(PrecondSpec::cholesky()).rtol(0.8 * nearest);
    let solution = solver.clone().threads(1).solve(&a, &b).unwrap();
    assert_eq!(solution.report.outcome, Outcome::Converged, "{} {nearest}", solution.report);
    assert_eq!(solver.threads(3).solve(&a, &b).unwrap().x, solution.x);
}

/// Chains of resistors; the last of each but one leads to ground, through 10¹² times as much. The other chain has no ground: A is singular, its other
/// small eigenvalues are no larger than what rounding may take for zero, and b is in its range.
#[test]
fn a_singular_system_with_an_answer_is_not_called_unsolvable() {
    let (chains, length) = (60, 20);
    let n = chains * length;
    let mut builder = TripletBuilder::new(n, n);
    for first in (0..n).step_by(length) {
        for i in first..first + length - 1 {
            let g = 1.0 + (i % 7) as f64;
            builder.push(i, i, g);
            builder.push(i + 1, i + 1, g);
            builder.push(i, i + 1, -g);
            builder.push(i + 1, i, -g);
        }
        if first > 0 {
            builder.push(first, first, 1e-12);
        }
    }
    let a = builder.build().unwrap();
    let x = rhs(n);
    let b: Vec<f64> =
        (0..n).map(|i| a.row(i).0.iter().zip(a.row(i).1).map(|(&j, v)| v * x[j as usize]).sum()).collect();
    let solution = Solver::new().solve(&a, &b).unwrap();
    assert_eq!(solution.report.outcome, Outcome::Converged, "{}", solution.report);
    // A current into the chain without a ground has nowhere to go.
    let mut b = b;
    b[3] += 1.0;
    let report = Solver::new().solve(&a, &b).unwrap().report;
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
}

/// Corrections of an answer that are out of range do not replace it.
#[test]
fn corrections_out_of_range_are_left() {
    let rows: [[f64; 6]; 6] = [
        [
            3.6931914471142943e-127,
            2.4545467326488633e-91,
            9.639679460411536e-181,
            1.7365302730352168e-164,
            5.6902623986817984e-160,
            1.262177448353619e-29,
        ],
        [
            2.4545467326488633e-91,
            1.6313261169996703e-55,
            6.406665904585923e-145,
            1.154122327223217e-128,
            3.7818280418450374e-124,
            8.388608e6,
        ],
        [
            9.639679460411536e-181,
            6.406665904585923e-145,
            2.5160737381238794e-234,
            4.532555499780559e-218,
            1.4852277861680936e-213,
            3.2944368572595385e-83,
        ],
        [
            1.7365302730352168e-164,
            1.154122327223217e-128,
            4.532555499780559e-218,
            8.165126103939104e-202,
            2.6755485217387732e-197,
            5.934729841099874e-67,
        ],
        [
            5.6902623986817984e-160,
            3.7818280418450374e-124,
            1.4852277861680936e-213,
            2.6755485217387732e-197,
            8.767237396033622e-193,
            1.9446922743316068e-62,
        ],
        [
            1.262177448353619e-29,
            8.388608e6,
            3.2944368572595385e-83,
            5.934729841099874e-67,
            1.9446922743316068e-62,
            4.313591467902218e68,
        ],
    ];
    let a = Csr::from_entries(6, 6, (0..36).map(|k| (k / 6, k % 6, rows[k / 6][k % 6]))).unwrap();
    let b = [
        2.926047720897037e202,
        1.9446922738094947e238,
        7.637340906698534e148,
        1.3758210264603586e165,
        4.508290339505303e169,
        1e300,
    ];
    let guess = [
        6.94323587333761e-240,
        1.086112054133167e247,
        2.1362111732338015e-34,
        7.593870374446066e-278,
        -5.37686691957061e205,
        -4.865103250271917e-204,
    ];
    let solver = Solver::new().method(Method::Fgmres(1)).preconditioner("lu".parse().unwrap());
    let solver =
        solver.precision(Precision::Mixed).layout(Layout::Rows).rtol(1e-4).max_iterations(300).threads(1);
    let mut x = guess;
    let report = solver.prepare(&a).unwrap().solve(&a, &b, &mut x).unwrap();
    assert!(x.iter().all(|v| v.is_finite()) && report.relative_residual <= 1.0, "{x:?} {report}");
}

/// x with its component in the null space has a residual that is as small as b, and without it one that is larger by the rounding of its entries.
#[test]
fn the_null_space_is_left_in_x_where_removing_it_makes_the_residual_larger() {
    let row = [2.0, -1.0, -1.0, -1.0, 1.0];
    let scales = [65536.0, -1.0, -1048576.0, -1.9073486328125e-6, 256.0];
    let entries = (0..25).map(|k| (k / 5, k % 5, scales[k / 5] * row[k % 5]));
    let a = Csr::from_entries(5, 5, entries).unwrap();
    let b = [
        8.434355749146799e-301,
        -8.931552653951542e-301,
        -9.05775169221171e-301,
        -1e-300,
        5.411973010302383e-301,
    ];
    let null_space = NullSpace::vectors([vec![0.5, 1.0, 0.0, 0.0, 0.0]]);
    let solver = Solver::new().preconditioner("ilutp-saad(0,1e-4)".parse().unwrap()).null_space(null_space);
    let solver = solver
        .precision(Precision::F32)
        .reorder("rcm".parse().unwrap())
        .matching(MatchingMode::Off)
        .max_iterations(300);
    let mut x = [1.0; 5];
    let report =
        solver.rtol(1e-4).atol(1e-170).threads(1).prepare(&a).unwrap().solve(&a, &b, &mut x).unwrap();
    assert!(report.relative_residual < 1.001, "{x:?} {report}");
}

/// BiCGStab goes along the null vector (1, 0, −2) until rounding hides the residual: what is computed is 0 by chance.
#[test]
fn an_x_whose_residual_rounding_hides_is_not_returned() {
    let rows = [-6.0, 1.0, -3.0, 6.0, 0.0, 3.0, 6.0, -2.0, 3.0];
    let a = Csr::from_entries(3, 3, (0..9).map(|k| (k / 3, k % 3, rows[k]))).unwrap();
    let b = [5.722325911306605e4, -1.5107081335343073e-14, 1.0767082658667571e-2];
    for null_space in [NullSpace::Ignore, NullSpace::vectors([vec![1.0, 0.0, -2.0]])] {
        let solver = Solver::new().method(Method::BiCgStab).preconditioner(PrecondSpec::jacobi());
        let solver = solver.null_space(null_space).max_iterations(300).threads(1);
        let solution = solver.solve(&a, &b).unwrap();
        let bound = solution.report.certificate.residual_bound.unwrap();
        assert!(bound <= 1.0 + 1e-12, "{bound:e} {:?} {}", solution.x, solution.report);
    }
}

/// The empty column takes any x: 5·10¹⁷⁸ there must not leave the range where b of 10⁻¹⁶² is scaled up.
#[test]
fn a_guess_that_scaling_would_take_out_of_range_is_compared_with() {
    let a = Csr::from_entries(2, 2, [(0, 0, -4.0), (1, 0, 1.0)]).unwrap();
    let b: [f64; 2] = [-9.21565183262033e-163, -1e-162];
    let guess: [f64; 2] = [4.707312235689304e-165, -4.7295801467197986e178];
    let of_guess = (b[0] + 4.0 * guess[0]).hypot(b[1] - guess[0]) / b[0].hypot(b[1]);
    for name in ["none", "jacobi", "milu0-columns"] {
        let solver = Solver::new().preconditioner(name.parse().unwrap()).rtol(1e-2).threads(1);
        let mut x = guess;
        let report = solver.prepare(&a).unwrap().solve(&a, &b, &mut x).unwrap();
        let residual = (b[0] + 4.0 * x[0]).hypot(b[1] - x[0]) / b[0].hypot(b[1]);
        assert!(residual <= of_guess * (1.0 + 1e-12), "{name}: {residual} {of_guess} {x:?} {report}");
    }
}
