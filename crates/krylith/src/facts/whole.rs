//! A matrix whose rows are divided among the processes of a space, and its facts: the same, bit for bit, as those of one process that has all rows.
//!
//! Each process has whole rows, one after the other in the order of processes. Counts are added up. A sum is taken in parts of rows
//! that are the same wherever the matrix is cut: a part belongs to the process that has its first row, to which the others send what they have of it.
//! An entry whose column is a row of another process is sent there once, with the diagonal entry of its row. It is compared with its partner
//! there, and counts there for the sum of its column.
//!
//! The structural rank alone is not found out where rows are: where a diagonal entry is zero, the first process is sent the pattern.

use super::found::{ColumnSum, Facts, Found};
use super::mesh::Mesh;
use super::row_facts::{self, ROWS_PER_PART, RowFacts};
use crate::error::BackendError;
use crate::matrix::{Compared, Comparison, Csr, OwnUnits, Pattern, Rows, ValuedRows};
use crate::operator::OwnRows;
use crate::parallel;
use crate::space::{Process, Space, from_first, gather, holds_everywhere, received};
use crate::transform::structural_rank;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The rows of one process as rows of the whole matrix, which is square.
pub(crate) struct Whole<'a, S> {
    space: &'a S,
    own: OwnRows<'a>,
    /// The first row of each process, and the number of all rows.
    starts: Vec<usize>,
    process: Process,
    /// Entries of the own rows in the columns of the own rows, these counted from the first.
    block: Csr<f64>,
    /// Entries that other processes have in the columns of the own rows, in the order of rows.
    foreign: Vec<Foreign>,
    /// How many of the foreign entries are of processes before this one.
    before: usize,
    /// Entries of the own rows below the diagonal whose columns are others' rows.
    below: usize,
    /// Entries of all.
    entries: usize,
    /// What all processes have been shown of each other's rows.
    shown: RefCell<HashMap<usize, Row>>,
    /// Why processes could not show each other rows: what was found since then says nothing.
    failure: RefCell<Option<BackendError>>,
}

/// A row that a process was shown; empty where it is its own.
type Row = (Vec<u32>, Vec<f64>);

/// An entry of another process.
#[derive(Debug, Clone, Copy)]
struct Foreign {
    row: usize,
    column: usize,
    value: f64,
    /// The diagonal entry of its row, 0 if it has none.
    diagonal: f64,
}

impl Foreign {
    const WORDS: usize = 4;

    fn to_words(self) -> [u64; Self::WORDS] {
        [self.row as u64, self.column as u64, self.value.to_bits(), self.diagonal.to_bits()]
    }

    fn from_words(words: &[u64]) -> Self {
        let [row, column, value, diagonal] = [words[0], words[1], words[2], words[3]];
        let (row, column) = (row as usize, column as usize);
        Foreign { row, column, value: f64::from_bits(value), diagonal: f64::from_bits(diagonal) }
    }
}

impl<'a, S: Space> Whole<'a, S> {
    /// All processes call it together, each with its rows.
    pub(crate) fn new(space: &'a S, own: OwnRows<'a>) -> Result<Self, BackendError> {
        let process = space.process();
        let range = own.first..own.first + own.rows.nrows();
        let block = block_of(own.rows, &range);
        let lengths = gather(
            space,
            [own.rows.nrows(), own.first, own.rows.ncols(), own.rows.nnz(), usize::from(block.is_ok())]
                .map(|number| number as u64)
                .to_vec(),
        )?;
        let (mut starts, mut fits, mut is_all_ready) = (vec![0], true, true);
        for theirs in &lengths {
            let &[rows, first, columns, _, is_ready] = &theirs[..] else {
                return Err(unlike("another message"));
            };
            is_all_ready &= is_ready == 1;
            fits &= first as usize == starts[starts.len() - 1] && columns == lengths[0][2];
            starts.push(first as usize + rows as usize);
        }
        if !fits || starts[process.count] as u64 != lengths[0][2] {
            return Err(unlike("rows that do not follow each other, or not as many as columns"));
        }
        let block = block?;
        if !is_all_ready {
            return Err(unlike("another process has no room for its block"));
        }
        let mut whole = Whole {
            space,
            own,
            starts,
            process,
            block,
            foreign: Vec::new(),
            before: 0,
            below: 0,
            entries: lengths.iter().map(|theirs| theirs[3] as usize).sum(),
            shown: RefCell::default(),
            failure: RefCell::default(),
        };
        whole.send_entries()?;
        Ok(whole)
    }

