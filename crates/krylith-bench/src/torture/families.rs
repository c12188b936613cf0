//! Random hostile matrices: one function a family.

use super::entries::{Entries, Numbers};
use super::rng::{Rng, power_of_two};
use krylith::Csr;

/// A matrix of a hostile family with n rows.
pub fn hostile(family: &str, n: usize, rng: &mut Rng) -> Csr<f64> {
    match family {
        "duplicates" => return duplicates(n, rng),
        "not-square" => return not_square(n, rng),
        _ => {}
    }
    let numbers = Numbers::draw(rng);
    let entries = match family {
        "sparse" => sparse(n, numbers, rng),
        "dominant" => dominant(sparse(n, numbers, rng), rng),
        "symmetric" => symmetric(n, numbers, rng),
        "spd" => spd(n, numbers, rng),
        "nearly-symmetric" => nearly_symmetric(n, numbers, rng),
        "one-sided" => one_sided(n, numbers, rng),
        "zero-diagonal" => zero_diagonal(n, numbers, rng),
        "empty-rows" => empty_rows(n, numbers, rng),
        "dense-rows" => dense_rows(n, numbers, rng),
        "dense" => dense(n.min(80), numbers, rng),
        "diagonal" => diagonal(n, numbers, rng),
        "triangular" => triangular(n, numbers, rng),
        "permuted-triangular" => permuted(&triangular(n, numbers, rng), rng),
        "arrow" => arrow(n, numbers, rng),
        "negative-definite" => {
            let mut entries = spd(n, numbers, rng);
            entries.map_values(|_, _, value| -value);
            entries
        }
        "saddle-point" => saddle_point(n, numbers, rng),
        "skew-symmetric" => skew_symmetric(n, numbers, rng),
        "blocks" => blocks(n, numbers, rng),
        "band" => band(n, numbers, rng),
        other => panic!("no hostile family is called {other}"),
    };
    entries.to_csr()
}

/// A few entries per row anywhere; the diagonal in most rows.
fn sparse(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let most = 1 + rng.below(6);
    for i in 0..n {
        for _ in 0..rng.below(most + 1) {
            entries.set(i, rng.below(n), numbers.value(rng));
        }
        if !rng.once_in(8) {
            entries.set(i, i, numbers.value(rng));
        }
    }
    entries
}

/// The diagonal is about as large as the rest of its row, or larger.
fn dominant(mut entries: Entries, rng: &mut Rng) -> Entries {
    let factor = rng.pick(&[1.0, 1.0 + 1e-10, 1.1, 2.0]);
    let sign = rng.pick(&[1.0, 1.0, -1.0]);
    for (i, sum) in entries.row_sums().into_iter().enumerate() {
        entries.set(i, i, sign * if sum == 0.0 { 1.0 } else { factor * sum });
    }
    entries
}

fn symmetric(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let most = 1 + rng.below(4);
    for i in 0..n {
        for _ in 0..rng.below(most + 1) {
            let (j, value) = (rng.below(n), numbers.value(rng));
            entries.set(i, j, value);
            entries.set(j, i, value);
        }
        if !rng.once_in(8) {
            entries.set(i, i, numbers.value(rng));
        }
    }
    entries
}

fn spd(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = symmetric(n, numbers, rng);
    let factor = rng.pick(&[1.0, 1.0 + 1e-12, 1.01, 2.0]);
    for (i, sum) in entries.row_sums().into_iter().enumerate() {
        entries.set(i, i, if sum == 0.0 { 1.0 } else { factor * sum });
    }
    entries
}

/// Symmetric but for a few entries, which differ by rounding, by more, or are missing.
fn nearly_symmetric(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = if rng.once_in(3) { symmetric(n, numbers, rng) } else { spd(n, numbers, rng) };
    for _ in 0..1 + rng.below(3) {
        if entries.len() == 0 {
            break;
        }
        let ((i, j), value) = entries.nth(rng.below(entries.len()));
        match rng.below(3) {
            0 if i != j => entries.remove(i, j),
            1 => entries.set(i, j, value * (1.0 + f64::EPSILON)),
            _ => entries.set(i, j, value * (1.0 + rng.pick(&[1e-14, 1e-10, 1e-6, 1e-2, 1.0]))),
        }
    }
    entries
}

