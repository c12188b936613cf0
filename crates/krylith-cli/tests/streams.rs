//! Standard output and standard error that are full or closed: no panic, and an exit status that says what happened.
#![cfg(target_os = "linux")]

mod common;

use common::{Folder, GENERAL};
use std::fs::File;
use std::process::{Child, Command, Stdio};

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn start(arguments: &[&str], out: Stdio, error: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_krylith")).args(arguments).stdout(out).stderr(error).spawn().unwrap()
}

/// Exit status with a full standard error.
fn without_error(arguments: &[&str]) -> Option<i32> {
    start(arguments, Stdio::null(), full()).wait().unwrap().code()
}

/// Exit status and messages with a full standard output.
fn without_output(arguments: &[&str]) -> (Option<i32>, String) {
    let output = start(arguments, full(), Stdio::piped()).wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_full_standard_error() {
    let folder = Folder::new();
    let rectangle = folder.write("r.mtx", &format!("{GENERAL}2 3 1\n1 1 1\n"));
    assert_eq!(without_error(&["info", "no-such-file.mtx"]), Some(2));
    assert_eq!(without_error(&["solve", "no-such-file.mtx"]), Some(2));
    assert_eq!(without_error(&["info", &rectangle, "--orderings"]), Some(2));
    assert_eq!(without_error(&["solvee"]), Some(2));
    assert_eq!(without_error(&["solve", "gen:poisson2d:9", "--rtol", "x"]), Some(2));
    assert_eq!(without_error(&["solve", "gen:poisson2d:20", "--max-iterations", "2"]), Some(3));
    assert_eq!(without_error(&["solve", "gen:poisson2d:20"]), Some(0));
    let ic0 = ["solve", "gen:elasticity2d:20", "--precond", "ic0", "--solver", "cg", "--recovery", "off"];
    assert_ne!(without_error(&ic0), Some(101), "no panic");
}

#[test]
fn a_full_standard_output() {
    for arguments in [
        &["--help"][..],
        &["solve", "--help"],
        &["--version"],
        &["gen"],
        &["gen", "poisson2d", "--n", "4"],
        &["info", "gen:poisson2d:9"],
        &["info", "gen:poisson2d:9", "--json", "-"],
        &["solve", "gen:poisson2d:9"],
        &["solve", "gen:poisson2d:9", "--json", "-"],
        &["solve", "gen:poisson2d:20", "--max-iterations", "2"],
    ] {
        let (status, error) = without_output(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(error.starts_with("krylith: standard output cannot be written: No space"), "{error}");
    }
}

#[test]
fn both_full() {
    assert_eq!(start(&["solve", "gen:poisson2d:9"], full(), full()).wait().unwrap().code(), Some(2));
    assert_eq!(start(&["--help"], full(), full()).wait().unwrap().code(), Some(2));
}

#[test]
fn both_closed() {
    let program = env!("CARGO_BIN_EXE_krylith");
    for (arguments, status) in [
        ("solve gen:poisson2d:9", 0),
        ("solve gen:poisson2d:20 --max-iterations 2", 3),
        ("--help", 0),
        ("solve no-such-file.mtx", 2),
        ("solvee", 2),
    ] {
        let script = format!("'{program}' {arguments} >&- 2>&-");
        let ended = Command::new("sh").args(["-c", &script]).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments}");
    }
}

#[test]
fn readers_that_have_gone() {
    for (arguments, status) in [
        (&["--help"][..], 0),
        (&["solve", "gen:poisson2d:60", "--json", "-"], 0),
        (&["solve", "gen:poisson2d:20", "--max-iterations", "2"], 3),
        (&["solve", "no-such-file.mtx"], 2),
        (&["solvee"], 2),
    ] {
        let mut child = start(arguments, Stdio::piped(), Stdio::piped());
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(status), "{arguments:?}");
    }
}

/// Neither a full standard output nor a full disk under the picture takes the answer away.
#[test]
fn what_can_be_written_is_written() {
    let folder = Folder::new();
    let (x, json, picture) = (folder.path("x.mtx"), folder.path("r.json"), folder.path("r.svg"));
    std::os::unix::fs::symlink("/dev/full", &picture).unwrap();
    let arguments = ["solve", "gen:poisson2d:9", "-x", &x, "--plot", &picture, "--json", &json];
    let (status, error) = without_output(&arguments);
    assert_eq!(status, Some(2));
    assert!(error.contains("r.svg: No space") && error.contains("standard output"), "{error}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(report["outcome"], "converged");
    assert!(std::fs::read_to_string(&x).unwrap().starts_with("%%MatrixMarket"));
}
