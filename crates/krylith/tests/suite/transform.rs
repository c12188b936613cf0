//! Matchings and orderings of real and of large matrices; ignored unless asked for.
//!
//! The real matrices are not part of this repository: `KRYLITH_MATRICES=FOLDER cargo test --test suite transform -- --ignored` runs this on
//! a folder that holds them as `spd/NAME.mtx.xz` and `general/NAME.mtx.xz`.

use krylith::transform::{Matching, MatchingError, Ordering, OrderingQuality, order};
use krylith::{Csr, Permutation, io};
use std::path::PathBuf;

const MATCHABLE: [&str; 10] = [
    "spd/1138_bus",
    "spd/bcsstk16",
    "general/add32",
    "general/orsirr_1",
    "general/sherman5",
    "general/bayer10",
    "general/Hamrle2",
    "general/Chebyshev1",
    "general/FEM_3D_thermal1",
    "general/adder_dcop_05",
];

/// Graphs with rows that have no column of their own.
const SINGULAR: [&str; 2] = ["general/GD97_c", "general/SmallW"];

fn read(name: &str) -> Csr<f64> {
    let folder = std::env::var_os("KRYLITH_MATRICES").map(PathBuf::from);
    let folder = folder.expect("KRYLITH_MATRICES names the folder of matrices");
    io::read_matrix(folder.join(format!("{name}.mtx.xz"))).unwrap()
}

/// Largest excess over 1 of an entry, and largest distance from 1 of a matched one.
fn excess(b: &Csr<f64>) -> (f64, f64) {
    let entries = b.values().iter().map(|v| v.abs() - 1.0).fold(0.0, f64::max);
    let matched = b.diagonal().unwrap().iter().map(|v| (v.abs() - 1.0).abs()).fold(0.0, f64::max);
    (entries, matched)
}

#[test]
#[ignore = "needs a folder of matrices, named by KRYLITH_MATRICES"]
fn scales_bound_real_matrices() {
    for name in MATCHABLE {
        let a = read(name);
        let matching = Matching::find(a.view()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (entries, matched) = excess(&matching.apply(a.view()).unwrap());
        let moved = matching.columns.old().iter().enumerate().filter(|&(i, &j)| i != j as usize).count();
        println!(
            "{name}: {moved} of {} columns moved, excess {entries:.1e}, matched {matched:.1e}",
            a.nrows()
        );
        assert!(entries <= 1e-12 && matched <= 1e-15, "{name}");
    }
    for name in SINGULAR {
        let error = Matching::find(read(name).view()).unwrap_err();
        println!("{name}: {error}");
        assert!(matches!(error, MatchingError::StructurallySingular { .. }), "{name}");
    }
}

/// Entries of the factor that CHOLMOD computed after its own minimum degree ordering.
const CHOLMOD: [(&str, u64); 8] = [
    ("spd/1138_bus", 3_265),
    ("spd/494_bus", 1_414),
    ("spd/Muu", 187_090),
    ("spd/aft01", 289_180),
    ("spd/bcsstk16", 812_183),
    ("spd/bcsstk17", 1_043_601),
    ("spd/bodyy5", 636_443),
    ("spd/wathen100", 1_490_209),
];

#[test]
#[ignore = "needs a folder of matrices, named by KRYLITH_MATRICES"]
fn minimum_degree_and_column_counts_agree_with_cholmod() {
    for (name, expected) in CHOLMOD {
        let a = read(name);
        let p = order(a.pattern(), Ordering::Amd).unwrap();
        let quality = OrderingQuality::new(a.pattern(), &p).unwrap();
        assert_eq!(quality.cholesky_entries, expected, "{name}");
    }
}

/// A hash of a position, from 0 to 1 (SplitMix64).
fn hash(k: u64) -> f64 {
    let mut z = k.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 11) as f64 / (1u64 << 53) as f64
}

/// A million rows: a grid whose columns are shuffled and whose rows and columns are scaled at random.
#[test]
#[ignore = "takes long in a debug build"]
fn the_diagonal_of_a_million_rows_is_found_again() {
    let a = "convection3d:100".parse::<krylith::gallery::Problem>().unwrap().generate().unwrap();
    let n = a.nrows();
    let mut old: Vec<u32> = (0..n as u32).collect();
    old.sort_by(|&i, &j| hash(i.into()).total_cmp(&hash(j.into())));
    let shuffle = Permutation::new(old).unwrap();
    let mut b = a.view().permute(&Permutation::identity(n).unwrap(), &shuffle).unwrap();
    let pattern = b.pattern().clone();
    for i in 0..n {
        for k in pattern.row_range(i) {
            let j = u64::from(pattern.col_idx()[k]);
            b.values_mut()[k] *= (20.0 * hash(i as u64) + 20.0 * hash(j << 32)).exp();
        }
    }
    let matching = Matching::find(b.view()).unwrap();
    assert_eq!(matching.columns, shuffle.inverse());
    let (entries, matched) = excess(&matching.apply(b.view()).unwrap());
    println!("excess {entries:.1e}, matched {matched:.1e}");
    assert!(entries <= 1e-12 && matched <= 1e-15);
}

/// Random places and magnitudes: most rows take part in long exchanges.
#[test]
#[ignore = "takes long in a debug build"]
fn a_random_matrix_of_a_hundred_thousand_rows() {
    let n = 100_000u64;
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for e in 0..10 * n {
        rows.push((e / 10) as u32);
        // One place a row keeps the matrix matchable: 7 and n have no common factor.
        columns.push(if e % 10 == 0 { e / 10 * 7 % n } else { (hash(e) * n as f64) as u64 } as u32);
        values.push((20.0 * hash(e << 32)).exp());
    }
    let a = Csr::from_triplets(n as usize, n as usize, &rows, &columns, &values).unwrap();
    let matching = Matching::find(a.view()).unwrap();
    let (entries, matched) = excess(&matching.apply(a.view()).unwrap());
    println!("excess {entries:.1e}, matched {matched:.1e}");
    assert!(entries <= 1e-12 && matched <= 1e-15);
}
