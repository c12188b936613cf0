# The steps of .ci/run by name: `just test`; `just` alone runs all of them.
all:
    .ci/run

# Install what the checks need
setup:
    .ci/run setup

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

# Check the model of barrier and progress counters through every interleaving
loom:
    RUSTFLAGS="--cfg loom" cargo test --release -p krylith --lib team::model --target-dir target/loom

# Install the libraries that `krylith-bench compare` compares with, and build their drivers into target/peers
bench-setup *steps:
    crates/krylith-bench/peers/setup {{steps}}
