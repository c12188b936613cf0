//! Inverses of small dense blocks, by rows.
//!
//! [`invert_definite`]: D = (I + N) Δ (I + N)ᵀ without square roots, from the lower triangle alone; the inverse Mᵀ Δ⁻¹ M with
//! M = (I + N)⁻¹ is computed below the diagonal and mirrored, so it is symmetric to the bit. Breakdown: a pivot δ that is not
//! positive, that is a block that is not positive definite.
//!
//! [`invert_general`]: Gaussian elimination with partial pivoting of [D | I]. Breakdown: no pivot is left but zero.
//!
//! Both: about 2 B³ operations; a pivot, or an inverse, that is not finite is a breakdown too. For B = 1 both are 1 / d.
//! Reference: Golub & Van Loan, Matrix Computations, 4th ed., sections 3.4 and 4.1.

/// A block by rows.
pub(super) type Block<const B: usize> = [[f64; B]; B];

/// The step (row within the block) at which elimination broke down, and the pivot there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Breakdown {
    pub(super) step: usize,
    pub(super) pivot: f64,
}

/// 1 / p, if p and it are finite numbers other than zero.
#[inline(always)]
fn reciprocal(step: usize, pivot: f64) -> Result<f64, Breakdown> {
    let inverse = 1.0 / pivot;
    if pivot != 0.0 && pivot.is_finite() && inverse.is_finite() {
        Ok(inverse)
    } else {
        Err(Breakdown { step, pivot })
    }
}

/// The inverse, if it is finite; the first row that is not names the breakdown.
#[inline(always)]
fn finite<const B: usize>(inverse: Block<B>, pivots: [f64; B]) -> Result<Block<B>, Breakdown> {
    match inverse.iter().position(|row| row.iter().any(|v| !v.is_finite())) {
        None => Ok(inverse),
        Some(step) => Err(Breakdown { step, pivot: pivots[step] }),
    }
}

/// The inverse of a symmetric positive definite block, of which only the lower triangle is read.
#[inline(always)]
pub(super) fn invert_definite<const B: usize>(d: &Block<B>) -> Result<Block<B>, Breakdown> {
    // N below the diagonal of n; 1 / δ.
    let (mut n, mut delta, mut inverse) = ([[0.0; B]; B], [0.0; B], [0.0; B]);
    for j in 0..B {
        let mut v = d[j][j];
        for k in 0..j {
            v -= n[j][k] * n[j][k] * delta[k];
        }
        if v <= 0.0 {
            return Err(Breakdown { step: j, pivot: v });
        }
        delta[j] = v;
        inverse[j] = reciprocal(j, v)?;
        for i in j + 1..B {
            let mut v = d[i][j];
            for k in 0..j {
                v -= n[i][k] * n[j][k] * delta[k];
            }
            n[i][j] = v * inverse[j];
        }
    }
    // M = (I + N)⁻¹, its unit diagonal included.
    let mut m = [[0.0; B]; B];
    for i in 0..B {
        m[i][i] = 1.0;
        for j in 0..i {
            let mut v = 0.0;
            for k in j..i {
                v -= n[i][k] * m[k][j];
            }
            m[i][j] = v;
        }
    }
    let mut result = [[0.0; B]; B];
    for r in 0..B {
        for s in 0..=r {
            let mut v = 0.0;
            for k in r..B {
                v += m[k][r] * inverse[k] * m[k][s];
            }
            result[r][s] = v;
            result[s][r] = v;
        }
    }
    finite(result, delta)
}

/// The inverse of any block.
#[inline(always)]
pub(super) fn invert_general<const B: usize>(d: &Block<B>) -> Result<Block<B>, Breakdown> {
    let (mut d, mut e, mut pivots, mut inverse) = (*d, [[0.0; B]; B], [0.0; B], [0.0; B]);
    for k in 0..B {
        e[k][k] = 1.0;
    }
    for k in 0..B {
        let mut best = k;
        for i in k + 1..B {
            if d[i][k].abs() > d[best][k].abs() {
                best = i;
            }
        }
        d.swap(k, best);
        e.swap(k, best);
        pivots[k] = d[k][k];
        inverse[k] = reciprocal(k, d[k][k])?;
        for i in k + 1..B {
            let f = d[i][k] * inverse[k];
            for j in 0..B {
                // Columns of d up to k are not read again.
                d[i][j] -= f * d[k][j];
                e[i][j] -= f * e[k][j];
            }
        }
    }
    for k in (0..B).rev() {
        for j in k + 1..B {
            let f = d[k][j];
            for c in 0..B {
                e[k][c] -= f * e[j][c];
            }
        }
        for c in 0..B {
            e[k][c] *= inverse[k];
        }
    }
    finite(e, pivots)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(invert_definite(&[[4.0, 2.0], [2.0, 5.0]]), Ok(inverse));
        // The upper triangle is not read.
        assert_eq!(invert_definite(&[[4.0, f64::NAN], [2.0, 5.0]]), Ok(inverse));
        // A zero in the first place needs an exchange of rows.
        assert_eq!(invert_general(&[[0.0, 2.0], [4.0, 0.0]]), Ok([[0.0, 0.25], [0.5, 0.0]]));
        assert_eq!(invert_general(&[[3.0]]), Ok([[1.0 / 3.0]]));
        assert_eq!(invert_definite(&[[3.0]]), Ok([[1.0 / 3.0]]));
    }

    #[test]
    fn a_breakdown_names_its_step_and_pivot() {
        let broken = |step, pivot| Err(Breakdown { step, pivot });
        assert_eq!(invert_definite(&[[4.0, 2.0], [2.0, 1.0]]), broken(1, 0.0));
        assert_eq!(invert_definite(&[[4.0, 2.0], [2.0, -1.0]]), broken(1, -2.0));
        assert_eq!(invert_definite(&[[-4.0, 2.0], [2.0, 1.0]]), broken(0, -4.0));
        assert_eq!(invert_general(&[[1.0, 2.0], [2.0, 4.0]]), broken(1, 0.0));
        assert_eq!(invert_general(&[[0.0, 2.0], [0.0, 4.0]]), broken(0, 0.0));
        for bad in [f64::NAN, f64::INFINITY, 1e-310] {
            assert_eq!(invert_definite(&[[1.0, 0.0], [0.0, bad]]).unwrap_err().step, 1, "{bad}");
            assert_eq!(invert_general(&[[1.0, 0.0], [0.0, bad]]).unwrap_err().step, 1, "{bad}");
        }
    }

    fn check<const B: usize>() {
        let wave = |k: usize| ((k * 7919 + B) as f64).sin();
        let general: Block<B> = std::array::from_fn(|r| std::array::from_fn(|s| wave(r * B + s)));
        assert_inverse(&general, &invert_general(&general).unwrap());
        // G Gᵀ + I is positive definite.
        let transposed: Block<B> = std::array::from_fn(|r| std::array::from_fn(|s| general[s][r]));
        let mut definite = product(&general, &transposed);
        (0..B).for_each(|r| definite[r][r] += 1.0);
        let inverse = invert_definite(&definite).unwrap();
        assert_inverse(&definite, &inverse);
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
}
