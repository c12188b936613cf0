//! Speedups of an iteration by the wavefronts that are saved, one panel per machine.

use super::report::{machines, points};
use super::study::Record;
use crate::Failure;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{GRID, INK, Picture, save};
use std::path::Path;

/// Writes `scatter.png` and `scatter.svg`.
pub fn write(folder: &Path, record: &Record) -> Result<(), Failure> {
    let panel = |name: String| {
        let points = points(record, &name);
        let model = if name.contains("thread") { "" } else { " (modelled)" };
        (format!("{name}{model}"), points)
    };
    let panels: Vec<_> =
        machines(record).into_iter().map(panel).filter(|(_, points)| !points.is_empty()).collect();
    if panels.is_empty() {
        return Ok(());
    }
    let picture = Scatter { panels };
    let size = (420 * picture.panels.len() as u32, 420);
    save(&folder.join("scatter.png"), size, &picture)?;
    save(&folder.join("scatter.svg"), size, &picture)
}

struct Scatter {
    panels: Vec<(String, Vec<(f64, f64)>)>,
}

impl Picture for Scatter {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        for (place, (name, points)) in area.split_evenly((1, self.panels.len())).iter().zip(&self.panels) {
            let top = points.iter().map(|p| p.1).fold(1.5, f64::max) * 1.1;
            let mut chart = ChartBuilder::on(place)
                .caption(name, ("sans-serif", 18))
                .margin(12)
                .margin_right(28)
                .x_label_area_size(44)
                .y_label_area_size(52)
                .build_cartesian_2d(0.0..100.0, (0.5..top).log_scale())?;
            chart
                .configure_mesh()
                .light_line_style(WHITE)
                .bold_line_style(GRID)
                .x_labels(6)
                .x_desc("wavefronts saved, %")
                .y_desc("speedup per iteration")
                .draw()?;
            chart.draw_series(std::iter::once(PathElement::new(vec![(0.0, 1.0), (100.0, 1.0)], INK)))?;
            chart.draw_series(points.iter().map(|&p| Circle::new(p, 3, INK.mix(0.6).filled())))?;
        }
        Ok(())
    }
}
