//! The rows that those of one process reach, sent there by the processes that have them.

use super::whole::{Whole, unlike};
use crate::error::BackendError;
use crate::matrix::{Csr, Pattern};
use crate::space::{Space, holds_everywhere, received};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The own rows of a process, and those before them that they reach in some steps through rows before them, each from a row to a column.
pub(crate) struct Neighbourhood {
    /// Their numbers, in order.
    rows: Vec<usize>,
    /// Their entries in the columns of each other, rows and columns numbered by their places in `rows`.
    pub(crate) matrix: Csr<f64>,
    /// The places of the own rows.
    pub(crate) own: Range<usize>,
}

impl Neighbourhood {
    /// The place of a row of this process.
    pub(crate) fn place(&self, row: usize) -> usize {
        self.own.start + row - self.rows[self.own.start]
    }

    /// The own rows of a matrix whose rows and columns are at these places, with the columns of the whole.
    pub(crate) fn own_rows(&self, of: &Csr<f64>, columns: usize) -> Csr<f64> {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for place in self.own.clone() {
            let (places, numbers) = of.row(place);
            col_idx.extend(places.iter().map(|&place| self.rows[place as usize] as u32));
            values.extend_from_slice(numbers);
            row_ptr.push(col_idx.len());
        }
        Csr::trusted(Arc::new(Pattern::trusted(self.own.len(), columns, row_ptr, col_idx)), values)
    }
}

/// A row of another process.
struct Sent {
    columns: Vec<usize>,
    values: Vec<f64>,
    /// Rows with an entry in its column.
    reached_from: Vec<usize>,
}

impl Sent {
    fn write(words: &mut Vec<u64>, (columns, values): (&[u32], &[f64]), reached_from: &[usize]) {
        words.push(columns.len() as u64);
        words.extend(columns.iter().map(|&j| u64::from(j)));
        words.extend(values.iter().map(|v| v.to_bits()));
        words.push(reached_from.len() as u64);
        words.extend(reached_from.iter().map(|&i| i as u64));
    }

    fn read(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let entries = words.next()?;
        let mut numbers = |count: u64| (0..count).map(|_| words.next()).collect::<Option<Vec<u64>>>();
        let columns = numbers(entries)?.into_iter().map(|j| j as usize).collect();
        let values = numbers(entries)?.into_iter().map(f64::from_bits).collect();
        let others = numbers(1)?[0];
        let reached_from = numbers(others)?.into_iter().map(|i| i as usize).collect();
        Some(Sent { columns, values, reached_from })
    }

    /// Rows that a step leads to.
    fn reached(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().chain(&self.reached_from).copied()
    }
}

