//! Where a reader takes its bytes from: memory, or a file that is read in blocks.
//!
//! A file is never mapped. If another program shortens a mapped file, the system ends the process that touches the missing
//! pages; a read that meets the new end of the file returns an error instead. Text is read piece by piece by the threads that
//! parse it, so that a piece is still in their cache and the whole text is never in memory; formats with tables are read as a
//! whole, all threads reading. The file has the length that it had when it was opened: what is appended later is not read.

use super::compression::Compression;
use super::error::FormatError;
use super::options::ReadOptions;
use crate::memory::large_pages;
use crate::parallel;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Bytes that suffice to recognise a format.
const FIRST: usize = 64;

/// Bytes that one thread reads at a time where a whole file is read.
const BLOCK: usize = 4 << 20;

/// Bytes read behind a piece of text, where its last line probably ends.
const OVERHANG: usize = 256;

/// The content of a file, or of a slice.
pub(crate) struct Source<'a> {
    place: Place<'a>,
    /// Bytes at the beginning of the place that are not content.
    start: usize,
    /// Bytes of content.
    len: usize,
}

enum Place<'a> {
    Memory(Cow<'a, [u8]>),
    /// Read at any position by any thread.
    #[cfg(unix)]
    File(File),
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Source { place: Place::Memory(Cow::Borrowed(bytes)), start: 0, len: bytes.len() }
    }
}

impl From<Vec<u8>> for Source<'static> {
    fn from(bytes: Vec<u8>) -> Self {
        Source { len: bytes.len(), place: Place::Memory(Cow::Owned(bytes)), start: 0 }
    }
}

/// Whether the first bytes are those of a format that is looked for, compression aside.
pub(crate) type Recognise = fn(&[u8]) -> bool;

/// Opens a file and expands it if it is compressed.
pub(crate) fn open(
    path: &Path,
    known: Recognise,
    options: &ReadOptions,
) -> Result<Source<'static>, FormatError> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory).into());
    }
    // Linux lists files that it makes up while they are read with a length of 0.
    let source = if metadata.is_file() && metadata.len() > 0 {
        of_file(file, metadata.len())?
    } else {
        read_stream(&mut file, known)?.into()
    };
    source.expand(options)
}

#[cfg(unix)]
fn of_file(file: File, len: u64) -> Result<Source<'static>, FormatError> {
    let len = usize::try_from(len).map_err(|_| std::io::Error::from(std::io::ErrorKind::FileTooLarge))?;
    Ok(Source { place: Place::File(file), start: 0, len })
}

/// Where files cannot be read at a position without moving a cursor that all threads share.
#[cfg(not(unix))]
fn of_file(mut file: File, _: u64) -> Result<Source<'static>, FormatError> {
    // Any first bytes will do: the file has an end.
    Ok(read_stream(&mut file, |_| true)?.into())
}

