//! What iterations depend on, for members of the registry.

use super::{Facts, Mesh};
use crate::scalar::LARGEST_F32;

impl Facts {
    /// N of the model problem: the steps from one end of the mesh to the other, or of a cube of as many points if that is longer. Fewer where
    /// sums of rows are no small part of the diagonal, as those of mass matrices: they need few iterations on any mesh.
    pub(crate) fn across(&self) -> f64 {
        let across = self.mesh.as_ref().map_or(1.0, |mesh| mesh.across.max(1) as f64);
        across.max((self.rows as f64).cbrt()).min(10.0 / self.share_of_sums).max(1.0)
    }

    /// Wavefronts of a sweep, 0 where they were not counted.
    pub(crate) fn wavefronts(&self, level: usize) -> f64 {
        self.mesh.as_ref().map_or(0.0, |mesh| mesh.wavefronts_with_fill(level))
    }

    /// Whether points have more than one unknown, as those of elasticity and flow do.
    pub(crate) fn has_many_unknowns(&self) -> bool {
        self.mesh.as_ref().is_some_and(|mesh| mesh.unknowns() > 1)
    }

    /// Whether modified factors are for this matrix: the signs of an M-matrix, or nearly so, one unknown per point, a mesh in space.
    pub(crate) fn is_diffusion(&self) -> bool {
        let in_space = |mesh: &Mesh| mesh.unknowns() == 1 && mesh.is_in_space(self.rows);
        self.is_nearly_m_matrix() && self.mesh.as_ref().is_some_and(in_space)
    }

    /// ω = 1 − c / N², with c = 20 for symmetric matrices, two digits of the difference. Of 0, 2, 5, 10, 20, 40, 80 and 160 in the place of 20, 20 took at most 10 % more iterations than
    /// the best on ten problems of N from 50 to 1000.
    /// For flow, 80 and 160 took the fewest iterations or one more on `convection3d` of N = 50 and 100 and `atmosmod` of N = 60.
    pub(crate) fn relaxation(&self) -> f64 {
        let c = if self.nearly_symmetric { 20.0 } else { 100.0 };
        let difference = (c / self.across().powi(2)).min(0.1);
        let unit = 10f64.powf(difference.log10().floor() - 1.0);
        1.0 - (difference / unit).round() * unit
    }

    /// By how much fewer iterations a level of fill takes on an anisotropic mesh, where what IC(0) drops counts for more.
    pub(crate) fn gain_of_fill(&self) -> f64 {
        1.0 + self.mesh.as_ref().map_or(0.0, |mesh| mesh.spread.log10().clamp(0.0, 4.0)) / 2.0
    }

    /// By how many more iterations factors take on a mesh in space where coefficients jump from point to point, `more` being what a step of e costs. Read off `jump3d` of 50
    /// and 80 points, where neighbours differ by e^1.6; `apache`, with e^0.7, takes hardly more.
    pub(crate) fn times_for_jumps(&self, more: f64) -> f64 {
        let roughness = self.mesh.as_ref().filter(|_| self.is_diffusion()).map_or(0.0, |mesh| mesh.roughness);
        1.0 + more * (roughness - 0.5).clamp(0.0, 2.0)
    }

    pub(crate) fn fits_f32(&self) -> bool {
        let [least, largest] = self.magnitudes;
        least > 1.0 / LARGEST_F32 && largest < LARGEST_F32
    }
}
