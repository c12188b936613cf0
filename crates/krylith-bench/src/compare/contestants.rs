//! Who takes part, in which configurations, and how each is run.

use super::record::{Absent, Matrix};
use crate::driver::{environment, limited, on_ranks};
use crate::rhs::Rhs;
use krylith::precond::registry::{PrecondInfo, preconditioners};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a driver is started and given its threads.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Driver {
    /// `compare-once` of this program.
    Own,
    /// A program whose threads are MPI ranks.
    Ranks(&'static str),
    /// A program whose threads `OMP_NUM_THREADS` gives.
    Threads(&'static str),
    /// The Python script, which runs on one thread.
    Python(&'static str),
}

/// A system that takes part.
struct Peer {
    name: &'static str,
    driver: Driver,
    /// Configurations for a symmetric positive definite matrix, and for any other.
    definite: &'static [&'static str],
    general: &'static [&'static str],
    /// Configurations whose single operations are timed, each for both.
    kernels: &'static [[&'static str; 2]],
    install: &'static str,
}

/// The operations on A by rows and on vectors, and no preconditioner.
const BY_ROWS: [&str; 2] = ["cg+none", "bicgstab+none"];

const PEERS: &[Peer] = &[
    Peer {
        name: "krylith",
        driver: Driver::Own,
        definite: &[
            "auto",
            "cg+ic0",
            "cg+mic(0,1)",
            "cg+mic(0,0.99)",
            "cg+mic(0,0.99)+mixed",
            "cg+ic(1)+mixed",
            "cg+mic(1,0.99)+mixed",
            "cg+mic(1,1)+mixed",
            "cg+jacobi",
        ],
        general: &[
            "auto",
            "bicgstab+ilu0",
            "bicgstab+milu(0,1)",
            "bicgstab+milu(0,0.99)",
            "bicgstab+milu(0,0.99)+mixed",
            "bicgstab+ilu(1)+mixed",
            "bicgstab+milu(1,1)+mixed",
            "bicgstab+jacobi",
        ],
        kernels: &[BY_ROWS, ["cg+ic0", "bicgstab+ilu0"]],
        install: "",
    },
    Peer {
        name: "petsc",
        driver: Driver::Ranks("petsc"),
        definite: &["cg+icc0", "cg+icc1", "cg+jacobi"],
        general: &["bicgstab+ilu0", "bicgstab+ilu1", "gmres+ilu0", "bicgstab+jacobi"],
        kernels: &[["cg+icc0", "bicgstab+ilu0"]],
        install: "apt-get install petsc-dev && just bench-setup",
    },
    Peer {
        name: "mkl",
        driver: Driver::Threads("mkl"),
        definite: &["cg+ilu0", "cg+jacobi"],
        general: &["bicgstab+ilu0", "fgmres+ilu0", "bicgstab+jacobi"],
        kernels: &[["cg+ilu0", "bicgstab+ilu0"]],
        install: "pip install mkl mkl-devel && just bench-setup",
    },
    Peer {
        name: "amgcl",
        driver: Driver::Threads("amgcl"),
        definite: &["cg+sa-spai0", "cg+sa-spai0-e0"],
        general: &["bicgstab+sa-spai0", "bicgstab+sa-ilu0"],
        kernels: &[],
        install: "apt-get install libboost-dev && just bench-setup",
    },
    Peer {
        name: "hypre",
        driver: Driver::Ranks("hypre"),
        definite: &["cg+boomeramg"],
        general: &["bicgstab+boomeramg", "gmres+boomeramg"],
        kernels: &[],
        install: "apt-get install libhypre-dev && just bench-setup",
    },
    Peer {
        name: "ilupp",
        driver: Driver::Python("ilupp"),
        definite: &["cg+ic0"],
        general: &["bicgstab+ilu0"],
        kernels: &[["cg+ic0", "bicgstab+ilu0"]],
        install: "pip install scipy ilupp && just bench-setup",
    },
    Peer {
        name: "pyamg",
        driver: Driver::Python("pyamg"),
        definite: &["cg+sa", "cg+rs"],
        general: &["bicgstab+sa"],
        kernels: &[],
        install: "pip install scipy pyamg && just bench-setup",
    },
    Peer {
        name: "scipy",
        driver: Driver::Python("scipy"),
        definite: &["cg+jacobi"],
        general: &["bicgstab+jacobi"],
        kernels: &[BY_ROWS],
        install: "pip install scipy && just bench-setup",
    },
    Peer {
        name: "faer",
        driver: Driver::Threads("faer"),
        definite: &["cg+jacobi"],
        general: &["bicgstab+jacobi"],
        kernels: &[BY_ROWS],
        install: "just bench-setup",
    },
    Peer {
        name: "russell",
        driver: Driver::Threads("russell"),
        definite: &["cg+sa-spai0"],
        general: &["bicgstab+sa-spai0", "gmres+sa-spai0"],
        kernels: &[],
        install: "just bench-setup",
    },
];

