//! Krylith's own paths through the three operations, and the hidden subcommand that times one of them in a process of its own.
//!
//! A new path is a function in [`PATHS`]: it takes the case and the matrix by rows, and gives a [`Path`], for most by [`Pair`].
//! What it does with the pattern is counted as set-up; taking over values from rows is timed by itself.

use super::case::{Case, Operation};
use crate::Failure;
use crate::compare::record::Line;
use clap::Args;
use krylith::block::{BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe};
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::precond::{Form, Incomplete};
use krylith::schedule::Schedule;
use krylith::sliced::{Sliced, SlicedPattern, SlicedSymbolic};
use krylith::space::{Space, Threads};
use krylith::structured::{StencilMatrix, StencilSymbolic, Structure};
use krylith::{Csr, SetupError};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A way through the three operations. All work on the same x, in an order of the path's own.
pub trait Path {
    /// Takes over the values of A; `false` where there is nothing to do.
    fn convert(&mut self) -> Result<bool, Failure>;
    /// The numbers of the factor.
    fn factor(&mut self) -> Result<(), Failure>;
    /// y = A x.
    fn product(&mut self) -> Result<(), Failure>;
    /// y = U⁻¹ L⁻¹ x.
    fn apply(&mut self) -> Result<(), Failure>;
    /// y in the order of the rows.
    fn answer(&self) -> Vec<f64>;
}

type Make = for<'a> fn(&Case, &'a Threads<f64>, &'a Csr<f64>) -> Result<Box<dyn Path + 'a>, Failure>;

/// Every path by its name.
pub const PATHS: [(&str, Make); 4] =
    [("rows", rows), ("slices", slices), ("blocks", blocks), ("structured", structured)];

/// Takes over the values of a matrix by rows.
type Set<A> = fn(&Threads<f64>, &mut A, &Csr<f64>) -> Result<(), SetupError>;
/// Factors a matrix in place.
type Refactor<A, M> = fn(&Threads<f64>, &mut M, &A) -> Result<(), SetupError>;
/// Brings a vector back to the order of the rows.
type Back<'a, A> = Box<dyn Fn(&A, &[f64]) -> Vec<f64> + 'a>;

/// A matrix and its factor as operators on vectors of one length.
struct Pair<'a, A: LinearOperator<Threads<f64>>, M: LinearOperator<Threads<f64>>> {
    space: &'a Threads<f64>,
    source: &'a Csr<f64>,
    a: A,
    m: M,
    scratch: (A::Scratch, M::Scratch),
    set: Option<Set<A>>,
    refactor: Refactor<A, M>,
    x: Vec<f64>,
    y: Vec<f64>,
    back: Back<'a, A>,
}

impl<'a, A, M> Pair<'a, A, M>
where
    A: LinearOperator<Threads<f64>> + 'a,
    M: LinearOperator<Threads<f64>> + 'a,
{
    /// In the order of the rows, without values to take over.
    fn new(
        space: &'a Threads<f64>,
        source: &'a Csr<f64>,
        (a, m): (A, M),
        refactor: Refactor<A, M>,
    ) -> Result<Self, Failure> {
        let scratch = (a.scratch(space)?, m.scratch(space)?);
        let y = space.zeros(&a.range())?;
        let back = Box::new(|_: &A, y: &[f64]| y.to_vec());
        Ok(Pair { space, source, a, m, scratch, set: None, refactor, x: probe(source.nrows()), y, back })
    }
}

impl<A: LinearOperator<Threads<f64>>, M: LinearOperator<Threads<f64>>> Path for Pair<'_, A, M> {
    fn convert(&mut self) -> Result<bool, Failure> {
        let Some(set) = self.set else { return Ok(false) };
        set(self.space, &mut self.a, self.source)?;
        Ok(true)
    }

    fn factor(&mut self) -> Result<(), Failure> {
        Ok((self.refactor)(self.space, &mut self.m, &self.a)?)
    }

    fn product(&mut self) -> Result<(), Failure> {
        Ok(self.a.apply(self.space, &self.x, &mut self.y, &mut self.scratch.0)?)
    }

    fn apply(&mut self) -> Result<(), Failure> {
        Ok(self.m.apply(self.space, &self.x, &mut self.y, &mut self.scratch.1)?)
    }

    fn answer(&self) -> Vec<f64> {
        (self.back)(&self.a, &self.y)
    }
}

