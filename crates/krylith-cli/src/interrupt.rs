//! Ctrl-C: what runs ends with what it has; where there is nothing yet, and for whoever presses twice, the command ends at once and says so.

use crate::Failure;
use crate::report::complain;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The exit status of what was interrupted.
pub const INTERRUPTED: u8 = 130;

/// Nothing to keep yet.
const BEFORE: u8 = 0;
/// An iteration that looks whether it is to end.
const RUNNING: u8 = 1;
/// It was asked to end.
const ENDING: u8 = 2;
/// The results are being written.
const WRITING: u8 = 3;
/// Somebody does not want to wait for that.
const WRITING_IMPATIENTLY: u8 = 4;

/// How far the command is, for whoever presses Ctrl-C.
#[derive(Clone)]
pub struct Phase(Arc<AtomicU8>);

impl Phase {
    /// Listens from now on. `at_first` is said when something that runs is asked to end, `lost` is called before the command ends at once.
    pub fn listen(at_first: Option<&'static str>, lost: impl Fn() + Send + 'static) -> Result<Self, Failure> {
        let phase = Phase(Arc::new(AtomicU8::new(BEFORE)));
        let heard = phase.clone();
        ctrlc::set_handler(move || {
            if heard.replace(RUNNING, ENDING) {
                at_first.into_iter().for_each(complain);
            } else if !heard.replace(WRITING, WRITING_IMPATIENTLY) {
                if heard.0.load(Ordering::Relaxed) != WRITING_IMPATIENTLY {
                    lost();
                }
                std::process::exit(i32::from(INTERRUPTED));
            }
        })?;
        Ok(phase)
    }

    /// Whether the phase was this one, and is the next now.
    fn replace(&self, now: u8, next: u8) -> bool {
        self.0.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// From here on what runs looks whether it is to end.
    pub fn run(&self) {
        self.0.store(RUNNING, Ordering::Relaxed);
    }

    /// Whether what runs is to end.
    pub fn is_ending(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDING
    }

    /// From here on ending at once would lose what was reached: the first Ctrl-C lets it be written.
    pub fn write(&self) {
        self.0.store(WRITING, Ordering::Relaxed);
    }
}
