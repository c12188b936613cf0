//! Ctrl-C: what there is so far is written, what is lost is said, and the exit status is 130.
#![cfg(unix)]

mod common;

use common::Folder;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn press(child: &Child) {
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
}

/// Ends with status 130 within some seconds; what it has written to standard output and to standard error.
fn ended(mut child: Child) -> (String, String) {
    let asked = Instant::now();
    let status = child.wait().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    let (mut output, mut error) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut error).unwrap();
    }
    assert_eq!(status.code(), Some(130), "{output} {error}");
    (output, error)
}

/// The matrix never comes: nobody writes to standard input.
fn while_reading(arguments: &[&str]) -> (String, String) {
    let mut child = start(arguments);
    let stdin = child.stdin.take();
    std::thread::sleep(Duration::from_millis(2500));
    press(&child);
    let ended = ended(child);
    drop(stdin);
    ended
}

#[test]
fn a_solve_without_an_answer_says_so() {
    let folder = Folder::new();
    let (json, x) = (folder.path("r.json"), folder.path("x.txt"));
    let (output, error) = while_reading(&["solve", "-", "--json", &json, "-x", &x]);
    assert!(
        output.is_empty() && error.contains("standard input: interrupted before there was an answer"),
        "{error}"
    );
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(
        (&report["outcome"], &report["matrix"]["source"]),
        (&"interrupted".into(), &"standard input".into())
    );
    assert!(!Path::new(&x).exists());
    let (output, _) = while_reading(&["solve", "-", "--json", "-"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["outcome"], "interrupted");
}

/// A training of very many rounds is part of the set-up.
#[test]
fn a_set_up_ends_at_once() {
    let child =
        start(&["solve", "gen:fem2d:300", "--solver", "cg", "--precond", "learned(1000)", "--json", "-"]);
    std::thread::sleep(Duration::from_millis(5000));
    press(&child);
    let (output, error) = ended(child);
    assert!(error.contains("gen:fem2d:300: interrupted before there was an answer"), "{error}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&report["outcome"], &report["matrix"]["rows"]), (&"interrupted".into(), &90_000.into()));
    assert_eq!(report["preconditioner"], "learned(1000)");
}

#[test]
fn a_training_that_has_a_factor_saves_it() {
    let folder = Folder::new();
    let file = folder.path("factor.mtx");
    let mut child = start(&["train", "gen:fem2d:150", "-o", &file, "--rounds", "100000", "--rtol", "1e-10"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("round   1: "), "{first}");
    press(&child);
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    let (output, _) = ended(child);
    let ending = |line: &&String| line.contains("the training ends, and the best factor so far is saved");
    assert_eq!(said.iter().filter(ending).count(), 1, "{said:?}");
    assert!(output.contains("use it: krylith solve gen:fem2d:150"), "{output}");
    let solve = ["gen:fem2d:150", "--solver", "cg", "--precond", "ssor", "--precond-matrix", &file];
    let report = common::json(0, &[&["solve"], &solve[..]].concat());
    assert_eq!(report["preconditioner_matrix"], file);
}

#[test]
fn a_training_that_has_nothing_saves_nothing() {
    let folder = Folder::new();
    let file = folder.path("factor.mtx");
    let (output, error) = while_reading(&["train", "-", "-o", &file]);
    assert!(output.is_empty() && error.contains("interrupted before a factor was saved"), "{error}");
    assert!(!Path::new(&file).exists());
}
