//! Who takes part in the study of kernels, and how each is run.

use super::case::Case;
use super::own::PATHS;
use crate::Failure;
use crate::compare::record::Absent;
use crate::compare::{environment, limited, on_ranks};
use std::path::Path;
use std::process::Command;

/// What is behind the name of a contestant that solves with another preconditioner.
pub const BLOCK_JACOBI: &str = " (block Jacobi)";

/// A path of Krylith, or a format of a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Contestant {
    pub peer: &'static str,
    pub config: &'static str,
}

/// A format of a peer: its driver, and the command that installs it.
struct Peer {
    name: &'static str,
    formats: &'static [&'static str],
    driver: &'static str,
    install: &'static str,
}

static PEERS: [Peer; 2] = [
    Peer {
        name: "mkl",
        formats: &["csr", "bsr"],
        driver: "mkl_grid",
        install: "pip install mkl mkl-devel && just bench-setup",
    },
    Peer {
        name: "petsc",
        formats: &["aij", "aij-plain", "baij"],
        driver: "petsc_grid",
        install: "apt-get install petsc-dev && just bench-setup",
    },
];

/// Everyone there is.
pub fn all() -> Vec<Contestant> {
    let own = PATHS.iter().map(|&(config, _)| Contestant { peer: "krylith", config });
    let formats = |p: &'static Peer| p.formats.iter().map(|config| Contestant { peer: p.name, config });
    own.chain(PEERS.iter().flat_map(formats)).collect()
}

/// Those of `only` (all, if it is empty) that can run, and those that cannot.
pub fn present(peers: &Path, only: &[String]) -> Result<(Vec<Contestant>, Vec<Absent>), Failure> {
    let mut list = all();
    let unknown = |word: &&String| !list.iter().any(|c| c.is_called(word));
    if let Some(word) = only.iter().find(unknown) {
        let known: Vec<String> = list.iter().map(|c| format!("{}-{}", c.peer, c.config)).collect();
        return Err(format!("there is no contestant `{word}`; contestants: {}", known.join(", ")).into());
    }
    list.retain(|c| only.is_empty() || only.iter().any(|word| c.is_called(word)));
    let mut absent = Vec::new();
    for peer in PEERS.iter().filter(|peer| !peers.join(peer.driver).is_file()) {
        let before = list.len();
        list.retain(|c| c.peer != peer.name);
        if list.len() < before {
            absent.push(Absent { peer: peer.name.into(), install: peer.install.into() });
        }
    }
    Ok((list, absent))
}

/// What a contestant is given.
pub struct Call<'a> {
    pub peers: &'a Path,
    pub case: &'a Case,
    /// The matrix, for peers.
    pub file: &'a Path,
    pub threads: usize,
    pub answer: Option<&'a Path>,
    /// Seconds at most.
    pub limit: u64,
}

impl Contestant {
    /// By peer, by format, or by both.
    fn is_called(&self, word: &str) -> bool {
        word == self.peer || word == self.config || word == format!("{}-{}", self.peer, self.config)
    }

    /// Blocks of one row are rows; and PETSc's `aij` looks for equal rows, of which there are none then.
    pub fn takes(&self, case: &Case) -> bool {
        case.dof > 1 || !matches!(self.config, "blocks" | "bsr" | "baij" | "aij-plain")
    }

    /// On several ranks PETSc's preconditioner is another one.
    pub fn is_other_preconditioner(&self, threads: usize) -> bool {
        self.peer == "petsc" && threads > 1
    }

    /// The format, and that its preconditioner is another one.
    pub fn label(&self, threads: usize) -> String {
        let other = if self.is_other_preconditioner(threads) { BLOCK_JACOBI } else { "" };
        format!("{}{other}", self.config)
    }

    /// The command that runs it once.
    pub fn command(&self, call: &Call<'_>) -> std::io::Result<Command> {
        let mut command = limited(call.limit);
        let Case { stencil, dof, n } = call.case;
        let Some(peer) = PEERS.iter().find(|peer| peer.name == self.peer) else {
            command.arg(std::env::current_exe()?).arg("structured-once");
            command.arg(format!("{}:{dof}:{n}", stencil.name())).arg(self.config);
            command.args(["--threads", &call.threads.to_string()]);
            if let Some(file) = call.answer {
                command.arg("--answer").arg(file);
            }
            environment(&mut command, call.threads);
            return Ok(command);
        };
        let processes = if self.peer == "petsc" { call.threads } else { 1 };
        on_ranks(&mut command, processes);
        command.arg(call.peers.join(peer.driver)).arg(call.file).arg(self.config).arg(dof.to_string());
        command.arg(call.answer.unwrap_or(Path::new("-")));
        environment(&mut command, call.threads / processes);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_asked_for_and_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mkl_grid"), "").unwrap();
        let titles = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&o| o.to_owned()).collect();
            let (found, absent) = present(folder.path(), &only)?;
            let found: Vec<String> = found.iter().map(|c| format!("{} {}", c.peer, c.config)).collect();
            Ok::<_, Failure>((found, absent.into_iter().map(|a| a.peer).collect::<Vec<_>>()))
        };
        assert_eq!(titles(&["mkl-csr", "rows"]).unwrap().0, ["krylith rows", "mkl csr"]);
        assert_eq!(
            titles(&["mkl", "petsc"]).unwrap(),
            (vec!["mkl csr".into(), "mkl bsr".into()], vec!["petsc".into()])
        );
        assert_eq!(titles(&[]).unwrap().0.len(), PATHS.len() + 2);
        assert!(titles(&["cusparse"]).unwrap_err().to_string().contains("petsc-baij"));
    }

    #[test]
    fn blocks_need_more_than_one_unknown() {
        let takes = |dof: usize| {
            all().iter().filter(|c| c.takes(&Case::sized("box-27p".parse().unwrap(), dof, 1e6))).count()
        };
        assert_eq!(takes(2) - takes(1), 4);
    }

    #[test]
    fn ranks_are_processes_and_threads_are_not() {
        let case = Case::sized("star-7p".parse().unwrap(), 2, 1e6);
        let call = Call {
            peers: Path::new("/peers"),
            case: &case,
            file: Path::new("A.csr"),
            threads: 2,
            answer: None,
            limit: 9,
        };
        let described = |peer, config| {
            let command = Contestant { peer, config }.command(&call).unwrap();
            command.get_args().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert!(described("petsc", "baij").ends_with("-n 2 /peers/petsc_grid A.csr baij 2 -"));
        assert!(described("mkl", "bsr").ends_with("9 /peers/mkl_grid A.csr bsr 2 -"));
        assert!(
            described("krylith", "rows").contains("structured-once Star-7P:2:")
                && described("krylith", "rows").ends_with("--threads 2")
        );
        assert_eq!(Contestant { peer: "petsc", config: "aij" }.label(2), "aij (block Jacobi)");
        assert_eq!(Contestant { peer: "petsc", config: "aij" }.label(1), "aij");
    }
}