    /// Whether this is the matrix of the own rows and columns.
    pub(crate) fn has_block(&self, matrix: &Csr<f64>) -> bool {
        self.block == *matrix
    }

    /// The numbers of the own rows.
    pub(crate) fn range(&self) -> Range<usize> {
        self.own.first..self.own.first + self.own.rows.nrows()
    }

    /// All rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts[self.process.count]
    }

    pub(crate) fn space(&self) -> &'a S {
        self.space
    }

    /// The own rows, with the columns of all.
    pub(super) fn own_rows(&self) -> &'a Csr<f64> {
        self.own.rows
    }

    /// The same in the columns of the own rows.
    pub(super) fn block(&self) -> &Csr<f64> {
        &self.block
    }

    /// The rows and columns of the entries that other processes have in the columns of the own rows.
    pub(super) fn foreign(&self) -> impl Iterator<Item = (usize, usize)> {
        self.foreign.iter().map(|entry| (entry.row, entry.column))
    }

    /// The process that has a row.
    pub(super) fn owner(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }

    /// Sends each entry in a column that is another's row there.
    fn send_entries(&mut self) -> Result<(), BackendError> {
        let (range, mut messages) = (self.range(), vec![Vec::new(); self.process.count]);
        for i in 0..self.own.rows.nrows() {
            let (columns, values) = self.own.rows.row(i);
            let diagonal = self.block.get(i, i);
            for (&j, &value) in columns.iter().zip(values).filter(|(j, _)| !range.contains(&(**j as usize))) {
                let entry = Foreign { row: range.start + i, column: j as usize, value, diagonal };
                self.below += usize::from(entry.column < entry.row);
                messages[self.owner(entry.column)].extend(entry.to_words());
            }
        }
        for (number, words) in received(self.space, messages)?.iter().enumerate() {
            let entries = words.chunks_exact(Foreign::WORDS).map(Foreign::from_words);
            self.foreign.extend(entries);
            if number < self.process.number {
                self.before = self.foreign.len();
            }
        }
        let is_own = |entry: &Foreign| range.contains(&entry.column) && entry.row < self.rows();
        match holds_everywhere(self.space, self.foreign.iter().all(is_own))? {
            true => Ok(()),
            false => Err(unlike("entries of rows that are not that process's")),
        }
    }

    /// The sum of what each row has, in parts of rows.
    fn in_parts<T: Words + Send + Sync>(
        &self,
        none: T,
        of_row: impl Fn(usize) -> T + Sync,
        and: impl Fn(T, T) -> T + Sync,
    ) -> Result<T, BackendError> {
        let range = self.range();
        // Rows up to the first part that begins here belong to a part that began before.
        let kept = range.start.next_multiple_of(ROWS_PER_PART).min(range.end);
        let mut messages = vec![Vec::new(); self.process.count];
        if range.start < kept {
            let owner = self.owner(range.start / ROWS_PER_PART * ROWS_PER_PART);
            for row in range.start..kept {
                of_row(row - range.start).write(&mut messages[owner]);
            }
        }
        let mut own = parallel::map((range.end - kept).div_ceil(ROWS_PER_PART), |k| {
            let first = kept + k * ROWS_PER_PART;
            let rows = first..range.end.min(first + ROWS_PER_PART);
            rows.fold(none, |sum, row| and(sum, of_row(row - range.start)))
        });
        // The last part may go on where other processes have their rows.
        let mut rest = received(self.space, messages)?.into_iter().flatten();
        if let Some(last) = own.last_mut() {
            while let Some(row) = T::read(&mut rest) {
                *last = and(*last, row);
            }
        }
        let mut parts = Vec::new();
        own.into_iter().for_each(|part| part.write(&mut parts));
        let mut parts = gather(self.space, parts)?.into_iter().flatten();
        let mut sum = none;
        while let Some(part) = T::read(&mut parts) {
            sum = and(sum, part);
        }
        Ok(sum)
    }

    /// How all entries compare with their partners, the largest of all being this one.
    fn comparison(&self, largest: f64) -> Result<Comparison, BackendError> {
        let block = self.block.view();
        let piece = |rows: Range<usize>| {
            let mut found = Compared::NONE;
            rows.for_each(|i| block.compare_row(i, &mut found));
            found
        };
        let own = parallel::fold(block.nrows(), piece, Compared::and).unwrap_or(Compared::NONE);
        let mut own = own.with_below(self.below);
        for entry in self.foreign.iter().filter(|entry| entry.column > entry.row) {
            own.compare(entry.value, self.partner(entry), || self.is_negligible(entry));
        }
        let all = self.together(own)?;
        if all.has_all_partners() {
            return Ok(all.concluded(largest));
        }
        let mut alone = self.block.view().without_partners();
        for entry in self.foreign.iter().filter(|entry| entry.column < entry.row) {
            if self.partner(entry).is_none() {
                alone.compare(entry.value, None, || self.is_negligible(entry));
            }
        }
        Ok(all.and(self.together(alone)?).concluded(largest))
    }

    fn together(&self, own: Compared) -> Result<Compared, BackendError> {
        let all = gather(self.space, own.to_words().to_vec())?;
        let mut sum = Compared::NONE;
        for theirs in all {
            sum = sum.and(Compared::from_words(&theirs).ok_or_else(|| unlike("another message"))?);
        }
        Ok(sum)
    }

    /// The own entry across the diagonal.
    fn partner(&self, entry: &Foreign) -> Option<f64> {
        self.own.rows.view().find(entry.column - self.own.first, entry.row)
    }

    fn is_negligible(&self, entry: &Foreign) -> bool {
        let own = self.block.get(entry.column - self.own.first, entry.column - self.own.first);
        Compared::is_negligible(entry.value, [entry.diagonal, own])
    }

    /// Whether every column sums up to 0, up to rounding: each entry is added in the order of rows.
    fn has_zero_column_sums(&self) -> Result<bool, BackendError> {
        let mut sums = vec![ColumnSum::default(); self.block.ncols()];
        let first = self.own.first;
        let mut add = |column: usize, value: f64| sums[column].add(value);
        self.foreign[..self.before].iter().for_each(|entry| add(entry.column - first, entry.value));
        for (&j, &v) in self.block.pattern().col_idx().iter().zip(self.block.values()) {
            add(j as usize, v);
        }
        self.foreign[self.before..].iter().for_each(|entry| add(entry.column - first, entry.value));
        holds_everywhere(self.space, sums.iter().all(ColumnSum::is_zero))
    }

    /// Whether constants are in the null space of A, and in that of Aᵀ, up to rounding.
    pub(crate) fn constant_null_vectors(&self) -> Result<(bool, bool), BackendError> {
        let facts = Facts::without_mesh(self)?;
        Ok((facts.constant_null_vector, facts.constant_left_null_vector))
    }

    /// The structural rank, found by the first process.
    fn structural_rank(&self) -> Result<usize, BackendError> {
        let rows = self.own.rows;
        let mut pattern = Vec::with_capacity(rows.nrows() + rows.nnz());
        for i in 0..rows.nrows() {
            let (columns, values) = rows.row(i);
            let there = || columns.iter().zip(values).filter(|(_, v)| **v != 0.0).map(|(&j, _)| u64::from(j));
            pattern.push(there().count() as u64);
            pattern.extend(there());
        }
        let mut messages = vec![Vec::new(); self.process.count];
        messages[0] = pattern;
        let words = received(self.space, messages)?.concat();
        let rank = match self.process.number {
            0 => pattern_of(&words, self.rows()).map(|whole| structural_rank(&whole) as u64),
            _ => None,
        };
        match from_first(self.space, rank.into_iter().collect())?[..] {
            [rank] => Ok(rank as usize),
            _ => Err(unlike("the pattern cannot be read")),
        }
    }

    /// What the rows with large sums have in the columns of the others; `large` are those of the own rows.
    fn sum_between(&self, large: &[u32]) -> Result<f64, BackendError> {
        let range = self.range();
        // By symmetry, the rows with an entry in the column of a large row are the columns of its own entries: their owners are sent its number.
        let mut messages = vec![Vec::new(); self.process.count];
        for &i in large {
            let row = range.start + i as usize;
            let owners = self.own.rows.row(i as usize).0.iter().map(|&j| self.owner(j as usize));
            for owner in owners.filter(|&owner| owner != self.process.number) {
                if messages[owner].last() != Some(&(row as u64)) {
                    messages[owner].push(row as u64);
                }
            }
        }
        let mut all: Vec<usize> =
            received(self.space, messages)?.into_iter().flatten().map(|row| row as usize).collect();
        all.extend(large.iter().map(|&i| range.start + i as usize));
        all.sort_unstable();
        let of_row = |i: usize| match large.binary_search(&(i as u32)) {
            Ok(_) => row_facts::sum_without(self.own.rows, i, |j| all.binary_search(&j).is_ok()),
            Err(_) => 0.0,
        };
        self.in_parts(0.0, of_row, |a, b| a + b)
    }
}