/// Symmetric but for zeros, or numbers of the size of rounding errors, that have nothing across the diagonal.
fn one_sided(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = if rng.once_in(3) { symmetric(n, numbers, rng) } else { spd(n, numbers, rng) };
    let values: &[f64] = rng.pick(&[&[0.0][..], &[0.0, -0.0], &[0.0, 1e-17, -1e-18], &[1e-300, 1e-15]]);
    for _ in 0..if n > 1 { 1 + rng.below(n) } else { 0 } {
        let (i, j) = (rng.below(n), rng.below(n));
        if i != j && entries.get(i, j).is_none() && entries.get(j, i).is_none() {
            entries.set(i, j, rng.pick(values));
        }
    }
    entries
}

/// Diagonal entries that are missing, zero of either sign, or tiny.
fn zero_diagonal(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = if rng.once_in(2) { symmetric(n, numbers, rng) } else { sparse(n, numbers, rng) };
    let all = rng.once_in(3);
    for i in 0..n {
        if !all && !rng.once_in(3) {
            continue;
        }
        match rng.below(5) {
            0 | 1 => entries.remove(i, i),
            2 => entries.set(i, i, 0.0),
            3 => entries.set(i, i, -0.0),
            _ => entries.set(i, i, rng.pick(&[1e-320, 1e-300, 1e-20, 1e-16])),
        }
    }
    entries
}

/// Rows or columns without an entry, or with explicit zeros alone.
fn empty_rows(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let entries = if rng.once_in(2) { spd(n, numbers, rng) } else { sparse(n, numbers, rng) };
    let (rows, columns) = rng.pick(&[(true, false), (false, true), (true, true)]);
    let zeros = rng.once_in(2);
    let out: Vec<usize> = (0..1 + rng.below(3)).map(|_| rng.below(n)).collect();
    let emptied = |i: usize, j: usize| (rows && out.contains(&i)) || (columns && out.contains(&j));
    let mut result = entries.moved(n, |i, j| (zeros || !emptied(i, j)).then_some((i, j)));
    if zeros {
        result.map_values(|i, j, value| if emptied(i, j) { 0.0 } else { value });
    }
    result
}

/// Entries at the same place, of sizes that differ by up to 600 orders: `from_triplets` sums them.
fn duplicates(n: usize, rng: &mut Rng) -> Csr<f64> {
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let exponents: &[i32] = rng.pick(&[&[0, 0, 0, 3][..], &[0, -60, 60], &[0, -900, 900]]);
    for i in 0..n as u32 {
        for _ in 0..1 + rng.below(4) {
            let j = if rng.once_in(2) { i } else { rng.below(n) as u32 };
            let value = rng.signed() * power_of_two(rng.pick(exponents));
            let times = 1 + rng.below(4);
            for k in 0..times {
                rows.push(i);
                columns.push(j);
                // The last one may cancel the others.
                let cancels = k + 1 == times && rng.once_in(4);
                values.push(if cancels { -value } else { value * rng.pick(&[1.0, 1.0, 0.5]) });
            }
        }
    }
    Csr::from_triplets(n, n, &rows, &columns, &values).expect("all places are inside")
}

/// One to three rows, or columns, or both, are full.
fn dense_rows(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let base = sparse(n, numbers, rng);
    let mut entries = if rng.once_in(2) { dominant(base, rng) } else { base };
    for _ in 0..1 + rng.below(3) {
        let full = rng.below(n);
        let (row, column) = rng.pick(&[(true, false), (false, true), (true, true)]);
        for k in 0..n {
            if row {
                entries.set(full, k, numbers.value(rng));
            }
            if column {
                entries.set(k, full, numbers.value(rng));
            }
        }
    }
    entries
}

fn dense(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    for i in 0..n {
        for j in 0..n {
            entries.set(i, j, numbers.value(rng));
        }
    }
    if rng.once_in(2) { dominant(entries, rng) } else { entries }
}

fn diagonal(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let (missing, spread) = (rng.once_in(3), rng.once_in(2));
    for i in 0..n {
        let scale = if spread { power_of_two(rng.between(-40, 40)) } else { 1.0 };
        match missing && rng.once_in(8) {
            true if rng.once_in(2) => entries.set(i, i, 0.0),
            true => {}
            false => entries.set(i, i, scale * numbers.value(rng)),
        }
    }
    entries
}

