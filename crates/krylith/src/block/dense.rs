//! Inverses of small dense blocks by rows, one or several at once, and what makes a pivot block a bad one.
//!
//! [`invert_definite`]: D = (I + N) Δ (I + N)ᵀ without square roots, from the lower triangle alone; the inverse Mᵀ Δ⁻¹ M with
//! M = (I + N)⁻¹ is computed below the diagonal and mirrored, so it is symmetric to the bit. Breakdown: a pivot δ that is not
//! positive, that is a block that is not positive definite.
//!
//! [`invert_general`]: Gaussian elimination with partial pivoting of [D | I]. Breakdown: no pivot is left but zero.
//!
//! Both: about 2 B³ operations; a pivot, or an inverse, that is not finite is a breakdown too, and so is an inverse that exceeds
//! 1 / ([`SMALLEST_PIVOT`] times the block of A). For B = 1 both are 1 / d.
//!
//! Lane l of every number belongs to block l: matrices of blocks invert one block at a time, those on grids eight. Every lane
//! exchanges its own rows and is rounded by itself, so an inverse does not depend on the blocks beside it.
//! Reference: Golub & Van Loan, Matrix Computations, 4th ed., sections 3.4 and 4.1.

use crate::elimination::form::SMALLEST_PIVOT;
use crate::simd::rolled;

/// N blocks by rows, one a lane.
pub(crate) type Blocks<const B: usize, const N: usize> = [[[f64; N]; B]; B];

/// Rows of a block, and columns of an inner loop: of one lane they are what is computed with vector instructions.
#[inline(always)]
fn rows_and_columns<const B: usize, const N: usize>() -> (usize, usize) {
    let rows = rolled::<B>();
    (rows, if const { N == 1 } { B } else { rows })
}

/// The step (row within the block) at which elimination broke down, and the pivot there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Breakdown {
    pub(crate) step: usize,
    pub(crate) pivot: f64,
}

/// The inverses of N blocks.
pub(crate) struct Inverses<const B: usize, const N: usize> {
    /// Those of bad blocks hold anything.
    pub(crate) blocks: Blocks<B, N>,
    /// The breakdowns of bad blocks; `None` if all blocks are good.
    pub(crate) breakdowns: Option<[Option<Breakdown>; N]>,
}

/// Whether a number and its inverse are both finite.
#[inline(always)]
fn is_invertible(pivot: f64, inverse: f64) -> bool {
    pivot.is_finite() & inverse.is_finite()
}

/// Looks for breakdowns. `size` is the largest entry of each block of A.
#[inline(always)]
fn judged<const B: usize, const N: usize>(
    blocks: Blocks<B, N>,
    pivots: &[[f64; N]; B],
    size: &[f64; N],
    definite: bool,
) -> Inverses<B, N> {
    let (mut good, (rows, columns)) = (true, rows_and_columns::<B, N>());
    for k in 0..rows {
        for l in 0..N {
            let (pivot, most) = (pivots[k][l], 1.0 / (SMALLEST_PIVOT * size[l]));
            good &= is_invertible(pivot, 1.0 / pivot) & (pivot > 0.0 || !definite);
            for j in 0..columns {
                // Neither infinity nor NaN is smaller than anything.
                good &= blocks[k][j][l].abs() < most;
            }
        }
    }
    let breakdowns = if good { None } else { Some(breakdowns(&blocks, pivots, size, definite)) };
    Inverses { blocks, breakdowns }
}

/// The breakdown of each lane: its first bad pivot, else its first row that is not finite, else its first row that is too large.
#[cold]
fn breakdowns<const B: usize, const N: usize>(
    blocks: &Blocks<B, N>,
    pivots: &[[f64; N]; B],
    size: &[f64; N],
    definite: bool,
) -> [Option<Breakdown>; N] {
    std::array::from_fn(|l| {
        let row = |step: usize| blocks[step].iter().map(move |v| v[l].abs());
        let largest = |step: usize| row(step).fold(0.0, f64::max);
        let bad_pivot = |&step: &usize| {
            let pivot = pivots[step][l];
            !is_invertible(pivot, 1.0 / pivot) || (definite && pivot <= 0.0)
        };
        if let Some(step) = (0..B).find(bad_pivot) {
            return Some(Breakdown { step, pivot: pivots[step][l] });
        }
        if let Some(step) = (0..B).find(|&step| row(step).any(|v| !v.is_finite())) {
            return Some(Breakdown { step, pivot: pivots[step][l] });
        }
        let most = 1.0 / (SMALLEST_PIVOT * size[l]);
        let step = (0..B).find(|&step| largest(step) >= most)?;
        Some(Breakdown { step, pivot: 1.0 / largest(step) })
    })
}

