//! Who takes part, and how each is run on one system.
//!
//! PETSc's configurations are its own options, those of Python the arguments of `peers/outcome.py`. Krylith's go through the
//! library by name; one that this build does not know is skipped with a loud line.

use crate::Failure;
use crate::compare::limited;
use clap::ValueEnum;
use krylith::Solver;
use krylith::solver::{MatchingMode, Method, PrecondSpec};
use krylith::transform::Ordering;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Study {
    /// Symmetric positive definite matrices: CG with incomplete Cholesky
    Spd,
    /// Square, structurally nonsingular matrices: GMRES(50) and BiCGStab with incomplete LU
    General,
    /// ILU(k) and IC(k) equal PETSc's: entries and applications
    Factors,
}

impl Study {
    /// The name of its files.
    pub fn name(self) -> &'static str {
        match self {
            Study::Spd => "spd",
            Study::General => "general",
            Study::Factors => "factors",
        }
    }
}

/// A configuration of Krylith.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub method: Method,
    /// As `PrecondSpec` parses it.
    pub preconditioner: &'static str,
    /// Columns permuted and entries measured by a maximum-product matching first.
    pub matching: bool,
    pub ordering: Ordering,
    /// One iteration, to see whether the factor exists and can be applied.
    pub set_up_only: bool,
}

impl Way {
    /// The options of the solve, or why this build has none.
    pub fn solver(&self) -> Result<Solver, Failure> {
        let preconditioner: PrecondSpec = self.preconditioner.parse()?;
        let solver = Solver::new().method(self.method).preconditioner(preconditioner);
        let matching = if self.matching { MatchingMode::On } else { MatchingMode::Off };
        Ok(solver.matching(matching).reorder(self.ordering))
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Driver {
    /// `incomplete-once` of this program.
    Own(Way),
    /// `petsc_outcome` with these options.
    Petsc(&'static [&'static str]),
    /// `outcome.py` with this method and preconditioner.
    Python(&'static str, &'static str),
}

/// Who takes part.
#[derive(Debug, Clone, Copy)]
pub struct Contestant {
    /// Unique in its study.
    pub name: &'static str,
    /// The best of a team is reported too; empty for those that do not solve.
    pub team: &'static str,
    pub driver: Driver,
}

const fn petsc(name: &'static str, options: &'static [&'static str]) -> Contestant {
    Contestant { name, team: "PETSc", driver: Driver::Petsc(options) }
}

/// PETSc's nearest to a matching: small entries of the diagonal are permuted away.
const fn reordered(name: &'static str, options: &'static [&'static str]) -> Contestant {
    Contestant { name, team: "PETSc reordered", driver: Driver::Petsc(options) }
}

const fn python(
    name: &'static str,
    team: &'static str,
    method: &'static str,
    preconditioner: &'static str,
) -> Contestant {
    Contestant { name, team, driver: Driver::Python(method, preconditioner) }
}

const fn own(name: &'static str, method: Method, preconditioner: &'static str, matching: bool) -> Contestant {
    ordered(name, method, preconditioner, matching, Ordering::Natural)
}

const fn ordered(
    name: &'static str,
    method: Method,
    preconditioner: &'static str,
    matching: bool,
    ordering: Ordering,
) -> Contestant {
    let way = Way { method, preconditioner, matching, ordering, set_up_only: false };
    Contestant { name, team: "Krylith", driver: Driver::Own(way) }
}

const fn set_up(name: &'static str, preconditioner: &'static str) -> Contestant {
    let way = Way {
        method: Method::Cg,
        preconditioner,
        matching: false,
        ordering: Ordering::Natural,
        set_up_only: true,
    };
    Contestant { name, team: "", driver: Driver::Own(way) }
}

const SPD: &[Contestant] = &[
    petsc("PETSc ICC(0) none", &["-ksp_type", "cg", "-pc_type", "icc", "-pc_factor_shift_type", "none"]),
    petsc(
        "PETSc ICC(0) nonzero",
        &["-ksp_type", "cg", "-pc_type", "icc", "-pc_factor_shift_type", "nonzero"],
    ),
    petsc(
        "PETSc ICC(0) positive_definite",
        &["-ksp_type", "cg", "-pc_type", "icc", "-pc_factor_shift_type", "positive_definite"],
    ),
    petsc(
        "PETSc ICC(0) inblocks",
        &["-ksp_type", "cg", "-pc_type", "icc", "-pc_factor_shift_type", "inblocks"],
    ),
    python("ilupp IChol0", "ilupp", "cg", "ichol0"),
    python("ilupp ICholT", "ilupp", "cg", "icholt"),
    python("ilupp ICholT(10,1e-3)", "ilupp", "cg", "icholt(10,1e-3)"),
    own("Krylith ic0", Method::Cg, "ic0", false),
    set_up("Krylith ic0, set-up", "ic0"),
    set_up("Krylith ic(1), set-up", "ic(1)"),
    set_up("Krylith mic0, set-up", "mic0"),
    set_up("Krylith ict(1e-3), set-up", "ict(1e-3)"),
];

const GENERAL: &[Contestant] = &[
    python("SciPy spilu, GMRES", "SciPy", "gmres", "spilu"),
    petsc("PETSc ILU(0), GMRES", &["-ksp_type", "gmres", "-ksp_gmres_restart", "50", "-pc_type", "ilu"]),
    petsc("PETSc ILU(0), BiCGStab", &["-ksp_type", "bcgs", "-pc_type", "ilu"]),
    petsc(
        "PETSc ILU(0) nonzero, GMRES",
        &[
            "-ksp_type",
            "gmres",
            "-ksp_gmres_restart",
            "50",
            "-pc_type",
            "ilu",
            "-pc_factor_shift_type",
            "nonzero",
        ],
    ),
    petsc(
        "PETSc ILU(0) nonzero, BiCGStab",
        &["-ksp_type", "bcgs", "-pc_type", "ilu", "-pc_factor_shift_type", "nonzero"],
    ),
    reordered(
        "PETSc ILU(0) nonzero, reordered, GMRES",
        &[
            "-ksp_type",
            "gmres",
            "-ksp_gmres_restart",
            "50",
            "-pc_type",
            "ilu",
            "-pc_factor_shift_type",
            "nonzero",
            "-pc_factor_nonzeros_along_diagonal",
        ],
    ),
    reordered(
        "PETSc ILU(0) nonzero, reordered, BiCGStab",
        &[
            "-ksp_type",
            "bcgs",
            "-pc_type",
            "ilu",
            "-pc_factor_shift_type",
            "nonzero",
            "-pc_factor_nonzeros_along_diagonal",
        ],
    ),
    own("Krylith ilu0, GMRES", Method::Gmres(50), "ilu0", false),
    own("Krylith ilu0, BiCGStab", Method::BiCgStab, "ilu0", false),
    own("Krylith ilut(10,1e-3), GMRES", Method::Gmres(50), "ilut(10,1e-3)", false),
    own("Krylith ilut(10,1e-3), BiCGStab", Method::BiCgStab, "ilut(10,1e-3)", false),
    own("Krylith ilutp(10,1e-3), matching, GMRES", Method::Gmres(50), "ilutp(10,1e-3)", true),
    own("Krylith ilutp(10,1e-3), matching, BiCGStab", Method::BiCgStab, "ilutp(10,1e-3)", true),
    ordered(
        "Krylith ilutp-fill(10,1e-4), matching, amd, GMRES",
        Method::Gmres(50),
        "ilutp-fill(10,1e-4)",
        true,
        Ordering::Amd,
    ),
    ordered(
        "Krylith ilutp-fill(10,1e-4), matching, amd, BiCGStab",
        Method::BiCgStab,
        "ilutp-fill(10,1e-4)",
        true,
        Ordering::Amd,
    ),
];

/// Everyone in a study, in the order of the tables.
pub fn all(study: Study) -> &'static [Contestant] {
    match study {
        Study::Spd => SPD,
        Study::General => GENERAL,
        Study::Factors => &[],
    }
}

/// Where the drivers are.
pub struct Places {
    pub peers: PathBuf,
    pub python: PathBuf,
}

/// What every driver is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub rtol: f64,
    pub max_iterations: usize,
    /// Seconds a contestant on a matrix at most.
    pub seconds: u64,
}

/// A script of this crate's folder `peers`.
pub fn script(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers")).join(name)
}

impl Contestant {
    pub fn is_own(&self) -> bool {
        matches!(self.driver, Driver::Own(_))
    }

