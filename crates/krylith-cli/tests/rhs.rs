//! Which right-hand side a solve has, and what the report says of it.

mod common;

use common::{Folder, GENERAL, ends, fails, json, krylith};

/// The two numbers of a vector in a NumPy file.
fn two_numbers(path: &str) -> [f64; 2] {
    let bytes = std::fs::read(path).unwrap();
    let number = |from: usize| f64::from_le_bytes(bytes[from..from + 8].try_into().unwrap());
    [number(bytes.len() - 16), number(bytes.len() - 8)]
}

fn identity(folder: &Folder) -> String {
    folder.write("a.mtx", &format!("{GENERAL}2 2 2\n1 1 1\n2 2 1\n"))
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(krylith(arguments).stdout).unwrap()
}

#[test]
fn ones_unless_another_is_given() {
    let folder = Folder::new();
    let (a, x) = (identity(&folder), folder.path("x.npy"));
    for options in [&[][..], &["--rhs", "ones"]] {
        let arguments = [&["solve", &a, "-x", &x], options].concat();
        assert_eq!(json(0, &arguments)["rhs"], "ones");
        assert_eq!(json(0, &arguments)["warnings"], serde_json::json!([]));
        assert_eq!(two_numbers(&x), [1.0, 1.0]);
        let text = text(&arguments);
        assert!(text.contains("right-hand side   A times a vector of ones"), "{text}");
        assert!(!text.contains("warning"), "{text}");
    }
}

/// The first outputs of SplitMix64 started at 0, in [-1, 1).
#[test]
fn random_is_the_same_everywhere() {
    let folder = Folder::new();
    let (a, x) = (identity(&folder), folder.path("x.npy"));
    let expected = [0xE220_A839_7B1D_CDAF_u64, 0x6E78_9E6A_A1B9_65F4]
        .map(|h| 2.0 * (h >> 11) as f64 / (1_u64 << 53) as f64 - 1.0);
    for threads in ["1", "3"] {
        let arguments = ["solve", &a, "--rhs", "random", "-x", &x, "--threads", threads];
        assert_eq!(json(0, &arguments)["rhs"], "random");
        assert_eq!(two_numbers(&x), expected);
    }
    assert!(text(&["solve", &a, "--rhs", "random"]).contains("right-hand side   pseudo-random"));
}

#[test]
fn a_file() {
    let folder = Folder::new();
    let a = identity(&folder);
    let b = folder.write("b.mtx", "%%MatrixMarket matrix array real general\n2 1\n3\n-4\n");
    assert_eq!(json(0, &["solve", &a, "-b", &b])["rhs"], "file");
    assert!(text(&["solve", &a, "-b", &b]).contains(&format!("right-hand side   {b}")));
    fails(&["solve", &a, "-b", &b, "--rhs", "random"], &["cannot be used with"]);
    fails(&["solve", &a, "--rhs", "two"], &["ones, random"]);
}

/// Rows that sum to zero: exactly, and but for rounding (0.1 + 0.2 - 0.3 is not zero in f64).
#[test]
fn a_right_hand_side_that_shows_nothing() {
    let folder = Folder::new();
    let exact = folder.write("n.mtx", &format!("{GENERAL}2 2 4\n1 1 1\n1 2 -1\n2 1 -1\n2 2 1\n"));
    let rounded = folder.write(
        "r.mtx",
        &format!(
            "{GENERAL}3 3 9\n1 1 .1\n1 2 .2\n1 3 -.3\n2 1 .1\n2 2 .2\n2 3 -.3\n3 1 .1\n3 2 .2\n3 3 -.3\n"
        ),
    );
    for (file, words) in [(&exact, "A times ones is zero: x = 0"), (&rounded, "zero but for rounding")] {
        let text = text(&["solve", file]);
        assert!(text.contains("warning           A times ones is zero"), "{text}");
        assert!(
            text.contains(words)
                && text.contains("shows nothing; try --rhs product, --rhs random or -b FILE"),
            "{text}"
        );
    }
    let report = json(0, &["solve", &exact]);
    assert_eq!((&report["rhs"], &report["iterations"]), (&"ones".into(), &0.into()));
    assert!(report["warnings"][0].as_str().unwrap().contains("--rhs random"));
    let zero = folder.write("b.mtx", "%%MatrixMarket matrix array real general\n2 1\n0\n0\n");
    let message = json(0, &["solve", &exact, "-b", &zero])["warnings"][0].as_str().unwrap().to_owned();
    assert!(message.contains("b is zero") && !message.contains("--rhs"), "{message}");
}

#[test]
fn a_failed_solve_says_it_too() {
    let folder = Folder::new();
    let file = folder.write("r.mtx", &format!("{GENERAL}2 3 1\n1 1 1\n"));
    assert_eq!(json(2, &["solve", &file, "--rhs", "random"])["rhs"], "random");
    ends(2, &["solve", &file, "--rhs"]);
}
