//! The figures of a machine: what a few operations take, on threads or on a device.
//!
//! `krylith-bench calibrate` and `krylith devices --bench --machine FILE` measure them (`calibrate`); a plan names the machine that its costs are of.
//! A device keeps every matrix in its own way, so there the figures of all storages are those of [`Machine::rows`].

use crate::error::SolveError;
use crate::options::StorageKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Nanoseconds per entry, in one storage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Of A in a product.
    pub product: f64,
    /// Of a factor in a sweep; an entry of a symmetric factor is swept twice.
    pub sweep: f64,
    /// The same of a factor in `f32`.
    pub sweep_f32: f64,
    /// Of A when it is analyzed and copied into this storage.
    pub copy: f64,
    /// Of a factor when it is analyzed and made.
    pub set_up: f64,
    /// Of a wavefront in a sweep, besides its entries: threads wait for each other; 0 on one thread.
    #[serde(default)]
    pub wavefront: f64,
}

/// The figures of a machine: nanoseconds on [`threads`](Self::threads) threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// Its name, for plans.
    pub name: Cow<'static, str>,
    /// The name of the device that it was measured on; none for threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Cow<'static, str>>,
    /// Threads that it was measured with.
    #[serde(default = "one_thread")]
    pub threads: usize,
    /// On structured grids.
    pub grid: Rates,
    /// A product per entry on a grid with constant coefficients, of which one number per offset is stored.
    pub constant_product: f64,
    /// A sweep per entry of a factor with the off-diagonals of such a matrix.
    pub constant_sweep: f64,
    /// A product per entry in slices of which one is stored for many.
    #[serde(default = "reference_repeated")]
    pub repeated: f64,
    /// In dense blocks.
    pub blocks: Rates,
    /// In slices of eight rows.
    pub slices: Rates,
    /// By rows.
    pub rows: Rates,
    /// A number of a vector that is read or written.
    pub vector: f64,
    /// An entry of A in the analysis of a complete factor.
    pub analysis: f64,
    /// The same in the matching and scaling of one that is not Cholesky's.
    #[serde(default = "reference_matching")]
    pub matching: f64,
    /// A row in the same.
    pub analysis_row: f64,
    /// An addition or multiplication on dense fronts.
    pub flop: f64,
    /// A number of a complete factor that is made.
    pub factor: f64,
    /// A number of a complete factor in a solve, which reads it twice. Threads of the host do that for a device.
    #[serde(default = "reference_complete_solve")]
    pub complete_solve: f64,
    /// An entry of A when facts are collected.
    #[serde(default = "reference_facts")]
    pub facts: f64,
    /// An entry of an incomplete factor off grids when it is made, for each entry of an average row: rows that are eliminated are that long.
    #[serde(default = "reference_eliminate")]
    pub eliminate: f64,
    /// An entry of the pattern of an approximate inverse when it is found and its system solved, with one entry per row.
    #[serde(default = "reference_inverse")]
    pub inverse: f64,
    /// The same where the pattern grows, besides, for each entry of an average row of A.
    #[serde(default = "reference_grow")]
    pub grow: f64,
    /// A launch on a device, besides its work; 0 on threads.
    #[serde(default)]
    pub launch: f64,
    /// Until the host has a sum of a device; 0 on threads.
    #[serde(default)]
    pub reduction: f64,
}

fn one_thread() -> usize {
    1
}

fn reference_complete_solve() -> f64 {
    REFERENCE.complete_solve
}

fn reference_inverse() -> f64 {
    REFERENCE.inverse
}

fn reference_grow() -> f64 {
    REFERENCE.grow
}

fn reference_repeated() -> f64 {
    REFERENCE.repeated
}

fn reference_matching() -> f64 {
    REFERENCE.matching
}

fn reference_facts() -> f64 {
    REFERENCE.facts
}

fn reference_eliminate() -> f64 {
    REFERENCE.eliminate
}

/// A server processor with AVX-512, as `krylith-bench calibrate` has measured it; blocks are in `f64` only. `analysis`, `matching`, `facts` and
/// `eliminate` were set by hand so that the predicted seconds of set-ups agree with those on the matrices of a catalogue; `repeated` is what four problems take with this `vector`, 0.23 to 0.36.
pub const REFERENCE: Machine = Machine {
    name: Cow::Borrowed("reference"),
    device: None,
    threads: 1,
    grid: Rates { product: 0.8, sweep: 1.1, sweep_f32: 0.69, copy: 12.0, set_up: 6.2, wavefront: 0.0 },
    constant_product: 0.54,
    constant_sweep: 0.91,
    repeated: 0.3,
    blocks: Rates { product: 0.45, sweep: 1.3, sweep_f32: 1.3, copy: 0.57, set_up: 22.0, wavefront: 0.0 },
    slices: Rates { product: 0.72, sweep: 1.7, sweep_f32: 1.2, copy: 23.0, set_up: 16.0, wavefront: 0.0 },
    rows: Rates { product: 1.4, sweep: 2.7, sweep_f32: 2.1, copy: 20.0, set_up: 13.0, wavefront: 0.0 },
    vector: 0.071,
    analysis: 100.0,
    matching: 130.0,
    analysis_row: 0.0,
    flop: 0.049,
    factor: 19.0,
    complete_solve: 1.44,
    facts: 9.0,
    eliminate: 0.8,
    inverse: 80.0,
    grow: 20.0,
    launch: 0.0,
    reduction: 0.0,
};

