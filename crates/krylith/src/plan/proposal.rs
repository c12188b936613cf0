//! Ways to solve a system, each with what it is predicted to cost.
//!
//! Every preconditioner of the registry says which of its members it proposes for a matrix with given facts, and how many iterations they
//! are likely to take (`PrecondInfo::propose`). Here each of them gets a storage, a precision and a price, from counts alone.
//!
//! Iterations. A model problem of N points from one end to the other needs O(N) iterations with IC(0), and O(√N) with a modified factor
//! (Gustafsson 1978, doi:10.1007/BF01931691) whose relaxation is ω = 1 − c / N². The constants below were read off runs with random right-hand
//! sides, 10⁻⁷, on `poisson2d`, `poisson3d`, `hpcg`, `jump3d`, `fem2d`, `ecology`, `parabolic`, `apache`, `thermal`, `circuit`, `elasticity2d` and
//! `convection3d`. They rank proposals for one matrix; that iterations are predicted right is not expected.

use super::{Reason, ReasonCode};
use crate::cost::{Applied, Expected, Machine, Work};
use crate::facts::{Facts, Mesh};
use crate::options::{Layout, Method, Precision, StorageKind};
use crate::precond::PrecondSpec;
use crate::precond::fsai::{Fsai, LikelySize};
use crate::precond::registry::{Construction, Likely, PrecondInfo, Suits, preconditioners};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// One way to solve a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Proposal {
    /// The method.
    pub method: Method,
    /// The preconditioner.
    pub preconditioner: PrecondSpec,
    /// In which numbers its factor is stored.
    pub precision: Precision,
    /// How A and the factor are expected to be stored.
    pub storage: StorageKind,
    /// Entries of the factor, predicted.
    pub entries: f64,
    /// Iterations, predicted.
    pub iterations: f64,
    /// Nanoseconds of the plan's machine for the set-up, predicted.
    pub set_up: f64,
    /// The same for an iteration.
    pub iteration: f64,
}

/// Matrices of fewer entries are solved in about a millisecond, whatever is chosen.
const WORTH_PREDICTING: usize = 20_000;

/// What is known of a system before anything is looked at.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Outlook<'m> {
    /// Facts about the mesh.
    pub mesh: &'m Mesh,
    /// The order that was asked for.
    pub layout: Layout,
    /// In which numbers the factor will be.
    pub precision: Precision,
    /// The level of fill of triangular factors; none for the products of an approximate inverse.
    pub level: Option<usize>,
}

/// What proposals are made for, besides the facts.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub machine: &'a Machine,
    pub method: Method,
    pub precisions: &'a [Precision],
    pub layout: Layout,
    pub expected: Expected,
    /// The storage of the store that is likely to take a system; none if no store is.
    pub store: &'a dyn Fn(&Outlook<'_>) -> Option<StorageKind>,
}

impl Proposal {
    /// Nanoseconds of the plan's machine, predicted.
    pub fn cost(&self) -> f64 {
        self.set_up + self.iterations * self.iteration
    }

    /// The same for as many set-ups and solves as are expected.
    pub fn cost_for(&self, expected: Expected) -> f64 {
        expected.cost(0.0, self.set_up, self.iterations * self.iteration)
    }

    /// All proposals for a matrix with these facts, the cheapest first; none if nothing is known about its mesh.
    pub(crate) fn all(asked: &Asked<'_>, facts: &Facts) -> Vec<Self> {
        if facts.mesh.is_none() || facts.entries < WORTH_PREDICTING {
            return Vec::new();
        }
        let symmetric = matches!(asked.method, Method::Cg | Method::Minres);
        // An incomplete LU factor suits a method that does not need symmetry better than a Cholesky factor; an approximate inverse has one form for each.
        let suits = |info: &PrecondInfo| match symmetric {
            true => info.symmetric,
            false => !info.symmetric || info.matrices == Suits::Any,
        };
        let infos = preconditioners().iter().filter(|info| suits(info));
        let mut all: Vec<Proposal> = infos
            .flat_map(|info| (info.propose)(facts))
            .flat_map(|likely| asked.precisions.iter().map(move |&precision| (likely.clone(), precision)))
            .filter(|(_, precision)| *precision == Precision::F64 || facts.fits_f32())
            .filter_map(|(likely, precision)| Self::priced(asked, facts, likely, precision))
            .collect();
        all.sort_by(|a, b| a.cost_for(asked.expected).total_cmp(&b.cost_for(asked.expected)));
        all
    }

