//! The same bits wherever the rows of a matrix are cut, from one part to sixteen: sums have no order.

use super::prepared::STORES;
use super::ranks::{Part, PartMatrix, Rank, on_ranks};
use super::whole::{cuts, systems};
use krylith::space::Threads;
use krylith::store::{FindStore, OfTheWhole};
use krylith::{Csr, Layout, Method, PrecondSpec, Report, Solver, Watch};

/// Members that do not depend on how rows are divided.
static OF_THE_WHOLE: &[&dyn FindStore<Rank>] = &[&OfTheWhole];

/// Solves with the rows in these parts; the whole x, and the report, in which all agree. `None` if there is no such preconditioner, for anybody.
fn in_parts(
    (solver, stores): (&Solver, &'static [&'static dyn FindStore<Rank>]),
    parts: &[(PartMatrix, Csr<f64>)],
    b: &[f64],
) -> Option<(Vec<f64>, Report)> {
    let ends = on_ranks(parts.len(), |rank| {
        let (part, block) = &parts[rank.rank];
        let own = part.rows();
        let b = Part { own: b[own.clone()].to_vec(), global: b.len() };
        let mut x = Part { own: vec![0.0; own.len()], global: b.global };
        let prepared = solver.prepare_on(rank, stores, part, block).ok()?;
        let report = prepared.solve_vectors(part, &b, &mut x, Watch::default()).unwrap();
        Some((x.own, report))
    });
    let failed = ends.iter().filter(|end| end.is_none()).count();
    if failed > 0 {
        assert_eq!(failed, ends.len(), "a set-up fails for all or for nobody");
        return None;
    }
    let (x, reports): (Vec<_>, Vec<_>) = ends.into_iter().flatten().unzip();
    for report in &reports {
        assert_eq!((report.iterations, &report.history), (reports[0].iterations, &reports[0].history));
        assert_eq!(report.certificate, reports[0].certificate);
    }
    Some((x.concat(), reports.into_iter().next().unwrap()))
}

/// The parts of a matrix, each with the block of its own rows and columns.
fn split(a: &Csr<f64>, cuts: &[usize]) -> Vec<(PartMatrix, Csr<f64>)> {
    let with_block = |part: PartMatrix| {
        let block = part.block();
        (part, block)
    };
    PartMatrix::split(a, cuts).into_iter().map(with_block).collect()
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
        let parts = divisions.each_ref().map(|cuts| split(&a, cuts));
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
                let (y, report) = in_parts((&solver, STORES), parts, &b).unwrap();
                let what = format!("{name}, {method:?}, cut at {cuts:?}");
                assert_same_bits(&what, (&alone.x, &alone.report), (&y, &report));
                compared += 1;
            }
        }
        assert!(compared > 0, "{name}");
    }
}

/// Members that do not depend on the division, and the default restricted to them: the plan, the iterations and the bits of one process.
#[test]
fn members_have_the_plan_and_the_bits_of_one_process() {
    for (k, (name, a)) in systems().into_iter().enumerate() {
        let n = a.nrows();
        let (x, mut b) = ((0..n).map(|i| 1.0 + ((i * 37) as f64).sin()).collect::<Vec<_>>(), vec![0.0; n]);
        a.mul_vec(&x, &mut b).unwrap();
        let divisions = [vec![n / 2 + 3], cuts(n, 3, 5), cuts(n, 5, 6)];
        let parts = divisions.each_ref().map(|cuts| split(&a, cuts));
        for (member, preconditioner) in ["auto", "none", "jacobi", "fsai", "afsai"].into_iter().enumerate() {
            let solver = Solver::new().preconditioner(preconditioner.parse().unwrap()).max_iterations(30);
            let mut x = vec![0.0; n];
            let alone = solver
                .prepare_on(Threads::new(2), &[&OfTheWhole], &a, &a)
                .map(|prepared| prepared.solve_vectors(&a, &b, &mut x, Watch::default()).unwrap());
            // Every division with the default, and one of them with each member.
            for (which, parts) in parts.iter().enumerate() {
                if member > 0 && which != (k + member) % 3 {
                    continue;
                }
                let divided = in_parts((&solver, OF_THE_WHOLE), parts, &b);
                let (Ok(alone), Some((y, report))) = (&alone, &divided) else {
                    // Jacobi without a diagonal.
                    assert!(alone.is_err() && divided.is_none() && preconditioner != "auto", "{name}");
                    continue;
                };
                let what = format!("{name}, {preconditioner}, cut at {:?}", divisions[which]);
                let [one, other] = [&alone.plan, &report.plan];
                assert_eq!(one.facts, other.facts, "{what}");
                assert_eq!(
                    (one.method, &one.preconditioner),
                    (other.method, &other.preconditioner),
                    "{what}"
                );
                assert_eq!((&one.proposals, &one.fallbacks), (&other.proposals, &other.fallbacks), "{what}");
                assert_eq!((&one.reasons, one.precision), (&other.reasons, other.precision), "{what}");
                assert_same_bits(&what, (&x, alone), (y, report));
            }
        }
    }
}
