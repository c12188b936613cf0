//! Devices: what is there is listed, and a machine without drivers is no error.

mod common;

use common::text;
use std::process::Command;

/// The command where no driver can be found.
fn without_drivers(arguments: &[&str]) -> (Option<i32>, String, String) {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_krylith"))
        .args(arguments)
        .env("OCL_ICD_VENDORS", empty.path())
        .env("OCL_ICD_FILENAMES", "")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_machine_without_drivers_lists_what_to_install() {
    let (status, listed, error) = without_drivers(&["devices"]);
    assert_eq!((status, error.as_str()), (Some(0), ""), "{listed}");
    assert!(listed.contains("opencl: ") && listed.contains("opencl-icd"), "{listed}");
    assert!(listed.contains("threads of the processor"), "{listed}");
    let (status, json, _) = without_drivers(&["devices", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, json["devices"].as_array().unwrap().len()), (Some(0), 0));
    assert!(json["missing"].as_array().unwrap().iter().any(|m| m["backend"] == "opencl"));
}

#[test]
fn every_device_has_a_name_and_abilities() {
    let json: serde_json::Value = serde_json::from_str(&text(0, &["devices", "--json", "-"])).unwrap();
    let listed = text(0, &["devices"]);
    for device in json["devices"].as_array().unwrap() {
        assert!(listed.contains(device["device"].as_str().unwrap()), "{listed}");
        assert!(device["memory_bytes"].as_u64().unwrap() > 0 && device["f64"].is_boolean());
        assert_eq!(device["usable"].as_bool().unwrap(), device["lacks"].is_null());
    }
}

#[test]
fn a_solve_without_a_device_says_why_and_one_that_needs_it_ends() {
    let solve = |device| without_drivers(&["solve", "gen:poisson2d:20", "--device", device]);
    let (status, report, _) = solve("auto");
    assert_eq!(status, Some(0));
    assert!(report.contains("none, threads instead: ") && report.contains("opencl"), "{report}");
    for device in ["opencl", "opencl:0", "cuda", "cuda:1"] {
        let (status, report, error) = solve(device);
        assert_eq!((status, report.as_str()), (Some(2), ""));
        assert!(
            error.contains(&format!("--device {device}: ")) && error.contains("krylith devices"),
            "{error}"
        );
    }
    common::fails(&["solve", "gen:poisson2d:20", "--reproducible"], &["--device"]);
    let (status, _, error) = solve("gpu");
    assert!(status == Some(2) && error.contains("opencl:N"), "{error}");
}

#[test]
fn a_solve_on_a_device_reports_its_work() {
    let list: serde_json::Value = serde_json::from_str(&text(0, &["devices", "--json", "-"])).unwrap();
    for device in list["devices"].as_array().unwrap().iter().filter(|device| device["usable"] == true) {
        let name = device["device"].as_str().unwrap();
        let arguments = [
            "solve",
            "gen:poisson3d:20",
            "--device",
            name,
            "--precond",
            "ic0",
            "--reproducible",
            "--profile",
        ];
        let report = text(0, &arguments);
        assert!(
            report.contains(name) && report.contains(" launches, ") && report.contains("of backward"),
            "{report}"
        );
        let json = common::json(0, &arguments);
        let own = &json["device"];
        assert!(
            own["launches"].as_u64().unwrap() > 50 && own["synchronisations"].as_u64().unwrap() > 20,
            "{own}"
        );
        assert_eq!(own["device"], name);
        let profile = &json["profile"];
        let iterations = json["iterations"].as_u64().unwrap();
        // One product for the first residual; a residual that is met is preconditioned once more, for its rᵀz.
        assert_eq!(profile["products"]["calls"].as_u64(), Some(iterations + 1), "{profile}");
        assert_eq!(profile["preconditioner"]["calls"].as_u64(), Some(iterations + 1), "{profile}");
        let kernels = own["kernels"].as_array().unwrap();
        let seconds = |value: &serde_json::Value| value.as_f64().unwrap();
        let timed: f64 = kernels.iter().map(|kernel| seconds(&kernel["seconds"])).sum();
        let split =
            [&profile["products"]["seconds"], &profile["preconditioner"]["seconds"], &profile["vectors"]];
        let split = split.map(seconds);
        assert!(
            split.iter().all(|&part| part > 0.0) && split.iter().sum::<f64>() <= timed,
            "{profile}, {timed}"
        );
        let threads =
            ["solve", "gen:poisson3d:20", "--precond", "ic0", "--layout", "rows", "--precision", "f64"];
        assert_eq!(json["history"], common::json(0, &threads)["history"], "{name}");
        common::fails(
            &["solve", "gen:elasticity2d:10", "--device", name, "--precond", "bic0"],
            &["--device cpu"],
        );
    }
}

#[test]
fn devices_are_measured_where_that_is_asked_for() {
    let json: serde_json::Value =
        serde_json::from_str(&text(0, &["devices", "--bench", "--size", "12", "--json", "-"])).unwrap();
    for device in json["devices"].as_array().unwrap().iter().filter(|device| device["usable"] == true) {
        let bench = &device["bench"];
        assert_eq!((bench["rows"].as_u64(), bench["problem"].as_str()), (Some(1728), Some("poisson3d:12")));
        assert!(bench["product_gigabytes_per_second"].as_f64().unwrap() > 0.0, "{bench}");
        for solve in bench["solves"].as_array().unwrap() {
            assert_eq!(solve["outcome"], "converged");
            assert!(solve["relative_residual"].as_f64().unwrap() <= 1e-8);
        }
    }
    let (status, _, error) = without_drivers(&["devices", "--size", "12"]);
    assert!(status == Some(2) && error.contains("--bench"), "{error}");
}