/// The content of a pipe or a device, if its first bytes are of a known format: it may never end.
pub(crate) fn read_stream(mut stream: impl Read, known: Recognise) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    stream.by_ref().take(FIRST as u64).read_to_end(&mut bytes)?;
    if !bytes.is_empty() && Compression::detect(&bytes).is_none() && !known(&bytes) {
        return Err(FormatError::UnknownFormat);
    }
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl<'a> Source<'a> {
    /// Bytes of content.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first bytes of the content, enough to recognise a format.
    pub(crate) fn first_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let mut first = vec![0; FIRST.min(self.len)];
        self.fill(0, &mut first)?;
        Ok(first)
    }

    /// Leaves out the first bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.len);
        self.start += bytes;
        self.len -= bytes;
    }

    /// Expands compressed content, within the limit of the options.
    pub(crate) fn expand(self, options: &ReadOptions) -> Result<Self, FormatError> {
        let Some(compression) = Compression::detect(&self.first_bytes()?) else {
            return Ok(self);
        };
        let limit = options.expanded_limit(self.len as u64);
        let input = Reporting { source: &self, done: 0, options };
        let expanded = read_within(compression.reader(input)?, limit)?;
        Ok(expanded.into())
    }

    /// Copies bytes from a position on: at least one, unless there are none or `to` is empty.
    fn copy(&self, at: usize, to: &mut [u8]) -> Result<usize, FormatError> {
        let count = to.len().min(self.len.saturating_sub(at));
        if count == 0 {
            return Ok(0);
        }
        match &self.place {
            Place::Memory(bytes) => {
                to[..count].copy_from_slice(&bytes[self.start + at..][..count]);
                Ok(count)
            }
            #[cfg(unix)]
            Place::File(file) => loop {
                match std::os::unix::fs::FileExt::read_at(file, &mut to[..count], (self.start + at) as u64) {
                    Ok(0) => {
                        let (at, length) = ((self.start + at) as u64, (self.start + self.len) as u64);
                        return Err(FormatError::Shortened { at, length });
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    result => return Ok(result?),
                }
            },
        }
    }

    /// Copies as many bytes as `to` holds.
    fn fill(&self, mut at: usize, mut to: &mut [u8]) -> Result<(), FormatError> {
        while !to.is_empty() {
            let count = self.copy(at, to)?;
            debug_assert!(count > 0, "no more than the content is asked for");
            at += count;
            to = &mut to[count..];
        }
        Ok(())
    }

    /// The whole content.
    pub(crate) fn whole(&self) -> Result<Cow<'_, [u8]>, FormatError> {
        if let Place::Memory(bytes) = &self.place {
            return Ok(Cow::Borrowed(&bytes[self.start..]));
        }
        let out_of_memory = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let mut bytes: Vec<u8> = large_pages::try_zeros(self.len).ok_or_else(out_of_memory)?;
        parallel::try_for_each_piece_mut(&mut bytes, BLOCK, |at, block| self.fill(at, block))?;
        Ok(Cow::Owned(bytes))
    }

    /// A part of the content; `buffer` holds it if it is not in memory.
    pub(crate) fn block<'b>(
        &'b self,
        range: Range<usize>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], FormatError> {
        self.load(range.clone(), buffer)?;
        Ok(self.loaded(range, buffer))
    }

    fn load(&self, range: Range<usize>, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
        if matches!(self.place, Place::Memory(_)) {
            return Ok(());
        }
        if buffer.len() < range.len() {
            buffer.try_reserve(range.len() - buffer.len()).map_err(std::io::Error::from)?;
            buffer.resize(range.len(), 0);
        }
        self.fill(range.start, &mut buffer[..range.len()])
    }

    /// The part of the content that was loaded.
    fn loaded<'b>(&'b self, range: Range<usize>, buffer: &'b [u8]) -> &'b [u8] {
        match &self.place {
            Place::Memory(bytes) => &bytes[self.start..][range],
            #[cfg(unix)]
            Place::File(_) => &buffer[..range.len()],
        }
    }

    /// The lines that begin in a part of the text, and where the first of them begins. The last may end behind the part.
    ///
    /// Parts that follow each other give each line once, and a long line is read by one of them only.
    pub(crate) fn lines<'b>(
        &'b self,
        part: Range<usize>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<(usize, &'b [u8]), FormatError> {
        // A line begins behind the end of another, or at the start of the text.
        let from = part.start.saturating_sub(1);
        let mut overhang = OVERHANG;
        let (loaded, lines) = loop {
            let loaded = from..part.end.saturating_add(overhang).min(self.len);
            self.load(loaded.clone(), buffer)?;
            let block = self.loaded(loaded.clone(), buffer);
            let last = part.end - 1 - from;
            let first =
                if part.start == 0 { Some(0) } else { memchr::memchr(b'\n', &block[..last]).map(|k| k + 1) };
            let Some(first) = first else {
                break (loaded, last..last);
            };
            match memchr::memchr(b'\n', &block[last..]) {
                Some(k) => break (loaded, first..last + k + 1),
                None if loaded.end == self.len => break (loaded, first..block.len()),
                None => overhang = overhang.saturating_mul(8),
            }
        };
        Ok((from + lines.start, &self.loaded(loaded, buffer)[lines]))
    }

    /// The line that a byte is in, counted from 1.
    pub(crate) fn line_of(&self, at: usize) -> Result<u64, FormatError> {
        let mut buffer = Vec::new();
        let mut line = 1;
        for start in (0..at).step_by(BLOCK) {
            let block = self.block(start..at.min(start + BLOCK), &mut buffer)?;
            line += memchr::memchr_iter(b'\n', block).count() as u64;
        }
        Ok(line)
    }
}

/// Everything a reader gives, or an error where that is more than the limit.
pub(crate) fn read_within(reader: impl Read, limit: u64) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| FormatError::Compressed { what: e.to_string() })?;
    if bytes.len() as u64 > limit { Err(FormatError::Expansion { limit }) } else { Ok(bytes) }
}

/// Compressed input that reports how much of it has been consumed.
struct Reporting<'a> {
    source: &'a Source<'a>,
    done: usize,
    options: &'a ReadOptions<'a>,
}

impl Read for Reporting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.copy(self.done, buffer).map_err(std::io::Error::other)?;
        self.done += count;
        self.options.report(self.done as u64, self.source.len as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn both(bytes: &[u8], check: impl Fn(Source)) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        check(open(file.path(), |_| true, &ReadOptions::default()).unwrap());
        check(bytes.into());
    }

    #[test]
    fn parts_give_each_line_once() {
        let long = "x".repeat(3000);
        for text in [format!("a\n\nbc\n{long}\nd\n\n"), format!("\n{long}"), long.clone(), "ab\ncd".into()] {
            for length in [1, 2, 3, 100, 1000, 5000] {
                both(text.as_bytes(), |source| {
                    let mut found = Vec::new();
                    let mut buffer = Vec::new();
                    for start in (0..text.len()).step_by(length) {
                        let part = start..text.len().min(start + length);
                        let (at, lines) = source.lines(part.clone(), &mut buffer).unwrap();
                        assert!(lines.is_empty() || (part.contains(&at) && at == found.len()));
                        found.extend_from_slice(lines);
                    }
                    assert_eq!(found, text.as_bytes(), "parts of {length}");
                });
            }
        }
    }

    #[test]
    fn a_file_and_its_bytes_are_the_same_content() {
        let bytes: Vec<u8> =
            (0..2 * BLOCK + 17).map(|k| if k % 100 == 99 { b'\n' } else { (k % 251) as u8 }).collect();
        let bytes = [b"%%\n".as_slice(), &bytes].concat();
        let ends = |at: usize| bytes[..at].iter().filter(|&&b| b == b'\n').count() as u64;
        both(&bytes, |mut source| {
            assert_eq!(source.whole().unwrap(), bytes);
            assert_eq!(source.line_of(2 * BLOCK).unwrap(), 1 + ends(2 * BLOCK));
            assert_eq!(source.block(5..BLOCK + 9, &mut Vec::new()).unwrap(), &bytes[5..BLOCK + 9]);
            source.skip(3);
            assert_eq!(
                (source.len(), source.whole().unwrap()),
                (bytes.len() - 3, Cow::Borrowed(&bytes[3..]))
            );
        });
    }
}
