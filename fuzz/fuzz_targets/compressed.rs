//! gzip, xz and zstd around Matrix Market text; seeded with real ones.
#![no_main]

use krylith_fuzz::{COMPRESSED, bounded, check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(a) = bounded(data, COMPRESSED, |data| krylith::io::parse(data, &options())) {
        check(&a);
    }
});
