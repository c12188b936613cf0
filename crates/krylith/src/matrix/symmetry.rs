//! How a matrix compares with its transpose, and the way from one stored triangle to the full matrix.
#![allow(unsafe_code)]

use super::assemble::{Entries, assemble};
use super::{Csr, CsrRef, RowBits};
use crate::error::MatrixError;
use crate::parallel;
use crate::parallel::share;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries that are looked at before a partner is searched for by bisection.
const STEPS_TO_PARTNER: usize = 8;

/// How A compares with Aᵀ, exactly: no tolerance. All false for a matrix that is not square.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symmetry {
    /// Every entry has a partner across the diagonal, of whatever value.
    pub pattern: bool,
    /// aᵢⱼ = aⱼᵢ, an absent entry counting as zero.
    pub symmetric: bool,
    /// aᵢⱼ = −aⱼᵢ, an absent entry counting as zero.
    pub skew: bool,
}

/// A triangle of a square matrix, the diagonal included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// Column ≤ row.
    Lower,
    /// Column ≥ row.
    Upper,
}

/// What the entries across the diagonal are, in [`Csr::expand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mirror {
    /// aⱼᵢ = aᵢⱼ.
    Symmetric,
    /// aⱼᵢ = −aᵢⱼ.
    Skew,
}

impl Symmetry {
    pub(crate) const NONE: Symmetry = Symmetry { pattern: false, symmetric: false, skew: false };
    const ALL: Symmetry = Symmetry { pattern: true, symmetric: true, skew: true };

    /// What holds for both.
    fn and(self, o: Symmetry) -> Symmetry {
        Symmetry {
            pattern: self.pattern && o.pattern,
            symmetric: self.symmetric && o.symmetric,
            skew: self.skew && o.skew,
        }
    }
}

/// An entry without a partner of at most this multiple of √|aᵢᵢ aⱼⱼ|, which no entry of a definite matrix exceeds, is rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// How some entries compare with their partners across the diagonal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    symmetry: Symmetry,
    /// Those without partners are negligible.
    paired: bool,
    /// The largest |aᵢⱼ − aⱼᵢ|.
    difference: f64,
    /// Entries with partners.
    pairs: usize,
    /// Entries below the diagonal.
    below: usize,
}

impl Compared {
    pub(crate) const NONE: Compared =
        Compared { symmetry: Symmetry::ALL, paired: true, difference: 0.0, pairs: 0, below: 0 };

    /// Compares an entry with its partner, if it has one; of one without it is asked whether it is negligible.
    pub(crate) fn compare<T: Scalar>(
        &mut self,
        v: T,
        partner: Option<T>,
        is_negligible: impl FnOnce() -> bool,
    ) {
        if partner == Some(v) {
            self.symmetry.skew &= v == -v;
            self.pairs += 1;
            return;
        }
        let other = partner.unwrap_or(T::ZERO);
        self.paired = self.paired && (partner.is_some() || is_negligible());
        let same = Symmetry { pattern: partner.is_some(), symmetric: other == v, skew: other == -v };
        self.symmetry = self.symmetry.and(same);
        self.difference = self.difference.max((v - other).abs().to_f64());
        self.pairs += usize::from(partner.is_some());
    }

    pub(crate) fn and(self, o: Compared) -> Compared {
        Compared {
            symmetry: self.symmetry.and(o.symmetry),
            paired: self.paired && o.paired,
            difference: self.difference.max(o.difference),
            pairs: self.pairs + o.pairs,
            below: self.below + o.below,
        }
    }

    /// Counts `more` entries below the diagonal besides.
    pub(crate) fn with_below(self, more: usize) -> Compared {
        Compared { below: self.below + more, ..self }
    }

    /// Whether entries below the diagonal have partners, if this is about all entries of a matrix: the numbers of both show it.
    pub(crate) fn has_all_partners(&self) -> bool {
        self.pairs == self.below
    }