/// The inverses of symmetric positive definite blocks, of which only the lower triangles are read. `size` is the largest entry of
/// each block of A.
#[inline(always)]
pub(crate) fn invert_definite<const B: usize, const N: usize>(
    d: &Blocks<B, N>,
    size: &[f64; N],
) -> Inverses<B, N> {
    let rows = rolled::<B>();
    // N below the diagonal of n; 1 / δ.
    let (mut n, mut delta, mut inverse) = ([[[0.0; N]; B]; B], [[0.0; N]; B], [[0.0; N]; B]);
    for j in 0..rows {
        let mut v = d[j][j];
        for k in 0..j {
            for l in 0..N {
                v[l] -= n[j][k][l] * n[j][k][l] * delta[k][l];
            }
        }
        delta[j] = v;
        for l in 0..N {
            inverse[j][l] = 1.0 / v[l];
        }
        for i in j + 1..rows {
            let mut v = d[i][j];
            for k in 0..j {
                for l in 0..N {
                    v[l] -= n[i][k][l] * n[j][k][l] * delta[k][l];
                }
            }
            for l in 0..N {
                n[i][j][l] = v[l] * inverse[j][l];
            }
        }
    }
    // M = (I + N)⁻¹, its unit diagonal included.
    let mut m = [[[0.0; N]; B]; B];
    for i in 0..rows {
        m[i][i] = [1.0; N];
        for j in 0..i {
            let mut v = [0.0; N];
            for k in j..i {
                for l in 0..N {
                    v[l] -= n[i][k][l] * m[k][j][l];
                }
            }
            m[i][j] = v;
        }
    }
    let mut result = [[[0.0; N]; B]; B];
    for r in 0..rows {
        for s in 0..=r {
            let mut v = [0.0; N];
            for k in r..rows {
                for l in 0..N {
                    v[l] += m[k][r][l] * inverse[k][l] * m[k][s][l];
                }
            }
            result[r][s] = v;
            result[s][r] = v;
        }
    }
    judged(result, &delta, size, true)
}

/// The inverses of any blocks. `size` is the largest entry of each block of A.
#[inline(always)]
pub(crate) fn invert_general<const B: usize, const N: usize>(
    d: &Blocks<B, N>,
    size: &[f64; N],
) -> Inverses<B, N> {
    let (rows, columns) = rows_and_columns::<B, N>();
    let (mut d, mut e) = (*d, [[[0.0; N]; B]; B]);
    let (mut pivots, mut inverse) = ([[0.0; N]; B], [[0.0; N]; B]);
    for k in 0..rows {
        e[k][k] = [1.0; N];
    }
    for k in 0..rows {
        exchange(&mut d, &mut e, k);
        pivots[k] = d[k][k];
        for l in 0..N {
            inverse[k][l] = 1.0 / pivots[k][l];
        }
        for i in k + 1..rows {
            let mut f = [0.0; N];
            for l in 0..N {
                f[l] = d[i][k][l] * inverse[k][l];
            }
            // Columns of d up to k are not read again; rows of one lane are updated as a whole, which takes fewer instructions.
            for j in if N == 1 { 0 } else { k + 1 }..columns {
                for l in 0..N {
                    d[i][j][l] -= f[l] * d[k][j][l];
                }
            }
            for j in 0..columns {
                for l in 0..N {
                    e[i][j][l] -= f[l] * e[k][j][l];
                }
            }
        }
    }
    for k in (0..rows).rev() {
        for j in k + 1..rows {
            let f = d[k][j];
            for c in 0..columns {
                for l in 0..N {
                    e[k][c][l] -= f[l] * e[j][c][l];
                }
            }
        }
        for c in 0..columns {
            for l in 0..N {
                e[k][c][l] *= inverse[k][l];
            }
        }
    }
    judged(e, &pivots, size, false)
}