    pub fn set_up_only(&self) -> bool {
        matches!(self.driver, Driver::Own(Way { set_up_only: true, .. }))
    }

    /// Why it cannot take part, if it cannot.
    pub fn obstacle(&self, places: &Places) -> Option<String> {
        match &self.driver {
            Driver::Own(way) => way.solver().err().map(|error| error.to_string()),
            Driver::Petsc(_) if places.peers.join("petsc_outcome").is_file() => None,
            Driver::Petsc(_) => Some("petsc_outcome is not built: just bench-setup petsc".into()),
            Driver::Python(..) => {
                let import = if self.team == "ilupp" { "import scipy, ilupp" } else { "import scipy" };
                let tried = Command::new(&places.python).args(["-c", import]).output();
                let works = tried.is_ok_and(|output| output.status.success());
                (!works).then(|| format!("`{import}` fails: just bench-setup python"))
            }
        }
    }

    /// The command that solves the system in `folder` and writes x, ended after the limit. One thread.
    pub fn command(
        &self,
        study: Study,
        places: &Places,
        folder: &Path,
        x: &Path,
        limits: &Limits,
    ) -> Result<Command, Failure> {
        let mut command = limited(limits.seconds);
        match self.driver {
            Driver::Own(_) => command.arg(std::env::current_exe()?).arg("incomplete-once"),
            Driver::Petsc(_) => command.arg(places.peers.join("petsc_outcome")),
            Driver::Python(..) => command.arg(&places.python).arg(script("outcome.py")),
        };
        command.arg(folder).arg(x).arg(limits.rtol.to_string()).arg(limits.max_iterations.to_string());
        match self.driver {
            Driver::Own(_) => command.args([study.name(), self.name]),
            Driver::Petsc(options) => command.args(options),
            Driver::Python(method, preconditioner) => command.args([method, preconditioner]),
        };
        for name in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
            command.env(name, "1");
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for study in [Study::Spd, Study::General] {
            let mut names: Vec<&str> = all(study).iter().map(|c| c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all(study).len());
        }
    }

    #[test]
    fn a_name_that_the_library_does_not_know_is_an_obstacle() {
        let places = Places { peers: "/nowhere".into(), python: "/nowhere/python".into() };
        let known = own("a", Method::Cg, "ic0", false);
        assert_eq!(known.obstacle(&places), None);
        let unknown = own("b", Method::Cg, "no such thing", false);
        assert!(unknown.obstacle(&places).unwrap().contains("no such thing"));
        assert!(SPD[0].obstacle(&places).unwrap().contains("bench-setup petsc"));
        assert!(GENERAL[0].obstacle(&places).unwrap().contains("bench-setup python"));
    }
}
