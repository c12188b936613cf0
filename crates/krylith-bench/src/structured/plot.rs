//! Pictures of a run: the rate of every contestant on every stencil, and what the parts of Krylith's own path bring.
//!
//! One picture per operation: stencils down, numbers of threads across, unknowns per point as groups. The mark is the bound; words
//! above a group tell how many times as fast the structured path is as the fastest other.

use super::case::{Case, Operation};
use super::record::{Others, Record};
use super::report::{is_structured, times_as_fast};
use super::stencil::Stencil;
use crate::Failure;
use crate::bars::{Figure, Group, Panel};
use krylith_plot::INK;
use krylith_plot::plotters::style::RGBColor;
use std::path::Path;

const WIDTH: u32 = 2000;

/// Draws everything there is, as SVG; names of the pictures with what they show.
pub fn draw(output: &Path, record: &Record) -> Result<Vec<(String, String)>, Failure> {
    let mut names = Vec::new();
    let series = record.series();
    let own: Vec<String> = record.breakdown.iter().map(|path| format!("krylith {path}")).collect();
    for operation in Operation::ALL {
        let file = operation.key();
        if !series.is_empty() {
            names.push(rates(record, operation, &series, true).write(output, file, WIDTH)?);
        }
        let timed = |name: &String| series.contains(name);
        if own.iter().filter(|name| timed(name)).count() > 1 {
            let figure = rates(record, operation, &own, false);
            names.push(figure.write(output, &format!("{file}-parts"), WIDTH)?);
        }
    }
    Ok(names)
}

/// Gflop/s of some contestants.
fn rates(record: &Record, operation: Operation, series: &[String], everyone: bool) -> Figure {
    // Those of factorizations differ by orders of magnitude.
    let floor = (operation == Operation::Factor).then_some(0.01);
    let row = |stencil: Stencil| -> Vec<Panel> {
        let panel = |&threads: &usize| {
            let cases = record.cases.iter().filter(|case| case.stencil == stencil);
            let groups =
                cases.map(|case| group(record, case, threads, operation, series, everyone)).collect();
            let other = if operation == Operation::Product { "" } else { ", PETSc's by block Jacobi" };
            let count = match threads {
                1 => "1 thread".into(),
                _ => format!("{threads} threads or ranks{other}"),
            };
            Panel { title: format!("{}, {count}", stencil.name()), unit: "Gflop/s", cut: None, floor, groups }
        };
        record.threads().iter().map(panel).collect()
    };
    let stencils = Stencil::ALL.into_iter().filter(|s| record.cases.iter().any(|case| case.stencil == *s));
    let what = if everyone { "" } else { ", parts of Krylith's path" };
    Figure {
        title: format!("Rate: {}{what}", operation.name()),
        series: series.iter().enumerate().map(|(k, name)| (name.clone(), colour(name, k))).collect(),
        mark: Some("bound by memory or arithmetic; above: structured beside the fastest other"),
        panels: stencils.map(row).collect(),
    }
}

fn group(
    record: &Record,
    case: &Case,
    threads: usize,
    operation: Operation,
    series: &[String],
    everyone: bool,
) -> Group {
    let rate = |seconds: f64| 1e-9 * case.flops(operation) as f64 / seconds;
    let bar = |name: &String| record.seconds(case, threads, name, operation).map(rate);
    let note = record.speedup(Others::All, case, threads, operation).filter(|_| everyone).map(times_as_fast);
    Group {
        name: format!("DoF {}", case.dof),
        bars: series.iter().map(bar).collect(),
        mark: record.bound(case, threads, operation).map(|bound| rate(bound.seconds)),
        note,
    }
}

/// The structured path in ink, its parts lighter, the others each in a colour of their own.
fn colour(name: &str, k: usize) -> RGBColor {
    const SHADES: [RGBColor; 4] = [
        RGBColor(0x3d, 0x56, 0xa8),
        RGBColor(0x6c, 0x84, 0xd0),
        RGBColor(0x9d, 0xb0, 0xe8),
        RGBColor(0xc4, 0xd0, 0xf5),
    ];
    match name {
        "krylith structured" => INK,
        "krylith rows" => RGBColor(0x9a, 0x9a, 0x9a),
        "krylith slices" => RGBColor(0x14, 0x9c, 0x96),
        "krylith blocks" => RGBColor(0x4c, 0xa6, 0x4c),
        "mkl csr" => RGBColor(0x4b, 0xa3, 0xe3),
        "mkl bsr" => RGBColor(0x8f, 0xcb, 0xf2),
        "petsc aij" => RGBColor(0xe0, 0x7b, 0x39),
        "petsc aij-plain" => RGBColor(0xb3, 0x56, 0x1c),
        "petsc baij" => RGBColor(0xf2, 0xb0, 0x84),
        _ if is_structured(name) => SHADES[k % SHADES.len()],
        _ => RGBColor(0xc0, 0x6b, 0xb0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn every_operation_is_drawn_with_its_parts() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = draw(folder.path(), &record()).unwrap().into_iter().map(|n| n.0).collect();
        let expected =
            ["spmv.svg", "spmv-parts.svg", "apply.svg", "apply-parts.svg", "factor.svg", "factor-parts.svg"];
        assert_eq!(names, expected);
        let text = std::fs::read_to_string(folder.path().join("factor.svg")).unwrap();
        assert!(["petsc baij", "DoF 2", "2.00x", "Star-7P, 1 thread"].iter().all(|word| text.contains(word)));
    }

    /// 360 operations in 3 µs.
    #[test]
    fn bars_are_rates() {
        let record = record();
        let series = record.series();
        let group = group(&record, &record.cases[0], 1, Operation::Factor, &series, true);
        assert!((group.bars[1].unwrap() - 0.12).abs() < 1e-12);
        assert_eq!(group.bars[3], None, "it failed");
        assert_eq!(group.note.as_deref(), Some("2.00x"));
    }
}
