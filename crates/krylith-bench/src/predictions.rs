//! What plans predict beside what solves take, over the matrices of a catalogue: bytes, set-ups, iterations, and what leaving methods
//! has cost.
//!
//! Default options, one thread, a random right-hand side. Predictions are those of the plan's machine, seconds those of the machine that
//! runs: the least of some rounds. Set-ups are counted where the plan has a prediction, and its factor needed no shift; iterations where there are proposals, which
//! is from 20,000 entries on. A factor of f means that the prediction is between 1/f and f times the truth.

use crate::Failure;
use crate::catalogue::parse;
use clap::Args;
use krylith::gallery::random_vector;
use krylith::{Csr, Outcome, Report, Solver, io};
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{GRID, INK, Picture, save};
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print every set-up
    #[arg(long)]
    list: bool,
    /// Draw predictions against truths here, as SVG or PNG
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// A prediction and what came of it.
#[derive(Debug, Clone, Copy)]
struct Pair {
    predicted: f64,
    found: f64,
}

impl Pair {
    /// How far apart they are.
    fn factor(&self) -> f64 {
        let ratio = self.predicted / self.found;
        ratio.max(1.0 / ratio)
    }
}

#[derive(Default)]
struct Pairs {
    bytes: Vec<Pair>,
    set_ups: Vec<Pair>,
    iterations: Vec<Pair>,
    /// The part of a solve that was spent on methods that were left.
    wasted: Vec<f64>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let entries = parse(&std::fs::read_to_string(options.folder.join("CATALOGUE.tsv"))?)?;
    // Facts are collected on this pool.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let mut pairs = Pairs::default();
    for entry in entries.iter().filter(|entry| entry.n >= 100) {
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        if a.nrows() == a.ncols() {
            pairs.add(options, &entry.file, &solve(options, &a)?);
        }
    }
    let series = [("bytes", &pairs.bytes), ("set-up", &pairs.set_ups), ("iteration", &pairs.iterations)];
    println!("| prediction | matrices | half within | 90 % within | worst |");
    println!("|---|---|---|---|---|");
    for (name, pairs) in series {
        let mut factors: Vec<f64> = pairs.iter().map(Pair::factor).collect();
        factors.sort_by(f64::total_cmp);
        let [half, most, worst] = [0.5, 0.9, 1.0].map(|share| quantile(&factors, share));
        println!("| {name} | {} | {half:.2} x | {most:.2} x | {worst:.1} x |", factors.len());
    }
    pairs.wasted.sort_by(f64::total_cmp);
    println!(
        "\nOf {} solves that left a method, the part spent before the last one: median {:.0} %, worst {:.0} %.",
        pairs.wasted.len(),
        100.0 * quantile(&pairs.wasted, 0.5),
        100.0 * quantile(&pairs.wasted, 1.0)
    );
    match &options.plot {
        Some(path) => save(path, (760, 620), &Scatter { series }),
        None => Ok(()),
    }
}

fn solve(options: &Options, a: &Csr<f64>) -> Result<Vec<Report>, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let solver = Solver::new().threads(1);
    (0..options.rounds.max(1)).map(|_| Ok(solver.solve(a, &b)?.report)).collect()
}

impl Pairs {
    /// The same solve several times.
    fn add(&mut self, options: &Options, name: &str, rounds: &[Report]) {
        let Some(report) = rounds.first() else { return };
        let least =
            |seconds: &dyn Fn(&Report) -> f64| rounds.iter().map(seconds).fold(f64::INFINITY, f64::min);
        self.bytes.push(Pair { predicted: report.predicted_bytes as f64, found: report.bytes as f64 });
        if let Some((last, left)) = report.rungs.split_last()
            && !left.is_empty()
            && report.outcome == Outcome::Converged
        {
            let before: f64 = left.iter().map(|rung| rung.seconds).sum();
            self.wasted.push(before / (before + last.seconds));
        }
        let (Some(predicted), Some(first)) = (report.plan.predicted, report.rungs.first()) else { return };
        // A shift was looked for, or another factor was taken.
        let shifted = report.recovery.iter().any(|step| step.action.contains("shifted"));
        if first.preconditioner != report.plan.preconditioner || shifted {
            return;
        }
        let set_up = least(&|report| report.seconds.analyze + report.seconds.factor);
        let pair = Pair { predicted: predicted.set_up, found: set_up };
        if options.list {
            println!(
                "{name}: {} {} predicted {:.2e} found {:.2e}",
                report.plan.preconditioner, report.layout, pair.predicted, pair.found
            );
        }
        self.set_ups.push(pair);
        let Some(proposal) = report.plan.proposals.first() else { return };
        if first.iterations > 0 {
            let rounds = rounds.iter();
            let run = |report: &Report| {
                let set_up = report.seconds.analyze + report.seconds.factor;
                report.rungs.first().map_or(f64::INFINITY, |rung| rung.seconds - set_up)
            };
            let seconds = rounds.map(run).fold(f64::INFINITY, f64::min);
            let found = seconds / first.iterations as f64;
            self.iterations.push(Pair { predicted: 1e-9 * proposal.iteration, found });
        }
    }
}

/// The number below which this share of sorted numbers is; NaN of none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// The ratio of prediction and truth over the truth, on logarithmic axes.
struct Scatter<'a> {
    series: [(&'static str, &'a Vec<Pair>); 3],
}

const COLOURS: [RGBColor; 3] = [RGBColor(0x9a, 0x9a, 0x9a), RGBColor(0xe0, 0x7b, 0x39), INK];
/// Ratios beyond this are drawn at the edge.
const WIDEST: f64 = 20.0;

impl Picture for Scatter<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let scale = |name: &str| if name == "bytes" { 1e-9 } else { 1e3 };
        let mut chart = ChartBuilder::on(area)
            .caption("Predicted over found", ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(60)
            .build_cartesian_2d((1e-4..1e4f64).log_scale(), (1.0 / WIDEST..WIDEST).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(GRID)
            .x_desc("found: milliseconds, or GB")
            .y_desc("predicted / found")
            .label_style(("sans-serif", 14))
            .draw()?;
        for bound in [0.5, 1.0, 2.0] {
            chart.draw_series(LineSeries::new([(1e-4, bound), (1e4, bound)], BLACK.mix(0.5)))?;
        }
        for ((name, pairs), colour) in self.series.iter().zip(COLOURS) {
            let points = pairs.iter().map(|pair| {
                let ratio = (pair.predicted / pair.found).clamp(1.0 / WIDEST, WIDEST);
                Circle::new((pair.found * scale(name), ratio), 3, colour.mix(0.7).filled())
            });
            chart
                .draw_series(points)?
                .label(*name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart.configure_series_labels().background_style(WHITE).border_style(GRID).draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_quantiles() {
        assert_eq!(Pair { predicted: 3.0, found: 1.5 }.factor(), 2.0);
        assert_eq!(Pair { predicted: 1.0, found: 4.0 }.factor(), 4.0);
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!([0.5, 0.9, 1.0].map(|share| quantile(&sorted, share)), [5.0, 9.0, 10.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