/// Brings the first of the largest entries of column k from the diagonal down to the diagonal, in each lane.
#[inline(always)]
fn exchange<const B: usize, const N: usize>(d: &mut Blocks<B, N>, e: &mut Blocks<B, N>, k: usize) {
    let (mut any, (rows, columns)) = (false, rows_and_columns::<B, N>());
    for i in k + 1..rows {
        for l in 0..N {
            any |= d[i][k][l].abs() > d[k][k][l].abs();
        }
    }
    if !any {
        return;
    }
    for l in 0..N {
        let mut best = k;
        for i in k + 1..rows {
            if d[i][k][l].abs() > d[best][k][l].abs() {
                best = i;
            }
        }
        if best != k {
            for j in 0..columns {
                (d[k][j][l], d[best][j][l]) = (d[best][j][l], d[k][j][l]);
                (e[k][j][l], e[best][j][l]) = (e[best][j][l], e[k][j][l]);
            }
        }
    }
}

/// The inverse of one block, whatever the size of its entries.
#[cfg(test)]
pub(crate) fn invert_one<const B: usize>(
    invert: impl Fn(&Blocks<B, 1>, &[f64; 1]) -> Inverses<B, 1>,
    d: &[[f64; B]; B],
) -> Result<[[f64; B]; B], Breakdown> {
    let inverses = invert(&d.map(|row| row.map(|v| [v])), &[0.0]);
    match inverses.breakdowns {
        Some([Some(breakdown)]) => Err(breakdown),
        _ => Ok(inverses.blocks.map(|row| row.map(|[v]| v))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Block<const B: usize> = [[f64; B]; B];

    fn definite<const B: usize>(d: &Block<B>) -> Result<Block<B>, Breakdown> {
        invert_one(invert_definite, d)
    }

    fn general<const B: usize>(d: &Block<B>) -> Result<Block<B>, Breakdown> {
        invert_one(invert_general, d)
    }

    fn product<const B: usize>(a: &Block<B>, b: &Block<B>) -> Block<B> {
        std::array::from_fn(|r| std::array::from_fn(|s| (0..B).map(|k| a[r][k] * b[k][s]).sum()))
    }

    /// A A⁻¹ = I up to rounding times the condition.
    fn assert_inverse<const B: usize>(a: &Block<B>, inverse: &Block<B>) {
        let norm = |a: &Block<B>| a.iter().flatten().map(|v| v * v).sum::<f64>().sqrt();
        let bound = B as f64 * f64::EPSILON * norm(a) * norm(inverse);
        for (r, row) in product(a, inverse).iter().enumerate() {
            for (s, &v) in row.iter().enumerate() {
                assert!((v - f64::from(r == s)).abs() <= bound, "B = {B}, ({r}, {s}): {v}, {bound:e}");
            }
        }
    }

    /// [4 2; 2 5] has δ = (4, 4), N = 1/2 and the inverse [5 -2; -2 4] / 16.
    #[test]
    fn inverses_by_hand() {
        let inverse = [[5.0 / 16.0, -2.0 / 16.0], [-2.0 / 16.0, 4.0 / 16.0]];
        assert_eq!(definite(&[[4.0, 2.0], [2.0, 5.0]]), Ok(inverse));
        // The upper triangle is not read.
        assert_eq!(definite(&[[4.0, f64::NAN], [2.0, 5.0]]), Ok(inverse));
        // A zero in the first place needs an exchange of rows.
        assert_eq!(general(&[[0.0, 2.0], [4.0, 0.0]]), Ok([[0.0, 0.25], [0.5, 0.0]]));
        assert_eq!(general(&[[3.0]]), Ok([[1.0 / 3.0]]));
        assert_eq!(definite(&[[3.0]]), Ok([[1.0 / 3.0]]));
    }

    #[test]
    fn a_breakdown_names_its_step_and_pivot() {
        let broken = |step, pivot| Err(Breakdown { step, pivot });
        assert_eq!(definite(&[[4.0, 2.0], [2.0, 1.0]]), broken(1, 0.0));
        assert_eq!(definite(&[[4.0, 2.0], [2.0, -1.0]]), broken(1, -2.0));
        assert_eq!(definite(&[[-4.0, 2.0], [2.0, 1.0]]), broken(0, -4.0));
        assert_eq!(general(&[[1.0, 2.0], [2.0, 4.0]]), broken(1, 0.0));
        assert_eq!(general(&[[0.0, 2.0], [0.0, 4.0]]), broken(0, 0.0));
        for bad in [f64::NAN, f64::INFINITY, 1e-310] {
            assert_eq!(definite(&[[1.0, 0.0], [0.0, bad]]).unwrap_err().step, 1, "{bad}");
            assert_eq!(general(&[[1.0, 0.0], [0.0, bad]]).unwrap_err().step, 1, "{bad}");
        }
    }

    fn check<const B: usize>() {
        let wave = |k: usize| ((k * 7919 + B) as f64).sin();
        let a: Block<B> = std::array::from_fn(|r| std::array::from_fn(|s| wave(r * B + s)));
        assert_inverse(&a, &general(&a).unwrap());
        // A Aᵀ + I is positive definite.
        let transposed: Block<B> = std::array::from_fn(|r| std::array::from_fn(|s| a[s][r]));
        let mut positive = product(&a, &transposed);
        (0..B).for_each(|r| positive[r][r] += 1.0);
        let inverse = definite(&positive).unwrap();
        assert_inverse(&positive, &inverse);
        assert!((0..B).all(|r| (0..B).all(|s| inverse[r][s].to_bits() == inverse[s][r].to_bits())));
    }

    #[test]
    fn inverses_of_every_size() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<5>();
        check::<6>();
        check::<7>();
        check::<8>();
    }

    /// Blocks of eight lanes: good ones with and without exchanges, zeros, a NaN, and a tiny one.
    fn lane<const B: usize>(l: usize) -> Block<B> {
        let wave = |k: usize| ((k * 7919 + B) as f64).sin();
        std::array::from_fn(|r| {
            std::array::from_fn(|s| match l {
                2 => 0.0,
                5 if r == B - 1 && s == r => f64::NAN,
                6 => f64::from(r == s) * 1e-20,
                _ => wave((l * B + r) * B + s) + if r == s && l.is_multiple_of(2) { 4.0 } else { 0.0 },
            })
        })
    }

    /// Eight blocks at once give the bits and the breakdowns of each of them alone.
    fn check_lanes<const B: usize>(
        eight: impl Fn(&Blocks<B, 8>, &[f64; 8]) -> Inverses<B, 8>,
        one: impl Fn(&Blocks<B, 1>, &[f64; 1]) -> Inverses<B, 1>,
    ) {
        let blocks: [Block<B>; 8] = std::array::from_fn(lane);
        let together =
            std::array::from_fn(|r| std::array::from_fn(|s| std::array::from_fn(|l| blocks[l][r][s])));
        let found = eight(&together, &[1.0; 8]);
        let breakdowns = found.breakdowns.expect("lanes 2, 5 and 6 are bad");
        let bits = |b: Option<Breakdown>| b.map(|b| (b.step, b.pivot.to_bits()));
        for l in 0..8 {
            let expected = one(&blocks[l].map(|row| row.map(|v| [v])), &[1.0]);
            let breakdown = expected.breakdowns.and_then(|[breakdown]| breakdown);
            assert_eq!(bits(breakdowns[l]), bits(breakdown), "B = {B}, lane {l}");
            assert!(breakdown.is_some() || ![2, 5, 6].contains(&l), "B = {B}, lane {l}");
            for (r, s) in (0..B * B).map(|k| (k / B, k % B)).filter(|_| breakdown.is_none()) {
                assert_eq!(found.blocks[r][s][l].to_bits(), expected.blocks[r][s][0].to_bits());
            }
        }
    }

    #[test]
    fn a_lane_does_not_depend_on_the_others() {
        check_lanes::<1>(invert_general, invert_general);
        check_lanes::<2>(invert_general, invert_general);
        check_lanes::<5>(invert_general, invert_general);
        check_lanes::<8>(invert_general, invert_general);
        check_lanes::<1>(invert_definite, invert_definite);
        check_lanes::<2>(invert_definite, invert_definite);
        check_lanes::<5>(invert_definite, invert_definite);
        check_lanes::<8>(invert_definite, invert_definite);
    }
}
