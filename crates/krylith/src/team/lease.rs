//! Teams on loan: one that is given back is kept for the next solve.

use super::{Team, lock};
use std::sync::Mutex;

/// Idle teams that are kept.
const IDLE_TEAMS: usize = 8;

static IDLE: Mutex<Vec<Team>> = Mutex::new(Vec::new());

/// A team on loan; it goes back to the idle ones when dropped.
pub(crate) struct Lease {
    team: Option<Team>,
}

impl Lease {
    /// An idle team of this size, or a new one.
    pub(crate) fn new(size: usize) -> Self {
        let mut idle = lock(&IDLE);
        let found = idle.iter().position(|team| team.size() == size.max(1));
        let team = found.map(|k| idle.swap_remove(k));
        drop(idle);
        let team = team.unwrap_or_else(|| Team::new(size));
        team.history().reset();
        Lease { team: Some(team) }
    }
}

impl std::ops::Deref for Lease {
    type Target = Team;

    fn deref(&self) -> &Team {
        self.team.as_ref().expect("a lease holds its team until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut idle = lock(&IDLE);
        if idle.len() < IDLE_TEAMS {
            idle.extend(self.team.take());
        }
        // Otherwise the team ends after the lock is released: fields are dropped last.
        drop(idle);
    }
}
