//! The command as a user or a script meets it: what it prints, what it writes, how it ends.

use std::path::Path;
use std::process::{Command, Output};

fn krylith(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_krylith")).args(arguments).output().unwrap()
}

fn succeeds(arguments: &[&str]) -> String {
    let output = krylith(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    assert_eq!(error, "", "nothing on standard error where there is no terminal");
    String::from_utf8(output.stdout).unwrap()
}

/// Ends with status 2 and a message that contains `expected`.
fn fails(arguments: &[&str], expected: &str) {
    let output = krylith(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(error.contains(expected), "{arguments:?}: {error:?} does not contain {expected:?}");
    assert!(!error.contains("panicked"), "{error}");
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&succeeds(arguments)).unwrap()
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn info_for_programs() {
    let info = json(&["info", "gen:poisson3d:6", "--json", "-"]);
    assert_eq!(info["matrix"]["rows"], 216);
    assert_eq!(info["matrix"]["nnz"], 7 * 216 - 6 * 36);
    assert_eq!(info["matrix"]["symmetric"], true);
    assert_eq!(info["wavefronts"]["lower"], 16);
    assert_eq!(info["wavefronts"]["upper"], 16);
    assert_eq!(info["bandwidth"]["lower"], 36);
    assert_eq!(info["grid"]["extents"], serde_json::json!([6, 6, 6]));
    assert_eq!((&info["grid"]["stencil"], &info["grid"]["dof"]), (&"Star-7P".into(), &1.into()));
    assert_eq!((&info["grid"]["levels"], &info["grid"]["fullness"]), (&16.into(), &1.0.into()));
    assert_eq!(info["grid"]["offsets"].as_array().unwrap().len(), 7);
    assert_eq!(info["diagonal"]["positive"], 216);
    assert_eq!(info["diagonal"]["dominant_rows"], 216);
    assert_eq!(info["row_lengths"]["histogram"][0], serde_json::json!({ "from": 4, "to": 4, "rows": 8 }));
    assert_eq!(info["memory"]["matrix_bytes"], 12 * 1296 + 8 * 217);
    // What was planned is what a solve then holds; on one thread there are no plans to hold besides.
    for (precond, solver, plan) in [("ic0", "cg", "ic0_bytes"), ("ilu0", "gmres", "ilu0_bytes")] {
        let report = json(&[
            "solve",
            "gen:poisson3d:6",
            "--precond",
            precond,
            "--solver",
            solver,
            "--threads",
            "1",
            "--json",
            "-",
        ]);
        assert_eq!(info["memory"][plan], report["preconditioner_bytes"], "{precond}");
    }
    assert!(info["seconds"]["read"].as_f64().unwrap() >= 0.0);
}

#[test]
fn info_for_people() {
    let text = succeeds(&["info", "gen:convection3d:5"]);
    for expected in [
        "125 x 125",
        "symmetric in pattern, not in values",
        "all positive",
        "lower 13,",
        "5 x 5 x 5, Star-7P, 1 unknown per point, 13 levels",
        "memory plan",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let text = succeeds(&["info", "gen:circuit:20"]);
    assert!(text.contains("grid              none: "), "{text}");
}

#[test]
fn info_of_a_rectangle_has_no_wavefronts() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "r.mtx");
    std::fs::write(&file, "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 5\n").unwrap();
    let info = json(&["info", &file, "--json", "-"]);
    assert_eq!((info["matrix"]["rows"].as_u64(), info["matrix"]["columns"].as_u64()), (Some(2), Some(3)));
    assert!(info["wavefronts"].is_null() && info["memory"].is_null() && info["grid"].is_null());
}

#[test]
fn json_to_a_file_leaves_the_text_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "info.json");
    let text = succeeds(&["info", "gen:poisson2d:4", "--json", &file]);
    assert!(text.contains("16 x 16"));
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["matrix"]["nnz"], 64);
}

