//! The processes that share a space, and what they send each other besides vectors.

use super::Space;
use crate::error::BackendError;

/// Which of the processes that share a space this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// From 0.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Process {
    /// The only one.
    pub const ALONE: Process = Process { number: 0, count: 1 };

    /// Whether there is no other.
    pub fn is_alone(self) -> bool {
        self.count == 1
    }
}

/// What each process has, in their order: all have the same then.
pub(crate) fn gather<S: Space>(space: &S, own: Vec<u64>) -> Result<Vec<Vec<u64>>, BackendError> {
    let count = space.process().count;
    received(space, vec![own; count])
}

/// What the first process has.
pub(crate) fn from_first<S: Space>(space: &S, own: Vec<u64>) -> Result<Vec<u64>, BackendError> {
    let Process { number, count } = space.process();
    let messages = if number == 0 { vec![own; count] } else { vec![Vec::new(); count] };
    Ok(received(space, messages)?.swap_remove(0))
}

/// [`Space::exchange`], with an error unless there is a message from everyone.
pub(crate) fn received<S: Space>(space: &S, messages: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>, BackendError> {
    let count = space.process().count;
    let received = space.exchange(messages)?;
    if received.len() != count {
        let what = format!("messages from {} of {count} processes", received.len());
        return Err(BackendError::Failed { what });
    }
    Ok(received)
}

/// Whether this holds for all processes.
pub(crate) fn holds_everywhere<S: Space>(space: &S, holds: bool) -> Result<bool, BackendError> {
    let nothing = <S::Real as crate::scalar::Scalar>::ZERO;
    Ok(space.first((!holds).then_some((0, nothing)))?.is_none())
}
