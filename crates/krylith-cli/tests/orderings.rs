//! `krylith info --orderings`, for people and for programs.

use serde_json::Value;
use std::process::{Command, Output};

fn krylith(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_krylith")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = krylith(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The five-point grid of 4 x 4 in natural order: 7 diagonals, 24 edges; each of the first 12 columns of the factor reaches
/// 4 rows down (but for the first row of the grid, where fill has not yet spread).
#[test]
fn for_programs() {
    let info = json(&["info", "gen:poisson2d:4", "--orderings", "--json", "-"]);
    let lines = info["orderings"].as_array().unwrap();
    let names: Vec<&str> = lines.iter().map(|l| l["ordering"].as_str().unwrap()).collect();
    assert_eq!(names, ["natural", "rcm", "amd", "nd", "colour"]);
    let natural = &lines[0];
    assert_eq!(natural["wavefronts"], info["wavefronts"]["lower"]);
    assert_eq!(natural["wavefronts"], 7);
    assert_eq!(natural["mean_wavefront"], 16.0 / 7.0);
    assert_eq!(natural["bandwidth"], 4);
    assert_eq!(natural["ic0_entries"], 16 + 24);
    // Below the diagonal: 2 3 4 4, then 4 in the columns of rows 1 and 2 of the grid, then 3 2 1 0.
    assert_eq!(natural["cholesky_entries"], 16 + 13 + 8 * 4 + 6);
    assert_eq!(lines[4]["wavefronts"], 2, "red and black");
    for line in lines.iter().filter(|l| l["error"].is_null()) {
        assert_eq!(line["ic0_entries"], 40);
        assert!(line["cholesky_entries"].as_u64() >= Some(40));
    }
    let without = json(&["info", "gen:poisson2d:4", "--json", "-"]);
    assert!(without.get("orderings").is_none());
}

#[test]
fn for_people() {
    let output = krylith(&["info", "gen:poisson2d:40", "--orderings"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let start = text.find("  orderings").unwrap_or_else(|| panic!("{text}"));
    let lines: Vec<&str> = text[start..].lines().take(6).collect();
    assert!(lines[0].ends_with("Cholesky entries"), "{}", lines[0]);
    for (line, name) in lines[1..].iter().zip(["natural", "rcm", "amd", "nd", "colour"]) {
        assert_eq!(line.split_whitespace().next(), Some(name), "{line}");
    }
    assert!(lines[1].contains(" 79 ") && lines[1].contains(" 4,720 "), "{}", lines[1]);
    let nd = lines[4];
    assert!(nd.contains("4,720") || nd.contains("enable the cargo feature `metis`"), "{nd}");
}

#[test]
fn of_a_rectangle() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.mtx");
    std::fs::write(&file, "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 5\n").unwrap();
    let output = krylith(&["info", file.to_str().unwrap(), "--orderings"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("a square matrix is needed, this one is 2 x 3"), "{error}");
}
