//! What `krylith solve` shows to people: what matters first, details on request, nothing hidden that has to be known.

mod common;

use common::{Folder, GENERAL, json, text};

const DETAILS: [&str; 5] = ["  residual ", "  layout ", "  sweeps ", "  preconditioner ", "  ordering "];

/// The value behind a label; lines are aligned.
fn value<'a>(text: &'a str, label: &str) -> &'a str {
    let start = format!("  {label:18}");
    let line = text.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("no {label} in {text}")).strip_prefix(&start).unwrap()
}

#[test]
fn the_outcome_comes_first() {
    let arguments = ["solve", "gen:poisson3d:12", "--threads", "2"];
    let (text, report) = (text(0, &arguments), json(0, &arguments));
    let residual = report["relative_residual"].as_f64().unwrap();
    let first = format!(
        "converged in {} iterations, relative residual {residual:.1e} (recomputed)",
        report["iterations"]
    );
    assert_eq!(text.lines().next(), Some(first.as_str()));
    assert_eq!(value(&text, "method"), "cg with ic0, 2 threads");
    assert_eq!(value(&text, "because"), "the matrix is symmetric with a positive diagonal");
    assert_eq!(value(&text, "matrix"), "gen:poisson3d:12, 1,728 rows, 11,232 entries");
    let labels: Vec<&str> = text.lines().skip(1).map(|line| line[2..20].trim()).collect();
    assert_eq!(labels, ["method", "because", "matrix", "right-hand side", "memory", "seconds", "replay"]);
}

#[test]
fn details_are_told_on_request() {
    let arguments = ["solve", "gen:poisson3d:12", "--threads", "2", "--reorder", "rcm"];
    let short = text(0, &arguments);
    for flag in ["--verbose", "-v"] {
        let long = text(0, &[&arguments[..], &[flag]].concat());
        for detail in DETAILS {
            assert!(!short.contains(detail) && long.contains(detail), "{detail}: {short}{long}");
        }
        assert!(value(&long, "residual").contains(" relative, 1e-8 asked for, backward error "), "{long}");
    }
}

#[test]
fn failures_say_what_they_mean() {
    let stopped = text(3, &["solve", "gen:poisson2d:20", "--max-iterations", "1"]);
    assert!(
        stopped.starts_with("not converged (max iterations) after 1 iteration, relative residual "),
        "{stopped}"
    );
    assert_eq!(value(&stopped, "outcome"), "the limit of --max-iterations is reached");
    let accurate = text(3, &["solve", "gen:poisson2d:20", "--rtol", "1e-30"]);
    assert!(accurate.starts_with("not converged (attainable accuracy) after "), "{accurate}");
    assert!(value(&accurate, "outcome").contains("as good as the arithmetic allows"), "{accurate}");
}

/// Rows are counted from 1 for people and from 0 for programs; neither the steps nor the shift is hidden.
#[test]
fn recovery_and_shift_are_always_told() {
    let arguments = ["solve", "gen:elasticity2d:20", "--precond", "ic0", "--solver", "cg"];
    let (text, report) = (text(0, &arguments), json(0, &arguments));
    let step = &report["recovery"][0];
    let row = step["row"].as_u64().unwrap();
    assert!(step["failed"].as_str().unwrap().ends_with(&format!("in row {row} (counted from 0)")), "{step}");
    let line = value(&text, "recovery");
    assert!(
        line.starts_with(&format!("ic0: bad pivot {:.3e} in row ", step["value"].as_f64().unwrap())),
        "{line}"
    );
    assert!(
        line.contains(&format!("in row {} (counted from 1); the diagonal is shifted by", row + 1)),
        "{line}"
    );
    assert!(value(&text, "shift").ends_with("of the diagonal's size"), "{text}");
    let steps = text.lines().filter(|line| line.starts_with("  recovery ")).count();
    assert_eq!(steps, report["recovery"].as_array().unwrap().len());
}

#[test]
fn one_of_a_kind() {
    let folder = Folder::new();
    let a = folder.write("a.mtx", &format!("{GENERAL}1 1 1\n1 1 2\n"));
    let text = text(0, &["solve", &a, "--threads", "1"]);
    assert!(text.starts_with("converged in 1 iteration, "), "{text}");
    assert!(value(&text, "method").ends_with(", 1 thread"), "{text}");
    assert!(value(&text, "matrix").ends_with("a.mtx, 1 row, 1 entry"), "{text}");
}

