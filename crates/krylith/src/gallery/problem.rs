//! A problem of the gallery with its size: parsed from text, counted before it is made.

use super::grid::Grid;
use super::{ProblemInfo, problems};
use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::memory::large_pages;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A named problem of a given size.
///
/// ```
/// use krylith::gallery::Problem;
/// let problem: Problem = "poisson2d:30x40".parse()?;
/// assert_eq!((problem.to_string().as_str(), problem.rows()), ("poisson2d:30x40", 1200));
/// assert!("poisson2d:0".parse::<Problem>().is_err());
/// # Ok::<(), krylith::gallery::GalleryError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    info: &'static ProblemInfo,
    grid: Grid,
    /// How many sizes were given: none, one for every axis, or one per axis. What `Display` repeats.
    given: usize,
}

/// A text or a list of sizes that names no problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GalleryError {
    /// No problem of that name.
    #[error("no problem is called '{name}'; there are {known}")]
    UnknownName {
        /// The name asked for.
        name: String,
        /// All names, with commas.
        known: String,
    },
    /// A size that is not a number, or too small.
    #[error("{problem}: bad size '{size}'; {expected}")]
    BadSize {
        /// The name of the problem.
        problem: &'static str,
        /// The size as it was given.
        size: String,
        /// What it should be.
        expected: String,
    },
    /// More unknowns than one matrix can have.
    #[error("{problem}: size {size} gives more than 2^32 - 1 unknowns")]
    TooLarge {
        /// The name of the problem.
        problem: &'static str,
        /// The size as it was given.
        size: String,
    },
    /// A number of sizes that is neither one nor that of the axes.
    #[error("{problem}: {found} sizes given; it takes one for every axis, or {expected}")]
    WrongDimensions {
        /// The name of the problem.
        problem: &'static str,
        /// Its number of axes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// The matrix could not be built.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

impl Problem {
    /// The problem of that name; `dims` is empty for the default size, one number for every axis, or one per axis.
    pub fn new(name: &str, dims: &[usize]) -> Result<Problem, GalleryError> {
        let info = find(name)?;
        let mut n = [1; 3];
        match dims.len() {
            0 => n[..info.dims()].copy_from_slice(info.default_size),
            1 => n[..info.dims()].fill(dims[0]),
            found if found == info.dims() => n[..found].copy_from_slice(dims),
            found => {
                return Err(GalleryError::WrongDimensions {
                    problem: info.name,
                    expected: info.dims(),
                    found,
                });
            }
        }
        if n[..info.dims()].iter().any(|&m| m < info.least_size) {
            return Err(bad_size(info, join(dims)));
        }
        let nodes = n.iter().try_fold(info.unknowns_per_node, |product, &m| product.checked_mul(m));
        if nodes.is_none_or(|count| u32::try_from(count).is_err()) {
            return Err(GalleryError::TooLarge { problem: info.name, size: join(dims) });
        }
        Ok(Problem { info, grid: Grid { n }, given: dims.len() })
    }

    /// What is known about the problem of any size.
    pub fn info(&self) -> &'static ProblemInfo {
        self.info
    }

    /// The size along each axis.
    pub fn size(&self) -> &[usize] {
        &self.grid.n[..self.info.dims()]
    }

    /// Number of unknowns, exactly.
    pub fn rows(&self) -> u64 {
        (self.grid.len() * self.info.unknowns_per_node) as u64 - self.info.holes
    }

    /// Number of entries: exact, but for `fem2d`, `thermal` and `circuit`, where it is an upper bound.
    /// Costs nothing; to ask whether the matrix fits before it is made.
    pub fn nnz_estimate(&self) -> u64 {
        (self.info.nnz)(&self.grid)
    }

    /// The matrix; made in parallel, the same bits on any number of threads. An error if there is no memory for it.
    pub fn generate(&self) -> Result<Csr<f64>, GalleryError> {
        let bytes = self.nnz_estimate().saturating_mul(12).saturating_add(8 * self.rows());
        if !usize::try_from(bytes).is_ok_and(large_pages::has_room::<u8>) {
            return Err(MatrixError::OutOfMemory { bytes }.into());
        }
        Ok((self.info.generate)(&self.grid)?)
    }
}

impl PartialEq for Problem {
    /// The same matrix: sizes may have been given in different words.
    fn eq(&self, other: &Problem) -> bool {
        self.info.name == other.info.name && self.grid == other.grid
    }
}

