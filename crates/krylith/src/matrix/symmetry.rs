//! How a matrix compares with its transpose, and the way from one stored triangle to the full matrix.
#![allow(unsafe_code)]

use super::assemble::{Entries, ROWS_PER_TASK, assemble, share};
use super::{Csr, CsrRef};
use crate::error::MatrixError;
use crate::scalar::Scalar;
use rayon::prelude::*;

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
    const NONE: Symmetry = Symmetry { pattern: false, symmetric: false, skew: false };
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

/// How some entries compare with their partners across the diagonal.
#[derive(Clone, Copy)]
struct Compared {
    symmetry: Symmetry,
    /// The largest |aᵢⱼ − aⱼᵢ|.
    difference: f64,
    /// The largest |aᵢⱼ|.
    largest: f64,
    /// Entries with partners.
    pairs: usize,
    /// Entries below the diagonal.
    below: usize,
}

impl Compared {
    const NONE: Compared =
        Compared { symmetry: Symmetry::ALL, difference: 0.0, largest: 0.0, pairs: 0, below: 0 };

    fn compare<T: Scalar>(&mut self, v: T, partner: Option<T>) {
        let other = partner.unwrap_or(T::ZERO);
        let same = Symmetry { pattern: partner.is_some(), symmetric: other == v, skew: other == -v };
        self.symmetry = self.symmetry.and(same);
        self.difference = self.difference.max((v - other).abs().to_f64());
        self.pairs += usize::from(partner.is_some());
    }

    fn and(self, o: Compared) -> Compared {
        Compared {
            symmetry: self.symmetry.and(o.symmetry),
            difference: self.difference.max(o.difference),
            largest: self.largest.max(o.largest),
            pairs: self.pairs + o.pairs,
            below: self.below + o.below,
        }
    }
}

impl<T: Scalar> CsrRef<'_, T> {
    /// How A compares with Aᵀ. Each entry looks for its partner by bisection in the partner's row; nothing is allocated.
    pub fn symmetry(&self) -> Symmetry {
        if self.nrows() != self.ncols() {
            return Symmetry::NONE;
        }
        let settled = |s: Symmetry| Some(s).filter(|&s| s != Symmetry::NONE);
        (0..self.nrows())
            .into_par_iter()
            .with_min_len(ROWS_PER_TASK)
            .map(|i| self.row_facts(i))
            .try_fold(|| Symmetry::ALL, |a, b| settled(a.and(b)))
            .try_reduce(|| Symmetry::ALL, |a, b| settled(a.and(b)))
            .unwrap_or(Symmetry::NONE)
    }

    /// The largest |aᵢⱼ − aⱼᵢ| over the largest |aᵢⱼ|, an absent entry counting as zero; 0 for a matrix of zeros.
    pub fn asymmetry(&self) -> f64 {
        if self.nrows() != self.ncols() {
            return 1.0;
        }
        let row = |i: usize| {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).fold((0.0f64, 0.0f64), |(difference, largest), (&j, &v)| {
                let partner = if j as usize == i { v } else { self.find(j as usize, i).unwrap_or(T::ZERO) };
                (difference.max((v - partner).abs().to_f64()), largest.max(v.abs().to_f64()))
            })
        };
        let larger = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
        let rows = (0..self.nrows()).into_par_iter().with_min_len(ROWS_PER_TASK);
        let (difference, largest) = rows.map(row).reduce(|| (0.0, 0.0), larger);
        if difference == 0.0 { 0.0 } else { difference / largest }
    }

    /// [`symmetry`](Self::symmetry) and [`asymmetry`](Self::asymmetry) in one pass. Entries above the diagonal look for their partners;
    /// those below are looked at only if some have none, which the numbers of both tell.
    pub(crate) fn compare_with_transpose(&self) -> (Symmetry, f64) {
        if self.nrows() != self.ncols() {
            return (Symmetry::NONE, 1.0);
        }
        let over_rows = |part: fn(&Self, usize) -> Compared| {
            let rows = (0..self.nrows()).into_par_iter().with_min_len(ROWS_PER_TASK);
            rows.map(|i| part(self, i)).reduce(|| Compared::NONE, Compared::and)
        };
        let mut all = over_rows(Self::above_diagonal);
        if all.pairs != all.below {
            all = all.and(over_rows(Self::without_partner));
        }
        let asymmetry = if all.difference == 0.0 { 0.0 } else { all.difference / all.largest };
        (all.symmetry, asymmetry)
    }

    fn above_diagonal(&self, i: usize) -> Compared {
        let (columns, values) = self.row(i);
        let mut found = Compared::NONE;
        for (k, (&j, &v)) in columns.iter().zip(values).enumerate() {
            found.largest = found.largest.max(v.abs().to_f64());
            match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => found.below += 1,
                std::cmp::Ordering::Equal => found.symmetry.skew &= v == -v,
                std::cmp::Ordering::Greater => found.compare(v, self.partner(i, j as usize, k)),
            }
        }
        found
    }

    /// The entry (j, i), entry (i, j) being number k of its row. On a grid it is number k of row j from the end; elsewhere it is looked for.
    fn partner(&self, i: usize, j: usize, k: usize) -> Option<T> {
        let (columns, values) = self.row(j);
        let place = columns.len().wrapping_sub(k + 1);
        match columns.get(place) {
            Some(&column) if column as usize == i => Some(values[place]),
            _ => self.find(j, i),
        }
    }

    fn without_partner(&self, i: usize) -> Compared {
        let (columns, values) = self.row(i);
        let below = columns.partition_point(|&j| (j as usize) < i);
        let mut found = Compared::NONE;
        for (&j, &v) in columns[..below].iter().zip(values) {
            if self.find(j as usize, i).is_none() {
                found.compare(v, None);
            }
        }
        found
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
        let outside = (0..a.nrows()).into_par_iter().find_map_first(|i| {
            let inside = |j: u32| match triangle {
                Triangle::Lower => j as usize <= i,
                Triangle::Upper => j as usize >= i,
            };
            a.row(i).0.iter().find(|&&j| !inside(j)).map(|&j| (i, j))
        });
        if let Some((row, column)) = outside {
            let triangle = if triangle == Triangle::Lower { "lower" } else { "upper" };
            return Err(MatrixError::NotTriangular { row, column, triangle });
        }
        let on_diagonal = (0..a.nrows()).into_par_iter().filter(|&i| a.find(i, i).is_some()).count();
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
