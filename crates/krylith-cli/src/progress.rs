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

/// The residual on its way down to the tolerance, and the time that the rate so far leaves to go.
pub struct ResidualBar {
    bar: ProgressBar,
    started: std::time::Instant,
    first: Option<f64>,
    tolerance: f64,
}

impl ResidualBar {
    pub fn new(tolerance: f64) -> Self {
        let style = "solving {bar:40} {msg}";
        let style = ProgressStyle::with_template(style).expect("a valid template");
        let bar = ProgressBar::new(1000).with_style(style);
        ResidualBar { bar, started: std::time::Instant::now(), first: None, tolerance }
    }

    /// A relative residual at an iteration. Digits gained so far, of those wanted, are the share done.
    pub fn at(&mut self, iteration: usize, residual: f64) {
        let first = *self.first.get_or_insert(residual);
        let share = (first / residual).ln() / (first / self.tolerance).ln();
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let left = self.started.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-3);
        self.bar.set_position((share * 1000.0) as u64);
        self.bar
            .set_message(format!("iteration {iteration}, residual {residual:.1e}, about {left:.0} s left"));
    }
}

impl Drop for ResidualBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
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
