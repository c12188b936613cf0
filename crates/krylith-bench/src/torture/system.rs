//! One case: a matrix, right-hand sides, a guess and options, all made from the seed and its number.

use super::axes::{Available, Choice, Kind, Of, kind_of};
use super::own::{self, Own, largest_of_columns};
use super::rational::null_vector;
use super::rng::Rng;
use super::{families, grids, numbers, singular};
use crate::Failure;
use crate::catalogue::parse;
use krylith::schedule::Schedule;
use krylith::transform::{Ordering, order};
use krylith::{Csr, Layout, MatchingMode, Method, NullSpace, Precision, PrecondSpec, Solver, io};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The largest matrix of a catalogue.
const LARGEST: u64 = 2000;

/// One case in this many is a thousand small singular systems.
const BATCH_EVERY: usize = 40;
const BATCH: usize = 1000;

/// One system of a batch in this many runs on several threads.
const THREADS_IN_BATCH: usize = 30;

/// Labels of the streams that parts of a case draw from.
const STREAM_BATCH: u64 = 1;
const STREAM_CHOICE: u64 = 2;
const STREAM_MATRIX: u64 = 3;
const STREAM_NUMBERS: u64 = 4;
const STREAM_OPTIONS: u64 = 5;

/// What cases are made from besides their numbers.
pub struct Sources {
    pub available: Available,
    folder: PathBuf,
    files: Vec<String>,
    read: RefCell<HashMap<usize, Csr<f64>>>,
}

impl Sources {
    /// With the matrices of a folder, if there is one.
    pub fn new(folder: Option<&Path>) -> Result<Self, Failure> {
        let mut files = Vec::new();
        if let Some(folder) = folder {
            let entries = parse(&std::fs::read_to_string(folder.join("CATALOGUE.tsv"))?)?;
            files.extend(entries.into_iter().filter(|entry| entry.n <= LARGEST).map(|entry| entry.file));
            if files.is_empty() {
                return Err(format!("{}: no matrix of at most {LARGEST} rows", folder.display()).into());
            }
        }
        let one = Csr::<f64>::identity(3)?;
        let dissection = order(one.pattern(), Ordering::NestedDissection).is_ok();
        let available = Available { dissection, catalogue: folder.is_some() };
        let folder = folder.map(Path::to_path_buf).unwrap_or_default();
        Ok(Sources { available, folder, files, read: RefCell::default() })
    }

    /// Matrices of the folder that may be sampled.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    fn matrix(&self, k: usize) -> Result<Csr<f64>, Failure> {
        if let Some(known) = self.read.borrow().get(&k) {
            return Ok(known.clone());
        }
        let a = io::read_matrix(self.folder.join(&self.files[k]))?;
        self.read.borrow_mut().insert(k, a.clone());
        Ok(a)
    }
}

/// Systems in a case: one, or a batch of small singular ones.
pub fn systems_of(seed: u64, case: u64) -> usize {
    if Rng::new(&[seed, case, STREAM_BATCH]).once_in(BATCH_EVERY) { BATCH } else { 1 }
}

/// Which matrix a call is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    A,
    Other,
}

/// A call of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `Prepared::refactor`.
    Refactor(Which),
    /// A solve with this matrix or its transpose and right-hand side, from the first guess or from the last answer.
    Solve { matrix: Which, transposed: bool, rhs: usize, fresh: bool },
}

/// How the preparation is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// `Solver::solve` or `Solver::solve_from`, which prepare.
    None,
    /// `Solver::prepare`.
    Own,
    /// `Solver::prepare_with`, the preconditioner made from the other matrix.
    FromOther,
}

/// Everything that is given to the library.
#[derive(Debug, Clone)]
pub struct System {
    pub seed: u64,
    pub case: u64,
    /// Its number in a batch.
    pub system: Option<usize>,
    pub choice: Choice,
    /// What the matrix is, such as the name of a file.
    pub origin: String,
    pub a: Csr<f64>,
    pub other: Csr<f64>,
    pub rhs: [Vec<f64>; 2],
    pub guess: Vec<f64>,
    pub preparation: Preparation,
    pub calls: Vec<Call>,
    pub options: Settings,
}

/// The options of the solver, where checks need them too.
#[derive(Debug, Clone)]
pub struct Settings {
    /// All but the number of threads.
    pub solver: Solver,
    /// As reports name it.
    pub preconditioner: String,
    /// A near-null vector has the wrong length.
    pub wrong_near_null: bool,
    pub method: Method,
    pub recover: bool,
    pub allow_stale: bool,
    pub rtol: f64,
    pub atol: f64,
    pub max_iterations: usize,
    /// The observer ends the solve at this iteration.
    pub stop_at: Option<usize>,
    pub threads: Vec<usize>,
}

