//! From a bad pivot to a factor: a growing shift of the diagonal.
//!
//! A + α S with S the sizes of the rows (for Cholesky the diagonal of A: then this is the factor of the matrix scaled to a unit
//! diagonal, plus α I) has an incomplete Cholesky factor once α is large enough, because a diagonally dominant matrix has one
//! (Manteuffel 1980, doi:10.1090/S0025-5718-1980-0559197-0). α grows by tens from [`FIRST`] on; between the largest that failed
//! and the smallest that worked it is then refined by geometric means to within a factor of 10^(1/4), the smallest that works
//! being nearest to A. What worked last is where the next matrix of a sequence begins.

use crate::error::SetupError;
use crate::outcome::Recovery;
use std::fmt::Display;

/// The first shift.
const FIRST: f64 = 1e-3;
/// Shifts larger than this are not tried: M is a diagonal then.
const LARGEST: f64 = 1e3;
/// Geometric means tried.
const MEANS: usize = 2;

/// Calls `attempt` with shifts until one works, and leaves it with the smallest that was found to. Every attempt that fails is
/// recorded with its row and value. Errors other than bad pivots are returned at once.
pub(super) fn find_shift(
    name: impl Display,
    begin: f64,
    mut attempt: impl FnMut(f64) -> Result<(), SetupError>,
    recovery: &mut Vec<Recovery>,
) -> Result<f64, SetupError> {
    let mut record = |error: SetupError, action: String| match error {
        SetupError::BadPivot { row, value } => {
            recovery.push(Recovery {
                failed: format!("{name}: {error}"),
                row: Some(row),
                value: Some(value),
                action,
            });
            Ok(error)
        }
        other => Err(other),
    };
    let mut failed = begin;
    let mut works = match attempt(begin) {
        Ok(()) => return Ok(begin),
        Err(mut error) => loop {
            let next = if failed < FIRST { FIRST } else { 10.0 * failed };
            if next > LARGEST {
                return Err(error);
            }
            record(error, format!("the diagonal is shifted by {next:.1e} of its size"))?;
            match attempt(next) {
                Ok(()) => break next,
                Err(another) => (failed, error) = (next, another),
            }
        },
    };
    // Without a lower bound, one that is small enough to make no difference.
    failed = f64::max(failed, works / 100.0);
    let mut spoilt = false;
    for _ in 0..MEANS {
        let mean = (failed * works).sqrt();
        let result = attempt(mean);
        spoilt = result.is_err();
        match result {
            Ok(()) => works = mean,
            Err(error) => {
                record(
                    error,
                    format!(
                        "the diagonal is shifted by {works:.1e} of its size, {mean:.1e} being too little"
                    ),
                )?;
                failed = mean;
            }
        }
    }
    if spoilt {
        attempt(works)?;
    }
    Ok(works)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(smallest: f64, begin: f64) -> (Result<f64, SetupError>, Vec<f64>, Vec<Recovery>) {
        let (mut tried, mut recovery) = (Vec::new(), Vec::new());
        let attempt = |shift: f64| {
            tried.push(shift);
            if shift >= smallest {
                Ok(())
            } else {
                Err(SetupError::BadPivot { row: 7, value: shift - smallest })
            }
        };
        let found = find_shift("ic0", begin, attempt, &mut recovery);
        (found, tried, recovery)
    }

    #[test]
    fn the_smallest_is_found_nearly_with_few_attempts() {
        for smallest in [3e-3, 0.02, 0.5, 4.0, 90.0] {
            let (found, tried, recovery) = search(smallest, 0.0);
            let found = found.unwrap();
            assert!(found >= smallest && found < 2.0 * smallest, "{found} for {smallest}");
            assert_eq!(*tried.last().unwrap(), found);
            assert!(tried.len() <= 10, "{tried:?}");
            assert!(recovery.iter().all(|r| r.row == Some(7) && r.value.unwrap() < 0.0));
            assert_eq!(recovery.len(), tried.iter().filter(|&&t| t < smallest).count());
        }
    }

    #[test]
    fn nothing_is_done_where_nothing_is_wrong() {
        assert_eq!(search(0.0, 0.0), (Ok(0.0), vec![0.0], vec![]));
        assert_eq!(search(0.1, 0.2), (Ok(0.2), vec![0.2], vec![]));
    }

    #[test]
    fn it_ends() {
        let (found, tried, _) = search(f64::INFINITY, 0.0);
        assert_eq!(found, Err(SetupError::BadPivot { row: 7, value: f64::NEG_INFINITY }));
        assert_eq!(tried.len(), 8);
    }
}
