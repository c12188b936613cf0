//! L D Lᵀ of the first columns of a symmetric front, with pivots of one or two columns.
//!
//! Rows and columns are exchanged among those of the supernode by the rule of Bunch and Kaufman: with λ the largest of column j below the
//! diagonal, in row i, and σ the largest of column i off the diagonal, the pivot is aⱼⱼ if |aⱼⱼ| ≥ α λ or |aⱼⱼ| σ ≥ α λ²; aᵢᵢ if |aᵢᵢ| ≥ α σ; and
//! otherwise the two columns j and i, α = (1 + √17) / 8. Columns are brought up to date when they are looked at, the columns to the right of a
//! panel all at once, as products of blocks.
//!
//! Reference: Bunch & Kaufman 1977, doi:10.1090/S0025-5718-1977-0428694-0.

use super::SmallPivots;
use super::dense::{Block, Copies, PANEL, subtract_lower, subtract_multiple};

/// Marks, among the exchanges, the first of two columns that are one pivot.
pub(super) const PAIR: u32 = 1 << 31;

/// The bound of Bunch and Kaufman: (1 + √17) / 8.
const ALPHA: f64 = 0.640_388_203_202_208_4;

/// A pivot that was chosen.
enum Pivot {
    /// This row and column.
    One(usize),
    /// The next one and this.
    Two(usize),
}

/// The columns of a front while they are eliminated. Lower triangles only.
struct Elimination<'a> {
    panel: &'a mut [f64],
    /// L D, column by column, as high as the panel.
    products: &'a mut [f64],
    m: usize,
    columns: usize,
}

/// Eliminates the first columns of a symmetric front of `m` rows, of which the lower triangle is given. D takes the place of the
/// diagonal; where a pivot has two columns its third number is below the first, where L is zero. `products` becomes L D.
/// `exchanges[j]` is the row and column that came to place j, [`PAIR`] added where j is the first of two. How many pivots were replaced.
pub(super) fn eliminate_ldlt(
    panel: &mut [f64],
    m: usize,
    small: SmallPivots,
    exchanges: &mut [u32],
    products: &mut [f64],
    copies: &mut Copies,
) -> usize {
    let columns = exchanges.len();
    let mut front = Elimination { panel, products, m, columns };
    let (mut replaced, mut begin) = (0, 0);
    while begin < columns {
        let mut j = begin;
        // The last pivot of a panel may have a column more.
        while j < columns && j < begin + PANEL {
            match front.choose(begin, j) {
                Pivot::One(row) => {
                    exchanges[j] = row as u32;
                    front.exchange(j, row);
                    replaced += usize::from(front.eliminate_one(j, small));
                    j += 1;
                }
                Pivot::Two(row) => {
                    exchanges[j] = j as u32 | PAIR;
                    exchanges[j + 1] = row as u32;
                    front.exchange(j + 1, row);
                    front.eliminate_two(j);
                    j += 2;
                }
            }
        }
        if j < columns {
            let (left, right) = front.panel.split_at_mut(j * m);
            let below = Block::new(&left[begin * m + j..], m);
            let products = Block::new(&front.products[begin * m + j..], m);
            subtract_lower((m - j, columns - j, j - begin), (below, products), &mut right[j..], m, copies);
        }
        begin = j;
    }
    replaced
}

impl Elimination<'_> {
    /// Brings column j, and where it is looked at another one, up to date in `products`, the latter as column j + 1; the pivot.
    fn choose(&mut self, begin: usize, j: usize) -> Pivot {
        self.update(begin, j, j, j);
        let columns = self.columns;
        let largest = |column: &[f64], but: usize| {
            let (mut at, mut size) = (but, 0.0);
            for (i, v) in column.iter().enumerate().take(columns).skip(j) {
                if i != but && v.abs() > size {
                    (at, size) = (i, v.abs());
                }
            }
            (at, size)
        };
        let column = &self.products[j * self.m..][..self.m];
        let diagonal = column[j].abs();
        let (row, below) = largest(column, j);
        if row == j || diagonal >= ALPHA * below {
            return Pivot::One(j);
        }
        self.update(begin, j, row, j + 1);
        let other = &self.products[(j + 1) * self.m..][..self.m];
        let (_, beside) = largest(other, row);
        if diagonal * beside >= ALPHA * below * below {
            return Pivot::One(j);
        }
        if other[row].abs() >= ALPHA * beside {
            self.products.copy_within((j + 1) * self.m..(j + 2) * self.m, j * self.m);
            return Pivot::One(row);
        }
        Pivot::Two(row)
    }

    /// Column k of what is left after the columns before j, into column `to` of the products; those before `begin` are subtracted
    /// already.
    fn update(&mut self, begin: usize, j: usize, k: usize, to: usize) {
        let m = self.m;
        let (before, rest) = self.products.split_at_mut(to * m);
        let column = &mut rest[..m];
        for i in j..k {
            column[i] = self.panel[k + i * m];
        }
        column[k..].copy_from_slice(&self.panel[k * m + k..(k + 1) * m]);
        for p in begin..j {
            let factor = before[k + p * m];
            subtract_multiple::<f64>(&mut column[j..], &self.panel[p * m + j..(p + 1) * m], factor);
        }
    }

    /// Exchanges two rows and columns, q not before p, in the panel and in the products of columns before them and of p.
    fn exchange(&mut self, p: usize, q: usize) {
        if p == q {
            return;
        }
        let (m, panel) = (self.m, &mut *self.panel);
        for k in 0..p {
            panel.swap(p + k * m, q + k * m);
        }
        for k in 0..=p {
            self.products.swap(p + k * m, q + k * m);
        }
        panel.swap(p + p * m, q + q * m);
        for i in p + 1..q {
            panel.swap(i + p * m, q + i * m);
        }
        for i in q + 1..m {
            panel.swap(i + p * m, i + q * m);
        }
    }

    /// L and D of column j from its product; whether the pivot had to be replaced.
    fn eliminate_one(&mut self, j: usize, small: SmallPivots) -> bool {
        let m = self.m;
        let product = &mut self.products[j * m..][..m];
        let replaced = small.replace(&mut product[j]);
        let inverse = 1.0 / product[j];
        let column = &mut self.panel[j * m..][..m];
        column[j] = product[j];
        for (l, v) in column[j + 1..].iter_mut().zip(&product[j + 1..]) {
            *l = v * inverse;
        }
        replaced
    }

    /// L and D of columns j and j + 1.
    fn eliminate_two(&mut self, j: usize) {
        let m = self.m;
        let (first, second) = self.products[j * m..(j + 2) * m].split_at(m);
        let (a, b, c) = (first[j], first[j + 1], second[j + 1]);
        let (left, right) = self.panel[j * m..(j + 2) * m].split_at_mut(m);
        (left[j], left[j + 1], right[j + 1]) = (a, b, c);
        for i in j + 2..m {
            (left[i], right[i]) = solve_two((a, b, c), (first[i], second[i]));
        }
    }
}

