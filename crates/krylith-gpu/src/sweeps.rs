//! Triangles on a device, and sweeps through them by levels.
//!
//! The levels are those of [`Wavefronts`]. A level of many rows is a launch; successive levels of few rows are one launch of one group, which
//! waits between them, or of one item in the shape for processors. A sweep has the order of operations of krylith's threads by rows in every
//! shape, so its results have their bits where the device is reproducible.
#![allow(unsafe_code)]

use crate::device::{Argument, Buffer, Value, values};
use crate::driver::Shape;
use crate::program::{GROUP_SIZE, Kernel, KernelShape};
use crate::space::DeviceSpace;
use krylith::matrix::Triangle;
use krylith::schedule::Wavefronts;
use krylith::{BackendError, Csr, Pattern, SetupError};

/// A level of more rows is a launch of its own.
const SMALL_ON_GPU: usize = 1024;
const SMALL_ON_CPU: usize = 512;
/// The most levels of one launch: a kernel that runs for seconds is ended by the watchdog of a GPU with a display.
const MOST_LEVELS: usize = 4096;
/// Values of a launch: elimination of LU has 11 and the places of its levels.
const MOST_VALUES: usize = 14;
/// Rows that one item takes, in the shape for processors; as in the kernels.
const SPAN: usize = 256;

/// One launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Places of one level.
    Level { first: usize, count: usize },
    /// Levels that one group takes.
    Levels { from: usize, to: usize },
}

/// Levels as launches: those of at most `small` rows that follow each other are one, up to [`MOST_LEVELS`].
fn steps(sizes: &[usize], small: usize) -> Vec<Step> {
    let (mut steps, mut first) = (Vec::new(), 0);
    for (level, &count) in sizes.iter().enumerate() {
        match (count <= small, steps.last_mut()) {
            (true, Some(Step::Levels { from, to })) if *to - *from < MOST_LEVELS => *to = level + 1,
            (true, _) => steps.push(Step::Levels { from: level, to: level + 1 }),
            (false, _) => steps.push(Step::Level { first, count }),
        }
        first += count;
    }
    steps
}

/// The order in which rows of a triangle run.
pub(crate) struct Levels {
    pub(crate) order: Buffer<u32>,
    level_ptr: Buffer<u64>,
    steps: Vec<Step>,
    count: usize,
}

