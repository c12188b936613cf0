//! Beside programs that keep every core busy, a second thread must not make a solve slower.

use krylith::gallery::Problem;
use krylith::{Csr, Solver};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

/// Threads that compute without end, until dropped.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn new(threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        Load { threads: (0..threads).map(busy).collect(), stop }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Two kinds of waiting: sweeps on a grid in which members wait for each other's progress, and sweeps by levels or blocks.
#[test]
fn two_threads_take_at_most_twice_the_time_of_one() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let problems: [Csr<f64>; 2] =
        ["poisson2d:200", "fem2d:150"].map(|name| name.parse::<Problem>().unwrap().generate().unwrap());
    let _load = Load::new(cores);
    for a in problems {
        let b = vec![1.0; a.nrows()];
        let run = |threads: usize| {
            let began = Instant::now();
            let solution = Solver::new().threads(threads).solve(&a, &b).unwrap();
            solution.report.require_converged().unwrap();
            (began.elapsed(), solution.x)
        };
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (time, x) = run(1);
            one.push(time);
            let (time, same) = run(2);
            two.push(time);
            assert!(x == same, "the bits depend on how many threads there were");
        }
        println!("one thread: {one:.0?}\ntwo threads: {two:.0?}");
        let (one, two) = (median(one), median(two));
        assert!(two <= 2 * one, "two threads {two:?}, one thread {one:?}");
    }
}
