//! The figures of the paper: M. Naumov, *Incomplete-LU and Cholesky Preconditioned Iterative Methods Using cuSPARSE and cuBLAS*, NVIDIA 2011,
//! Tables 1 to 5. Its GPU was a C2050, its processor an i7-950 with MKL 10.2.3.

/// The preconditioners of Tables 2 to 5, as Krylith names them.
pub const PRECONDITIONERS: [&str; 4] = ["ilu0", "ilut(5,0.001)", "ilut(10,0.00001)", "ilut(20,0.0000001)"];

/// P and TOL of `ilut(P,TOL)`.
pub fn ilut(preconditioner: &str) -> Option<(usize, f64)> {
    let (p, tau) = preconditioner.strip_prefix("ilut(")?.strip_suffix(')')?.split_once(',')?;
    Some((p.parse().ok()?, tau.parse().ok()?))
}

/// One of the twelve matrices.
pub struct PaperMatrix {
    /// As the collection calls it.
    pub name: &'static str,
    /// The gallery's stand-in at the size of the matrix, not of its difficulty, if there is one.
    pub stand_in: Option<&'static str>,
    /// Solved by conjugate gradients; the others by BiCGStab.
    pub definite: bool,
    /// Iterations on the GPU, for each preconditioner. BiCGStab has halves; 2000 is the paper's limit, at which `thermomech_dK` has not converged.
    pub iterations: [f64; 4],
    /// Seconds of factorization, copy, solve on the processor and solve on the GPU, for each preconditioner. The analysis is part of the
    /// solve on the GPU.
    pub seconds: [[f64; 4]; 4],
}

macro_rules! matrix {
    ($name:literal, $stand_in:expr, $definite:literal, $iterations:expr, $($seconds:expr),*) => {
        PaperMatrix { name: $name, stand_in: $stand_in, definite: $definite, iterations: $iterations, seconds: [$($seconds),*] }
    };
}

/// In the order of the paper.
#[rustfmt::skip]
pub const MATRICES: [PaperMatrix; 12] = [
    matrix!("offshore", Some("offshore"), true, [25.0, 32.0, 34.0, 1292.0],
        [0.38, 0.02, 0.72, 1.52], [0.14, 0.01, 1.17, 1.82], [0.15, 0.01, 1.06, 1.96], [0.82, 0.02, 47.6, 159.0]),
    matrix!("af_shell3", Some("shell"), true, [571.0, 748.0, 748.0, 193.0],
        [1.62, 0.04, 38.5, 33.9], [0.51, 0.03, 49.1, 33.6], [0.52, 0.03, 60.0, 38.7], [9.21, 0.11, 32.1, 84.6]),
    matrix!("parabolic_fem", Some("parabolic"), true, [1044.0, 216.0, 147.0, 90.0],
        [0.13, 0.01, 39.2, 6.91], [1.47, 0.02, 11.7, 6.93], [3.89, 0.03, 9.02, 5.42], [10.04, 0.04, 6.26, 4.75]),
    matrix!("apache2", Some("apache"), true, [713.0, 1495.0, 454.0, 148.0],
        [0.12, 0.01, 35.0, 12.8], [0.17, 0.01, 67.9, 26.5], [1.09, 0.03, 34.5, 38.2], [8.12, 0.10, 15.7, 22.5]),
    matrix!("ecology2", Some("ecology"), true, [1746.0, 653.0, 272.0, 158.0],
        [0.09, 0.01, 107.0, 55.3], [0.55, 0.04, 59.5, 71.6], [3.25, 0.06, 26.3, 55.2], [8.60, 0.10, 21.2, 53.6]),
    matrix!("thermal2", Some("thermal"), true, [1656.0, 401.0, 263.0, 162.0],
        [0.40, 0.02, 155.0, 54.4], [3.59, 0.05, 47.0, 90.1], [11.0, 0.07, 44.7, 84.0], [35.2, 0.11, 29.2, 80.5]),
    matrix!("G3_circuit", Some("circuit"), true, [183.0, 153.0, 43.0, 14.0],
        [0.16, 0.02, 20.2, 8.61], [1.24, 0.05, 23.1, 24.8], [5.95, 0.09, 8.84, 17.0], [23.1, 0.14, 3.79, 12.1]),
    matrix!("FEM_3D_thermal2", None, false, [4.0, 2.0, 1.5, 1.5],
        [0.32, 0.02, 0.13, 0.52], [0.82, 0.03, 0.12, 1.12], [2.94, 0.04, 0.09, 1.75], [5.23, 0.05, 0.14, 2.37]),
    matrix!("thermomech_dK", Some("thermomech"), false, [2000.0, 2000.0, 2000.0, 2000.0],
        [0.20, 0.01, 72.7, 40.0], [0.10, 0.01, 54.3, 24.5], [0.11, 0.01, 53.2, 24.4], [0.12, 0.01, 55.1, 24.4]),
    matrix!("ASIC_320ks", None, false, [6.0, 4.0, 4.0, 3.5],
        [0.11, 0.01, 0.27, 0.12], [0.12, 0.01, 0.16, 0.08], [0.12, 0.01, 0.16, 0.08], [0.14, 0.01, 0.14, 0.07]),
    matrix!("cage13", Some("cage"), false, [2.5, 2.5, 2.5, 2.0],
        [0.70, 0.03, 0.28, 0.15], [4.99, 0.07, 0.36, 0.37], [2.89, 0.09, 0.44, 0.48], [218.0, 0.12, 0.43, 0.66]),
    matrix!("atmosmodd", Some("atmosmod"), false, [74.5, 270.5, 270.5, 31.0],
        [0.25, 0.04, 12.5, 4.30], [0.32, 0.03, 39.2, 10.6], [0.36, 0.03, 36.6, 10.6], [15.0, 0.21, 12.2, 4.95]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::PrecondSpec;

    /// The speedups that the paper prints for its Table 2: a check of what was copied from it.
    #[test]
    fn the_figures_give_the_speedups_of_table_2() {
        let printed = [0.57, 1.13, 5.59, 2.72, 1.92, 2.83, 2.32, 0.53, 1.80, 1.59, 1.10, 2.79];
        for (matrix, speedup) in MATRICES.iter().zip(printed) {
            let [factor, copy, cpu, gpu] = matrix.seconds[0];
            let own = (factor + cpu) / (factor + copy + gpu);
            assert!((own - speedup).abs() < 0.03 * speedup, "{}: {own} for {speedup}", matrix.name);
        }
    }

    #[test]
    fn preconditioners_are_known() {
        assert!(PRECONDITIONERS.iter().all(|name| name.parse::<PrecondSpec>().is_ok()));
        assert_eq!(PRECONDITIONERS.map(ilut), [None, Some((5, 1e-3)), Some((10, 1e-5)), Some((20, 1e-7))]);
    }
}