fn triangular(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let (upper, strict) = (rng.once_in(2), rng.once_in(8));
    let mut entries = sparse(n, numbers, rng).moved(n, |i, j| {
        if strict && i == j {
            return None;
        }
        Some(if (i < j) == upper { (i, j) } else { (j, i) })
    });
    for i in 0..if strict { 0 } else { n } {
        entries.set(i, i, numbers.value(rng));
    }
    entries
}

/// Rows and columns in random orders, each its own.
fn permuted(entries: &Entries, rng: &mut Rng) -> Entries {
    let n = entries.n;
    let (p, q) = (rng.permutation(n), rng.permutation(n));
    entries.moved(n, |i, j| Some((p[i], q[j])))
}

/// The first or the last row and column, and the diagonal.
fn arrow(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let (head, same) = (if rng.once_in(2) { 0 } else { n.saturating_sub(1) }, rng.once_in(2));
    for k in 0..n {
        let value = numbers.value(rng);
        entries.set(head, k, value);
        entries.set(k, head, if same { value } else { numbers.value(rng) });
        entries.set(k, k, 2.0 * numbers.value(rng));
    }
    entries
}

/// ( H Bᵀ ; B −δ I ) with δ = 0 or tiny; the zeros stored or not, B of full rank or not.
fn saddle_point(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let upper = n - n.min(1 + rng.below(n / 3 + 1)).min(n);
    let top = spd(upper, numbers, rng);
    let mut entries = top.moved(n, |i, j| Some((i, j)));
    let delta = rng.pick(&[None, None, Some(0.0), Some(-1e-14), Some(-1e-3)]);
    let sign = rng.pick(&[1.0, 1.0, -1.0]);
    for i in upper..n {
        for _ in 0..if upper == 0 { 0 } else { 1 + rng.below(3) } {
            let (j, value) = (rng.below(upper), numbers.value(rng));
            entries.set(i, j, value);
            entries.set(j, i, sign * value);
        }
        if let Some(delta) = delta {
            entries.set(i, i, delta);
        }
    }
    entries
}

/// A = −Aᵀ, sometimes plus a small or negative multiple of the identity.
fn skew_symmetric(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let shift = rng.pick(&[None, None, Some(0.0), Some(1e-12), Some(1.0), Some(-1.0)]);
    for i in 0..n {
        for _ in 0..1 + rng.below(3) {
            let (j, value) = (rng.below(n), numbers.value(rng));
            if i != j {
                entries.set(i, j, value);
                entries.set(j, i, -value);
            }
        }
        if let Some(shift) = shift {
            entries.set(i, i, shift);
        }
    }
    entries
}

/// Dense blocks of 2 to 8 rows, some of those on the diagonal singular or zero; n becomes a multiple of the block, nearly always.
fn blocks(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let size = 2 + rng.below(7);
    let points = n.div_ceil(size);
    let n = if rng.once_in(8) { n } else { points * size };
    let mut entries = Entries::new(n);
    let same = rng.once_in(2);
    let singular = rng.pick(&[0usize, 3, 10]);
    let (dominance, hole) = (rng.pick(&[1.0, 4.0, 20.0]), rng.once_in(3));
    let place = |entries: &mut Entries, p: usize, q: usize, rng: &mut Rng| {
        let rank_one = p == q && singular > 0 && rng.once_in(singular);
        let zero = rank_one && rng.once_in(3);
        let whole = !hole || !rng.once_in(6);
        for r in 0..size {
            for c in if same && p == q { r..size } else { 0..size } {
                let (i, j) = (p * size + r, q * size + c);
                if i >= n || j >= n || !whole && r != c && rng.once_in(3) {
                    continue;
                }
                let value = match (zero, rank_one) {
                    (true, _) => 0.0,
                    (_, true) => (r + 1) as f64 * (c + 1) as f64,
                    _ if p == q && r == c => dominance * numbers.value(rng).abs() + dominance,
                    _ => numbers.value(rng) / size as f64,
                };
                entries.set(i, j, value);
                if same {
                    entries.set(j, i, value);
                }
            }
        }
    };
    for p in 0..points {
        place(&mut entries, p, p, rng);
        for _ in 0..rng.below(3) {
            let q = rng.below(points);
            if q != p {
                place(&mut entries, p, q, rng);
            }
        }
    }
    entries
}

