//! Many small dense systems, 13,000 of each size: Krylith's kernels beside MKL's Cholesky factorizations, on one thread.
//!
//! A system counts as m³/3 operations. Krylith's kernels also compute the last row of L⁻¹, which is what they are for; MKL's do not. Everybody copies a
//! system to where it is factored, and is timed with that. Larger systems come from a pool of distinct ones, again and again, so that they fit
//! into memory. Before anything is timed MKL's driver compares the last rows of L⁻¹ of all systems in the pool, and fails where they differ by
//! more than 1e-10 (`f64`) or 1e-4 (`f32`) of the largest entry. Contestants take turns in every round; the least seconds count.

use super::Options;
use super::potrf::{self, Number, Pool};
use crate::Failure;
use crate::compare::default_peers;
use crate::folder::{self, Head, digits, table};
use krylith::precond::fsai::phases::{Copies, LARGEST, SYSTEMS, last_row_of_inverse, last_rows_of_inverses};
use serde::Serialize;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Those of the paper's table 3.
const COUNT: usize = 13_000;
const SIZES: [usize; 8] = [16, 32, 48, 64, 96, 128, 192, 256];
const QUICK: (usize, [usize; 3]) = (64, [16, 48, 136]);

/// Rows, and milliseconds on a K80 in `f32` and in `f64` and on a Xeon E5645 with six cores in `f64`: table 3.
const PAPER: [(usize, f64, f64, f64); 7] = [
    (16, 0.84, 1.11, 13.02),
    (32, 1.85, 2.57, 52.04),
    (64, 4.99, 6.55, 217.45),
    (96, 10.28, 18.83, 617.80),
    (128, 18.77, 62.95, 1036.87),
    (192, 70.31, 146.33, 2815.09),
    (256, 136.61, 446.06, 4469.03),
];

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    /// Systems of each size.
    systems: usize,
    /// MKL's; empty if it is absent.
    version: String,
    /// Why there is no MKL.
    absent: Option<String>,
    sizes: Vec<Figures>,
}

/// The least seconds for all systems of one size.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    number: &'static str,
    m: usize,
    /// Distinct systems.
    pool: usize,
    /// Eight systems in lanes.
    lanes: f64,
    /// One after the other, by blocked kernels.
    blocked: Option<f64>,
    potrf: Option<f64>,
    compact: Option<f64>,
    /// The largest difference of a last row of L⁻¹ from MKL's.
    difference: Option<f64>,
}

impl Figures {
    /// Whether `fsai` takes the blocked kernel for this size.
    fn is_blocked(&self) -> bool {
        self.m > LARGEST && self.blocked.is_some()
    }

    /// Seconds of the kernel that `fsai` takes.
    fn own(&self) -> f64 {
        self.blocked.filter(|_| self.is_blocked()).unwrap_or(self.lanes)
    }
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(options.rounds(), &[1])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "fsai-cholesky")?;
    let peers = options.peers.clone().map_or_else(default_peers, Ok)?;
    let temporary = tempfile::tempdir()?;
    let work = options.work.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(work)?;
    let (systems, sizes) = match options.quick {
        true => (QUICK.0, QUICK.1.to_vec()),
        false => (COUNT, SIZES.to_vec()),
    };
    let driver = peers.join("mkl_potrf");
    let absent = (!driver.is_file()).then(|| "`just bench-setup mkl` builds its driver".to_owned());
    let mut study = Study {
        rounds: options.rounds(),
        driver: absent.is_none().then_some(driver),
        file: work.join("systems"),
        record: Record { head, systems, version: String::new(), absent, sizes: Vec::new() },
    };
    for &m in &sizes {
        study.measure::<f64>(m, Some(blocked))?;
        study.measure::<f32>(m, None)?;
        folder::write(&folder, "cholesky", &study.record, &markdown(&study.record))?;
    }
    println!("{}\nwritten to {}", markdown(&study.record), folder.display());
    Ok(())
}

struct Study {
    rounds: usize,
    driver: Option<PathBuf>,
    /// What the driver reads.
    file: PathBuf,
    record: Record,
}

/// Seconds of systems by blocked kernels.
type Blocked<T> = fn(&Pool<T>, usize) -> f64;

