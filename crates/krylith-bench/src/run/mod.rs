//! The frame of every study that keeps what it finds.
//!
//! A study says what its rows are and what is made of them ([`Kept`]), begins a [`Run`] and adds rows to it. The record and the text
//! are written with every addition. A run that was ended is taken up where it stopped: rows that are there ([`Run::has`]) are not
//! measured again.

pub mod bars;
mod head;
pub mod machine;
pub mod picture;
pub mod record;
pub mod table;

pub use head::Head;

use crate::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A row of a study, and what is made of all rows of a run.
pub trait Kept: Serialize + DeserializeOwned {
    /// What holds for all rows: a structure whose fields stand beside the rows in the record, or [`Nothing`].
    type Facts: Serialize + DeserializeOwned;

    /// Title and tables, in Markdown.
    fn text(run: &Run<Self>) -> String;

    /// Draws the pictures of a run into a folder.
    fn pictures(_run: &Run<Self>, _folder: &Path) -> Result<Vec<Drawn>, Failure> {
        Ok(Vec::new())
    }

    /// A record of an older version, in today's form.
    fn renewed(record: Value) -> Value {
        record
    }
}

/// No facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Nothing {}

/// A picture's file, and what it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    pub file: String,
    pub title: String,
}

/// Where a run is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Output {
    /// It is printed only.
    #[default]
    Nowhere,
    /// The record is this file.
    File(PathBuf),
    /// The record is `NAME.json.zst` in this folder, beside README.md and the pictures.
    Folder { folder: PathBuf, name: &'static str },
}

impl Output {
    /// The file that was asked for, if any was.
    pub fn file(output: Option<&Path>) -> Output {
        output.map_or(Output::Nowhere, |path| Output::File(path.to_owned()))
    }

    /// The folder that was asked for, or `benchmarks/runs/DATE-STUDY`; `name` is that of the record.
    pub fn folder(output: Option<&Path>, study: &str, name: &'static str) -> Output {
        let usual = || Path::new("benchmarks/runs").join(format!("{}-{study}", machine::date()));
        Output::at(&output.map_or_else(usual, Path::to_owned), name)
    }

    /// This folder, with a record of this name.
    pub fn at(folder: &Path, name: &'static str) -> Output {
        Output::Folder { folder: folder.to_owned(), name }
    }

    fn record(&self) -> Option<PathBuf> {
        match self {
            Output::Nowhere => None,
            Output::File(path) => Some(path.clone()),
            Output::Folder { folder, name } => Some(folder.join(format!("{name}.json.zst"))),
        }
    }
}

/// How a run was made, and what it has found so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Run<Row: Kept> {
    pub head: Head,
    #[serde(flatten)]
    pub facts: Row::Facts,
    pub rows: Vec<Row>,
    #[serde(skip)]
    output: Output,
}

impl<Row: Kept> Run<Row> {
    /// A run without rows; or the one that is kept there, if the same command made it. The triad is measured on these numbers
    /// of threads.
    pub fn begin(
        output: Output,
        facts: Row::Facts,
        rounds: usize,
        triads: &[usize],
    ) -> Result<Self, Failure> {
        if let Output::Folder { folder, .. } = &output {
            std::fs::create_dir_all(folder)?;
        }
        match output.record().filter(|path| path.exists()) {
            Some(path) => Self::taken_up(output, &path),
            None => Ok(Run { head: Head::of_run(rounds, triads)?, facts, rows: Vec::new(), output }),
        }
    }

    fn taken_up(output: Output, path: &Path) -> Result<Self, Failure> {
        let kept = Self::load(path).map_err(|error| format!("{error}; choose another --output"))?;
        if kept.head.command != machine::command() {
            let (path, command) = (path.display(), kept.head.command);
            return Err(format!("{path}: there is a run of `{command}`; choose another --output").into());
        }
        eprintln!("{}: a run with {} rows is taken up", path.display(), kept.rows.len());
        Ok(Run { output, ..kept })
    }

    /// The run that a record holds, of whatever version.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let record = Row::renewed(record::load(path)?);
        serde_json::from_value(record).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Whether such a row is there.
    pub fn has(&self, is: impl FnMut(&Row) -> bool) -> bool {
        self.rows.iter().any(is)
    }

    /// Adds rows that were found together, and keeps them.
    pub fn add(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), Failure> {
        self.rows.extend(rows);
        self.keep()
    }

    /// Writes the record, and the text where there is a folder.
    pub fn keep(&self) -> Result<(), Failure> {
        if let Some(path) = self.output.record() {
            record::save(&path, self)?;
        }
        if let Output::Folder { folder, .. } = &self.output {
            std::fs::write(folder.join("README.md"), Row::text(self))?;
        }
        Ok(())
    }

