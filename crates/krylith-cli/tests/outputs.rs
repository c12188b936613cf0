//! Files that cannot be written: found before any work, with a message that names the file, the reason and what to do.

mod common;

use common::{Folder, GENERAL, ends, fails};

/// Every way to name an output, on a matrix that does not exist: whoever reads it first speaks of the matrix.
fn commands(target: &str) -> Vec<Vec<&str>> {
    let with_ending = |options: &[&'static str], ending: &str| {
        target.ends_with(ending).then(|| [&options[..options.len() - 1], &[target]].concat())
    };
    let mut all = vec![
        vec!["solve", "no-such-matrix.mtx", "--json", target],
        vec!["info", "no-such-matrix.mtx", "--json", target],
    ];
    all.extend(with_ending(&["solve", "no-such-matrix.mtx", "--plot", ""], ".svg"));
    all.extend(with_ending(&["info", "no-such-matrix.mtx", "--plot", ""], ".svg"));
    all.extend(with_ending(&["spy", "no-such-matrix.mtx", "-o", ""], ".svg"));
    all.extend(with_ending(&["solve", "no-such-matrix.mtx", "-x", ""], ".mtx"));
    all.extend(with_ending(&["convert", "no-such-matrix.mtx", ""], ".mtx"));
    // Ten times what memory holds: the output is looked at before that is found.
    all.extend(with_ending(&["gen", "poisson3d", "--n", "1000", "--max-memory", "0.1", "-o", ""], ".mtx"));
    all
}

fn each_fails(target: &str, expected: &[&str]) {
    let commands = commands(target);
    assert!(commands.len() > 2);
    for command in commands {
        fails(&command, &[&[target], expected].concat());
    }
}

#[test]
fn a_missing_directory() {
    let folder = Folder::new();
    for ending in ["mtx", "svg"] {
        let target = folder.path(&format!("missing/out.{ending}"));
        each_fails(&target, &["cannot be written: the directory ", "missing does not exist; create it"]);
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_directory_in_place_of_a_file() {
    let folder = Folder::new();
    for ending in ["mtx", "svg"] {
        let target = folder.path(&format!("directory.{ending}"));
        std::fs::create_dir(&target).unwrap();
        each_fails(&target, &["it is a directory; name a file in it"]);
    }
    // A directory is called one, whatever its name ends in.
    let plain = folder.path("plain");
    std::fs::create_dir(&plain).unwrap();
    for command in [
        &["solve", "no-such-matrix.mtx", "-x", &plain][..],
        &["solve", "no-such-matrix.mtx", "--plot", &plain],
        &["info", "no-such-matrix.mtx", "--plot", &plain],
        &["spy", "no-such-matrix.mtx", "-o", &plain],
        &["convert", "no-such-matrix.mtx", &plain],
        &["gen", "poisson2d", "-o", &plain],
    ] {
        fails(command, &[&plain, "it is a directory"]);
    }
    let target = format!("{}/", folder.path("new"));
    fails(&["solve", "no-such-matrix.mtx", "--json", &target], &[&target, "name a file"]);
}

#[test]
fn a_file_in_place_of_a_directory() {
    let folder = Folder::new();
    folder.write("file", "");
    for ending in ["mtx", "svg"] {
        each_fails(&folder.path(&format!("file/out.{ending}")), &["cannot be written", "choose another"]);
    }
}

/// Nobody, the administrator included, creates files in /proc.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_takes_no_new_file() {
    for ending in ["mtx", "svg"] {
        let target = format!("/proc/krylith-out.{ending}");
        each_fails(&target, &["the directory /proc takes no new file", "choose another one"]);
    }
}

#[cfg(unix)]
#[test]
fn write_protected_directories_and_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let mode = |path: &str, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let directory = folder.path("protected");
    std::fs::create_dir(&directory).unwrap();
    mode(&directory, 0o555);
    if std::fs::write(format!("{directory}/try"), "").is_ok() {
        // The administrator may write anywhere.
        return;
    }
    let file = folder.write("old.mtx", "old");
    mode(&file, 0o444);
    for ending in ["mtx", "svg"] {
        each_fails(&format!("{directory}/out.{ending}"), &["takes no new file", "ermission denied"]);
    }
    each_fails(&file, &["the file exists and", "ermission denied", "allow writing to it"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    mode(&directory, 0o755);
}

/// b has one entry too many: the solve ends before there is an answer.
#[test]
fn nothing_is_touched_when_the_solve_fails() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &format!("{GENERAL}2 2 2\n1 1 1\n2 2 1\n"));
    let b = folder.write("b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n1\n1\n");
    let old = folder.write("old.mtx", "old");
    let (old_plot, old_json) = (folder.write("old.svg", "old"), folder.write("old.json", "old"));
    let (x, plot, json) = (folder.path("x.mtx"), folder.path("r.svg"), folder.path("r.json"));
    ends(2, &["solve", &a, "-b", &b, "-x", &x, "--plot", &plot, "--json", &json]);
    ends(2, &["solve", &a, "-b", &b, "-x", &old, "--plot", &old_plot, "--json", &old_json]);
    assert_eq!(folder.names(), ["a.mtx", "b.mtx", "old.json", "old.mtx", "old.svg"]);
    for file in [old, old_plot, old_json] {
        assert_eq!(std::fs::read_to_string(file).unwrap(), "old");
    }
}

