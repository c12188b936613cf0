//! The Delaunay triangulation of a jittered lattice, each vertex on its own.
//!
//! Cell (x, y) of an unbounded lattice holds one point: its centre, moved by up to 0.4 cells along each axis. Coordinates
//! are integers, 2²⁰ to a cell. The neighbours of a point (its star) are found from the points of the cells around it
//! alone, so stars can be made in any order and in parallel, and the mesh has no boundary to treat.
//!
//! **How far neighbours are.** A disc without points in it has a radius r ≤ 0.9 √2 cells: the point of the cell in which
//! the centre lies differs from it by at most 0.9 along each axis. Two neighbours lie on the boundary of such a disc, so
//! their distance is at most 1.8 √2 < 2.55. The points of cells that are d apart along an axis differ by at least
//! d − 0.8 there, so d ≤ 3: a window of 7 x 7 cells is enough.
//!
//! **Gift wrapping.** Relative to the point at the centre of the window, the nearest point q₁ is a neighbour. The neighbour
//! after q, counterclockwise, is the r left of q that minimises
//!
//!   t(r) = r·(r − q) / (q × r),
//!
//! the position of the centre of the circle through 0, q, r on the bisector of 0 q.
//!
//! **Exactness.** Relative coordinates are below 2²², so numerator and denominator are exact in f64 and only the quotient is
//! rounded. Where two quotients are too close to tell, t is compared exactly in 128-bit integers. Points on one circle are
//! told apart by simulation of simplicity: the height |v|² of point k of the window is raised by an infinitesimal δₖ,
//! δ₀ ≪ δ₁ ≪ ... All windows number their cells in the same order, row by row, so all stars agree: they are those of
//! the one triangulation of the perturbed points. Reference: Edelsbrunner & Mücke 1990, doi:10.1145/77635.77639.

use super::random::{SEED, hash};

/// Units of length to a cell.
pub(super) const CELL: i64 = 1 << 20;
/// The window reaches this many cells to each side.
const REACH: i64 = 3;
const ROWS: usize = 2 * REACH as usize + 1;
/// Places in a row of the window; the last is empty and lets rows fill vector registers.
const LANES: usize = ROWS + 1;
/// Places of the window.
pub(super) const WINDOW: usize = ROWS * LANES;
/// The place of the point that the window is around.
pub(super) const CENTRE: usize = REACH as usize * (LANES + 1);

/// The points: how far from the centres of their cells, in units, at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Points {
    jitter: i64,
}

/// The points around one of them, relative to it; (0, 0) at places that are empty.
pub(super) struct Window {
    x: [f64; WINDOW],
    y: [f64; WINDOW],
    /// The point at the centre.
    pub(super) origin: [i64; 2],
}

/// The neighbours of a point: bit k stands for place k of its window, row by row from the lower left. In a lattice whose
/// cells are numbered row by row, the bits are in the order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Star(pub(super) u64);

impl Points {
    /// Moved by up to 0.4 cells.
    pub(super) const JITTERED: Points = Points { jitter: 2 * CELL / 5 };

    /// The point of a cell whose row has the hash `row`.
    #[inline]
    fn point(&self, row: u64, x: i64, y: i64) -> [i64; 2] {
        let bits = hash(row, x as u64);
        // The 32 bits of each half, scaled to -jitter ..= jitter.
        let shift = |half: u64| ((half * (2 * self.jitter as u64 + 1)) >> 32) as i64 - self.jitter;
        let centre = |cell: i64| cell * CELL + CELL / 2;
        [centre(x) + shift(bits >> 32), centre(y) + shift(bits & 0xFFFF_FFFF)]
    }

    /// The points around cell (x, y), those of `members` alone.
    pub(super) fn window(&self, x: i64, y: i64, members: Star) -> Window {
        let rows: [u64; ROWS] = std::array::from_fn(|j| hash(SEED, (y + j as i64 - REACH) as u64));
        let origin = self.point(rows[REACH as usize], x, y);
        let mut window = Window { x: [0.0; WINDOW], y: [0.0; WINDOW], origin };
        for (k, [x, y]) in members.cells(x, y) {
            let [px, py] = self.point(rows[k / LANES], x, y);
            window.x[k] = (px - origin[0]) as f64;
            window.y[k] = (py - origin[1]) as f64;
        }
        window
    }

