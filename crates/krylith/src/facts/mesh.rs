//! What the pattern of a matrix is that of: a grid, blocks, or a graph with some distance across.

use crate::block::full_block_of;
use crate::matrix::{Csr, Rows, Triangle, ValuedRows};
use crate::schedule::Wavefronts;
use crate::sliced::SharedSlices;
use crate::structured::{NotStructured, Structure};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Rows that are looked at for [`Mesh::spread`].
const SAMPLE: usize = 4096;
/// Rows that are looked at for [`Mesh::fill`].
const SAMPLE_OF_FILL: usize = 256;
/// Entries of rows that are looked at for one of them at most.
const MOST_LOOKED_AT: usize = 1 << 16;

/// Components of a graph that are searched for the longest way across.
const MOST_SEARCHES: usize = 64;
/// Rows that processes send each other at once.
const ROWS_AT_ONCE: usize = 256;

/// Few slices are no sample.
const LEAST_REPEATING: usize = 4096;

/// The mesh that a matrix is that of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mesh {
    /// The structured grid, if it is one.
    pub grid: Option<GridFacts>,
    /// The reason for which no grid was found.
    pub no_grid: Option<String>,
    /// The size of the dense blocks that the whole matrix consists of; 1 if of none.
    pub block: usize,
    /// Steps from one end to the other: the longest extent of a grid, otherwise the levels of a breadth-first search.
    pub across: usize,
    /// The largest entry of a row over the middle one, the diagonal apart: the geometric mean over a sample of rows. 1 if a point is
    /// coupled to all of its neighbours alike.
    pub spread: f64,
    /// e to this power is by how much the diagonal entries of neighbours differ, in the geometric mean: 0 of constant coefficients, above 1 where they jump from point
    /// to point.
    #[serde(default)]
    pub roughness: f64,
    /// Entries of ILU(1) off the diagonal over those of ILU(0), in a sample of rows.
    pub fill: f64,
    /// The same number at every entry of a distance from the diagonal, in a sample of rows: constant coefficients on a grid.
    pub is_constant: bool,
    /// Slices of eight rows are mostly copies of others, in a sample: constant coefficients, with any number of unknowns.
    #[serde(default)]
    pub repeats: bool,
    /// Wavefronts of a sweep without fill, where they were counted: on machines whose sweeps wait.
    #[serde(default)]
    pub wavefronts: Option<usize>,
}

/// A structured grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GridFacts {
    /// Points along x, y and z.
    pub extents: [usize; 3],
    /// Unknowns per point.
    pub unknowns: usize,
    /// Offsets of the stencil, and of the factors with levels of fill 1 and 2; fewer numbers where the fill has too many.
    pub offsets: Vec<usize>,
    /// ILU(0) changes the diagonal alone, as on stars.
    pub keeps_off_diagonals: bool,
}

impl Mesh {
    /// The mesh of a square matrix, and the grid that was found on the way. Without a `search`, the way across a graph is taken to be that of
    /// a square.
    pub(crate) fn find(a: &Csr<f64>, search: bool) -> (Self, Result<Structure, NotStructured>) {
        Self::of_rows(a, search)
    }

    /// The same, wherever the rows are.
    pub(super) fn of_rows(a: &impl ValuedRows, search: bool) -> (Self, Result<Structure, NotStructured>) {
        let found = Structure::of_rows(a);
        let grid = found.as_ref().ok().map(GridFacts::of);
        let across = match &grid {
            Some(grid) => grid.extents.into_iter().max().unwrap_or(1),
            None if search => levels(a),
            None => a.count().isqrt(),
        };
        let mesh = Mesh {
            no_grid: found.as_ref().err().map(ToString::to_string),
            block: full_block_of(a).unwrap_or(1),
            across,
            spread: spread(a),
            roughness: roughness(a),
            fill: fill(a),
            is_constant: grid.is_some() && is_constant(a),
            repeats: a.count() >= LEAST_REPEATING && SharedSlices::<f64>::repeats(a),
            grid,
            wavefronts: None,
        };
        (mesh, found)
    }