    /// How a matrix compares with its transpose, this being what [`CsrRef::compare_row`] found in all rows. Entries below the diagonal are looked at
    /// only if some have no partners.
    pub(crate) fn conclude<T: Scalar>(self, a: CsrRef<'_, T>, largest: f64) -> Comparison {
        let all = if self.has_all_partners() { self } else { self.and(a.without_partners()) };
        all.concluded(largest)
    }

    /// How a matrix compares with its transpose, this being about all entries, of which this is the largest.
    pub(crate) fn concluded(self, largest: f64) -> Comparison {
        let Compared { symmetry, paired, difference, .. } = self;
        let asymmetry = if difference == 0.0 { 0.0 } else { difference / largest };
        Comparison { symmetry, paired, asymmetry }
    }

    /// Whether v, which has no partner, is 0 or as small as a rounding error in its two rows, which have these entries on the diagonal.
    pub(crate) fn is_negligible<T: Scalar>(v: T, diagonal: [T; 2]) -> bool {
        let [one, other] = diagonal.map(|d| d.abs().to_f64().sqrt());
        v == T::ZERO || v.abs().to_f64() <= ROUNDING * one * other
    }

    /// To be sent to another process.
    pub(crate) fn to_words(self) -> [u64; 4] {
        let Symmetry { pattern, symmetric, skew } = self.symmetry;
        let bits = [pattern, symmetric, skew, self.paired];
        let bits = bits.into_iter().enumerate().map(|(k, bit)| u64::from(bit) << k).sum();
        [bits, self.difference.to_bits(), self.pairs as u64, self.below as u64]
    }

    /// As it was sent.
    pub(crate) fn from_words(words: &[u64]) -> Option<Self> {
        let &[bits, difference, pairs, below] = words else { return None };
        let bit = |k: usize| bits >> k & 1 == 1;
        let symmetry = Symmetry { pattern: bit(0), symmetric: bit(1), skew: bit(2) };
        let (difference, pairs, below) = (f64::from_bits(difference), pairs as usize, below as usize);
        Some(Compared { symmetry, paired: bit(3), difference, pairs, below })
    }
}

/// How a matrix compares with its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Comparison {
    pub(crate) symmetry: Symmetry,
    /// Entries without partners, if there are any, are zeros or rounding errors ([`CsrRef::is_negligible`]).
    pub(crate) paired: bool,
    /// The largest |aᵢⱼ − aⱼᵢ| over the largest |aᵢⱼ|.
    pub(crate) asymmetry: f64,
}

impl Comparison {
    /// Of a matrix that is not square.
    pub(crate) const NONE: Comparison =
        Comparison { symmetry: Symmetry::NONE, paired: false, asymmetry: 1.0 };
}