    /// The neighbours of the point of cell (x, y).
    pub(super) fn star(&self, x: i64, y: i64) -> Star {
        self.window(x, y, Star::ALL).star()
    }
}

impl Star {
    /// Every cell of the window.
    const ALL: Star = Star(0x007F_7F7F_7F7F_7F7F);

    /// The cells of the neighbours of the point of cell (x, y), row by row.
    pub(super) fn cells(self, x: i64, y: i64) -> impl Iterator<Item = (usize, [i64; 2])> {
        self.members().map(move |k| {
            let (dx, dy) = ((k % LANES) as i64 - REACH, (k / LANES) as i64 - REACH);
            (k, [x + dx, y + dy])
        })
    }

    /// The point at the centre counted as well.
    pub(super) fn with_centre(self) -> Star {
        Star(self.0 | 1 << CENTRE)
    }

    /// The window indices of the neighbours, increasing.
    pub(super) fn members(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let k = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(k)
        })
    }
}

impl Window {
    /// The neighbours of the point at the centre.
    fn star(&self) -> Star {
        let first = self.nearest();
        let mut star = 1u64 << first;
        let mut q = self.next(first);
        while q != first {
            debug_assert!(star >> q & 1 == 0, "the walk around a point came to a neighbour twice");
            star |= 1 << q;
            q = self.next(q);
        }
        Star(star)
    }

    /// The neighbours in counterclockwise order, written to `ring`; how many.
    pub(super) fn ring(&self, star: Star, ring: &mut [usize; WINDOW]) -> usize {
        let mut count = 0;
        for k in star.members() {
            ring[count] = k;
            count += 1;
        }
        // Directions in [0, π) come before those in [π, 2π); within a half-plane the cross product orders them.
        let lower = |k: usize| self.y[k] < 0.0 || (self.y[k] == 0.0 && self.x[k] < 0.0);
        ring[..count].sort_unstable_by(|&a, &b| {
            lower(a).cmp(&lower(b)).then_with(|| 0f64.total_cmp(&self.cross(a, b)))
        });
        count
    }

    /// Coordinates of point k relative to the centre.
    pub(super) fn at(&self, k: usize) -> [f64; 2] {
        [self.x[k], self.y[k]]
    }

    fn nearest(&self) -> usize {
        let distance = |k: usize| self.x[k] * self.x[k] + self.y[k] * self.y[k];
        let nearer = |a: usize, b: usize| if distance(b) < distance(a) { b } else { a };
        (0..WINDOW).filter(|&k| distance(k) > 0.0).reduce(nearer).unwrap_or(CENTRE)
    }

    /// The neighbour after `q`, counterclockwise.
    fn next(&self, q: usize) -> usize {
        // Without branches, to run on vectors: all quotients first, then those of points that are left of q. Points on
        // the line through 0 and q have d = 0; so have q, the centre and empty places.
        let (mut t, mut d) = ([0.0; WINDOW], [0.0; WINDOW]);
        for k in 0..WINDOW {
            d[k] = self.cross(q, k);
            t[k] = self.numerator(q, k) / d[k];
        }
        let mut lanes = [f64::INFINITY; LANES];
        for (t, d) in t.chunks_exact_mut(LANES).zip(d.chunks_exact(LANES)) {
            for lane in 0..LANES {
                t[lane] = if d[lane] > 0.0 { t[lane] } else { f64::INFINITY };
                lanes[lane] = if t[lane] < lanes[lane] { t[lane] } else { lanes[lane] };
            }
        }
        let least = lanes.into_iter().fold(f64::INFINITY, f64::min);
        // Each quotient is within half a unit in its last place.
        let close = least + 2.0 * f64::EPSILON * least.abs();
        let mut candidates = (0..WINDOW).filter(|&k| t[k] <= close);
        let first = candidates.next().unwrap_or(q);
        candidates.fold(first, |r, s| if self.before(q, s, r) { s } else { r })
    }

    /// q × r, exact.
    #[inline]
    fn cross(&self, q: usize, r: usize) -> f64 {
        self.x[q] * self.y[r] - self.y[q] * self.x[r]
    }

    /// r·(r − q), exact.
    #[inline]
    fn numerator(&self, q: usize, r: usize) -> f64 {
        self.x[r] * (self.x[r] - self.x[q]) + self.y[r] * (self.y[r] - self.y[q])
    }