impl Levels {
    pub(crate) fn new(
        space: &DeviceSpace<f64>,
        pattern: &Pattern,
        triangle: Triangle,
    ) -> Result<Self, SetupError> {
        let fronts = Wavefronts::new(pattern, triangle)?;
        let small = match space.device().shape() {
            KernelShape::Cpu => SMALL_ON_CPU,
            KernelShape::Gpu => SMALL_ON_GPU,
        };
        let mut level_ptr = vec![0u64];
        for &size in fronts.sizes() {
            level_ptr.push(level_ptr[level_ptr.len() - 1] + size as u64);
        }
        let (mut next, mut order) = (level_ptr.clone(), vec![0u32; pattern.nrows()]);
        for (row, &level) in fronts.levels().iter().enumerate() {
            let place = &mut next[level as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        let queue = space.queue();
        Ok(Levels {
            order: queue.upload_new(&order)?,
            level_ptr: queue.upload_new(&level_ptr)?,
            steps: steps(fronts.sizes(), small),
            count: fronts.count(),
        })
    }

    /// In words, for the report.
    pub(crate) fn describe(&self) -> String {
        format!("{} levels in {} launches", self.count, self.steps.len())
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * self.order.len() + 8 * self.level_ptr.len()
    }

    /// Launches a kernel for every level, or its form for several levels.
    ///
    /// # Safety
    /// `values` are the parameters of both kernels up to the places or levels, and their buffers hold what they read and write.
    pub(crate) unsafe fn run(
        &self,
        space: &DeviceSpace<f64>,
        (one, several): (Kernel, Kernel),
        values: &[Value],
    ) -> Result<(), BackendError> {
        let shape = space.device().shape();
        let mut all = [0u32.value(); MOST_VALUES];
        let n = values.len();
        all[..n].copy_from_slice(values);
        for step in &self.steps {
            let (kernel, shape, own) = match *step {
                Step::Level { first, count } => {
                    all[n..n + 2].copy_from_slice(&values![first as u64, count as u64]);
                    let shape = match shape {
                        KernelShape::Cpu => Shape { groups: count.div_ceil(SPAN), items: 1 },
                        KernelShape::Gpu => Shape { groups: count.div_ceil(GROUP_SIZE), items: GROUP_SIZE },
                    };
                    (one, shape, 2)
                }
                Step::Levels { from, to } => {
                    all[n..n + 3].copy_from_slice(&values![&self.level_ptr, from as u32, to as u32]);
                    let items = if shape == KernelShape::Cpu { 1 } else { GROUP_SIZE };
                    (several, Shape { groups: 1, items }, 3)
                }
            };
            // SAFETY: by the caller's promise.
            unsafe { space.queue().launch(kernel, shape, &all[..n + own])? };
        }
        Ok(())
    }
}

/// A strict triangle on a device.
pub(crate) struct DeviceTriangle {
    pub(crate) levels: Levels,
    pub(crate) row_ptr: Buffer<u64>,
    pub(crate) col_idx: Buffer<u32>,
    pub(crate) values: Buffer<f64>,
}

impl DeviceTriangle {
    /// The pattern, with room for values.
    pub(crate) fn new(
        space: &DeviceSpace<f64>,
        pattern: &Pattern,
        triangle: Triangle,
    ) -> Result<Self, SetupError> {
        let row_ptr: Vec<u64> = pattern.row_ptr().iter().map(|&k| k as u64).collect();
        let queue = space.queue();
        Ok(DeviceTriangle {
            levels: Levels::new(space, pattern, triangle)?,
            row_ptr: queue.upload_new(&row_ptr)?,
            col_idx: queue.upload_new(pattern.col_idx())?,
            values: queue.allocate(pattern.nnz())?,
        })
    }

    pub(crate) fn set(&self, space: &DeviceSpace<f64>, values: &[f64]) -> Result<(), BackendError> {
        space.queue().upload(values, &self.values)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.levels.bytes() + 8 * self.row_ptr.len() + 12 * self.col_idx.len()
    }

    /// What every kernel of a triangle is given first.
    pub(crate) fn values(&self) -> [Value; 4] {
        values![&self.levels.order, &self.row_ptr, &self.col_idx, &self.values]
    }
}

/// M = (I + L) D (I + U) on a device.
pub(crate) struct DeviceTriangles {
    pub(crate) lower: DeviceTriangle,
    pub(crate) upper: DeviceTriangle,
    pub(crate) inverse: Buffer<f64>,
}

impl DeviceTriangles {
    /// The patterns of strict triangles, with room for values.
    pub(crate) fn new(
        space: &DeviceSpace<f64>,
        lower: &Pattern,
        upper: &Pattern,
    ) -> Result<Self, SetupError> {
        Ok(DeviceTriangles {
            lower: DeviceTriangle::new(space, lower, Triangle::Lower)?,
            upper: DeviceTriangle::new(space, upper, Triangle::Upper)?,
            inverse: space.queue().allocate(lower.nrows())?,
        })
    }

    /// Bytes of triangles with this many entries in all, but for the starts of levels.
    pub(crate) fn predict(rows: usize, entries: usize) -> u64 {
        12 * entries as u64 + 32 * rows as u64
    }

    /// Takes over values that were computed elsewhere.
    pub(crate) fn set(
        &self,
        space: &DeviceSpace<f64>,
        lower: &Csr<f64>,
        inverse: &[f64],
        upper: &Csr<f64>,
    ) -> Result<(), BackendError> {
        self.lower.set(space, lower.values())?;
        self.upper.set(space, upper.values())?;
        space.queue().upload(inverse, &self.inverse)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes() + 8 * self.inverse.len()
    }

    /// z = M⁻¹ x. Both have as many entries as M has rows.
    pub(crate) fn solve(
        &self,
        space: &DeviceSpace<f64>,
        x: &Buffer<f64>,
        z: &Buffer<f64>,
    ) -> Result<(), BackendError> {
        let (forward, backward) =
            ((Kernel::Forward, Kernel::ForwardLevels), (Kernel::Backward, Kernel::BackwardLevels));
        let [order, row_ptr, col_idx, values] = self.lower.values();
        let [x, z, inverse] = values![x, z, &self.inverse];
        // SAFETY: the kernels' parameters; columns are those of square patterns, whose size x, z and D have.
        unsafe { self.lower.levels.run(space, forward, &[order, row_ptr, col_idx, values, x, z])? };
        let [order, row_ptr, col_idx, values] = self.upper.values();
        // SAFETY: as above.
        unsafe { self.upper.levels.run(space, backward, &[order, row_ptr, col_idx, values, inverse, z]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_levels_that_follow_each_other_are_one_launch() {
        let level = |first, count| Step::Level { first, count };
        let levels = |from, to| Step::Levels { from, to };
        assert_eq!(steps(&[], 4), []);
        assert_eq!(
            steps(&[1, 4, 5, 6, 2, 9, 1], 4),
            [levels(0, 2), level(5, 5), level(10, 6), levels(4, 5), level(18, 9), levels(6, 7)]
        );
        let chain = vec![1; 2 * MOST_LEVELS + 1];
        let (first, second) = (MOST_LEVELS, 2 * MOST_LEVELS);
        assert_eq!(steps(&chain, 4), [levels(0, first), levels(first, second), levels(second, second + 1)]);
    }
}
