//! The help: what is needed most comes first, and every name is explained.

mod common;

use common::{fails, text};

/// Where each of these lines begins in the text, in order.
fn in_order(text: &str, names: &[&str]) {
    let mut from = 0;
    for name in names {
        let line = |(at, _): &(usize, &str)| text[..*at].ends_with(['\n', ' ']);
        let found = text[from..].match_indices(name).map(|(at, s)| (from + at, s)).find(line);
        from = found.unwrap_or_else(|| panic!("{name} is not behind the others in {text}")).0;
    }
}

#[test]
fn solving_comes_first() {
    let help = text(0, &["--help"]);
    assert!(help.starts_with("Solve sparse linear systems; "), "{help}");
    in_order(&help, &["Commands:", "solve ", "info ", "gen ", "convert ", "spy ", "devices "]);
    for help in [text(0, &["solve", "--help"]), text(0, &["solve", "-h"])] {
        let options = &help[help.find("Options:").unwrap()..];
        in_order(
            options,
            &[
                "-b <FILE>",
                "-x <FILE>",
                "--rhs <",
                "--solver <",
                "--precond <",
                "--rtol <",
                "--explain",
                "--plan <",
                "--json <",
                "--plot <",
                "-v, --verbose",
                "--threads <",
                "Details:",
                "--layout <",
                "Limits:",
                "--max-expansion <",
                "--max-empty-rows <",
                "--max-memory <",
            ],
        );
        assert!(help.contains("[default: 1e-8]") && !help.contains("0.00000001"), "{help}");
        assert!(!help.contains("--structured") && help.contains("slices"), "{help}");
    }
}

#[test]
fn preconditioners_in_columns() {
    let help = text(0, &["solve", "--help"]);
    let start = help.find("Preconditioner, one of").unwrap();
    let list: Vec<&str> = help[start..].lines().skip(1).take_while(|line| line.trim() != "where").collect();
    assert!(list.len() > 20);
    let column = |line: &str| {
        let names = line.trim_start();
        let gap = names.find("  ").unwrap();
        line.len() - names[gap..].trim_start().len()
    };
    for line in &list {
        assert_eq!(column(line), column(list[0]), "{line}");
    }
    // Numbers of one name and two meanings say whose they are.
    for number in [
        "OMEGA    of ssor: ",
        "OMEGA    of mic, milu, milu-columns: ",
        "TOL      of ict: ",
        "P        of ilut, ilutp: ",
        "P        of ilut-saad, ilutp-saad: ",
        "K        of ic, mic, ilu, milu, milu-columns: ",
    ] {
        assert!(help.contains(number), "{number} in {help}");
    }
}

#[test]
fn near_misses() {
    let jacoby = ["solve", "gen:poisson2d:9", "--precond", "jacoby"];
    fails(&jacoby, &["unknown preconditioner `jacoby`; did you mean `jacobi`? Known: auto, none, jacobi"]);
    fails(&["solve", "gen:poisson2d:9", "--precond", "amg"], &["unknown preconditioner `amg`; known: auto"]);
}

/// The help is that of the library's table: every option of it is there, with its words and its default.
#[test]
fn every_option_of_the_library_is_explained() {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = squeezed(&text(0, &["solve", "--help"]));
    for option in krylith::solver::options() {
        assert!(help.contains(&format!("--{} ", option.name)), "{}", option.name);
        // The command lists all preconditioners, and has a flag for a profile.
        if option.name != "precond" {
            let expected = match option.default {
                "" | "off" => option.help.into(),
                default => format!("{} [default: {default}]", option.help),
            };
            assert!(help.contains(&squeezed(&expected)), "{}: {help}", option.name);
        }
    }
}
