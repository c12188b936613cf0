//! The numbers of a factor: elimination along the tree, and the two triangular solves.
//!
//! A supernode of c columns and r rows below stores its panel, (c + r) x c numbers by columns with L and the upper triangle of its
//! own columns, and for LU the c x r numbers of U to the right of it. Schur complements, r x r, wait on a stack: in postorder
//! those of the children are on top when their parent is eliminated.

use super::analysis::{Cost, Front, ROOT, Supernodes};
use super::dense::{
    Block, Copies, eliminate_cholesky, eliminate_lu, solve_lower, subtract_lower, subtract_multiple,
};
use crate::error::SetupError;
use crate::huge;

/// Pivots of LU below this multiple of the largest entry are replaced: √ε.
const LEAST_PIVOT: f64 = 1.0 / (1u64 << 26) as f64;

/// The factor.
#[derive(Debug)]
pub(super) struct Numbers {
    symmetric: bool,
    /// Where the numbers of each supernode begin.
    begin: Vec<usize>,
    numbers: Vec<f64>,
    /// The row of a supernode that came to each of its rows.
    exchanges: Vec<u32>,
    stack: Vec<f64>,
    /// Where the complement of each supernode that waits begins.
    waiting: Vec<(usize, usize)>,
    copies: Copies,
    pub(super) replaced: usize,
}

/// Where entry (i, j) of a front is among the numbers of its supernode; i or j is one of its columns.
pub(super) fn place(front: &Front<'_>, i: usize, j: usize) -> usize {
    let (m, c) = (front.size(), front.columns);
    if j < c { i + j * m } else { m * c + i + (j - c) * c }
}

impl Numbers {
    pub(super) fn allocate(nodes: &Supernodes, cost: &Cost, symmetric: bool) -> Result<Self, SetupError> {
        let mut begin = Vec::with_capacity(nodes.len() + 1);
        let mut count = 0;
        for s in 0..nodes.len() {
            begin.push(count);
            let front = nodes.front(s);
            count += front.columns * front.size();
            count += if symmetric { 0 } else { front.columns * front.rows.len() };
        }
        begin.push(count);
        let (stack, limit) = (cost.stack as usize, cost.bytes());
        if !huge::has_room::<f64>(count.saturating_add(stack)) {
            return Err(SetupError::MemoryLimit { predicted: limit, limit: 0 });
        }
        let mut numbers = vec![0.0; count];
        huge::advise_huge_pages(&mut numbers);
        Ok(Numbers {
            symmetric,
            begin,
            numbers,
            exchanges: vec![0; if symmetric { 0 } else { nodes.order.len() }],
            stack: vec![0.0; stack],
            waiting: Vec::new(),
            copies: Copies::default(),
            replaced: 0,
        })
    }

    /// Eliminates everything. `assemble` adds the entries of A to the zeros of a supernode; `largest` is the largest of them. The
    /// place and the value of a pivot that Cholesky cannot use.
    pub(super) fn eliminate(
        &mut self,
        nodes: &Supernodes,
        largest: f64,
        assemble: impl Fn(usize, &mut [f64]),
    ) -> Result<(), (usize, f64)> {
        let Numbers { symmetric, begin, numbers, exchanges, stack, waiting, copies, replaced } = self;
        numbers.fill(0.0);
        waiting.clear();
        *replaced = 0;
        // The first matrix is scaled to entries of at most 1; later ones of the same scales may have larger ones.
        let least = LEAST_PIVOT * if largest > 0.0 { largest.min(1.0) } else { 1.0 };
        let mut top = 0;
        for s in 0..nodes.len() {
            let front = nodes.front(s);
            let (m, c, r) = (front.size(), front.columns, front.rows.len());
            let own = &mut numbers[begin[s]..begin[s + 1]];
            assemble(s, own);
            let (below, above) = stack.split_at_mut(top);
            let complement = &mut above[..r * r];
            complement.fill(0.0);
            let mut base = top;
            while let Some(&(child, from)) =
                waiting.last().filter(|(child, _)| nodes.parent[*child] as usize == s)
            {
                add_child(&nodes.front(child), &below[from..base], &front, (own, complement), *symmetric);
                base = from;
                waiting.pop();
            }
            let (panel, right) = own.split_at_mut(m * c);
            if *symmetric {
                eliminate_cholesky(panel, m, c, 0.0, copies)
                    .map_err(|(j, value)| (front.first + j, value))?;
                if r > 0 {
                    subtract_lower((r, r, c), Block::new(&panel[c..], m), complement, r, copies);
                }
            } else {
                let exchanges = &mut exchanges[front.first..front.first + c];
                *replaced += eliminate_lu(panel, m, c, least, exchanges, copies);
                for column in right.chunks_exact_mut(c) {
                    exchanges.iter().enumerate().for_each(|(j, &row)| column.swap(j, row as usize));
                }
                if r > 0 {
                    solve_lower(Block::new(panel, m), c, right, (c, r), copies);
                    copies.subtract_product(
                        (r, r, c),
                        Block::new(&panel[c..], m),
                        Block::new(right, c),
                        complement,
                        r,
                    );
                }
            }
            stack.copy_within(top..top + r * r, base);
            if nodes.parent[s] != ROOT {
                waiting.push((s, base));
                top = base + r * r;
            } else {
                top = base;
            }
        }
        Ok(())
    }

