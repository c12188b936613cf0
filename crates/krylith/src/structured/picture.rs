//! docs/wavefronts.svg: levels, and the eight lines of a step, drawn from the arrangement itself.
//!
//! The test fails if the picture in docs/ is another one; `KRYLITH_DRAW=1 cargo test -p krylith --lib structured::picture` draws it.

use super::arrangement::Arrangement;
use super::mapping::Mapping;
use super::{Grid, Stencil};
use crate::simd::LANES;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{Failure, INK, Picture, save, shade};
use std::path::Path;

/// Points along x and y.
const EXTENTS: [usize; 2] = [34, 12];
/// Pixels of a point.
const CELL: i32 = 24;
/// Left of the grids, and above each.
const MARGIN: (i32, i32) = (44, 64);
/// From a grid to the next.
const PANEL: i32 = EXTENTS[1] as i32 * CELL + 78;
/// The line whose point has its lower neighbours marked.
const SHOWN: usize = 3;

struct Wavefronts {
    panels: [Stencil; 2],
}

/// One grid with its stencil, at a moment of a sweep.
struct Panel<'a> {
    stencil: &'a Stencil,
    arrangement: Arrangement,
    mapping: Mapping,
    /// The step of the first group that is being computed: all eight lines have a point in it.
    step: usize,
    top: i32,
}

fn text(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

impl<'a> Panel<'a> {
    fn new(stencil: &'a Stencil, number: usize) -> Self {
        let arrangement = Arrangement::new(Grid::new(&EXTENTS).unwrap(), &[stencil], 1).unwrap();
        let step = arrangement.place([1, LANES - 1, 0]).0;
        Panel {
            stencil,
            mapping: Mapping::new(stencil),
            arrangement,
            step,
            top: MARGIN.1 + number as i32 * PANEL,
        }
    }

    /// Corners of a point's square, drawn in a little.
    fn square(&self, [x, y, _]: [usize; 3], inset: i32) -> [(i32, i32); 2] {
        let (left, top) = (MARGIN.0 + x as i32 * CELL, self.top + y as i32 * CELL);
        [(left + inset, top + inset), (left + CELL - 1 - inset, top + CELL - 1 - inset)]
    }

    fn is_done(&self, point: [usize; 3]) -> bool {
        self.arrangement.place(point).0 < self.step
    }

    fn centre(&self, point: [usize; 3]) -> (i32, i32) {
        let [(left, top), _] = self.square(point, 0);
        (left + CELL / 2, top + CELL / 2)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let factor = |weight: usize| if weight == 1 { String::new() } else { weight.to_string() };
        let title =
            format!("{}: level x + {}y, lag {}", self.stencil, factor(self.mapping.y), self.arrangement.lag);
        area.draw(&Text::new(title, (MARGIN.0, self.top - 42), text(19)))?;
        let levels = self.mapping.levels(&self.arrangement.grid);
        for number in 0..self.arrangement.grid.points() {
            let point = self.arrangement.grid.point(number);
            let colour = shade(self.mapping.level(point) as f64 / (levels - 1) as f64);
            area.draw(&Rectangle::new(
                self.square(point, 0),
                colour.mix(if self.is_done(point) { 1.0 } else { 0.35 }).filled(),
            ))?;
        }
        for x in (0..EXTENTS[0]).step_by(5) {
            let (at, _) = self.centre([x, 0, 0]);
            area.draw(&Text::new(format!("{x}"), (at - 4, self.top - 16), text(13)))?;
        }
        for y in 0..EXTENTS[1] {
            let (_, at) = self.centre([0, y, 0]);
            area.draw(&Text::new(format!("{y}"), (MARGIN.0 - 22, at - 7), text(13)))?;
        }
        self.draw_step(area)
    }

    /// The points of the step, one more level, the lower neighbours of one point, and where the group ends.
    fn draw_step<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let shown = self.arrangement.point(self.step, SHOWN).unwrap();
        let level = self.mapping.level(shown);
        for number in 0..self.arrangement.grid.points() {
            let point = self.arrangement.grid.point(number);
            if self.mapping.level(point) == level {
                let colour = if self.is_done(point) { WHITE } else { INK };
                area.draw(&Circle::new(self.centre(point), 3, colour.filled()))?;
            }
        }
        for &offset in self.stencil.lower() {
            let there = self.arrangement.grid.at(shown, offset).unwrap();
            area.draw(&Circle::new(self.centre(there), 7, WHITE.stroke_width(2)))?;
        }
        for lane in 0..LANES {
            let point = self.arrangement.point(self.step, lane).unwrap();
            area.draw(&Rectangle::new(self.square(point, 1), WHITE.filled()))?;
            area.draw(&Rectangle::new(self.square(point, 1), INK.stroke_width(2)))?;
            let (x, y) = self.centre(point);
            area.draw(&Text::new(format!("{lane}"), (x - 4, y - 7), text(15)))?;
        }
        let [(left, below), _] = self.square([0, LANES, 0], 0);
        let right = left + EXTENTS[0] as i32 * CELL;
        area.draw(&PathElement::new([(left - 28, below - 1), (right, below - 1)], INK.stroke_width(2)))?;
        Ok(())
    }
}

impl Picture for Wavefronts {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        for (number, stencil) in self.panels.iter().enumerate() {
            Panel::new(stencil, number).draw(area)?;
        }
        let lines = [
            "x to the right, y downwards; colours from dark to light by level. Full colours are done, pale ones to come.",
            "Numbered: the eight points of one step, by lane. Each line is a lag behind the line above it.",
            "Dots: one level, that of lane 3's point. Rings: the lower neighbours of lane 3's point, all done.",
            "The line across ends the first group of eight lines; the next group is another unit.",
        ];
        for (k, line) in lines.iter().enumerate() {
            let at = (MARGIN.0, MARGIN.1 + 2 * PANEL - 52 + 20 * k as i32);
            area.draw(&Text::new(*line, at, text(14)))?;
        }
        Ok(())
    }
}

#[test]
fn wavefronts() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wavefronts.svg");
    let size = (2 * MARGIN.0 as u32 + (EXTENTS[0] as i32 * CELL) as u32, (MARGIN.1 + 2 * PANEL + 36) as u32);
    let picture = Wavefronts { panels: [Stencil::star(2, 1).unwrap(), Stencil::cube(2, 1).unwrap()] };
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("wavefronts.svg");
    save(&fresh, size, &picture).unwrap();
    let drawn = std::fs::read_to_string(&fresh).unwrap();
    if std::env::var_os("KRYLITH_DRAW").is_some() {
        std::fs::write(&kept, &drawn).unwrap();
    }
    assert!(
        std::fs::read_to_string(&kept).unwrap() == drawn,
        "docs/wavefronts.svg is not what the arrangement gives"
    );
}
