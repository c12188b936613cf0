//! Pictures of a run: how near the memory's rate single operations come, and whole solves beside the best peer.

use super::contestants;
use super::record::{Entry, Mode, Record};
use super::report::rate;
use crate::Failure;
use crate::run::Drawn;
use crate::run::bars::{Figure, Group, Panel};
use crate::run::table;
use krylith_plot::INK;
use krylith_plot::plotters::style::RGBColor;
use std::path::Path;

/// Ratios above this are not drawn to scale.
const CUT: f64 = 6.0;

/// Draws what there is to draw, as SVG.
pub fn draw(record: &Record, folder: &Path) -> Result<Vec<Drawn>, Failure> {
    let figures = [("solves", solves(record)), ("kernels", kernels(record))];
    let drawn = figures.iter().filter(|(_, figure)| !figure.panels.is_empty());
    drawn.map(|(name, figure)| figure.write(folder, name, 1200)).collect()
}

fn colour(peer: &str) -> RGBColor {
    match peer {
        "krylith" => INK,
        "petsc" => RGBColor(0xe0, 0x7b, 0x39),
        "mkl" => RGBColor(0x4b, 0xa3, 0xe3),
        "amgcl" => RGBColor(0xc8, 0x2d, 0x2d),
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
        |name: &&str| record.rows.iter().any(|e| e.mode == mode && e.peer == *name && !e.runs.is_empty());
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
            let bars = series.iter().map(bar).collect();
            Group { name: problem.clone(), bars, mark: best.map(|_| 1.0) }
        };
        let title = if threads == 1 { "1 thread".into() } else { format!("{threads} threads or ranks") };
        let names = record.facts.matrices.iter().map(|m| &m.name);
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
        let groups = record.facts.matrices.iter().map(group).collect();
        Panel { title: format!("{what}, {}", table::threads(threads)), unit: "GB/s", cut: None, groups }
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