#[test]
fn an_input_is_not_overwritten() {
    let folder = Folder::new();
    let text = format!("{GENERAL}2 2 2\n1 1 1\n2 2 1\n");
    let a = folder.write("a.mtx", &text);
    let b = folder.write("b.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
    let dotted = folder.path("./a.mtx");
    for command in [
        vec!["solve", &a, "-x", &a],
        vec!["solve", &a, "-x", &dotted],
        vec!["solve", &a, "--json", &a],
        vec!["info", &a, "--json", &a],
        vec!["convert", &a, &a],
    ] {
        fails(&command, &["would overwrite the input", "a.mtx", "choose another name"]);
    }
    fails(&["solve", &a, "-b", &b, "-x", &b], &["would overwrite the input", "b.mtx"]);
    assert_eq!(std::fs::read_to_string(&a).unwrap(), text);
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &format!("{GENERAL}1 1 1\n1 1 1\n"));
    let link = folder.path("link.mtx");
    std::os::unix::fs::symlink("a.mtx", &link).unwrap();
    fails(&["solve", &a, "-x", &link], &["would overwrite the input"]);
    let astray = folder.path("astray.json");
    std::os::unix::fs::symlink("missing/r.json", &astray).unwrap();
    fails(&["solve", &a, "--json", &astray], &["astray.json", "missing does not exist"]);
    let new = folder.path("new.json");
    std::os::unix::fs::symlink("r.json", &new).unwrap();
    ends(0, &["solve", &a, "--json", &new]);
    assert!(folder.names().contains(&"r.json".into()));
}

#[test]
fn one_file_for_two_outputs() {
    let folder = Folder::new();
    let (both, svg) = (folder.path("both.mtx"), folder.path("both.svg"));
    let expected = ["--json", "would overwrite -x", "give each its own file"];
    fails(&["solve", "gen:poisson2d:4", "-x", &both, "--json", &both], &expected);
    fails(&["info", "gen:poisson2d:4", "--plot", &svg, "--json", &svg], &["would overwrite --plot"]);
    assert_eq!(folder.names(), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_standard_output_are_no_files() {
    ends(0, &["solve", "gen:poisson2d:4", "--json", "/dev/null"]);
    ends(0, &["info", "gen:poisson2d:4", "--json", "-"]);
}

/// A name that is free now and too long for the file system, or for the file that is written beside it.
#[test]
fn names_that_are_too_long() {
    let folder = Folder::new();
    each_fails(&folder.path(&format!("{}.mtx", "n".repeat(300))), &["cannot be written", "choose another"]);
    let beside = folder.path(&format!("{}.mtx", "n".repeat(250)));
    fails(&["convert", "no-such-matrix.mtx", &beside], &["cannot be written"]);
    let name = folder.path(&"n".repeat(250));
    ends(0, &["info", "gen:poisson2d:4", "--json", &name]);
}
