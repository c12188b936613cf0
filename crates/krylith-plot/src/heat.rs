//! Heat maps: a number for each cell of a rectangle, shown by its colour.

use crate::{Failure, Picture, save};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// Colours from the lowest to the highest number: dark blue, purple, red, orange, pale yellow; each is lighter than the one before.
const STOPS: [RGBColor; 5] = [
    RGBColor(0x0d, 0x10, 0x3a),
    RGBColor(0x5c, 0x1a, 0x6e),
    RGBColor(0xc0, 0x3a, 0x50),
    RGBColor(0xf5, 0x92, 0x2f),
    RGBColor(0xfd, 0xf6, 0xb8),
];

/// Colours that are told apart.
const SHADES: usize = 64;

/// Cells are this many pixels at least along the longer side of the picture.
const LONGER_SIDE: f64 = 720.0;

/// The colour of a share, 0 for the lowest and 1 for the highest; what is no number is grey.
pub fn shade(share: f64) -> RGBColor {
    if share.is_nan() {
        return RGBColor(0x80, 0x80, 0x80);
    }
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let first = (at as usize).min(STOPS.len() - 2);
    let (a, b, part) = (STOPS[first], STOPS[first + 1], at - first as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + part * (f64::from(b) - f64::from(a))).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

struct HeatMap<'a> {
    title: &'a str,
    axes: [&'a str; 2],
    cells: [usize; 2],
    values: &'a [f64],
    lowest: f64,
    highest: f64,
}

/// Draws `across` · `up` numbers, the first line of them at the bottom, with a scale beside them.
pub fn heat_map(
    path: &Path,
    title: &str,
    axes: [&str; 2],
    [across, up]: [usize; 2],
    values: &[f64],
) -> Result<(), Failure> {
    if across.checked_mul(up) != Some(values.len()) || values.is_empty() {
        return Err(format!("{} numbers for {across} x {up} cells", values.len()).into());
    }
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (lowest, highest) =
        (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let longest = across.max(up) as f64;
    let side = |cells: usize| (LONGER_SIDE * cells as f64 / longest).round().max(120.0) as u32;
    let map = HeatMap { title, axes, cells: [across, up], values, lowest, highest };
    save(path, (side(across) + 200, side(up) + 110), &map)
}

impl HeatMap<'_> {
    /// Which of the shades a number has; none if it is not finite.
    fn shade_of(&self, value: f64) -> Option<usize> {
        let span = self.highest - self.lowest;
        let share = if span > 0.0 { (value - self.lowest) / span } else { 0.5 };
        (value.is_finite() && share.is_finite()).then(|| (share * (SHADES - 1) as f64).round() as usize)
    }

    /// The scale, the highest number at the top.
    fn draw_scale<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let (top, bottom) = (50, area.dim_in_pixel().1 as i32 - 55);
        let at = |k: usize| bottom - (bottom - top) * k as i32 / SHADES as i32;
        for k in 0..SHADES {
            let corners = [(10, at(k + 1)), (28, at(k))];
            area.draw(&Rectangle::new(corners, colour(Some(k)).filled()))?;
        }
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let (value, y) = (
                self.lowest + share * (self.highest - self.lowest),
                bottom - (f64::from(bottom - top) * share) as i32,
            );
            area.draw(&Text::new(format!("{value:.3}"), (34, y - 7), ("sans-serif", 14)))?;
        }
        Ok(())
    }
}

fn colour(shade_of: Option<usize>) -> RGBColor {
    shade(shade_of.map_or(f64::NAN, |k| k as f64 / (SHADES - 1) as f64))
}

impl Picture for HeatMap<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let [across, up] = self.cells;
        let (left, right) = area.split_horizontally(area.dim_in_pixel().0 - 100);
        let mut chart = ChartBuilder::on(&left)
            .caption(self.title, ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..across as f64, 0.0..up as f64)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(self.axes[0])
            .y_desc(self.axes[1])
            .label_style(("sans-serif", 14))
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .draw()?;
        for (y, line) in self.values.chunks(across).enumerate() {
            // Neighbouring cells of one shade are one rectangle: a smaller file.
            let mut from = 0;
            for run in line.chunk_by(|&a, &b| self.shade_of(a) == self.shade_of(b)) {
                let corners = [(from as f64, y as f64), ((from + run.len()) as f64, (y + 1) as f64)];
                chart.draw_series([Rectangle::new(corners, colour(self.shade_of(run[0])).filled())])?;
                from += run.len();
            }
        }
        self.draw_scale(&right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_grow_lighter() {
        let light = |k: usize| {
            let RGBColor(r, g, b) = shade(k as f64 / 100.0);
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        assert!((1..=100).all(|k| light(k) > light(k - 1)));
        assert_eq!((shade(-1.0), shade(2.0), shade(0.25)), (STOPS[0], STOPS[4], STOPS[1]));
    }

    /// Three cells of two numbers: the equal neighbours are one rectangle, in the colours of the lowest and the highest.
    #[test]
    fn equal_neighbours_are_one_rectangle() {
        let path = std::env::temp_dir().join(format!("krylith-heat-{}.svg", std::process::id()));
        let plain = |values: &[f64]| {
            heat_map(&path, "t", ["x", "y"], [3, 1], values).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let fill = |c: RGBColor| format!("fill=\"#{:02X}{:02X}{:02X}\"", c.0, c.1, c.2);
            [0.0, 0.5, 1.0, f64::NAN].map(|share| text.matches(&fill(shade(share))).count())
        };
        // The scale has each shade once more; of an even number of them none is in the middle.
        assert_eq!(plain(&[1.0, 1.0, 3.0]), [2, 0, 2, 0]);
        assert_eq!(plain(&[1.0, 3.0, 1.0]), [3, 0, 2, 0]);
        assert_eq!(plain(&[1.0, f64::NAN, 3.0]), [2, 0, 2, 1]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn wrong_counts_are_refused() {
        for cells in [[2, 2], [0, 3], [usize::MAX, 3]] {
            assert!(heat_map(Path::new("none.svg"), "t", ["x", "y"], cells, &[1.0; 3]).is_err());
        }
        assert!(heat_map(Path::new("none.svg"), "t", ["x", "y"], [0, 0], &[]).is_err());
    }
}