impl System {
    /// The values of all axes of system `number` of a case.
    pub fn choose(seed: u64, case: u64, number: usize, sources: &Sources) -> Choice {
        let batch = systems_of(seed, case) > 1;
        let mut rng = Rng::new(&[seed, case, number as u64, STREAM_CHOICE]);
        let kinds = |kind: Kind| (kind == Kind::Singular) == batch;
        let choice = Choice::draw(&mut rng, kinds, sources.available);
        // Threads cost more than such a solve, and most of a thousand systems need not find out about them.
        if batch && !rng.once_in(THREADS_IN_BATCH) { choice.with(Of::Threads, "1") } else { choice }
    }

    /// System `number` of a case.
    pub fn new(seed: u64, case: u64, number: usize, sources: &Sources) -> Result<System, Failure> {
        let choice = Self::choose(seed, case, number, sources);
        let stream = |label: u64| Rng::new(&[seed, case, number as u64, label]);
        let (plain, origin) = matrix(&choice, sources, &mut stream(STREAM_MATRIX))?;
        let rng = &mut stream(STREAM_NUMBERS);
        let a = numbers::scaled(&plain, choice.get(Of::Scale), rng);
        let kind = choice.get(Of::Rhs);
        let rhs = [numbers::rhs(&a, kind, rng), numbers::rhs(&a, kind, rng)];
        let guess = numbers::guess(a.ncols(), choice.get(Of::Guess), rng);
        let (preparation, calls) = sequence(choice.get(Of::Sequence));
        let other = match preparation {
            Preparation::FromOther if a.nrows() == a.ncols() => numbers::stand_in(&a, rng),
            _ => numbers::successor(&a, rng),
        };
        let mut options = settings(&choice, a.nrows(), &mut stream(STREAM_OPTIONS))?;
        options.solver = options.solver.null_space(null_space(choice.get(Of::NullSpace), &a));
        let source = if preparation == Preparation::FromOther { &other } else { &a };
        options.solver = options.solver.near_null_vectors(near_null(choice.get(Of::NearNull), source));
        let system = (systems_of(seed, case) > 1).then_some(number);
        Ok(System { seed, case, system, choice, origin, a, other, rhs, guess, preparation, calls, options })
    }

    pub fn matrix(&self, which: Which) -> &Csr<f64> {
        match which {
            Which::A => &self.a,
            Which::Other => &self.other,
        }
    }
}

fn matrix(choice: &Choice, sources: &Sources, rng: &mut Rng) -> Result<(Csr<f64>, String), Failure> {
    let family = choice.get(Of::Family);
    let (low, high) = match choice.get(Of::Size) {
        "0" => (0, 0),
        "1" => (1, 1),
        "2-8" => (2, 8),
        "9-64" => (9, 64),
        "65-400" => (65, 400),
        _ => (2049, 4000),
    };
    let n = rng.between(low, high) as usize;
    Ok(match kind_of(family) {
        Kind::Hostile => (families::hostile(family, n, rng), family.into()),
        Kind::Singular => (singular::singular(family, rng), family.into()),
        Kind::Grid => grids::grid(family, choice.get(Of::Problem), n, rng),
        Kind::Catalogue => {
            let k = rng.below(sources.files.len());
            (sources.matrix(k)?, sources.files[k].clone())
        }
    })
}

/// The calls of a sequence by name.
fn sequence(name: &str) -> (Preparation, Vec<Call>) {
    let solve = |matrix, rhs, fresh| Call::Solve { matrix, transposed: false, rhs, fresh };
    let transposed = |matrix, rhs| Call::Solve { matrix, transposed: true, rhs, fresh: true };
    use Which::{A, Other};
    match name {
        "one" => (Preparation::None, vec![solve(A, 0, true)]),
        "several" => (
            Preparation::Own,
            vec![solve(A, 0, true), solve(A, 1, false), solve(A, 1, true), solve(A, 0, true)],
        ),
        "refactor" => {
            let there = [solve(A, 0, true), Call::Refactor(Other), solve(Other, 0, true)];
            let back = [solve(Other, 1, false), Call::Refactor(A), solve(A, 0, true)];
            (Preparation::Own, [there, back].concat())
        }
        "stale" => {
            let calls =
                vec![solve(A, 0, true), solve(Other, 0, true), Call::Refactor(Other), solve(Other, 1, false)];
            (Preparation::Own, calls)
        }
        "other-matrix" => {
            (Preparation::FromOther, vec![solve(A, 0, true), solve(A, 1, false), transposed(A, 0)])
        }
        "transposed" => {
            let there = [transposed(A, 0), solve(A, 0, true), transposed(Other, 1), Call::Refactor(Other)];
            let back = [transposed(Other, 0), solve(Other, 1, true), transposed(A, 1), Call::Refactor(A)];
            (Preparation::Own, [&there[..], &back, &[transposed(A, 0), solve(A, 1, true)]].concat())
        }
        other => panic!("no sequence is called {other}"),
    }
}