impl<T: Scalar> CsrRef<'_, T> {
    /// How A compares with Aᵀ. Each entry looks for its partner by bisection in the partner's row; nothing is allocated.
    pub fn symmetry(&self) -> Symmetry {
        if self.nrows() != self.ncols() {
            return Symmetry::NONE;
        }
        // Where nothing holds in some rows, the others need not be looked at.
        let settled = AtomicBool::new(false);
        let piece = |rows: Range<usize>| {
            if settled.load(Ordering::Relaxed) {
                return Symmetry::NONE;
            }
            let mut all = Symmetry::ALL;
            for i in rows {
                all = all.and(self.row_facts(i));
                if all == Symmetry::NONE {
                    settled.store(true, Ordering::Relaxed);
                    break;
                }
            }
            all
        };
        parallel::fold(self.nrows(), piece, Symmetry::and).unwrap_or(Symmetry::ALL)
    }

    /// The largest |aᵢⱼ − aⱼᵢ| over the largest |aᵢⱼ|, an absent entry counting as zero; 0 for a matrix of zeros.
    pub fn asymmetry(&self) -> f64 {
        if self.nrows() != self.ncols() {
            return 1.0;
        }
        let piece = |rows: Range<usize>| {
            let (mut found, mut largest) = (Compared::NONE, 0.0f64);
            for i in rows {
                self.compare_row(i, &mut found);
                largest = self.row(i).1.iter().fold(largest, |largest, v| largest.max(v.abs().to_f64()));
            }
            (found, largest)
        };
        let all = parallel::fold(self.nrows(), piece, |a, b| (a.0.and(b.0), a.1.max(b.1)));
        let (found, largest) = all.unwrap_or((Compared::NONE, 0.0));
        found.conclude(*self, largest).asymmetry
    }

    /// Compares the entries of these rows above the diagonal with their partners. `same` are rows that repeat the one before in columns and
    /// values: where those of its partners do so too, a row compares as the one before did.
    pub(crate) fn compare_rows(&self, rows: Range<usize>, same: &RowBits, found: &mut Compared) {
        let (mut i, mut pairs, mut below) = (rows.start, 0, 0);
        while i < rows.end {
            let alike = if i == rows.start { 0 } else { self.alike(i, same).min(rows.end - i) };
            if alike == 0 {
                (pairs, below) = (found.pairs, found.below);
                self.compare_row(i, found);
                (pairs, below) = (found.pairs - pairs, found.below - below);
                i += 1;
            } else {
                found.pairs += alike * pairs;
                found.below += alike * below;
                i += alike;
            }
        }
    }

    /// How many rows from this one on repeat the one before, as all rows of their partners above the diagonal do; at most 64.
    fn alike(&self, i: usize, same: &RowBits) -> usize {
        let mut word = same.word(i);
        for &j in self.row(i).0.iter().rev().take_while(|&&j| j as usize > i) {
            if word & 1 == 0 {
                break;
            }
            word &= same.word(j as usize);
        }
        word.trailing_ones() as usize
    }

    /// Compares the entries of a row above the diagonal with their partners; not inlined, as that would crowd the loop around it.
    #[inline(never)]
    pub(crate) fn compare_row(&self, i: usize, found: &mut Compared) {
        let (columns, values) = self.row(i);
        let mut all = *found;
        for (k, (&j, &v)) in columns.iter().zip(values).enumerate() {
            let j = j as usize;
            if j > i {
                all.compare(v, self.partner(i, j, k), || self.is_negligible(i, j, v));
            } else {
                all.below += usize::from(j < i);
                all.symmetry.skew &= j < i || v == -v;
            }
        }
        *found = all;
    }

    /// The entry (j, i), entry (i, j) being number k of its row. On a grid it is number k of row j from the end, with blocks or on a mesh it is near
    /// that; elsewhere it is looked for by bisection.
    #[inline(always)]
    fn partner(&self, i: usize, j: usize, k: usize) -> Option<T> {
        let (columns, values) = self.row(j);
        let mut place = columns.len().checked_sub(1)?.saturating_sub(k);
        for _ in 0..STEPS_TO_PARTNER {
            match (columns[place] as usize).cmp(&i) {
                std::cmp::Ordering::Equal => return Some(values[place]),
                std::cmp::Ordering::Less if place + 1 < columns.len() => place += 1,
                std::cmp::Ordering::Greater if place > 0 => place -= 1,
                _ => return None,
            }
        }
        self.find(j, i)
    }

    /// The entries below the diagonal that have no partners.
    pub(crate) fn without_partners(&self) -> Compared {
        let piece = |rows: Range<usize>| {
            let mut found = Compared::NONE;
            for i in rows {
                let (columns, values) = self.row(i);
                let below = columns.partition_point(|&j| (j as usize) < i);
                for (&j, &v) in columns[..below].iter().zip(values) {
                    if self.find(j as usize, i).is_none() {
                        found.compare(v, None, || self.is_negligible(i, j as usize, v));
                    }
                }
            }
            found
        };
        parallel::fold(self.nrows(), piece, Compared::and).unwrap_or(Compared::NONE)
    }

    /// Whether v, where (i, j) is an entry and (j, i) is not, is 0 or as small as a rounding error in these two rows. As powers of two scale both sides
    /// alike, scaled matrices have the same such entries.
    pub(crate) fn is_negligible(&self, i: usize, j: usize, v: T) -> bool {
        let diagonal = |k: usize| self.find(k, k).unwrap_or(T::ZERO);
        Compared::is_negligible(v, [diagonal(i), diagonal(j)])
    }

    fn row_facts(&self, i: usize) -> Symmetry {
        let (columns, values) = self.row(i);
        let mut facts = Symmetry::ALL;
        for (&j, &v) in columns.iter().zip(values) {
            let partner = if j as usize == i { Some(v) } else { self.find(j as usize, i) };
            facts.pattern &= partner.is_some();
            let partner = partner.unwrap_or(T::ZERO);
            facts.symmetric &= partner == v;
            facts.skew &= partner == -v;
        }
        facts
    }

    /// One triangle of a square matrix, the diagonal included.
    pub fn triangle(&self, triangle: Triangle) -> Result<Csr<T>, MatrixError> {
        self.require_square()?;
        // Sorted columns: the triangle is a piece of each row.
        let piece = |i: usize| {
            let (columns, values) = self.row(i);
            match triangle {
                Triangle::Lower => {
                    let end = columns.partition_point(|&j| j as usize <= i);
                    (&columns[..end], &values[..end])
                }
                Triangle::Upper => {
                    let start = columns.partition_point(|&j| (j as usize) < i);
                    (&columns[start..], &values[start..])
                }
            }
        };
        Csr::from_rows(
            self.nrows(),
            self.ncols(),
            |i| piece(i).0.len(),
            |i, columns, values| {
                columns.copy_from_slice(piece(i).0);
                values.copy_from_slice(piece(i).1);
            },
        )
    }
}

