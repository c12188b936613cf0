//! A whole solve in `f32`, refined to the tolerance of `f64`.
//!
//! A, its factor and the vectors of the method are in `f32`; the residual is recomputed in `f64`, and the correction is solved for
//! again until the answer is as accurate as asked. The certificate is that of every other solve.

use krylith::gallery::Problem;
use krylith::{Precision, Solver};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a = "jump3d:40".parse::<Problem>()?.generate()?;
    let b = vec![1.0; a.nrows()];
    for precision in [Precision::F64, Precision::Mixed, Precision::F32] {
        let report = Solver::new().rtol(1e-10).precision(precision).solve(&a, &b)?.report;
        report.require_converged()?;
        let megabytes = report.bytes as f64 / 1e6;
        println!("{precision:?}: {report}; {megabytes:.1} MB, {}", report.layout);
    }
    Ok(())
}