#[test]
fn gen_writes_what_info_reads_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npz", "petsc"] {
        let file = path(&folder, &format!("a.{ending}"));
        let text = succeeds(&["gen", "jump3d", "--nx", "3", "--ny", "4", "--nz", "5", "-o", &file]);
        assert!(text.contains("60 rows"), "{text}");
        assert_eq!(json(&["info", &file, "--json", "-"])["matrix"]["rows"], 60, "{ending}");
    }
    let (a, b) = (path(&folder, "a.npz"), path(&folder, "b.mtx"));
    succeeds(&["convert", &a, &b]);
    assert_eq!(std::fs::read(&b).unwrap(), std::fs::read(path(&folder, "a.mtx")).unwrap());
}

#[test]
fn gen_without_a_file_says_so_and_without_a_name_lists() {
    let text = succeeds(&["gen", "poisson2d", "--n", "5"]);
    assert!(text.contains("25 rows, 105 entries") && text.contains("nothing written"), "{text}");
    let listing = succeeds(&["gen"]);
    for name in [
        "poisson2d",
        "poisson3d",
        "hpcg",
        "convection3d",
        "jump3d",
        "elasticity2d",
        "elasticity3d",
        "navierstokes3d",
        "euler3d",
        "cahnhilliard3d",
        "fem2d",
        "ecology",
        "parabolic",
        "apache",
        "thermal",
        "circuit",
        "atmosmod",
        "pflow",
    ] {
        assert!(listing.contains(name), "{name}");
    }
}

#[test]
fn pictures_are_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, png) = (path(&folder, "a.svg"), path(&folder, "a.png"));
    for (file, magic) in [(&svg, &b"<svg"[..]), (&png, &b"\x89PNG\r\n\x1a\n"[..])] {
        succeeds(&["spy", "gen:poisson2d:7", "-o", file]);
        assert!(std::fs::read(file).unwrap().starts_with(magic));
        succeeds(&["info", "gen:poisson2d:7", "--plot", file]);
        assert!(std::fs::read(file).unwrap().starts_with(magic));
    }
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(text.contains("entries in a row") && text.contains("row lengths"));
    let empty = path(&folder, "empty.mtx");
    std::fs::write(&empty, "%%MatrixMarket matrix coordinate real general\n0 0 0\n").unwrap();
    succeeds(&["spy", &empty, "-o", &png]);
    succeeds(&["info", &empty, "--plot", &svg]);
}

#[test]
fn wrong_usage() {
    fails(&["solvee"], "unrecognized subcommand");
    fails(&["info"], "<MATRIX>");
    fails(&["info", "gen:poisson2d:9", "--threads", "0"], "invalid value");
    fails(&["gen", "poisson3d", "--n", "3", "--nx", "4", "--ny", "4"], "cannot be used with");
    fails(&["gen", "poisson3d:4", "--n", "3"], "not both");
    fails(&["gen", "poison3d", "--n", "3"], "poisson3d");
    fails(&["info", "gen:poisson3d:0"], "poisson3d");
    fails(&["info", "gen:poisson3d:99999999999999999999"], "poisson3d");
    fails(&["info", "gen:poisson3d:4000000"], "poisson3d");
    fails(&["info", "gen:"], "no problem is called");
    fails(&["gen", "poisson3d", "--n", "1000", "--max-memory", "1"], "needs about");
    fails(&["gen", "poisson3d", "--n", "9", "--max-memory", "nan"], "from 0 on");
    fails(&["gen", "-o", "a.mtx"], "<PROBLEM>");
    fails(&["info", "poisson3d:10"], "did you mean gen:poisson3d:10?");
    fails(&["spy", "gen:poisson2d:3", "-o", "picture.gif"], ".svg or .png");
    fails(&["info", "gen:poisson2d:3", "--plot", "picture.bmp"], ".svg or .png");
    fails(&["convert", "gen:poisson2d:3", "matrix.xls"], ".mtx");
    fails(&["convert", "gen:poisson2d:3", "no/such/folder/a.mtx"], "does not exist");
    fails(&["info", "no-such-file.mtx"], "no-such-file.mtx: No such file");
    fails(&["info", env!("CARGO_MANIFEST_DIR")], "is a directory");
}

