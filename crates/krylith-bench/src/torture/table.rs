//! The table of axes: values, and how often each is drawn.

use std::sync::LazyLock;

/// One property of a case, with its values and how often each is drawn.
pub struct Axis {
    pub name: &'static str,
    pub values: &'static [(&'static str, u32)],
}

/// Which axis; the index into [`AXES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    Family,
    Problem,
    Size,
    Scale,
    Rhs,
    Guess,
    Sequence,
    Preconditioner,
    Method,
    Reorder,
    Matching,
    Precision,
    Layout,
    Schedule,
    Recovery,
    Threads,
    Rtol,
    Atol,
    Iterations,
    Observer,
    Memory,
    NullSpace,
    NearNull,
}

impl Of {
    /// The name of value `index`.
    pub fn name(self, index: usize) -> &'static str {
        AXES[self as usize].values[index].0
    }

    /// The index of a value by name.
    pub fn index(self, name: &str) -> usize {
        let found = AXES[self as usize].values.iter().position(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("{self:?} has no value {name}"))
    }
}

/// Every way to write a preconditioner, from the library's own list, those without numbers more often; and callers' own.
fn preconditioners() -> &'static [(&'static str, u32)] {
    static NAMES: LazyLock<Vec<(String, u32)>> = LazyLock::new(|| {
        let usages = krylith::precond::registry::preconditioners().iter().map(|info| info.usage());
        let ways = usages.flat_map(|usage| usage.split(", ").map(String::from).collect::<Vec<_>>());
        let known = ways.map(|way| (way.clone(), if way.contains('(') { 1 } else { 2 }));
        known.chain(super::own::NAMES.map(|(name, weight)| (name.into(), weight))).collect()
    });
    static VALUES: LazyLock<Vec<(&'static str, u32)>> =
        LazyLock::new(|| NAMES.iter().map(|(name, weight)| (name.as_str(), *weight)).collect());
    &VALUES
}

/// How many axes there are.
pub const COUNT: usize = 23;

/// Every axis, in the order of [`Of`].
pub static AXES: LazyLock<[Axis; COUNT]> = LazyLock::new(axes);

fn axes() -> [Axis; COUNT] {
    [
        Axis {
            name: "family",
            values: &[
                ("sparse", 3),
                ("dominant", 4),
                ("symmetric", 3),
                ("spd", 4),
                ("nearly-symmetric", 3),
                ("one-sided", 3),
                ("zero-diagonal", 3),
                ("empty-rows", 2),
                ("duplicates", 2),
                ("dense-rows", 2),
                ("dense", 2),
                ("diagonal", 2),
                ("triangular", 2),
                ("permuted-triangular", 2),
                ("arrow", 2),
                ("negative-definite", 2),
                ("saddle-point", 3),
                ("skew-symmetric", 2),
                ("blocks", 4),
                ("band", 3),
                ("not-square", 2),
                ("outer-product", 4),
                ("outer-square", 4),
                ("equal-rows", 4),
                ("equal-columns", 4),
                ("perturbed", 8),
                ("nearly-equal", 6),
                ("graded", 4),
                ("shifted-laplacian", 6),
                ("catalogue", 8),
                ("grid", 3),
                ("grid-removed", 3),
                ("grid-added", 3),
                ("grid-changed", 3),
                ("grid-permuted-rows", 2),
                ("grid-permuted", 2),
                ("grid-point-eliminated", 3),
                ("grid-wrapped", 3),
                ("grid-zero-diagonal", 2),
            ],
        },
        Axis {
            name: "problem",
            values: &[
                ("none", 0),
                ("poisson2d", 3),
                ("poisson3d", 3),
                ("hpcg", 1),
                ("convection3d", 2),
                ("jump3d", 2),
                ("elasticity2d", 2),
                ("elasticity3d", 2),
                ("navierstokes3d", 1),
                ("euler3d", 2),
                ("cahnhilliard3d", 1),
                ("fem2d", 1),
                ("ecology", 1),
                ("parabolic", 1),
                ("apache", 1),
                ("thermal", 1),
                ("circuit", 1),
                ("atmosmod", 1),
                ("pflow", 1),
                ("offshore", 1),
                ("shell", 1),
                ("thermomech", 1),
                ("cage", 1),
                ("neumann2d", 1),
                ("neumann3d", 1),
                ("elasticity3d-free", 1),
                ("graph-laplacian", 1),
            ],
        },
        Axis {
            name: "size",
            values: &[
                ("0", 2),
                ("1", 3),
                ("2-8", 14),
                ("9-64", 20),
                ("65-400", 16),
                ("2049-4000", 3),
                ("of the file", 0),
            ],
        },
        Axis {
            name: "scale",
            values: &[
                ("as-is", 18),
                ("all", 4),
                ("rows", 4),
                ("columns", 4),
                ("both", 4),
                ("few", 4),
                ("zeros", 3),
                ("wide", 3),
                ("not-finite", 2),
            ],
        },
        Axis {
            name: "rhs",
            values: &[
                ("ones", 8),
                ("range", 6),
                ("random", 8),
                ("unit", 4),
                ("zero", 2),
                ("huge-200", 3),
                ("huge-300", 3),
                ("tiny-162", 3),
                ("tiny-200", 3),
                ("tiny-300", 3),
                ("mixed", 3),
                ("not-finite", 1),
                ("wrong-length", 1),
            ],
        },
        Axis {
            name: "guess",
            values: &[
                ("zero", 12),
                ("random", 8),
                ("ones", 3),
                ("huge", 4),
                ("mixed", 3),
                ("not-finite", 1),
                ("wrong-length", 1),
            ],
        },
        Axis {
            name: "sequence",
            values: &[
                ("one", 10),
                ("several", 3),
                ("refactor", 3),
                ("stale", 2),
                ("other-matrix", 2),
                ("transposed", 3),
            ],
        },
        Axis { name: "preconditioner", values: preconditioners() },
        Axis {
            name: "method",
            values: &[
                ("auto", 6),
                ("cg", 5),
                ("bicgstab", 5),
                ("gmres(0)", 1),
                ("gmres(1)", 1),
                ("gmres(few)", 2),
                ("gmres(30)", 2),
                ("gmres(n+)", 2),
                ("fgmres(0)", 1),
                ("fgmres(1)", 1),
                ("fgmres(few)", 2),
                ("fgmres(n+)", 2),
                ("minres", 5),
            ],
        },
        Axis { name: "reorder", values: &[("natural", 8), ("rcm", 3), ("amd", 3), ("nd", 2), ("colour", 3)] },
        Axis { name: "matching", values: &[("auto", 3), ("on", 2), ("off", 2)] },
        Axis { name: "precision", values: &[("f64", 3), ("mixed", 2), ("f32", 2)] },
        Axis { name: "layout", values: &[("auto", 3), ("slices", 2), ("rows", 2)] },
        Axis { name: "schedule", values: &[("auto", 2), ("levels", 1), ("point-to-point", 1)] },
        Axis { name: "recovery", values: &[("on", 3), ("off", 1)] },
        Axis {
            name: "threads",
            values: &[("1", 4), ("1+2", 12), ("1+3", 4), ("1+8", 2), ("2+3", 3), ("2+8", 1), ("3+8", 1)],
        },
        Axis {
            name: "rtol",
            values: &[
                ("1e-2", 1),
                ("1e-4", 1),
                ("1e-6", 1),
                ("1e-8", 3),
                ("1e-10", 2),
                ("1e-12", 2),
                ("1e-14", 2),
                ("0", 1),
            ],
        },
        Axis { name: "atol", values: &[("0", 6), ("1e-300", 1), ("1e-170", 1), ("1e-12", 1), ("1e-3", 1)] },
        Axis { name: "iterations", values: &[("0", 1), ("1", 1), ("few", 2), ("many", 12)] },
        Axis { name: "observer", values: &[("none", 9), ("stops", 1)] },
        Axis { name: "memory", values: &[("default", 19), ("tiny", 1)] },
        Axis { name: "null-space", values: &[("auto", 12), ("ignore", 2), ("constant", 2), ("vectors", 3)] },
        Axis { name: "near-null", values: &[("none", 12), ("columns", 4), ("wrong-length", 1)] },
    ]
}
