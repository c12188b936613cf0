//! Contiguous blocks of rows that wait for each other.
//!
//! Rows are cut into blocks where a row does not need the one before it (the start of a grid line), once a block has a least
//! size; a block that finds no such place is cut at a largest size. A block needs the blocks that its rows need rows of. Blocks
//! are put into wavefronts; in each, the members take consecutive runs of blocks of about equal work. Each member then goes
//! through its list and announces every finished block; before a block it waits for those members whose announcement it
//! needs. A wait is left out when an earlier wait of this member implies it, directly or because the member waited for had
//! itself waited: the transitive reduction of Park, Smelyanskiy, Sundaram & Dubey 2014, doi:10.1007/978-3-319-07518-1_8,
//! on contiguous blocks instead of pieces of wavefronts, so that a block's entries are read in the order of memory.

use super::plan::{Rows, cost};
use crate::matrix::Pattern;
use crate::parallel;
use crate::team::{Member, Progress};
use std::ops::Range;

/// Least sizes of a block that are tried; the largest is four times as much.
const LEAST_ROWS: [usize; 3] = [48, 256, 1024];

#[derive(Debug)]
pub(super) struct Blocks {
    /// Each member's blocks, in its order.
    lists: Vec<Vec<Block>>,
    /// What blocks wait for, one block after the other in each list.
    waits: Vec<Vec<Wait>>,
    blocks: usize,
    time: f64,
}

/// A block of consecutive positions, and how many waits come before it.
#[derive(Debug, Clone, Copy)]
struct Block {
    start: u32,
    end: u32,
    waits: u32,
}

/// Until `member` has finished `count` blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wait {
    member: u32,
    count: u32,
}

impl Blocks {
    /// The block size with the smallest predicted time.
    pub(super) fn best(pattern: &Pattern, rows: Rows, threads: usize) -> Self {
        let candidates = LEAST_ROWS.iter().map(|&least| Self::new(pattern, rows, threads, least));
        candidates.min_by(|a, b| a.time.total_cmp(&b.time)).expect("there are candidates")
    }

    fn new(pattern: &Pattern, rows: Rows, threads: usize, least: usize) -> Self {
        let starts = cut(pattern, rows, least);
        let graph = Graph::new(pattern, rows, &starts);
        let (owner, order) = graph.assign(threads);
        Self::connect(&starts, &graph, &owner, &order, threads)
    }

    /// Lists, waits and the predicted time, from the owner of each block and the order in which blocks can run.
    pub(super) fn connect(
        starts: &[usize],
        graph: &Graph,
        owner: &[u32],
        order: &[u32],
        threads: usize,
    ) -> Self {
        let count = graph.work.len();
        let mut result = Blocks {
            lists: vec![Vec::new(); threads],
            waits: vec![Vec::new(); threads],
            blocks: count,
            time: 0.0,
        };
        // For each block: its number in its owner's list, and what its owner knows of the others when it is finished.
        let mut number = vec![0u32; count];
        let mut known = vec![0u32; count * threads];
        let mut finish = vec![0.0f64; count];
        let mut last: Vec<Option<usize>> = vec![None; threads];
        let mut knows = vec![0u32; threads];
        for &b in order {
            let (b, own) = (b as usize, owner[b as usize] as usize);
            knows.fill(0);
            let mut ready = 0.0f64;
            if let Some(previous) = last[own] {
                knows.copy_from_slice(&known[previous * threads..(previous + 1) * threads]);
                ready = finish[previous];
            }
            let mut waits = 0;
            // The latest first: it implies the most.
            for &d in graph.needs(b).iter().rev() {
                let (d, member) = (d as usize, owner[d as usize] as usize);
                if member == own {
                    continue;
                }
                ready = ready.max(finish[d]);
                let needed = number[d] + 1;
                if knows[member] < needed {
                    result.waits[own].push(Wait { member: member as u32, count: needed });
                    waits += 1;
                    for (k, &theirs) in knows.iter_mut().zip(&known[d * threads..(d + 1) * threads]) {
                        *k = (*k).max(theirs);
                    }
                }
            }
            number[b] = result.lists[own].len() as u32;
            knows[own] = number[b] + 1;
            known[b * threads..(b + 1) * threads].copy_from_slice(&knows);
            finish[b] = ready + graph.work[b] + cost::WAIT * f64::from(waits);
            result.time = result.time.max(finish[b]);
            result.lists[own].push(Block { start: starts[b] as u32, end: (starts[b + 1] - 1) as u32, waits });
            last[own] = Some(b);
        }
        result
    }

    /// Predicted nanoseconds.
    pub(super) fn time(&self) -> f64 {
        self.time
    }

    pub(super) fn describe(&self) -> String {
        let waits: usize = self.waits.iter().map(Vec::len).sum();
        format!("{} blocks and {waits} waits", self.blocks)
    }

