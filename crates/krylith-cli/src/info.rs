//! `krylith info`: the facts about a matrix, for people and for programs.

use crate::Failure;
use crate::args::Info;
use crate::input::{Loaded, load};
use crate::orderings::{self, Line};
use crate::outputs::{self, Output};
use crate::plot;
use crate::progress::spinner;
use crate::report::{bytes, count, counted, print, write_json};
use crate::trade::Trade;
use krylith::Method;
use krylith::matrix::{Summary, Triangle};
use krylith::schedule::Wavefronts;
use krylith::setup::Memory;
use krylith::structured::{NotStructured, Structure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// The restart length that the memory plan of GMRES assumes.
const RESTART: usize = 30;

pub fn run(options: &Info) -> Result<(), Failure> {
    let plot = options.plot.as_deref().map(|path| Output::in_place("--plot", path));
    let json = options.json.as_deref().map(|path| Output::in_place("--json", path));
    outputs::check(&Vec::from_iter([plot, json].into_iter().flatten()), &options.input.file())?;
    options.plot.as_deref().map_or(Ok(()), plot::check_ending)?;
    let loaded = load(&options.input)?;
    let facts = Facts::new(&loaded, options)?;
    if let Some(path) = &options.plot {
        plot::row_lengths(path, &loaded.name, &facts.summary.row_length_bins())?;
    }
    if let Some(path) = &options.json {
        write_json(path, &facts.json(&loaded))?;
        if path == Path::new("-") {
            return Ok(());
        }
    }
    print(&facts.text(&loaded))
}

/// Number, mean and largest size of the wavefronts of one triangle.
#[derive(Clone, Copy)]
struct Levels {
    count: usize,
    mean: f64,
    largest: usize,
}

impl Levels {
    fn new(loaded: &Loaded, triangle: Triangle) -> Result<Self, Failure> {
        let w = Wavefronts::new(loaded.matrix.pattern(), triangle)?;
        let largest = w.sizes().iter().copied().max().unwrap_or(0);
        Ok(Levels { count: w.count(), mean: w.mean_size(), largest })
    }
}

/// Predicted bytes of what a solve would hold besides the matrix.
struct Plan {
    matrix: u64,
    layout: String,
    /// The matrix reordered, where it is.
    copy: u64,
    /// Of IC(0) and ILU(0) alike.
    factor: u64,
    cg: u64,
    bicgstab: u64,
    gmres: u64,
}

struct Facts {
    summary: Summary,
    /// Of the lower and the upper triangle; none for a rectangular matrix.
    wavefronts: Option<(Levels, Levels)>,
    plan: Option<Plan>,
    grid: Result<Structure, NotStructured>,
    /// One per ordering, where they were asked for.
    orderings: Vec<Line>,
    /// What sparsification would do, where that was asked for.
    sparsify: Option<Trade>,
    seconds: f64,
}

impl Facts {
    fn new(loaded: &Loaded, options: &Info) -> Result<Self, Failure> {
        let started = Instant::now();
        let _spinner = spinner("analyzing");
        let a = &loaded.matrix;
        let summary = Summary::new(a);
        let square = a.nrows() == a.ncols();
        let wavefronts = match square {
            true => Some((Levels::new(loaded, Triangle::Lower)?, Levels::new(loaded, Triangle::Upper)?)),
            false => None,
        };
        let plan = square.then(|| Plan::new(loaded));
        let grid = Structure::detect(a.pattern());
        let orderings = if options.orderings { orderings::compare(a.pattern())? } else { Vec::new() };
        let sparsify = options.sparsify.then(|| Trade::new(a)).transpose()?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Facts { summary, wavefronts, plan, grid, orderings, sparsify, seconds })
    }

    fn json(&self, loaded: &Loaded) -> Value {
        let (a, s) = (&loaded.matrix, &self.summary);
        let levels = |l: Levels| json!({ "count": l.count, "mean_rows": l.mean, "largest": l.largest });
        let bins = s.row_length_bins();
        let bins: Vec<Value> =
            bins.iter().map(|b| json!({ "from": b.from, "to": b.to, "rows": b.rows })).collect();
        let mut facts = json!({
            "matrix": {
                "source": loaded.name,
                "rows": a.nrows(),
                "columns": a.ncols(),
                "nnz": a.nnz(),
                "symmetric": s.symmetry.symmetric,
                "asymmetry": a.asymmetry(),
                "pattern_symmetric": s.symmetry.pattern,
                "skew_symmetric": s.symmetry.skew,
                "explicit_zeros": s.explicit_zeros,
                "not_finite": s.not_finite,
                "empty_rows": s.empty_rows,
                "smallest": if s.smallest.is_finite() { json!(s.smallest) } else { Value::Null },
                "largest": s.largest,
            },
            "diagonal": {
                "missing": s.diagonal.missing,
                "first_missing_row": s.diagonal.first_missing,
                "zero": s.diagonal.zero,
                "positive": s.diagonal.positive,
                "negative": s.diagonal.negative,
                "dominant_rows": s.diagonal.dominant,
                "strictly_dominant_rows": s.diagonal.strictly_dominant,
            },
            "bandwidth": { "lower": s.lower_bandwidth, "upper": s.upper_bandwidth },
            "wavefronts": self.wavefronts.map(|(l, u)| json!({ "lower": l.count, "upper": u.count })),
            "wavefront_sizes": self.wavefronts.map(|(l, u)| json!({ "lower": levels(l), "upper": levels(u) })),
            "grid": self.grid.as_ref().ok().map(grid_json),
            "row_lengths": {
                "min": s.row_lengths.keys().next(),
                "mean": mean_length(loaded),
                "max": s.row_lengths.keys().next_back(),
                "histogram": bins,
            },
            "memory": self.plan.as_ref().map(|p| json!({
                "matrix_bytes": p.matrix,
                "layout": p.layout,
                "reordered_copy_bytes": p.copy,
                "ic0_bytes": if s.symmetry.symmetric { json!(p.factor) } else { Value::Null },
                "ilu0_bytes": p.factor,
                "cg_vectors_bytes": p.cg,
                "bicgstab_vectors_bytes": p.bicgstab,
                "gmres30_vectors_bytes": p.gmres,
            })),
            "seconds": { "read": loaded.seconds, "analyze": self.seconds, "total": loaded.seconds + self.seconds },
        });
        if !self.orderings.is_empty() {
            facts["orderings"] = self.orderings.iter().map(Line::json).collect();
        }
        if let Some(trade) = &self.sparsify {
            facts["sparsification"] = trade.json();
        }
        facts
    }

    fn text(&self, loaded: &Loaded) -> String {
        let (a, s) = (&loaded.matrix, &self.summary);
        let mut text = format!("{}\n", loaded.name);
        let mut line = |label: &str, value: String| {
            writeln!(text, "  {label:18}{value}").expect("writing to a string");
        };
        line("size", format!("{} x {}", count(a.nrows()), count(a.ncols())));
        line("entries", format!("{} ({} explicit zeros)", count(a.nnz()), count(s.explicit_zeros)));
        line("values", self.values());
        line("symmetry", self.symmetry().into());
        line("diagonal", self.diagonal(a.nrows().min(a.ncols())));
        line("dominance", self.dominance(a.nrows()));
        if a.nrows() == a.ncols() {
            line("facts", krylith::plan::Facts::of_matrix(a).words().join(", "));
        }
        line("bandwidth", format!("lower {}, upper {}", count(s.lower_bandwidth), count(s.upper_bandwidth)));
        if let Some((lower, upper)) = self.wavefronts {
            line("wavefronts", format!("lower {}", levels_text(lower)));
            line("", format!("upper {}", levels_text(upper)));
        }
        line("grid", self.grid.as_ref().map_or_else(|why| format!("none: {why}"), grid_text));
        if let (Some(min), Some(max)) = (s.row_lengths.keys().next(), s.row_lengths.keys().next_back()) {
            let mean = mean_length(loaded);
            let empty =
                if s.empty_rows > 0 { format!(", {} empty", count(s.empty_rows)) } else { String::new() };
            line("row lengths", format!("{min} to {max}, mean {mean:.2}{empty}"));
            histogram(&mut line, s);
        }
        if let Some(plan) = &self.plan {
            plan.text(&mut line, s.symmetry.symmetric);
        }
        orderings::table(&mut line, &self.orderings);
        if let Some(trade) = &self.sparsify {
            trade.table(&mut line, a.nnz());
        }
        line("time", format!("read {:.3} s, analyze {:.3} s", loaded.seconds, self.seconds));
        text
    }

    fn values(&self) -> String {
        let s = &self.summary;
        let not_finite =
            if s.not_finite > 0 { format!("; {} NOT FINITE", count(s.not_finite)) } else { String::new() };
        match (s.largest > 0.0, s.not_finite) {
            (true, _) => format!("|a| from {:.3e} to {:.3e}{not_finite}", s.smallest, s.largest),
            (false, 0) => "all zero".into(),
            (false, _) => format!("no finite one but zero{not_finite}"),
        }
    }

    fn symmetry(&self) -> &'static str {
        let s = self.summary.symmetry;
        match (s.symmetric, s.skew, s.pattern) {
            (true, _, true) => "symmetric",
            (true, _, false) => "symmetric in values, explicit zeros on one side only",
            (_, true, _) => "skew-symmetric",
            (_, _, true) => "symmetric in pattern, not in values",
            _ => "not symmetric",
        }
    }

    fn diagonal(&self, length: usize) -> String {
        let d = &self.summary.diagonal;
        if d.positive == length {
            return "all positive".into();
        }
        let known = d.positive + d.negative + d.zero + d.missing;
        let parts = [
            (d.positive, "positive"),
            (d.negative, "negative"),
            (d.zero, "zero"),
            (d.missing, "missing"),
            (length - known, "NOT A NUMBER"),
        ];
        let present = parts.iter().filter(|(n, _)| *n > 0);
        let text: Vec<String> = present.map(|(n, what)| format!("{} {what}", count(*n))).collect();
        let first = d.first_missing.map(|row| format!(", the first in row {row} (counted from 0)"));
        text.join(", ") + &first.unwrap_or_default()
    }

    fn dominance(&self, rows: usize) -> String {
        let d = &self.summary.diagonal;
        let strict = count(d.strictly_dominant);
        match d.dominant == rows {
            true => format!("every row diagonally dominant, {strict} strictly"),
            false => format!(
                "{} of {} rows diagonally dominant, {strict} strictly",
                count(d.dominant),
                count(rows)
            ),
        }
    }
}

