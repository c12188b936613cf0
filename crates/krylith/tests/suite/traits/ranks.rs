//! A matrix in two parts, as it will be over MPI: each part belongs to a rank that shares no memory with the other.
//!
//! A rank is a thread here and a message an `mpsc` channel's, but nothing else is different: the space wraps a local one and
//! overrides the reductions (send the local sums, add both: two numbers have one sum, so both sides get the same bits); the operator sends
//! the entries of x that the other side needs before it multiplies. Both ranks run the same `solve`.

use super::threads::{Rows, Threads};
use super::{check, conformance, poisson, solve};
use krylith::krylov::Finish;
use krylith::operator::{Identity, LinearOperator, ResidualBounds, ResidualNorms};
use krylith::space::{Extremes, Space};
use krylith::{BackendError, Csr};
use std::sync::mpsc::{Receiver, Sender, channel};

/// One of two ranks.
pub struct Rank {
    pub rank: usize,
    local: Threads,
    pub host: krylith::space::Threads<f64>,
    to_peer: Sender<Vec<f64>>,
    from_peer: Receiver<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub local: usize,
    pub global: usize,
}

impl Rank {
    fn pair() -> [Rank; 2] {
        let (to_1, from_0) = channel();
        let (to_0, from_1) = channel();
        let host = || krylith::space::Threads::new(1);
        let rank = |rank, to_peer, from_peer| Rank { rank, local: Threads, host: host(), to_peer, from_peer };
        [rank(0, to_1, from_1), rank(1, to_0, from_0)]
    }