/// The figures of a storage under its name, each with whether it may be 0.
macro_rules! named_rates {
    ($name:literal, $rates:expr) => {
        [
            (concat!($name, ".product"), $rates.product, false),
            (concat!($name, ".sweep"), $rates.sweep, false),
            (concat!($name, ".sweep_f32"), $rates.sweep_f32, false),
            (concat!($name, ".copy"), $rates.copy, false),
            (concat!($name, ".set_up"), $rates.set_up, false),
            (concat!($name, ".wavefront"), $rates.wavefront, true),
        ]
    };
}

/// More nanoseconds per entry than any machine takes: a millisecond.
const MOST_PER_ENTRY: f64 = 1e6;
/// Fewer than any machine takes.
const LEAST: f64 = 1e-9;
const MOST_THREADS: usize = 1_000_000;
/// The most for a wavefront, a launch or a sum: a second.
const MOST_PER_WAIT: f64 = 1e9;

impl Machine {
    /// An error that names the first figure with which no cost can be predicted. Every one is a number above 0 that some machine may have; `wavefront`, `launch`
    /// and `reduction` may be 0, and so may `analysis_row`, `matching`, `eliminate` and `grow`, which are added to another figure. A solver does not plan with any other machine.
    pub fn validate(&self) -> Result<(), SolveError> {
        let storages = [
            named_rates!("grid", self.grid),
            named_rates!("blocks", self.blocks),
            named_rates!("slices", self.slices),
            named_rates!("rows", self.rows),
        ];
        let others = [
            ("constant_product", self.constant_product, false),
            ("constant_sweep", self.constant_sweep, false),
            ("repeated", self.repeated, false),
            ("vector", self.vector, false),
            ("analysis", self.analysis, false),
            ("matching", self.matching, true),
            ("analysis_row", self.analysis_row, true),
            ("flop", self.flop, false),
            ("factor", self.factor, false),
            ("complete_solve", self.complete_solve, false),
            ("facts", self.facts, false),
            ("eliminate", self.eliminate, true),
            ("inverse", self.inverse, false),
            ("grow", self.grow, true),
            ("launch", self.launch, true),
            ("reduction", self.reduction, true),
        ];
        if !(1..=MOST_THREADS).contains(&self.threads) {
            let needed = format!("a machine has from 1 to {MOST_THREADS} threads");
            return Err(SolveError::Option { name: "threads", value: self.threads.to_string(), needed });
        }
        storages.into_iter().flatten().chain(others).try_for_each(|(name, figure, may_be_zero)| {
            let waits = ["launch", "reduction"].contains(&name) || name.ends_with(".wavefront");
            let most = if waits { MOST_PER_WAIT } else { MOST_PER_ENTRY };
            let needed = match figure {
                _ if !(figure.is_finite() && (figure > 0.0 || may_be_zero && figure == 0.0)) => {
                    format!(
                        "a machine needs a finite number {} there",
                        if may_be_zero { "from 0 on" } else { "above 0" }
                    )
                }
                _ if figure > most => format!("no machine takes more than {most:e} there"),
                _ if figure > 0.0 && figure < LEAST => format!("no machine takes less than {LEAST:e} there"),
                _ => return Ok(()),
            };
            Err(SolveError::Option { name, value: figure.to_string(), needed })
        })
    }

    /// The figures of a storage.
    pub fn rates(&self, storage: StorageKind) -> &Rates {
        match storage {
            StorageKind::Grid => &self.grid,
            StorageKind::Blocks => &self.blocks,
            StorageKind::Slices => &self.slices,
            StorageKind::Rows => &self.rows,
        }
    }
}

/// The machines of a file: of the threads of a computer and of each of its devices, or a single one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Machines {
    /// `{"machines": [...]}`, as `krylith devices --bench --machine FILE` writes it.
    Several {
        /// At most one for threads and one for each device.
        machines: Vec<Machine>,
    },
    /// As `krylith-bench calibrate` writes it.
    One(Box<Machine>),
}

impl Machines {
    /// The figures of the device of this name, or of threads. A single machine that names no device may be a model of one.
    pub fn machine_for(self, device: Option<&str>) -> Option<Machine> {
        match self {
            Machines::Several { machines } => {
                machines.into_iter().find(|machine| machine.device.as_deref() == device)
            }
            Machines::One(machine) => {
                let suits = machine.device.is_none() || machine.device.as_deref() == device;
                suits.then_some(*machine)
            }
        }
    }
}
