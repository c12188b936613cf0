//! `--explain` and `--plan`: a plan is printed, kept and followed.

mod common;

use common::{ends, krylith, text};
use serde_json::Value;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = krylith(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_plan_is_explained_and_nothing_is_factored() {
    let (status, text, _) = run(&["solve", "gen:poisson3d:20", "--explain"]);
    assert_eq!(status, 0);
    for words in [
        "cg with mic(0,0.95)",
        "because           the matrix is symmetric with a positive diagonal",
        "                  of 14 proposals mic(0,0.95) is predicted to take the least time on the machine `reference`",
        "a grid of 20 x 20 x 20 points",
        "proposals         mic(0,0.95) on the grid: set-up ",
        "layout            grid: structured: 20 x 20 x 20",
        "fallbacks         bad pivot: shift the diagonal, by as little as works",
        "                  bad pivot again, no diagonal entry: take the diagonal alone",
        "                  slow progress, divergence: cg with cholesky",
        "                  any failure, slow progress too: gmres with ldlt",
        "Nothing was factored",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (_, text, _) = run(&["solve", "gen:circuit:60", "--explain"]);
    assert!(
        text.contains("not taken         grid: ") && text.contains("not taken         blocks: "),
        "{text}"
    );
}

/// A fallback fits into a line, whatever it follows.
#[test]
fn fallbacks_are_short_lines() {
    for options in
        [&["gen:convection3d:9"][..], &["gen:poisson2d:60", "--precond", "ic(3)", "--precision", "f32"]]
    {
        let (status, text, _) = run(&[&["solve", "--explain"], options].concat());
        assert_eq!(status, 0);
        let start = text.find("  fallbacks").unwrap();
        let lines: Vec<&str> = text[start..].lines().take_while(|line| line.starts_with("  ")).collect();
        assert!(lines.len() > 2, "{text}");
        for line in lines {
            assert!(line.len() < 120 && line.contains(": ") && !line.contains(" or an "), "{line}");
        }
    }
}

#[test]
fn a_plan_is_kept_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let plan = plan.to_str().unwrap();
    let problem = "gen:convection3d:12";
    let asked = ["--solver", "gmres", "--restart", "17", "--precond", "ilu(1)", "--reorder", "rcm"];
    let explain = [&["solve", problem, "--explain", "--json", plan][..], &asked].concat();
    assert_eq!(run(&explain).0, 0);
    let solve = |more: &[&str]| -> Value {
        let (status, json, error) = run(&[&["solve", problem, "--json", "-"], more].concat());
        assert_eq!(status, 0, "{error}");
        serde_json::from_str(&json).unwrap()
    };
    let (direct, replayed) = (solve(&asked), solve(&["--plan", plan]));
    for field in
        ["solver", "preconditioner", "iterations", "relative_residual", "ordering", "layout", "bytes"]
    {
        assert_eq!(direct[field], replayed[field], "{field}");
    }
    assert_eq!(replayed["plan"]["method"], "gmres(17)");
    assert_eq!(replayed["plan"]["reasons"][0]["code"], "as_planned");
    assert_eq!(replayed["plan"]["fallbacks"], direct["plan"]["fallbacks"]);
    // A plan and a choice of one's own contradict each other.
    assert_eq!(run(&["solve", problem, "--plan", plan, "--precond", "jacobi"]).0, 2);
    std::fs::write(plan, "{}").unwrap();
    let message = ends(2, &["solve", problem, "--plan", plan]);
    assert!(message.contains("is not a plan") && message.contains("--explain --json"), "{message}");
}

/// The method is for A, the preconditioner from the other matrix, in the plan as in the solve.
#[test]
fn a_preconditioner_from_another_matrix_is_explained() {
    let both = ["solve", "gen:convection3d:4", "--precond-matrix", "gen:poisson3d:4"];
    let (status, text, error) = run(&[&both[..], &["--explain"]].concat());
    assert_eq!((status, error.as_str()), (0, ""));
    for words in [
        "precond matrix    gen:poisson3d:4, 352 entries",
        "plan              bicgstab with ilu0",
        "because           A is not symmetric",
        "                  the matrix of the preconditioner is symmetric with a positive diagonal",
        "facts of A        not symmetric",
        "of the other      symmetric",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, text, _) = run(&both);
    assert_eq!(status, 0);
    for words in
        ["bicgstab with ilu0", "A is not symmetric; the matrix of the precond", "gen:poisson3d:4, 352"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, _, error) = run(&[&both[..], &["--solver", "cg", "--max-iterations", "3"]].concat());
    assert!(status == 3 && error.contains("warning: cg needs a symmetric matrix, and A is not"), "{error}");
}

/// Paths of all numbers in a JSON object.
fn numbers(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{path}/{name}"), all))
        }
        Value::Number(_) => all.push(path.into()),
        _ => {}
    }
}