/// A picture says of which matrix it is.
#[test]
fn plots_are_titled_with_the_matrix() {
    let folder = Folder::new();
    let (a, plot) = (folder.path("a.mtx"), folder.path("r.svg"));
    for (matrix, title) in
        [("gen:poisson3d:9", "gen:poisson3d:9: cg with ic0, "), (a.as_str(), "a.mtx: cg with ic0, ")]
    {
        text(0, &["gen", "poisson3d", "--n", "9", "-o", &a]);
        let iterations = json(0, &["solve", matrix, "--plot", &plot])["iterations"].to_string();
        let picture = std::fs::read_to_string(&plot).unwrap();
        assert!(picture.contains(&format!("{title}{iterations} iterations")), "{title}");
    }
}

/// One flag for the layout; the old one means what it meant.
#[test]
fn layouts() {
    let layout = |options: &[&str]| {
        let report = json(0, &[&["solve", "gen:poisson3d:32", "--threads", "2"], options].concat());
        report["layout"].as_str().unwrap().to_owned()
    };
    let (auto, slices, rows) = (layout(&[]), layout(&["--layout", "slices"]), layout(&["--layout", "rows"]));
    assert!(auto.starts_with("structured: 32 x 32 x 32 grid, Star-7P, 1 unknown per point"), "{auto}");
    assert!(!slices.contains("structured") && slices != rows, "{slices}; {rows}");
    assert_eq!(layout(&["--layout", "auto"]), auto);
    assert_eq!(layout(&["--structured", "off"]), slices);
    assert_eq!(layout(&["--structured", "auto"]), auto);
    assert_eq!(layout(&["--structured", "off", "--layout", "rows"]), rows);
    assert_eq!(layout(&["--structured", "auto", "--layout", "slices"]), slices);
}

/// The method asked for runs, and whoever asked is warned: on standard error, in the report and in JSON.
#[test]
fn a_method_that_needs_more_than_the_matrix_has_is_warned_about() {
    let arguments = ["solve", "gen:convection3d:6", "--solver", "cg", "--precond", "jacobi"];
    let output = common::krylith(&arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("krylith: warning: cg needs a symmetric matrix"), "{error}");
    let report: serde_json::Value =
        serde_json::from_slice(&common::krylith(&[&arguments[..], &["--json", "-"]].concat()).stdout)
            .unwrap();
    assert!(report["warnings"][0].as_str().unwrap().starts_with("cg needs"), "{report}");
    assert_eq!(report["solver"], "cg");
    assert!(report["matrix"]["asymmetry"].as_f64().unwrap() > 0.1 && report["matrix"]["symmetric"] == false);
    let quiet = json(0, &["solve", "gen:poisson3d:6", "--solver", "cg", "--precond", "jacobi"]);
    assert_eq!(quiet["warnings"], serde_json::json!([]));
}

/// What `--profile` counts is known for each method and storage: how often A and M are applied.
#[test]
fn a_profile_counts_products_and_applications() {
    let calls = |arguments: &[&str]| {
        let json = common::json(0, &[&["solve", "--profile"], arguments].concat());
        let (profile, iterations) = (&json["profile"], json["iterations"].as_u64().unwrap());
        let seconds = |value: &serde_json::Value| value.as_f64().unwrap();
        let parts =
            [&profile["products"]["seconds"], &profile["preconditioner"]["seconds"], &profile["vectors"]];
        let sum: f64 = parts.map(seconds).iter().sum();
        assert!(sum > 0.0 && sum <= seconds(&json["seconds"]["solve"]), "{profile}");
        let of = |what: &str| profile[what]["calls"].as_u64().unwrap();
        (iterations, of("products"), of("preconditioner"))
    };
    // A product for the first residual. CG preconditions every residual but the last.
    let (n, products, applications) =
        calls(&["gen:poisson2d:40", "--solver", "cg", "--precond", "ict(0.01)"]);
    assert_eq!((products, applications), (n + 1, n));
    let (n, products, applications) =
        calls(&["gen:convection3d:12", "--solver", "bicgstab", "--precond", "ilu0"]);
    assert!(
        products >= 2 * n && products <= 2 * n + 1 && applications + 1 == products,
        "{n} {products} {applications}"
    );
    // Eisenstat's trick: sweeps alone, one to enter, and one for the last residual.
    let trick = ["gen:poisson3d:16", "--solver", "cg", "--precond", "ic0", "--precision", "f64"];
    let (n, products, applications) = calls(&trick);
    assert_eq!((products, applications), (1, n + 2));
    // In f32 with refinement the inner iterations count too.
    let (n, products, _) =
        calls(&["gen:poisson2d:40", "--solver", "cg", "--precond", "ic0", "--precision", "f32"]);
    assert!(products > n, "{n} {products}");
    assert!(common::json(0, &["solve", "gen:poisson2d:40"])["profile"].is_null());
}

