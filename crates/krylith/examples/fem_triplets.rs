//! A matrix from a finite-element loop: triplets in any order, duplicates summed, and the same pattern again in every time step.
//!
//! ∂u/∂t = ∇·(κ ∇u) on the unit square, bilinear elements, implicit steps; κ depends on u, so that the matrix changes in every step:
//! (M + dt K(uₙ)) uₙ₊₁ = M uₙ + dt f.

use krylith::{Solver, TripletBuilder};

/// Elements along each side.
const N: usize = 120;
const STEP: f64 = 1e-3;

/// The corners of element (i, j), counted through.
fn corners(i: usize, j: usize) -> [usize; 4] {
    let node = |i: usize, j: usize| j * (N + 1) + i;
    [node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)]
}

/// Entry (a, b) of the element matrices of a square of side h: the mass divided by h², and the stiffness of −∇², which does not depend on
/// h.
fn element(a: usize, b: usize) -> (f64, f64) {
    // How far apart the corners are: the same, along a side, across.
    match (4 + a - b) % 4 {
        0 => (4.0 / 36.0, 4.0 / 6.0),
        2 => (1.0 / 36.0, -2.0 / 6.0),
        _ => (2.0 / 36.0, -1.0 / 6.0),
    }
}

/// Assembles the matrix and the right-hand side of a step from `u`.
fn assemble(u: &[f64], builder: &mut TripletBuilder<f64>, b: &mut [f64]) {
    let h2 = 1.0 / (N * N) as f64;
    builder.clear();
    b.fill(0.0);
    for j in 0..N {
        for i in 0..N {
            let corners = corners(i, j);
            let mean = corners.iter().map(|&k| u[k]).sum::<f64>() / 4.0;
            let conductivity = 0.1 + mean * mean;
            for (a, &row) in corners.iter().enumerate() {
                for (c, &column) in corners.iter().enumerate() {
                    let (mass, stiffness) = element(a, c);
                    builder.push(row, column, mass * h2 + STEP * conductivity * stiffness);
                    b[row] += mass * h2 * u[column];
                }
                // A source in the lower left quarter.
                if i < N / 2 && j < N / 2 {
                    b[row] += STEP * h2 / 4.0;
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = (N + 1) * (N + 1);
    let mut u = vec![0.0; n];
    let mut b = vec![0.0; n];
    let mut builder = TripletBuilder::with_capacity(n, n, 16 * N * N);
    assemble(&u, &mut builder, &mut b);
    let mut a = builder.build()?;
    let mut prepared = Solver::new().rtol(1e-10).prepare(&a)?;
    println!("{} triplets, {} entries", 16 * N * N, a.nnz());

    for step in 1..=10 {
        let report = prepared.solve(&a, &b, &mut u)?;
        report.require_converged()?;
        if step % 5 == 0 {
            println!("step {step}: {report}");
        }
        // The same elements with other numbers: the pattern, and what was analyzed of it, stays.
        assemble(&u, &mut builder, &mut b);
        builder.assemble_into(&mut a)?;
        prepared.refactor(&a)?;
    }

    // Nothing leaves the square, so what is there is what the source has given: a quarter of the area, 10 steps.
    let mut mass = vec![0.0; n];
    for j in 0..N {
        for i in 0..N {
            corners(i, j).iter().for_each(|&k| mass[k] += 0.25 / (N * N) as f64);
        }
    }
    let heat: f64 = mass.iter().zip(&u).map(|(m, u)| m * u).sum();
    println!("heat {heat:.8}, given {:.8}", 10.0 * STEP / 4.0);
    assert!((heat - 10.0 * STEP / 4.0).abs() < 1e-9);
    Ok(())
}