impl Eq for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        if self.given > 0 {
            write!(f, ":{}", join(&self.grid.n[..self.given]))?;
        }
        Ok(())
    }
}

impl FromStr for Problem {
    type Err = GalleryError;

    /// `name`, `name:N`, or `name:NXxNY` and `name:NXxNYxNZ`.
    fn from_str(text: &str) -> Result<Problem, GalleryError> {
        let Some((name, size)) = text.split_once(':') else { return Problem::new(text, &[]) };
        let info = find(name)?;
        let mut dims = Vec::new();
        for number in size.split('x') {
            // `parse` would take a sign.
            if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad_size(info, size.to_string()));
            }
            let too_large = |_| GalleryError::TooLarge { problem: info.name, size: size.to_string() };
            dims.push(number.parse().map_err(too_large)?);
        }
        Problem::new(name, &dims)
    }
}

fn find(name: &str) -> Result<&'static ProblemInfo, GalleryError> {
    problems().iter().find(|info| info.name == name).ok_or_else(|| GalleryError::UnknownName {
        name: name.to_string(),
        known: problems().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

fn bad_size(info: &'static ProblemInfo, size: String) -> GalleryError {
    let form = ["N", "NXxNY", "NXxNYxNZ"][info.dims() - 1];
    let expected =
        format!("give {}:N or {}:{form}, numbers of at least {}", info.name, info.name, info.least_size);
    GalleryError::BadSize { problem: info.name, size, expected }
}

fn join(dims: &[usize]) -> String {
    dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        for text in
            ["poisson3d", "poisson3d:7", "poisson3d:7x7x7", "poisson2d:30x40", "apache:300x20x10", "ecology"]
        {
            assert_eq!(text.parse::<Problem>().unwrap().to_string(), text);
        }
        assert_eq!("hpcg:4".parse::<Problem>(), "hpcg:4x4x4".parse());
        assert_ne!("hpcg:4".parse::<Problem>(), "poisson3d:4".parse());
    }

    #[test]
    fn hostile_texts_are_errors() {
        let error = |text: &str| text.parse::<Problem>().unwrap_err();
        for text in ["", ":", "::", ":3", "poisson", "Poisson2d", "poisson2d ", "\u{0}", "é:1"] {
            assert!(matches!(error(text), GalleryError::UnknownName { .. }), "{text}");
        }
        for text in
            ["poisson2d:", "poisson2d:3x", "poisson2d:x3", "poisson2d:+3", "poisson2d:-3", "poisson2d:3.5"]
        {
            assert!(matches!(error(text), GalleryError::BadSize { .. }), "{text}");
        }
        for text in ["poisson3d:0", "poisson3d:1x0x1", "elasticity2d:1", "poisson2d:3:3", "poisson2d:٣"] {
            assert!(matches!(error(text), GalleryError::BadSize { .. }), "{text}");
        }
        for text in ["poisson2d:1x1x1", "poisson3d:1x1", "hpcg:1x1x1x1"] {
            assert!(matches!(error(text), GalleryError::WrongDimensions { .. }), "{text}");
        }
        let huge = ["poisson3d:99999999999999999999", "poisson3d:18446744073709551615", "poisson3d:1626"];
        for text in huge.into_iter().chain(["poisson2d:65536", "elasticity3d:1128", "hpcg:4294967296x1x1"]) {
            assert!(matches!(error(text), GalleryError::TooLarge { .. }), "{text}");
        }
    }

    #[test]
    fn the_largest_sizes_are_counted_without_overflow() {
        for info in problems() {
            let mut n = 1usize;
            while Problem::new(info.name, &[n * 2]).is_ok() || n == 1 {
                n *= 2;
            }
            let problem = Problem::new(info.name, &[n]).unwrap();
            assert!(problem.nnz_estimate() >= problem.rows(), "{problem}");
        }
        assert_eq!(
            "poisson3d:1625".parse::<Problem>().unwrap().nnz_estimate(),
            7 * 1625u64.pow(3) - 6 * 1625 * 1625
        );
        assert_eq!("poisson2d:4294967295x1".parse::<Problem>().unwrap().rows(), 4294967295);
    }

    #[test]
    fn messages_say_what_to_do() {
        let message = |text: &str| text.parse::<Problem>().unwrap_err().to_string();
        assert!(message("poison").contains("poisson2d, poisson3d, hpcg"));
        assert!(message("apache:3x").contains("apache:N or apache:NXxNYxNZ"));
    }
}
