//! Pictures of a matrix: its entries, the lengths of its rows.

use crate::Failure;
use crate::report::count;
use crate::spy::Raster;
use krylith::Csr;
use krylith::matrix::Bin;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::plotters::style::text_anchor::{HPos, Pos, VPos};
use krylith_plot::{GRID, INK, Picture, save};
use std::path::Path;

pub use krylith_plot::check_ending;

/// Shades from an almost empty to a full cell.
const SHADES: usize = 7;

struct SpyPlot<'a> {
    title: String,
    raster: &'a Raster,
}

/// Draws a spy plot.
pub fn spy(path: &Path, name: &str, a: &Csr<f64>, raster: &Raster) -> Result<(), Failure> {
    let title =
        format!("{}: {} x {}, {} entries", short(name), count(a.nrows()), count(a.ncols()), count(a.nnz()));
    // 800 pixels for the longer side of the matrix, room for labels around it.
    let longest = raster.cells.0.max(raster.cells.1) as f64;
    let side = |cells: usize| (800.0 * cells as f64 / longest).round().max(120.0) as u32;
    let size = (side(raster.cells.1).max(500) + 130, side(raster.cells.0) + 110);
    save(path, size, &SpyPlot { title, raster })
}

impl Picture for SpyPlot<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (rows, columns) = self.raster.shape;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(15)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..columns.max(1) as f64, (rows.max(1) as f64)..0.0)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("column")
            .y_desc("row")
            .x_labels(6)
            .y_labels(8)
            .label_style(("sans-serif", 14))
            .x_label_formatter(&|x| count(x.round() as u64))
            .y_label_formatter(&|y| count(y.round() as u64))
            .draw()?;
        let (down, across) = self.raster.cells;
        let (height, width) = (rows as f64 / down as f64, columns as f64 / across as f64);
        for d in 0..down {
            let line = &self.raster.counts[d * across..(d + 1) * across];
            // Neighbouring cells of one shade are one rectangle: a smaller file.
            let mut first = 0;
            for run in line.chunk_by(|&a, &b| self.shade(a) == self.shade(b)) {
                let (from, to) = (first as f64 * width, (first + run.len()) as f64 * width);
                first += run.len();
                if let Some(shade) = self.shade(run[0]) {
                    let corners = [(from, d as f64 * height), (to, (d + 1) as f64 * height)];
                    chart.draw_series([Rectangle::new(corners, colour(shade).filled())])?;
                }
            }
        }
        Ok(())
    }
}

impl SpyPlot<'_> {
    /// 0 for the lightest, `SHADES − 1` for a full cell; nothing for an empty one.
    fn shade(&self, count: u64) -> Option<usize> {
        if count == 0 {
            return None;
        }
        let places = self.raster.places().max(1) as f64;
        let fullness = if places > 1.0 { (count as f64).ln() / places.ln() } else { 1.0 };
        Some(((fullness * SHADES as f64) as usize).min(SHADES - 1))
    }
}

fn colour(shade: usize) -> RGBColor {
    // From a light blue that still shows to full ink.
    let share = shade as f64 / (SHADES - 1) as f64;
    let mix = |light: u8, dark: u8| (f64::from(light) + share * (f64::from(dark) - f64::from(light))) as u8;
    RGBColor(mix(0x8f, INK.0), mix(0xb4, INK.1), mix(0xe3, INK.2))
}

struct LengthPlot<'a> {
    title: String,
    bins: &'a [Bin],
}

/// Draws how many rows have how many entries.
pub fn row_lengths(path: &Path, name: &str, bins: &[Bin]) -> Result<(), Failure> {
    save(path, (800, 480), &LengthPlot { title: format!("{}: row lengths", short(name)), bins })
}

impl Picture for LengthPlot<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let most = self.bins.iter().map(|b| b.rows).max().unwrap_or(0).max(1) as f64;
        let bins = self.bins.len().max(1) as f64;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(95)
            .build_cartesian_2d(0.0..bins, 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_labels(0)
            .y_labels(6)
            .x_desc("entries in a row")
            .y_desc("rows")
            .label_style(("sans-serif", 14))
            .y_label_formatter(&|y| count(y.round() as u64))
            .draw()?;
        // Few enough labels to stay apart.
        let step = self.bins.len().div_ceil(14).max(1);
        let base = chart.plotting_area().get_pixel_range();
        for (k, bin) in self.bins.iter().enumerate() {
            let corners = [(k as f64 + 0.12, 0.0), (k as f64 + 0.88, bin.rows as f64)];
            chart.draw_series([Rectangle::new(corners, INK.filled())])?;
            if k % step == 0 {
                let label = if bin.from == bin.to {
                    bin.from.to_string()
                } else {
                    format!("{}–{}", bin.from, bin.to)
                };
                let (x, _) = chart.backend_coord(&(k as f64 + 0.5, 0.0));
                let below = Pos::new(HPos::Center, VPos::Top);
                let centred = ("sans-serif", 14).into_font().into_text_style(area).pos(below);
                area.draw(&Text::new(label, (x, base.1.end + 8), centred))?;
            }
        }
        Ok(())
    }
}

/// The file's own name without its folders, cut so that a title fits.
pub(crate) fn short(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.chars().take(40).collect()
}
