//! Preconditioners that learn: incomplete factors whose numbers are trained instead of eliminated.
//!
//!   M = L Lᵀ on a fixed pattern;  minimise ‖A X − L Lᵀ X‖² over the entries of L, for samples X
//!
//! The samples decide which modes M gets right. Booth, Sun & Garnett draw them at random ([`Training::paper`]); conjugate gradients compute pairs
//! (p, A p) in every iteration, which cost a copy and weigh modes as the iteration needs it ([`Learned`]).
//!
//! A trained factor is handed to a solver as a matrix: P = L̂ + D + L̂ᵀ with D = diag(l²ᵢᵢ) and l̂ᵢⱼ = lᵢⱼ lⱼⱼ has
//! (D + L̂) D⁻¹ (D + L̂ᵀ) = L Lᵀ, so symmetric Gauss–Seidel on P (`ssor`) is M. P has the pattern of A, or of whatever the factor was
//! trained on. So every storage that has sweeps on that pattern carries a trained factor, it can be saved in any format for matrices,
//! and other libraries that take a matrix for the preconditioner can use it.
//!
//! Everything is in units of A scaled to a unit diagonal. Sums are in a fixed order and random numbers depend on the seed and their place
//! alone: training gives the same bits on any number of threads.
//!
//! Reference: Booth, Sun & Garnett 2024, Neural acceleration of incomplete factorization preconditioning, doi:10.1007/s00521-024-10392-x.

pub use crate::solver::learning::{Learned, Learning, LearningReport, paired, train_by_solving};
pub use crate::training::{
    Optimizer, Progress, Samples, Start, Trained, TrainedLu, Training, train, train_lu,
};
