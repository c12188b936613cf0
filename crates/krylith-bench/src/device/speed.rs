//! A product and a solve by conjugate gradients with Jacobi, on threads by rows and on devices, in turns; the median of all rounds.
//!
//! Kernels in the shape for GPUs are measured beside the others, but a processor's clock does not judge them.

use super::{Contestant, Options, by_rows, contestants, median, rhs};
use crate::Failure;
use crate::run::table::{digits, rounds, table};
use crate::run::{Kept, Nothing, Output, Run};
use krylith::Method;
use krylith::gallery::{Problem, random_vector};
use krylith::operator::LinearOperator;
use krylith::space::{Space, Threads};
use krylith_gpu::{DeviceMatrix, DeviceSpace, KernelShape, OnDevice};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Products that are timed together.
const PRODUCTS: usize = 20;

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    problem: String,
    place: String,
    /// How A is stored.
    storage: String,
    /// Of a product, each round.
    product: Vec<f64>,
    /// Of a solve, each round.
    solve: Vec<f64>,
    iterations: usize,
}

/// A way to multiply, which takes the products that are timed together.
type Multiply<'a> = Box<dyn FnMut() -> Result<(), Failure> + 'a>;

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "device-speed", "device");
    let mut run = Run::<Row>::begin(output, Nothing {}, options.rounds, &[options.threads])?;
    let problems = match options.problems.is_empty() {
        true => vec!["poisson3d:100".to_string()],
        false => options.problems.clone(),
    };
    for problem in &problems {
        if !run.has(|row| row.problem == *problem) {
            run.add(measure(options, problem)?)?;
        }
    }
    run.end()
}

fn measure(options: &Options, problem: &str) -> Result<Vec<Row>, Failure> {
    let a = problem.parse::<Problem>()?.generate()?;
    let (b, x) = (rhs(&a)?, random_vector(a.ncols()));
    let all = contestants(&[KernelShape::Cpu, KernelShape::Gpu], false, false)?;
    let threads = Threads::new(options.threads);
    let mut y = vec![0.0; a.nrows()];
    let own_x = x.clone();
    let on_threads: Multiply<'_> = Box::new(|| {
        (0..PRODUCTS)
            .try_for_each(|_| LinearOperator::<Threads<f64>>::apply(&a, &threads, &own_x, &mut y, &mut ()))?;
        Ok(())
    });
    let row = |place: &str, storage: String| Row {
        problem: problem.into(),
        place: place.into(),
        storage,
        product: Vec::new(),
        solve: Vec::new(),
        iterations: 0,
    };
    let mut rows = vec![row(&format!("threads, {}", options.threads), "rows".into())];
    let mut products = vec![on_threads];
    for Contestant { name, device } in &all {
        let space = DeviceSpace::<f64>::new(device)?;
        let matrix = DeviceMatrix::new(&space, &a)?;
        rows.push(row(name, matrix.storage().to_string()));
        let (mut from, mut to) = (space.zeros(&a.ncols())?, space.zeros(&a.nrows())?);
        space.upload(&x, &mut from)?;
        products.push(Box::new(move || {
            (0..PRODUCTS).try_for_each(|_| matrix.apply(&space, &from, &mut to, &mut ()))?;
            Ok(space.finish()?)
        }));
    }
    let solver = by_rows(Method::Cg, "jacobi", options.threads)?;
    let prepared = solver.prepare(&a)?;
    let on_devices =
        all.iter().map(|c| solver.clone().on(&c.device).prepare(&a)).collect::<Result<Vec<_>, _>>()?;
    // The first round warms up.
    for _ in 0..=options.rounds {
        for (row, multiply) in rows.iter_mut().zip(&mut products) {
            let started = Instant::now();
            multiply()?;
            row.product.push(started.elapsed().as_secs_f64() / PRODUCTS as f64);
        }
        for (k, row) in rows.iter_mut().enumerate() {
            let mut x = vec![0.0; a.ncols()];
            let report = match k {
                0 => prepared.solve(&a, &b, &mut x)?,
                k => on_devices[k - 1].solve(&a, &b, &mut x)?,
            };
            row.solve.push(report.seconds.solve);
            row.iterations = report.iterations;
        }
    }
    for row in &mut rows {
        row.product.remove(0);
        row.solve.remove(0);
    }
    Ok(rows)
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let mut sorted: Vec<(f64, f64, &Row)> = Vec::new();
        for row in &run.rows {
            sorted.push((median(&mut row.product.clone()), median(&mut row.solve.clone()), row));
        }
        let cells = |(product, solve, row): &(f64, f64, &Row)| {
            let first =
                sorted.iter().find(|(.., other)| other.problem == row.problem).expect("its own problem");
            vec![
                row.problem.clone(),
                row.place.clone(),
                row.storage.clone(),
                digits(Some(1e3 * product)),
                digits(Some(product / first.0)),
                digits(Some(*solve)),
                row.iterations.to_string(),
                digits(Some(solve / first.1)),
            ]
        };
        let columns = [
            "problem",
            "place",
            "A as",
            "product, ms",
            "over threads",
            "CG with Jacobi, s",
            "iterations",
            "over threads",
        ];
        let text = "Medians of rounds in which all took turns, after one to warm up. Threads are by rows, and compute the same bits as the shape for processors.";
        format!(
            "{}\n{text} {}.\n\n{}",
            run.head.markdown("Devices beside threads"),
            rounds(run.head.rounds),
            table(&columns, sorted.iter().map(cells))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::run;

    #[test]
    fn ratios_are_those_of_medians() {
        let row = |place: &str, times: [f64; 3]| Row {
            problem: "p".into(),
            place: place.into(),
            storage: "rows".into(),
            product: times.to_vec(),
            solve: times.to_vec(),
            iterations: 3,
        };
        let rows = vec![row("threads", [3e-3, 2e-3, 9e-3]), row("device", [1e-3, 6e-3, 1.5e-3])];
        let text = Row::text(&run(Nothing {}, rows));
        assert!(text.contains("| p | device | rows | 1.50 | 0.50 | 0.00 | 3 | 0.50 |"), "{text}");
    }
}
