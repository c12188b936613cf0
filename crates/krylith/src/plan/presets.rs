//! Machines that nobody has measured here: models of a processor with many cores and of a device.
//!
//! A product or a sweep reads its bytes at the memory's rate: 12 per entry by rows and in slices (8 in `f32`), 8 on grids and about 9 in blocks. At the end of a
//! wavefront everybody waits for everybody. Set-ups are those of the reference divided by half of the threads. What is predicted with these is modelled, and says where
//! waiting decides; it is no measurement.

use super::cost::{Machine, REFERENCE, Rates};
use std::borrow::Cow;

/// A model of 64 cores with 200 GB/s, which meet in a microsecond.
pub const MANY_CORE: Machine = modelled("many-core", 64, 200.0, 1000.0);

/// A model of a device with 1500 GB/s, on which a wavefront is a launch of 3 microseconds. Its set-ups are those of 256 threads.
pub const DEVICE: Machine = modelled("device", 256, 1500.0, 3000.0);

/// With so many gigabytes per second, and nanoseconds per wavefront.
const fn modelled(name: &'static str, threads: usize, rate: f64, wavefront: f64) -> Machine {
    let share = threads as f64 / 2.0;
    Machine {
        name: Cow::Borrowed(name),
        threads,
        grid: rates(&REFERENCE.grid, [8.0, 4.0], rate, share, wavefront),
        constant_product: 1.0 / rate,
        constant_sweep: 1.0 / rate,
        repeated: 1.0 / rate,
        blocks: rates(&REFERENCE.blocks, [9.0, 9.0], rate, share, wavefront),
        slices: rates(&REFERENCE.slices, [12.0, 8.0], rate, share, wavefront),
        rows: rates(&REFERENCE.rows, [12.0, 8.0], rate, share, wavefront),
        vector: 8.0 / rate,
        flop: REFERENCE.flop / share,
        factor: REFERENCE.factor / share,
        eliminate: REFERENCE.eliminate / share,
        inverse: REFERENCE.inverse / share,
        grow: REFERENCE.grow / share,
        ..REFERENCE
    }
}

const fn rates(one: &Rates, [bytes, narrow]: [f64; 2], rate: f64, share: f64, wavefront: f64) -> Rates {
    Rates {
        product: bytes / rate,
        sweep: bytes / rate,
        sweep_f32: narrow / rate,
        copy: one.copy / share,
        set_up: one.set_up / share,
        wavefront,
    }
}

impl Machine {
    /// The machines that are known by name.
    pub const PRESETS: [Machine; 3] = [REFERENCE, MANY_CORE, DEVICE];

    /// One of them.
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.into_iter().find(|machine| machine.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_only_models_wait() {
        for machine in Machine::PRESETS {
            assert_eq!(Machine::preset(&machine.name.to_uppercase()).as_ref(), Some(&machine));
            assert_eq!(machine.waits(), machine.threads > 1);
        }
        assert_eq!(Machine::preset("laptop"), None);
    }
}
