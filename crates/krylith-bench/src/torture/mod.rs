//! A campaign of hostile cases against `Solver`, `Prepared` and `Csr`: nothing may panic, hang, differ between numbers of threads,
//! or be called converged where it is not.
//!
//! A case is made from the seed and its number alone, so that `--seed S --case K` runs one again and prints everything about it.
//! Every failure is printed as such a command. Matrices, right-hand sides, guesses and options are drawn over the axes in
//! `table.rs`, and the report says which pairs of their values came up. Answers are judged in exact arithmetic (`exact.rs`).

mod axes;
mod check;
mod coverage;
mod entries;
mod exact;
mod families;
mod grids;
mod numbers;
mod own;
mod rational;
mod replay;
mod rng;
mod run;
mod singular;
mod system;
mod table;
mod tally;
mod watchdog;
mod wide;
mod words;

use crate::Failure;
use axes::Filter;
use clap::Args;
use coverage::Coverage;
use run::Made;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use system::{Sources, System, systems_of};
use tally::{Attacked, Tally};
use watchdog::Watchdog;

#[derive(Args)]
pub struct Options {
    /// Minutes to run; one if neither minutes nor cases are given
    #[arg(long)]
    minutes: Option<f64>,
    /// Cases to run
    #[arg(long)]
    cases: Option<u64>,
    /// What all cases are made from
    #[arg(long, default_value_t = 20_240_601)]
    seed: u64,
    /// The number of the first case
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run only cases with one of these values of an axis, as AXIS=VALUE,VALUE; may be repeated
    #[arg(long)]
    only: Vec<Filter>,
    /// Run this case alone and print everything about it
    #[arg(long, conflicts_with_all = ["minutes", "cases", "first", "only"])]
    case: Option<u64>,
    /// Of a case with many systems, run this one alone
    #[arg(long, requires = "case")]
    system: Option<usize>,
    /// With --case: write A, b and the guess into this folder
    #[arg(long, requires = "case")]
    save: Option<PathBuf>,
    /// A folder with CATALOGUE.tsv, whose matrices of at most 2000 rows are sampled too
    #[arg(long)]
    catalogue: Option<PathBuf>,
    /// Seconds that one call of the library may compute, or sleep; a factor of 2149 rows that fills completely takes twenty
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Keep counts and failures here as JSON
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Failures of one kind that are printed; all are counted.
const PRINTED: usize = 20;

pub fn run(options: &Options) -> Result<(), Failure> {
    let sources = Sources::new(options.catalogue.as_deref())?;
    run::silence_panics();
    let watchdog = Watchdog::start(Duration::from_secs(options.limit), |command| {
        println!("FAILED hang: a call took longer than the limit\n    {command}");
        for (name, state, ticks) in watchdog::threads() {
            println!("    thread {name}: {state}, {ticks} ticks of processor time");
        }
        std::process::exit(3);
    });
    let mut campaign = Campaign {
        options,
        sources,
        watchdog,
        coverage: None,
        tally: Tally::new(PRINTED),
        started: Instant::now(),
    };
    campaign.run()?;
    let _ = std::panic::take_hook();
    campaign.report()
}

struct Campaign<'a> {
    options: &'a Options,
    sources: Sources,
    watchdog: Watchdog,
    coverage: Option<Coverage>,
    tally: Tally,
    started: Instant,
}

impl Campaign<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        if let Some(case) = self.options.case {
            return self.replay(case);
        }
        self.coverage = Some(Coverage::new(self.sources.available));
        let last = self.options.cases.map_or(u64::MAX, |cases| self.options.first.saturating_add(cases));
        let minutes = match (self.options.minutes, self.options.cases) {
            (Some(minutes), _) => minutes,
            (None, Some(_)) => f64::INFINITY,
            (None, None) => 1.0,
        };
        let seconds = 60.0 * minutes;
        let mut next_line = 60.0;
        for case in self.options.first..last {
            for number in 0..systems_of(self.options.seed, case) {
                let elapsed = self.started.elapsed().as_secs_f64();
                if elapsed >= seconds {
                    return Ok(());
                }
                if elapsed >= next_line {
                    eprintln!("{:.0} min: {}", elapsed / 60.0, self.tally.line());
                    next_line += 60.0;
                }
                let choice = System::choose(self.options.seed, case, number, &self.sources);
                if !self.options.only.iter().all(|filter| filter.allows(&choice)) {
                    continue;
                }
                let system = System::new(self.options.seed, case, number, &self.sources)?;
                self.attack(&system);
            }
            self.tally.cases += 1;
        }
        Ok(())
    }

    /// Runs one system on each of its numbers of threads and checks what comes back.
    fn attack(&mut self, system: &System) -> Vec<(usize, Vec<Made>)> {
        let command = self.command(system);
        self.watchdog.watch(command.clone());
        let began = Instant::now();
        let threads = &system.options.threads;
        let runs: Vec<_> = threads.iter().map(|&t| (t, run::run(system, t, &self.watchdog))).collect();
        let findings = check::check(system, &runs);
        if let Some(coverage) = &mut self.coverage {
            coverage.record(&system.choice);
        }
        let seconds = began.elapsed().as_secs_f64();
        self.tally.record(&Attacked { system, runs: &runs, command: &command, seconds }, findings);
        runs
    }

    /// How to run a system again.
    fn command(&self, system: &System) -> String {
        let mut command = format!("krylith-bench torture --seed {} --case {}", system.seed, system.case);
        if let Some(number) = system.system {
            command += &format!(" --system {number}");
        }
        if let Some(folder) = &self.options.catalogue {
            command += &format!(" --catalogue {}", folder.display());
        }
        command
    }

    fn replay(&mut self, case: u64) -> Result<(), Failure> {
        let count = systems_of(self.options.seed, case);
        let numbers = match self.options.system {
            Some(number) if number >= count => {
                return Err(format!("case {case} has {count} systems").into());
            }
            Some(number) => number..number + 1,
            None => 0..count,
        };
        let whole = numbers.len() == 1;
        for number in numbers {
            let system = System::new(self.options.seed, case, number, &self.sources)?;
            if whole {
                replay::print_system(&system);
                if let Some(folder) = &self.options.save {
                    replay::save(&system, folder)?;
                }
            }
            let runs = self.attack(&system);
            if whole {
                replay::print_runs(&system, &runs);
            }
        }
        self.tally.cases += 1;
        Ok(())
    }

    fn report(&self) -> Result<(), Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        let counts = self.coverage.as_ref().map(Coverage::counts);
        println!("seed {}, {:.1} min, {}", self.options.seed, seconds / 60.0, self.tally.line());
        println!("{:.0} solves a second", self.tally.solves as f64 / seconds);
        match self.sources.files() {
            0 => println!("no catalogue was given: that family is left out"),
            files => println!("catalogue: {files} matrices"),
        }
        self.tally.print();
        if let Some(counts) = &counts {
            counts.print(40);
        }
        if let Some(path) = &self.options.output {
            let mut json = self.tally.json();
            json["seed"] = self.options.seed.into();
            json["seconds"] = seconds.into();
            json["solves_per_second"] = (self.tally.solves as f64 / seconds).into();
            json["catalogue_matrices"] = self.sources.files().into();
            json["pairs"] = counts.map(|counts| counts.json()).unwrap_or_default();
            std::fs::write(path, format!("{json:#}\n"))?;
        }
        match self.tally.failures() {
            0 => Ok(()),
            failures => Err(format!("{failures} checks failed").into()),
        }
    }
}