/// Symmetric with a positive diagonal, and pairs of eigenvalues -1 and 3: conjugate gradients fail.
fn indefinite(folder: &Folder) -> String {
    let pair = |k: usize| {
        let (i, j) = (2 * k - 1, 2 * k);
        format!("{i} {i} 1\n{i} {j} 2\n{j} {i} 2\n{j} {j} 1\n")
    };
    folder.write("pairs.mtx", &format!("{GENERAL}60 60 120\n{}", (1..=30).map(pair).collect::<String>()))
}

/// The reasons are those of the first choice, which is not the method that the line above names.
#[test]
fn the_first_choice_and_what_followed() {
    let folder = Folder::new();
    let a = indefinite(&folder);
    let arguments = ["solve", &a, "--rhs", "random"];
    let (text, report) = (text(0, &arguments), json(0, &arguments));
    let rungs = report["rungs"].as_array().unwrap();
    assert!(rungs.len() > 1 && value(&text, "method").starts_with("minres with none"), "{text}");
    let because = value(&text, "because");
    let first = "first choice: cg with ic0 because the matrix is symmetric with a positive diagonal; then ";
    assert!(because.starts_with(first) && because.ends_with("then minres with none"), "{because}");
    assert!(report["choice"].as_str().unwrap().starts_with("cg with ic0: the matrix is symmetric"));
}

/// Each method has a line of the legend, with where it began.
#[test]
fn methods_are_marked_in_the_picture() {
    let folder = Folder::new();
    let (a, picture) = (indefinite(&folder), folder.path("r.svg"));
    let report = json(0, &["solve", &a, "--rhs", "random", "--plot", &picture]);
    let rungs = report["rungs"].as_array().unwrap();
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(drawn.contains(&format!("pairs.mtx: {} methods, ", rungs.len())), "{drawn}");
    let mut begin = 0;
    for rung in rungs {
        let name = |field: &str| rung[field].as_str().unwrap().to_owned();
        let iterations = rung["iterations"].as_u64().unwrap();
        let line = format!("{} with {}: {iterations} iteration", name("method"), name("preconditioner"));
        assert!(drawn.contains(&line) && drawn.contains(&format!(" from {begin} on")), "{line} in {drawn}");
        begin += iterations;
    }
    // One method needs none.
    json(0, &["solve", "gen:poisson2d:20", "--plot", &picture]);
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(drawn.contains("gen:poisson2d:20: cg with ") && !drawn.contains(" from 0 on"), "{drawn}");
}

/// One base in all text: what the library says of a row, and what the command says itself.
#[test]
fn rows_have_one_base() {
    let folder = Folder::new();
    // The third row has no diagonal entry; the last is longer than a stencil.
    let mut entries: String = (1..=600).filter(|&i| i != 3).map(|i| format!("{i} {i} 1\n")).collect();
    entries += &(1..600).map(|j| format!("600 {j} 1\n")).collect::<String>();
    let a = folder.write("a.mtx", &format!("{GENERAL}600 600 {}\n{entries}", 599 + 599));
    let info = text(0, &["info", &a]);
    assert!(value(&info, "diagonal").ends_with("1 missing, the first in row 3 (counted from 1)"), "{info}");
    assert!(value(&info, "grid").starts_with("none: row 600 (counted from 1) has 600 entries"), "{info}");
    assert_eq!(json(0, &["info", &a])["diagonal"]["first_missing_row"], 2);
    for arguments in
        [&["--explain"][..], &["--precond", "ilu0", "--matching", "off", "--max-iterations", "1"]]
    {
        let output = common::krylith(&[&["solve", &a], arguments].concat());
        let all = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(all.contains("counted from 1") && !all.contains("counted from 0"), "{all}");
    }
}
