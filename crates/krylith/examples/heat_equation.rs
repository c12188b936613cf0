//! The heat equation ∂u/∂t = div(k grad u) in a box whose conductivity varies: implicit Euler on a grid that the solver finds.
//!
//! Cells of width h, u constant in each. The flow between two cells is that of two resistances in series, with the harmonic mean of
//! their conductivities; the floor is kept at 0, the other walls let nothing through. A step solves
//!
//!   (I / dt + K) u_new = u_old / dt
//!
//! Nothing tells the solver of the grid: the matrix is made row by row like any other, and the report says what was found.
//!
//! Three things are asserted in each step, with bounds that follow from the certified residual ρ = ‖b − A u‖₂. Rows of A sum to at
//! least 1 / dt and off-diagonal entries are not positive, so ‖A⁻¹‖∞ ≤ dt: no temperature is above the highest or below the lowest
//! before, the floor's included, by more than dt ρ. And the heat that is gone has left through the floor, up to dt √n ρ.
//!
//! `cargo run --release --example heat_equation -- slice.png` draws the middle plane at the end; without a name into a
//! temporary folder.

use krylith::structured::Grid;
use krylith::{Csr, MatrixError, Solver};
use std::path::PathBuf;

const EXTENTS: [usize; 3] = [80, 48, 48];
const H: f64 = 1.0 / 80.0;
const DT: f64 = 1e-3;
const STEPS: usize = 20;

/// Two metal fins on the floor, a hundred times better conductors than what is around them.
fn conductivity([x, _, z]: [usize; 3]) -> f64 {
    let in_fin = (20..26).contains(&x) || (54..60).contains(&x);
    if in_fin && z < 36 { 100.0 } else { 1.0 }
}

/// A hot block above the first fin.
fn initial([x, y, z]: [usize; 3]) -> f64 {
    f64::from(u8::from((10..50).contains(&x) && (12..36).contains(&y) && (28..42).contains(&z)))
}

/// What flows between two cells for a difference of 1, a unit of time and volume.
fn coupling(here: [usize; 3], there: [usize; 3]) -> f64 {
    let (a, b) = (conductivity(here), conductivity(there));
    2.0 * a * b / (a + b) / (H * H)
}

/// What flows from a cell to the floor, half a cell away.
fn to_floor(cell: [usize; 3]) -> f64 {
    if cell[2] == 0 { 2.0 * conductivity(cell) / (H * H) } else { 0.0 }
}

/// I / dt + K, row by row.
fn step_matrix(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    // In the order of columns.
    const OFFSETS: [[i32; 3]; 7] =
        [[0, 0, -1], [0, -1, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
    let near = |row: usize| OFFSETS.into_iter().filter_map(move |o| grid.at(grid.point(row), o));
    Csr::from_rows(
        grid.points(),
        grid.points(),
        |row| near(row).count(),
        |row, columns, values| {
            let here = grid.point(row);
            let flow = |there: [usize; 3]| if there == here { 0.0 } else { coupling(here, there) };
            for (k, there) in near(row).enumerate() {
                columns[k] = grid.number(there) as u32;
                values[k] = if there == here {
                    1.0 / DT + to_floor(here) + near(row).map(flow).sum::<f64>()
                } else {
                    -flow(there)
                };
            }
        },
    )
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The lowest temperature, the floor's included.
fn lowest(u: &[f64]) -> f64 {
    u.iter().copied().fold(0.0, f64::min)
}

/// The highest temperature, the floor's included.
fn highest(u: &[f64]) -> f64 {
    u.iter().copied().fold(0.0, f64::max)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grid = Grid::new(&EXTENTS)?;
    let a = step_matrix(&grid)?;
    let n = a.nrows();
    let mut u: Vec<f64> = (0..n).map(|cell| initial(grid.point(cell))).collect();

    // Analyzed and factored once: the matrix is the same in every step.
    let prepared = Solver::new().rtol(1e-10).prepare(&a)?;
    for step in 1..=STEPS {
        let b: Vec<f64> = u.iter().map(|v| v / DT).collect();
        let bounds = [lowest(&u), highest(&u)];
        let heat: f64 = u.iter().sum();
        let report = prepared.solve(&a, &b, &mut u)?;
        report.require_converged()?;
        if step == 1 {
            println!("layout: {}", report.layout);
            assert!(report.layout.starts_with("structured: 80 x 48 x 48 grid, Star-7P"));
            println!(
                "{:>4}  {:>10}  {:>9}  {:>9}  {:>10}",
                "step", "iterations", "residual", "maximum", "heat"
            );
        }

        // Rounding, of some 10⁻¹⁶ a number, is small beside a residual of 10⁻¹⁰.
        let rho = 1.01 * report.relative_residual * norm(&b);
        assert!(u.iter().all(|&v| bounds[0] - DT * rho <= v && v <= bounds[1] + DT * rho));
        let now: f64 = u.iter().sum();
        let through_floor: f64 = (0..n).map(|cell| DT * to_floor(grid.point(cell)) * u[cell]).sum();
        assert!((heat - now - through_floor).abs() <= DT * (n as f64).sqrt() * rho);

        let (count, residual) = (report.iterations, report.relative_residual);
        let (hottest, heat) = (highest(&u), now * H.powi(3));
        println!("{step:>4}  {count:>10}  {residual:>9.1e}  {hottest:>9.6}  {heat:>10.6}");
    }

    let name = std::env::args_os().nth(1).map(PathBuf::from);
    let name = name.unwrap_or_else(|| std::env::temp_dir().join("krylith-heat-equation.png"));
    let [nx, ny, nz] = EXTENTS;
    let cells = (0..nz).flat_map(|z| (0..nx).map(move |x| [x, ny / 2, z]));
    let slice: Vec<f64> = cells.map(|cell| u[grid.number(cell)]).collect();
    let title = format!("temperature in the plane y = {}, after {STEPS} steps", ny / 2);
    krylith_plot::heat_map(&name, &title, ["x", "z"], [nx, nz], &slice)?;
    println!("{}", name.display());
    Ok(())
}
