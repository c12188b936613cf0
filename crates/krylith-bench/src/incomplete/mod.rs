//! Incomplete factorizations beside those of other systems on real matrices: who converges where. Outcomes, no times.
//!
//! b = A·1, or with `--rhs` a random one, and x₀ = 0. Converged means ‖b − A x‖₂ ≤ 1e-8 ‖b‖₂ for the residual that this program recomputes from A and the x of
//! a contestant, within 10,000 iterations (inner ones of GMRES) and a limit of seconds. A peer whose own residual meets the
//! tolerance while the recomputed one does not goes on from its x, up to 20 times; Krylith does so by itself. Each runs in a
//! process of its own.
//!
//! * `spd`: CG with incomplete Cholesky. `general`: GMRES(50) and BiCGStab with incomplete LU.
//! * `factors`: ILU(k) and IC(k) equal PETSc's, in their entries and their applications.
//!
//! A study writes NAME.json.zst and NAME.md, that of the random right-hand side NAME-random.json.zst and NAME-random.md. `--peers-from` takes over what peers did in an older record; only what it lacks, and
//! Krylith, is run.

mod contestants;
mod factors;
mod own;
mod rank;
mod record;
mod report;
mod select;
mod trial;

pub use own::{OnceOptions, once};

use crate::Failure;
use crate::compare::{default_peers, machine};
use crate::record::{load, path, save};
use crate::rhs::{Choice, Rhs};
use clap::Args;
use contestants::{Contestant, Limits, Places, Study};
use krylith::io;
use record::{Matrix, Record, Run, Skipped};
use select::{Selection, select};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trial::System;

/// Options of `krylith-bench incomplete`.
#[derive(Args)]
pub struct Options {
    /// What is studied
    study: Study,
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// The results go to this folder
    #[arg(long)]
    output: PathBuf,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Python with numpy, scipy and ilupp; the one of the drivers' folder unless given
    #[arg(long)]
    python: Option<PathBuf>,
    /// Take over what the peers of an older record did
    #[arg(long)]
    peers_from: Option<PathBuf>,
    /// Run those peers again whose outcome in the older record is one of these, such as `time_limit`
    #[arg(long, requires = "peers_from", value_delimiter = ',')]
    again: Vec<String>,
    /// Only contestants whose names contain one of these, such as `PETSc`
    #[arg(long)]
    only: Vec<String>,
    /// Only matrices whose files contain one of these
    #[arg(long, value_delimiter = ',')]
    matrices: Vec<String>,
    /// Right-hand sides; each has a record of its own
    #[arg(long, default_value = "ones")]
    rhs: Choice,
    /// Seconds a contestant on a matrix at most
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Iterations at most
    #[arg(long, default_value_t = 10_000)]
    max_iterations: usize,
    /// Smallest matrix of `general`
    #[arg(long, default_value_t = 100)]
    least_rows: usize,
    /// Matrices at once
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

const RTOL: f64 = 1e-8;

/// Runs a study and writes its files.
pub fn run(options: &Options) -> Result<(), Failure> {
    let peers = options.peers.clone().map_or_else(default_peers, Ok)?;
    let python = options.python.clone().unwrap_or_else(|| peers.join("venv/bin/python"));
    let places = Places { peers, python };
    std::fs::create_dir_all(&options.output)?;
    if options.study == Study::Factors {
        return factors::run(&options.folder, &places, &options.output);
    }
    let limits = Limits { rtol: RTOL, max_iterations: options.max_iterations, seconds: options.seconds };
    let old = options.peers_from.as_deref().map(load::<Record>).transpose()?;
    for &rhs in options.rhs.sides() {
        if let Some(old) = &old {
            require_alike(old, options.study, rhs, &limits)?;
        }
    }
    options.rhs.sides().iter().try_for_each(|&rhs| study(options, rhs, &places, limits, old.as_ref()))
}

/// A study with one right-hand side.
fn study(
    options: &Options,
    rhs: Rhs,
    places: &Places,
    limits: Limits,
    old: Option<&Record>,
) -> Result<(), Failure> {
    let record = begin(options, rhs, old, &limits)?;
    let (contestants, skipped) = able(options, old, places);
    let wanted = contestants.len();
    let study = Running {
        options,
        rhs,
        places,
        limits,
        contestants,
        old,
        record: Mutex::new(Record { skipped, ..record }),
        next: AtomicUsize::new(0),
    };
    if wanted == 0 {
        return Err("nobody is left to take part".into());
    }
    study.all_matrices()?;
    let record = study.record.into_inner().map_err(|_| "a thread has failed")?;
    write(&options.output, &record)?;
    println!("{}", report::totals(&record));
    println!("written to {}", options.output.display());
    Ok(())
}

/// An older record of another task cannot be taken over.
fn require_alike(old: &Record, study: Study, rhs: Rhs, limits: &Limits) -> Result<(), Failure> {
    let alike = old.study == study
        && old.rhs == rhs
        && old.rtol == limits.rtol
        && old.max_iterations == limits.max_iterations
        && old.seconds == limits.seconds;
    if alike {
        Ok(())
    } else {
        Err("the older record has another study, right-hand side, tolerance or limit".into())
    }
}

/// A record without runs: the selection of the older record where there is one.
fn begin(options: &Options, rhs: Rhs, old: Option<&Record>, limits: &Limits) -> Result<Record, Failure> {
    let Selection { mut matrices, left_out } = match old {
        Some(old) => Selection { matrices: old.matrices.clone(), left_out: old.left_out.clone() },
        None => select(options.study, &options.folder, options.least_rows)?,
    };
    matrices.retain(|m| named(&m.file, &options.matrices));
    Ok(Record {
        study: options.study,
        rhs,
        date: machine::date(),
        command: machine::command(),
        machine: machine::describe(),
        versions: old.map(|old| old.versions.clone()).unwrap_or_default(),
        rtol: limits.rtol,
        max_iterations: limits.max_iterations,
        seconds: limits.seconds,
        matrices,
        left_out,
        skipped: Vec::new(),
        runs: Vec::new(),
    })
}

fn named(name: &str, parts: &[String]) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

/// Who can take part; who cannot is named. A peer that an older record has needs no driver.
fn able(
    options: &Options,
    old: Option<&Record>,
    places: &Places,
) -> (Vec<&'static Contestant>, Vec<Skipped>) {
    let (mut able, mut skipped) = (Vec::new(), Vec::new());
    for contestant in contestants::all(options.study).iter().filter(|c| named(c.name, &options.only)) {
        let known = old.is_some_and(|old| !contestant.is_own() && old.total(contestant.name).1 > 0);
        match contestant.obstacle(places) {
            Some(why) if !known => {
                eprintln!("SKIPPED: {}: {why}", contestant.name);
                skipped.push(Skipped { contestant: contestant.name.into(), why });
            }
            _ => able.push(contestant),
        }
    }
    (able, skipped)
}

/// Writes both files.
fn write(output: &Path, record: &Record) -> Result<(), Failure> {
    let name = match record.rhs {
        Rhs::Ones => record.study.name().to_owned(),
        other => format!("{}-{}", record.study.name(), other.name()),
    };
    save(&path(output, &name), record)?;
    Ok(std::fs::write(output.join(format!("{name}.md")), report::markdown(record))?)
}

/// A study under way.
struct Running<'a> {
    options: &'a Options,
    rhs: Rhs,
    places: &'a Places,
    limits: Limits,
    contestants: Vec<&'static Contestant>,
    old: Option<&'a Record>,
    record: Mutex<Record>,
    /// The next matrix.
    next: AtomicUsize,
}

