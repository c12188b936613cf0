//! Factors whose pattern follows the values: computed once by threshold, frozen for `refactor`.
//!
//! Thresholds and pivots compare entries of a row with each other, so they are measured in the scaled matrix R A C where a
//! matching has found scales. The factor of the unscaled matrix follows, since scaling moves through the triangles:
//! R A C = (I + L) D (I + U) gives A = (I + R⁻¹ L R) (R⁻¹ D C⁻¹) (I + C U C⁻¹). So the iteration runs on A, and its residual is
//! the user's.

use crate::elimination::Triangles;
use crate::error::SetupError;
use crate::matrix::Csr;
use crate::operator::SolverSpace;
use crate::outcome::Recovery;
use crate::precond::registry::{FillRule, PrecondSpec};
use crate::precond::threshold::{ByThreshold, IctOptions, IlutOptions, Rule, ict, ilut};
use crate::setup::{SetupContext, SetupRecorder};

/// The tolerance of column exchanges: a pivot may be this much smaller than the largest entry of its row.
const PERMTOL: f64 = 0.1;

/// Scales of rows and columns, in the order of the permuted matrix.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) rows: Vec<f64>,
    pub(crate) columns: Vec<f64>,
}

impl Scale {
    /// R A C.
    fn apply(&self, a: &Csr<f64>) -> Csr<f64> {
        let mut scaled = a.clone();
        // One after the other: the product of both scales may overflow where that of all three does not.
        multiply(&mut scaled, |i, _| self.rows[i]);
        multiply(&mut scaled, |_, j| self.columns[j]);
        scaled
    }
}

impl ByThreshold {
    /// The triangles of the matrix, unscaled, and the shift they needed. Columns are exchanged only where `scale` says that they
    /// may be.
    pub(crate) fn triangles<S: SolverSpace>(
        self,
        setup: &SetupContext<'_, S>,
        kind: &PrecondSpec,
        scale: Option<&Scale>,
        recorder: &mut SetupRecorder,
    ) -> Result<(Triangles<f64>, f64), SetupError> {
        let max_bytes = setup.limit();
        let a = setup.source;
        match self {
            ByThreshold::Ict(tau) => {
                let mut triangles = None;
                let attempt = |shift| {
                    let options = IctOptions { tau, p: None, shift, max_bytes };
                    triangles = Some(ict(a.view(), &options)?);
                    Ok(())
                };
                let shift = recorder.factor(setup.space, setup.attempts(kind), attempt)?;
                Ok((triangles.expect("the last attempt worked"), shift))
            }
            ByThreshold::Ilut(threshold) => {
                let scaled = scale.map(|s| s.apply(a));
                let b = scaled.as_ref().unwrap_or(a);
                let rule = match threshold.keep {
                    FillRule::Mean(p) => Rule::nvidia(b.view(), p),
                    FillRule::Largest(p) => Rule::Saad { p },
                    FillRule::Factor(factor) => Rule::FillFactor { factor },
                };
                let permtol = (threshold.pivoting && scale.is_some()).then_some(PERMTOL);
                let options = IlutOptions { rule, tau: threshold.tau, permtol, max_bytes };
                let mut triangles = recorder.factoring(|| ilut(b.view(), &options))?;
                if let Some((row, value)) = triangles.repairs.first {
                    let row = setup.rows.map_or(row, |rows| rows[row] as usize);
                    let count = triangles.repairs.count;
                    recorder.recovery.push(Recovery {
                        failed: format!("{kind}: {}", SetupError::BadPivot { row, value }),
                        row: Some(row),
                        value: Some(value),
                        action: format!(
                            "{count} pivots replaced by a small multiple of the size of their rows"
                        ),
                    });
                }
                if let Some(scale) = scale {
                    unscale(&mut triangles, scale);
                }
                Ok((triangles, 0.0))
            }
        }
    }
}

/// From the factor of R A C Q to that of A Q.
fn unscale(triangles: &mut Triangles<f64>, scale: &Scale) {
    let r = &scale.rows;
    let c: Vec<f64> = match &triangles.columns {
        Some(q) => q.old().iter().map(|&j| scale.columns[j as usize]).collect(),
        None => scale.columns.clone(),
    };
    multiply(&mut triangles.lower, |i, j| r[j] / r[i]);
    multiply(&mut triangles.upper, |i, j| c[i] / c[j]);
    for (i, inverse) in triangles.inverse.iter_mut().enumerate() {
        *inverse *= r[i] * c[i];
    }
}

/// Multiplies every entry by a factor of its place.
fn multiply(x: &mut Csr<f64>, factor: impl Fn(usize, usize) -> f64) {
    let pattern = std::sync::Arc::clone(x.pattern());
    let values = x.values_mut();
    for i in 0..pattern.nrows() {
        for k in pattern.row_range(i) {
            values[k] *= factor(i, pattern.col_idx()[k] as usize);
        }
    }
}
