//! Where a point of a grid stands in memory: eight lines side by side, each a little behind the one before.
//!
//! A sweep along a line is a chain: every point waits for the one before. So eight neighbouring lines are computed together, one
//! a lane of a vector register, and line m lags σ m points behind: when its turn comes, what it needs of line m − 1 is there. In
//! memory the eight stand as they are computed: *step* s holds point s − σ m of line m for m = 0..8. Everything that a step needs
//! or writes is then one load or one store of eight numbers, and a sweep reads memory from one end to the other.
//!
//!   point (x, y, z)  ↦  step  first + z · sheet + ⌊y / 8⌋ · pitch + x + σ (y mod 8),  lane  y mod 8
//!
//! The lag σ is at least the weight of y in the level of a point (see `mapping`), and a little more, so that lanes are not read
//! from another step than they were stored in before the store has left the processor's queue.
//!
//! In three dimensions the groups of eight lines of a plane follow each other without a gap: while line 7 of a group ends, line 0 of
//! the next begins. This needs lines of at least 8 σ points; shorter ones are padded. Planes are the units that threads share. In two
//! dimensions the units are the groups, so they stand apart.
//!
//! The neighbour (dx, dy, dz) of the eight points of a step stands at one distance in steps, dz · sheet + dx + σ dy, with the lanes
//! moved by dy; lanes that leave the group that way are in the next group, at one other distance ([`NeighbourShift`]). Places between
//! lines, groups and planes that belong to no point hold zeros, in vectors and in matrices: no branch asks for the boundary.

use super::grid::Grid;
use super::mapping::Mapping;
use super::stencil::{Offset, Stencil};
use crate::memory::large_pages;
use crate::simd::LANES;
use std::ops::Range;

/// What the lag between lines exceeds its least by, unless lines are short or the work of a step is long.
const SLACK: usize = 2;

/// Steps that a unit is cut into with one unknown per point; with blocks, whose steps are as much longer work, fewer.
const STEPS_A_PIECE: usize = 64;
const LEAST_STEPS_A_PIECE: usize = 4;

/// The places of a grid's points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    pub(super) grid: Grid,
    /// σ.
    pub(super) lag: usize,
    /// Steps from a group of lines to the next.
    pub(super) pitch: usize,
    /// Steps from a plane to the next.
    pub(super) sheet: usize,
    /// The step of the first point.
    pub(super) first: usize,
    /// All steps.
    pub(super) steps: usize,
    /// Groups of a plane.
    groups: usize,
    /// Twice how far offsets reach within a plane, in steps.
    gap: usize,
    /// Which lanes of a step are points.
    pub(super) real: Vec<u8>,
    /// Where units are cut into pieces, relative to their start, from 0 to their end.
    pub(super) cuts: Vec<usize>,
}

/// A run of steps of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Counted through all units.
    pub(super) number: usize,
    /// The plane.
    pub(super) z: usize,
    pub(super) steps: Range<usize>,
    /// Whether lines before the group and after it belong to the plane, as far as these steps need them.
    pub(super) before: bool,
    pub(super) after: bool,
}

/// Where the neighbours at one offset are, seen from any step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeighbourShift {
    /// Which offset of its side this is.
    pub(super) index: usize,
    /// Distance in steps, and lanes to add.
    pub(super) steps: isize,
    pub(super) lanes: isize,
    /// Our lanes whose neighbour is there.
    pub(super) own: u8,
    /// The same for the lanes whose neighbour is in the next group.
    pub(super) other_steps: isize,
    pub(super) other_lanes: isize,
    pub(super) other: u8,
}

/// Why a grid and its stencil cannot be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrangementError {
    /// An offset of eight lines, or as many planes, or more.
    #[error("offsets reach {reach} lines or planes; at most 7 can be laid out")]
    TooFar {
        /// How far.
        reach: usize,
    },
    /// The places of points and padding cannot be counted, or there is no memory for a byte each.
    #[error("the grid is too large to be laid out")]
    TooLarge,
}