impl Plan {
    fn new(loaded: &Loaded) -> Self {
        let memory = Memory::predict(loaded.matrix.pattern());
        // The user's x and b as well.
        let vectors = |method| (memory.vectors(method) + 16 * loaded.matrix.nrows()) as u64;
        Plan {
            matrix: loaded.matrix.bytes() as u64,
            copy: memory.copy as u64,
            factor: memory.factor as u64,
            cg: vectors(Method::Cg),
            bicgstab: vectors(Method::BiCgStab),
            gmres: vectors(Method::Gmres(RESTART)),
            layout: memory.layout,
        }
    }

    fn text(&self, line: &mut impl FnMut(&str, String), symmetric: bool) {
        line("memory plan", format!("matrix {}, reordered copy {}", bytes(self.matrix), bytes(self.copy)));
        line("", self.layout.clone());
        if symmetric {
            line("", format!("CG with IC(0): factor {}, vectors {}", bytes(self.factor), bytes(self.cg)));
        }
        line(
            "",
            format!("BiCGStab with ILU(0): factor {}, vectors {}", bytes(self.factor), bytes(self.bicgstab)),
        );
        line("", format!("GMRES({RESTART}): vectors {}", bytes(self.gmres)));
    }
}

fn mean_length(loaded: &Loaded) -> f64 {
    loaded.matrix.nnz() as f64 / loaded.matrix.nrows().max(1) as f64
}

