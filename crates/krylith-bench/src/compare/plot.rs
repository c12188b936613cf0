//! Pictures of a run: how near the memory's rate single operations come, and whole solves beside the best peer.

use super::contestants;
use super::record::{Entry, Mode, Record};
use super::report::rate;
use crate::Failure;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::plotters::style::text_anchor::{HPos, Pos, VPos};
use krylith_plot::{GRID, INK, Picture, save};
use std::path::Path;

/// Ratios above this are not drawn to scale.
const CUT: f64 = 6.0;

/// Draws what there is to draw, as SVG and PNG; names of the pictures with what they show.
pub fn draw(output: &Path, record: &Record) -> Result<Vec<(String, String)>, Failure> {
    let mut names = Vec::new();
    for (name, figure) in [("solves", solves(record)), ("kernels", kernels(record))] {
        if figure.panels.is_empty() {
            continue;
        }
        let size = (1200, 110 + 330 * figure.panels.len() as u32);
        save(&output.join(format!("{name}.png")), size, &figure)?;
        save(&output.join(format!("{name}.svg")), size, &figure)?;
        names.push((format!("{name}.svg"), figure.title.clone()));
    }
    Ok(names)
}

/// Panels of grouped bars under one legend.
struct Figure {
    title: String,
    /// Series with their colours.
    series: Vec<(String, RGBColor)>,
    /// What a mark across a group stands for.
    mark: Option<&'static str>,
    /// Rows of panels.
    panels: Vec<Vec<Panel>>,
}

struct Panel {
    title: String,
    unit: &'static str,
    /// Bars end here, whatever their value.
    cut: Option<f64>,
    groups: Vec<Group>,
}

struct Group {
    name: String,
    /// A value a series.
    bars: Vec<Option<f64>>,
    mark: Option<f64>,
}

fn colour(peer: &str) -> RGBColor {
    match peer {
        "krylith" => INK,
        "petsc" => RGBColor(0xe0, 0x7b, 0x39),
        "mkl" => RGBColor(0x4b, 0xa3, 0xe3),
        "hypre" => RGBColor(0x4c, 0xa6, 0x4c),
        "ilupp" => RGBColor(0xc0, 0x6b, 0xb0),
        "pyamg" => RGBColor(0x8c, 0x5a, 0x3c),
        "scipy" => RGBColor(0x9a, 0x9a, 0x9a),
        "faer" => RGBColor(0xe3, 0xb5, 0x05),
        _ => RGBColor(0x14, 0x9c, 0x96),
    }
}

/// The peers that have entries of a mode, in the order of their list.
fn series(record: &Record, mode: Mode) -> Vec<(String, RGBColor)> {
    let has =
        |name: &&str| record.entries.iter().any(|e| e.mode == mode && e.peer == *name && !e.runs.is_empty());
    contestants::names().filter(has).map(|name| (name.to_owned(), colour(name))).collect()
}

/// The best configuration of every peer, by the best peer's total.
fn solves(record: &Record) -> Figure {
    let series = series(record, Mode::Solve);
    let panel = |&threads: &usize| {
        let group = |problem: &String| {
            let best = record.best_peer(problem, threads);
            let least = |peer: &str| {
                let own = record.on(Mode::Solve, problem, threads).filter(|e| e.peer == peer);
                own.filter_map(Entry::counted).min_by(f64::total_cmp)
            };
            let bar = |(peer, _): &(String, RGBColor)| least(peer).zip(best).map(|(own, best)| own / best);
            Group { name: problem.clone(), bars: series.iter().map(bar).collect(), mark: best.map(|_| 1.0) }
        };
        let title = if threads == 1 { "1 thread".into() } else { format!("{threads} threads or ranks") };
        let names = record.matrices.iter().map(|m| &m.name);
        vec![Panel { title, unit: "times the best peer", cut: Some(CUT), groups: names.map(group).collect() }]
    };
    let panels: Vec<Vec<Panel>> = match series.is_empty() {
        true => Vec::new(),
        false => record.threads().iter().map(panel).collect(),
    };
    let title =
        format!("Set-up and solve by the best peer's, best configuration of each; bars are cut at {CUT}");
    Figure { title, series, mark: Some("best peer"), panels }
}