    fn priced(asked: &Asked<'_>, facts: &Facts, likely: Likely, precision: Precision) -> Option<Self> {
        let &Asked { machine, method, layout, .. } = asked;
        if let Construction::Inverse(recipe) = likely.0.construct() {
            return Self::of_inverse(asked, facts, likely, (precision, recipe));
        }
        let (kind, iterations) = likely;
        let (mesh, level) = (facts.mesh.as_ref()?, kind.level());
        let storage = (asked.store)(&Outlook { mesh, layout, precision, level: Some(level) })?;
        let on_grid = mesh.grid.as_ref().filter(|_| storage == StorageKind::Grid);
        let symmetric = kind.info().symmetric;
        let (rows, entries) = (facts.rows as f64, facts.entries as f64);
        let filled = rows + (entries - rows).max(0.0) * mesh.growth(level);
        let (stored, swept) = match symmetric {
            true => ((filled + rows) / 2.0, filled + rows),
            false => (filled, filled),
        };
        let keeps = on_grid.is_some_and(|grid| grid.keeps_off_diagonals);
        let constant = on_grid.is_some() && mesh.is_constant;
        let work = Work {
            constant,
            constant_factor: constant && keeps && level == 0 && precision == Precision::F64,
            method,
            storage,
            precision,
            rows: facts.rows,
            entries: facts.entries,
            swept,
            applied: Applied::Sweeps { wavefronts: facts.wavefronts(level) },
            without_product: keeps && level == 0 && precision == Precision::F64,
        };
        Some(Proposal {
            method,
            preconditioner: kind,
            precision,
            storage,
            entries: stored,
            iterations,
            set_up: machine.set_up(storage, (facts.rows, facts.entries), filled, mesh.growth(level)),
            iteration: machine.iteration(&work),
        })
    }

    /// An approximate inverse: products with A, G and its transpose, or G_L and G_U.
    fn of_inverse(
        asked: &Asked<'_>,
        facts: &Facts,
        (kind, iterations): Likely,
        (precision, recipe): (Precision, Fsai),
    ) -> Option<Self> {
        let &Asked { machine, method, layout, .. } = asked;
        let mesh = facts.mesh.as_ref()?;
        if matches!(method, Method::Cg | Method::Minres) && !facts.suits_cholesky() {
            return None;
        }
        let storage = (asked.store)(&Outlook { mesh, layout, precision, level: None })?;
        if storage == StorageKind::Rows && precision != Precision::F64 {
            return None;
        }
        let constant = storage == StorageKind::Slices && mesh.repeats;
        let LikelySize { pattern, entries, grows } = recipe.predicted(facts);
        let work = Work {
            constant,
            constant_factor: constant,
            method,
            storage,
            precision,
            rows: facts.rows,
            entries: facts.entries,
            swept: 2.0 * entries,
            applied: Applied::Products,
            without_product: false,
        };
        Some(Proposal {
            method,
            preconditioner: kind,
            precision,
            storage,
            entries,
            // BiCGStab applies A and M twice in an iteration.
            iterations: iterations * if method == Method::BiCgStab { 0.5 } else { 1.0 },
            set_up: machine.inverse(storage, (facts.rows, facts.entries), pattern, grows),
            iteration: machine.iteration(&work),
        })
    }

    fn in_f32(&self) -> &'static str {
        if self.precision == Precision::Mixed { " in f32" } else { "" }
    }

    /// Why it is taken, the others being these.
    pub(crate) fn reason(&self, all: &[Self], machine: &Machine) -> Reason {
        let text = match all.len() {
            1 => format!("{} is all that is proposed for it", self.preconditioner),
            count => format!(
                "of {count} proposals {}{} is predicted to take the least time on the machine `{}`",
                self.preconditioner,
                self.in_f32(),
                machine.name
            ),
        };
        Reason { code: ReasonCode::LeastPredicted, text }
    }
}

