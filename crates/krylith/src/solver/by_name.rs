//! Options by name and value: one table for the command, for Rust and for bindings.

use super::null_space::NullSpace;
use super::options::Solver;
use crate::cost::Machine;
use crate::error::SolveError;
use crate::names;
use crate::options::{Layout, MatchingMode, Precision};
use crate::schedule::Schedule;
use std::fmt::Display;
use std::str::FromStr;

/// An option of a solve that has a name ([`Solver::set`]).
///
/// ```
/// let option = krylith::solver::options().iter().find(|option| option.name == "precision").unwrap();
/// assert_eq!((option.default, option.choices), ("auto", ["auto", "f64", "mixed", "f32"].as_slice()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SolverOption {
    /// Its name, as the command has it behind two dashes.
    pub name: &'static str,
    /// What a value is called in help texts.
    pub value: &'static str,
    /// The value unless another one is given; empty where none is.
    pub default: &'static str,
    /// All values, where they are names of this option alone; none otherwise.
    pub choices: &'static [&'static str],
    /// What it is for.
    pub help: &'static str,
    set: fn(Solver, &str) -> Result<Solver, String>,
}

/// Every option that has a name.
pub fn options() -> &'static [SolverOption] {
    OPTIONS
}

impl Solver {
    /// Sets an option by its name; case does not matter, and `_` is as good as `-`. Options that have no name in [`options`], such as a preconditioner of the
    /// caller's own, have methods only.
    ///
    /// ```
    /// use krylith::{Method, PrecondSpec, Solver};
    /// let solver = Solver::new().set("solver", "gmres(50)")?.set("precond", "ilu(1)")?.set("max_iterations", "500")?;
    /// assert_eq!(solver, Solver::new().method(Method::Gmres(50)).preconditioner(PrecondSpec::ilu(1)).max_iterations(500));
    /// let error = Solver::new().set("rtoll", "1e-6").unwrap_err();
    /// assert!(error.to_string().contains("rtol"));
    /// # Ok::<(), krylith::SolveError>(())
    /// ```
    pub fn set(self, name: &str, value: &str) -> Result<Self, SolveError> {
        let known = name.trim().to_lowercase().replace('_', "-");
        let wrong = |name, needed| SolveError::Option { name, value: value.into(), needed };
        let Some(option) = OPTIONS.iter().find(|option| option.name == known) else {
            let hint = names::hint(&known, &Vec::from_iter(OPTIONS.iter().map(|option| option.name)));
            let needed = format!("there is no such option{hint}");
            return Err(SolveError::Option { name: "option", value: name.into(), needed });
        };
        (option.set)(self, value.trim()).map_err(|needed| wrong(option.name, needed))
    }
}

/// A value of a type that is read from a name, or what is wrong with it.
fn named<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

/// A whole number from `least` on.
fn count(value: &str, least: usize) -> Result<usize, String> {
    let number = value.parse().ok().filter(|&number| number >= least);
    number.ok_or_else(|| format!("a whole number from {least} on is needed"))
}

/// A finite number from 0 on.
fn size(value: &str) -> Result<f64, String> {
    let number = value.parse().ok().filter(|&number: &f64| number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a number from 0 on is needed".into())
}

/// One of several names.
fn choice<T: Copy>(value: &str, all: &[(&str, T)]) -> Result<T, String> {
    let lower = value.to_lowercase();
    let found = all.iter().find(|(name, _)| *name == lower).map(|&(_, choice)| choice);
    found.ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
        format!("one of {} is needed", known.join(", "))
    })
}

const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