/// A peer in one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Contestant {
    pub peer: String,
    pub config: String,
    driver: Driver,
}

/// Where drivers are, and what every one of them is given.
pub struct Call<'a> {
    /// The folder that `just bench-setup` fills.
    pub peers: &'a Path,
    pub file: &'a Path,
    /// The problem as the gallery names it.
    pub spec: &'a str,
    pub rhs: Rhs,
    pub kernels: bool,
    pub threads: usize,
    pub rtol: f64,
    pub max_iterations: usize,
    /// Seconds at most.
    pub limit: u64,
}

/// The names of all peers.
pub fn names() -> impl Iterator<Item = &'static str> {
    PEERS.iter().map(|peer| peer.name)
}

/// Those of `only` (all, if it is empty) that can run, and those that cannot.
pub fn present(peers: &Path, only: &[String]) -> (Vec<&'static str>, Vec<Absent>) {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for peer in PEERS.iter().filter(|peer| only.is_empty() || only.iter().any(|o| o == peer.name)) {
        match is_present(peers, peer.driver) {
            true => found.push(peer.name),
            false => absent.push(Absent { peer: peer.name.into(), install: peer.install.into() }),
        }
    }
    (found, absent)
}

fn is_present(peers: &Path, driver: Driver) -> bool {
    match driver {
        Driver::Own => true,
        Driver::Ranks(name) | Driver::Threads(name) => peers.join(name).is_file(),
        Driver::Python(module) => {
            let import = format!("import scipy, {module}");
            let output = Command::new(python(peers)).args(["-c", &import]).output();
            output.is_ok_and(|output| output.status.success())
        }
    }
}

fn python(peers: &Path) -> PathBuf {
    peers.join("venv/bin/python")
}

/// Every preconditioner of the registry that suits such matrices, those of dense blocks apart.
fn every(symmetric: bool) -> Vec<String> {
    let suits = |info: &PrecondInfo| {
        info.symmetric == symmetric && !info.name.starts_with('b') && info.name != "auto"
    };
    let method = if symmetric { "cg" } else { "bicgstab" };
    let examples = preconditioners().iter().filter(|info| suits(info)).flat_map(|info| info.examples);
    examples.map(|example| format!("{method}+{example}")).collect()
}

/// The contestants for a matrix: for whole solves, or for single operations. `own` stands in for Krylith's configurations
/// where it is not empty.
pub fn contestants(
    names: &[&str],
    own: &[String],
    matrix: &Matrix,
    kernels: bool,
    threads: usize,
) -> Vec<Contestant> {
    let mut list = Vec::new();
    for peer in PEERS.iter().filter(|peer| names.contains(&peer.name)) {
        if threads > 1 && matches!(peer.driver, Driver::Python(_)) {
            continue;
        }
        let which = usize::from(!matrix.symmetric);
        let configs: Vec<String> = match peer.driver {
            Driver::Own if own == ["every"] => every(matrix.symmetric),
            Driver::Own if !own.is_empty() => own.to_vec(),
            _ if kernels => peer.kernels.iter().map(|k| k[which].to_owned()).collect(),
            _ => [peer.definite, peer.general][which].iter().map(|&c| c.to_owned()).collect(),
        };
        let named = |config: String| match peer.name {
            // The strong threshold: 0.25 in two dimensions, 0.5 in three, the usual choices for such problems.
            "hypre" => format!("{config}:{}", if matrix.spec.contains("2d") { 0.25 } else { 0.5 }),
            _ => config,
        };
        let new = |config| Contestant { peer: peer.name.into(), config: named(config), driver: peer.driver };
        list.extend(configs.into_iter().map(new));
    }
    list
}

impl Contestant {
    /// A peer in a configuration that is none of its usual ones.
    pub fn named(peer: &str, config: &str) -> Option<Contestant> {
        let found = PEERS.iter().find(|p| p.name == peer)?;
        Some(Contestant { peer: peer.into(), config: config.into(), driver: found.driver })
    }