impl Arrangement {
    /// Places for a grid whose points, of `dof` unknowns each, are joined by these stencils.
    pub(super) fn new(grid: Grid, stencils: &[&Stencil], dof: usize) -> Result<Self, ArrangementError> {
        let [nx, ny, nz] = grid.extents();
        let most = |f: &dyn Fn(&Stencil) -> usize| stencils.iter().map(|s| f(s)).max().unwrap_or(0);
        let (reach, planes) = (most(&|s| s.reach()[1]), most(&|s| s.reach()[2]));
        if reach.max(planes) >= LANES {
            return Err(ArrangementError::TooFar { reach: reach.max(planes) });
        }
        let least = most(&|s| Mapping::new(s).y);
        let lag = least + (nx / LANES).saturating_sub(least).min(SLACK / dof.max(1));
        let gap = 2 * (most(&|s| s.reach()[0]) + lag * reach);
        let groups = ny.div_ceil(LANES);
        let fringe = (LANES - 1) * lag;
        let pitch = if nz > 1 { nx.max(LANES * lag) } else { nx + fringe + gap };
        // Planes a multiple of a memory page apart would fall on the same places of the cache.
        let mut sheet = groups.checked_mul(pitch).ok_or(ArrangementError::TooLarge)? + fringe + gap;
        while sheet.is_multiple_of(8) || !(8..=56).contains(&(sheet % 64)) {
            sheet += 1;
        }
        let first = pitch + gap;
        let steps = nz.checked_mul(sheet).map(|steps| steps + 2 * first).ok_or(ArrangementError::TooLarge)?;
        // The most bytes that a step can take: 343 offsets of 8 x 8 entries, eight lanes each.
        steps.checked_mul(1 << 21).ok_or(ArrangementError::TooLarge)?;
        let mut arrangement = Arrangement {
            grid,
            lag,
            pitch,
            sheet,
            first,
            steps,
            groups,
            gap,
            real: large_pages::try_zeros(steps).ok_or(ArrangementError::TooLarge)?,
            cuts: Vec::new(),
        };
        arrangement.cuts =
            arrangement.find_cuts((STEPS_A_PIECE / dof.saturating_mul(dof).max(1)).max(LEAST_STEPS_A_PIECE));
        for z in 0..nz {
            for y in 0..ny {
                let (step, lane) = arrangement.place([0, y, z]);
                arrangement.real[step..step + nx].iter_mut().for_each(|lanes| *lanes |= 1 << lane);
            }
        }
        Ok(arrangement)
    }

    /// Whether a stencil's neighbours are found in this arrangement, and in time.
    pub(super) fn fits(&self, stencil: &Stencil) -> bool {
        let [x, y, z] = stencil.reach();
        self.lag >= Mapping::new(stencil).y && 2 * (x + self.lag * y) <= self.gap && z < LANES
    }

    /// The step and the lane of a point.
    #[inline]
    pub(super) fn place(&self, [x, y, z]: [usize; 3]) -> (usize, usize) {
        let lane = y % LANES;
        (self.first + z * self.sheet + y / LANES * self.pitch + x + self.lag * lane, lane)
    }

    /// The point of a step and a lane, if there is one.
    pub(super) fn point(&self, step: usize, lane: usize) -> Option<[usize; 3]> {
        let [nx, ny, nz] = self.grid.extents();
        let within = step.checked_sub(self.first)?;
        let (z, within) = (within / self.sheet, within % self.sheet);
        let along = within.checked_sub(self.lag * lane)?;
        let (x, y) = (along % self.pitch, along / self.pitch * LANES + lane);
        (x < nx && y < ny && z < nz).then_some([x, y, z])
    }

    /// Numbers of a vector with `dof` unknowns per point.
    pub(super) fn positions(&self, dof: usize) -> usize {
        self.steps * dof * LANES
    }

    /// Places that are computed for each point.
    pub(super) fn padding(&self) -> f64 {
        (self.units() * self.unit_steps() * LANES) as f64 / self.grid.points() as f64
    }