#[test]
fn limits_can_be_raised() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "wide.mtx");
    std::fs::write(&file, "%%MatrixMarket matrix coordinate real general\n3000000 3000000 1\n1 1 1\n")
        .unwrap();
    fails(&["info", &file], "--max-empty-rows");
    for limit in ["3000000", "18446744073709551615"] {
        let info = json(&["info", &file, "--max-empty-rows", limit, "--json", "-"]);
        assert_eq!(info["matrix"]["rows"], 3_000_000);
    }
    let (text, packed) = (path(&folder, "spaces.mtx"), path(&folder, "packed.mtx.zst"));
    let comment = format!("%{}\n", "-".repeat(40_000_000));
    std::fs::write(&text, format!("%%MatrixMarket matrix coordinate real general\n{comment}1 1 1\n1 1 1\n"))
        .unwrap();
    let mut encoder = zstd::Encoder::new(std::fs::File::create(&packed).unwrap(), 3).unwrap();
    std::io::copy(&mut std::fs::File::open(&text).unwrap(), &mut encoder).unwrap();
    encoder.finish().unwrap();
    fails(&["info", &packed], "--max-expansion");
    let info = json(&["info", &packed, "--max-expansion", "1000000", "--json", "-"]);
    assert_eq!(info["matrix"]["nnz"], 1);
}

#[test]
fn what_is_not_a_number_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "nan.petsc");
    let head = [1_211_216i32, 2, 2, 2, 1, 1, 0, 1];
    let values = [f64::NAN, 2.0];
    let bytes: Vec<u8> = head
        .iter()
        .flat_map(|n| n.to_be_bytes())
        .chain(values.iter().flat_map(|v| v.to_be_bytes()))
        .collect();
    std::fs::write(&file, bytes).unwrap();
    let text = succeeds(&["info", &file]);
    assert!(text.contains("1 NOT FINITE") && text.contains("1 positive, 1 NOT A NUMBER"), "{text}");
    fails(&["convert", &file, &path(&folder, "nan.mtx")], "finite numbers only");
}

#[test]
fn a_closed_pipe_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args(["info", "gen:poisson2d:300"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!((child.wait().unwrap().code(), error.as_str()), (Some(0), ""));
}

#[test]
fn the_same_file_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (one, four) = (path(&folder, "1.mtx"), path(&folder, "4.mtx"));
    succeeds(&["gen", "fem2d", "--n", "80", "-o", &one, "--threads", "1"]);
    succeeds(&["gen", "fem2d", "--n", "80", "-o", &four, "--threads", "4"]);
    assert!(Path::new(&one).metadata().unwrap().len() > 10_000);
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(four).unwrap());
}

/// A number of threads that no machine has is taken as many, not as an error.
#[test]
fn threads_are_capped() {
    let cores = std::thread::available_parallelism().unwrap().get();
    for asked in ["70000", "18446744073709551615"] {
        let report = json(&["solve", "gen:poisson2d:9", "--threads", asked, "--json", "-"]);
        let threads = report["threads"].as_u64().unwrap() as usize;
        assert!((1..=cores.saturating_mul(4).max(8)).contains(&threads), "{threads} on {cores} cores");
        succeeds(&["info", "gen:poisson2d:9", "--threads", asked]);
    }
}

#[test]
fn solve_for_programs() {
    let report = json(&["solve", "gen:poisson3d:12", "--threads", "2", "--json", "-"]);
    assert_eq!(report["matrix"]["rows"], 1728);
    assert_eq!(report["matrix"]["symmetric"], true);
    assert_eq!((report["solver"].as_str(), report["preconditioner"].as_str()), (Some("cg"), Some("ic0")));
    assert_eq!((report["threads"].as_u64(), report["outcome"].as_str()), (Some(2), Some("converged")));
    let iterations = report["iterations"].as_u64().unwrap() as usize;
    assert_eq!(report["history"].as_array().unwrap().len(), iterations + 1);
    assert!(report["relative_residual"].as_f64().unwrap() <= 1e-8);
    assert_eq!(report["wavefronts"], serde_json::json!({ "lower": 34, "upper": 34 }));
    assert_eq!(report["preconditioner_nnz"], (7 * 1728 - 6 * 144 + 1728) / 2);
    assert!(report["preconditioner_bytes"].as_u64().unwrap() > 100_000);
    assert_eq!(report["recovery"], serde_json::json!([]));
    for phase in ["read", "analyze", "factor", "solve", "total"] {
        assert!(report["seconds"][phase].as_f64().unwrap() >= 0.0, "{phase}");
    }
}