    /// z := M⁻¹ z, in the order of elimination.
    pub(super) fn solve(&self, nodes: &Supernodes, z: &mut [f64]) {
        for s in 0..nodes.len() {
            self.forward(s, &nodes.front(s), z);
        }
        for s in (0..nodes.len()).rev() {
            self.backward(s, &nodes.front(s), z);
        }
    }

    fn forward(&self, s: usize, front: &Front<'_>, z: &mut [f64]) {
        let (m, c, first) = (front.size(), front.columns, front.first);
        let panel = &self.numbers[self.begin[s]..][..m * c];
        if !self.symmetric {
            for j in 0..c {
                z.swap(first + j, first + self.exchanges[first + j] as usize);
            }
        }
        for (j, column) in panel.chunks_exact(m).enumerate() {
            let (head, tail) = z[first..].split_at_mut(j + 1);
            if self.symmetric {
                head[j] /= column[j];
            }
            let pivot = head[j];
            subtract_multiple::<f64>(&mut tail[..c - j - 1], &column[j + 1..c], pivot);
            for (&i, l) in front.rows.iter().zip(&column[c..]) {
                z[i as usize] -= l * pivot;
            }
        }
    }

    fn backward(&self, s: usize, front: &Front<'_>, z: &mut [f64]) {
        let (m, c, first) = (front.size(), front.columns, front.first);
        let (panel, right) = self.numbers[self.begin[s]..self.begin[s + 1]].split_at(m * c);
        if self.symmetric {
            for (j, column) in panel.chunks_exact(m).enumerate().rev() {
                let own: f64 = column[j + 1..c].iter().zip(&z[first + j + 1..]).map(|(l, z)| l * z).sum();
                let below: f64 = front.rows.iter().zip(&column[c..]).map(|(&i, l)| l * z[i as usize]).sum();
                z[first + j] = (z[first + j] - own - below) / column[j];
            }
            return;
        }
        for (&i, column) in front.rows.iter().zip(right.chunks_exact(c)) {
            let known = z[i as usize];
            subtract_multiple::<f64>(&mut z[first..first + c], column, known);
        }
        for (j, column) in panel.chunks_exact(m).enumerate().rev() {
            let z = &mut z[first..first + c];
            z[j] /= column[j];
            let known = z[j];
            subtract_multiple::<f64>(&mut z[..j], &column[..j], known);
        }
    }
}

/// Adds the complement of a child to the front of its parent.
fn add_child(
    child: &Front<'_>,
    from: &[f64],
    front: &Front<'_>,
    (own, complement): (&mut [f64], &mut [f64]),
    symmetric: bool,
) {
    let (m, c, r) = (front.size(), front.columns, front.rows.len());
    let places = child.places;
    let inside = places.partition_point(|&place| (place as usize) < c);
    for (b, (&column, from)) in places.iter().zip(from.chunks_exact(places.len())).enumerate() {
        let (column, skip) = (column as usize, if symmetric { b } else { 0 });
        if column < c {
            let to = &mut own[column * m..][..m];
            places.iter().zip(from).skip(skip).for_each(|(&row, v)| to[row as usize] += v);
            continue;
        }
        if !symmetric {
            let to = &mut own[m * c + (column - c) * c..][..c];
            places[..inside].iter().zip(from).for_each(|(&row, v)| to[row as usize] += v);
        }
        let to = &mut complement[(column - c) * r..][..r];
        let skip = skip.max(inside);
        places.iter().zip(from).skip(skip).for_each(|(&row, v)| to[row as usize - c] += v);
    }
}
