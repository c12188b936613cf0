# The steps of .ci/run by name: `just test`; `just` alone runs all of them.
all:
    .ci/run

# Install what the checks need
setup:
    .ci/run setup

# Install software devices for the tests: PoCL, Intel's OpenCL runtime, NVRTC
devices:
    .ci/run devices

# Compile every kernel for NVIDIA's GPUs
kernels:
    .ci/run kernels

# Formatting
fmt:
    .ci/run fmt

# Lints, with and without features
clippy:
    .ci/run clippy

# The fuzz targets compile
fuzz-check:
    .ci/run fuzz

# Release build
build:
    .ci/run build

# What would be published, without a warning
package:
    .ci/run package

# Documentation without warnings
docs:
    .ci/run docs

# The examples in the documentation
doctest:
    .ci/run doctest

# The example programs
examples:
    .ci/run examples

# All tests
test:
    .ci/run test

# Fuzz one reader (mtx, npz, npz_arrays, petsc, vector, compressed); needs `cargo install cargo-fuzz`
fuzz target seconds="600":
    RUSTC_BOOTSTRAP=1 cargo fuzz run {{target}} -- -max_total_time={{seconds}} -rss_limit_mb=4096

# Check the models of gate, barrier and progress counters through every interleaving
loom:
    RUSTFLAGS="--cfg loom" cargo test --release -p krylith --lib team::model --target-dir target/loom

# Random hostile cases against the library, judged in exact arithmetic: `just torture --minutes 60 --catalogue FOLDER`, or one case again
torture *options="--minutes 60":
    cargo run --release -p krylith-bench -- torture {{options}}

# Compare factors, iterates and answers with ilupp and SciPy; PYTHON has numpy, scipy and ilupp, FOLDER a CATALOGUE.tsv
peers python folder="":
    cargo run --release -p krylith-bench -- peers {{folder}} --python {{python}}

# The gate, the barrier and the progress counters on real threads under ThreadSanitizer (x86-64 Linux); then with each ordering weakened
tsan:
    tsan/run
    tsan/weaken

# The engine's tests under ThreadSanitizer, the standard library built with it too: `rustup component add rust-src`
tsan-engine:
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread" cargo test -Zbuild-std --target x86_64-unknown-linux-gnu --target-dir target/tsan -p krylith --test suite engine

# Six matrices of a folder, solved on 1 to 8 threads and by both divisions: the same bits
same-bits folder:
    KRYLITH_MATRICES="$(realpath {{folder}})" cargo test -p krylith --test suite same_bits -- --ignored --nocapture

# Keep the bits that answers have now: only where an order of operations is meant to change
renew-bits:
    KRYLITH_RENEW_BITS=1 cargo test -p krylith --test suite bits

# Install the libraries that `krylith-bench compare` compares with, and build their drivers into target/peers
bench-setup *steps:
    crates/krylith-bench/peers/setup {{steps}}

# Whole solves on structured grids beside MKL and PETSc; drivers by `just bench-setup`
bench-structured *options:
    cargo build --release -p krylith-cli -p krylith-bench
    cargo run --release -p krylith-bench -- structured applications {{options}}
