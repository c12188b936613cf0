//! What is kept of a run of the study, and what follows from it: rates, bounds, who is fastest.
//!
//! The bound of an operation is the longer of two times: its bytes by the triad's rate at about that footprint, and its
//! operations by the rate of fused arithmetic, both of the same rounds and number of threads. The triad moves 32 bytes where 24
//! are counted, so an operation that mostly reads can be faster than its bound by up to a third.

use super::case::{Case, Operation};
use super::contestants::{self, BLOCK_JACOBI};
use crate::compare::record::{Absent, Entry, Mode};
use serde::{Deserialize, Serialize};

/// The path that is compared to all others.
pub const STRUCTURED: &str = "structured";

/// The path of compressed rows.
const ROWS: &str = "rows";

/// How far the answers of a contestant are from those of the first one, relative to the largest entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub problem: String,
    pub threads: usize,
    pub contestant: String,
    pub product: f64,
    /// `None` for another preconditioner.
    pub apply: Option<f64>,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub date: String,
    pub command: String,
    pub machine: Vec<String>,
    pub repetitions: usize,
    /// Own paths that the picture of the parts shows, in this order.
    pub breakdown: Vec<String>,
    pub cases: Vec<Case>,
    pub absent: Vec<Absent>,
    pub checks: Vec<Check>,
    pub entries: Vec<Entry>,
}

/// The least time that an operation can take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    pub seconds: f64,
    pub by_memory: bool,
}