impl Facts {
    /// The facts of a matrix whose rows are divided among processes, with its mesh.
    pub(crate) fn of_whole<S: Space>(whole: &Whole<'_, S>) -> Result<Self, BackendError> {
        let facts = Self::without_mesh(whole)?;
        let (mesh, _) = Mesh::of_rows(whole, facts.is_nearly_m_matrix() || facts.may_be_definite());
        match whole.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(Facts { mesh: Some(mesh), ..facts }),
        }
    }

    /// The same without its mesh.
    pub(crate) fn without_mesh<S: Space>(whole: &Whole<'_, S>) -> Result<Self, BackendError> {
        let (rows, first) = (whole.own.rows, whole.own.first);
        let sums = whole.in_parts(RowFacts::NONE, |i| RowFacts::of(rows, i, first + i), RowFacts::and)?;
        let entries = whole.entries;
        let comparison = whole.comparison(sums.largest)?;
        let is_zero = match comparison.symmetry.symmetric {
            false if sums.may_be_zero(entries) => whole.has_zero_column_sums()?,
            _ => false,
        };
        let rank = if sums.zero == 0 { whole.rows() } else { whole.structural_rank()? };
        let share = match sums.asks_without_large(whole.rows(), comparison.symmetry.symmetric) {
            false => sums.share(),
            true => {
                let is_large = |i: &u32| RowFacts::of(rows, *i as usize, first + *i as usize).is_large();
                let large: Vec<u32> = (0..rows.nrows() as u32).filter(is_large).collect();
                sums.share().min(sums.share_without(whole.sum_between(&large)?))
            }
        };
        Ok(Self::found(Found {
            rows: whole.rows(),
            entries,
            sums,
            comparison,
            zero_columns: is_zero,
            rank,
            share,
        }))
    }
}

