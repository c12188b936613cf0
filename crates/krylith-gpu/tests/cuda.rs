//! Every kernel compiles for NVIDIA's generations, by NVRTC, which needs no device.

use krylith_gpu::compile_for_cuda;

/// Ampere, Hopper, and the two of Blackwell.
const ARCHITECTURES: [i32; 4] = [80, 90, 100, 120];

#[test]
fn kernels_compile_for_every_architecture() {
    for architecture in ARCHITECTURES {
        for (double, reproducible) in [(true, false), (true, true), (false, false)] {
            match compile_for_cuda(architecture, double, reproducible) {
                Ok(binary) => assert!(binary.starts_with(b"\x7fELF"), "sm_{architecture}"),
                Err(why) => {
                    // Where it is not installed there is nothing to test, unless somebody relies on it.
                    let missing = why.contains("is not there");
                    assert!(
                        missing && std::env::var_os("KRYLITH_REQUIRE_NVRTC").is_none(),
                        "sm_{architecture}: {why}"
                    );
                    return eprintln!("{why}: nothing is tested");
                }
            }
        }
    }
}