fn levels_text(l: Levels) -> String {
    format!("{}, mean {:.1} rows, largest {}", count(l.count), l.mean, count(l.largest))
}

fn grid_text(found: &Structure) -> String {
    let full =
        if found.fullness < 1.0 { format!(", {:.1} % full", 100.0 * found.fullness) } else { String::new() };
    let (grid, stencil, levels) = (&found.grid, &found.stencil, counted(found.levels(), "level"));
    format!("{grid}, {stencil}, {} per point, {levels}{full}", counted(found.dof, "unknown"))
}

fn grid_json(found: &Structure) -> Value {
    json!({
        "extents": found.grid.extents()[..found.grid.dims()],
        "stencil": found.stencil.to_string(),
        "offsets": found.stencil.offsets(),
        "dof": found.dof,
        "fullness": found.fullness,
        "levels": found.levels(),
    })
}

fn histogram(line: &mut impl FnMut(&str, String), s: &Summary) {
    let bins = s.row_length_bins();
    let most = bins.iter().map(|b| b.rows).max().unwrap_or(1);
    for bin in bins {
        let range =
            if bin.from == bin.to { bin.from.to_string() } else { format!("{}-{}", bin.from, bin.to) };
        let bar = "#".repeat((bin.rows * 30).div_ceil(most));
        line("", format!("{range:>9} {bar:30} {}", count(bin.rows)));
    }
}
