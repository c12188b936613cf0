//! PETSc binary files; the class number is given, for either width of integers.
#![no_main]

use krylith_fuzz::{PLAIN, bounded, check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (bool, &[u8])| {
    let class = 1_211_216u32;
    let mut file =
        if data.0 { u64::from(class).to_be_bytes().to_vec() } else { class.to_be_bytes().to_vec() };
    file.extend_from_slice(data.1);
    if let Ok(a) = bounded(&file, PLAIN, |file| krylith::io::parse(file, &options())) {
        check(&a);
    }
});