    /// Counts the wavefronts of a sweep, levels of a grid where it is one.
    pub(crate) fn count_wavefronts(&mut self, a: &Csr<f64>, grid: Option<&Structure>) {
        let of_rows =
            || Wavefronts::new(a.pattern(), Triangle::Lower).ok().map(|wavefronts| wavefronts.count());
        self.wavefronts = grid.map(Structure::levels).or_else(of_rows);
    }

    /// Those of a factor with levels of fill, 0 where they were not counted: every level lengthens the paths by as much as the first.
    pub(crate) fn wavefronts_with_fill(&self, level: usize) -> f64 {
        self.wavefronts.unwrap_or(0) as f64 * (1 + level) as f64
    }

    /// Unknowns per point, or the size of blocks.
    pub fn unknowns(&self) -> usize {
        self.grid.as_ref().map_or(self.block, |grid| grid.unknowns.max(self.block))
    }

    /// Whether so many rows within so many steps can be those of a mesh in space, and not of a graph with short cuts.
    pub fn is_in_space(&self, rows: usize) -> bool {
        rows as f64 <= (self.across as f64).powi(3)
    }

    /// A grid of few layers: of at most twice as many points as a square of its longest extent.
    pub fn is_planar_grid(&self) -> bool {
        self.grid.as_ref().is_some_and(|grid| {
            let [x, y, z] = grid.extents.map(|extent| extent as f64);
            x * y * z <= 2.0 * (self.across as f64).powi(2)
        })
    }

    /// Entries of ILU(level) off the diagonal over those of ILU(0): from the sample for one level, extrapolated for more.
    pub fn growth(&self, level: usize) -> f64 {
        // A level adds less than the one before, relative to what is there.
        self.fill.powf((0..level).map(|k| 0.7f64.powi(k as i32)).sum())
    }

    pub(super) fn words(&self) -> String {
        match (&self.grid, &self.no_grid) {
            (Some(grid), _) => {
                let extents = grid.extents.iter().filter(|&&n| n > 1).map(ToString::to_string);
                format!("a grid of {} points", extents.collect::<Vec<_>>().join(" x "))
            }
            (None, Some(reason)) => format!("no grid: {reason}"),
            (None, None) => "no grid".into(),
        }
    }
}

impl GridFacts {
    /// Points of the smallest section: those that separate its halves.
    pub(crate) fn section(&self) -> usize {
        let [a, b, c] = self.extents;
        (a * b).min(b * c).min(a * c)
    }

    fn of(found: &Structure) -> Self {
        let fill = |level| found.stencil.with_fill(level).map(|stencil| stencil.len());
        GridFacts {
            extents: found.grid.extents(),
            unknowns: found.dof,
            offsets: (0..3).map_while(fill).collect(),
            keeps_off_diagonals: found.stencil.keeps_off_diagonals(),
        }
    }
}

/// Wavefronts of a sweep with levels of fill, as plans predict them for machines that wait.
pub fn wavefronts(a: &Csr<f64>, level: usize) -> f64 {
    if !a.pattern().is_square() {
        return 0.0;
    }
    let (mut mesh, grid) = Mesh::find(a, false);
    mesh.count_wavefronts(a, grid.as_ref().ok());
    mesh.wavefronts_with_fill(level)
}

