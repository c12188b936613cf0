//! Standard input as a matrix or a right-hand side, standard output for the answer, and vectors in plain text.

mod common;

use common::{Folder, GENERAL, ends, fails, fed, json, krylith, text};
use std::io::Write;
use std::process::Output;

const DIAGONAL: &str = "2 2 2\n1 1 2\n2 2 4\n";

fn diagonal() -> String {
    format!("{GENERAL}{DIAGONAL}")
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    words(&output.stdout)
}

/// Ends with status 2 and this on standard error, nothing on standard output.
fn refused(output: &Output, expected: &str) {
    let error = words(&output.stderr);
    assert_eq!((output.status.code(), words(&output.stdout)), (Some(2), String::new()), "{error}");
    assert!(error.contains(expected), "{error:?} does not contain {expected:?}");
}

#[test]
fn a_matrix_of_every_format_from_standard_input() {
    let folder = Folder::new();
    for ending in ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npz", "petsc"] {
        let file = folder.path(&format!("a.{ending}"));
        ends(0, &["gen", "poisson2d", "--n", "9", "-o", &file]);
        let bytes = std::fs::read(&file).unwrap();
        let info: serde_json::Value =
            serde_json::from_str(&done(&fed(&["info", "-", "--json", "-"], &bytes))).unwrap();
        assert_eq!(
            (&info["matrix"]["rows"], &info["matrix"]["source"]),
            (&81.into(), &"standard input".into())
        );
        let (copy, picture) = (folder.path(&format!("b.{ending}")), folder.path("a.svg"));
        done(&fed(&["convert", "-", &copy], &bytes));
        assert_eq!(json(0, &["info", &copy])["matrix"]["nnz"], info["matrix"]["nnz"], "{ending}");
        done(&fed(&["spy", "-", "-o", &picture], &bytes));
        assert!(std::fs::read_to_string(&picture).unwrap().contains("standard input: 81 x 81"));
    }
    let report = done(&fed(&["solve", "-"], diagonal().as_bytes()));
    assert!(report.contains("matrix            standard input, 2 rows, 2 entries"), "{report}");
}

#[test]
fn a_right_hand_side_from_standard_input() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &diagonal());
    for b in ["2\n-8\n", "%%MatrixMarket matrix array real general\n2 1\n2\n-8\n"] {
        let output = fed(&["solve", &a, "-b", "-", "-x", "-"], b.as_bytes());
        assert_eq!(done(&output), "1\n-2\n");
        assert!(words(&output.stderr).contains("right-hand side   standard input"));
    }
    refused(
        &fed(&["solve", &a, "-b", "-"], b"1\n2\n3\n"),
        "standard input: 3 entries, the matrix has 2 rows",
    );
    refused(
        &fed(&["solve", &a, "-b", "-"], b"1\n2 3\n"),
        "standard input: line 2: one number per line is needed",
    );
}

