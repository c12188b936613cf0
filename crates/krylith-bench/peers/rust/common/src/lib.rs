//! What the drivers in Rust share: the matrix file, the call, the line of results (`../README.md` of this workspace's folder).

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A matrix by rows.
pub struct Csr {
    pub n: usize,
    pub row_ptr: Vec<usize>,
    pub col_idx: Vec<u32>,
    pub values: Vec<f64>,
    /// The right-hand side in the file; none where it is A·1.
    pub b: Option<Vec<f64>>,
}

/// What a driver is asked for.
pub struct Task {
    pub file: String,
    pub kernels: bool,
    pub config: String,
    pub method: String,
    pub preconditioner: String,
    pub rtol: f64,
    pub max_iterations: usize,
    pub threads: usize,
}

/// What a solve gave.
pub struct Solved {
    pub import: f64,
    pub setup: f64,
    pub solve: f64,
    pub iterations: usize,
    pub residual: f64,
    /// As [`Csr::rhs`] has it.
    pub rhs: &'static str,
    pub status: String,
}

impl Task {
    /// From the command line and `OMP_NUM_THREADS`.
    pub fn read() -> Result<Task, String> {
        let usage = "usage: FILE solve|kernels METHOD+PRECONDITIONER RTOL MAX_ITERATIONS";
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [file, mode, config, rtol, max_iterations] = arguments.as_slice() else { return Err(usage.into()) };
        let (method, preconditioner) = config.split_once('+').ok_or(usage)?;
        let threads = std::env::var("OMP_NUM_THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(1);
        Ok(Task {
            file: file.clone(),
            kernels: mode == "kernels",
            config: config.clone(),
            method: method.into(),
            preconditioner: preconditioner.into(),
            rtol: rtol.parse().map_err(|_| usage)?,
            max_iterations: max_iterations.parse().map_err(|_| usage)?,
            threads,
        })
    }

    fn head(&self, peer: &str, version: &str) -> Map<String, Value> {
        let base = self.file.rsplit('/').next().unwrap_or_default();
        let problem = base.split('.').next().unwrap_or_default();
        let head = json!({ "peer": peer, "version": version, "config": self.config, "problem": problem,
            "threads": self.threads });
        head.as_object().cloned().unwrap_or_default()
    }

    /// Prints the line of a solve.
    pub fn print_solved(&self, peer: &str, version: &str, solved: &Solved) {
        let mut line = self.head(peer, version);
        line.insert("status".into(), json!(solved.status));
        line.insert("rhs".into(), json!(solved.rhs));
        line.insert("import_seconds".into(), json!(solved.import));
        line.insert("setup_seconds".into(), json!(solved.setup));
        line.insert("solve_seconds".into(), json!(solved.solve));
        line.insert("iterations".into(), json!(solved.iterations));
        line.insert("relative_residual".into(), json!(solved.residual));
        println!("{}", Value::Object(line));
    }

    /// Prints the line of single operations.
    pub fn print_kernels(&self, peer: &str, version: &str, kernels: Value) {
        let mut line = self.head(peer, version);
        line.insert("status".into(), json!("measured"));
        line.insert("kernels".into(), kernels);
        println!("{}", Value::Object(line));
    }
}

impl Csr {
    /// Reads the matrix file.
    pub fn read(path: &str) -> Result<Csr, String> {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        let mut rest = bytes.as_slice();
        let head = take(&mut rest, 2, u64::from_le_bytes)?;
        let (n, nnz) = (head[0] as usize, head[1] as usize);
        let row_ptr = take(&mut rest, n + 1, |b| u64::from_le_bytes(b) as usize)?;
        let col_idx = take(&mut rest, nnz, u32::from_le_bytes)?;
        let values = take(&mut rest, nnz, f64::from_le_bytes)?;
        let b = if rest.is_empty() { None } else { Some(take(&mut rest, n, f64::from_le_bytes)?) };
        Ok(Csr { n, row_ptr, col_idx, values, b })
    }

    /// That of the file, or A·1.
    pub fn right_hand_side(&self) -> Vec<f64> {
        let sum = |i: usize| self.values[self.row_ptr[i]..self.row_ptr[i + 1]].iter().sum();
        self.b.clone().unwrap_or_else(|| (0..self.n).map(sum).collect())
    }

    /// Where b came from, for the line of results.
    pub fn rhs(&self) -> &'static str {
        if self.b.is_some() { "file" } else { "ones" }
    }

    /// ‖b − A x‖₂ / ‖b‖₂.
    pub fn relative_residual(&self, x: &[f64]) -> f64 {
        let (mut rr, mut bb) = (0.0, 0.0);
        for (i, b) in self.right_hand_side().into_iter().enumerate() {
            let mut ax = 0.0;
            for k in self.row_ptr[i]..self.row_ptr[i + 1] {
                ax += self.values[k] * x[self.col_idx[k] as usize];
            }
            rr += (b - ax) * (b - ax);
            bb += b * b;
        }
        (rr / bb).sqrt()
    }
}

fn take<T, const N: usize>(
    rest: &mut &[u8],
    count: usize,
    value: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, String> {
    let (own, other) = rest.split_at_checked(count * N).ok_or("the matrix file is too short")?;
    *rest = other;
    Ok(own.as_chunks::<N>().0.iter().map(|&bytes| value(bytes)).collect())
}

/// Seconds of a call, with its result.
pub fn timed<T>(call: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let result = call();
    (started.elapsed().as_secs_f64(), result)
}

/// The least seconds of a call: at least 20 calls and 0.3 s, but no more than 5 s once there are 3.
pub fn least_seconds(mut call: impl FnMut()) -> f64 {
    let (began, mut least, mut calls) = (Instant::now(), f64::INFINITY, 0);
    loop {
        least = least.min(timed(&mut call).0);
        calls += 1;
        let spent = began.elapsed();
        let enough = calls >= 20 && spent >= Duration::from_millis(300);
        if enough || calls >= 3 && spent > Duration::from_secs(5) {
            return least;
        }
    }
}