    /// What threads share: planes, or in two dimensions groups of lines.
    pub(super) fn units(&self) -> usize {
        if self.is_flat() { self.groups } else { self.grid.extents()[2] }
    }

    fn is_flat(&self) -> bool {
        self.grid.extents()[2] == 1
    }

    /// Steps of a unit that have points.
    pub(super) fn unit_steps(&self) -> usize {
        let fringe = (LANES - 1) * self.lag;
        if self.is_flat() { self.grid.extents()[0] + fringe } else { self.groups * self.pitch + fringe }
    }

    /// The first step of a unit.
    pub(super) fn unit_start(&self, unit: usize) -> usize {
        self.first + unit * if self.is_flat() { self.pitch } else { self.sheet }
    }

    /// From this step of a plane on, lanes have no group after theirs.
    fn last_cut(&self) -> usize {
        match self.is_flat() {
            true => usize::MAX,
            false => (self.groups - 1) * self.pitch + (2 * LANES - 1) * self.lag + self.gap / 2,
        }
    }

    /// Where units are cut: at multiples of a number of steps, where the second group begins and where the groups end.
    fn find_cuts(&self, steps: usize) -> Vec<usize> {
        let end = self.unit_steps();
        let special = [self.pitch, self.last_cut(), end].into_iter().filter(|&cut| cut <= end);
        let mut cuts: Vec<usize> = (0..end).step_by(steps).chain(special).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// All pieces.
    pub(super) fn pieces(&self) -> usize {
        self.units() * self.pieces_a_unit()
    }

    /// Pieces of a unit.
    pub(super) fn pieces_a_unit(&self) -> usize {
        self.cuts.len() - 1
    }

    /// Piece `k` of a unit.
    pub(super) fn piece(&self, unit: usize, k: usize) -> Piece {
        let (start, from) = (self.unit_start(unit), self.cuts[k]);
        Piece {
            number: unit * self.pieces_a_unit() + k,
            z: if self.is_flat() { 0 } else { unit },
            steps: start + from..start + self.cuts[k + 1],
            before: self.is_flat() || from >= self.pitch,
            after: from < self.last_cut(),
        }
    }

    /// The pieces of a unit.
    pub(super) fn pieces_of(&self, unit: usize) -> impl Iterator<Item = Piece> {
        (0..self.pieces_a_unit()).map(move |k| self.piece(unit, k))
    }

    /// How many steps the unit before must be ahead of a step for the lower neighbours of that step to be there.
    pub(super) fn ahead(&self, lower: &[Offset]) -> usize {
        let need = |o: &Offset| {
            let along = o[0] as isize + self.lag as isize * o[1] as isize;
            if self.is_flat() {
                // Lanes that leave the group to the one before it.
                (o[1] < 0).then_some(along + (LANES * self.lag) as isize)
            } else {
                let next = if o[1] > 0 { (self.pitch - LANES * self.lag) as isize } else { 0 };
                (o[2] < 0).then_some(along + next)
            }
        };
        lower.iter().filter_map(need).map(|steps| steps + 1).max().map_or(0, |steps| steps.max(0) as usize)
    }

    /// Where the neighbours at these offsets are, with so many planes below and above; those in other planes are left out.
    fn reaches(
        &self,
        offsets: &[Offset],
        planes: [usize; 2],
        before: bool,
        after: bool,
    ) -> Vec<NeighbourShift> {
        let there = |o: &Offset| (-(planes[0] as i32)..=planes[1] as i32).contains(&o[2]);
        let reach = |(index, o): (usize, &Offset)| {
            let lanes = o[1] as isize;
            let steps = o[2] as isize * self.sheet as isize + o[0] as isize + self.lag as isize * lanes;
            let to_next = (self.pitch - LANES * self.lag) as isize;
            let (own, turn, has) = match lanes {
                0 => (u8::MAX, 0, false),
                1.. => (u8::MAX >> lanes, 1, after),
                _ => (u8::MAX << -lanes, -1, before),
            };
            NeighbourShift {
                index,
                steps,
                lanes,
                own,
                other_steps: steps + turn * to_next,
                other_lanes: lanes - turn * LANES as isize,
                other: if has { !own } else { 0 },
            }
        };
        offsets.iter().enumerate().filter(|(_, o)| there(o)).map(reach).collect()
    }

    /// The lines y of each group of a unit, and their plane z.
    pub(super) fn lines_of(&self, unit: usize) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        let ny = self.grid.extents()[1];
        let (groups, z) = if self.is_flat() { (unit..unit + 1, 0) } else { (0..self.groups, unit) };
        groups.map(move |group| (group * LANES..ny.min((group + 1) * LANES), z))
    }

