//! Terms of a [`BinnedSum`](super::BinnedSum) in integers: its definition, and what it does with numbers near the ends of their range.

use super::{RANGE, WIDTH};

/// A finite number, significand · 2^exponent.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    significand: i128,
    exponent: i32,
}

impl Parts {
    pub(super) fn of(a: f64) -> Self {
        let (bits, field) = (a.to_bits() & ((1 << 52) - 1), (a.to_bits() >> 52 & 0x7ff) as i32);
        let size = i128::from(if field == 0 { bits } else { bits | 1 << 52 });
        Parts { significand: if a < 0.0 { -size } else { size }, exponent: field.max(1) - 1075 }
    }

    /// Whether q is in range for this unit.
    pub(super) fn fits(&self, index: i32) -> bool {
        let shift = self.exponent - WIDTH * index;
        // The significand has at most 53 bits.
        self.significand == 0
            || (shift < RANGE && (-(1 << RANGE)..1 << RANGE).contains(&rounded(self.significand, shift)))
    }

    /// q and l for a unit that fits.
    pub(super) fn bins(&self, index: i32) -> [i128; 2] {
        let shift = self.exponent - WIDTH * index;
        let q = rounded(self.significand, shift);
        let rest = match shift {
            0.. => 0,
            // q is 0.
            ..-100 => self.significand,
            _ => self.significand - (q << -shift),
        };
        [q, rounded(rest, shift + WIDTH)]
    }
}

/// The integer nearest to a · 2^shift, even where two are. `a` has at most 100 bits, the result at most 103.
fn rounded(a: i128, shift: i32) -> i128 {
    match shift {
        0.. => a << shift,
        ..-110 => 0,
        _ => {
            let (whole, rest) = (a >> -shift, a & ((1 << -shift) - 1));
            let half = 1 << (-shift - 1);
            whole + i128::from(rest > half || (rest == half && whole & 1 == 1))
        }
    }
}
