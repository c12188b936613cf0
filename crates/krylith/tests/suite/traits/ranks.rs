//! A matrix in parts, as it will be over MPI: each part belongs to a rank that shares no memory with the others.
//!
//! A rank is a thread here and a message an `mpsc` channel's, but nothing else is different: the space wraps a local one and
//! overrides the reductions (send the local sums, which have no order, so that all have the bits of one process); the operator sends
//! the entries of x that the others need before it multiplies. All ranks run the same `solve`.

use super::threads::{Rows, Threads};
use super::{check, conformance, poisson, solve};
use krylith::krylov::Finish;
use krylith::operator::{Identity, LinearOperator, OwnRows, ResidualNorms};
use krylith::space::{BinnedSum, Extremes, Process, Space, require_same};
use krylith::{BackendError, Csr};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One of several ranks.
pub struct Rank {
    pub rank: usize,
    local: Threads,
    pub host: krylith::space::Threads<f64>,
    /// To and from each rank, this one included.
    to: Vec<Sender<Vec<u64>>>,
    from: Vec<Receiver<Vec<u64>>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub local: usize,
    pub global: usize,
}

impl Rank {
    fn all(count: usize) -> Vec<Rank> {
        let mut to: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
        let mut from: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
        for (sender, of_sender) in to.iter_mut().enumerate() {
            for (receiver, of_receiver) in from.iter_mut().enumerate() {
                let (outgoing, incoming) = channel();
                assert_eq!((of_sender.len(), of_receiver.len()), (receiver, sender));
                of_sender.push(outgoing);
                of_receiver.push(incoming);
            }
        }
        let host = || krylith::space::Threads::new(1);
        let rank = |(rank, (to, from))| Rank { rank, local: Threads, host: host(), to, from };
        to.into_iter().zip(from).enumerate().map(rank).collect()
    }

    /// What each rank has, in their order.
    fn everyones(&self, own: &[f64]) -> Result<Vec<Vec<f64>>, BackendError> {
        let words: Vec<u64> = own.iter().map(|v| v.to_bits()).collect();
        let received = self.exchange(vec![words; self.to.len()])?;
        Ok(received.into_iter().map(|words| words.into_iter().map(f64::from_bits).collect()).collect())
    }
}

/// A part of a vector, and the length of the whole.
#[derive(Clone)]
pub struct Part {
    pub own: Vec<f64>,
    pub global: usize,
}

impl Space for Rank {
    type Real = f64;
    type Scalar = f64;
    type Vector = Part;
    type Size = Layout;

    fn zeros(&self, layout: &Layout) -> Result<Part, BackendError> {
        Ok(Part { own: self.local.zeros(&layout.local)?, global: layout.global })
    }

    fn size(&self, x: &Part) -> Layout {
        Layout { local: x.own.len(), global: x.global }
    }

    fn len(&self, layout: &Layout) -> usize {
        layout.local
    }

    fn total(&self, layout: &Layout) -> usize {
        layout.global
    }

    fn upload(&self, from: &[f64], to: &mut Part) -> Result<(), BackendError> {
        self.local.upload(from, &mut to.own)
    }

    fn download(&self, from: &Part, to: &mut [f64]) -> Result<(), BackendError> {
        self.local.download(&from.own, to)
    }

    fn process(&self) -> Process {
        Process { number: self.rank, count: self.to.len() }
    }

    fn exchange(&self, messages: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>, BackendError> {
        let gone = |rank: usize| BackendError::Failed { what: format!("rank {rank} is gone") };
        for (rank, (to, message)) in self.to.iter().zip(messages).enumerate() {
            to.send(message).map_err(|_| gone(rank))?;
        }
        self.from.iter().enumerate().map(|(rank, from)| from.recv().map_err(|_| gone(rank))).collect()
    }

    fn extremes(&self, x: &Part) -> Result<Extremes<f64>, BackendError> {
        let own = self.local.extremes(&x.own)?;
        let all = self.everyones(&[own.largest, own.least, x.own.len() as f64])?;
        let first = all[..self.rank].iter().map(|theirs| theirs[2] as usize).sum::<usize>();
        Ok(Extremes {
            largest: all.iter().map(|theirs| theirs[0]).fold(0.0, f64::max),
            least: all.iter().map(|theirs| theirs[1]).fold(f64::INFINITY, f64::min),
            not_finite: self.first(own.not_finite.map(|(k, value)| (first + k, value)))?,
        })
    }

    fn first(&self, own: Option<(usize, f64)>) -> Result<Option<(usize, f64)>, BackendError> {
        // A place as the bits of a number: it is only sent and compared.
        let message = own.map_or(vec![], |(place, value)| vec![f64::from_bits(place as u64), value]);
        let all = self.everyones(&message)?;
        let some = all.iter().filter(|theirs| !theirs.is_empty());
        Ok(some.map(|theirs| (theirs[0].to_bits() as usize, theirs[1])).min_by_key(|&(place, _)| place))
    }

    fn scale(&self, a: f64, x: &mut Part) -> Result<(), BackendError> {
        self.local.scale(a, &mut x.own)
    }

    fn fill(&self, a: f64, x: &mut Part) -> Result<(), BackendError> {
        self.local.fill(a, &mut x.own)
    }

    fn copy(&self, x: &Part, y: &mut Part) -> Result<(), BackendError> {
        self.local.copy(&x.own, &mut y.own)
    }

    fn axpby(&self, a: f64, x: &Part, b: f64, y: &mut Part) -> Result<(), BackendError> {
        self.local.axpby(a, &x.own, b, &mut y.own)
    }

    fn dots(&self, pairs: &[(&Part, &Part)], out: &mut [f64]) -> Result<(), BackendError> {
        for (x, y) in pairs {
            require_same("dots", &self.size(x), &self.size(y))?;
        }
        let mut sums = vec![BinnedSum::new(); pairs.len()];
        sums.iter_mut().zip(pairs).for_each(|(sum, (x, y))| sum.add_products(&x.own, &y.own));
        BinnedSum::add_others(self, &mut sums)?;
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = sum.value());
        Ok(())
    }
}

