//! Solves that cannot be done: status 2, a message with a remedy that fits, and a report for programs.

mod common;

use common::{Folder, GENERAL, ends, fails, json, krylith};

fn rectangle(folder: &Folder) -> String {
    folder.write("r.mtx", &format!("{GENERAL}2 3 1\n1 1 1\n"))
}

#[test]
fn a_rectangle() {
    let folder = Folder::new();
    let file = rectangle(&folder);
    for options in [&[][..], &["--precond", "jacobi"], &["--solver", "gmres"], &["-b", "no-such-file.mtx"]] {
        let arguments = [&["solve", &file], options].concat();
        fails(&arguments, &["r.mtx", "a square matrix is needed, this one is 2 x 3", "least-squares"]);
        assert!(!ends(2, &arguments).contains("--precond auto"));
    }
    let report = json(2, &["solve", &file]);
    assert_eq!(report["outcome"], "setup_failed");
    assert_eq!(report["error"], "a square matrix is needed, this one is 2 x 3");
    assert_eq!((&report["matrix"]["rows"], &report["matrix"]["columns"]), (&2.into(), &3.into()));
    assert!(report["remedy"].as_str().unwrap().contains("square systems"));
}

#[test]
fn memory() {
    let problem = ["solve", "gen:poisson3d:20", "--max-memory", "0.001"];
    let with = |options: &[&'static str]| [&problem[..], options].concat();
    fails(
        &with(&["--precond", "ic(5)"]),
        &[
            "gen:poisson3d:20, --precond ic(5): ",
            " MB of memory would be needed, more than the limit of 1.00 MB",
            "take a lower level of fill, such as --precond ic(2), or raise --max-memory to at least 0.0",
        ],
    );
    // The limit in decimal units, never a count of bytes with seven digits or more.
    let message = ends(2, &with(&["--precond", "ict(1e-4)"]));
    assert!(!message.contains("1000000") && message.contains("take a larger tolerance"), "{message}");
    // How much a factor by threshold would take is not known: nothing is claimed.
    assert!(message.contains("more than the limit of 1.00 MB") && !message.contains("at least"), "{message}");
    let report = json(2, &with(&["--precond", "ic(5)"]));
    assert_eq!((&report["outcome"], &report["limit_bytes"]), (&"setup_failed".into(), &1_000_000.into()));
    assert!(report["predicted_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!((&report["preconditioner"], &report["solver"]), (&"ic(5)".into(), &"auto".into()));
}

/// The remedy does not advise what was done already.
#[test]
fn memory_with_auto() {
    let folder = Folder::new();
    let file = folder.path("a.npz");
    ends(0, &["gen", "elasticity2d", "--n", "20", "-o", &file]);
    let message = ends(2, &["solve", &file, "--max-memory", "0.00001"]);
    // The limit that the message gives is enough.
    let enough = message.rsplit(' ').next().unwrap().trim();
    ends(0, &["solve", &file, "--max-memory", enough]);
    assert!(message.contains("--precond jacobi") && !message.contains("--precond auto"), "{message}");
    assert!(!message.contains("level of fill"), "{message}");
}

#[test]
fn bad_pivots_without_recovery() {
    let ic0 = ["solve", "gen:elasticity2d:20", "--precond", "ic0", "--solver", "cg"];
    let without = [&ic0[..], &["--recovery", "off"]].concat();
    fails(&without, &["--precond ic0: bad pivot -", "(counted from 1); leave out --recovery off"]);
    let report = json(2, &without);
    assert_eq!(report["outcome"], "setup_failed");
    assert!(report["row"].as_u64().is_some() && report["value"].as_f64().unwrap() < 0.0);
    ends(0, &ic0);
    let folder = Folder::new();
    let swap = folder.write("swap.mtx", &format!("{GENERAL}2 2 2\n1 2 1\n2 1 1\n"));
    let jacobi = ["solve", &swap, "--precond", "jacobi"];
    fails(
        &[&jacobi[..], &["--recovery", "off"]].concat(),
        &["row 1 (counted from 1) has no diagonal entry; leave out --recovery off: the largest entry"],
    );
    ends(0, &jacobi);
    let ict = ["solve", &swap, "--precond", "ict(0)"];
    let message = ends(2, &[&ict[..], &["--recovery", "off"]].concat());
    assert!(message.contains("the diagonal alone is then the preconditioner"), "{message}");
    assert_eq!(json(0, &ict)["preconditioner"], "jacobi");
}

/// People count rows from 1, programs from 0.
#[test]
fn rows_are_counted_from_one_for_people() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &format!("{GENERAL}2 2 3\n1 1 1\n2 1 1\n2 2 -1\n"));
    let zero = folder.write("z.mtx", &format!("{GENERAL}2 2 3\n1 1 1\n2 1 1\n2 2 0\n"));
    let ilu0 = ["solve", &zero, "--precond", "ilu0", "--recovery", "off", "--matching", "off"];
    fails(&ilu0, &["bad pivot 0.000e0 in row 2 (counted from 1)"]);
    let report = json(2, &ilu0);
    assert_eq!(
        (&report["row"], &report["error"]),
        (&1.into(), &"bad pivot 0e0 in row 1 (counted from 0)".into())
    );
    let nan = folder.path("nan.petsc");
    let numbers = [1_211_214i32, 2];
    let values = [1.0, f64::NAN];
    let bytes =
        numbers.iter().flat_map(|n| n.to_be_bytes()).chain(values.iter().flat_map(|v| v.to_be_bytes()));
    std::fs::write(&nan, Vec::from_iter(bytes)).unwrap();
    fails(&["solve", &a, "-b", &nan], &["b has NaN in row 2 (counted from 1)"]);
    assert!(
        json(2, &["solve", &a, "-b", &nan])["error"].as_str().unwrap().contains("row 1 (counted from 0)")
    );
}

#[test]
fn blocks_that_do_not_fit() {
    let problem = ["solve", "gen:poisson2d:20", "--precond", "bic0(7)"];
    fails(&problem, &["400 rows are not a multiple", "choose a block size that divides 400"]);
}

/// METIS is in a build by choice.
#[test]
fn an_ordering_that_is_not_in_this_build() {
    let problem = ["solve", "gen:poisson2d:20", "--reorder", "nd"];
    if krylith(&problem).status.success() {
        return;
    }
    fails(&problem, &["`nd` is not in this build", "choose another ordering than --reorder nd"]);
    assert!(json(2, &problem)["error"].as_str().unwrap().contains("metis"));
}

/// Nothing is written in place of an answer.
#[test]
fn no_answer_is_no_file() {
    let folder = Folder::new();
    let (file, x, plot) = (rectangle(&folder), folder.path("x.mtx"), folder.path("p.svg"));
    ends(2, &["solve", &file, "-x", &x, "--plot", &plot]);
    assert_eq!(folder.names(), ["r.mtx"]);
}
