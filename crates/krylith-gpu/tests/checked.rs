//! Kernels stay within their buffers: ten thousand launches of random sizes on checked devices, where every access is compared with the size of
//! its buffer and guard words stand around each.

mod common;

use common::{label, opened};
use krylith::operator::LinearOperator;
use krylith::space::Space;
use krylith::{Csr, Method, Solver};
use krylith_gpu::{Device, DeviceMatrix, DeviceOptions, DeviceSpace, DeviceStorage, KernelShape, OnDevice};

/// Launches on all devices together.
const LAUNCHES: u64 = 10_000;

/// Pseudo-random numbers: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }

    /// Sizes around the boundaries of lanes, groups and chunks, and any others.
    fn size(&mut self) -> usize {
        let edges = [0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4096, 5000];
        match self.below(3) {
            0 => self.below(6000),
            _ => edges[self.below(edges.len())],
        }
    }

    /// A square matrix with empty rows, short ones and a dense one, dominated by its diagonal.
    fn matrix(&mut self, n: usize) -> Csr<f64> {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        let dense = self.below(n);
        for row in 0..n {
            let mut columns: Vec<u32> = (0..self.below(6)).map(|_| self.below(n) as u32).collect();
            if row == dense && n < 3000 {
                columns = (0..n as u32).collect();
            }
            columns.push(row as u32);
            columns.sort_unstable();
            columns.dedup();
            let row_values = columns.iter().map(|&c| if c as usize == row { 2.0 * n as f64 } else { -1.0 });
            values.extend(row_values);
            col_idx.extend(columns);
            row_ptr.push(col_idx.len());
        }
        Csr::new(n, n, row_ptr, col_idx, values).unwrap()
    }
}

/// Some operations of a space and of matrices; the launches they took.
fn vectors_and_products(device: &Device, numbers: &mut Numbers) -> u64 {
    let space = DeviceSpace::<f64>::new(device).unwrap();
    let n = numbers.size();
    let [mut x, mut y, mut z] = [(); 3].map(|()| space.zeros(&n).unwrap());
    space.fill(0.5, &mut x).unwrap();
    space.axpby(2.0, &x, [0.0, 1.0, -3.0][numbers.below(3)], &mut y).unwrap();
    space.scale(0.5, &mut y).unwrap();
    space.cg_direction(1.0, &x, 0.5, &mut y, &mut z).unwrap();
    space.bicgstab_direction(&x, 0.5, 0.5, &y, &mut z).unwrap();
    space.update_norm(0.1, &x, &mut y).unwrap();
    space.update_dots(0.1, &x, &mut y, &z).unwrap();
    let pairs: Vec<_> = (0..numbers.below(9)).map(|_| (&x, &y)).collect();
    space.dots(&pairs, &mut vec![0.0; pairs.len()]).unwrap();
    let count = numbers.below(70);
    let basis: Vec<_> = (0..count).map(|_| space.zeros(&n).unwrap()).collect();
    space.combine_dots(&vec![0.5; count], &basis, &mut z, &mut vec![0.0; count + 1]).unwrap();
    space.extremes(&z).unwrap();
    let a = numbers.matrix(n.min(2500));
    let (from, mut to) = (space.zeros(&a.ncols()).unwrap(), space.zeros(&a.nrows()).unwrap());
    let mut storages = vec![DeviceStorage::Rows, DeviceStorage::Slices];
    if device.shape() == KernelShape::Gpu {
        storages.push(DeviceStorage::Lanes);
    }
    for storage in storages {
        let matrix = DeviceMatrix::in_storage(&space, &a, storage).unwrap();
        matrix.apply(&space, &from, &mut to, &mut ()).unwrap();
        matrix.apply_dot(&space, &from, &mut to, &mut ()).unwrap();
    }
    for vector in [&x, &y, &z, &from, &to].into_iter().chain(&basis) {
        space.verify(vector).unwrap();
    }
    space.counts().unwrap().launches
}

/// Elimination and sweeps of a small system; the launches of its solve. A fault would be the error of a read.
fn factors(device: &Device, numbers: &mut Numbers) -> u64 {
    let n = 1 + numbers.below(1500);
    let a = numbers.matrix(n);
    let b = vec![1.0; a.nrows()];
    let name = ["ilu0", "ilut(5,1e-3)", "jacobi", "dilu"][numbers.below(4)];
    let solver = Solver::new().method(Method::BiCgStab).preconditioner(name.parse().unwrap());
    let report = solver.max_iterations(5).on(device).solve(&a, &b).unwrap().report;
    report.device.unwrap().launches
}

#[test]
fn ten_thousand_launches_stay_within_their_buffers() {
    let devices = opened(DeviceOptions { checked: true, ..DeviceOptions::default() });
    let (mut launches, mut numbers) = (0, Numbers(0x9e37_79b9_7f4a_7c15));
    while launches < LAUNCHES && !devices.is_empty() {
        for device in &devices {
            let before = launches;
            launches += vectors_and_products(device, &mut numbers);
            launches += factors(device, &mut numbers);
            assert!(launches > before, "{}", label(device));
            assert_eq!(device.live_buffers(), 0, "{}", label(device));
        }
    }
}

/// A block matrix has kernels of its own.
#[test]
fn blocks_stay_within_their_buffers() {
    for device in opened(DeviceOptions { checked: true, reproducible: true, ..DeviceOptions::default() }) {
        let space = DeviceSpace::<f64>::new(&device).unwrap();
        let problem: krylith::gallery::Problem = "elasticity3d:5".parse().unwrap();
        let a = problem.generate().unwrap();
        let (x, mut y) = (space.zeros(&a.ncols()).unwrap(), space.zeros(&a.nrows()).unwrap());
        let matrix = DeviceMatrix::in_storage(&space, &a, DeviceStorage::Blocks(3)).unwrap();
        matrix.apply(&space, &x, &mut y, &mut ()).unwrap();
        assert_eq!(matrix.apply_dot(&space, &x, &mut y, &mut ()).unwrap(), 0.0);
        space.verify(&y).unwrap();
        let b = vec![1.0; a.nrows()];
        for name in ["ic0", "fsai"] {
            let solver = Solver::new().method(Method::Cg).preconditioner(name.parse().unwrap());
            solver.on(&device).solve(&a, &b).unwrap().report.require_converged().unwrap();
        }
    }
}