/// The null space by name: vectors are those of A where they are known, and constants where not, whether A has them or not.
fn null_space(name: &str, a: &Csr<f64>) -> NullSpace {
    match name {
        "ignore" => NullSpace::Ignore,
        "constant" => NullSpace::Constant,
        "vectors" => NullSpace::vectors([null_vector(a).unwrap_or_else(|| vec![1.0; a.ncols()])]),
        _ => NullSpace::Auto,
    }
}

/// Near-null vectors by name, for the matrix that the preconditioner is made from.
fn near_null(name: &str, source: &Csr<f64>) -> Vec<Vec<f64>> {
    match name {
        "columns" => vec![largest_of_columns(source)],
        "wrong-length" => vec![vec![1.0; source.ncols()], vec![1.0; source.ncols() + 1]],
        _ => Vec::new(),
    }
}

fn settings(choice: &Choice, n: usize, rng: &mut Rng) -> Result<Settings, Failure> {
    let large = n > 500;
    let name = choice.get(Of::Preconditioner);
    let (solver, preconditioner) = match own::NAMES.iter().any(|(own, _)| *own == name) {
        true => {
            let sequence = sequence(choice.get(Of::Sequence));
            let counts = choice.get(Of::NearNull) == "columns";
            (Solver::new().own_preconditioner(name, Own::new(name, counts, &sequence)), name.to_string())
        }
        false => {
            let spec = preconditioner(name, large, rng)?;
            (Solver::new().preconditioner(spec.clone()), spec.to_string())
        }
    };
    let method = method(choice.get(Of::Method), n, rng);
    let recover = choice.get(Of::Recovery) == "on";
    let allow_stale = rng.once_in(2);
    let (rtol, atol): (f64, f64) = (choice.get(Of::Rtol).parse()?, choice.get(Of::Atol).parse()?);
    let max_iterations = match choice.get(Of::Iterations) {
        "few" => 2 + rng.below(9),
        // More threads than cores take turns, and each operation waits for all of them.
        "many" if choice.get(Of::Threads).contains('8') => 40,
        "many" => 300,
        number => number.parse()?,
    };
    let stop_at = (choice.get(Of::Observer) == "stops").then(|| rng.below(6));
    let threads = choice.get(Of::Threads).split('+').map(str::parse).collect::<Result<_, _>>()?;
    let mut solver = solver
        .method(method)
        .reorder(choice.get(Of::Reorder).parse()?)
        .matching(match choice.get(Of::Matching) {
            "on" => MatchingMode::On,
            "off" => MatchingMode::Off,
            _ => MatchingMode::Auto,
        })
        .precision(match choice.get(Of::Precision) {
            "mixed" => Precision::Mixed,
            "f32" => Precision::F32,
            _ => Precision::F64,
        })
        .layout(match choice.get(Of::Layout) {
            "slices" => Layout::Slices,
            "rows" => Layout::Rows,
            _ => Layout::Auto,
        })
        .schedule(match choice.get(Of::Schedule) {
            "levels" => Schedule::Levels,
            "point-to-point" => Schedule::PointToPoint,
            _ => Schedule::Auto,
        })
        .recover(recover)
        .allow_stale_factor(allow_stale)
        .rtol(rtol)
        .atol(atol)
        .max_iterations(max_iterations);
    if choice.get(Of::Memory) == "tiny" {
        solver = solver.max_factor_bytes(rng.pick(&[0, 64, 4096]));
    }
    if rng.once_in(3) {
        solver = solver.expect_solves(rng.pick(&[0, 30, 100_000])).expect_refactors(rng.pick(&[0, 1, 1000]));
    }
    Ok(Settings {
        solver,
        preconditioner,
        wrong_near_null: choice.get(Of::NearNull) == "wrong-length",
        method,
        recover,
        allow_stale,
        rtol,
        atol,
        max_iterations,
        stop_at,
        threads,
    })
}

