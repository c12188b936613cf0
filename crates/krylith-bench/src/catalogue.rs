//! Every matrix of a catalogue: `krylith info` must find the sizes that the catalogue states, and each format must give back
//! what was written into it.
//!
//! The catalogue is a table separated by tabs with the columns `file`, `n` and `nnz` (of the full matrix).

use crate::Failure;
use clap::Args;
use krylith::{Csr, io};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// The krylith command; the one beside this program if not given
    #[arg(long)]
    krylith: Option<PathBuf>,
    /// Keep what was found here
    #[arg(long)]
    output: Option<PathBuf>,
}

const ENDINGS: [&str; 6] = ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npz", "petsc"];

/// A line of a catalogue.
pub struct Entry {
    pub file: String,
    pub n: u64,
    pub nnz: u64,
    /// What it comes from; empty if the catalogue does not say.
    pub kind: String,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let krylith = match &options.krylith {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("krylith"),
    };
    let entries = parse(&std::fs::read_to_string(options.folder.join("CATALOGUE.tsv"))?)?;
    let scratch = tempfile::tempdir()?;
    let (mut results, mut wrong) = (Vec::new(), 0);
    let mut equal = [0usize; 3];
    for entry in &entries {
        let path = options.folder.join(&entry.file);
        let info = info(&krylith, &path)?;
        let (rows, nnz, zeros) =
            (&info["matrix"]["rows"], &info["matrix"]["nnz"], &info["matrix"]["explicit_zeros"]);
        let zeros = zeros.as_u64().unwrap_or(0);
        let verdict = match (rows.as_u64(), nnz.as_u64()) {
            (Some(r), Some(k)) if r == entry.n && k == entry.nnz => "equal",
            (Some(r), Some(k)) if r == entry.n && k - zeros == entry.nnz => "equal without explicit zeros",
            _ => "DIFFERENT",
        };
        let matrix = io::read_matrix(&path)?;
        let broken = round_trip(&matrix, scratch.path())?;
        wrong += usize::from(verdict == "DIFFERENT" || !broken.is_empty());
        equal[0] += usize::from(verdict == "equal");
        equal[1] += usize::from(verdict == "equal without explicit zeros");
        equal[2] += usize::from(broken.is_empty());
        if verdict != "equal" || !broken.is_empty() {
            println!(
                "{}: n {} nnz {} (catalogue {}), {zeros} explicit zeros: {verdict} {broken:?}",
                entry.file, rows, nnz, entry.nnz
            );
        }
        results
            .push(json!({ "file": entry.file, "verdict": verdict, "broken_formats": broken, "info": info }));
    }
    println!(
        "{} matrices: sizes equal {}, equal without explicit zeros {}; through {} formats and back unchanged {}",
        entries.len(),
        equal[0],
        equal[1],
        ENDINGS.len(),
        equal[2],
    );
    if let Some(path) = &options.output {
        crate::record::save(path, &results)?;
    }
    if wrong > 0 { Err(format!("{wrong} matrices are wrong").into()) } else { Ok(()) }
}

/// The lines of a catalogue.
pub fn parse(table: &str) -> Result<Vec<Entry>, Failure> {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| names.iter().position(|n| *n == name).ok_or(format!("no column `{name}`"));
    let (file, n, nnz) = (column("file")?, column("n")?, column("nnz")?);
    let kind = column("kind").ok();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let field = |k: usize| fields.get(k).copied().ok_or("a line is too short");
            Ok(Entry {
                file: field(file)?.into(),
                n: field(n)?.parse()?,
                nnz: field(nnz)?.parse()?,
                kind: kind.map_or(Ok(""), field)?.into(),
            })
        })
        .collect()
}

fn info(krylith: &Path, path: &Path) -> Result<Value, Failure> {
    let output = Command::new(krylith).arg("info").arg(path).args(["--json", "-"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The formats that do not give back the same bits.
fn round_trip(a: &Csr<f64>, folder: &Path) -> Result<Vec<&'static str>, Failure> {
    let mut broken = Vec::new();
    for ending in ENDINGS {
        let path = folder.join(format!("a.{ending}"));
        io::write_matrix(&path, a)?;
        let b = io::read_matrix(&path)?;
        let same_bits = a.values().iter().zip(b.values()).all(|(a, b)| a.to_bits() == b.to_bits());
        if a.pattern() != b.pattern() || !same_bits {
            broken.push(ending);
        }
    }
    Ok(broken)
}