    /// Keeps the run with its pictures, and prints the text.
    pub fn end(&self) -> Result<(), Failure> {
        self.keep()?;
        self.show()
    }

    /// Text and pictures of the run that is kept there, once more; the record stays as it is.
    pub fn again(output: Output) -> Result<(), Failure> {
        let path = output.record().ok_or("there is no record to read")?;
        Run { output, ..Self::load(&path)? }.show()
    }

    fn show(&self) -> Result<(), Failure> {
        let mut text = Row::text(self);
        println!("{text}");
        if let Output::Folder { folder, .. } = &self.output {
            for Drawn { file, title } in Row::pictures(self, folder)? {
                text.push_str(&format!("\n![{title}]({file})\n"));
            }
            std::fs::write(folder.join("README.md"), text)?;
            println!("written to {}", folder.display());
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    pub use head::tests::head;

    /// The runs of the repository that have such a record, with their texts.
    pub fn kept<Row: Kept>(record: &str) -> Vec<(Run<Row>, String)> {
        let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/runs");
        let folders = std::fs::read_dir(runs).unwrap().map(|folder| folder.unwrap().path());
        let kept = folders.filter(|folder| folder.join(record).exists());
        let read = |folder: PathBuf| {
            let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
            (Run::load(&folder.join(record)).unwrap(), text)
        };
        kept.map(read).collect()
    }

    /// A run that is kept nowhere.
    pub fn run<Row: Kept>(facts: Row::Facts, rows: Vec<Row>) -> Run<Row> {
        Run { head: head(), facts, rows, output: Output::Nowhere }
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Square {
        number: usize,
        square: usize,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Limit {
        limit: usize,
    }

    impl Kept for Square {
        type Facts = Limit;

        fn text(run: &Run<Self>) -> String {
            let cells = |row: &Square| vec![row.number.to_string(), row.square.to_string()];
            table::table(&["number", "square"], run.rows.iter().map(cells))
        }

        fn pictures(_: &Run<Self>, folder: &Path) -> Result<Vec<Drawn>, Failure> {
            std::fs::write(folder.join("squares.svg"), "")?;
            Ok(vec![Drawn { file: "squares.svg".into(), title: "squares".into() }])
        }
    }

    fn begin(folder: &Path) -> Result<Run<Square>, Failure> {
        Run::begin(Output::at(folder, "squares"), Limit { limit: 9 }, 2, &[])
    }

    /// Squares up to a number; how many were computed.
    fn study(folder: &Path, numbers: usize) -> usize {
        let (mut run, mut computed) = (begin(folder).unwrap(), 0);
        for number in 1..=numbers {
            if !run.has(|row| row.number == number) {
                run.add([Square { number, square: number * number }]).unwrap();
                computed += 1;
            }
        }
        run.end().unwrap();
        computed
    }

    #[test]
    fn a_run_that_was_ended_is_taken_up_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!([study(folder.path(), 2), study(folder.path(), 3), study(folder.path(), 3)], [2, 1, 0]);
        let run = begin(folder.path()).unwrap();
        assert_eq!(run.rows.iter().map(|row| row.square).collect::<Vec<_>>(), [1, 4, 9]);
        assert_eq!((run.facts, run.head.rounds), (Limit { limit: 9 }, 2));
    }

    #[test]
    fn a_run_of_another_command_stays() {
        let folder = tempfile::tempdir().unwrap();
        study(folder.path(), 1);
        let path = folder.path().join("squares.json.zst");
        let mut run = Run::<Square>::load(&path).unwrap();
        run.head.command = "krylith-bench cubes".into();
        record::save(&path, &run).unwrap();
        let error = begin(folder.path()).unwrap_err().to_string();
        assert!(error.contains("`krylith-bench cubes`; choose another --output"), "{error}");
    }

    #[test]
    fn the_folder_has_text_and_pictures_and_shows_them_again() {
        let folder = tempfile::tempdir().unwrap();
        study(folder.path(), 1);
        let text = "| number | square |\n|---|---|\n| 1 | 1 |\n\n![squares](squares.svg)\n";
        let readme = folder.path().join("README.md");
        assert_eq!(std::fs::read_to_string(&readme).unwrap(), text);
        std::fs::remove_file(&readme).unwrap();
        Run::<Square>::again(Output::at(folder.path(), "squares")).unwrap();
        assert_eq!(std::fs::read_to_string(&readme).unwrap(), text);
    }

    #[test]
    fn a_record_has_facts_beside_rows() {
        let run = run(Limit { limit: 4 }, vec![Square { number: 2, square: 4 }]);
        let record = serde_json::to_value(&run).unwrap();
        assert_eq!((&record["limit"], &record["rows"][0]["square"]), (&4.into(), &4.into()));
        assert_eq!(serde_json::from_value::<Run<Square>>(record).unwrap(), run);
    }
}