impl Study {
    /// All contestants on systems of one size, taking turns.
    fn measure<T: Number>(&mut self, m: usize, blocked: Option<Blocked<T>>) -> Result<(), Failure> {
        let systems = self.record.systems;
        let pool = Pool::<T>::new(m, systems);
        if self.driver.is_some() {
            pool.write(&self.file, systems, &last_rows(&pool))?;
        }
        let mut figures = Figures {
            number: T::NAME,
            m,
            pool: pool.systems(),
            lanes: f64::INFINITY,
            blocked: None,
            potrf: None,
            compact: None,
            difference: None,
        };
        let lower = |least: &mut Option<f64>, seconds: f64| {
            *least = Some(least.map_or(seconds, |least| least.min(seconds)));
        };
        for _ in 0..self.rounds {
            figures.lanes = figures.lanes.min(in_lanes(&pool, systems));
            if let Some(call) = blocked {
                lower(&mut figures.blocked, call(&pool, systems));
            }
            if let Some(driver) = &self.driver {
                let turn = mkl(driver, &self.file, m)?;
                lower(&mut figures.potrf, turn.potrf);
                lower(&mut figures.compact, turn.compact);
                figures.difference = Some(turn.difference);
                self.record.version = turn.version;
            }
        }
        eprintln!("{figures:?}");
        self.record.sizes.push(figures);
        Ok(())
    }
}

/// MKL's turn; other numbers than ours end the study.
fn mkl(driver: &Path, file: &Path, m: usize) -> Result<potrf::Turn, Failure> {
    potrf::turn(driver, file).map_err(|why| format!("MKL, {m} rows: {why}").into())
}

/// The last rows of L⁻¹ of all systems of a pool.
fn last_rows<T: Number>(pool: &Pool<T>) -> Vec<T> {
    let mut rows = Vec::new();
    let mut g = vec![[T::ZERO; SYSTEMS]; pool.m];
    for b in 0..pool.systems() / SYSTEMS {
        last_rows_of_inverses::<T>(pool.m, &mut pool.batch(b).to_vec(), &mut g);
        (0..SYSTEMS).for_each(|lane| rows.extend(g.iter().map(|g| g[lane])));
    }
    rows
}

/// Seconds of so many systems, eight at a time.
fn in_lanes<T: Number>(pool: &Pool<T>, systems: usize) -> f64 {
    let (mut l, mut g) = (pool.batch(0).to_vec(), vec![[T::ZERO; SYSTEMS]; pool.m]);
    let started = Instant::now();
    for b in 0..systems / SYSTEMS {
        l.copy_from_slice(pool.batch(b));
        last_rows_of_inverses::<T>(pool.m, &mut l, &mut g);
        black_box(&mut g);
    }
    started.elapsed().as_secs_f64()
}

/// Seconds of so many systems by blocked kernels, their lower triangles copied column by column.
fn blocked(pool: &Pool<f64>, systems: usize) -> f64 {
    let m = pool.m;
    let (mut panel, mut g, mut copies) = (vec![0.0; m * m], vec![0.0; m], Copies::default());
    let started = Instant::now();
    for s in 0..systems {
        let system = pool.system(s);
        for j in 0..m {
            let column = j * (m + 1)..(j + 1) * m;
            panel[column.clone()].copy_from_slice(&system[column]);
        }
        assert!(last_row_of_inverse(&mut panel, &mut g, &mut copies), "a pivot is not positive");
        black_box(&mut g);
    }
    started.elapsed().as_secs_f64()
}

fn markdown(record: &Record) -> String {
    let mut text = record.head.markdown("Batched Cholesky factorizations");
    text += &format!(
        "\n{} systems of each size, one thread, the least of {} in which contestants take turns. A system counts as m³/3 operations; Krylith's \
         kernels also compute the last row of L⁻¹. Copying a system to where it is factored is timed for everyone. In bold the kernel that `fsai` takes, \
         in `f32` for all sizes the one in lanes; ratios are of that. MKL's potrf factors one system after the other; potrf_compact has them in lanes.\n",
        folder::grouped(record.systems as u64),
        folder::rounds(record.head.rounds)
    );
    text += &match &record.absent {
        Some(why) => format!("\nAbsent: MKL ({why}).\n"),
        None => format!("\nMKL {}. {}", record.version, differences(record)),
    };
    for number in ["f64", "f32"] {
        text += &format!("\n## GFLOP/s in `{number}`\n\n{}", rates(record, number));
        text += &format!("\n## Milliseconds in `{number}`, and the paper's\n\n{}", times(record, number));
    }
    text
}