#[test]
fn what_is_wrong_with_standard_input() {
    refused(&fed(&["info", "-"], b""), "standard input: the file is empty");
    refused(&fed(&["info", "-"], b"hello"), "standard input: unknown format");
    refused(
        &fed(&["info", "-"], format!("{GENERAL}2 2 1\n1 3 5\n").as_bytes()),
        "standard input: line 3: column 3",
    );
    refused(
        &fed(&["solve", "-", "-b", "-"], diagonal().as_bytes()),
        "cannot both be read from standard input",
    );
    // The limit on expansion holds, for a matrix and for a right-hand side, and can be raised.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    let comment = format!("%{}\n", "-".repeat(40_000_000));
    encoder.write_all(format!("{GENERAL}{comment}{DIAGONAL}").as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    refused(&fed(&["info", "-"], &packed), "--max-expansion");
    done(&fed(&["info", "-", "--max-expansion", "1000000"], &packed));
    let folder = Folder::new();
    let a = folder.write("a.mtx", &diagonal());
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(format!("{comment}1\n2\n").as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    refused(&fed(&["solve", &a, "-b", "-"], &packed), "--max-expansion");
    done(&fed(&["solve", &a, "-b", "-", "--max-expansion", "1000000"], &packed));
    let file = folder.path("b.txt.zst");
    std::fs::write(&file, &packed).unwrap();
    ends(0, &["solve", &a, "-b", &file, "--max-expansion", "1000000"]);
}

#[test]
fn an_answer_on_standard_output() {
    let folder = Folder::new();
    let (a, report) = (folder.write("a.mtx", &diagonal()), folder.path("r.json"));
    let output = krylith(&["solve", &a, "-x", "-", "--json", &report]);
    assert_eq!(done(&output), "1\n1\n");
    let aside = words(&output.stderr);
    assert!(aside.starts_with("converged in ") && aside.contains("\n  seconds "), "{aside}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("\"converged\""));
    fails(
        &["solve", &a, "-x", "-", "--json", "-"],
        &["-x and --json cannot both be written to standard output"],
    );
    // Not converged: the answer is still written.
    let output = krylith(&["solve", "gen:poisson2d:20", "--max-iterations", "2", "-x", "-"]);
    assert_eq!((output.status.code(), words(&output.stdout).lines().count()), (Some(3), 400));
    // No solve, no answer.
    let rectangle = folder.write("r.mtx", &format!("{GENERAL}2 3 1\n1 1 1\n"));
    refused(&krylith(&["solve", &rectangle, "-x", "-"]), "a square matrix is needed");
}

/// What is written as text is read to the same bits, from a file and through a pipe.
#[test]
fn plain_text_there_and_back() {
    let folder = Folder::new();
    let (x, y) = (folder.path("x.txt"), folder.path("y.npy"));
    let random = ["solve", "gen:poisson2d:12", "--rhs", "random", "--threads", "1"];
    ends(0, &[&random[..], &["-x", &x]].concat());
    ends(0, &[&random[..], &["-x", &y]].concat());
    let written = std::fs::read_to_string(&x).unwrap();
    let exact = std::fs::read(&y).unwrap();
    let numbers: Vec<u8> =
        written.lines().flat_map(|line| line.parse::<f64>().unwrap().to_le_bytes()).collect();
    assert_eq!(numbers, exact[exact.len() - 8 * 144..]);
    assert_eq!(text(0, &[&random[..], &["-x", "-"]].concat()), written);
    let identity = folder.path("i.mtx");
    let lines: String = (1..=144).map(|i| format!("{i} {i} 1\n")).collect();
    std::fs::write(&identity, format!("{GENERAL}144 144 144\n{lines}")).unwrap();
    assert_eq!(done(&fed(&["solve", &identity, "-b", "-", "-x", "-"], written.as_bytes())), written);
    let b = folder.write("b.txt", "# one\n1\n\n2,5\n");
    fails(&["solve", &identity, "-b", &b], &["b.txt: line 4: one number per line is needed"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_nobody_takes() {
    use std::process::{Command, Stdio};
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args(["solve", "gen:poisson2d:9", "-x", "-"])
        .stdout(Stdio::from(full))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output.stderr).contains("krylith: standard output cannot be written: No space"));
}

/// The matrix of the preconditioner comes from where A may come from.
#[test]
fn a_matrix_of_the_preconditioner_from_anywhere() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &diagonal());
    let output = fed(&["solve", &a, "--precond-matrix", "-", "-x", "-"], diagonal().as_bytes());
    assert_eq!(done(&output), "1\n1\n");
    assert!(words(&output.stderr).contains("precond matrix    standard input, 2 entries"));
    for (other, both) in [
        (["-", "--precond-matrix"], "the matrix and --precond-matrix cannot both"),
        ([&a, "--precond-matrix"], "-b and --precond-matrix cannot both"),
        ([&a, "--null-space"], "-b and --null-space cannot both"),
    ] {
        let b: &[&str] = if other[0] == "-" { &[] } else { &["-b", "-"] };
        let arguments = [&["solve"], &other[..], &["-"], b].concat();
        refused(&fed(&arguments, diagonal().as_bytes()), both);
    }
    // A generated matrix is no file: one of its name may be written.
    let x = folder.path("gen:poisson2d:9.txt");
    let report = json(0, &["solve", "gen:poisson2d:9", "--precond-matrix", "gen:poisson2d:9", "-x", &x]);
    assert_eq!(report["preconditioner_matrix"], "gen:poisson2d:9");
    fails(&["solve", &a, "--precond-matrix", &a, "--json", &a], &["--json", "would overwrite the input"]);
    fails(&["solve", &a, "--precond-matrix", "gen:poisson2d:9"], &["matrix of the preconditioner"]);
    // PETSc binary: rows, columns, entries, lengths of rows, columns of entries.
    let infinite = folder.path("inf.petsc");
    let numbers = [1_211_216i32, 2, 2, 2, 1, 1, 0, 1].into_iter().flat_map(i32::to_be_bytes);
    let values = [2.0, f64::INFINITY].into_iter().flat_map(f64::to_be_bytes);
    std::fs::write(&infinite, Vec::from_iter(numbers.chain(values))).unwrap();
    fails(
        &["solve", &a, "--precond-matrix", &infinite],
        &["--precond-matrix", "inf.petsc has inf in row 2, column 2 (both counted from 1)"],
    );
}
