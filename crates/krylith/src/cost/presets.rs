//! Machines besides the reference: a processor that is driven as a device, measured, and models of a processor with many cores and of a GPU, which nobody has measured here.
//!
//! In a model a product or a sweep reads its bytes at the memory's rate: 12 per entry by rows and in slices (8 in `f32`), 8 on grids and about 9 in blocks. At the end of a
//! wavefront everybody waits for everybody. Set-ups are those of the reference divided by half of the threads. What is predicted with these is modelled, and says where
//! waiting decides; it is no measurement.

use super::machine::{Machine, REFERENCE, Rates};
use std::borrow::Cow;

/// A model of 64 cores with 200 GB/s, which meet in a microsecond.
pub const MANY_CORE: Machine = modelled("many-core", 64, 200.0, 1000.0);

/// A model of a device with 1500 GB/s, on which a wavefront is a launch of 3 microseconds and a sum takes 10. Its set-ups are those of 256 threads.
pub const DEVICE: Machine = {
    let mut device = modelled("device", 256, 1500.0, 3000.0);
    // Threads of the host make and apply complete factors.
    (device.flop, device.factor) = (REFERENCE.flop, REFERENCE.factor);
    device.complete_solve = REFERENCE.complete_solve;
    (device.launch, device.reduction) = (3000.0, 10_000.0);
    device
};

/// Two cores of a server processor that OpenCL drives (PoCL), as `krylith-bench calibrate --device opencl:0 --threads 2` has measured them; `complete_solve` is the reference's.
pub const PROCESSOR_DEVICE: Machine = Machine {
    name: Cow::Borrowed("processor-device"),
    threads: 2,
    grid: ON_PROCESSOR,
    blocks: ON_PROCESSOR,
    slices: ON_PROCESSOR,
    rows: ON_PROCESSOR,
    constant_product: ON_PROCESSOR.product,
    constant_sweep: ON_PROCESSOR.sweep,
    repeated: ON_PROCESSOR.product,
    vector: 0.16,
    analysis: 230.0,
    matching: 35.0,
    flop: 0.074,
    factor: 30.0,
    complete_solve: 1.44,
    facts: 2.5,
    eliminate: 0.19,
    inverse: 77.0,
    grow: 14.0,
    launch: 8600.0,
    reduction: 34_000.0,
    ..REFERENCE
};

const ON_PROCESSOR: Rates =
    Rates { product: 2.0, sweep: 5.6, sweep_f32: 5.6, copy: 21.0, set_up: 44.0, wavefront: 42.0 };

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
        complete_solve: 24.0 / rate,
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
    pub const PRESETS: [Machine; 4] = [REFERENCE, PROCESSOR_DEVICE, MANY_CORE, DEVICE];

    /// One of them.
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.into_iter().find(|machine| machine.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_one_thread_does_not_wait() {
        for machine in Machine::PRESETS {
            assert_eq!(Machine::preset(&machine.name.to_uppercase()).as_ref(), Some(&machine));
            assert_eq!(machine.waits(), machine.threads > 1);
        }
        assert_eq!(Machine::preset("laptop"), None);
    }
}