impl Record {
    /// Numbers of threads, in order.
    pub fn threads(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.entries.iter().map(|e| e.threads).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Contestants in the order of their list, those of a peer that are no longer in it behind its others; whatever their
    /// preconditioner is.
    pub fn series(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for entry in self.entries.iter().filter(|e| e.mode == Mode::Kernels) {
            if !all.contains(&plain(entry)) {
                all.push(plain(entry));
            }
        }
        let list = contestants::all();
        let place = |name: &String| {
            let peer = name.split(' ').next();
            let of_peer = list.iter().position(|c| Some(c.peer) == peer);
            let own = list.iter().position(|c| *name == format!("{} {}", c.peer, c.config));
            [of_peer, own].map(|place| place.unwrap_or(usize::MAX))
        };
        all.sort_by_key(place);
        all
    }

    fn on<'a>(
        &'a self,
        mode: Mode,
        case: &Case,
        threads: usize,
    ) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let problem = case.to_string();
        self.entries.iter().filter(move |e| e.mode == mode && e.problem == problem && e.threads == threads)
    }

    /// The entry of a contestant, named as in [`series`](Self::series).
    pub fn entry(&self, case: &Case, threads: usize, name: &str) -> Option<&Entry> {
        self.on(Mode::Kernels, case, threads).find(|e| plain(e) == name)
    }

    /// Seconds of an operation, the least of all repetitions.
    pub fn seconds(&self, case: &Case, threads: usize, name: &str, operation: Operation) -> Option<f64> {
        Some(self.entry(case, threads, name)?.kernel(operation.key())?.least)
    }

    /// Bytes a second of the triad.
    pub fn triad(&self, case: &Case, threads: usize) -> Option<f64> {
        Some(1.0 / self.on(Mode::Triad, case, threads).next()?.kernel("seconds_a_byte")?.least)
    }

    /// Operations a second: `fused` or `apart`.
    pub fn peak(&self, case: &Case, threads: usize, how: &str) -> Option<f64> {
        Some(1.0 / self.on(Mode::Peak, case, threads).next()?.kernel(how)?.least)
    }

    /// The least time of an operation.
    pub fn bound(&self, case: &Case, threads: usize, operation: Operation) -> Option<Bound> {
        let memory = case.bytes(operation) as f64 / self.triad(case, threads)?;
        let peak = self.peak(case, threads, "fused").or_else(|| self.peak(case, threads, "apart"));
        let arithmetic = peak.map_or(0.0, |peak| case.flops(operation) as f64 / peak);
        Some(Bound { seconds: memory.max(arithmetic), by_memory: memory >= arithmetic })
    }

    /// The fastest of these contestants, structured paths and other preconditioners left out.
    pub fn best_of(
        &self,
        others: Others,
        case: &Case,
        threads: usize,
        operation: Operation,
    ) -> Option<(String, f64)> {
        let others = self.on(Mode::Kernels, case, threads).filter(|e| {
            let same = operation == Operation::Product || !e.config.ends_with(BLOCK_JACOBI);
            let own = e.peer == "krylith";
            let asked = others == Others::All || !own || e.config == ROWS;
            same && asked && !(own && e.config.starts_with(STRUCTURED))
        });
        let timed = others.filter_map(|e| Some((plain(e), e.kernel(operation.key())?.least)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The time of the fastest of them by that of the structured path.
    pub fn speedup(&self, others: Others, case: &Case, threads: usize, operation: Operation) -> Option<f64> {
        let own = self.seconds(case, threads, &format!("krylith {STRUCTURED}"), operation)?;
        Some(self.best_of(others, case, threads, operation)?.1 / own)
    }
}

/// Whom the structured path is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Peers, and Krylith's compressed rows.
    General,
    /// These, and Krylith's slices and blocks.
    All,
}

/// `petsc aij`, whatever its preconditioner is.
fn plain(entry: &Entry) -> String {
    let title = entry.title();
    title.strip_suffix(BLOCK_JACOBI).unwrap_or(&title).to_owned()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::compare::record::Line;

    fn entry(mode: Mode, threads: usize, peer: &str, config: &str, figures: &[(&str, f64)]) -> Entry {
        let kernels = figures.iter().map(|&(name, s)| (name.to_owned(), Some(s))).collect();
        Entry {
            mode,
            problem: "Star-7P-2".into(),
            threads,
            peer: peer.into(),
            config: config.into(),
            runs: vec![Line { peer: peer.into(), version: "1.2".into(), kernels, ..Line::default() }],
            failure: None,
        }
    }

    /// On Star-7P-2 with two points an axis: 128 entries, 16 rows. Triad 1 byte a ns, peak 1 operation a ns.
    pub fn record() -> Record {
        let kernels = |threads, peer, config, s: [f64; 3]| {
            entry(Mode::Kernels, threads, peer, config, &[("spmv", s[0]), ("apply", s[1]), ("factor", s[2])])
        };
        let mut entries = Vec::new();
        for threads in [1, 2] {
            entries.push(entry(Mode::Triad, threads, "triad", "1 MB", &[("seconds_a_byte", 1e-9)]));
            entries.push(entry(Mode::Peak, threads, "peak", "AVX2", &[("fused", 1e-9), ("apart", 2e-9)]));
            entries.push(kernels(threads, "krylith", "rows", [3e-6, 4e-6, 9e-6]));
            entries.push(kernels(threads, "krylith", "structured", [2e-6, 2e-6, 3e-6]));
            entries.push(kernels(threads, "krylith", "structured-plain", [2e-7, 2e-7, 3e-7]));
        }
        entries.push(kernels(1, "petsc", "baij", [4e-6, 5e-6, 6e-6]));
        entries.push(kernels(2, "petsc", "baij (block Jacobi)", [2.5e-6, 1e-6, 1e-6]));
        let mut failed = entry(Mode::Kernels, 1, "mkl", "bsr", &[]);
        failed.failure = Some("exceeded 300 s".into());
        entries.push(failed);
        Record {
            date: "2026-01-31".into(),
            command: "krylith-bench structured".into(),
            machine: vec!["cores: 2".into()],
            repetitions: 1,
            breakdown: vec!["structured-plain".into(), "structured".into()],
            cases: vec!["star-7p:2:2".parse().unwrap()],
            absent: Vec::new(),
            checks: vec![Check {
                problem: "Star-7P-2".into(),
                threads: 1,
                contestant: "petsc baij".into(),
                product: 1e-16,
                apply: Some(3e-16),
            }],
            entries,
        }
    }

    #[test]
    fn the_bound_is_the_longer_time() {
        let record = record();
        let case = &record.cases[0];
        assert_eq!((case.nnz(), case.rows()), (128, 16));
        let bound = |operation| record.bound(case, 1, operation).unwrap();
        // 8 · 128 + 16 · 16 bytes against 256 operations; 16 · 128 bytes against those of 12 lower blocks of 8, 12 updates
        // of 16, 12 upper blocks of 4 and 8 diagonal blocks of 3: 96 + 192 + 48 + 24.
        assert_eq!(case.flops(Operation::Factor), 360);
        assert!(
            (bound(Operation::Product).seconds - 1280e-9).abs() < 1e-15
                && bound(Operation::Product).by_memory
        );
        assert!((bound(Operation::Factor).seconds - 2048e-9).abs() < 1e-15);
    }

    #[test]
    fn another_preconditioner_is_compared_in_products_only() {
        let record = record();
        let case = &record.cases[0];
        let best = |threads, operation| record.best_of(Others::All, case, threads, operation).unwrap().0;
        assert_eq!(best(1, Operation::Factor), "petsc baij");
        assert_eq!(best(2, Operation::Product), "petsc baij");
        assert_eq!(best(2, Operation::Factor), "krylith rows");
        assert!((record.speedup(Others::All, case, 1, Operation::Factor).unwrap() - 2.0).abs() < 1e-12);
        assert!((record.speedup(Others::All, case, 2, Operation::Apply).unwrap() - 2.0).abs() < 1e-12);
    }

    /// Slices are faster than all others here, and no general format.
    #[test]
    fn general_formats_are_peers_and_rows() {
        let mut record = record();
        record.entries.push(entry(Mode::Kernels, 1, "krylith", "slices", &[("factor", 1e-9)]));
        let best = |others| record.best_of(others, &record.cases[0], 1, Operation::Factor).unwrap().0;
        assert_eq!(
            (best(Others::All).as_str(), best(Others::General).as_str()),
            ("krylith slices", "petsc baij")
        );
    }

    #[test]
    fn series_have_one_name_on_any_number_of_threads() {
        let expected =
            ["krylith rows", "krylith structured", "krylith structured-plain", "mkl bsr", "petsc baij"];
        assert_eq!(record().series(), expected);
        assert_eq!(record().threads(), [1, 2]);
    }
}
