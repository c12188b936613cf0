//! A network of resistors: a lattice with missing edges, long links and a leak to ground.
//!
//!   aᵢⱼ = −g of the resistor between i and j,   aᵢᵢ = leak + Σ g;
//!
//! g = 10^(3 U − 3/2), U uniform in [0, 1), one number an edge. An edge of the lattice is missing with probability 1/16. A
//! twelfth of the nodes has one long link, to the partner given by an involution of the nodes. Every node leaks 10⁻⁶ and
//! one of 1024 is tied to ground by 1, so that the matrix is positive definite whatever edges are missing.
//! `graph-laplacian` has all edges of the lattice and no way to ground: it is connected, and constants are its null space.
//! 1259 x 1259 is near G3_circuit (n = 1,585,478, nnz = 7,660,826) in size, not in difficulty: CG with ILU(0) takes 118 iterations to 1e-7, there 183
//! (benchmarks/runs/2026-11-18-nvidia).

use super::grid::Grid;
use super::random::{SEED, hash, power_of_ten, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;

const LEAK: f64 = 1e-6;

/// Streams of random numbers: of the edges, of the links, of the ties to ground.
const EDGES: u64 = SEED;
const LINKS: u64 = SEED + (1 << 32);
const TIES: u64 = SEED + (2 << 32);

pub(super) fn circuit(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(&Network { grid, pairs: Pairs::new(grid.len()), whole: false }, ground)
}

pub(super) fn graph_laplacian(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(&Network { grid, pairs: Pairs::new(grid.len()), whole: true }, |_| 0.0)
}

fn assemble(network: &Network<'_>, ground: fn(usize) -> f64) -> Result<Csr<f64>, MatrixError> {
    let n = network.grid.len();
    Csr::from_rows(
        n,
        n,
        |i| 1 + network.resistors(i).into_iter().flatten().count(),
        |i, columns, values| {
            let mut entries = [(i, ground(i)); 6];
            let mut count = 1;
            for r in network.resistors(i).into_iter().flatten() {
                let g = r.conductance();
                entries[0].1 += g;
                entries[count] = (r.to, -g);
                count += 1;
            }
            entries[..count].sort_unstable_by_key(|&(j, _)| j);
            for (k, &(j, value)) in entries[..count].iter().enumerate() {
                (columns[k], values[k]) = (j as u32, value);
            }
        },
    )
}

/// At most: no edge missing, a link at every node.
pub(super) fn circuit_nnz(grid: &Grid) -> u64 {
    grid.star_nnz() + grid.len() as u64
}

fn ground(i: usize) -> f64 {
    LEAK + if hash(TIES, i as u64).is_multiple_of(1024) { 1.0 } else { 0.0 }
}

struct Network<'a> {
    grid: &'a Grid,
    pairs: Pairs,
    /// No edge of the lattice is missing.
    whole: bool,
}

/// A resistor as one of its ends sees it.
#[derive(Clone, Copy)]
struct Resistor {
    /// The other end.
    to: usize,
    /// The random bits of the edge, the same from both ends.
    bits: u64,
}

impl Resistor {
    fn conductance(&self) -> f64 {
        power_of_ten(3.0 * uniform(self.bits) - 1.5)
    }
}

impl Network<'_> {
    /// Four edges of the lattice and one link, those that exist.
    fn resistors(&self, i: usize) -> [Option<Resistor>; 5] {
        let [x, y, _] = self.grid.cell(i);
        let [nx, ny, _] = self.grid.n;
        [
            (y > 0).then(|| self.edge(i - nx, i - nx, 1)).flatten(),
            (x > 0).then(|| self.edge(i - 1, i - 1, 0)).flatten(),
            (x + 1 < nx).then(|| self.edge(i, i + 1, 0)).flatten(),
            (y + 1 < ny).then(|| self.edge(i, i + nx, 1)).flatten(),
            self.link(i),
        ]
    }

    /// The edge that starts at node `from` along an axis, to the end `to` as the other end sees it.
    fn edge(&self, from: usize, to: usize, axis: u64) -> Option<Resistor> {
        let bits = hash(EDGES, 2 * from as u64 + axis);
        (self.whole || !hash(bits, 0).is_multiple_of(16)).then_some(Resistor { to, bits })
    }

    fn link(&self, i: usize) -> Option<Resistor> {
        let to = self.pairs.partner(i)?;
        let distance = i.abs_diff(to);
        let bits = hash(LINKS, i.min(to) as u64);
        // Not where the lattice has its own edges: an entry would come twice.
        (distance != 1 && distance != self.grid.n[0] && uniform(hash(bits, 0)) < 1.0 / 12.0)
            .then_some(Resistor { to, bits })
    }
}

/// Nodes in pairs: partner = π⁻¹ ∘ (flip the last bit) ∘ π with a permutation π of 0..n, an involution.
///
/// π repeats steps that can be undone on numbers of `bits` bits (multiply by an odd number, fold the upper half onto the
/// lower), and goes on until the number falls below n; to go back along the same cycle undoes it.
struct Pairs {
    n: u64,
    bits: u32,
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
/// ODD · INVERSE = 1 modulo 2⁶⁴.
const INVERSE: u64 = inverse(ODD);
const ROUNDS: usize = 3;

impl Pairs {
    fn new(n: usize) -> Self {
        Pairs { n: n as u64, bits: n.next_power_of_two().trailing_zeros() }
    }

    /// The partner of a node; none for one node at most, where n is odd.
    fn partner(&self, i: usize) -> Option<usize> {
        let other = self.walk(i as u64, |x| self.step(x)) ^ 1;
        (other < self.n).then(|| self.walk(other, |x| self.back(x)) as usize)
    }

    fn walk(&self, x: u64, step: impl Fn(u64) -> u64) -> u64 {
        let mut x = step(x);
        while x >= self.n {
            x = step(x);
        }
        x
    }

    fn step(&self, x: u64) -> u64 {
        (0..ROUNDS).fold(x, |x, _| self.fold(self.low(x.wrapping_mul(ODD))))
    }

    fn back(&self, x: u64) -> u64 {
        (0..ROUNDS).fold(x, |x, _| self.low(self.fold(x).wrapping_mul(INVERSE)))
    }

    fn low(&self, x: u64) -> u64 {
        x & ((1 << self.bits) - 1)
    }

    /// Its own inverse, since the shift is at least half of the bits.
    fn fold(&self, x: u64) -> u64 {
        x ^ (x >> self.bits.div_ceil(2).max(1))
    }
}

/// The inverse of an odd number modulo 2⁶⁴, by Newton's iteration: each step doubles the number of right bits, from 3.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut step = 0;
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_mutual() {
        for n in [1, 2, 3, 7, 8, 9, 100, 1023, 1025] {
            let pairs = Pairs::new(n);
            let alone = (0..n).filter(|&i| match pairs.partner(i) {
                Some(j) => {
                    assert!(j < n && j != i && pairs.partner(j) == Some(i), "{i} of {n}");
                    false
                }
                None => true,
            });
            assert_eq!(alone.count(), n % 2);
        }
    }

    #[test]
    fn partners_are_far_apart() {
        let n = 10_000;
        let pairs = Pairs::new(n);
        let mean: usize = (0..n).map(|i| i.abs_diff(pairs.partner(i).unwrap())).sum::<usize>() / n;
        // n/3 for a random pairing.
        assert!((2_800..3_900).contains(&mean), "{mean}");
    }
}