const OPTIONS: &[SolverOption] = &[
    SolverOption {
        name: "solver",
        value: "SOLVER",
        default: "auto",
        choices: &[],
        help: "Krylov method: auto, cg, bicgstab, gmres, fgmres, minres or lsmr",
        set: |solver, value| Ok(solver.method(named(value)?)),
    },
    SolverOption {
        name: "precond",
        value: "PRECOND",
        default: "auto",
        choices: &[],
        help: "Preconditioner, by a name of the registry",
        set: |solver, value| Ok(solver.preconditioner(named(value)?)),
    },
    SolverOption {
        name: "rtol",
        value: "RTOL",
        default: "1e-8",
        choices: &[],
        help: "Converged means |b - A x| <= max(RTOL |b|, ATOL), recomputed at the end",
        set: |solver, value| Ok(solver.rtol(size(value)?)),
    },
    SolverOption {
        name: "atol",
        value: "ATOL",
        default: "0",
        choices: &[],
        help: "Absolute tolerance, see --rtol",
        set: |solver, value| Ok(solver.atol(size(value)?)),
    },
    SolverOption {
        name: "max-iterations",
        value: "N",
        default: "10000",
        choices: &[],
        help: "Maximum number of iterations",
        set: |solver, value| Ok(solver.max_iterations(count(value, 0)?)),
    },
    SolverOption {
        name: "reorder",
        value: "R",
        default: "natural",
        choices: &[],
        help: "Order of rows and columns: natural, rcm, amd, colour, or nd (needs a build with the feature metis); x comes back in the order of A",
        set: |solver, value| Ok(solver.reorder(named(value)?)),
    },
    SolverOption {
        name: "sparsify",
        value: "S",
        default: "",
        choices: &[],
        help: "Make the preconditioner from a sparser matrix, whose sweeps have fewer wavefronts: off, auto, paper, or the PERCENT of entries to drop; off if \
               not given, unless --precond is auto and the machine of --machine waits for wavefronts; `krylith info --sparsify` shows what each would do",
        set: |solver, value| Ok(solver.sparsify(named(value)?)),
    },
    SolverOption {
        name: "matching",
        value: "MATCHING",
        default: "auto",
        choices: &["auto", "on", "off"],
        help: "Permute columns so that large entries come to the diagonal; auto does so for an incomplete LU of a matrix that needs it",
        set: |solver, value| {
            let all = [("auto", MatchingMode::Auto), ("on", MatchingMode::On), ("off", MatchingMode::Off)];
            Ok(solver.matching(choice(value, &all)?))
        },
    },
    SolverOption {
        name: "recovery",
        value: "RECOVERY",
        default: "on",
        choices: &["on", "off"],
        help: "What to do after a bad pivot. on: shift the diagonal, and if no shift works use the diagonal alone; off: stop with an error",
        set: |solver, value| Ok(solver.recover(choice(value, &SWITCH)?)),
    },
    SolverOption {
        name: "shift",
        value: "S",
        default: "0",
        choices: &[],
        help: "Enlarge the diagonal by this multiple of its size before it is factored",
        set: |solver, value| Ok(solver.shift(size(value)?)),
    },
    SolverOption {
        name: "precision",
        value: "PRECISION",
        default: "auto",
        choices: &["auto", "f64", "mixed", "f32"],
        help: "Numbers of the iteration: f64; mixed stores factors in f32; f32 iterates in f32 and refines in f64; auto is f64, or mixed where --precond is \
               left to be chosen and that is predicted to be faster. The answer is f64 and checked in it",
        set: |solver, value| {
            let all = [
                ("auto", Precision::Auto),
                ("f64", Precision::F64),
                ("mixed", Precision::Mixed),
                ("f32", Precision::F32),
            ];
            Ok(solver.precision(choice(value, &all)?))
        },
    },
    SolverOption {
        name: "null-space",
        value: "SPACE",
        default: "auto",
        choices: &[],
        help: "The null space of a singular matrix: auto recognises constants, none does not look; constant, or vectors in files, one per option",
        set: |solver, value| {
            let all =
                [("auto", NullSpace::Auto), ("none", NullSpace::Ignore), ("constant", NullSpace::Constant)];
            let found = all.into_iter().find(|(name, _)| *name == value.to_lowercase());
            let (_, space) = found.ok_or("one of auto, none, constant is needed; vectors have a method")?;
            Ok(solver.null_space(space))
        },
    },
    SolverOption {
        name: "machine",
        value: "NAME|FILE",
        default: "",
        choices: &[],
        help: "Predict costs for this machine: reference, processor-device, many-core or device (the last two are models), or a file that `krylith devices \
               --bench --machine FILE` writes",
        set: |solver, value| {
            let known = Machine::PRESETS.map(|machine| machine.name);
            let machine = Machine::preset(value);
            Ok(solver.machine(machine.ok_or_else(|| format!("one of {} is needed", known.join(", ")))?))
        },
    },
    SolverOption {
        name: "expect-solves",
        value: "N",
        default: "1",
        choices: &[],
        help: "Choose for this many right-hand sides with the matrix: a dearer set-up then pays",
        set: |solver, value| Ok(solver.expect_solves(count(value, 1)?)),
    },
    SolverOption {
        name: "expect-refactors",
        value: "N",
        default: "0",
        choices: &[],
        help: "Choose for values that change this often, between the solves of --expect-solves",
        set: |solver, value| Ok(solver.expect_refactors(count(value, 0)?)),
    },
    SolverOption {
        name: "profile",
        value: "",
        default: "off",
        choices: &["on", "off"],
        help: "Report what products, the preconditioner and work on vectors take of the iterations, and on a device the time of each kernel",
        set: |solver, value| Ok(solver.profile(choice(value, &SWITCH)?)),
    },
    SolverOption {
        name: "layout",
        value: "LAYOUT",
        default: "auto",
        choices: &["auto", "slices", "rows"],
        help: "How rows are stored and taken. auto: on a grid or in blocks where the matrix has them, otherwise as slices; slices: by wavefront in slices of eight \
               rows where that is faster, otherwise as rows; rows: as they are given",
        set: |solver, value| {
            let all = [("auto", Layout::Auto), ("slices", Layout::Slices), ("rows", Layout::Rows)];
            Ok(solver.layout(choice(value, &all)?))
        },
    },
    SolverOption {
        name: "schedule",
        value: "SCHEDULE",
        default: "auto",
        choices: &["auto", "levels", "p2p"],
        help: "How triangular solves are divided among threads. auto: what the analysis predicts to be fastest; levels: wavefront after wavefront; p2p: blocks of rows \
               that wait for each other",
        set: |solver, value| {
            let all =
                [("auto", Schedule::Auto), ("levels", Schedule::Levels), ("p2p", Schedule::PointToPoint)];
            Ok(solver.schedule(choice(value, &all)?))
        },
    },
    SolverOption {
        name: "threads",
        value: "N",
        default: "",
        choices: &[],
        help: "Threads to use, at most 8 or four per core, whichever is more; all cores if not given",
        set: |solver, value| Ok(solver.threads(count(value, 1)?)),
    },
    SolverOption {
        name: "max-memory",
        value: "GB",
        default: "",
        choices: &[],
        help: "Memory limit in GB: for a generated matrix, and for everything a solve allocates besides A, b and x; what the machine has free if not given",
        set: |solver, value| Ok(solver.max_memory((1e9 * size(value)?) as u64)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_a_solver() {
        for option in options().iter().filter(|option| !option.default.is_empty()) {
            assert_eq!(Solver::new().set(option.name, option.default), Ok(Solver::new()), "{}", option.name);
        }
    }

    #[test]
    fn every_value_is_read_and_others_are_refused() {
        for option in options() {
            for value in option.choices {
                let upper = value.to_uppercase();
                let set = Solver::new().set(option.name, &upper);
                assert!(set.is_ok(), "{} {value}: {set:?}", option.name);
                assert_eq!(
                    set.unwrap() == Solver::new(),
                    *value == option.default,
                    "{} {value}",
                    option.name
                );
            }
            let error = Solver::new().set(option.name, "none of them").unwrap_err();
            assert!(matches!(&error, SolveError::Option { name, .. } if *name == option.name), "{error}");
        }
        let error = Solver::new().set("max_iteration", "1").unwrap_err().to_string();
        assert!(error.contains("did you mean `max-iterations`"), "{error}");
        for (name, value) in [("rtol", "-1"), ("rtol", "nan"), ("shift", "inf"), ("expect-solves", "0")] {
            assert!(Solver::new().set(name, value).is_err(), "{name} {value}");
        }
    }
}