/// A machine is refused for any one of its figures.
#[test]
fn costs_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.json");
    let file = file.to_str().unwrap();
    let machine = serde_json::to_value(krylith::plan::REFERENCE).unwrap();
    let mut paths = Vec::new();
    numbers(&machine, "", &mut paths);
    assert_eq!(paths.len(), 41, "{paths:?}");
    for (k, path) in paths.iter().enumerate() {
        let added = ["/analysis_row", "/matching", "/eliminate", "/grow", "/launch", "/reduction"];
        let may_be_zero = path.ends_with("/wavefront") || added.contains(&path.as_str());
        let name = path[1..].replace('/', ".");
        for bad in ["0", "-1"] {
            let mut wrong = machine.clone();
            *wrong.pointer_mut(path).unwrap() = bad.parse().unwrap();
            std::fs::write(file, wrong.to_string()).unwrap();
            let is_valid = bad == "0" && may_be_zero;
            // One of each kind is enough for a run of the command.
            if is_valid {
                let machine: krylith::plan::Machine = serde_json::from_value(wrong).unwrap();
                assert_eq!(machine.validate(), Ok(()), "{path}");
            } else if name == "threads" && bad == "-1" {
                let message = ends(2, &["solve", "gen:poisson2d:4", "--machine", file]);
                assert!(message.contains("does not describe a machine"), "{message}");
            } else if k % 5 == 0 {
                let message = ends(2, &["solve", "gen:poisson2d:4", "--machine", file]);
                let expected = format!("does not describe a machine ({name} is {bad}; ");
                assert!(
                    message.contains(&expected) && message.contains("devices --bench --machine"),
                    "{message}"
                );
            } else {
                let machine: krylith::plan::Machine = serde_json::from_value(wrong).unwrap();
                let error = machine.validate().unwrap_err().to_string();
                assert!(error.starts_with(&format!("{name} is {bad}; ")), "{error}");
            }
        }
    }
    for (path, figure, expected) in [
        ("/vector", 2e6.into(), "no machine takes more than"),
        ("/launch", 2e9.into(), "no machine takes more than"),
        ("/rows/sweep", 1e-300.into(), "no machine takes less than"),
        ("/threads", Value::from(2_000_000), "a machine has from 1 to"),
    ] {
        let mut wrong = machine.clone();
        *wrong.pointer_mut(path).unwrap() = figure;
        std::fs::write(file, wrong.to_string()).unwrap();
        let message = ends(2, &["solve", "gen:poisson2d:4", "--machine", file]);
        assert!(message.contains(expected), "{message}");
    }
    std::fs::write(file, machine.to_string().replacen("0.8", "1e999", 1)).unwrap();
    let message = ends(2, &["solve", "gen:poisson2d:4", "--machine", file]);
    assert!(message.contains("does not describe a machine"), "{message}");
}

/// A file may have the figures of several places; a solve takes those of its own.
#[test]
fn a_profile_has_a_machine_for_each_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machines.json");
    let file = file.to_str().unwrap();
    let machine = serde_json::to_value(krylith::plan::REFERENCE).unwrap();
    let named = |name: &str, device: Option<&str>| {
        let mut machine = machine.clone();
        machine["name"] = name.into();
        if let Some(device) = device {
            machine["device"] = device.into();
        }
        machine
    };
    let write = |machines: &[serde_json::Value]| {
        std::fs::write(file, serde_json::json!({ "machines": machines }).to_string()).unwrap();
    };
    write(&[named("of a card", Some("card")), named("of threads", None)]);
    let explained = text(0, &["solve", "gen:poisson3d:20", "--explain", "--machine", file]);
    assert!(explained.contains("on the machine `of threads`"), "{explained}");
    write(&[named("of a card", Some("card"))]);
    let message = ends(2, &["solve", "gen:poisson3d:20", "--machine", file]);
    assert!(
        message.contains("has no figures of threads") && message.contains("devices --bench"),
        "{message}"
    );
    write(&[]);
    ends(2, &["solve", "gen:poisson3d:20", "--machine", file]);
    // Of a single machine that names a device, too; threads in the place of a device are another matter.
    std::fs::write(file, named("of a card", Some("card")).to_string()).unwrap();
    ends(2, &["solve", "gen:poisson3d:20", "--machine", file]);
    let output = krylith(&["solve", "gen:poisson3d:20", "--device", "auto", "--machine", file]);
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warned.contains("has no figures of threads"), "{warned}");
}