    pub fn exchange(&self, message: Vec<f64>) -> Result<Vec<f64>, BackendError> {
        let gone = || BackendError::Failed { what: format!("rank {} is gone", 1 - self.rank) };
        self.to_peer.send(message).map_err(|_| gone())?;
        self.from_peer.recv().map_err(|_| gone())
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
    type Layout = Layout;

    fn zeros(&self, layout: &Layout) -> Result<Part, BackendError> {
        Ok(Part { own: self.local.zeros(&layout.local)?, global: layout.global })
    }

    fn layout(&self, x: &Part) -> Layout {
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

    fn extremes(&self, x: &Part) -> Result<Extremes<f64>, BackendError> {
        let own = self.local.extremes(&x.own)?;
        let theirs = self.exchange(vec![own.largest, own.least])?;
        let first = if self.rank == 0 { 0 } else { x.global - x.own.len() };
        Ok(Extremes {
            largest: own.largest.max(theirs[0]),
            least: own.least.min(theirs[1]),
            not_finite: self.first(own.not_finite.map(|(k, value)| (first + k, value)))?,
        })
    }

    fn first(&self, own: Option<(usize, f64)>) -> Result<Option<(usize, f64)>, BackendError> {
        // A place as the bits of a number: it is only sent and compared.
        let message = own.map_or(vec![], |(place, value)| vec![f64::from_bits(place as u64), value]);
        let theirs = self.exchange(message)?;
        let theirs = (!theirs.is_empty()).then(|| (theirs[0].to_bits() as usize, theirs[1]));
        Ok([own, theirs].into_iter().flatten().min_by_key(|&(place, _)| place))
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
        for ((x, y), out) in pairs.iter().zip(&mut *out) {
            *out = self.local.dot(&x.own, &y.own)?;
        }
        let theirs = self.exchange(out.to_vec())?;
        for (out, theirs) in out.iter_mut().zip(theirs) {
            *out += theirs;
        }
        Ok(())
    }
}

/// The rows of one rank; columns of its own first, then those received from the other.
pub struct PartMatrix {
    rows: Csr<f64>,
    /// Which of the own entries the other rank needs.
    send: Vec<usize>,
    global: usize,
}

impl PartMatrix {
    /// The two parts of a matrix with symmetric pattern, cut before row `cut`.
    pub fn split(a: &Csr<f64>, cut: usize) -> [PartMatrix; 2] {
        let n = a.nrows();
        [(0..cut, cut..n), (cut..n, 0..cut)].map(|(own, foreign)| {
            let columns =
                |range: std::ops::Range<usize>| range.flat_map(|i| a.row(i).0.iter().map(|&j| j as usize));
            let distinct = |wanted: Vec<usize>| -> Vec<usize> {
                std::collections::BTreeSet::from_iter(wanted).into_iter().collect()
            };
            let receive = distinct(columns(own.clone()).filter(|j| foreign.contains(j)).collect());
            let send = distinct(columns(foreign).filter(|j| own.contains(j)).collect());
            let local = |j: usize| match own.contains(&j) {
                true => j - own.start,
                false => own.len() + receive.binary_search(&j).unwrap(),
            };
            let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
            for i in own.clone() {
                for (&j, &value) in a.row(i).0.iter().zip(a.row(i).1) {
                    r.push((i - own.start) as u32);
                    c.push(local(j as usize) as u32);
                    v.push(value);
                }
            }
            let rows = Csr::from_triplets(own.len(), own.len() + receive.len(), &r, &c, &v).unwrap();
            PartMatrix { rows, send: send.into_iter().map(|j| j - own.start).collect(), global: n }
        })
    }
}

impl PartMatrix {
    /// The block of the own rows and columns.
    pub fn block(&self) -> Csr<f64> {
        let n = self.rows.nrows();
        let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
        for i in 0..n {
            for (&j, &v) in
                self.rows.row(i).0.iter().zip(self.rows.row(i).1).filter(|&(&j, _)| (j as usize) < n)
            {
                rows.push(i as u32);
                columns.push(j);
                values.push(v);
            }
        }
        Csr::from_triplets(n, n, &rows, &columns, &values).unwrap()
    }

    /// The own entries of x and the received ones, into `wide`.
    fn receive(&self, space: &Rank, x: &Part, wide: &mut [f64]) -> Result<(), BackendError> {
        let halo = space.exchange(self.send.iter().map(|&j| x.own[j]).collect())?;
        let (own, received) = wide.split_at_mut(x.own.len());
        own.copy_from_slice(&x.own);
        received.copy_from_slice(&halo);
        Ok(())
    }
}

impl LinearOperator<Rank> for PartMatrix {
    /// The own entries of x followed by the received ones.
    type Scratch = Vec<f64>;

    fn domain(&self) -> Layout {
        Layout { local: self.rows.nrows(), global: self.global }
    }

    fn range(&self) -> Layout {
        self.domain()
    }

    fn scratch(&self, _: &Rank) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; self.rows.ncols()])
    }

    fn apply(&self, space: &Rank, x: &Part, y: &mut Part, wide: &mut Vec<f64>) -> Result<(), BackendError> {
        self.receive(space, x, wide)?;
        self.rows.mul_vec(wide, &mut y.own).map_err(|e| BackendError::Failed { what: e.to_string() })
    }

    /// Sizes and their bounds are those of the rows of both.
    fn residual(
        &self,
        space: &Rank,
        (x, b): (&Part, &Part),
        precise: bool,
        r: &mut Part,
        wide: &mut Vec<f64>,
    ) -> Result<ResidualNorms<f64>, BackendError> {
        self.receive(space, x, wide)?;
        let own = self.rows.residual(&space.host, (wide, &b.own), precise, &mut r.own, &mut ())?;
        let bounds = own.certain.unwrap();
        let theirs = space.exchange(vec![own.norm, own.largest, bounds.rounding, bounds.row_sum])?;
        let certain = ResidualBounds {
            rounding: bounds.rounding.hypot(theirs[2]) * (1.0 + 4.0 * f64::EPSILON),
            row_sum: bounds.row_sum.max(theirs[3]),
            precise,
        };
        Ok(ResidualNorms {
            norm: own.norm.hypot(theirs[0]),
            largest: own.largest.max(theirs[1]),
            certain: Some(certain),
        })
    }
}

/// Runs `work` on both ranks at once.
pub fn on_both<R: Send>(work: impl Fn(Rank) -> R + Sync) -> [R; 2] {
    std::thread::scope(|s| {
        Rank::pair().map(|rank| s.spawn(|| work(rank))).map(|handle| handle.join().unwrap())
    })
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
    let parts = PartMatrix::split(&a, 200);
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
    let parts = PartMatrix::split(&poisson(), 200);
    let ends = on_both(|rank| {
        if rank.rank == 1 {
            return Ok(());
        }
        let part = &parts[0];
        solve(&rank, part, &Identity::new(part.domain())).map(|_| ())
    });
    assert_eq!(ends[0], Err(BackendError::Failed { what: "rank 1 is gone".into() }));
}