/// How far apart answers are.
fn differences(record: &Record) -> String {
    let of = |number: &str| {
        let all = record.sizes.iter().filter(|f| f.number == number).filter_map(|f| f.difference);
        all.fold(0.0, f64::max)
    };
    format!(
        "The last rows of L⁻¹ of all systems agree with MKL's to {:.1e} in `f64` and {:.1e} in `f32`, relative to their largest entries.\n",
        of("f64"),
        of("f32")
    )
}

fn rates(record: &Record, number: &str) -> String {
    let columns = [
        "m",
        "distinct systems",
        "Krylith, eight in lanes",
        "Krylith, blocked",
        "MKL potrf",
        "MKL potrf_compact",
        "Krylith / potrf",
        "Krylith / compact",
    ];
    let row = |f: &Figures| {
        let operations = record.systems as f64 * (f.m as f64).powi(3) / 3.0;
        let rate = |seconds: Option<f64>| digits(seconds.map(|s| 1e-9 * operations / s));
        let ratio = |other: Option<f64>| digits(other.map(|other| other / f.own()));
        let marked = |text: String, is_own: bool| if is_own { format!("**{text}**") } else { text };
        vec![
            f.m.to_string(),
            f.pool.to_string(),
            marked(rate(Some(f.lanes)), !f.is_blocked()),
            marked(rate(f.blocked), f.is_blocked()),
            rate(f.potrf),
            rate(f.compact),
            ratio(f.potrf),
            ratio(f.compact),
        ]
    };
    table(&columns, record.sizes.iter().filter(|f| f.number == number).map(row))
}

fn times(record: &Record, number: &str) -> String {
    let is_double = number == "f64";
    let mut columns = vec!["m", "Krylith", "MKL potrf", "MKL potrf_compact", "paper: K80"];
    columns.extend(is_double.then_some("E5645, 6 cores"));
    let row = |f: &Figures| {
        let milli = |seconds: Option<f64>| digits(seconds.map(|s| 1e3 * s));
        let paper = PAPER.iter().find(|p| p.0 == f.m && record.systems == COUNT);
        let mut cells = vec![f.m.to_string(), milli(Some(f.own())), milli(f.potrf), milli(f.compact)];
        cells.push(digits(paper.map(|p| if is_double { p.2 } else { p.1 })));
        cells.extend(is_double.then(|| digits(paper.map(|p| p.3))));
        cells
    };
    table(&columns, record.sizes.iter().filter(|f| f.number == number).map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::head;

    fn study() -> Study {
        let record =
            Record { head: head(), systems: 16, version: String::new(), absent: None, sizes: Vec::new() };
        Study { rounds: 1, driver: None, file: PathBuf::new(), record }
    }

    #[test]
    fn both_kernels_have_seconds_and_the_same_rows() {
        let mut study = study();
        study.measure::<f64>(20, Some(blocked)).unwrap();
        study.measure::<f32>(20, None).unwrap();
        assert!(study.record.sizes.iter().all(|f| f.lanes < 1.0 && f.pool == 16));
        let pool = Pool::<f64>::new(20, 16);
        let rows = last_rows(&pool);
        let (mut g, mut copies) = (vec![0.0; 20], Copies::default());
        for s in 0..16 {
            assert!(last_row_of_inverse(&mut pool.system(s).to_vec(), &mut g, &mut copies));
            assert!(g.iter().zip(&rows[20 * s..]).all(|(a, b)| (a - b).abs() < 1e-14), "{s}");
        }
    }

    #[test]
    fn rates_ratios_and_the_papers_times() {
        let mut record = study().record;
        record.systems = COUNT;
        let (lanes, blocked, potrf, compact) = (0.2, Some(0.1), Some(0.3), Some(0.05));
        let size = Figures {
            number: "f64",
            m: 192,
            pool: 16,
            lanes,
            blocked,
            potrf,
            compact,
            difference: Some(1e-15),
        };
        record.sizes = vec![size.clone(), Figures { number: "f32", m: 48, blocked: None, ..size }];
        let text = markdown(&record);
        // 13,000 · 192³ / 3 = 30.67 billion.
        assert!(text.contains("| 192 | 16 | 153 | **307** | 102 | 613 | 3.00 | 0.50 |"), "{text}");
        assert!(text.contains("| 192 | 100 | 300 | 50.0 | 146 | 2815 |"), "{text}");
        assert!(
            text.contains("| 48 | 16 | **2.40** | – |") && text.contains("| 48 | 200 | 300 | 50.0 | – |"),
            "{text}"
        );
        assert!(text.contains("agree with MKL's to 1.0e-15 in `f64`"), "{text}");
    }
}