    /// Calls a function with steps, and lanes of them, whose points among these lines of a group have a neighbour at an offset.
    pub(super) fn steps_with(
        &self,
        [dx, dy, dz]: Offset,
        lines: Range<usize>,
        z: usize,
        mut f: impl FnMut(Range<usize>, u8),
    ) {
        let [nx, ny, nz] = self.grid.extents();
        let away = dx.unsigned_abs() as usize;
        let is_within =
            |at: usize, d: i32, n: usize| at.checked_add_signed(d as isize).is_some_and(|at| at < n);
        if away >= nx || !is_within(z, dz, nz) {
            return;
        }
        let begin = if dx < 0 { away } else { 0 };
        let has = |y: &usize| is_within(*y, dy, ny);
        let steps = |y: usize| {
            let (first, lane) = self.place([begin, y, z]);
            (first..first + nx - away, lane)
        };
        // Lines lag behind each other: the steps that all of them have, and what each has besides.
        let all = lines.clone().filter(has).map(|y| steps(y).0);
        let Some(common) = all.reduce(|a, b| a.start.max(b.start)..a.end.min(b.end)) else { return };
        let common = common.start..common.end.max(common.start);
        let lanes = lines.clone().filter(has).fold(0, |lanes, y| lanes | 1 << (y % LANES));
        f(common.clone(), lanes);
        for (own, lane) in lines.filter(has).map(steps) {
            f(own.start..own.end.min(common.start), 1 << lane);
            f(own.start.max(common.end)..own.end, 1 << lane);
        }
    }

    /// Calls a function for every point of a unit with its step and lane, eight lines at a time.
    #[inline]
    pub(super) fn for_points(&self, unit: usize, mut f: impl FnMut([usize; 3], usize, usize)) {
        let nx = self.grid.extents()[0];
        for (lines, z) in self.lines_of(unit) {
            for x in 0..nx {
                for y in lines.clone() {
                    let (step, lane) = self.place([x, y, z]);
                    f([x, y, z], step, lane);
                }
            }
        }
    }

    /// Steps between a unit and the next, or the end.
    pub(super) fn gap_after(&self, unit: usize) -> Range<usize> {
        let end = self.unit_start(unit) + self.unit_steps();
        let next = if unit + 1 == self.units() { self.steps } else { self.unit_start(unit + 1) };
        end..next
    }
}

/// The shifts of a list of offsets for every kind of piece.
#[derive(Debug, Clone)]
pub(super) struct NeighbourShifts {
    /// By distance to the lower and the upper end of the z axis, then by `before` and `after`.
    tables: Vec<Vec<NeighbourShift>>,
    nz: usize,
    reach: usize,
}

impl NeighbourShifts {
    pub(super) fn new(arrangement: &Arrangement, offsets: &[Offset]) -> Self {
        let nz = arrangement.grid.extents()[2];
        let reach = offsets.iter().map(|o| o[2].unsigned_abs() as usize).max().unwrap_or(0).min(nz);
        let mut tables = Vec::new();
        // A plane at each distance from either end; the combinations that no plane has are never asked for.
        for low in 0..=reach {
            for high in 0..=reach {
                for flags in 0..4 {
                    tables.push(arrangement.reaches(offsets, [low, high], flags & 1 != 0, flags & 2 != 0));
                }
            }
        }
        NeighbourShifts { tables, nz, reach }
    }