impl Display for Proposal {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}{} {}: set-up {}, {:.0} iterations of {}",
            self.preconditioner,
            self.in_f32(),
            self.storage,
            milliseconds(self.set_up),
            self.iterations,
            milliseconds(self.iteration)
        )
    }
}

fn milliseconds(nanoseconds: f64) -> String {
    let ms = nanoseconds * 1e-6;
    let digits = if ms >= 10.0 {
        0
    } else if ms >= 1.0 {
        1
    } else {
        3
    };
    format!("{ms:.digits$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{DEVICE, REFERENCE};
    use crate::gallery::Problem;
    use crate::solver::STORES;
    use crate::store::likely_kind;

    fn asked<'a>(machine: &'a Machine, method: Method, precisions: &'a [Precision]) -> Asked<'a> {
        let store = &|outlook: &Outlook<'_>| likely_kind(STORES, outlook);
        Asked { machine, method, precisions, layout: Layout::Auto, expected: Expected::default(), store }
    }

    fn best(name: &str, method: Method) -> String {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        let facts = Facts { mesh: Some(Mesh::find(&a, true).0), ..Facts::of_matrix(&a) };
        let asked = asked(&REFERENCE, method, &[Precision::F64, Precision::Mixed]);
        let all = Proposal::all(&asked, &facts);
        assert!(all.is_sorted_by(|a, b| a.cost() <= b.cost()));
        format!("{} {:?}", all[0].preconditioner, all[0].precision)
    }

    /// What is the fastest on these, as the bench crate has measured.
    #[test]
    fn members_by_rule() {
        assert_eq!(best("poisson3d:50", Method::Cg), "mic(0,0.992) F64");
        assert_eq!(best("hpcg:40", Method::Cg), "mic(0,0.987) Mixed");
        assert_eq!(best("fem2d:100", Method::Cg).split('(').next(), Some("mic"));
        assert_eq!(best("apache:30", Method::Cg).split(',').next(), Some("mic(1"));
        assert_eq!(best("convection3d:30", Method::BiCgStab).split('(').next(), Some("milu"));
        assert_eq!(best("navierstokes3d:6", Method::BiCgStab), "ilu0 F64");
        assert_eq!(best("circuit:400", Method::Cg).split('(').next(), Some("ic"));
    }

    /// Where a wavefront is a launch, as a model: sweeps mostly wait.
    #[test]
    fn approximate_inverses_where_sweeps_wait() {
        for (name, method) in
            [("poisson3d:50", Method::Cg), ("fem2d:100", Method::Cg), ("convection3d:30", Method::BiCgStab)]
        {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let (mut mesh, grid) = Mesh::find(&a, true);
            mesh.count_wavefronts(&a, grid.as_ref().ok());
            let facts = Facts { mesh: Some(mesh), ..Facts::of_matrix(&a) };
            let all = Proposal::all(&asked(&DEVICE, method, &[Precision::F64]), &facts);
            assert!(all[0].preconditioner.to_string().contains("fsai"), "{name}: {}", all[0]);
            let all = Proposal::all(&asked(&REFERENCE, method, &[Precision::F64]), &facts);
            assert!(!all[0].preconditioner.to_string().contains("fsai"), "{name}: {}", all[0]);
        }
    }

    #[test]
    fn the_relaxation_has_two_digits() {
        let of = |across| {
            let mesh = Mesh {
                grid: None,
                no_grid: None,
                block: 1,
                across,
                spread: 1.0,
                roughness: 0.0,
                fill: 1.4,
                is_constant: false,
                repeats: false,
                wavefronts: None,
            };
            Facts { mesh: Some(mesh), nearly_symmetric: true, ..Facts::default() }.relaxation()
        };
        assert_eq!((of(100), of(1000), of(3)), (0.998, 0.99998, 0.9));
    }
}