fn probe(n: usize) -> Vec<f64> {
    (0..n as u64).map(Case::probe).collect()
}

fn rows<'a>(_: &Case, space: &'a Threads<f64>, a: &'a Csr<f64>) -> Result<Box<dyn Path + 'a>, Failure> {
    let m = Incomplete::ilu(0).analyze(space, a)?.factor(space, a)?;
    Ok(Box::new(Pair::new(space, a, (a, m), |space, m, a| m.refactor(space, *a))?))
}

fn slices<'a>(_: &Case, space: &'a Threads<f64>, a: &'a Csr<f64>) -> Result<Box<dyn Path + 'a>, Failure> {
    let pattern = Arc::new(SlicedPattern::find(a.pattern())?);
    let m = SlicedSymbolic::new(&pattern, Form::LU, space.threads(), Schedule::Auto)?.allocate::<f64>();
    let mut pair = Pair::new(space, a, (Sliced::zeros(&pattern), m), |space, m, a| m.refactor(space, a))?;
    pair.set = Some(|space, own, a| own.set(space, a));
    pair.x = space.zeros(&pattern.positions())?;
    pattern.gather(space, &probe(a.nrows()), &mut pair.x)?;
    pair.back = Box::new(move |_, y| {
        let mut natural = vec![0.0; a.nrows()];
        pattern.scatter(space, y, &mut natural).expect("vectors of the pattern's length");
        natural
    });
    Ok(Box::new(pair))
}

fn blocks<'a>(case: &Case, space: &'a Threads<f64>, a: &'a Csr<f64>) -> Result<Box<dyn Path + 'a>, Failure> {
    let own = BlockMatrix::new(space, a, case.dof)?;
    let m = BlockPreconditioner::new(space, &own, &BlockRecipe::new(BlockKind::Ilu0))?;
    let mut pair = Pair::new(space, a, (own, m), |space, m, a| m.refactor(space, a))?;
    pair.set = Some(|space, own, a| own.set(space, a));
    Ok(Box::new(pair))
}

fn structured<'a>(
    case: &Case,
    space: &'a Threads<f64>,
    a: &'a Csr<f64>,
) -> Result<Box<dyn Path + 'a>, Failure> {
    let found = Structure::detect(a.pattern())?;
    if found.dof != case.dof || found.grid.extents() != [case.n; 3] {
        return Err(format!("found another grid: {found}").into());
    }
    let own = StencilMatrix::from_csr(space, found.grid, &found.stencil, found.dof, a)?;
    let m = StencilSymbolic::new(&own, Form::LU, 0, space.threads()).and_then(|s| s.allocate::<f64>())?;
    let mut x = own.vector();
    own.gather(space, &probe(a.nrows()), &mut x)?;
    let mut pair = Pair::new(space, a, (own, m), |space, m, a| m.refactor(space, a))?;
    pair.x = x;
    pair.back = Box::new(move |own, y| {
        let mut natural = vec![0.0; a.nrows()];
        own.scatter(space, y, &mut natural).expect("vectors of the layout's length");
        natural
    });
    Ok(Box::new(pair))
}

/// Options of the hidden subcommand `structured-once`.
#[derive(Args)]
pub struct OnceOptions {
    /// STENCIL:DOF:N
    case: Case,
    /// One of Krylith's paths
    path: String,
    #[arg(long)]
    threads: usize,
    /// Write A x and U⁻¹ L⁻¹ x here
    #[arg(long)]
    answer: Option<PathBuf>,
}

/// Times one path and prints a driver's line.
pub fn once(options: &OnceOptions) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    println!("{}", serde_json::to_string(&measure(options)?)?);
    Ok(())
}

