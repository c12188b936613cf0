use super::*;
use crate::names::NameError;

#[test]
fn every_name_is_read_back() {
    for info in ALL {
        assert!(!info.examples.is_empty() && !info.description.is_empty(), "{}", info.name);
        for &example in info.examples {
            let spec: PrecondSpec = example.parse().unwrap();
            assert!(std::ptr::eq(spec.info(), *info), "{example}");
            assert_eq!(spec.to_string(), example);
            assert_eq!(example.to_uppercase().parse::<PrecondSpec>().unwrap(), spec);
            spec.validate().unwrap();
        }
        for parameter in info.parameters {
            let is_read = parameter.default.is_none() || parameter.default_value().is_some();
            assert!(is_read, "{}: {parameter:?}", info.name);
        }
        for alias in info.aliases {
            let other = ALL.iter().filter(|other| other.name == *alias || other.aliases.contains(alias));
            assert_eq!(other.count(), 1, "{alias}");
        }
    }
}

/// An entry without its line in `ALL`, such as that of callers' recipes, is an unknown name.
#[test]
fn what_is_not_listed_is_unknown() {
    assert!(matches!("own".parse::<PrecondSpec>(), Err(NameError::Unknown { .. })));
}

#[test]
fn short_and_other_spellings() {
    for (given, meant) in [
        ("ilu", "ilu0"),
        ("IC1", "ic(1)"),
        ("icc", "ic0"),
        ("mic2", "mic(2)"),
        ("mic2(0.5)", "mic(2,0.5)"),
        ("mic(0,0.95)", "mic(0,0.95)"),
        ("milu3-columns", "milu-columns(3)"),
        (" ilut( 5 , 1e-2 ) ", "ilut(5,0.01)"),
        ("ict(0.00001)", "ict(1e-5)"),
        ("bilu", "bilu0"),
        ("sgs", "ssor"),
        ("Diagonal", "jacobi"),
        ("ssor(omega=1.5)", "ssor(1.5)"),
        ("mic(OMEGA = 0.5)", "mic(0,0.5)"),
        ("mic2(omega=0.5)", "mic(2,0.5)"),
        ("ilut(tol=1e-2,p=5)", "ilut(5,0.01)"),
        ("fsai(k=2)", "fsai(matrix,2)"),
        ("fsai(matrix,2)", "fsai(matrix,2)"),
    ] {
        assert_eq!(given.parse::<PrecondSpec>().unwrap().to_string(), meant, "{given}");
    }
}

#[test]
fn errors_say_what_to_write() {
    for (given, message) in [
        ("jacoby", "did you mean `jacobi`?"),
        ("ilu0p", "did you mean `ilu0`?"),
        ("sssor", "did you mean `ssor`?"),
        ("", "unknown preconditioner ``"),
        ("multigrid", "known: auto, none, jacobi, column-norms, ssor, ic0"),
        ("ict", "`ict` lacks TOL, below which entries of a column are dropped: ict(TOL)"),
        ("ilut(1)", "lacks TOL"),
        ("ilut", "lacks P, how many entries of a row are kept beyond the mean of A: ilut(P,TOL)"),
        ("ic(-1)", "K, the levels of fill, is a whole number from 0 on, not `-1`"),
        ("ic()", "not ``"),
        ("ic(1", "numbers stand in parentheses at the end, as in ic0, ic(K)"),
        ("ic(1)x", "parentheses"),
        ("ilu(1,2)", "`ilu(1,2)` has too many numbers: ilu0, ilu(K)"),
        ("dic(1)", "too many numbers: dic"),
        ("mic(0,2)", "is a number from 0 to 1, not `2`"),
        ("mic(0,nan)", "not `nan`"),
        ("ict(-1)", "not `-1`"),
        ("ilut(1,inf)", "not `inf`"),
        ("ilut-fill(0.5,0)", "is a number from 1 on"),
        ("bdic(0)", "is a whole number from 1 to 8"),
        ("bdilu(9)", "not `9`"),
        ("ssor(w=1)", "`ssor(w=1)` has no parameter `w`: ssor, ssor(OMEGA)"),
        ("mic1(k=2)", "`mic1(k=2)` gives K twice"),
        ("mic(1,0.5,omega=1)", "gives OMEGA twice"),
        ("ssor(ssor)", "not `ssor`"),
        ("ssor(matrix)", "not `matrix`"),
        ("ssor(1))(", "parentheses"),
        ("ssor(2)", "OMEGA, the relaxation, is a number from 0.01 to 1.99, not `2`"),
    ] {
        let error = given.parse::<PrecondSpec>().unwrap_err().to_string();
        assert!(error.contains(message), "{given}: {error}");
    }
}

