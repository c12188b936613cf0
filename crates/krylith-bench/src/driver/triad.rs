//! The rate of the memory: `a[i] = b[i] + s * c[i]` in `f64`, 24 bytes per element, each thread on a part of its own that it was
//! the first to write.
//!
//! Reference: McCalpin's STREAM. The write-allocate of a is not counted, as there.

use super::{Line, limited, outcome};
use crate::Failure;
use clap::Args;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Options of the hidden subcommand `compare-triad`.
#[derive(Args)]
pub struct TriadOptions {
    /// Bytes of the three arrays together
    bytes: usize,
    /// Threads
    #[arg(long)]
    threads: usize,
}

/// Seconds that the triad may take.
const LIMIT: u64 = 60;

/// Gigabytes per second of the triad, in a process of its own. `bytes` is what its three arrays take together.
pub fn rate(bytes: u64, threads: usize) -> Result<f64, Failure> {
    let mut command = limited(LIMIT);
    command.arg(std::env::current_exe()?).arg("compare-triad").arg(bytes.to_string());
    let line = outcome(command.args(["--threads", &threads.to_string()]), LIMIT)??;
    let seconds = line.kernels.get("seconds_a_byte").copied().flatten();
    Ok(1e-9 / seconds.ok_or("the triad has no seconds")?)
}

/// Runs the triad in this process and prints a driver's line.
pub fn once(options: &TriadOptions) -> Result<(), Failure> {
    let elements = (options.bytes / 24).max(options.threads);
    let seconds = least_seconds(elements, options.threads, Duration::from_secs(1));
    let line = Line {
        peer: "triad".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        config: format!("{} bytes", 24 * elements),
        threads: options.threads,
        status: "measured".into(),
        kernels: BTreeMap::from([("seconds_a_byte".into(), Some(seconds / (24 * elements) as f64))]),
        ..Line::default()
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

/// The least seconds of one pass over `elements`: at least 20 passes and this long.
fn least_seconds(elements: usize, threads: usize, duration: Duration) -> f64 {
    // The system gives untouched pages.
    let array = || vec![0.0f64; elements];
    let (mut a, mut b, mut c) = (array(), array(), array());
    let length = elements.div_ceil(threads);
    let parts = a.chunks_mut(length).zip(b.chunks_mut(length)).zip(c.chunks_mut(length));
    let mut parts: Vec<_> = parts.map(|((a, b), c)| Part { a, b, c }).collect();
    let barrier = Barrier::new(parts.len());
    let more = AtomicBool::new(true);
    let mut least = f64::INFINITY;
    std::thread::scope(|scope| {
        let mut own = parts.remove(0);
        for mut other in parts {
            let (barrier, more) = (&barrier, &more);
            scope.spawn(move || {
                other.touch();
                while {
                    barrier.wait();
                    more.load(Ordering::Relaxed)
                } {
                    other.pass();
                    barrier.wait();
                }
            });
        }
        own.touch();
        let began = Instant::now();
        let mut passes = 0;
        while passes < 20 || began.elapsed() < duration {
            barrier.wait();
            let started = Instant::now();
            own.pass();
            barrier.wait();
            least = least.min(started.elapsed().as_secs_f64());
            passes += 1;
        }
        more.store(false, Ordering::Relaxed);
        barrier.wait();
    });
    least
}

/// What one thread works on.
struct Part<'a> {
    a: &'a mut [f64],
    b: &'a mut [f64],
    c: &'a mut [f64],
}

impl Part<'_> {
    fn touch(&mut self) {
        self.a.fill(0.0);
        self.b.fill(1.0);
        self.c.fill(2.0);
    }

    fn pass(&mut self) {
        triad(self.a, self.b, self.c, black_box(3.0));
        black_box(&mut *self.a);
    }
}

fn triad(a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + s * c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_does_its_part() {
        for (elements, threads) in [(1000, 1), (1000, 2), (4, 3)] {
            let seconds = least_seconds(elements, threads, Duration::ZERO);
            assert!(seconds.is_finite() && seconds > 0.0);
        }
        let mut a = [0.0; 3];
        triad(&mut a, &[1.0, 2.0, 3.0], &[1.0, 0.0, -1.0], 3.0);
        assert_eq!(a, [4.0, 2.0, 0.0]);
    }
}
