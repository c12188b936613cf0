//! The rate of arithmetic: products and sums of packs of `f64` in registers, once fused and once apart, on every thread.
//!
//!   xₖ = xₖ a + b,  k = 1 … 12 packs
//!
//! Twelve independent recurrences hide the latency of both instructions on today's processors; each step of a lane counts as two
//! operations. With a < 1 the recurrence converges to b / (1 − a), so no number overflows or becomes subnormal.
#![allow(unsafe_code)]

use crate::Failure;
use crate::compare::record::Line;
use clap::Args;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Options of the hidden subcommand `structured-peak`.
#[derive(Args)]
pub struct PeakOptions {
    #[arg(long)]
    threads: usize,
}

/// Packs that are worked on at once.
const CHAINS: usize = 12;
/// Steps of a piece: some milliseconds.
const STEPS: usize = 2_000_000;
const PIECES: usize = 20;

/// Measures both rates and prints a driver's line: `fused` and `apart`, seconds an operation of all threads together.
pub fn once(options: &PeakOptions) -> Result<(), Failure> {
    let mut line = Line {
        peer: "peak".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        config: instructions().into(),
        threads: options.threads,
        status: "measured".into(),
        ..Line::default()
    };
    for (name, fused) in [("apart", false), ("fused", true)] {
        let seconds = seconds_an_operation(options.threads.max(1), fused, STEPS, PIECES);
        line.kernels.insert(name.into(), seconds);
    }
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

/// The least over pieces of all threads together; `None` where the processor cannot fuse.
fn seconds_an_operation(threads: usize, fused: bool, steps: usize, pieces: usize) -> Option<f64> {
    if fused && instructions() == "plain" {
        return None;
    }
    let barrier = Barrier::new(threads);
    let work = || {
        let mut least = f64::INFINITY;
        let mut operations = 0;
        for _ in 0..pieces {
            barrier.wait();
            let started = Instant::now();
            operations = run(fused, steps);
            barrier.wait();
            least = least.min(started.elapsed().as_secs_f64() / operations as f64);
        }
        debug_assert!(operations > 0);
        least / threads as f64
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        // The barrier makes all clocks agree but for its own cost.
        others.into_iter().for_each(|other| drop(other.join()));
        Some(own)
    })
}

/// The widest instructions that are used here.
fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "AVX2";
        }
    }
    "plain"
}

/// Steps all recurrences; the operations done.
fn run(fused: bool, steps: usize) -> usize {
    let lanes = match instructions() {
        #[cfg(target_arch = "x86_64")]
        "AVX-512" => {
            // SAFETY: the processor has AVX-512F.
            black_box(unsafe { wide::steps(fused, steps) });
            8
        }
        #[cfg(target_arch = "x86_64")]
        "AVX2" => {
            // SAFETY: the processor has AVX2 and FMA.
            black_box(unsafe { narrow::steps(fused, steps) });
            4
        }
        _ => {
            black_box(plain(steps));
            1
        }
    };
    2 * lanes * CHAINS * steps
}

/// One number a chain.
fn plain(steps: usize) -> f64 {
    let (a, b) = (black_box(0.5), black_box(1.0));
    let mut x: [f64; CHAINS] = std::array::from_fn(|k| k as f64);
    for _ in 0..steps {
        x.iter_mut().for_each(|x| *x = *x * a + b);
    }
    x.iter().sum()
}

#[cfg(target_arch = "x86_64")]
macro_rules! packs {
    ($module:ident, $features:literal, $splat:ident, $mul:ident, $add:ident, $fused:ident, $first:expr) => {
        mod $module {
            use super::CHAINS;
            use std::arch::x86_64::*;
            use std::hint::black_box;

            /// The sum of the first lanes, so that nothing is left out.
            #[target_feature(enable = $features)]
            pub fn steps(fused: bool, steps: usize) -> f64 {
                let (a, b) = ($splat(black_box(0.5)), $splat(black_box(1.0)));
                let mut x: [_; CHAINS] = std::array::from_fn(|k| $splat(k as f64));
                if fused {
                    for _ in 0..steps {
                        for k in 0..CHAINS {
                            x[k] = $fused(x[k], a, b);
                        }
                    }
                } else {
                    for _ in 0..steps {
                        for k in 0..CHAINS {
                            x[k] = $add($mul(x[k], a), b);
                        }
                    }
                }
                x.into_iter().map($first).sum()
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
packs!(wide, "avx512f", _mm512_set1_pd, _mm512_mul_pd, _mm512_add_pd, _mm512_fmadd_pd, |x| _mm512_cvtsd_f64(
    x
));
#[cfg(target_arch = "x86_64")]
packs!(narrow, "avx2,fma", _mm256_set1_pd, _mm256_mul_pd, _mm256_add_pd, _mm256_fmadd_pd, |x| {
    _mm256_cvtsd_f64(x)
});

#[cfg(test)]
mod tests {
    use super::*;

    /// From 0 … 11 every chain comes to b / (1 − a) = 2, by whatever instructions.
    #[test]
    fn all_recurrences_converge() {
        assert_eq!(plain(200), 2.0 * CHAINS as f64);
        #[cfg(target_arch = "x86_64")]
        for fused in [false, true] {
            if instructions() == "AVX-512" {
                // SAFETY: the processor has AVX-512F.
                assert_eq!(unsafe { wide::steps(fused, 200) }, 2.0 * CHAINS as f64);
            }
            if instructions() != "plain"
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
            {
                // SAFETY: the processor has AVX2 and FMA.
                assert_eq!(unsafe { narrow::steps(fused, 200) }, 2.0 * CHAINS as f64);
            }
        }
    }

    #[test]
    fn every_thread_takes_part() {
        for threads in [1, 2] {
            let seconds = seconds_an_operation(threads, false, 1000, 2).unwrap();
            assert!(seconds > 0.0 && seconds < 1e-6);
        }
        assert_eq!(run(false, 10) % (20 * CHAINS), 0);
    }
}