impl<S: Space> Whole<'_, S> {
    /// Shows everyone these rows.
    fn show(&self, rows: impl Iterator<Item = usize>) {
        let mut wanted: Vec<usize> = rows.filter(|row| !self.shown.borrow().contains_key(row)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return;
        }
        let mut own = Vec::new();
        for &row in wanted.iter().filter(|&&row| self.range().contains(&row)) {
            let (columns, values) = self.own.rows.row(row - self.own.first);
            own.extend([row as u64, columns.len() as u64]);
            own.extend(columns.iter().map(|&j| u64::from(j)).chain(values.iter().map(|v| v.to_bits())));
        }
        let mut shown = self.shown.borrow_mut();
        for (number, theirs) in self.everyones(own).iter().enumerate() {
            let mut rest = &theirs[..];
            while let [row, length, tail @ ..] = rest {
                let (columns, tail) = tail.split_at((*length as usize).min(tail.len()));
                let (values, tail) = tail.split_at(columns.len().min(tail.len()));
                rest = tail;
                if number != self.process.number {
                    let columns = columns.iter().map(|&j| j as u32).collect();
                    shown.insert(
                        *row as usize,
                        (columns, values.iter().map(|&v| f64::from_bits(v)).collect()),
                    );
                }
            }
        }
        wanted.into_iter().for_each(|row| {
            shown.entry(row).or_default();
        });
    }

    /// A part of a row that all have been shown, or are shown now.
    fn of_row<'w, T: Clone>(
        &'w self,
        row: usize,
        part: impl Fn((&'w [u32], &'w [f64])) -> &'w [T],
        of_shown: impl Fn(&Row) -> &Vec<T>,
    ) -> Cow<'w, [T]> {
        self.show([row].into_iter());
        match self.range().contains(&row) {
            true => Cow::Borrowed(part(self.own.rows.row(row - self.own.first))),
            false => {
                Cow::Owned(self.shown.borrow().get(&row).map(|row| of_shown(row).clone()).unwrap_or_default())
            }
        }
    }
}