/// The levels of a breadth-first search from the first row that has a neighbour; the most of the first components, one if none has one.
fn levels(rows: &impl Rows) -> usize {
    let own = rows.own(1);
    let first = own.units.start;
    let mut seen = vec![false; own.units.len()];
    let (mut most, mut looked_at) = (rows.count().min(1), 0);
    let (mut level, mut next) = (Vec::new(), Vec::new());
    for _ in 0..MOST_SEARCHES {
        let is_start = |&k: &usize| !seen[k] && own.row(first + k).iter().any(|&j| j as usize != first + k);
        looked_at = (looked_at..seen.len()).find(is_start).unwrap_or(seen.len());
        let start = seen.get(looked_at).map(|_| (first + looked_at) as u64);
        let starts = rows.everyones(start.into_iter().collect());
        let Some(&start) = starts.iter().flatten().min() else { break };
        if own.units.contains(&(start as usize)) {
            seen[start as usize - first] = true;
            level.push(start as u32);
        }
        let mut depth = 0;
        loop {
            // How many rows of the level each process has, and the neighbours that others have.
            let mut messages = vec![vec![level.len() as u64]; rows.process().count];
            for &i in &level {
                for &j in own.row(i as usize) {
                    match (j as usize).checked_sub(first).and_then(|k| seen.get_mut(k)) {
                        Some(seen) => {
                            if !std::mem::replace(seen, true) {
                                next.push(j);
                            }
                        }
                        None => messages[rows.owner(j as usize)].push(j.into()),
                    }
                }
            }
            let received = rows.exchange(messages);
            if received.iter().all(|theirs| theirs.first().is_none_or(|&count| count == 0)) {
                break;
            }
            depth += 1;
            for &j in received.iter().flat_map(|theirs| theirs.iter().skip(1)) {
                let k = (j as usize).checked_sub(first);
                if k.and_then(|k| seen.get_mut(k)).is_some_and(|seen| !std::mem::replace(seen, true)) {
                    next.push(j as u32);
                }
            }
            level.clear();
            std::mem::swap(&mut level, &mut next);
        }
        most = most.max(depth);
    }
    most
}

/// (i, j) is an entry of ILU(1) if it is one of A, or if A has entries (i, k) and (k, j) with k < i and k < j.
fn fill(rows: &impl Rows) -> f64 {
    let n = rows.count();
    let (mut of_a, mut of_factor) = (0usize, 0usize);
    let mut columns: Vec<u32> = Vec::new();
    let sampled = (0..n).step_by(n.div_ceil(SAMPLE_OF_FILL).max(1));
    rows.announce(sampled.clone());
    for i in sampled {
        let row = rows.columns(i);
        columns.clear();
        columns.extend(&*row);
        let lower = &row[..row.partition_point(|&k| (k as usize) < i)];
        for some in lower.chunks(ROWS_AT_ONCE) {
            rows.announce(some.iter().map(|&k| k as usize));
            for &k in some {
                if columns.len() > MOST_LOOKED_AT {
                    break;
                }
                let other = rows.columns(k as usize);
                columns.extend(&other[other.partition_point(|&j| j <= k)..]);
            }
            if columns.len() > MOST_LOOKED_AT {
                break;
            }
        }
        columns.sort_unstable();
        columns.dedup();
        of_a += row.len().saturating_sub(1);
        of_factor += columns.len().saturating_sub(1);
    }
    if of_a == 0 { 1.0 } else { of_factor as f64 / of_a as f64 }
}

/// The rows of a sample.
fn sample<R: Rows>(rows: &R) -> impl Iterator<Item = usize> + Clone + use<R> {
    (0..rows.count()).step_by(rows.count().div_ceil(SAMPLE).max(1))
}

fn is_constant(a: &impl ValuedRows) -> bool {
    let mut known = HashMap::new();
    a.announce(sample(a));
    sample(a).all(|i| {
        let (columns, values) = (a.columns(i), a.values(i));
        let same = |(&j, &v): (&u32, &f64)| *known.entry(i64::from(j) - i as i64).or_insert(v) == v;
        columns.iter().zip(&*values).all(same)
    })
}

fn spread(a: &impl ValuedRows) -> f64 {
    let (mut sum, mut count, mut sizes) = (0.0, 0.0, Vec::<f64>::new());
    a.announce(sample(a));
    for i in sample(a) {
        let (columns, values) = (a.columns(i), a.values(i));
        let others = columns.iter().zip(&*values).filter(|&(&j, &v)| j as usize != i && v != 0.0);
        sizes.clear();
        sizes.extend(others.map(|(_, v)| v.abs()));
        if sizes.is_empty() {
            continue;
        }
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let middle = sizes.len() / 2;
        sum += (largest / *sizes.select_nth_unstable_by(middle, f64::total_cmp).1).ln();
        count += 1.0;
    }
    let mean: f64 = if count > 0.0 { (sum / count).exp() } else { 1.0 };
    if mean.is_finite() { mean } else { f64::MAX }
}

