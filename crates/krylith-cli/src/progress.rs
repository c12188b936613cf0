//! What a person at a terminal sees of a long phase; elsewhere nothing is shown.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A bar over bytes, with the time left.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(phase: &'static str) -> Self {
        let style = "{prefix} {bar:40} {percent:>3} %  {bytes_per_sec}  {eta} left";
        let bar = ProgressBar::new(0).with_prefix(phase);
        Bar(bar.with_style(ProgressStyle::with_template(style).expect("a valid template")))
    }

    pub fn at(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Something that turns while a phase of unknown length runs.
pub struct Spinner(ProgressBar);

pub fn spinner(phase: &str) -> Spinner {
    let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a valid template");
    let bar = ProgressBar::new_spinner().with_message(phase.to_owned()).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(120));
    Spinner(bar)
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