/// GB/s by the byte model, and the triad at the same footprint.
fn kernels(record: &Record) -> Figure {
    let series = series(record, Mode::Kernels);
    let panel = |threads: usize, kernel: &str, what: &str| {
        let group = |m| {
            let matrix: &super::record::Matrix = m;
            let of = |peer: &str| {
                let own = record.on(Mode::Kernels, &matrix.name, threads).filter(|e| e.peer == peer);
                own.filter_map(|e| rate(matrix, e, kernel)).max_by(f64::total_cmp)
            };
            let bars = series.iter().map(|(peer, _)| of(peer)).collect();
            Group { name: matrix.name.clone(), bars, mark: record.triad(&matrix.name, threads) }
        };
        let count = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        let groups = record.matrices.iter().map(group).collect();
        Panel { title: format!("{what}, {count}"), unit: "GB/s", cut: None, groups }
    };
    let row =
        |(kernel, what): (&str, &str)| record.threads().iter().map(|&t| panel(t, kernel, what)).collect();
    let panels = match series.is_empty() {
        true => Vec::new(),
        false => [("spmv", "product A x"), ("apply", "L and U solves")].map(row).into(),
    };
    let title = "Single operations: bytes that must be moved, by the time taken".into();
    Figure { title, series, mark: Some("triad at the same footprint"), panels }
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
            .build_cartesian_2d(0.0..panel.groups.len() as f64, 0.0..panel.top() * 1.1)?;
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
            let bars = self.bars(k, group, panel.top());
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
            let centred = |size: i32, place| {
                ("sans-serif", size).into_font().into_text_style(area).pos(Pos::new(HPos::Center, place))
            };
            for bar in bars {
                let (x, mut y) = pixel((bar.from + bar.to) / 2.0, bar.height);
                // A number that the mark would strike out stands above it.
                if let Some(mark) =
                    group.mark.map(|mark| pixel(0.0, mark).1).filter(|m| (y - 17..=y).contains(m))
                {
                    y = mark;
                }
                area.draw(&Text::new(short(bar.value), (x, y - 3), centred(11, VPos::Bottom)))?;
            }
            let (x, y) = pixel(k as f64 + 0.5, 0.0);
            area.draw(&Text::new(group.name.clone(), (x, y + 6), centred(15, VPos::Top)))?;
        }
        Ok(())
    }

    /// The bars of group number k, side by side within it, none higher than the top.
    fn bars(&self, k: usize, group: &Group, top: f64) -> Vec<Bar> {
        // Who has no bar in this group leaves no gap.
        let present: Vec<(usize, f64)> =
            group.bars.iter().enumerate().filter_map(|(s, v)| Some((s, (*v)?))).collect();
        let width = 0.9 / (present.len().max(1) as f64).max(0.5 * self.series.len() as f64);
        let first = k as f64 + 0.5 - 0.5 * width * present.len() as f64;
        let bar = |(place, &(s, value)): (usize, &(usize, f64))| Bar {
            from: first + width * (place as f64 + 0.05),
            to: first + width * (place as f64 + 0.95),
            height: value.min(top),
            value,
            colour: self.series[s].1,
        };
        present.iter().enumerate().map(bar).collect()
    }
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
            series: vec![("krylith".into(), INK), ("petsc".into(), colour("petsc"))],
            mark: Some("triad"),
            panels: vec![
                vec![panel(None, &[5.0, 6.0], Some(20.0))],
                vec![panel(Some(6.0), &[0.5, 14.0], None)],
            ],
        };
        let path = folder.path().join("a.svg");
        save(&path, (600, 500), &figure).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(["petsc", "triad", "P1", "14"].iter().all(|word| text.contains(word)));
    }

    #[test]
    fn bars_stay_in_their_group() {
        let series = vec![("krylith".into(), INK); 9];
        let figure = Figure { title: String::new(), series, mark: None, panels: Vec::new() };
        for count in 1..=9 {
            let group = Group { name: String::new(), bars: vec![Some(2.0); count], mark: None };
            let bars = figure.bars(3, &group, 1.0);
            assert!(bars.iter().all(|b| b.from > 3.0 && b.to < 4.0 && b.height == 1.0));
            assert!(bars.windows(2).all(|w| w[0].to < w[1].from));
        }
    }
}