fn measure(options: &OnceOptions) -> Result<Line, Failure> {
    let unknown = || format!("there is no path `{}`", options.path);
    let (_, make) = PATHS.iter().find(|(name, _)| *name == options.path).ok_or_else(unknown)?;
    let space = Threads::<f64>::new(options.threads);
    let a = options.case.matrix()?;
    let started = Instant::now();
    let mut path = make(&options.case, &space, &a)?;
    let analyze = started.elapsed().as_secs_f64();
    let converts = path.convert()?;
    path.factor()?;
    if let Some(file) = &options.answer {
        path.product()?;
        let mut answer = path.answer();
        path.apply()?;
        answer.extend(path.answer());
        write_numbers(file, &answer)?;
    }
    let mut line = Line {
        peer: "krylith".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        config: options.path.clone(),
        problem: options.case.to_string(),
        threads: options.threads,
        status: "measured".into(),
        ..Line::default()
    };
    let mut keep = |name: &str, seconds: f64| line.kernels.insert(name.into(), Some(seconds));
    keep("analyze", analyze);
    if converts {
        keep("convert", piece_seconds(|| path.convert().map(|_| ()))?);
    }
    keep(Operation::Product.key(), piece_seconds(|| path.product())?);
    keep(Operation::Apply.key(), piece_seconds(|| path.apply())?);
    keep(Operation::Factor.key(), piece_seconds(|| path.factor())?);
    Ok(line)
}

fn write_numbers(file: &std::path::Path, numbers: &[f64]) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(file)?);
    numbers.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
    Ok(out.flush()?)
}

/// Shortest piece that is timed, pieces of an operation, and seconds after which there are no more.
const PIECE: f64 = 0.1;
const PIECES: usize = 3;
const ENOUGH: f64 = 5.0;

/// Seconds a call: the least over pieces of so many calls that a piece takes 0.1 s. `peers/grid.h` has the same.
fn piece_seconds(mut call: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let (began, mut calls, mut pieces, mut least) = (Instant::now(), 1usize, 0, f64::INFINITY);
    while pieces < PIECES && (pieces == 0 || began.elapsed().as_secs_f64() < ENOUGH) {
        let started = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let seconds = started.elapsed().as_secs_f64();
        if seconds < PIECE {
            calls = 1 + (1.1 * PIECE / (seconds / calls as f64).max(1e-9)) as usize;
            continue;
        }
        least = least.min(seconds / calls as f64);
        pieces += 1;
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path gives the same product and the same application.
    #[test]
    fn paths_agree() {
        for case in ["star-7p:1:8", "box-27p:2:6"] {
            let case: Case = case.parse().unwrap();
            let a = case.matrix().unwrap();
            let space = Threads::<f64>::new(2);
            let mut expected: Option<[Vec<f64>; 2]> = None;
            for (name, make) in PATHS {
                let mut path = match make(&case, &space, &a) {
                    Ok(path) => path,
                    Err(why) if name == "slices" => {
                        assert!(why.to_string().contains("slice"), "{why}");
                        continue;
                    }
                    Err(why) => panic!("{name}: {why}"),
                };
                path.convert().unwrap();
                path.factor().unwrap();
                path.product().unwrap();
                let y = path.answer();
                path.apply().unwrap();
                let own = [y, path.answer()];
                let expected = expected.get_or_insert_with(|| own.clone());
                for (own, expected) in own.iter().zip(&*expected) {
                    assert_eq!(own.len() as u64, case.rows());
                    let far = own.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(far < 1e-12, "{case} {name}: {far}");
                }
            }
        }
    }

    #[test]
    fn a_line_has_all_operations() {
        let folder = tempfile::tempdir().unwrap();
        let answer = folder.path().join("answer");
        let options = OnceOptions {
            case: "star-7p:2:6".parse().unwrap(),
            path: "blocks".into(),
            threads: 1,
            answer: Some(answer.clone()),
        };
        let line = measure(&options).unwrap();
        let names: Vec<&str> = line.kernels.keys().map(String::as_str).collect();
        assert_eq!(names, ["analyze", "apply", "convert", "factor", "spmv"]);
        assert!(line.kernels.values().all(|s| s.unwrap() > 0.0));
        assert_eq!(answer.metadata().unwrap().len(), 2 * 8 * options.case.rows());
        assert!(measure(&OnceOptions { path: "columns".into(), ..options }).is_err());
    }

    #[test]
    fn pieces_are_long_enough() {
        let mut calls = 0;
        let seconds = piece_seconds(|| {
            calls += 1;
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(())
        });
        assert!(calls > 3 * 3, "{calls}");
        assert!(seconds.unwrap() >= 0.02);
    }
}
