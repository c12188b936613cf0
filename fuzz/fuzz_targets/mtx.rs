//! Matrix Market text.
#![no_main]

use krylith_fuzz::{PLAIN, bounded, check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(a) = bounded(data, PLAIN, |data| krylith::io::matrix_market::parse_matrix(data, &options())) {
        check(&a);
    }
});