#[test]
fn solve_reads_b_writes_x_and_draws() {
    let folder = tempfile::tempdir().unwrap();
    let (b, x, plot) = (path(&folder, "b.mtx"), path(&folder, "x.npy"), path(&folder, "r.svg"));
    // The identity: x is b.
    let a = path(&folder, "a.mtx");
    std::fs::write(&a, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n").unwrap();
    std::fs::write(&b, "%%MatrixMarket matrix array real general\n2 1\n3\n-4\n").unwrap();
    let text = succeeds(&["solve", &a, "-b", &b, "-x", &x, "--plot", &plot]);
    assert!(text.contains("converged") && text.contains("recomputed"), "{text}");
    let written = std::fs::read(&x).unwrap();
    let values: Vec<f64> =
        written[written.len() - 16..].chunks(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(values, [3.0, -4.0]);
    assert!(std::fs::read_to_string(&plot).unwrap().contains("relative residual"));
    std::fs::write(&b, "%%MatrixMarket matrix array real general\n3 1\n3\n-4\n1\n").unwrap();
    fails(&["solve", &a, "-b", &b], "3 entries, the matrix has 2 rows");
}

#[test]
fn solve_ends_with_the_status_of_its_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let x = path(&folder, "x.mtx");
    let output = krylith(&["solve", "gen:poisson2d:20", "--max-iterations", "2", "-x", &x, "--json", "-"]);
    assert_eq!(output.status.code(), Some(3));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (report["outcome"].as_str(), report["iterations"].as_u64()),
        (Some("max_iterations"), Some(2))
    );
    assert!(Path::new(&x).exists(), "the answer is still written");
    let ic0 = ["solve", "gen:elasticity2d:20", "--precond", "ic0", "--solver", "cg"];
    let output = krylith(&ic0);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("the diagonal is shifted by"));
    fails(&["solve", "gen:poisson2d:9", "--solver", "sor"], "unknown solver `sor`; known: auto, cg");
    fails(&["solve", "gen:poisson2d:9", "--precond", "amg"], "unknown preconditioner `amg`");
    fails(&["solve", "gen:poisson2d:9", "--rtol", "-1"], "from 0 on");
    fails(&["solve", "gen:poisson2d:9", "-x", "x.xyz"], ".npy");
}

/// Byte for byte the same answer, whatever the threads and the plan.
#[test]
fn solve_writes_the_same_file_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (matrix, solver) in
        [("gen:poisson3d:14", "cg"), ("gen:convection3d:12", "bicgstab"), ("gen:convection3d:12", "gmres")]
    {
        let mut files = Vec::new();
        for threads in ["1", "2", "3", "8"] {
            for schedule in ["levels", "p2p"] {
                let x = path(&folder, "x.mtx");
                succeeds(&[
                    "solve",
                    matrix,
                    "--solver",
                    solver,
                    "--threads",
                    threads,
                    "--schedule",
                    schedule,
                    "-x",
                    &x,
                ]);
                files.push(std::fs::read(&x).unwrap());
            }
        }
        assert!(files.iter().all(|f| *f == files[0]), "{matrix} {solver}");
    }
}

#[cfg(unix)]
#[test]
fn interrupting_a_solve_writes_the_best_answer() {
    use std::time::{Duration, Instant};
    let folder = tempfile::tempdir().unwrap();
    let x = path(&folder, "x.npy");
    // Far from done when it is interrupted: no preconditioner and a tolerance out of reach.
    let mut child = Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args([
            "solve",
            "gen:poisson2d:700",
            "--precond",
            "none",
            "--solver",
            "cg",
            "--rtol",
            "1e-30",
            "--max-iterations",
            "10000000",
            "-x",
            &x,
        ])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let asked = Instant::now();
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(std::fs::metadata(&x).unwrap().len() > 8 * 490_000);
}