#[test]
fn functions_make_what_names_mean() {
    use PrecondSpec as P;
    let threshold = Threshold { keep: FillRule::Factor(3.0), tau: 0.01, pivoting: true };
    for (spec, name) in [
        (P::auto(), "auto"),
        (P::none(), "none"),
        (P::jacobi(), "jacobi"),
        (P::ssor(1.5), "ssor(1.5)"),
        (P::ic(2), "ic(2)"),
        (P::mic(0, 0.9), "mic(0,0.9)"),
        (P::dic(), "dic"),
        (P::ilu(0), "ilu0"),
        (P::milu(0, 1.0, crate::elimination::PreservedSums::Columns), "milu0-columns"),
        (P::dilu(), "dilu"),
        (P::ict(0.1), "ict(0.1)"),
        (P::ilut(threshold), "ilutp-fill(3,0.01)"),
        (P::block(BlockKind::Dilu, Some(5)), "bdilu(5)"),
        (P::block(BlockKind::Ic0, None), "bic0"),
    ] {
        assert_eq!(spec.to_string(), name);
        assert_eq!(name.parse::<P>().unwrap(), spec);
    }
    assert!(
        P::mic(0, f64::NAN).validate().is_err() && P::block(BlockKind::Jacobi, Some(9)).validate().is_err()
    );
}

/// What is weaker takes no more, and there is an end to it.
#[test]
fn weaker_ones_come_to_an_end() {
    let a = "poisson2d:12".parse::<crate::gallery::Problem>().unwrap().generate().unwrap();
    for info in ALL {
        for example in info.examples {
            let mut spec: PrecondSpec = example.parse().unwrap();
            let mut steps = 0;
            while let Some(weaker) = spec.weaker() {
                let entries = [&spec, &weaker].map(|s| s.predicted_entries(a.pattern()).unwrap_or(u64::MAX));
                assert!(entries[1] <= entries[0], "{spec} {weaker}");
                assert_eq!(weaker.info().symmetric, spec.info().symmetric, "{spec}");
                (spec, steps) = (weaker, steps + 1);
                assert!(steps < 64, "{example}");
            }
        }
    }
}

/// A preconditioner that has others within, and words.
static CYCLE: PrecondInfo = PrecondInfo {
    name: "cycle",
    parameters: &[
        Parameter {
            name: "SMOOTHER",
            meaning: "what smooths",
            takes: Takes::Preconditioner,
            default: Some("ssor"),
        },
        Parameter {
            name: "KIND",
            meaning: "the order of levels",
            takes: Takes::Word(&["v", "w"]),
            default: Some("v"),
        },
        Parameter {
            name: "LEVELS",
            meaning: "levels",
            takes: Takes::Count { least: 2, most: 9 },
            default: Some(FROM_MATRIX),
        },
    ],
    ..ssor::SSOR
};

#[test]
fn preconditioners_within_preconditioners_and_words_are_read() {
    let known = [&[&CYCLE], ALL].concat();
    let read = |text: &str| parse::read(&known, text, 0);
    for (given, meant) in [
        ("cycle", "cycle"),
        ("cycle(ssor)", "cycle"),
        ("cycle(ssor(1))", "cycle"),
        ("cycle(smoother=ssor(omega=1.5))", "cycle(ssor(1.5))"),
        ("cycle(kind=w)", "cycle(ssor,w)"),
        ("cycle(mic(1,0.9), v, 3)", "cycle(mic(1,0.9),v,3)"),
        ("cycle(cycle(ic1, w), levels = 2)", "cycle(cycle(ic(1),w),v,2)"),
    ] {
        let spec = read(given).unwrap();
        assert_eq!(spec.to_string(), meant, "{given}");
        assert_eq!(read(meant).unwrap(), spec);
        spec.validate().unwrap();
    }
    let spec = read("cycle(kind=w,levels=4)").unwrap();
    assert_eq!((spec.value("KIND"), spec.value("levels")), (Some(&Value::Word("w")), Some(&Value::Count(4))));
    assert_eq!(spec.value("smoother"), Some(&Value::Preconditioner(Box::new(PrecondSpec::ssor(1.0)))));
    for (given, message) in [
        ("cycle(sor)", "did you mean `ssor`?"),
        ("cycle(ssor(9))", "`ssor(9)`: OMEGA"),
        ("cycle(ssor,x)", "is one of v, w, not `x`"),
        ("cycle((ssor)", "parentheses"),
        ("cycle(ssor),v)", "parentheses"),
        ("cycle(levels=matrix,levels=2)", "gives LEVELS twice"),
    ] {
        let error = read(given).unwrap_err().to_string();
        assert!(error.contains(message), "{given}: {error}");
    }
    let deep = "cycle(".repeat(100_000) + &")".repeat(100_000);
    assert!(matches!(read(&deep), Err(NameError::TooDeep { .. })));
}
