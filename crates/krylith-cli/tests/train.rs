//! `krylith train`, and solves with what it writes.

mod common;

use common::{json, krylith, text};

#[test]
fn a_trained_factor_is_saved_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("factor.mtx.zst");
    let file = file.to_str().unwrap();
    let said = text(0, &["train", "gen:fem2d:40", "-o", file, "--rounds", "5"]);
    assert!(said.contains("iterations of CG, IC(0)"), "{said}");
    let next = said.lines().last().unwrap().strip_prefix("use it: krylith ").unwrap();
    // Another right-hand side than those of the training.
    let solve = |arguments: &[&str]| json(0, &[arguments, &["--rhs", "random"]].concat());
    let trained = solve(&next.split(' ').collect::<Vec<_>>());
    let plain = solve(&["solve", "gen:fem2d:40", "--solver", "cg", "--precond", "ic0"]);
    let iterations = |report: &serde_json::Value| report["iterations"].as_u64().unwrap();
    assert!(10 * iterations(&trained) < 8 * iterations(&plain), "{trained} {plain}");
    assert_eq!(
        (&trained["preconditioner_matrix"], &plain["preconditioner_matrix"]),
        (&file.into(), &().into())
    );
    let by_name = solve(&["solve", "gen:fem2d:40", "--solver", "cg", "--precond", "learned(5)"]);
    assert_eq!(iterations(&by_name), iterations(&trained));

    let wrong = krylith(&["solve", "gen:fem2d:41", "--precond", "ssor", "--precond-matrix", file]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("matrix of the preconditioner"), "{said}");
}

#[test]
fn what_cannot_be_trained_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("factor.mtx");
    let file = file.to_str().unwrap();
    let wrong = krylith(&["train", "gen:convection3d:8", "-o", file]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("not symmetric"), "{said}");
    assert!(!std::path::Path::new(file).exists());
}

/// Conjugate gradients cannot go on, so nothing is learned, and no factor is of use.
#[test]
fn an_indefinite_matrix_is_refused() {
    let folder = common::Folder::new();
    let file = folder.path("factor.mtx");
    // A positive diagonal, and pairs of eigenvalues -1 and 3; then a negative diagonal entry in the third row.
    let pairs = |third: &str| {
        let entries: String = (1..=30)
            .map(|k| {
                let (i, j) = (2 * k - 1, 2 * k);
                let diagonal = if k == 2 { third } else { "1" };
                format!("{i} {i} {diagonal}\n{i} {j} 2\n{j} {i} 2\n{j} {j} 1\n")
            })
            .collect();
        format!("{}60 60 120\n{entries}", common::GENERAL)
    };
    let indefinite = folder.write("a.mtx", &pairs("1"));
    let refused = |a: &str, expected: &[&str]| {
        common::fails(&["train", a, "-o", &file], &[expected, &["krylith solve"]].concat());
        assert!(!std::path::Path::new(&file).exists());
    };
    refused(&indefinite, &["a.mtx: the matrix is not positive definite", "nothing is saved"]);
    let negative = folder.write("b.mtx", &pairs("-1"));
    refused(
        &negative,
        &["b.mtx: the matrix is not positive definite: bad pivot -1e0 in row 3 (counted from 1)"],
    );
}