/// The rows of one rank.
pub struct PartMatrix {
    /// Its own columns and those received from the others, in the order of the whole: so the sums of rows are those of the whole.
    rows: Csr<f64>,
    /// Received columns before the own ones.
    below: usize,
    /// With the columns of the whole.
    whole: Csr<f64>,
    own: Range<usize>,
    /// Which of the own entries each rank needs.
    send: Vec<Vec<usize>>,
}

/// These rows, and of them these columns, counted from the first.
fn cut_out(a: &Csr<f64>, rows: Range<usize>, columns: Range<usize>) -> Csr<f64> {
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for i in rows.clone() {
        let (all, values) = a.row(i);
        for (&j, &value) in all.iter().zip(values).filter(|(j, _)| columns.contains(&(**j as usize))) {
            r.push((i - rows.start) as u32);
            c.push((j as usize - columns.start) as u32);
            v.push(value);
        }
    }
    Csr::from_triplets(rows.len(), columns.len(), &r, &c, &v).unwrap()
}

/// The columns of these rows that are rows of each part, in order.
fn columns_by_part(rows: &Csr<f64>, starts: &[usize]) -> Vec<Vec<usize>> {
    let all: std::collections::BTreeSet<usize> =
        rows.pattern().col_idx().iter().map(|&j| j as usize).collect();
    starts.windows(2).map(|part| all.range(part[0]..part[1]).copied().collect()).collect()
}

impl PartMatrix {
    /// The parts of a matrix, cut before these rows.
    pub fn split(a: &Csr<f64>, cuts: &[usize]) -> Vec<PartMatrix> {
        let n = a.nrows();
        let starts: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([n]).collect();
        let wholes: Vec<Csr<f64>> = starts.windows(2).map(|w| cut_out(a, w[0]..w[1], 0..n)).collect();
        // Of each part the columns in each other part.
        let wanted: Vec<Vec<Vec<usize>>> = wholes.iter().map(|own| columns_by_part(own, &starts)).collect();
        let part = |(k, whole): (usize, Csr<f64>)| {
            let asked = wanted.iter().map(|theirs| theirs[k].clone()).collect();
            PartMatrix::new(whole, (&starts, k), &wanted[k], asked)
        };
        wholes.into_iter().enumerate().map(part).collect()
    }

    /// The part of one rank, which asks the others for what it needs.
    pub fn of_own_rows(space: &Rank, whole: Csr<f64>) -> Result<PartMatrix, BackendError> {
        let lengths = space.exchange(vec![vec![whole.nrows() as u64]; space.to.len()])?;
        let mut starts = vec![0];
        lengths.iter().for_each(|length| starts.push(starts[starts.len() - 1] + length[0] as usize));
        let wanted = columns_by_part(&whole, &starts);
        let questions = wanted.iter().map(|columns| columns.iter().map(|&j| j as u64).collect()).collect();
        let asked = space.exchange(questions)?;
        let asked =
            asked.into_iter().map(|columns| columns.into_iter().map(|j| j as usize).collect()).collect();
        Ok(PartMatrix::new(whole, (&starts, space.rank), &wanted, asked))
    }

    /// Part `k`, with the columns that it wants from each part and that each wants of it.
    fn new(
        whole: Csr<f64>,
        (starts, k): (&[usize], usize),
        wanted: &[Vec<usize>],
        asked: Vec<Vec<usize>>,
    ) -> PartMatrix {
        let own = starts[k]..starts[k + 1];
        let others = |k: &usize| wanted[*k].iter().copied();
        let receive: Vec<usize> =
            (0..wanted.len()).filter(|other| *other != k).flat_map(|k| others(&k)).collect();
        let below = receive.iter().filter(|&&j| j < own.start).count();
        let local = |j: usize| match own.contains(&j) {
            true => below + j - own.start,
            false => match receive.binary_search(&j).unwrap() {
                place if place < below => place,
                place => own.len() + place,
            },
        };
        let entries = (0..own.len()).flat_map(|i| {
            let (columns, values) = whole.row(i);
            columns.iter().zip(values).map(move |(&j, &v)| (i, j as usize, v)).collect::<Vec<_>>()
        });
        let entries: Vec<_> = entries.map(|(i, j, v)| (i, local(j), v)).collect();
        let rows = Csr::from_entries(own.len(), own.len() + receive.len(), entries).unwrap();
        let send = asked.into_iter().enumerate().map(|(other, columns)| match other == k {
            true => Vec::new(),
            false => columns.into_iter().map(|j| j - own.start).collect(),
        });
        PartMatrix { rows, below, send: send.collect(), whole, own: own.clone() }
    }

