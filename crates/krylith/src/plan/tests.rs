use super::*;
use crate::gallery::Problem;
use crate::{Csr, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

#[test]
fn remedies_come_in_order_and_once() {
    let a = problem("poisson2d:8");
    let plan = Solver::new().plan(&a).unwrap();
    assert!(plan.shifts());
    assert_eq!(plan.remedy(Failure::BadPivot, &[]), Some(Remedy::Diagonal));
    assert_eq!(plan.remedy(Failure::BadPivot, &[Remedy::Diagonal]), None);
    let minres = Remedy::with(Method::Minres, PrecondSpec::none());
    assert_eq!(plan.remedy(Failure::IndefiniteOperator, &[]), Some(minres));
    let with = |method, kind| Remedy::Method { method, preconditioner: Some(kind), ordering: None };
    let (cholesky, ldlt) =
        (with(Method::Cg, PrecondSpec::cholesky()), with(Method::Gmres(50), PrecondSpec::ldlt()));
    assert_eq!(plan.remedy(Failure::Slow, &[]), Some(cholesky.clone()));
    assert_eq!(plan.remedy(Failure::Slow, &[cholesky]), Some(ldlt.clone()));
    assert_eq!(plan.remedy(Failure::Breakdown, &[]), Some(ldlt));
    // At the end the first method again, and then nothing.
    let rest: Vec<Remedy> = plan.fallbacks.iter().map(|fallback| fallback.then.clone()).collect();
    let again = Remedy::Method { method: Method::Cg, preconditioner: None, ordering: None };
    assert_eq!(
        plan.remedy(Failure::Slow, &rest[..rest.iter().position(|r| *r == again).unwrap()]),
        Some(again)
    );
    assert_eq!(plan.remedy(Failure::Slow, &rest), None);
    // What was asked for by name is not left for another.
    let named = Solver::new().preconditioner(PrecondSpec::ic(0)).plan(&a).unwrap();
    assert_eq!(named.remedy(Failure::Slow, &[]), None);
    let without = Solver::new().recover(false).method(Method::Cg).plan(&a).unwrap();
    assert!(!without.shifts() && without.fallbacks.is_empty(), "{:?}", without.fallbacks);
}

#[test]
fn fill_is_halved_as_often_as_there_is_some() {
    let plan = Solver::new().preconditioner(PrecondSpec::ic(4)).plan(&problem("poisson2d:8")).unwrap();
    let tried = [Remedy::LessFill, Remedy::LessFill];
    assert_eq!(plan.remedy(Failure::MemoryLimit, &tried), Some(Remedy::LessFill));
}

#[test]
fn reasons_are_typed() {
    for (name, code, line) in [
        ("poisson2d:8", ReasonCode::SymmetricPositiveDiagonal, "cg with ic0: the matrix is symmetric"),
        ("convection3d:4", ReasonCode::NotSymmetric, "bicgstab with ilu0: the matrix is not symmetric"),
    ] {
        let plan = Solver::new().plan(&problem(name)).unwrap();
        assert_eq!(plan.reasons, [Reason::from(code)]);
        assert!(plan.to_string().starts_with(line), "{plan}");
    }
    let mut indefinite = problem("poisson2d:8");
    let place = indefinite.pattern().find(3, 3).unwrap();
    indefinite.values_mut()[place] = -1.0;
    assert_eq!(Solver::new().plan(&indefinite).unwrap().reasons[0].code, ReasonCode::SymmetricIndefinite);
}

/// What JSON keeps is the whole plan.
#[test]
fn plans_are_read_back() {
    for solver in [
        Solver::new(),
        Solver::new().method(Method::Gmres(17)).preconditioner("ilut(5,1e-4)".parse().unwrap()),
        Solver::new().reorder(Ordering::Rcm).precision(Precision::Mixed).layout(Layout::Rows),
    ] {
        let plan = solver.plan(&problem("convection3d:12")).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<SolvePlan>(&text).unwrap(), plan, "{text}");
    }
}
