//! What MKL's driver reads and says; the file's layout stands in `peers/mkl_blocks.c`.
//!
//! M = (I + L) D (I + L)ᵀ becomes G Gᵀ with Dⱼ = Cⱼ Cⱼᵀ: Gᵢⱼ = Lᵢⱼ Cⱼ and Gⱼⱼ = Cⱼ.

use super::{B, Blocks, Figures};
use crate::Failure;
use krylith::operator::LinearOperator;
use krylith::space::Threads;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

type Block = [[f64; B]; B];

/// A block matrix in the making.
#[derive(Default)]
struct Matrix {
    row_ptr: Vec<i32>,
    col_idx: Vec<i32>,
    values: Vec<f64>,
}

impl Matrix {
    fn push(&mut self, column: u32, block: Block) {
        self.col_idx.push(column as i32);
        self.values.extend(block.as_flattened());
    }

    fn end_row(&mut self) {
        if self.row_ptr.is_empty() {
            self.row_ptr.push(0);
        }
        self.row_ptr.push(self.col_idx.len() as i32);
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        for head in [self.row_ptr.len() - 1, self.col_idx.len(), B] {
            out.write_all(&(head as i64).to_le_bytes())?;
        }
        for index in self.row_ptr.iter().chain(&self.col_idx) {
            out.write_all(&index.to_le_bytes())?;
        }
        write_numbers(out, &self.values)
    }
}

fn write_numbers(out: &mut impl Write, numbers: &[f64]) -> Result<(), Failure> {
    numbers.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
    Ok(())
}

fn block(values: &[f64], k: usize) -> Block {
    std::array::from_fn(|r| std::array::from_fn(|s| values[(k * B + r) * B + s]))
}

fn transpose(a: &Block) -> Block {
    std::array::from_fn(|r| std::array::from_fn(|s| a[s][r]))
}

fn product(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|r| std::array::from_fn(|s| (0..B).map(|k| a[r][k] * b[k][s]).sum()))
}

/// The lower triangular C with C Cᵀ = D, from D⁻¹ = Rᵀ R, R lower triangular: C = R⁻¹.
fn root(inverse: &Block) -> Block {
    // From the last row up: column k of R's row k onwards.
    let mut r = [[0.0; B]; B];
    for k in (0..B).rev() {
        for j in (0..=k).rev() {
            let rest: f64 = (k + 1..B).map(|m| r[m][k] * r[m][j]).sum();
            r[k][j] = if j == k { (inverse[k][k] - rest).sqrt() } else { (inverse[k][j] - rest) / r[k][k] };
        }
    }
    let mut c = [[0.0; B]; B];
    for i in 0..B {
        for j in 0..=i {
            let known: f64 = (j..i).map(|k| r[i][k] * c[k][j]).sum();
            c[i][j] = (f64::from(i == j) - known) / r[i][i];
        }
    }
    c
}

impl Blocks {
    /// Writes A, G, Gᵀ and what they do to a vector.
    pub(super) fn write(&self, space: &Threads<f64>, file: &Path) -> Result<(), Failure> {
        let (mut a, mut g, mut gt) = (Matrix::default(), Matrix::default(), Matrix::default());
        let ((lower, upper), (l, inverse, u)) = (self.m.patterns(), self.m.parts());
        let roots: Vec<Block> = (0..lower.nrows()).map(|i| root(&block(inverse, i))).collect();
        for i in 0..lower.nrows() {
            for (k, &j) in self.a.pattern().row_range(i).zip(self.a.pattern().row(i)) {
                a.push(j, block(self.a.values(), k));
            }
            for (k, &j) in lower.row_range(i).zip(lower.row(i)) {
                g.push(j, product(&block(l, k), &roots[j as usize]));
            }
            g.push(i as u32, roots[i]);
            let transposed = transpose(&roots[i]);
            gt.push(i as u32, transposed);
            for (k, &j) in upper.row_range(i).zip(upper.row(i)) {
                gt.push(j, product(&transposed, &block(u, k)));
            }
            [&mut a, &mut g, &mut gt].into_iter().for_each(Matrix::end_row);
        }
        let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
        for matrix in [a, g, gt] {
            matrix.write(&mut out)?;
        }
        let n = self.a.nrows();
        let x: Vec<f64> = (0..n).map(|i| ((i * 37) as f64).sin()).collect();
        write_numbers(&mut out, &x)?;
        let mut y = vec![0.0; n];
        self.a.apply(space, &x, &mut y, &mut ())?;
        write_numbers(&mut out, &y)?;
        self.m.apply(space, &x, &mut y, &mut self.m.scratch(space)?)?;
        write_numbers(&mut out, &y)?;
        Ok(out.flush()?)
    }
}

/// Runs the driver once.
pub(super) fn turn(driver: &Path, file: &Path, threads: usize, figures: &mut Figures) {
    let mut command = Command::new(driver);
    command.arg(file).env("OMP_NUM_THREADS", threads.to_string()).env("MKL_NUM_THREADS", threads.to_string());
    match seconds(&mut command) {
        Ok([product, sweeps]) => {
            figures.product = figures.product.min(product);
            figures.sweeps = figures.sweeps.min(sweeps);
        }
        Err(why) => figures.failure = Some(why.to_string()),
    }
}

fn seconds(command: &mut Command) -> Result<[f64; 2], Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    let line: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| line[name].as_f64().ok_or_else(|| format!("no {name} in the driver's line"));
    Ok([number("product")?, number("sweeps")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C Cᵀ D⁻¹ = I.
    #[test]
    fn a_root_is_one() {
        let inverse = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        let c = root(&inverse);
        assert!(c[0][1] == 0.0 && c[0][2] == 0.0 && c[1][2] == 0.0);
        let identity = product(&product(&c, &transpose(&c)), &inverse);
        for (i, row) in identity.iter().enumerate() {
            for (j, &v) in row.iter().enumerate() {
                assert!((v - f64::from(i == j)).abs() < 1e-14, "({i}, {j}): {v}");
            }
        }
    }
}
