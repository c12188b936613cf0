//! Pictures of grouped bars: rows of panels under one legend, a number above each bar, a mark across a group.

use super::{Drawn, picture};
use crate::Failure;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::plotters::style::text_anchor::{HPos, Pos, VPos};
use krylith_plot::{GRID, Picture};
use std::path::Path;

/// Panels of grouped bars under one legend.
pub struct Figure {
    pub title: String,
    /// Series with their colours.
    pub series: Vec<(String, RGBColor)>,
    /// What a mark across a group stands for.
    pub mark: Option<&'static str>,
    /// Rows of panels.
    pub panels: Vec<Vec<Panel>>,
}

pub struct Panel {
    pub title: String,
    pub unit: &'static str,
    /// Bars end here, whatever their value.
    pub cut: Option<f64>,
    pub groups: Vec<Group>,
}

pub struct Group {
    pub name: String,
    /// A value a series.
    pub bars: Vec<Option<f64>>,
    pub mark: Option<f64>,
}

impl Figure {
    /// Writes NAME.svg, this many pixels wide.
    pub fn write(&self, folder: &Path, name: &str, width: u32) -> Result<Drawn, Failure> {
        let size = (width, 110 + 330 * self.panels.len() as u32);
        picture::write(folder, &format!("{name}.svg"), &self.title, size, self)
    }
}

impl Picture for Figure {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(80);
        self.legend(&head)?;
        let rows = body.split_evenly((self.panels.len(), 1));
        for (row, panels) in rows.iter().zip(&self.panels) {
            for (place, panel) in row.split_evenly((1, panels.len())).iter().zip(panels) {
                self.panel(place, panel)?;
            }
        }
        Ok(())
    }
}

impl Figure {
    fn legend<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.draw(&Text::new(self.title.clone(), (20, 14), ("sans-serif", 20)))?;
        let mut x = 22;
        for (name, colour) in &self.series {
            area.draw(&Rectangle::new([(x, 52), (x + 14, 66)], colour.filled()))?;
            area.draw(&Text::new(name.clone(), (x + 20, 51), ("sans-serif", 16)))?;
            x += 42 + 9 * name.len() as i32;
        }
        if let Some(mark) = self.mark {
            area.draw(&PathElement::new(vec![(x, 59), (x + 24, 59)], RED.stroke_width(2)))?;
            area.draw(&Text::new(mark, (x + 30, 51), ("sans-serif", 16)))?;
        }
        Ok(())
    }

    fn panel<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, panel: &Panel) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, ("sans-serif", 17))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(65)
            .build_cartesian_2d(0.0..panel.groups.len() as f64, 0.0..1.1 * panel.top())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_labels(0)
            .y_labels(8)
            .y_desc(panel.unit)
            .label_style(("sans-serif", 14))
            .y_label_formatter(&|y| format!("{}", (y * 1e6).round() / 1e6))
            .draw()?;
        for (k, group) in panel.groups.iter().enumerate() {
            let bars = self.bars(k, group, panel);
            let rectangles =
                bars.iter().map(|b| Rectangle::new([(b.from, 0.0), (b.to, b.height)], b.colour.filled()));
            chart.draw_series(rectangles)?;
            if let Some(mark) = group.mark {
                let ends = vec![(k as f64 + 0.03, mark), (k as f64 + 0.97, mark)];
                chart.draw_series([PathElement::new(ends, RED.stroke_width(2))])?;
            }
            // Words are placed in pixels of the panel.
            let origin = area.get_base_pixel();
            let pixel = |x: f64, y: f64| {
                let (x, y) = chart.backend_coord(&(x, y));
                (x - origin.0, y - origin.1)
            };
            words(area, (k, group), &bars, &pixel)?;
        }
        Ok(())
    }

    /// The bars of group number k, side by side within it, none higher than the top.
    fn bars(&self, k: usize, group: &Group, panel: &Panel) -> Vec<Bar> {
        // Who has no bar in this group leaves no gap.
        let present: Vec<(usize, f64)> =
            group.bars.iter().enumerate().filter_map(|(s, v)| Some((s, (*v)?))).collect();
        let width = 0.9 / (present.len().max(1) as f64).max(0.5 * self.series.len() as f64);
        let first = k as f64 + 0.5 - 0.5 * width * present.len() as f64;
        let bar = |(place, &(s, value)): (usize, &(usize, f64))| Bar {
            from: first + width * (place as f64 + 0.05),
            to: first + width * (place as f64 + 0.95),
            height: value.min(panel.top()),
            value,
            colour: self.series[s].1,
        };
        present.iter().enumerate().map(bar).collect()
    }
}

