//! Speedups by the wavefronts that are saved, and how speedups are distributed; one panel per machine.

use super::record::Record;
use super::speedup::{DECIDED, Quantity, compared, label, machines, points, speedup};
use crate::Failure;
use crate::run::{Drawn, picture};
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{GRID, INK, Picture};
use std::path::Path;

/// Panels in a row of a picture.
const COLUMNS: usize = 3;
const SIDE: u32 = 420;
/// Edges of the bins of speedups, but for the first and the last one.
const EDGES: [f64; 7] = [0.5, 0.8, 0.95, 1.05, 1.25, 1.5, 2.0];
const COLOURS: [RGBColor; 2] = [RGBColor(0xb0, 0xb7, 0xc3), RGBColor(0x1f, 0x6f, 0xb4)];

/// Draws `scatter` and `histogram`, where there is something to show.
pub fn draw(record: &Record, folder: &Path) -> Result<Vec<Drawn>, Failure> {
    let (mut scatter, mut histogram) = (Vec::new(), Vec::new());
    for machine in machines(record) {
        let points = points(record, &machine.0);
        let cases = compared(record, &machine.0, Quantity::Total);
        let speedups = DECIDED.map(|setting| {
            let speedup = |case| speedup(case, setting, &machine.0, Quantity::Total);
            cases.iter().copied().filter_map(speedup).collect::<Vec<f64>>()
        });
        if !points.is_empty() {
            scatter.push((label(&machine), Scatter(points)));
        }
        if !cases.is_empty() {
            histogram.push((label(&machine), Histogram::of(&speedups)));
        }
    }
    let scatter = write(folder, "scatter.png", "Speedups by the wavefronts saved", scatter)?;
    let histogram = write(folder, "histogram.png", "How many matrices have which speedup", histogram)?;
    Ok(scatter.into_iter().chain(histogram).collect())
}

fn write<P: Panel>(
    folder: &Path,
    file: &str,
    title: &str,
    panels: Vec<(String, P)>,
) -> Result<Option<Drawn>, Failure> {
    if panels.is_empty() {
        return Ok(None);
    }
    let columns = panels.len().min(COLUMNS);
    let all = Panels { grid: (panels.len().div_ceil(columns), columns), panels };
    let size = (SIDE * columns as u32, SIDE * all.grid.0 as u32);
    picture::write(folder, file, title, size, &all).map(Some)
}

/// A part of a picture.
trait Panel {
    fn draw<B: DrawingBackend>(&self, name: &str, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static;
}

/// Panels with their names, in rows and columns.
struct Panels<P> {
    panels: Vec<(String, P)>,
    grid: (usize, usize),
}

impl<P: Panel> Picture for Panels<P> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        for (place, (name, panel)) in area.split_evenly(self.grid).iter().zip(&self.panels) {
            panel.draw(name, place)?;
        }
        Ok(())
    }
}

/// A chart with its name and room for labels.
fn framed<'a, 'b, B: DrawingBackend>(area: &'a DrawingArea<B, Shift>, name: &str) -> ChartBuilder<'a, 'b, B> {
    let mut chart = ChartBuilder::on(area);
    chart.caption(name, ("sans-serif", 18)).margin(12).margin_right(28);
    chart.x_label_area_size(44).y_label_area_size(52);
    chart
}

/// Percentages of wavefronts saved, and speedups.
struct Scatter(Vec<(f64, f64)>);

impl Panel for Scatter {
    fn draw<B: DrawingBackend>(&self, name: &str, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let top = self.0.iter().map(|p| p.1).fold(1.5, f64::max) * 1.1;
        let (low, left) = self.0.iter().fold((0.5, 0.0), |(low, left), p| (p.1.min(low), p.0.min(left)));
        let mut chart = framed(area, name).build_cartesian_2d(left..100.0, (low..top).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_labels(6)
            .x_desc("wavefronts of the factor saved, %")
            .y_desc("speedup per iteration")
            .draw()?;
        chart.draw_series(std::iter::once(PathElement::new(vec![(left, 1.0), (100.0, 1.0)], INK)))?;
        chart.draw_series(self.0.iter().map(|&p| Circle::new(p, 3, INK.mix(0.6).filled())))?;
        Ok(())
    }
}

/// How many speedups are in each bin, of what is decided in either way.
struct Histogram([[usize; EDGES.len() + 1]; DECIDED.len()]);

impl Histogram {
    fn of(speedups: &[Vec<f64>; DECIDED.len()]) -> Self {
        Histogram(speedups.each_ref().map(|values| {
            let mut bins = [0; EDGES.len() + 1];
            values.iter().for_each(|v| bins[EDGES.partition_point(|edge| edge <= v)] += 1);
            bins
        }))
    }
}

impl Panel for Histogram {
    fn draw<B: DrawingBackend>(&self, name: &str, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let most = self.0.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        let mut chart = framed(area, name).build_cartesian_2d(-1.0..EDGES.len() as f64, 0.0..1.15 * most)?;
        // An edge is where its number is.
        let edge = |x: &f64| {
            let place =
                EDGES.get(x.round().max(0.0) as usize).filter(|_| (x - x.round()).abs() < 1e-6 && *x > -0.5);
            place.map_or(String::new(), |edge| edge.to_string())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_labels(EDGES.len() + 2)
            .x_label_formatter(&edge)
            .x_desc("speedup end to end")
            .y_label_formatter(&|y| format!("{y:.0}"))
            .y_desc("matrices")
            .draw()?;
        for (k, bins) in self.0.iter().enumerate() {
            let (colour, name) = (COLOURS[k], DECIDED[k]);
            let bar = |(bin, &count): (usize, &usize)| {
                let left = bin as f64 - 0.9 + 0.4 * k as f64;
                Rectangle::new([(left, 0.0), (left + 0.4, count as f64)], colour.filled())
            };
            chart
                .draw_series(bins.iter().enumerate().map(bar))?
                .label(name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .border_style(GRID)
            .background_style(WHITE)
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_the_bin_above() {
        let Histogram([bins, none]) = Histogram::of(&[vec![0.1, 0.5, 1.0, 1.05, 9.0], Vec::new()]);
        assert_eq!((bins, none), ([1, 1, 0, 1, 1, 0, 0, 1], [0; 8]));
    }
}
