//! One result for all processes.

use super::Space;
use crate::error::{BackendError, SetupError};

/// The result of all processes of a space: an error that is not about a row if one of them has one, else the missing diagonal entry or the bad pivot of the
/// smallest row.
pub(crate) fn agree<S: Space<Real = f64>>(space: &S, own: Result<(), SetupError>) -> Result<(), SetupError> {
    let mine = match &own {
        Ok(()) => None,
        Err(SetupError::MissingDiagonal { row }) => Some((2 * row + 1, f64::NAN)),
        Err(SetupError::BadPivot { row, value }) => Some((2 * row + 2, *value)),
        Err(_) => Some((0, f64::NAN)),
    };
    let is_of_a_row =
        matches!(own, Ok(()) | Err(SetupError::BadPivot { .. } | SetupError::MissingDiagonal { .. }));
    match space.first(mine)? {
        _ if !is_of_a_row => own,
        None => own,
        Some((0, _)) => {
            Err(BackendError::Failed { what: "another process could not set up its part".into() }.into())
        }
        Some((place, _)) if place % 2 == 1 => Err(SetupError::MissingDiagonal { row: place / 2 }),
        Some((place, value)) => Err(SetupError::BadPivot { row: place / 2 - 1, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Threads;

    #[test]
    fn alone_a_process_keeps_its_own_result() {
        let space = Threads::<f64>::new(1);
        let bad = SetupError::BadPivot { row: 0, value: -1.0 };
        for own in [Ok(()), Err(bad), Err(SetupError::PatternChanged)] {
            assert_eq!(agree(&space, own.clone()), own);
        }
    }
}