/// Each row of a sample beside its first neighbour, which may be the same row for many of them.
fn roughness(a: &impl ValuedRows) -> f64 {
    let diagonal = |i: usize| {
        let (columns, values) = (a.columns(i), a.values(i));
        let place = columns.binary_search(&(i as u32)).ok();
        place.and_then(|place| values.get(place)).map_or(0.0, |value| value.abs())
    };
    a.announce(sample(a));
    let neighbour = |i: usize| {
        let (columns, values) = (a.columns(i), a.values(i));
        let mut others = columns.iter().zip(&*values);
        others.find(|&(&j, &v)| j as usize != i && v != 0.0).map(|(&j, _)| (i, j as usize))
    };
    let pairs: Vec<_> = sample(a).filter_map(neighbour).collect();
    a.announce(pairs.iter().map(|&(_, j)| j));
    let mut known = HashMap::new();
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, j) in pairs {
        let theirs = *known.entry(j).or_insert_with(|| diagonal(j));
        let step = f64::ln(diagonal(i) / theirs).abs();
        if step.is_finite() {
            (sum, count) = (sum + step, count + 1.0);
        }
    }
    sum / f64::max(count, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    fn mesh(name: &str) -> (usize, Mesh) {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        (a.nrows(), Mesh::find(&a, true).0)
    }

    #[test]
    fn grids_blocks_and_graphs() {
        let (rows, found) = mesh("poisson3d:12x9x7");
        let grid = found.grid.as_ref().unwrap();
        assert_eq!((grid.extents, grid.unknowns, found.across), ([12, 9, 7], 1, 12));
        assert_eq!((grid.offsets.as_slice(), grid.keeps_off_diagonals), ([7, 13, 23].as_slice(), true));
        assert!(
            found.is_in_space(rows) && found.spread == 1.0 && found.is_constant && !found.is_planar_grid()
        );
        let planar = mesh("elasticity2d:60").1;
        assert!(planar.is_planar_grid() && planar.repeats && planar.unknowns() == 2);
        assert!(
            found.fill > 1.6 && found.fill < 2.0 && found.growth(0) == 1.0 && found.growth(1) == found.fill
        );
        let (rows, found) = mesh("fem2d:40");
        assert!(found.grid.is_none() && found.no_grid.is_some());
        assert!((20..120).contains(&found.across) && found.is_in_space(rows), "{}", found.across);
        assert_eq!(mesh("navierstokes3d:5").1.unknowns(), 4);
        let (rows, circuit) = mesh("circuit:400");
        assert!(!circuit.is_in_space(rows), "{rows} rows within {}", circuit.across);
        assert!(found.roughness < 0.3 && (1.0..2.5).contains(&mesh("jump3d:20").1.roughness));
        assert!(
            mesh("apache:12").1.spread > 30.0
                && !mesh("apache:12").1.is_constant
                && !mesh("jump3d:20").1.repeats
        );
    }

    #[test]
    fn wavefronts_of_grids_and_graphs() {
        for (name, count) in [("poisson3d:12x9x7", 26), ("poisson2d:30", 59)] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let (mut mesh, grid) = Mesh::find(&a, true);
            assert_eq!(mesh.wavefronts, None);
            for grid in [grid.ok().as_ref(), None] {
                mesh.count_wavefronts(&a, grid);
                assert_eq!(mesh.wavefronts, Some(count), "{name}");
            }
        }
    }

    /// 0 - 1 - 2   3 - 4
    #[test]
    fn levels_of_two_paths() {
        let pairs = [(0, 1), (1, 2), (3, 4)];
        let entries = pairs.iter().flat_map(|&(i, j)| [(i, j, 1.0), (j, i, 1.0)]);
        assert_eq!(levels(&Csr::from_entries(5, 5, entries).unwrap()), 3);
    }
}
