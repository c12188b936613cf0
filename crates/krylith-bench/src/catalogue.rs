//! Every matrix of a catalogue: `krylith info` must find the sizes that the catalogue states, and each format must give back
//! what was written into it.
//!
//! The catalogue is a table separated by tabs with the columns `file`, `n` and `nnz` (of the full matrix).

use crate::Failure;
use crate::run::{Kept, Nothing, Output, Run};
use clap::Args;
use krylith::{Csr, io};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// A matrix of the catalogue, as it was found.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    file: String,
    /// Entries that the catalogue states.
    stated: u64,
    verdict: Verdict,
    /// Formats that do not give back the same bits.
    broken_formats: Vec<String>,
    /// As the command prints it.
    info: Value,
}

/// How sizes compare with the catalogue's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Equal,
    WithoutZeros,
    Different,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::WithoutZeros => "equal without explicit zeros",
            Verdict::Different => "DIFFERENT",
        }
    }
}

impl Row {
    fn is_wrong(&self) -> bool {
        self.verdict == Verdict::Different || !self.broken_formats.is_empty()
    }
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let krylith = match &options.krylith {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("krylith"),
    };
    let mut run = Run::<Row>::begin(Output::file(options.output.as_deref()), Nothing {}, 1, &[])?;
    let scratch = tempfile::tempdir()?;
    for entry in &read(&options.folder)? {
        if run.has(|row| row.file == entry.file) {
            continue;
        }
        let path = options.folder.join(&entry.file);
        let info = info(&krylith, &path)?;
        let broken_formats = round_trip(&io::read_matrix(&path)?, scratch.path())?;
        let (file, verdict) = (entry.file.clone(), verdict(entry, &info));
        run.add([Row { file, stated: entry.nnz, verdict, broken_formats, info }])?;
    }
    run.end()?;
    let wrong = run.rows.iter().filter(|row| row.is_wrong()).count();
    if wrong > 0 { Err(format!("{wrong} matrices are wrong").into()) } else { Ok(()) }
}

fn verdict(entry: &Entry, info: &Value) -> Verdict {
    let number = |name: &str| info["matrix"][name].as_u64();
    let zeros = number("explicit_zeros").unwrap_or(0);
    match (number("rows"), number("nnz")) {
        (Some(n), Some(nnz)) if n == entry.n && nnz == entry.nnz => Verdict::Equal,
        (Some(n), Some(nnz)) if n == entry.n && nnz - zeros == entry.nnz => Verdict::WithoutZeros,
        _ => Verdict::Different,
    }
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let described = |row: &Row| {
            let Row { file, stated, verdict, broken_formats, info } = row;
            let matrix = &info["matrix"];
            format!(
                "{file}: n {} nnz {} (catalogue {stated}), {} explicit zeros: {} {broken_formats:?}\n",
                matrix["rows"],
                matrix["nnz"],
                matrix["explicit_zeros"],
                verdict.name()
            )
        };
        let unequal = run.rows.iter().filter(|row| row.is_wrong() || row.verdict != Verdict::Equal);
        let count = |is: &dyn Fn(&Row) -> bool| run.rows.iter().filter(|row| is(row)).count();
        format!(
            "{}{} matrices: sizes equal {}, equal without explicit zeros {}; through {} formats and back unchanged {}",
            unequal.map(described).collect::<String>(),
            run.rows.len(),
            count(&|row| row.verdict == Verdict::Equal),
            count(&|row| row.verdict == Verdict::WithoutZeros),
            ENDINGS.len(),
            count(&|row| row.broken_formats.is_empty()),
        )
    }
}

/// The catalogue of a folder.
pub fn read(folder: &Path) -> Result<Vec<Entry>, Failure> {
    parse(&std::fs::read_to_string(folder.join("CATALOGUE.tsv"))?)
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
fn round_trip(a: &Csr<f64>, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut broken = Vec::new();
    for ending in ENDINGS {
        let path = folder.join(format!("a.{ending}"));
        io::write_matrix(&path, a)?;
        let b = io::read_matrix(&path)?;
        let same_bits = a.values().iter().zip(b.values()).all(|(a, b)| a.to_bits() == b.to_bits());
        if a.pattern() != b.pattern() || !same_bits {
            broken.push(ending.to_owned());
        }
    }
    Ok(broken)
}