impl<S: Space> Rows for Whole<'_, S> {
    fn count(&self) -> usize {
        self.rows()
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn columns(&self, row: usize) -> Cow<'_, [u32]> {
        self.of_row(row, |(columns, _)| columns, |(columns, _)| columns)
    }

    fn announce(&self, rows: impl Iterator<Item = usize>) {
        self.show(rows);
    }

    fn own(&self, unit: usize) -> OwnUnits<'_> {
        let range = self.range();
        let units = range.start.div_ceil(unit)..range.end.div_ceil(unit);
        // The last unit of each process may go on among the rows of others.
        self.show(self.starts[1..].iter().flat_map(|&end| end..end.next_multiple_of(unit)));
        let (own, end) = (self.own.rows.pattern(), units.end * unit);
        if end <= range.end || units.is_empty() {
            return OwnUnits::new(Cow::Borrowed(own), range.start, units);
        }
        let shown = self.shown.borrow();
        let (mut ends, mut columns) = (own.row_ptr().to_vec(), own.col_idx().to_vec());
        for row in range.end..end {
            columns.extend(shown.get(&row).map_or(&[][..], |(columns, _)| columns));
            ends.push(columns.len());
        }
        let pattern = Pattern::trusted(end - range.start, self.rows(), ends, columns);
        OwnUnits::new(Cow::Owned(pattern), range.start, units)
    }

    fn process(&self) -> Process {
        self.process
    }

    fn owner(&self, row: usize) -> usize {
        Whole::owner(self, row)
    }

    fn exchange(&self, messages: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        // After a failure nothing more is sent: no process is to take that for something else.
        let nothing = || vec![Vec::new(); self.process.count];
        if self.failure.borrow().is_some() {
            return nothing();
        }
        received(self.space, messages).unwrap_or_else(|error| {
            self.failure.replace(Some(error));
            nothing()
        })
    }
}

impl<S: Space> ValuedRows for Whole<'_, S> {
    fn values(&self, row: usize) -> Cow<'_, [f64]> {
        self.of_row(row, |(_, values)| values, |(_, values)| values)
    }

    fn first_rows(&self, most: usize) -> Cow<'_, Csr<f64>> {
        let rows = self.rows().min(most);
        self.show(0..rows);
        let (mut ends, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..rows {
            columns.extend_from_slice(&self.columns(row));
            values.extend_from_slice(&self.values(row));
            ends.push(columns.len());
        }
        Cow::Owned(Csr::trusted(Arc::new(Pattern::trusted(rows, self.rows(), ends, columns)), values))
    }
}

/// Numbers that are sent as words.
trait Words: Copy {
    fn write(self, words: &mut Vec<u64>);
    fn read(words: &mut impl Iterator<Item = u64>) -> Option<Self>;
}

impl Words for f64 {
    fn write(self, words: &mut Vec<u64>) {
        words.push(self.to_bits());
    }

    fn read(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        words.next().map(f64::from_bits)
    }
}

impl Words for RowFacts {
    fn write(self, words: &mut Vec<u64>) {
        words.extend(self.to_words());
    }

    fn read(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let first = words.next()?;
        Some(RowFacts::from_words(std::array::from_fn(|k| {
            if k == 0 { first } else { words.next().unwrap_or(0) }
        })))
    }
}

/// The entries in the columns of these rows, counted from the first.
fn block_of(rows: &Csr<f64>, range: &Range<usize>) -> Result<Csr<f64>, BackendError> {
    let piece = |i: usize| {
        let (columns, values) = rows.row(i);
        let place = |bound: usize| columns.partition_point(|&j| (j as usize) < bound);
        let within = place(range.start)..place(range.end);
        (&columns[within.clone()], &values[within])
    };
    let block = Csr::from_rows(
        range.len(),
        range.len(),
        |i| piece(i).0.len(),
        |i, columns, values| {
            let (all, numbers) = piece(i);
            columns.iter_mut().zip(all).for_each(|(column, &j)| *column = j - range.start as u32);
            values.copy_from_slice(numbers);
        },
    );
    block.map_err(|error| BackendError::Failed { what: error.to_string() })
}

/// The matrix with ones at these entries: of each row their number, and their columns.
fn pattern_of(words: &[u64], rows: usize) -> Option<Csr<f64>> {
    let (mut entries, mut at) = (Vec::new(), 0);
    for row in 0..rows {
        let count = *words.get(at)? as usize;
        let columns = words.get(at + 1..(at + 1).checked_add(count)?)?;
        entries.extend(columns.iter().map(|&column| (row, column as usize, 1.0)));
        at += 1 + count;
    }
    Csr::from_entries(rows, rows, entries).ok()
}

pub(super) fn unlike(what: &str) -> BackendError {
    BackendError::Failed { what: format!("the parts of the processes are no matrix: {what}") }
}
