//! `krylith info --orderings`: what each ordering does to the matrix.

use crate::Failure;
use crate::report::count;
use krylith::Pattern;
use krylith::transform::{Ordering, OrderingError, OrderingQuality, order};
use serde_json::{Value, json};

/// One ordering, or why there is none.
pub struct Line {
    ordering: Ordering,
    quality: Result<OrderingQuality, OrderingError>,
}

/// Every ordering of a square matrix; one that this build or this size does not allow stands with its reason.
pub fn compare(pattern: &Pattern) -> Result<Vec<Line>, Failure> {
    pattern.require_square()?;
    let line = |ordering| {
        let quality = order(pattern, ordering).and_then(|p| OrderingQuality::new(pattern, &p));
        Line { ordering, quality }
    };
    Ok(Ordering::ALL.into_iter().map(line).collect())
}

impl Line {
    pub fn json(&self) -> Value {
        let name = self.ordering.to_string();
        match &self.quality {
            Ok(q) => json!({
                "ordering": name,
                "wavefronts": q.wavefronts,
                "mean_wavefront": q.mean_wavefront,
                "bandwidth": q.bandwidth,
                "ic0_entries": q.lower_entries,
                "cholesky_entries": q.cholesky_entries,
            }),
            Err(error) => json!({ "ordering": name, "error": error.to_string() }),
        }
    }
}

/// A table of all lines; nothing where there are none.
pub fn table(line: &mut impl FnMut(&str, String), lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    let heads = ["wavefronts", "rows each", "bandwidth", "IC(0) entries", "Cholesky entries"];
    line("orderings", row("", heads.map(String::from)));
    for Line { ordering, quality } in lines {
        let text = match quality {
            Ok(q) => row(
                &ordering.to_string(),
                [
                    count(q.wavefronts),
                    format!("{:.1}", q.mean_wavefront),
                    count(q.bandwidth),
                    count(q.lower_entries),
                    count(q.cholesky_entries),
                ],
            ),
            Err(error) => format!("{ordering:8} {error}"),
        };
        line("", text);
    }
}

fn row(name: &str, [wavefronts, rows, bandwidth, incomplete, exact]: [String; 5]) -> String {
    format!("{name:8} {wavefronts:>12} {rows:>12} {bandwidth:>12} {incomplete:>15} {exact:>18}")
}