impl Running<'_> {
    fn all_matrices(&self) -> Result<(), Failure> {
        let matrices = self.record.lock().map_err(|_| "a thread has failed")?.matrices.clone();
        let work = || -> Result<(), String> {
            while let Some(matrix) = matrices.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                self.matrix(matrix).map_err(|error| format!("{}: {error}", matrix.file))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.jobs.clamp(1, 64)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|w| w.join().map_err(|_| "a thread has failed")?)
        })
        .map_err(Failure::from)
    }

    /// Everyone on a matrix.
    fn matrix(&self, matrix: &Matrix) -> Result<(), Failure> {
        let (mut runs, mut versions): (Vec<Run>, BTreeMap<String, String>) = Default::default();
        let taken = |c: &Contestant| {
            let run = self.old.filter(|_| !c.is_own())?.run(&matrix.file, c.name)?;
            (!self.options.again.contains(&run.outcome)).then(|| run.clone())
        };
        let (known, missing): (Vec<_>, Vec<_>) = self.contestants.iter().partition(|c| taken(c).is_some());
        runs.extend(known.into_iter().filter_map(taken));
        if !missing.is_empty() {
            let a = io::read_matrix(self.options.folder.join(&matrix.file))?;
            if (a.nrows(), a.nnz()) != (matrix.rows, matrix.nnz) {
                return Err("the older record has another matrix of this name".into());
            }
            let scratch = tempfile::tempdir()?;
            let system = System::write(&matrix.file, a, self.rhs, scratch.path())?;
            for contestant in missing {
                let (version, run) = system.run(contestant, self.options.study, self.places, &self.limits)?;
                if !version.is_empty() {
                    versions.insert(contestant.name.into(), version);
                }
                eprintln!("{}: {}: {}", matrix.file, contestant.name, report::cell(Some(&run)));
                runs.push(run);
            }
        }
        let mut record = self.record.lock().map_err(|_| "a thread has failed")?;
        record.versions.extend(versions);
        record.runs.extend(runs);
        let names: Vec<&str> = contestants::all(self.options.study).iter().map(|c| c.name).collect();
        record.sort(&names);
        write(&self.options.output, &record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(folder: &Path, output: &Path, peers_from: Option<PathBuf>) -> Options {
        Options {
            study: Study::Spd,
            folder: folder.into(),
            output: output.into(),
            peers: Some(folder.into()),
            python: Some(folder.join("python")),
            peers_from,
            again: Vec::new(),
            only: vec!["PETSc ICC(0) none".into()],
            matrices: Vec::new(),
            rhs: Choice::Ones,
            seconds: 60,
            max_iterations: 10_000,
            least_rows: 100,
            jobs: 2,
        }
    }

    /// A stand-in for PETSc's driver that calls x = 0 converged.
    fn driver(folder: &Path, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("petsc_outcome");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_peers_word_is_not_believed_and_its_outcome_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let output = folder.join("out");
        let a = "poisson2d:4".parse::<krylith::gallery::Problem>().unwrap().generate().unwrap();
        std::fs::create_dir(folder.join("spd")).unwrap();
        io::write_matrix(folder.join("spd/a.mtx"), &a).unwrap();
        std::fs::write(folder.join("CATALOGUE.tsv"), "file\tn\tnnz\nspd/a.mtx\t16\t64\nother/b.mtx\t1\t1\n")
            .unwrap();
        io::write_vector(folder.join("zero.npy"), &[0.0; 16]).unwrap();
        let zero = folder.join("zero.npy");
        let line = "{\"version\":\"PETSc 9\",\"said\":\"converged\",\"iterations\":5,\"rounds\":1}";
        driver(folder, &format!("cp {} \"$2\"; echo '{line}'", zero.display()));
        run(&options(folder, &output, None)).unwrap();
        let path = path(&output, "spd");
        let record = load::<Record>(&path).unwrap();
        assert_eq!((record.matrices.len(), record.runs.len()), (1, 1));
        let described = &record.runs[0];
        assert_eq!((described.outcome.as_str(), described.residual), ("false_convergence", Some(1.0)));
        assert_eq!((described.said.as_str(), described.iterations), ("converged", Some(5)));
        assert_eq!(record.versions["PETSc ICC(0) none"], "PETSc 9");

        // A driver that would fail now is not asked again.
        driver(folder, "exit 9");
        run(&options(folder, &output, Some(path.clone()))).unwrap();
        assert_eq!(load::<Record>(&path).unwrap().runs, record.runs);
        // Unless its outcome is to be found again.
        let again = vec!["false_convergence".into()];
        run(&Options { again, ..options(folder, &output, Some(path.clone())) }).unwrap();
        assert_eq!(load::<Record>(&path).unwrap().runs[0].outcome, "crashed");
        // Without the older record it is a failed line.
        run(&options(folder, &output, None)).unwrap();
        assert_eq!(load::<Record>(&path).unwrap().runs[0].outcome, "crashed");
        // Another limit is another study, and so is another right-hand side.
        let other = Options { seconds: 9, ..options(folder, &output, Some(path.clone())) };
        assert!(run(&other).unwrap_err().to_string().contains("another study"));
        let other = Options { rhs: Choice::Both, ..options(folder, &output, Some(path)) };
        assert!(run(&other).unwrap_err().to_string().contains("another study, right-hand side"));
    }

    /// The driver is handed each right-hand side: what it copies from b.npy to x is what the study judges.
    #[test]
    fn each_right_hand_side_has_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let output = folder.join("out");
        std::fs::create_dir(folder.join("spd")).unwrap();
        // The identity: b is the answer.
        io::write_matrix(folder.join("spd/a.mtx"), &krylith::Csr::identity(9).unwrap()).unwrap();
        std::fs::write(folder.join("CATALOGUE.tsv"), "file\tn\tnnz\nspd/a.mtx\t9\t9\n").unwrap();
        driver(folder, "cp \"$1/b.npy\" \"$2\"; cp \"$1/b.npy\" \"$0.b\"; echo '{\"said\":\"converged\"}'");
        run(&Options { rhs: Choice::Both, ..options(folder, &output, None) }).unwrap();
        for (name, rhs, formula) in
            [("spd", Rhs::Ones, "b = A·1"), ("spd-random", Rhs::Random, "b random, uniform")]
        {
            let record: Record = load(&path(&output, name)).unwrap();
            assert_eq!((record.rhs, record.runs[0].outcome.as_str()), (rhs, "converged"));
            assert_eq!(record.runs[0].residual, Some(0.0));
            assert!(std::fs::read_to_string(output.join(format!("{name}.md"))).unwrap().contains(formula));
        }
        let last = io::read_vector(folder.join("petsc_outcome.b")).unwrap();
        assert_eq!(last, krylith::gallery::random_vector(9));
    }
}
