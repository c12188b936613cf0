//! Vectors of every format.
#![no_main]

use krylith_fuzz::{COMPRESSED, bounded, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = bounded(data, COMPRESSED, |data| krylith::io::parse_as_vector(data, &options()));
});