    /// The command that runs it once, ended after the limit.
    pub fn command(&self, call: &Call<'_>) -> std::io::Result<Command> {
        let mut command = limited(call.limit);
        if self.driver == Driver::Own && self.config.starts_with("--") {
            command.arg(std::env::current_exe()?).args(["compare-command", call.spec]).arg(&self.config);
            command.arg(call.rtol.to_string()).arg(call.max_iterations.to_string());
            command.args(["--threads", &call.threads.to_string(), "--rhs", call.rhs.name()]);
            environment(&mut command, call.threads);
            return Ok(command);
        }
        let mut processes = 1;
        match self.driver {
            Driver::Own => {
                command.arg(std::env::current_exe()?).args(["compare-once", "--threads"]);
                command.arg(call.threads.to_string());
            }
            Driver::Threads(name) => {
                command.arg(call.peers.join(name));
            }
            Driver::Python(name) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/python.py");
                command.arg(python(call.peers)).args([script, name]);
            }
            Driver::Ranks(name) => {
                processes = call.threads;
                on_ranks(&mut command, processes);
                command.arg(call.peers.join(name));
            }
        }
        command.arg(call.file).arg(if call.kernels { "kernels" } else { "solve" }).arg(&self.config);
        command.arg(call.rtol.to_string()).arg(call.max_iterations.to_string());
        environment(&mut command, call.threads / processes);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(spec: &str, symmetric: bool) -> Matrix {
        Matrix { name: "P1".into(), spec: spec.into(), rows: 1, nnz: 1, symmetric, rhs: Rhs::Ones }
    }

    #[test]
    fn configurations_follow_the_matrix() {
        let names: Vec<&str> = names().collect();
        let titles = |m: &Matrix, threads| {
            let list = contestants(&names, &[], m, false, threads);
            list.into_iter().map(|c| format!("{} {}", c.peer, c.config)).collect::<Vec<_>>()
        };
        let flat = titles(&matrix("poisson2d:10", true), 1);
        assert!(flat.contains(&"petsc cg+icc1".into()) && flat.contains(&"hypre cg+boomeramg:0.25".into()));
        let general = titles(&matrix("convection3d:10", false), 2);
        assert!(general.contains(&"hypre gmres+boomeramg:0.5".into()));
        assert!(!general.iter().any(|t| t.starts_with("ilupp")), "it has one thread");
        for peer in ["krylith", "petsc", "mkl", "scipy"] {
            assert!(flat.contains(&format!("{peer} cg+jacobi")), "{peer}");
        }
    }

    /// Krylith's product in slices goes with a preconditioner, that by rows with none.
    #[test]
    fn single_operations_are_timed_in_slices_and_by_rows() {
        let configs = |symmetric| {
            let list = contestants(&["krylith"], &[], &matrix("poisson2d:10", symmetric), true, 1);
            list.into_iter().map(|c| c.config).collect::<Vec<_>>()
        };
        assert_eq!(configs(true), ["cg+none", "cg+ic0"]);
        assert_eq!(configs(false), ["bicgstab+none", "bicgstab+ilu0"]);
    }

    #[test]
    fn own_configurations_can_be_given() {
        let list = contestants(&["krylith"], &["cg+ilu0".into()], &matrix("poisson2d:10", true), false, 1);
        assert_eq!(list.iter().map(|c| c.config.as_str()).collect::<Vec<_>>(), ["cg+ilu0"]);
    }

    #[test]
    fn every_member_of_the_registry_can_take_part() {
        let every = |symmetric| {
            let matrix = matrix("poisson2d:10", symmetric);
            let list = contestants(&["krylith"], &["every".into()], &matrix, false, 1);
            list.iter().map(|c| c.config.clone()).collect::<Vec<_>>()
        };
        assert!(every(true).contains(&"cg+ssor(1.5)".into()) && every(true).contains(&"cg+none".into()));
        assert!(every(false).contains(&"bicgstab+ilut(5,0.01)".into()));
        assert!(!every(true).iter().chain(&every(false)).any(|config| config.contains("+auto")));
    }

    #[test]
    fn what_is_not_there_is_named_with_its_cure() {
        let folder = tempfile::tempdir().unwrap();
        let (found, absent) = present(folder.path(), &["krylith".into(), "petsc".into()]);
        assert_eq!(found, ["krylith"]);
        assert_eq!(absent[0].peer, "petsc");
        assert!(absent[0].install.contains("petsc-dev"));
    }
}