    /// Whether t(s) < t(r) for the perturbed points: whether s is inside of the circle through 0, q, r.
    fn before(&self, q: usize, s: usize, r: usize) -> bool {
        let exact = |v: f64| v as i128;
        let left = exact(self.numerator(q, s)) * exact(self.cross(q, r));
        let right = exact(self.numerator(q, r)) * exact(self.cross(q, s));
        if left != right {
            return left < right;
        }
        // How the determinant |q r s|, which is negative inside, grows with the height of each point; that of the
        // centre is lowered from all three.
        let (dq, dr, ds) = (self.cross(r, s), -self.cross(q, s), self.cross(q, r));
        let mut growth = [(CENTRE, -(dq + dr + ds)), (q, dq), (r, dr), (s, ds)];
        growth.sort_unstable_by_key(|&(k, _)| std::cmp::Reverse(k));
        // ds > 0: one of them decides.
        growth.into_iter().find(|&(_, d)| d != 0.0).is_some_and(|(_, d)| d < 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: i64 = 14;

    fn star_of(points: Points, x: i64, y: i64) -> Vec<[i64; 2]> {
        points.star(x, y).cells(x, y).map(|(_, cell)| cell).collect()
    }

    /// From the square lattice, where every four neighbours lie on a circle, to the full jitter.
    fn kinds() -> [Points; 4] {
        [Points { jitter: 0 }, Points { jitter: 1 }, Points { jitter: 3 }, Points::JITTERED]
    }

    #[test]
    fn neighbours_are_mutual_and_six_on_average() {
        for points in kinds() {
            let mut degrees = 0;
            for x in 0..4 * N {
                for y in 0..4 * N {
                    let star = star_of(points, x, y);
                    degrees += star.len();
                    for [i, j] in star {
                        assert!(star_of(points, i, j).contains(&[x, y]), "{points:?} ({x}, {y}) ({i}, {j})");
                    }
                }
            }
            // Euler: exactly 6 but for what crosses the boundary.
            let mean = degrees as f64 / (16 * N * N) as f64;
            assert!((mean - 6.0).abs() < 0.05, "{points:?} {mean}");
        }
    }

    /// By brute force over all points within 6 cells: no point inside of the circle of any triangle.
    #[test]
    fn circles_are_empty() {
        for points in kinds() {
            let place = |x: i64, y: i64| points.window(x, y, Star(0)).origin.map(i128::from);
            for (x, y) in (0..N).flat_map(|x| (0..N).map(move |y| (x, y))) {
                let star = points.star(x, y);
                let window = points.window(x, y, star);
                let mut ring = [0; WINDOW];
                let count = window.ring(star, &mut ring);
                for k in 0..count {
                    let [q, r] = [ring[k], ring[(k + 1) % count]].map(|k| window.at(k).map(|v| v as i128));
                    let o = place(x, y);
                    assert!(q[0] * r[1] > q[1] * r[0]);
                    for (i, j) in (x - 6..=x + 6).flat_map(|i| (y - 6..=y + 6).map(move |j| (i, j))) {
                        let p = place(i, j);
                        let s = [p[0] - o[0], p[1] - o[1]];
                        assert!(determinant(q, r, s) >= 0, "{points:?} ({x}, {y}): ({i}, {j}) is inside");
                    }
                }
            }
        }
    }

    /// |q r s| with the squares of their lengths: negative where s is inside of the circle through 0, q, r.
    fn determinant(q: [i128; 2], r: [i128; 2], s: [i128; 2]) -> i128 {
        let height = |v: [i128; 2]| v[0] * v[0] + v[1] * v[1];
        let cross = |a: [i128; 2], b: [i128; 2]| a[0] * b[1] - a[1] * b[0];
        height(q) * cross(r, s) - height(r) * cross(q, s) + height(s) * cross(q, r)
    }

    #[test]
    fn points_stay_in_their_cells() {
        let (mut least, mut most) = (CELL, 0);
        for (x, y) in (-50..50).flat_map(|x| (-50..50).map(move |y| (x, y))) {
            let [px, py] = Points::JITTERED.window(x, y, Star(0)).origin;
            for d in [px - x * CELL, py - y * CELL] {
                (least, most) = (least.min(d), most.max(d));
            }
        }
        assert!((CELL / 10..CELL / 9).contains(&least), "{least}");
        assert!((CELL / 10..CELL / 9).contains(&(CELL - most)), "{most}");
    }
}