impl<T: Scalar> Csr<T> {
    /// The full matrix from one stored triangle: every entry off the diagonal is mirrored across it.
    ///
    /// ```
    /// use krylith::{Csr, matrix::{Mirror, Triangle}};
    /// let lower = Csr::from_triplets(2, 2, &[0, 1, 1], &[0, 0, 1], &[2.0, -1.0, 2.0])?;
    /// let a = lower.expand(Triangle::Lower, Mirror::Symmetric)?;
    /// assert_eq!(a.get(0, 1), -1.0);
    /// # Ok::<(), krylith::MatrixError>(())
    /// ```
    pub fn expand(&self, triangle: Triangle, mirror: Mirror) -> Result<Csr<T>, MatrixError> {
        let a = self.view();
        a.require_square()?;
        let outside = |i: usize| {
            let inside = |j: u32| match triangle {
                Triangle::Lower => j as usize <= i,
                Triangle::Upper => j as usize >= i,
            };
            a.row(i).0.iter().find(|&&j| !inside(j)).map(|&j| (i, j))
        };
        let first = parallel::first(a.nrows(), |i| outside(i).is_some());
        if let Some((row, column)) = first.and_then(outside) {
            let triangle = if triangle == Triangle::Lower { "lower" } else { "upper" };
            return Err(MatrixError::NotTriangular { row, column, triangle });
        }
        let on_diagonal = parallel::sum(a.nrows(), |i| usize::from(a.find(i, i).is_some()));
        let len = 2 * a.nnz() - on_diagonal;
        assemble(a.nrows(), a.ncols(), &Mirrored { a, mirror, len })
    }
}

struct Mirrored<'a, T> {
    a: CsrRef<'a, T>,
    mirror: Mirror,
    len: usize,
}

// SAFETY: the matrix cannot change while it is borrowed.
unsafe impl<T: Scalar> Entries<T> for Mirrored<'_, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn for_each(&self, k: usize, shares: usize, mut visit: impl FnMut(u32, u32, T)) {
        for i in share(self.a.nrows(), k, shares) {
            let (columns, values) = self.a.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                visit(i as u32, j, v);
                if j as usize != i {
                    visit(j, i as u32, if self.mirror == Mirror::Skew { -v } else { v });
                }
            }
        }
    }
}
