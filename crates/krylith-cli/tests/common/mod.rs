//! What the tests of the command share.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

pub const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";

pub fn krylith(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_krylith")).args(arguments).output().unwrap()
}

/// A run with this on its standard input.
pub fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Whoever refuses the input does not read it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What a run that ends with this status prints.
pub fn text(status: i32, arguments: &[&str]) -> String {
    let output = krylith(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a run that ends with this status.
pub fn ends(status: i32, arguments: &[&str]) -> String {
    let output = krylith(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

/// Ends with status 2 and a message that contains every one of `expected`.
pub fn fails(arguments: &[&str], expected: &[&str]) {
    let error = ends(2, arguments);
    for part in expected {
        assert!(error.contains(part), "{arguments:?}: {error:?} does not contain {part:?}");
    }
}

/// The JSON on standard output of a run that ends with this status.
pub fn json(status: i32, arguments: &[&str]) -> serde_json::Value {
    let output = krylith(&[arguments, &["--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A temporary folder for the files of a test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
