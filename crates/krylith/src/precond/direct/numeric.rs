//! The numbers of a factor: elimination along the tree, and the two triangular solves.
//!
//! A supernode of c columns and r rows below stores its panel, (c + r) x c numbers by columns with L and the upper triangle of its
//! own columns, and for LU the c x r numbers of U to the right of it. Schur complements, r x r, wait on a stack: in postorder
//! those of the children are on top when their parent is eliminated.
//!
//! The solve with M is two passes along the tree, down the columns and up again; the one with Mᵀ is the same with the triangles of LU in
//! exchanged parts, and for the symmetric factors it is the same solve.

use super::analysis::{Cost, Front, ROOT, Supernodes};
use super::dense::{
    Block, Copies, Pivot, eliminate_cholesky, eliminate_lu, solve_lower, subtract_lower, subtract_multiple,
};
use super::indefinite::{PAIR, eliminate_ldlt, solve_two};
use super::{DirectKind, SmallPivots};
use crate::error::SetupError;
use crate::memory::large_pages;

/// The factor.
#[derive(Debug)]
pub(super) struct Numbers {
    kind: DirectKind,
    /// Where the numbers of each supernode begin.
    begin: Vec<usize>,
    numbers: Vec<f64>,
    /// The row of a supernode that came to each of its rows, and for LDLᵀ which pivots have two columns.
    exchanges: Vec<u32>,
    /// L D of a supernode while it is eliminated.
    products: Vec<f64>,
    stack: Vec<f64>,
    /// Where the complement of each supernode that waits begins.
    waiting: Vec<(usize, usize)>,
    copies: Copies,
    pub(super) replaced: usize,
    pub(super) small: SmallPivots,
}

/// Where entry (i, j) of a front is among the numbers of its supernode; i or j is one of its columns.
pub(super) fn place(front: &Front<'_>, i: usize, j: usize) -> usize {
    let (m, c) = (front.size(), front.columns);
    if j < c { i + j * m } else { m * c + i + (j - c) * c }
}