    /// The own rows.
    pub fn rows(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The block of the own rows and columns.
    pub fn block(&self) -> Csr<f64> {
        cut_out(&self.whole, 0..self.own.len(), self.own.clone())
    }

    /// The own entries of x and the received ones, into `wide`.
    fn receive(&self, space: &Rank, x: &Part, wide: &mut [f64]) -> Result<(), BackendError> {
        let wanted = |send: &Vec<usize>| send.iter().map(|&j| x.own[j].to_bits()).collect();
        let received = space.exchange(self.send.iter().map(wanted).collect())?;
        let (below, rest) = wide.split_at_mut(self.below);
        let (own, above) = rest.split_at_mut(x.own.len());
        own.copy_from_slice(&x.own);
        let received = received.into_iter().flatten().map(f64::from_bits);
        below.iter_mut().chain(above).zip(received).for_each(|(halo, received)| *halo = received);
        Ok(())
    }
}

impl LinearOperator<Rank> for PartMatrix {
    /// The own entries of x among the received ones.
    type Scratch = Vec<f64>;

    fn domain(&self) -> Layout {
        Layout { local: self.own.len(), global: self.whole.ncols() }
    }

    fn range(&self) -> Layout {
        self.domain()
    }

    fn scratch(&self, _: &Rank) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; self.rows.ncols()])
    }

    fn apply(&self, space: &Rank, x: &Part, y: &mut Part, wide: &mut Vec<f64>) -> Result<(), BackendError> {
        self.receive(space, x, wide)?;
        self.rows.apply(&space.host, wide, &mut y.own, &mut ())
    }

    fn residual(
        &self,
        space: &Rank,
        (x, b): (&Part, &Part),
        precise: bool,
        r: &mut Part,
        wide: &mut Vec<f64>,
    ) -> Result<ResidualNorms<f64>, BackendError> {
        self.receive(space, x, wide)?;
        self.rows.residual_of_rows((space, &space.host), (wide, &b.own), precise, &mut r.own)
    }

    fn own_rows(&self) -> Option<OwnRows<'_>> {
        Some(OwnRows::new(&self.whole, self.own.start))
    }
}

/// Runs `work` on `count` ranks at once.
pub fn on_ranks<R: Send>(count: usize, work: impl Fn(Rank) -> R + Sync) -> Vec<R> {
    std::thread::scope(|s| {
        let handles: Vec<_> = Rank::all(count).into_iter().map(|rank| s.spawn(|| work(rank))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

/// Runs `work` on two ranks at once.
pub fn on_both<R: Send>(work: impl Fn(Rank) -> R + Sync) -> [R; 2] {
    on_ranks(2, work).try_into().unwrap_or_else(|_| unreachable!())
}

#[test]
fn conforms() {
    let layout = |rank: &Rank, more: usize| Layout { local: 30 + rank.rank + more, global: 61 + 2 * more };
    on_both(|rank| {
        conformance::check(&rank, &layout(&rank, 0), &layout(&rank, 1), Part::clone, |k, x| x.own[k]);
    });
}

#[test]
fn cg_on_two_ranks() {
    let a = poisson();
    // Not in the middle: the ranks have different work and different halos.
    let parts = PartMatrix::split(&a, &[200]);
    let ends: [(Vec<f64>, Finish<f64>, Vec<f64>); 2] = on_both(|rank| {
        let part = &parts[rank.rank];
        let (x, finish, history) = solve(&rank, part, &Identity::new(part.domain())).unwrap();
        (x.own, finish, history)
    });
    assert_eq!(ends[0].1, ends[1].1, "both ranks took the same branches on the same numbers");
    let x = [ends[0].0.clone(), ends[1].0.clone()].concat();
    check(&x, ends[0].1, &ends[0].2);
    let whole = Rows(a);
    let alone = solve(&Threads, &whole, &Identity::new(whole.domain())).unwrap().1;
    assert!(alone.iterations.abs_diff(ends[0].1.iterations) <= 1);
}

#[test]
fn a_rank_that_dies_is_an_error_on_the_other_not_a_hang() {
    let parts = PartMatrix::split(&poisson(), &[200]);
    let ends = on_both(|rank| {
        if rank.rank == 1 {
            return Ok(());
        }
        let part = &parts[0];
        solve(&rank, part, &Identity::new(part.domain())).map(|_| ())
    });
    assert_eq!(ends[0], Err(BackendError::Failed { what: "rank 1 is gone".into() }));
}
