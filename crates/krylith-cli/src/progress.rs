//! What a person at a terminal sees of a long phase; elsewhere nothing is shown.
//!
//! A line fits into a terminal of 40 columns and more: bars take what the words leave, and words are cut where they are too long.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Words of fixed lengths around a bar: 38 columns, and two for the bar.
const BYTES: &str = "{prefix} {wide_bar} {percent:>3} % {bytes_per_sec:>13!} {eta:>4!} left";
/// 36 columns of words, and three for the bar.
const RESIDUAL: &str = "{wide_bar} {msg:36!}";
const SPINNER: &str = "{spinner} {elapsed:>4!} {wide_msg}";

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.with_style(ProgressStyle::with_template(template).expect("a valid template"))
}

/// A bar over bytes, with the time left.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(phase: &'static str) -> Self {
        Bar(styled(ProgressBar::new(0).with_prefix(phase), BYTES))
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
    started: Instant,
    first: Option<f64>,
    tolerance: f64,
}

impl ResidualBar {
    pub fn new(tolerance: f64) -> Self {
        let bar = styled(ProgressBar::new(1000), RESIDUAL);
        ResidualBar { bar, started: Instant::now(), first: None, tolerance }
    }

    /// A relative residual at an iteration. Digits gained so far, of those wanted, are the share done.
    pub fn at(&mut self, iteration: usize, residual: f64) {
        let first = *self.first.get_or_insert(residual);
        let share = (first / residual).ln() / (first / self.tolerance).ln();
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let left = self.started.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-3);
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(format!("iteration {iteration}: {residual:.1e}, {} left", duration(left)));
    }
}

impl Drop for ResidualBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Seconds in at most two digits and a unit, while that is possible.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// Something that turns while a phase of unknown length runs.
pub struct Spinner(ProgressBar);

pub fn spinner(phase: &str) -> Spinner {
    let bar = styled(ProgressBar::new_spinner().with_message(phase.to_owned()), SPINNER);
    bar.enable_steady_tick(Duration::from_millis(120));
    Spinner(bar)
}

impl Spinner {
    /// What is going on now.
    pub fn say(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::io::Result;
    use std::sync::{Arc, Mutex};

    /// A terminal that keeps the longest line and the last one that was not blank.
    #[derive(Debug, Clone)]
    struct Terminal {
        width: u16,
        seen: Arc<Mutex<(String, usize, String)>>,
    }

    impl Terminal {
        fn new(width: u16) -> Self {
            Terminal { width, seen: Arc::default() }
        }

        fn show(&self, bar: &ProgressBar) {
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(self.clone())));
        }

        /// Columns of the longest line, and the text of the last one.
        fn seen(&self) -> (usize, String) {
            self.end_line();
            let seen = self.seen.lock().unwrap();
            (seen.1, seen.2.clone())
        }

        fn end_line(&self) {
            let (line, longest, last) = &mut *self.seen.lock().unwrap();
            *longest = (*longest).max(line.trim_end().chars().count());
            if !line.trim().is_empty() {
                last.clone_from(line);
            }
            line.clear();
        }
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.width
        }
        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> Result<()> {
            self.write_str(text)?;
            self.end_line();
            Ok(())
        }
        fn write_str(&self, text: &str) -> Result<()> {
            self.seen.lock().unwrap().0.push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> Result<()> {
            self.end_line();
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn residuals_fit_into_narrow_terminals() {
        for width in [40, 80, 200] {
            let terminal = Terminal::new(width);
            let mut bar = ResidualBar::new(1e-8);
            terminal.show(&bar.bar);
            for (iteration, residual) in
                [(1, 1.0), (12_345, 1.2e-3), (10_000_000, 1.2e-100), (usize::MAX, 1e-300)]
            {
                bar.at(iteration, residual);
                bar.bar.force_draw();
            }
            let (longest, last) = terminal.seen();
            assert!(longest <= usize::from(width), "{longest} of {width}: {last}");
            assert!(last.contains("iteration 18446744073709551615"), "{last}");
        }
        let terminal = Terminal::new(40);
        let mut bar = ResidualBar::new(1e-8);
        terminal.show(&bar.bar);
        bar.at(12_345, 1.2e-3);
        bar.bar.force_draw();
        let (_, last) = terminal.seen();
        assert!(last.contains("iteration 12345: 1.2e-3, ") && last.contains(" left"), "{last}");
    }

    #[test]
    fn bytes_and_phases_fit_into_narrow_terminals() {
        let terminal = Terminal::new(40);
        let bar = Bar::new("reading");
        terminal.show(&bar.0);
        for done in [0, 1, 999_999_999_999, 1_000_000_000_000] {
            bar.at(done, 1_000_000_000_000);
            bar.0.force_draw();
        }
        let (longest, last) = terminal.seen();
        assert!(longest <= 40 && last.contains("reading") && last.contains("100 %"), "{longest}: {last}");
        let terminal = Terminal::new(40);
        let turning = spinner(&format!("writing {}", "long/".repeat(40)));
        terminal.show(&turning.0);
        turning.0.force_draw();
        let (longest, last) = terminal.seen();
        assert!(longest <= 40 && last.contains("writing long/"), "{longest}: {last}");
    }

    #[test]
    fn durations_in_few_letters() {
        for (seconds, text) in [(0.2, "0 s"), (99.4, "99 s"), (100.0, "2 min"), (7200.0, "2 h")] {
            assert_eq!(duration(seconds), text);
        }
    }
}