/// The number above each bar, and the name below the group.
fn words<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    (k, group): (usize, &Group),
    bars: &[Bar],
    pixel: &dyn Fn(f64, f64) -> (i32, i32),
) -> Result<(), Failure>
where
    B::ErrorType: 'static,
{
    let centred = |size: i32, place| {
        ("sans-serif", size).into_font().into_text_style(area).pos(Pos::new(HPos::Center, place))
    };
    for bar in bars {
        let (x, mut y) = pixel((bar.from + bar.to) / 2.0, bar.height);
        // A number that the mark would strike out stands above it.
        if let Some(mark) = group.mark.map(|mark| pixel(0.0, mark).1).filter(|m| (y - 17..=y).contains(m)) {
            y = mark;
        }
        area.draw(&Text::new(short(bar.value), (x, y - 3), centred(11, VPos::Bottom)))?;
    }
    let (x, y) = pixel(k as f64 + 0.5, 0.0);
    area.draw(&Text::new(group.name.clone(), (x, y + 6), centred(15, VPos::Top)))?;
    Ok(())
}

struct Bar {
    from: f64,
    to: f64,
    height: f64,
    value: f64,
    colour: RGBColor,
}

/// Two digits that count.
fn short(value: f64) -> String {
    match value {
        v if v < 0.995 => format!("{v:.2}"),
        v if v < 9.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

impl Panel {
    /// The end of the axis: of the highest bar or mark, unless that is cut.
    fn top(&self) -> f64 {
        let values = self.groups.iter().flat_map(|g| g.bars.iter().chain([&g.mark])).flatten();
        let most = values.copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        self.cut.map_or(most, |cut| most.min(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith_plot::INK;

    fn panel(cut: Option<f64>, bars: &[f64], mark: Option<f64>) -> Panel {
        let bars = bars.iter().map(|&b| Some(b)).collect();
        let groups = vec![Group { name: "P1".into(), bars, mark }];
        Panel { title: "1 thread".into(), unit: "GB/s", cut, groups }
    }

    #[test]
    fn the_axis_ends_at_the_highest_bar_or_the_cut() {
        assert_eq!(panel(None, &[5.0], Some(20.0)).top(), 20.0);
        assert_eq!(panel(Some(6.0), &[0.3, 9.0], Some(1.0)).top(), 6.0);
        assert_eq!(panel(Some(6.0), &[0.3], Some(1.0)).top(), 1.0);
        assert_eq!(panel(None, &[], None).top(), 1.0);
    }

    #[test]
    fn a_figure_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let figure = Figure {
            title: "two bars".into(),
            series: vec![("krylith".into(), INK), ("petsc".into(), RED)],
            mark: Some("triad"),
            panels: vec![
                vec![panel(None, &[5.0, 6.0], Some(20.0))],
                vec![panel(Some(6.0), &[0.5, 14.0], None)],
            ],
        };
        let drawn = figure.write(folder.path(), "a", 600).unwrap();
        assert_eq!((drawn.file.as_str(), drawn.title.as_str()), ("a.svg", "two bars"));
        let text = std::fs::read_to_string(folder.path().join("a.svg")).unwrap();
        assert!(["petsc", "triad", "P1", "14"].iter().all(|word| text.contains(word)));
    }

    #[test]
    fn bars_stay_in_their_group() {
        let series = vec![("krylith".into(), INK); 9];
        let figure = Figure { title: String::new(), series, mark: None, panels: Vec::new() };
        for count in 1..=9 {
            let group = Group { name: String::new(), bars: vec![Some(2.0); count], mark: None };
            let bars = figure.bars(3, &group, &panel(Some(1.0), &[2.0], None));
            assert!(bars.iter().all(|b| b.from > 3.0 && b.to < 4.0 && b.height == 1.0));
            assert!(bars.windows(2).all(|w| w[0].to < w[1].from));
        }
    }
}
