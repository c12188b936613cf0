//! What is solved to measure a machine.

use crate::options::StorageKind::{self, Blocks, Grid, Rows, Slices};

/// A problem, the storage that it runs in, and its members.
pub(super) struct Trial {
    pub(super) storage: StorageKind,
    pub(super) problem: &'static str,
    pub(super) members: &'static [&'static str],
}

const fn of(storage: StorageKind, problem: &'static str, members: &'static [&'static str]) -> Trial {
    Trial { storage, problem, members }
}

/// On threads.
pub(super) const TRIALS: &[Trial] = &[
    of(Grid, "poisson3d:80", &["ic0", "ic(1)"]),
    of(Grid, "poisson2d:700", &["ic0", "ic(1)"]),
    of(Grid, "jump3d:70", &["ic0", "ic(1)", "ic(2)"]),
    of(Grid, "parabolic:500", &["ic0", "ic(1)"]),
    of(Blocks, "navierstokes3d:16", &["jacobi", "ilu0"]),
    of(Blocks, "cahnhilliard3d:24", &["jacobi", "ilu0"]),
    of(Slices, "jump3d:70", &["ic0", "ic(1)"]),
    of(Slices, "fem2d:400", &["ic0", "ic(1)", "ic(2)"]),
    of(Rows, "fem2d:400", &["ic0", "ic(1)"]),
    of(Rows, "jump3d:60", &["ic0", "ic(1)"]),
    of(Rows, "elasticity3d:22", &["ic0"]),
    of(Slices, "elasticity3d:22", &["ic0"]),
    of(Rows, "circuit:350", &["ic0", "ic(1)", "ic(2)"]),
];

/// Those with many wavefronts for their size.
pub(super) const SMALL: &[Trial] = &[
    of(Grid, "poisson2d:120", &["ic0", "ic(1)"]),
    of(Grid, "jump3d:20", &["ic0", "ic(1)"]),
    of(Blocks, "navierstokes3d:6", &["ilu0"]),
    of(Slices, "fem2d:100", &["ic0", "ic(1)"]),
    of(Rows, "fem2d:100", &["ic0", "ic(1)"]),
];

/// Approximate inverses, unfiltered so that their entries are those of the pattern, of matrices whose rows differ.
pub(super) const INVERSES: &[(&str, &[&str])] = &[
    ("fem2d:300", &["fsai(0.1,2,0)", "fsai(0.05,3,0)", "afsai(5,3,0.001,0)"]),
    ("jump3d:50", &["fsai(0.1,3,0)", "fsai(0,2,0)", "afsai(5,3,0.001,0)"]),
    ("pflow:30x30x12", &["fsai(0.05,2,0)", "fsai(0,1,0)", "afsai(5,3,0.001,0)"]),
];

/// The same of constant coefficients: what differs between slices is hardly read.
pub(super) const REPEATED: &[(&str, &str)] = &[
    ("elasticity3d:24", "fsai(0,1,0)"),
    ("hpcg:50", "fsai(0,1,0)"),
    ("poisson3d:80", "fsai(0,2,0)"),
    ("poisson2d:700", "fsai(0,3,0)"),
];

/// Complete factors.
pub(super) const DIRECT: &[(&str, &str)] = &[
    ("poisson2d:200", "cholesky"),
    ("fem2d:250", "cholesky"),
    ("poisson3d:24", "cholesky"),
    ("poisson2d:150", "lu"),
    ("convection3d:20", "lu"),
    ("circuit:150", "lu"),
];

/// On a device, which keeps every matrix in its own way: with and without sweeps and products of M. The last ones are small, so that their sweeps mostly wait.
pub(super) const ON_DEVICE: &[Trial] = &[
    of(Rows, "poisson3d:60", &["none", "jacobi", "ic0", "fsai(0,1,0)"]),
    of(Rows, "poisson2d:600", &["jacobi", "ic0", "ic(1)"]),
    of(Rows, "jump3d:50", &["jacobi", "ic0", "ic(1)", "fsai(0,2,0)"]),
    of(Rows, "fem2d:300", &["jacobi", "ic0", "ic(1)", "fsai(0.1,2,0)"]),
    of(Rows, "elasticity3d:20", &["jacobi", "ic0"]),
    of(Rows, "convection3d:50", &["jacobi", "ilu0", "fsai(0,1,0)"]),
    of(Rows, "poisson2d:100", &["ic0", "ic(1)"]),
    of(Rows, "fem2d:100", &["ic0", "ic(1)"]),
    of(Rows, "jump3d:20", &["ic0"]),
];
