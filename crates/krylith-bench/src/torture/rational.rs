//! The least residual of a small system, in rational arithmetic.
//!
//! AᵀA z = Aᵀb has a solution for every A and b; elimination on it, with free unknowns set to zero, gives a z that minimises ‖b − A z‖, and
//! ‖b − A z‖² = bᵀb − bᵀA z. Every `f64` is a rational number, so that nothing is rounded, whatever the condition.

use super::wide::Wide;
use krylith::Csr;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};

/// Systems of more rows are not judged so: numbers would have too many digits.
const MOST_ROWS: usize = 8;

/// What is exactly true of A x = b.
#[derive(Debug, Clone, PartialEq)]
pub struct Least {
    /// The rank of A.
    pub rank: usize,
    /// The square of the least ‖b − A x‖₂.
    pub square: BigRational,
}

fn rational(x: f64) -> BigRational {
    BigRational::from_float(x).expect("a finite number")
}

/// The rank of A and the least residual; none where A is too large.
pub fn least_residual(a: &Csr<f64>, b: &[f64]) -> Option<Least> {
    let n = a.ncols();
    if a.nrows() > MOST_ROWS || n > MOST_ROWS {
        return None;
    }
    let mut dense = vec![vec![BigRational::zero(); n]; a.nrows()];
    for (i, row) in dense.iter_mut().enumerate() {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).for_each(|(&j, &v)| row[j as usize] = rational(v));
    }
    let b: Vec<BigRational> = b.iter().map(|&b| rational(b)).collect();
    let dot = |j: usize, other: &dyn Fn(usize) -> BigRational| -> BigRational {
        (0..dense.len()).map(|i| &dense[i][j] * other(i)).sum()
    };
    // Aᵀ (A | b)
    let mut rows: Vec<Vec<BigRational>> = (0..n)
        .map(|j| {
            let product = (0..n).map(|k| dot(j, &|i| dense[i][k].clone()));
            product.chain([dot(j, &|i| b[i].clone())]).collect()
        })
        .collect();
    let normal: Vec<BigRational> = rows.iter().map(|row| row[n].clone()).collect();
    let pivots = eliminate(&mut rows, n);
    let along: BigRational =
        pivots.iter().enumerate().map(|(k, &column)| &normal[column] * &rows[k][n]).sum();
    let square: BigRational = b.iter().map(|b| b * b).sum::<BigRational>() - along;
    Some(Least { rank: pivots.len(), square })
}

/// A vector z with A z = 0, rounded to `f64`; none where A is regular or too large.
pub fn null_vector(a: &Csr<f64>) -> Option<Vec<f64>> {
    let n = a.ncols();
    if a.nrows() > MOST_ROWS || n > MOST_ROWS || !a.values().iter().all(|v| v.is_finite()) {
        return None;
    }
    let mut rows = vec![vec![BigRational::zero(); n]; a.nrows()];
    for (i, row) in rows.iter_mut().enumerate() {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).for_each(|(&j, &v)| row[j as usize] = rational(v));
    }
    let pivots = eliminate(&mut rows, n);
    let free = (0..n).find(|column| !pivots.contains(column))?;
    let mut z = vec![0.0; n];
    z[free] = 1.0;
    for (row, &pivot) in rows.iter().zip(&pivots) {
        z[pivot] = -row[free].to_f64()?;
    }
    z.iter().all(|z| z.is_finite()).then_some(z)
}

/// Gauss and Jordan on the first n columns; the column of the pivot of each row.
fn eliminate(rows: &mut [Vec<BigRational>], n: usize) -> Vec<usize> {
    let mut pivots = Vec::new();
    for column in 0..n {
        let done = pivots.len();
        let Some(pivot) = (done..rows.len()).find(|&i| !rows[i][column].is_zero()) else { continue };
        rows.swap(done, pivot);
        let inverse = rows[done][column].recip();
        rows[done].iter_mut().for_each(|v| *v *= &inverse);
        let own = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|&(i, _)| i != done) {
            if !row[column].is_zero() {
                let factor = row[column].clone();
                row.iter_mut().zip(&own).for_each(|(v, own)| *v -= &factor * own);
            }
        }
        pivots.push(column);
    }
    pivots
}

/// ‖b − A x‖₂² exactly.
pub fn residual_square(a: &Csr<f64>, x: &[f64], b: &[f64]) -> BigRational {
    let row = |i: usize| {
        let (columns, values) = a.row(i);
        let product = columns.iter().zip(values).map(|(&j, &v)| rational(v) * rational(x[j as usize]));
        let rest = rational(b[i]) - product.sum::<BigRational>();
        &rest * &rest
    };
    (0..a.nrows()).map(row).sum()
}

/// A norm as a rational number.
pub fn of_wide(norm: Wide) -> BigRational {
    let (mantissa, exponent) = norm.into_parts();
    let power = BigRational::from_integer(BigInt::from(2)).pow(exponent as i32);
    BigRational::from_integer(mantissa.into()) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(x: i64) -> BigRational {
        BigRational::from_integer(x.into())
    }

    /// Row 0 is empty, rows 1 and 2 can be met: of b = (1, 1, 1) the first entry is left.
    #[test]
    fn an_empty_row() {
        let a = Csr::from_entries(3, 3, [(1, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]).unwrap();
        assert_eq!(least_residual(&a, &[1.0; 3]), Some(Least { rank: 2, square: whole(1) }));
        assert_eq!(residual_square(&a, &[0.0; 3], &[1.0; 3]), whole(3));
        assert_eq!(residual_square(&a, &[0.5, 0.5, 1.0], &[1.0; 3]), whole(1));
    }

    /// y = (1, 2, −1) is orthogonal to the range: (yᵀb)² / yᵀy = 4 / 6.
    #[test]
    fn rows_that_depend_on_each_other() {
        let rows = [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 4.0, 6.0]];
        let a = Csr::from_entries(3, 3, (0..9).map(|k| (k / 3, k % 3, rows[k / 3][k % 3]))).unwrap();
        let square = BigRational::new(2.into(), 3.into());
        assert_eq!(least_residual(&a, &[1.0; 3]), Some(Least { rank: 2, square }));
    }

    #[test]
    fn null_vectors() {
        // Columns 0 and 2 of (1 2 3; 2 4 6; 0 1 0): z = (−3, 0, 1).
        let rows = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 0.0]];
        let a = Csr::from_entries(3, 3, (0..9).map(|k| (k / 3, k % 3, rows[k / 3][k % 3]))).unwrap();
        assert_eq!(null_vector(&a), Some(vec![-3.0, 0.0, 1.0]));
        assert_eq!(null_vector(&Csr::identity(3).unwrap()), None);
    }

    /// 1 + 2⁻⁵² on the diagonal of (1 −1; −1 1) makes it regular.
    #[test]
    fn one_bit_makes_it_regular() {
        let pair =
            |d: f64| Csr::from_entries(2, 2, [(0, 0, d), (0, 1, -1.0), (1, 0, -1.0), (1, 1, d)]).unwrap();
        assert_eq!(least_residual(&pair(1.0), &[1.0, 1.0]), Some(Least { rank: 1, square: whole(2) }));
        let regular = least_residual(&pair(1.0 + f64::EPSILON), &[1.0, 1.0]);
        assert_eq!(regular, Some(Least { rank: 2, square: whole(0) }));
    }
}
