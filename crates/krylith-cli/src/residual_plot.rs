//! The picture of a solve: residuals by iteration, in a colour for each method that ran.
//!
//! Where several ran, a line marks where each began, and a legend below names them in order: beside the curve there is no room for names of methods
//! that took a few iterations.

use crate::Failure;
use crate::plot::short;
use crate::report::{count, counted};
use krylith::Report;
use krylith::report::Rung;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::plotters::style::text_anchor::{HPos, Pos, VPos};
use krylith_plot::{GRID, INK, Picture, save};
use std::ops::Range;
use std::path::Path;

/// Width, and height without a legend.
const SIZE: (u32, u32) = (800, 520);
/// Of a line of the legend.
const LINE: u32 = 22;
/// The colours of methods, in order; more begin anew.
const COLOURS: [RGBColor; 10] = [
    INK,
    RGBColor(0xe0, 0x7b, 0x39),
    RGBColor(0x3f, 0x9b, 0x5f),
    RGBColor(0xb0, 0x3a, 0x5b),
    RGBColor(0x4b, 0xa3, 0xe3),
    RGBColor(0x8a, 0x6d, 0x3b),
    RGBColor(0x8e, 0x5b, 0xc9),
    RGBColor(0x7a, 0x7a, 0x7a),
    RGBColor(0x2a, 0xa1, 0x98),
    RGBColor(0xd3, 0xa5, 0x1e),
];

/// A method that ran.
struct Part {
    /// From the residual that it began with to its last one.
    iterations: Range<usize>,
    /// `gmres with lu: 12 iterations from 64 on`.
    legend: String,
}

struct ResidualPlot<'a> {
    title: String,
    history: &'a [f64],
    parts: Vec<Part>,
    rtol: f64,
}

/// Draws the relative residuals by iteration on a logarithmic scale.
pub fn residuals(path: &Path, name: &str, report: &Report, rtol: f64) -> Result<(), Failure> {
    let parts = parts(&report.rungs);
    let title = title(name, report);
    let lines = if parts.len() > 1 { parts.len() as u32 } else { 0 };
    let size = (SIZE.0, SIZE.1 + LINE * lines);
    save(path, size, &ResidualPlot { title, history: &report.history, parts, rtol })
}

fn title(name: &str, report: &Report) -> String {
    let iterations = counted(report.iterations, "iteration");
    let methods = match report.rungs.len() {
        0 | 1 => format!("{} with {}", report.solver, report.preconditioner),
        several => format!("{several} methods"),
    };
    format!("{}: {methods}, {iterations}", short(name))
}

fn parts(rungs: &[Rung]) -> Vec<Part> {
    let mut begin = 0;
    let part = |rung: &Rung| {
        let iterations = begin..begin + rung.iterations;
        begin = iterations.end;
        let taken = counted(rung.iterations, "iteration");
        let legend = format!(
            "{} with {}: {taken} from {} on",
            rung.method,
            rung.preconditioner,
            count(iterations.start)
        );
        Part { iterations, legend }
    };
    rungs.iter().map(part).collect()
}

impl Picture for ResidualPlot<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (area, below) = area.split_vertically(SIZE.1);
        // Powers of ten: the axis is drawn in exponents.
        let exponent = |r: f64| r.max(1e-300).log10();
        let finite = || self.history.iter().copied().filter(|r| r.is_finite() && *r > 0.0);
        let lowest = finite().fold(self.rtol.max(1e-300), f64::min);
        let highest = finite().fold(1.0, f64::max);
        let last = self.history.len().max(2) - 1;
        let (bottom, top) = (exponent(lowest).floor(), exponent(highest).ceil().max(1.0));
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(15)
            .margin_right(30)
            .x_label_area_size(45)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..last as f64, bottom..top)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_desc("iteration")
            .y_desc("relative residual")
            .x_labels(8)
            .y_labels(8)
            .label_style(("sans-serif", 14))
            .x_label_formatter(&|x| count(x.round() as u64))
            .y_label_formatter(&|y| format!("1e{y:.0}"))
            .draw()?;
        for (k, Part { iterations, .. }) in self.parts.iter().enumerate() {
            let colour = colour(k);
            if k > 0 {
                let begin = iterations.start as f64;
                let ends = vec![(begin, bottom), (begin, top)];
                chart.draw_series([PathElement::new(ends, colour.mix(0.6).stroke_width(1))])?;
            }
            let shown = iterations.start..(iterations.end + 1).min(self.history.len());
            let points = shown.map(|k| (k, self.history[k])).filter(|(_, r)| r.is_finite());
            let line: Vec<_> = points.map(|(k, r)| (k as f64, exponent(r))).collect();
            let runs = monotone_runs(&line).into_iter();
            chart.draw_series(runs.map(|run| PathElement::new(run, colour.stroke_width(2))))?;
        }
        if self.rtol > 0.0 {
            let level = exponent(self.rtol);
            let dashes = (0..40).map(|k| {
                let at = |k: f64| (last as f64 * k / 40.0, level);
                PathElement::new(vec![at(f64::from(k)), at(f64::from(k) + 0.5)], RED.stroke_width(1))
            });
            chart.draw_series(dashes)?;
        }
        self.draw_legend(&below)
    }
}

impl ResidualPlot<'_> {
    /// A line for each of several methods, below the curve.
    fn draw_legend<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let parts = self.parts.iter().enumerate().filter(|_| self.parts.len() > 1);
        for (k, part) in parts {
            let middle = k as i32 * LINE as i32 + LINE as i32 / 2 - 8;
            area.draw(&PathElement::new(vec![(85, middle), (115, middle)], colour(k).stroke_width(3)))?;
            let beside = Pos::new(HPos::Left, VPos::Center);
            let style = ("sans-serif", 14).into_font().into_text_style(area).pos(beside);
            area.draw(&Text::new(part.legend.clone(), (125, middle), style))?;
        }
        Ok(())
    }
}

/// A line in pieces that only rise or only fall, each from the end of the one before. At a sharp peak the join of a line that is wider than one pixel
/// would be a spike of any length.
fn monotone_runs(line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut rises = None;
    for ends in line.windows(2) {
        let rising = ends[1].1 > ends[0].1;
        match runs.last_mut().filter(|_| rises == Some(rising)) {
            Some(run) => run.push(ends[1]),
            None => runs.push(ends.to_vec()),
        }
        rises = Some(rising);
    }
    runs
}

fn colour(k: usize) -> RGBColor {
    COLOURS[k % COLOURS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_their_peaks() {
        let line =
            |values: &[f64]| -> Vec<_> { values.iter().enumerate().map(|(k, &y)| (k as f64, y)).collect() };
        let runs = |values: &[f64]| -> Vec<Vec<f64>> {
            let runs = monotone_runs(&line(values)).into_iter();
            runs.map(|run| run.into_iter().map(|(_, y)| y).collect()).collect()
        };
        assert_eq!(runs(&[3.0, 2.0, 1.0]), [[3.0, 2.0, 1.0]]);
        assert_eq!(
            runs(&[0.0, 15.0, -8.0, -8.0, 2.0]),
            [&[0.0, 15.0][..], &[15.0, -8.0, -8.0], &[-8.0, 2.0]]
        );
        assert!(runs(&[1.0]).is_empty() && runs(&[]).is_empty());
    }
}
