//! Wavefront after wavefront, a barrier in between.
//!
//! Successive wavefronts too small to divide are left to one member, without barriers between them.
//! Reference: Anderson & Saad 1989, doi:10.1142/S0129053389000056.

use super::plan::{Rows, cost};
use super::wavefront::level_of_rows;
use crate::matrix::Pattern;
use crate::parallel::share;
use crate::team::Member;

/// Rows a member below which a wavefront is not worth dividing.
const ROWS_A_MEMBER: usize = 16;

#[derive(Debug)]
pub(super) struct Levels {
    /// Rows by wavefront, within one in the order of the triangle.
    order: Vec<u32>,
    /// Pieces of `order` between barriers.
    steps: Vec<Step>,
    levels: usize,
    time: f64,
}

/// A piece of the order; divided among the members, or one member's alone.
#[derive(Debug, Clone, Copy)]
struct Step {
    end: usize,
    divided: bool,
}

impl Levels {
    pub(super) fn new(pattern: &Pattern, rows: Rows, threads: usize) -> Self {
        let (level, sizes) = level_of_rows(pattern, rows.triangle);
        let mut next: Vec<usize> = sizes
            .iter()
            .scan(0, |start, &size| {
                let first = *start;
                *start += size;
                Some(first)
            })
            .collect();
        let mut order = vec![0u32; rows.n];
        for position in 0..rows.n {
            let i = rows.at(position);
            let place = &mut next[level[i] as usize];
            order[*place] = i as u32;
            *place += 1;
        }
        let mut steps: Vec<Step> = Vec::new();
        let mut end = 0;
        for &size in &sizes {
            end += size;
            let divided = size >= threads * ROWS_A_MEMBER;
            match steps.last_mut() {
                Some(step) if !divided && !step.divided => step.end = end,
                _ => steps.push(Step { end, divided }),
            }
        }
        let mut levels = Levels { order, steps, levels: sizes.len(), time: 0.0 };
        levels.time = levels.predict(pattern, rows, threads);
        levels
    }

    fn predict(&self, pattern: &Pattern, rows: Rows, threads: usize) -> f64 {
        let (mut time, mut start) = (0.0, 0);
        for step in &self.steps {
            let piece = &self.order[start..step.end];
            let entries: usize = piece.iter().map(|&i| rows.needs(pattern, i as usize).len()).sum();
            let work = entries as f64 * cost::ENTRY + piece.len() as f64 * cost::ROW_OUT_OF_ORDER;
            time += if step.divided { work / threads as f64 } else { work } + cost::BARRIER * threads as f64;
            start = step.end;
        }
        time
    }

    /// Predicted nanoseconds.
    pub(super) fn time(&self) -> f64 {
        self.time
    }

    pub(super) fn describe(&self) -> String {
        format!("{} levels in {} steps", self.levels, self.steps.len())
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.order.as_slice()) + size_of_val(self.steps.as_slice())
    }

    #[inline]
    pub(super) fn for_each_ready(&self, _: Rows, member: &Member<'_>, mut row: impl FnMut(usize)) {
        let mut start = 0;
        for (k, step) in self.steps.iter().enumerate() {
            if k > 0 {
                member.barrier();
            }
            let piece = &self.order[start..step.end];
            start = step.end;
            let own = match (step.divided, member.rank()) {
                (true, rank) => &piece[share(piece.len(), rank, member.size())],
                (false, 0) => piece,
                (false, _) => &[],
            };
            own.iter().for_each(|&i| row(i as usize));
        }
    }
}
