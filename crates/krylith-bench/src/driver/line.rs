//! The line of JSON that a driver prints.

use crate::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The line a driver prints; `peers/README.md` says what each field means.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    pub peer: String,
    pub version: String,
    pub config: String,
    pub problem: String,
    pub threads: usize,
    /// `ones` for A·1, another word for a b that was handed over; empty from drivers that know A·1 only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rhs: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_residual: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kernels: BTreeMap<String, Option<f64>>,
}

impl Line {
    /// The last line of a driver's output that is an object.
    pub fn parse(output: &str) -> Result<Line, Failure> {
        let line = output.lines().rev().find(|line| line.starts_with('{')).ok_or("printed no result")?;
        serde_json::from_str(line)
            .map_err(|error| format!("printed a result that cannot be read: {error}").into())
    }

    /// Set-up and solve.
    pub fn total(&self) -> Option<f64> {
        Some(self.setup_seconds? + self.solve_seconds?)
    }

    /// Why this is not a solution to the tolerance, if it is not.
    pub fn shortfall(&self, rtol: f64) -> Option<String> {
        match self.relative_residual {
            _ if self.status != "converged" => Some(format!("ended as {}", self.status)),
            // The last digits of a residual depend on the order of its sums.
            Some(residual) if residual <= 1.01 * rtol => None,
            Some(residual) => Some(format!("says converged at a residual of {residual:.2e}")),
            None => Some("its residual is not a number".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_object_of_the_output_is_the_result() {
        let output = "a warning\n{\"peer\":\"petsc\",\"threads\":2,\"status\":\"converged\",\"setup_seconds\":0.5,\
                      \"solve_seconds\":1.5,\"relative_residual\":1.005e-7,\"kernels\":{\"dot\":null,\"spmv\":0.25}}\nbye";
        let line = Line::parse(output).unwrap();
        assert_eq!((line.peer.as_str(), line.threads, line.total()), ("petsc", 2, Some(2.0)));
        assert_eq!((line.kernels["dot"], line.kernels["spmv"]), (None, Some(0.25)));
        assert_eq!(line.shortfall(1e-7), None);
        assert!(Line::parse("nothing").unwrap_err().to_string().contains("no result"));
        assert!(Line::parse("{\"peer\":1}").unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn converged_is_checked_by_the_residual() {
        let mut line = Line { status: "converged".into(), relative_residual: Some(2e-7), ..Line::default() };
        assert!(line.shortfall(1e-7).unwrap().contains("2.00e-7"));
        line.relative_residual = None;
        assert!(line.shortfall(1e-7).unwrap().contains("not a number"));
        line.status = "max_iterations".into();
        assert!(line.shortfall(1e-7).unwrap().contains("max_iterations"));
    }
}
