//! The triplet builder on random entries.

use krylith::{Csr, TripletBuilder};
use proptest::prelude::*;
use std::sync::Arc;

/// Dimensions and entries.
type Entries = (usize, usize, Vec<(usize, usize, f64)>);

/// Values whose sums depend on their order, zeros of both signs among them; up to 300 in up to 12 × 12, so that most are repeated.
fn entries() -> impl Strategy<Value = Entries> {
    let value = prop_oneof![1 => Just(0.0), 2 => Just(-0.0), 6 => -1.0..1.0, 1 => Just(1e16)];
    (0usize..12, 0usize..12).prop_flat_map(move |(m, n)| {
        let count = if m * n == 0 { 0..1 } else { 0..300 };
        let one = (0..m.max(1), 0..n.max(1), value.clone());
        (Just(m), Just(n), prop::collection::vec(one, count))
    })
}

fn bits(a: &Csr<f64>) -> Vec<u64> {
    a.values().iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #[test]
    fn the_same_bits_as_a_dense_sum_and_as_triplets((m, n, entries) in entries()) {
        let a = Csr::from_entries(m, n, entries.iter().copied()).unwrap();
        let mut dense = vec![None; m * n];
        for &(i, j, v) in &entries {
            let place = &mut dense[i * n + j];
            *place = Some(place.map_or(v, |sum: f64| sum + v));
        }
        for i in 0..m {
            for j in 0..n {
                let found = a.pattern().find(i, j).map(|k| a.values()[k].to_bits());
                prop_assert_eq!(found, dense[i * n + j].map(f64::to_bits), "({}, {})", i, j);
            }
        }
        let rows: Vec<u32> = entries.iter().map(|e| e.0 as u32).collect();
        let columns: Vec<u32> = entries.iter().map(|e| e.1 as u32).collect();
        let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
        let b = Csr::from_triplets(m, n, &rows, &columns, &values).unwrap();
        prop_assert_eq!(a.pattern(), b.pattern());
        prop_assert_eq!(bits(&a), bits(&b));
    }

    #[test]
    fn assembling_into_gives_the_bits_of_building((m, n, entries) in entries(), factor in -3.0..3.0) {
        let mut builder = TripletBuilder::new(m, n);
        builder.extend(entries.iter().map(|&(i, j, v)| (i, j, factor * v)));
        let mut a = builder.build().unwrap();
        builder.clear();
        builder.extend(entries.iter().rev().copied());
        builder.assemble_into(&mut a).unwrap();
        prop_assert_eq!(bits(&a), bits(&builder.build().unwrap()));
    }
}

#[test]
fn the_second_assembly_keeps_the_pattern() {
    let n = 1000;
    let add = |builder: &mut TripletBuilder<f64>, k: f64| {
        for e in 0..n - 1 {
            builder.extend([(e, e, k), (e, e + 1, -k), (e + 1, e, -k), (e + 1, e + 1, -0.0)]);
        }
    };
    let mut builder = TripletBuilder::new(n, n);
    add(&mut builder, 1.0);
    let mut a = builder.build().unwrap();
    let pattern = Arc::clone(a.pattern());
    builder.clear();
    add(&mut builder, 2.0);
    builder.assemble_into(&mut a).unwrap();
    assert!(Arc::ptr_eq(&pattern, a.pattern()));
    assert_eq!((a.get(0, 0), a.get(0, 1), a.get(n - 1, n - 1)), (2.0, -2.0, 0.0));
}