impl<S: Space> Whole<'_, S> {
    /// All processes call it together. With `both` a step may also lead from a column to a row, as if the pattern were symmetric.
    pub(crate) fn neighbourhood(&self, steps: usize, both: bool) -> Result<Neighbourhood, BackendError> {
        let range = self.range();
        let reached_from = if both { self.reached_from() } else { vec![Vec::new(); range.len()] };
        let mut sent: BTreeMap<usize, Sent> = BTreeMap::new();
        let own_columns = |i: usize| self.own_rows().row(i).0.iter().map(|&j| j as usize);
        let reached = |i: usize| own_columns(i).chain(reached_from[i].iter().copied());
        let mut wanted: Vec<usize> = (0..range.len()).flat_map(reached).collect();
        for _ in 0..steps {
            wanted.retain(|row| *row < range.start && !sent.contains_key(row));
            wanted.sort_unstable();
            wanted.dedup();
            if holds_everywhere(self.space(), wanted.is_empty())? {
                break;
            }
            let new = self.ask_for(&wanted, &reached_from)?;
            let next = new.values().flat_map(Sent::reached).collect();
            sent.extend(new);
            wanted = next;
        }
        Ok(self.assembled(&sent))
    }

    /// Of every own row those with an entry in its column.
    fn reached_from(&self) -> Vec<Vec<usize>> {
        let range = self.range();
        let mut found = vec![Vec::new(); range.len()];
        self.foreign().for_each(|(row, column)| found[column - range.start].push(row));
        for i in 0..range.len() {
            self.block().row(i).0.iter().for_each(|&j| found[j as usize].push(range.start + i));
        }
        found
    }

    /// These rows of other processes.
    fn ask_for(
        &self,
        wanted: &[usize],
        reached_from: &[Vec<usize>],
    ) -> Result<BTreeMap<usize, Sent>, BackendError> {
        let (space, range) = (self.space(), self.range());
        let mut questions = vec![Vec::new(); space.process().count];
        wanted.iter().for_each(|&row| questions[self.owner(row)].push(row as u64));
        let mut answers = vec![Vec::new(); questions.len()];
        let mut is_sound = true;
        for (answer, asked) in answers.iter_mut().zip(received(space, questions)?) {
            for row in asked.into_iter().map(|row| row as usize) {
                match range.contains(&row) {
                    true => {
                        let i = row - range.start;
                        Sent::write(answer, self.own_rows().row(i), &reached_from[i]);
                    }
                    false => is_sound = false,
                }
            }
        }
        // Rows are owned in the order of processes, so that answers are in the order of questions.
        let mut words = received(space, answers)?.into_iter().flatten();
        let read = |&row: &usize| Some((row, Sent::read(&mut words)?));
        let rows: Option<BTreeMap<usize, Sent>> = wanted.iter().map(read).collect();
        match holds_everywhere(space, is_sound && rows.is_some())? {
            true => Ok(rows.unwrap_or_default()),
            false => Err(unlike("rows that it does not have")),
        }
    }

    fn assembled(&self, sent: &BTreeMap<usize, Sent>) -> Neighbourhood {
        let range = self.range();
        let rows: Vec<usize> = sent.keys().copied().chain(range.clone()).collect();
        let own = sent.len()..rows.len();
        let place = |j: usize| match range.contains(&j) {
            true => Some(own.start + j - range.start),
            false => rows[..own.start].binary_search(&j).ok(),
        };
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut add = |columns: &mut dyn Iterator<Item = (usize, f64)>| {
            for (j, value) in columns {
                if let Some(place) = place(j) {
                    col_idx.push(place as u32);
                    values.push(value);
                }
            }
            row_ptr.push(col_idx.len());
        };
        for row in sent.values() {
            add(&mut row.columns.iter().copied().zip(row.values.iter().copied()));
        }
        for i in 0..range.len() {
            let (columns, values) = self.own_rows().row(i);
            add(&mut columns.iter().map(|&j| j as usize).zip(values.iter().copied()));
        }
        let pattern = Pattern::trusted(rows.len(), rows.len(), row_ptr, col_idx);
        Neighbourhood { rows, matrix: Csr::trusted(Arc::new(pattern), values), own }
    }

    /// The own rows of the transpose of a matrix of which every process has these rows.
    pub(crate) fn transposed(&self, rows: &Csr<f64>) -> Result<Csr<f64>, BackendError> {
        let range = self.range();
        let mut messages = vec![Vec::new(); self.space().process().count];
        for i in 0..rows.nrows() {
            for (&j, v) in rows.row(i).0.iter().zip(rows.row(i).1) {
                messages[self.owner(j as usize)].extend([
                    u64::from(j),
                    (range.start + i) as u64,
                    v.to_bits(),
                ]);
            }
        }
        // In the order of processes, so that columns are in order in every row.
        let mut found = vec![Vec::new(); range.len()];
        let mut is_sound = true;
        for &[j, i, v] in received(self.space(), messages)?.concat().as_chunks().0 {
            match range.contains(&(j as usize)) && (i as usize) < rows.ncols() {
                true => found[j as usize - range.start].push((i as u32, f64::from_bits(v))),
                false => is_sound = false,
            }
        }
        if !holds_everywhere(self.space(), is_sound)? {
            return Err(unlike("entries of rows that are not that process's"));
        }
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in found {
            col_idx.extend(row.iter().map(|&(i, _)| i));
            values.extend(row.iter().map(|&(_, v)| v));
            row_ptr.push(col_idx.len());
        }
        Ok(Csr::trusted(Arc::new(Pattern::trusted(range.len(), rows.ncols(), row_ptr, col_idx)), values))
    }
}
