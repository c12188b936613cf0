//! `--sparsify` of `krylith solve` and `krylith info`.

mod common;

use common::{json, krylith, text};

#[test]
fn a_solve_says_what_was_dropped() {
    let arguments = ["solve", "gen:fem2d:20", "--solver", "cg", "--precond", "ic0", "--sparsify", "5"];
    let report = json(0, &arguments);
    let found = &report["plan"]["sparsification"];
    assert_eq!((&report["plan"]["sparsify"], &found["reason"]), (&"5".into(), &"as asked".into()));
    let dropped = found["candidates"][0]["dropped"].as_u64().unwrap();
    assert!(dropped > 0 && report["preconditioner_nnz"].as_u64() < Some(1600), "{found}");
    let words = text(0, &arguments);
    assert!(words.contains(&format!("{dropped} entries are dropped")), "{words}");
    let plain = json(0, &arguments[..6]);
    assert!(plain["plan"]["sparsification"].is_null());
    let explained = text(0, &[&arguments[..], &["--explain"]].concat());
    assert!(
        explained.contains("  sparsification    ") && explained.contains("entries are dropped"),
        "{explained}"
    );
}

#[test]
fn info_shows_what_each_ratio_would_do() {
    let arguments = ["info", "gen:fem2d:20", "--sparsify"];
    let words = text(0, &arguments);
    for expected in ["  sparsification ", "off", "0.5 %", "20 %", "paper: "] {
        assert!(words.contains(expected), "{words}");
    }
    let facts = json(0, &arguments);
    let found = &facts["sparsification"];
    assert_eq!(found["candidates"].as_array().map(Vec::len), Some(6));
    assert_eq!(found["wavefronts"], facts["wavefronts"]["lower"]);
    assert!(found["paper"]["taken"].is_u64());
}

#[test]
fn machines_have_names_and_wrong_names_are_explained() {
    let solve = ["solve", "gen:circuit:80", "--solver", "cg", "--precond", "ic0", "--sparsify", "auto"];
    let of = |machine: &str| json(0, &[&solve[..], &["--machine", machine]].concat());
    assert!(of("reference")["plan"]["sparsification"]["taken"].is_null());
    assert_eq!(of("many-core")["plan"]["sparsification"]["taken"], 0);
    let wrong = krylith(&["solve", "gen:poisson2d:5", "--sparsify", "papr"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("did you mean `paper`"), "{said}");
}