impl Numbers {
    pub(super) fn allocate(nodes: &Supernodes, cost: &Cost, kind: DirectKind) -> Result<Self, SetupError> {
        let symmetric = kind.is_symmetric();
        let mut begin = Vec::with_capacity(nodes.len() + 1);
        let mut count = 0;
        for s in 0..nodes.len() {
            begin.push(count);
            let front = nodes.front(s);
            count += front.columns * front.size();
            count += if symmetric { 0 } else { front.columns * front.rows.len() };
        }
        begin.push(count);
        let (stack, products, limit) = (cost.stack as usize, cost.products as usize, cost.bytes());
        if !large_pages::has_room::<f64>(count.saturating_add(stack).saturating_add(products)) {
            return Err(SetupError::MemoryLimit { predicted: limit, limit: 0 });
        }
        let mut numbers = vec![0.0; count];
        large_pages::advise_huge_pages(&mut numbers);
        Ok(Numbers {
            kind,
            begin,
            numbers,
            exchanges: vec![0; if kind == DirectKind::Cholesky { 0 } else { nodes.order.len() }],
            products: vec![0.0; products],
            stack: vec![0.0; stack],
            waiting: Vec::new(),
            copies: Copies::default(),
            replaced: 0,
            small: SmallPivots::DEFAULT,
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
        let Numbers { kind, begin, numbers, exchanges, products, stack, waiting, copies, replaced, small } =
            self;
        let symmetric = kind.is_symmetric();
        numbers.fill(0.0);
        waiting.clear();
        *replaced = 0;
        // The first matrix is scaled to entries of at most 1; later ones of the same scales may have larger ones.
        let size = if largest > 0.0 { largest.min(1.0) } else { 1.0 };
        let small = SmallPivots { bound: small.bound * size, replacement: small.replacement * size };
        let mut top = 0;
        for s in 0..nodes.len() {
            let front = nodes.front(s);
            let (m, c, r) = (front.size(), front.columns, front.rows.len());
            let own = &mut numbers[begin[s]..begin[s + 1]];
            assemble(s, own);
            let (waits, free) = stack.split_at_mut(top);
            let complement = &mut free[..r * r];
            complement.fill(0.0);
            let mut base = top;
            while let Some(&(child, from)) =
                waiting.last().filter(|(child, _)| nodes.parent[*child] as usize == s)
            {
                add_child(&nodes.front(child), &waits[from..base], &front, (own, complement), symmetric);
                base = from;
                waiting.pop();
            }
            let (panel, right) = own.split_at_mut(m * c);
            match kind {
                DirectKind::Cholesky => {
                    eliminate_cholesky(panel, m, c, copies, |_, pivot| Pivot::if_positive(pivot))
                        .map_err(|(j, value)| (front.first + j, value))?;
                    subtract_lower(
                        (r, r, c),
                        (below(panel, c, m), below(panel, c, m)),
                        complement,
                        r,
                        copies,
                    );
                }
                DirectKind::Ldlt => {
                    let exchanges = &mut exchanges[front.first..front.first + c];
                    *replaced += eliminate_ldlt(panel, m, small, exchanges, products, copies);
                    subtract_lower(
                        (r, r, c),
                        (below(panel, c, m), below(products, c, m)),
                        complement,
                        r,
                        copies,
                    );
                }
                DirectKind::Lu => {
                    let exchanges = &mut exchanges[front.first..front.first + c];
                    *replaced += eliminate_lu(panel, m, c, small, exchanges, copies);
                    for column in right.chunks_exact_mut(c) {
                        exchanges.iter().enumerate().for_each(|(j, &row)| column.swap(j, row as usize));
                    }
                    solve_lower(Block::new(panel, m), c, right, (c, r), copies);
                    copies.subtract_product(
                        (r, r, c),
                        below(panel, c, m),
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
            let part = self.part(nodes, s);
            part.exchange(z);
            part.solve_lower(z);
        }
        for s in (0..nodes.len()).rev() {
            let part = self.part(nodes, s);
            match self.kind {
                DirectKind::Lu => part.solve_upper(z),
                DirectKind::Cholesky => part.solve_lower_transposed(z),
                DirectKind::Ldlt => {
                    part.solve_diagonal(z);
                    part.solve_lower_transposed(z);
                    part.exchange_back(z);
                }
            }
        }
    }

    /// z := M⁻ᵀ z.
    pub(super) fn solve_transposed(&self, nodes: &Supernodes, z: &mut [f64]) {
        if self.kind.is_symmetric() {
            return self.solve(nodes, z);
        }
        for s in 0..nodes.len() {
            self.part(nodes, s).solve_upper_transposed(z);
        }
        for s in (0..nodes.len()).rev() {
            let part = self.part(nodes, s);
            part.solve_lower_transposed(z);
            part.exchange_back(z);
        }
    }

    fn part<'a>(&'a self, nodes: &'a Supernodes, s: usize) -> Part<'a> {
        let front = nodes.front(s);
        let (m, c, first) = (front.size(), front.columns, front.first);
        let (panel, right) = self.numbers[self.begin[s]..self.begin[s + 1]].split_at(m * c);
        let exchanges = self.exchanges.get(first..first + c).unwrap_or_default();
        Part { kind: self.kind, front, panel, right, exchanges }
    }
}

/// The numbers of one supernode.
struct Part<'a> {
    kind: DirectKind,
    front: Front<'a>,
    panel: &'a [f64],
    right: &'a [f64],
    exchanges: &'a [u32],
}

impl Part<'_> {
    /// Where the column j of L begins besides its own place: a pivot of two columns has D there.
    fn begin(&self, j: usize) -> usize {
        let pair = self.kind == DirectKind::Ldlt && self.exchanges[j] & PAIR != 0;
        j + 1 + usize::from(pair)
    }

    fn exchange(&self, z: &mut [f64]) {
        let z = &mut z[self.front.first..];
        self.exchanges.iter().enumerate().for_each(|(j, &row)| z.swap(j, (row & !PAIR) as usize));
    }

    fn exchange_back(&self, z: &mut [f64]) {
        let z = &mut z[self.front.first..];
        self.exchanges.iter().enumerate().rev().for_each(|(j, &row)| z.swap(j, (row & !PAIR) as usize));
    }

    /// z := L⁻¹ z; the diagonal of L is 1 but for Cholesky.
    fn solve_lower(&self, z: &mut [f64]) {
        let (c, first) = (self.front.columns, self.front.first);
        for (j, column) in self.panel.chunks_exact(self.front.size()).enumerate() {
            if self.kind == DirectKind::Cholesky {
                z[first + j] /= column[j];
            }
            let (pivot, begin) = (z[first + j], self.begin(j));
            subtract_multiple::<f64>(&mut z[first + begin..first + c], &column[begin..c], pivot);
            for (&i, l) in self.front.rows.iter().zip(&column[c..]) {
                z[i as usize] -= l * pivot;
            }
        }
    }

    /// z := L⁻ᵀ z.
    fn solve_lower_transposed(&self, z: &mut [f64]) {
        let (c, first) = (self.front.columns, self.front.first);
        for (j, column) in self.panel.chunks_exact(self.front.size()).enumerate().rev() {
            let begin = self.begin(j);
            let own: f64 = column[begin..c].iter().zip(&z[first + begin..]).map(|(l, z)| l * z).sum();
            let below: f64 = self.front.rows.iter().zip(&column[c..]).map(|(&i, l)| l * z[i as usize]).sum();
            z[first + j] = z[first + j] - own - below;
            if self.kind == DirectKind::Cholesky {
                z[first + j] /= column[j];
            }
        }
    }

    /// z := D⁻¹ z.
    fn solve_diagonal(&self, z: &mut [f64]) {
        let m = self.front.size();
        let z = &mut z[self.front.first..];
        let mut j = 0;
        while j < self.front.columns {
            let d = |i: usize, k: usize| self.panel[i + k * m];
            if self.begin(j) == j + 1 {
                z[j] /= d(j, j);
                j += 1;
            } else {
                let pivot = (d(j, j), d(j + 1, j), d(j + 1, j + 1));
                (z[j], z[j + 1]) = solve_two(pivot, (z[j], z[j + 1]));
                j += 2;
            }
        }
    }

    /// z := U⁻¹ z.
    fn solve_upper(&self, z: &mut [f64]) {
        let (c, first) = (self.front.columns, self.front.first);
        for (&i, column) in self.front.rows.iter().zip(self.right.chunks_exact(c)) {
            let known = z[i as usize];
            subtract_multiple::<f64>(&mut z[first..first + c], column, known);
        }
        let z = &mut z[first..first + c];
        for (j, column) in self.panel.chunks_exact(self.front.size()).enumerate().rev() {
            z[j] /= column[j];
            let known = z[j];
            subtract_multiple::<f64>(&mut z[..j], &column[..j], known);
        }
    }

    /// z := U⁻ᵀ z.
    fn solve_upper_transposed(&self, z: &mut [f64]) {
        let (c, first) = (self.front.columns, self.front.first);
        for (j, column) in self.panel.chunks_exact(self.front.size()).enumerate() {
            let z = &mut z[first..first + c];
            let known: f64 = column[..j].iter().zip(&*z).map(|(u, z)| u * z).sum();
            z[j] = (z[j] - known) / column[j];
        }
        for (&i, column) in self.front.rows.iter().zip(self.right.chunks_exact(c)) {
            let own = &z[first..first + c];
            let known: f64 = column.iter().zip(own).map(|(u, z)| u * z).sum();
            z[i as usize] -= known;
        }
    }
}

/// The rows of a panel below its own columns.
fn below(panel: &[f64], columns: usize, stride: usize) -> Block<'_> {
    Block::new(&panel[columns..], stride)
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
