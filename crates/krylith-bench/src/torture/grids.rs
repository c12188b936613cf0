//! Grids of the gallery, damaged in ways that detection of grids and blocks must notice.

use super::entries::Entries;
use super::rng::Rng;
use krylith::Csr;
use krylith::gallery::{Problem, problems};

/// A problem of the gallery with about `rows` rows, damaged as the family says; and its name with the size.
pub fn grid(family: &str, problem: &str, rows: usize, rng: &mut Rng) -> (Csr<f64>, String) {
    let problem = of_size(problem, rows, rng);
    let a = problem.generate().expect("the size is allowed");
    let mut entries = Entries::from_csr(&a);
    let unknowns = problem.info().unknowns_per_node;
    let few = 1 + rng.below(4);
    match family {
        "grid" => return (a, problem.to_string()),
        "grid-removed" => (0..few).for_each(|_| remove(&mut entries, rng)),
        "grid-added" => (0..few).for_each(|_| add(&mut entries, rng)),
        "grid-changed" => (0..few).for_each(|_| change(&mut entries, rng)),
        "grid-permuted-rows" => {
            let p = rng.permutation(entries.n);
            entries = entries.moved(entries.n, |i, j| Some((p[i], j)));
        }
        "grid-permuted" => {
            let p = rng.permutation(entries.n);
            entries = entries.moved(entries.n, |i, j| Some((p[i], p[j])));
        }
        "grid-point-eliminated" => entries = without_a_point(&entries, unknowns, rng),
        "grid-wrapped" => wrap(&mut entries, problem.size()[0], unknowns, rng),
        "grid-zero-diagonal" => (0..few).for_each(|_| {
            let i = rng.below(entries.n);
            if rng.once_in(2) { entries.remove(i, i) } else { entries.set(i, i, 0.0) }
        }),
        other => panic!("no family of grids is called {other}"),
    }
    (entries.to_csr(), problem.to_string())
}

/// Extents, unequal as a rule, whose product is near the number of rows.
fn of_size(name: &str, rows: usize, rng: &mut Rng) -> Problem {
    let info = problems().iter().find(|p| p.name == name).expect("a problem of the gallery");
    let points = (rows / info.unknowns_per_node).max(1);
    let mut size = vec![info.least_size.max(1); info.dims()];
    // The axis that is furthest behind grows, or now and then another.
    loop {
        let least = (0..size.len()).min_by_key(|&k| size[k]).unwrap_or(0);
        let axis = if rng.once_in(3) { rng.below(size.len()) } else { least };
        size[axis] += 1;
        if size.iter().product::<usize>() > points {
            size[axis] = (size[axis] - 1).max(info.least_size);
            break;
        }
    }
    Problem::new(name, &size).expect("the size is allowed")
}

fn remove(entries: &mut Entries, rng: &mut Rng) {
    let ((i, j), _) = entries.nth(rng.below(entries.len()));
    if i == j && !rng.once_in(4) {
        return;
    }
    entries.remove(i, j);
    if rng.once_in(2) {
        entries.remove(j, i);
    }
}

fn add(entries: &mut Entries, rng: &mut Rng) {
    let n = entries.n;
    let i = rng.below(n);
    // Near the diagonal or anywhere.
    let j = if rng.once_in(2) { rng.below(n) } else { (i + 1 + rng.below(12)).min(n - 1) };
    if entries.get(i, j).is_some() {
        return;
    }
    let value = rng.pick(&[0.0, -1.0, 0.5, 1e-8, 1e6]);
    entries.set(i, j, value);
    if rng.once_in(2) {
        entries.set(j, i, value);
    }
}

fn change(entries: &mut Entries, rng: &mut Rng) {
    let ((i, j), value) = entries.nth(rng.below(entries.len()));
    let value = value * rng.pick(&[0.0, -1.0, -3.0, 1e-10, 1e10, 1e-200, 1e200, 1.0 + f64::EPSILON]);
    entries.set(i, j, value);
    if rng.once_in(2) && entries.get(j, i).is_some() {
        entries.set(j, i, value);
    }
}

fn without_a_point(entries: &Entries, unknowns: usize, rng: &mut Rng) -> Entries {
    let n = entries.n;
    let first = rng.below(n / unknowns) * unknowns;
    // One unknown of it, or all.
    let count = if rng.once_in(3) { 1 } else { unknowns };
    let place = |i: usize| match i {
        i if i < first => Some(i),
        i if i < first + count => None,
        i => Some(i - count),
    };
    entries.moved(n - count, |i, j| Some((place(i)?, place(j)?)))
}

/// The ends of lines along the first axis become neighbours, in all lines or in some.
fn wrap(entries: &mut Entries, extent: usize, unknowns: usize, rng: &mut Rng) {
    let line = extent * unknowns;
    let (every, n) = (rng.once_in(2), entries.n);
    let value = rng.pick(&[-1.0, -0.5, -1e-3]);
    for start in (0..n.saturating_sub(line - 1)).step_by(line) {
        if !every && rng.once_in(2) {
            continue;
        }
        for component in 0..unknowns {
            let (first, last) = (start + component, start + line - unknowns + component);
            if first != last && entries.get(first, last).is_none() {
                entries.set(first, last, value);
                entries.set(last, first, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::axes::{AXES, Kind, Of, kind_of};
    use super::*;

    #[test]
    fn every_problem_can_be_damaged_in_every_way() {
        let families =
            AXES[Of::Family as usize].values.iter().filter(|(name, _)| kind_of(name) == Kind::Grid);
        for (family, _) in families {
            for (problem, _) in &AXES[Of::Problem as usize].values[1..] {
                for (seed, rows) in [(1, 9), (2, 60), (3, 300)] {
                    let (a, name) = grid(family, problem, rows, &mut Rng::new(&[seed]));
                    let info = name.parse::<Problem>().unwrap().info();
                    let least = info.least_size.pow(info.dims() as u32) * info.unknowns_per_node;
                    assert!(a.nrows() == a.ncols() && a.nrows() <= rows.max(least), "{family} {name}");
                    assert!(a.nrows() + info.unknowns_per_node + 1 > least.min(4), "{family} {name}");
                    assert!(a.values().iter().all(|v| v.is_finite()), "{family} {name}");
                }
            }
        }
    }

    #[test]
    fn damage_changes_the_matrix_and_not_its_size() {
        for seed in 0..40 {
            let mut rng = Rng::new(&[seed]);
            let (plain, name) = grid("grid", "poisson2d", 100, &mut rng.clone());
            let (wrapped, same) = grid("grid-wrapped", "poisson2d", 100, &mut rng.clone());
            assert_eq!((plain.nrows(), &name), (wrapped.nrows(), &same));
            let (smaller, _) = grid("grid-point-eliminated", "poisson2d", 100, &mut rng);
            assert_eq!(smaller.nrows() + 1, plain.nrows());
        }
    }
}