/// The name with numbers in place of its letters. A large matrix gets little fill, so that a case takes seconds at most.
fn preconditioner(name: &str, large: bool, rng: &mut Rng) -> Result<PrecondSpec, Failure> {
    let levels: &[&str] = if large { &["0", "1", "2"] } else { &["0", "1", "2", "3", "6"] };
    let tolerances: &[&str] =
        if large { &["1e-3", "1e-2", "0.5"] } else { &["0", "1e-300", "1e-8", "1e-4", "1e-2", "0.5", "2"] };
    let block = (1 + rng.below(8)).to_string();
    let name = name
        .replace("FACTOR", rng.pick(&["1", "1.5", "3", "10"]))
        .replace(
            "OMEGA",
            rng.pick(if name.starts_with("ssor") {
                &["0.01", "0.5", "1.5", "1.99"]
            } else {
                &["0", "0.5", "0.95", "1"]
            }),
        )
        .replace("ROUNDS", rng.pick(&["0", "1", "3"]))
        .replace("STEPS", rng.pick(&["1", "3", "7"]))
        .replace("ENTRIES", rng.pick(&["1", "2", "5"]))
        .replace("TAU", rng.pick(&["0", "0.01", "1"]))
        .replace("DELTA", rng.pick(&["0", "0.05", "1"]))
        .replace("TOL", rng.pick(if name.starts_with("afsai") { &["0", "1e-3", "1"] } else { tolerances }))
        .replace('K', rng.pick(if name.starts_with("fsai") { &["1", "2", "4"] } else { levels }))
        .replace('P', rng.pick(&["0", "1", "2", "5", "20", "1000"]))
        .replace('B', &block);
    Ok(name.parse()?)
}

fn method(name: &str, n: usize, rng: &mut Rng) -> Method {
    // More than n for small systems; for large ones more than the iterations, which has the same effect and less memory.
    let many = n.min(500) + 1 + rng.below(5);
    let few = 2 + rng.below(6);
    match name {
        "cg" => Method::Cg,
        "bicgstab" => Method::BiCgStab,
        "minres" => Method::Minres,
        "gmres(0)" => Method::Gmres(0),
        "gmres(1)" => Method::Gmres(1),
        "gmres(few)" => Method::Gmres(few),
        "gmres(30)" => Method::Gmres(30),
        "gmres(n+)" => Method::Gmres(many),
        "fgmres(0)" => Method::Fgmres(0),
        "fgmres(1)" => Method::Fgmres(1),
        "fgmres(few)" => Method::Fgmres(few),
        "fgmres(n+)" => Method::Fgmres(many),
        _ => Method::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_bits(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
    }

    #[test]
    fn a_case_is_made_from_its_numbers_alone() {
        let sources = Sources::new(None).unwrap();
        for case in 0..300 {
            let last = systems_of(9, case) - 1;
            let make = || System::new(9, case, last, &sources).unwrap();
            let (first, second) = (make(), make());
            assert_eq!(first.choice, second.choice);
            assert_eq!(first.a.pattern(), second.a.pattern());
            assert_eq!(first.other.pattern(), second.other.pattern());
            assert!(same_bits(first.a.values(), second.a.values()));
            assert!(same_bits(first.other.values(), second.other.values()));
            assert!((0..2).all(|k| same_bits(&first.rhs[k], &second.rhs[k])));
            assert!(same_bits(&first.guess, &second.guess));
            assert_eq!(format!("{:?}", first.options), format!("{:?}", second.options));
        }
    }

    #[test]
    fn other_numbers_give_other_cases() {
        let sources = Sources::new(None).unwrap();
        let describe = |seed, case| System::new(seed, case, 0, &sources).unwrap().choice.describe();
        let mut all: Vec<String> = (0..100).map(|k| describe(k / 50, k % 50)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn batches_are_small_singular_systems() {
        let sources = Sources::new(None).unwrap();
        let batch = (0..).find(|&case| systems_of(1, case) > 1).unwrap();
        for number in 0..50 {
            let system = System::new(1, batch, number, &sources).unwrap();
            assert_eq!(kind_of(system.choice.get(Of::Family)), Kind::Singular);
            assert!(system.a.nrows() <= 6 && system.system == Some(number));
        }
        let single = (0..).find(|&case| systems_of(1, case) == 1).unwrap();
        assert_eq!(System::new(1, single, 0, &sources).unwrap().system, None);
    }
}
