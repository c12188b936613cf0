//! `krylith spy`: a picture of where the entries are.
//!
//! A large matrix is drawn as a raster of cells; the darker a cell, the more of its places hold an entry (on a logarithmic
//! scale). Counting is in parallel and exact.

use crate::Failure;
use crate::args::Spy;
use crate::input::load;
use crate::outputs::{self, Output};
use crate::plot;
use crate::progress::spinner;
use crate::report::{count, print};
use krylith::Csr;
use rayon::prelude::*;

/// Cells a side at most.
const CELLS: usize = 400;

/// Entries counted by cell.
pub struct Raster {
    /// Rows and columns of the matrix.
    pub shape: (usize, usize),
    /// Cells down and across.
    pub cells: (usize, usize),
    /// Counts, row by row of cells.
    pub counts: Vec<u64>,
}

impl Raster {
    pub fn new(a: &Csr<f64>) -> Self {
        let shape = (a.nrows(), a.ncols());
        let longest = shape.0.max(shape.1).max(1);
        let side = |n: usize| (n * CELLS.min(longest)).div_ceil(longest).max(1);
        let cells = (side(shape.0), side(shape.1));
        let mut counts = vec![0u64; cells.0 * cells.1];
        counts.par_chunks_mut(cells.1).enumerate().for_each(|(down, line)| {
            // Rows whose cell is `down`: i · cells / rows = down.
            let first = |d: usize| (d * shape.0).div_ceil(cells.0);
            for i in first(down)..first(down + 1) {
                for &j in a.row(i).0 {
                    line[j as usize * cells.1 / shape.1] += 1;
                }
            }
        });
        Raster { shape, cells, counts }
    }

    /// Places of the matrix in the largest cell.
    pub fn places(&self) -> u64 {
        (self.shape.0.div_ceil(self.cells.0) * self.shape.1.div_ceil(self.cells.1)) as u64
    }
}

pub fn run(options: &Spy) -> Result<(), Failure> {
    outputs::check(&[Output::in_place("-o", &options.output)], &options.input.file())?;
    plot::check_ending(&options.output)?;
    let loaded = load(&options.input)?;
    let spinner = spinner("drawing");
    let raster = Raster::new(&loaded.matrix);
    plot::spy(&options.output, &loaded.name, &loaded.matrix, &raster)?;
    drop(spinner);
    let a = &loaded.matrix;
    let (rows, columns, nnz) = (count(a.nrows()), count(a.ncols()), count(a.nnz()));
    print(&format!("{}: {rows} x {columns}, {nnz} entries\n", options.output.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_counted_once() {
        for (m, n) in [(3, 3), (1000, 1000), (1003, 7), (5, 1201), (401, 400)] {
            let a = Csr::<f64>::from_rows(
                m,
                n,
                |_| 2,
                |i, c, _| {
                    let j = (i * 7919) % (n - 1);
                    c.copy_from_slice(&[j as u32, j as u32 + 1]);
                },
            );
            let raster = Raster::new(&a.unwrap());
            assert!(raster.cells.0 <= CELLS && raster.cells.1 <= CELLS);
            assert_eq!(raster.counts.iter().sum::<u64>(), 2 * m as u64, "{m} x {n}");
        }
    }

    #[test]
    fn a_small_matrix_has_a_cell_an_entry() {
        let a = Csr::from_triplets(2, 3, &[0, 1], &[2, 0], &[1.0, 1.0]).unwrap();
        let raster = Raster::new(&a);
        assert_eq!((raster.cells, raster.counts), ((2, 3), vec![0, 0, 1, 1, 0, 0]));
    }
}