    /// Those for a piece.
    #[inline]
    pub(super) fn of(&self, piece: &Piece) -> &[NeighbourShift] {
        let (low, high) = (piece.z.min(self.reach), (self.nz - 1 - piece.z).min(self.reach));
        let flags = usize::from(piece.before) | usize::from(piece.after) << 1;
        &self.tables[(low * (self.reach + 1) + high) * 4 + flags]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrangements() -> Vec<(Arrangement, Stencil)> {
        let mut all = Vec::new();
        for (dof, n) in [[13, 11, 7], [100, 40, 3], [3, 20, 5], [9, 1, 6], [300, 17, 1], [5, 1, 1]]
            .into_iter()
            .enumerate()
        {
            for stencil in
                [Stencil::star(3, 1).unwrap(), Stencil::cube(3, 1).unwrap(), Stencil::diamond(3, 2).unwrap()]
            {
                all.push((Arrangement::new(Grid::new(&n).unwrap(), &[&stencil], dof + 1).unwrap(), stencil));
            }
        }
        all
    }

    #[test]
    fn every_point_has_a_place_of_its_own() {
        for (arrangement, _) in arrangements() {
            let mut places = 0;
            for number in 0..arrangement.grid.points() {
                let point = arrangement.grid.point(number);
                let (step, lane) = arrangement.place(point);
                assert_eq!(arrangement.point(step, lane), Some(point));
            }
            for step in 0..arrangement.steps {
                for lane in 0..LANES {
                    let real = arrangement.real[step] >> lane & 1 == 1;
                    assert_eq!(arrangement.point(step, lane).is_some(), real);
                    places += usize::from(real);
                }
            }
            assert_eq!(places, arrangement.grid.points());
        }
    }

    /// Pieces cover each unit once, in both directions; reaches lead to the neighbours, and a lower one is finished in time.
    #[test]
    fn reaches_lead_to_neighbours_that_are_finished() {
        for (arrangement, stencil) in arrangements() {
            let ahead = arrangement.ahead(stencil.lower());
            let reaches = NeighbourShifts::new(&arrangement, stencil.lower());
            for unit in 0..arrangement.units() {
                let pieces: Vec<Piece> = arrangement.pieces_of(unit).collect();
                assert!(pieces.windows(2).all(|p| p[0].steps.end == p[1].steps.start));
                let (start, len) = (arrangement.unit_start(unit), arrangement.unit_steps());
                assert_eq!((pieces[0].steps.start, pieces.last().unwrap().steps.end), (start, start + len));
                for piece in &pieces {
                    for (step, lane) in piece.steps.clone().flat_map(|s| (0..LANES).map(move |l| (s, l))) {
                        let Some(point) = arrangement.point(step, lane) else { continue };
                        for (index, &o) in stencil.lower().iter().enumerate() {
                            let Some(there) = arrangement.grid.at(point, o) else { continue };
                            let reach = reaches.of(piece).iter().find(|r| r.index == index).unwrap();
                            let (steps, lanes) = match (reach.own >> lane & 1, reach.other >> lane & 1) {
                                (1, _) => (reach.steps, reach.lanes),
                                (_, 1) => (reach.other_steps, reach.other_lanes),
                                _ => panic!("{point:?} {o:?}"),
                            };
                            let found = (step.wrapping_add_signed(steps), lane.wrapping_add_signed(lanes));
                            assert_eq!(found, arrangement.place(there), "{point:?} {o:?}");
                            let of_unit = (0..arrangement.units())
                                .rev()
                                .find(|&u| arrangement.unit_start(u) <= found.0)
                                .unwrap();
                            if of_unit == unit {
                                assert!(found.0 < step);
                            } else {
                                let relative = found.0 - arrangement.unit_start(of_unit);
                                assert!(of_unit < unit && relative < piece.steps.end - start - 1 + ahead);
                            }
                        }
                    }
                }
            }
        }
    }
}