    pub(super) fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|l| size_of_val(l.as_slice())).sum();
        lists + self.waits.iter().map(|w| size_of_val(w.as_slice())).sum::<usize>()
    }

    /// Blocks of the member that has most.
    pub(super) fn longest_list(&self) -> usize {
        self.lists.iter().map(Vec::len).max().unwrap_or(0)
    }

    #[inline]
    pub(super) fn for_each_ready(
        &self,
        rows: Rows,
        member: &Member<'_>,
        progress: &Progress,
        base: usize,
        mut row: impl FnMut(usize),
    ) {
        self.for_each_ready_block(member, progress, base, |block| {
            for position in block {
                row(rows.at(position));
            }
        });
    }

    /// Calls `run` on a member's blocks, each after the blocks it needs.
    #[inline]
    pub(super) fn for_each_ready_block(
        &self,
        member: &Member<'_>,
        progress: &Progress,
        base: usize,
        mut run: impl FnMut(Range<usize>),
    ) {
        let mut waits = self.waits[member.rank()].iter();
        for (k, block) in self.lists[member.rank()].iter().enumerate() {
            for wait in waits.by_ref().take(block.waits as usize) {
                member.wait_for(progress, wait.member as usize, base + wait.count as usize);
            }
            run(block.start as usize..block.end as usize + 1);
            progress.announce(member.rank(), base + k + 1);
        }
        // A shorter list ends at the same count: the next run begins from there.
        progress.announce(member.rank(), base + self.longest_list());
    }
}

/// Where blocks begin, and the end: positions.
fn cut(pattern: &Pattern, rows: Rows, least: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut start = 0;
    for position in 1..rows.n {
        let size = position - start;
        let before = rows.at(position - 1) as u32;
        let row = rows.at(position);
        let breaks = size >= least && rows.needs(pattern, row).binary_search(&before).is_err();
        if breaks || size >= 4 * least {
            starts.push(position);
            start = position;
        }
    }
    if rows.n > 0 {
        starts.push(rows.n);
    }
    starts
}

/// Which blocks need which.
pub(super) struct Graph {
    /// Nanoseconds of each block.
    work: Vec<f64>,
    pointer: Vec<usize>,
    /// The blocks that each one needs, increasing.
    needed: Vec<u32>,
}

impl Graph {
    fn new(pattern: &Pattern, rows: Rows, starts: &[usize]) -> Self {
        let block_of = |position: usize| starts.partition_point(|&s| s <= position) - 1;
        let found = parallel::map(starts.len() - 1, |block| {
            let range = starts[block]..starts[block + 1];
            let (mut entries, mut blocks) = (0, Vec::new());
            for position in range.clone() {
                let needs = rows.needs(pattern, rows.at(position));
                entries += needs.len();
                for &j in needs {
                    let needed = rows.at(j as usize);
                    // Neighbouring entries are mostly of the block that was found last.
                    let again = blocks.last().is_some_and(|&b: &u32| {
                        starts[b as usize] <= needed && needed < starts[b as usize + 1]
                    });
                    if needed < range.start && !again {
                        blocks.push(block_of(needed) as u32);
                    }
                }
                if blocks.len() > 64 {
                    blocks.sort_unstable();
                    blocks.dedup();
                }
            }
            blocks.sort_unstable();
            blocks.dedup();
            (entries as f64 * cost::ENTRY + range.len() as f64 * cost::ROW, blocks)
        });
        Self::from_needs(found)
    }

    /// From the nanoseconds of each block and the blocks that it needs, increasing.
    pub(super) fn from_needs(found: Vec<(f64, Vec<u32>)>) -> Self {
        let mut graph = Graph { work: Vec::new(), pointer: vec![0], needed: Vec::new() };
        for (work, blocks) in found {
            graph.work.push(work);
            graph.needed.extend(blocks);
            graph.pointer.push(graph.needed.len());
        }
        graph
    }

    fn needs(&self, block: usize) -> &[u32] {
        &self.needed[self.pointer[block]..self.pointer[block + 1]]
    }

    /// The owner of each block, and all blocks by wavefront.
    fn assign(&self, threads: usize) -> (Vec<u32>, Vec<u32>) {
        let count = self.work.len();
        let mut level = vec![0u32; count];
        for b in 0..count {
            level[b] = self.needs(b).iter().map(|&d| level[d as usize] + 1).max().unwrap_or(0);
        }
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&b| level[b as usize]);
        let mut owner = vec![0u32; count];
        for front in order.chunk_by(|&a, &b| level[a as usize] == level[b as usize]) {
            let total: f64 = front.iter().map(|&b| self.work[b as usize]).sum();
            let mut before = 0.0;
            for &b in front {
                let work = self.work[b as usize];
                let middle = (before + work / 2.0) / total.max(f64::MIN_POSITIVE);
                owner[b as usize] = ((middle * threads as f64) as u32).min(threads as u32 - 1);
                before += work;
            }
        }
        (owner, order)
    }
}