/// The solution of [a b; b c] (x, y) = (f, g), b being the largest of the three by far enough.
pub(super) fn solve_two((a, b, c): (f64, f64, f64), (f, g): (f64, f64)) -> (f64, f64) {
    // Divided by b: nothing overflows.
    let (a, c) = (a / b, c / b);
    let inverse = 1.0 / (a * c - 1.0);
    let (f, g) = (f / b, g / b);
    ((c * f - g) * inverse, (a * g - f) * inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric front by its lower triangle, with zeros on some of the diagonal.
    fn front(m: usize, columns: usize, seed: u64) -> Vec<f64> {
        let mut s = seed;
        let mut next = || {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (s >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        (0..m * columns).map(|e| if e % m == e / m && e % 3 != 0 { 0.0 } else { next() }).collect()
    }

    /// P F Pᵀ = L D Lᵀ on the columns that are eliminated.
    #[test]
    fn multiplies_back() {
        for (m, columns) in [(1, 1), (2, 2), (5, 3), (30, 25), (70, 61), (130, 100)] {
            let f = front(m, columns, 7);
            let (mut ldl, mut exchanges) = (f.clone(), vec![0; columns]);
            let mut products = vec![0.0; m * (columns + 1)];
            let copies = &mut Copies::default();
            let never = SmallPivots { bound: 0.0, replacement: 0.0 };
            let replaced = eliminate_ldlt(&mut ldl, m, never, &mut exchanges, &mut products, copies);
            assert_eq!(replaced, 0);
            let mut order: Vec<usize> = (0..m).collect();
            exchanges.iter().enumerate().for_each(|(j, &row)| order.swap(j, (row & !PAIR) as usize));
            let pairs: Vec<bool> = exchanges.iter().map(|&row| row & PAIR != 0).collect();
            let l = |i: usize, k: usize| match i {
                _ if i == k => 1.0,
                _ if i < k || pairs[k] && i == k + 1 => 0.0,
                _ => ldl[i + k * m],
            };
            for i in 0..m {
                for j in 0..columns.min(i + 1) {
                    let (p, q) = (order[i].max(order[j]), order[i].min(order[j]));
                    let mut sum = 0.0;
                    for k in 0..columns {
                        sum += l(i, k) * ldl[k + k * m] * l(j, k);
                        if pairs[k] {
                            let d = ldl[k + 1 + k * m];
                            sum += d * (l(i, k) * l(j, k + 1) + l(i, k + 1) * l(j, k));
                        }
                    }
                    assert!((sum - f[p + q * m]).abs() < 1e-9, "{m} {columns}: {i}, {j}: {sum}");
                }
            }
            if columns > 20 {
                assert!(pairs.iter().any(|&pair| pair));
            }
        }
    }

    /// [ 0 1 ] is one pivot of two columns; a zero is replaced.
    /// [ 1 0 ]
    #[test]
    fn by_hand() {
        let (mut f, mut exchanges, mut products) = (vec![0.0, 1.0, 0.0, 0.0], vec![0; 2], vec![0.0; 6]);
        let (copies, small) = (&mut Copies::default(), SmallPivots { bound: 1e-8, replacement: 1.0 });
        assert_eq!(eliminate_ldlt(&mut f, 2, small, &mut exchanges, &mut products, copies), 0);
        assert_eq!((exchanges[0], exchanges[1]), (PAIR, 1));
        assert_eq!(solve_two((0.0, 1.0, 0.0), (3.0, 5.0)), (5.0, 3.0));
        let (mut f, mut exchanges, mut products) = (vec![-0.0], vec![0], vec![0.0; 2]);
        assert_eq!(eliminate_ldlt(&mut f, 1, small, &mut exchanges, &mut products, copies), 1);
        assert_eq!(f, [-1.0]);
    }
}
