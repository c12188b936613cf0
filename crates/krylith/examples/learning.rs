//! 500 steps of the heat equation in ground of random conductivity, with a preconditioner that learns from every step and without.
//!
//!   (M / dt + K) u_new = M u_old / dt + f(t)
//!
//! K is that of linear elements on an unstructured mesh; two sources that come and go keep the right-hand sides different. Both sequences
//! solve the same systems to the same certified tolerance, so their answers agree to that.
//!
//! `cargo run --release --example learning -- learning.png 100` draws iterations and seconds, for a mesh of 100² points; without a name into a temporary
//! folder, without a size for 40².

use krylith::gallery::Problem;
use krylith::learn::{Learned, Learning};
use krylith::{Csr, PrecondSpec, Solver};
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{Failure, GRID, INK, Picture};
use std::path::PathBuf;
use std::time::Instant;

const STEPS: usize = 500;
const DT: f64 = 50.0;

/// What a sequence of steps took.
struct Run {
    name: &'static str,
    iterations: Vec<usize>,
    /// After each step, since the beginning.
    seconds: Vec<f64>,
    u: Vec<f64>,
}

/// I / dt + K on the pattern of K.
fn step_matrix(k: &Csr<f64>) -> Csr<f64> {
    let mut a = k.clone();
    for i in 0..k.nrows() {
        let place = k.pattern().find(i, i).expect("a diagonal entry");
        a.values_mut()[place] += 1.0 / DT;
    }
    a
}

fn source(step: usize, i: usize, n: usize) -> f64 {
    let near = |place: usize| f64::from(u8::from(i.abs_diff(place) < 5));
    near(n / 3) * (0.1 * step as f64).sin() + near(2 * n / 3) * (0.037 * step as f64).cos()
}

fn run(
    name: &'static str,
    n: usize,
    mut solve: impl FnMut(&[f64], &mut [f64]) -> Result<usize, Box<dyn std::error::Error>>,
) -> Result<Run, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let mut run = Run { name, iterations: Vec::new(), seconds: Vec::new(), u: vec![0.0; n] };
    for step in 0..STEPS {
        let b: Vec<f64> = (0..n).map(|i| run.u[i] / DT + source(step, i, n)).collect();
        let iterations = solve(&b, &mut run.u)?;
        run.iterations.push(iterations);
        run.seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(run)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size = std::env::args().nth(2).unwrap_or("40".into());
    let a = step_matrix(&format!("thermal:{size}").parse::<Problem>()?.generate()?);
    let n = a.nrows();
    let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).rtol(1e-9);

    let prepared = solver.prepare(&a)?;
    let fixed = run("IC(0)", n, |b, u| {
        let report = prepared.solve(&a, b, u)?;
        report.require_converged()?;
        Ok(report.iterations)
    })?;
    let mut sequence = Learned::new(&solver, &a, Learning::default())?;
    let learned = run("learned", n, |b, u| {
        let report = sequence.solve(&a, b, u)?;
        report.require_converged()?;
        Ok(report.iterations)
    })?;

    for run in [&fixed, &learned] {
        let (total, seconds) = (run.iterations.iter().sum::<usize>(), run.seconds[STEPS - 1]);
        println!("{:8} {total:6} iterations, {seconds:.2} s", run.name);
    }
    println!("{}", sequence.report());
    let largest = fixed.u.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = fixed.u.iter().zip(&learned.u).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
    assert!(apart < 1e-6 * largest, "answers agree to the tolerance: {apart:e} of {largest:e}");
    assert!(learned.iterations[STEPS - 1] < fixed.iterations[STEPS - 1]);

    let name = std::env::args_os().nth(1).map(PathBuf::from);
    let name = name.unwrap_or_else(|| std::env::temp_dir().join("krylith-learning.png"));
    krylith_plot::save(&name, (900, 640), &Curves([fixed, learned]))?;
    println!("{}", name.display());
    Ok(())
}

/// Iterations of every step above, seconds since the beginning below.
struct Curves([Run; 2]);

impl Picture for Curves {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically(320);
        let iterations = |run: &Run| run.iterations.iter().map(|&k| k as f64).collect::<Vec<_>>();
        let legends = [SeriesLabelPosition::LowerRight, SeriesLabelPosition::UpperLeft];
        self.curves((&above, &legends[0]), "iterations of a step", iterations)?;
        let title = "seconds since the beginning, training included";
        self.curves((&below, &legends[1]), title, |run| run.seconds.clone())
    }
}

impl Curves {
    fn curves<B: DrawingBackend>(
        &self,
        (area, legend): (&DrawingArea<B, Shift>, &SeriesLabelPosition),
        title: &str,
        values: impl Fn(&Run) -> Vec<f64>,
    ) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let most = self.0.iter().flat_map(&values).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(0..STEPS, 0.0..1.05 * most)?;
        chart.configure_mesh().light_line_style(WHITE).bold_line_style(GRID).x_desc("step").draw()?;
        for (run, colour) in self.0.iter().zip([RGBColor(0xc0, 0x50, 0x20), INK]) {
            let points = values(run).into_iter().enumerate().map(|(k, v)| (k + 1, v));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(run.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(legend.clone())
            .border_style(GRID)
            .background_style(WHITE)
            .label_font(("sans-serif", 16))
            .draw()?;
        Ok(())
    }
}