/// A few full diagonals: what a grid looks like, and is not always.
fn band(n: usize, numbers: Numbers, rng: &mut Rng) -> Entries {
    let mut entries = Entries::new(n);
    let same = rng.once_in(2);
    let distances: Vec<usize> = (0..1 + rng.below(4)).map(|_| 1 + rng.below(n.clamp(2, 40) - 1)).collect();
    let (constant, holes) = (rng.once_in(2), rng.once_in(3));
    for &distance in &distances {
        let (up, down) = (numbers.value(rng), numbers.value(rng));
        for i in 0..n.saturating_sub(distance) {
            if holes && rng.once_in(12) {
                continue;
            }
            let pair = if constant { (up, down) } else { (numbers.value(rng), numbers.value(rng)) };
            entries.set(i, i + distance, pair.0);
            entries.set(i + distance, i, if same { pair.0 } else { pair.1 });
        }
    }
    if rng.once_in(4) {
        (0..n).for_each(|i| entries.set(i, i, numbers.value(rng)));
        return entries;
    }
    dominant(entries, rng)
}

/// One row or column more than there should be.
fn not_square(n: usize, rng: &mut Rng) -> Csr<f64> {
    let (nrows, ncols) = rng.pick(&[(n, n + 1), (n + 1, n)]);
    let both = nrows.min(ncols);
    let row_ptr = (0..=nrows).map(|i| i.min(both)).collect();
    let columns = (0..both as u32).collect();
    Csr::new(nrows, ncols, row_ptr, columns, vec![1.0; both]).expect("a diagonal")
}

#[cfg(test)]
mod tests {
    use super::super::axes::{AXES, Kind, Of, kind_of};
    use super::*;

    fn names() -> impl Iterator<Item = &'static str> {
        let families = AXES[Of::Family as usize].values.iter().map(|&(name, _)| name);
        families.filter(|name| kind_of(name) == Kind::Hostile)
    }

    #[test]
    fn every_family_can_be_made_in_any_size() {
        for family in names() {
            for (k, n) in [0, 1, 2, 3, 5, 8, 30, 200].into_iter().enumerate() {
                for seed in 0..6 {
                    let a = hostile(family, n, &mut Rng::new(&[seed, k as u64]));
                    let grown = if family == "blocks" { n.div_ceil(2) * 8 } else { n + 1 };
                    assert!(a.nrows() <= grown, "{family} {n}");
                    assert!(a.values().iter().all(|v| v.is_finite()), "{family} {n}");
                    assert_eq!(a.nrows() == a.ncols(), family != "not-square");
                }
            }
        }
    }

    #[test]
    fn families_have_the_property_of_their_name() {
        for seed in 0..50 {
            let make = |family: &str| hostile(family, 40, &mut Rng::new(&[seed]));
            for family in ["symmetric", "spd", "negative-definite"] {
                assert!(make(family).symmetry().symmetric, "{family}");
            }
            let one_sided = make("one-sided");
            assert!(one_sided.asymmetry() < 1e-13 && !one_sided.symmetry().pattern);
            let spd = make("spd");
            for i in 0..spd.nrows() {
                let (columns, values) = spd.row(i);
                let rest: f64 =
                    columns.iter().zip(values).filter(|(j, _)| **j as usize != i).map(|(_, v)| v.abs()).sum();
                assert!(spd.get(i, i) >= rest * (1.0 - 1e-14) && spd.get(i, i) > 0.0);
            }
            let skew = make("skew-symmetric");
            for i in 0..40 {
                for j in 0..i {
                    assert_eq!(skew.get(i, j), -skew.get(j, i));
                }
            }
            let triangle = make("triangular");
            let above = (0..40).any(|i| triangle.row(i).0.iter().any(|&j| j as usize > i));
            let below = (0..40).any(|i| triangle.row(i).0.iter().any(|&j| (j as usize) < i));
            assert!(!(above && below));
            assert!((0..40).all(|i| make("diagonal").row(i).0.iter().all(|&j| j as usize == i)));
        }
    }
}
