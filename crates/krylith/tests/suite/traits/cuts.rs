//! The same bits wherever the rows of a matrix are cut, from one part to sixteen: sums have no order.

use super::prepared::STORES;
use super::ranks::{Part, PartMatrix, on_ranks};
use super::whole::{cuts, systems};
use krylith::solver::{Layout, Method, PrecondSpec, Watch};
use krylith::{Csr, Report, Solver};

/// Solves with the rows in these parts; the whole x, and the report, in which all agree.
fn in_parts(solver: &Solver, parts: &[(PartMatrix, Csr<f64>)], b: &[f64]) -> (Vec<f64>, Report) {
    let ends = on_ranks(parts.len(), |rank| {
        let (part, block) = &parts[rank.rank];
        let own = part.rows();
        let b = Part { own: b[own.clone()].to_vec(), global: b.len() };
        let mut x = Part { own: vec![0.0; own.len()], global: b.global };
        let prepared = solver.prepare_on(rank, STORES, part, block).unwrap();
        let report = prepared.solve_vectors(part, &b, &mut x, Watch::default()).unwrap();
        (x.own, report)
    });
    let (x, reports): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    for report in &reports {
        assert_eq!((report.iterations, &report.history), (reports[0].iterations, &reports[0].history));
        assert_eq!(report.certificate, reports[0].certificate);
    }
    (x.concat(), reports.into_iter().next().unwrap())
}

fn assert_same_bits(what: &str, (x, one): (&[f64], &Report), (y, other): (&[f64], &Report)) {
    assert_eq!(one.history, other.history, "{what}");
    assert_eq!((one.outcome, one.iterations), (other.outcome, other.iterations), "{what}");
    assert!(x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.to_bits() == y.to_bits()), "{what}");
    assert_eq!(one.certificate, other.certificate, "{what}");
}

#[test]
fn methods_have_the_bits_of_one_process() {
    let all = [Method::Minres, Method::BiCgStab, Method::Gmres(20), Method::Fgmres(10)];
    for (k, (name, a)) in systems().into_iter().enumerate() {
        let n = a.nrows();
        let (x, mut b) = ((0..n).map(|i| 1.0 + ((i * 37) as f64).sin()).collect::<Vec<_>>(), vec![0.0; n]);
        a.mul_vec(&x, &mut b).unwrap();
        let divisions = [(2, 1), (if k == 5 { 16 } else { 5 }, 2)].map(|(parts, seed)| cuts(n, parts, seed));
        let with_block = |part: PartMatrix| {
            let block = part.block();
            (part, block)
        };
        let split = |cuts: &Vec<usize>| PartMatrix::split(&a, cuts).into_iter().map(with_block).collect();
        let parts: [Vec<_>; 2] = divisions.each_ref().map(split);
        let mut compared = 0;
        // All methods on every fifth system, and one on each.
        for method in all.iter().chain([&Method::Cg]).skip(if k % 5 == 0 { 0 } else { k % 4 + 1 }) {
            let solver = Solver::new()
                .method(*method)
                .preconditioner(PrecondSpec::none())
                .recover(false)
                .max_iterations(15)
                .layout(Layout::Rows)
                .threads(2);
            // Some methods need a symmetric matrix.
            let Ok(alone) = solver.solve(&a, &b) else { continue };
            for (cuts, parts) in divisions.iter().zip(&parts) {
                let (y, report) = in_parts(&solver, parts, &b);
                let what = format!("{name}, {method:?}, cut at {cuts:?}");
                assert_same_bits(&what, (&alone.x, &alone.report), (&y, &report));
                compared += 1;
            }
        }
        assert!(compared > 0, "{name}");
    }
}
