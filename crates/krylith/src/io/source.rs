//! The bytes of a file: mapped into memory, or expanded if it is compressed.
#![allow(unsafe_code)]

use super::error::FormatError;
use super::options::ReadOptions;
use memmap2::{Advice, Mmap};
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

/// Memory that an xz decoder may take for its dictionary: four times what `xz -9` asks for.
const XZ_MEMORY: u64 = 256 << 20;

/// The content of a file.
pub(crate) enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Compression, told from the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// Opens a file and expands it if it is compressed.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<Bytes, FormatError> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory).into());
    }
    if !file.metadata()?.is_file() {
        return expand(Bytes::Owned(read_stream(&mut file)?), options);
    }
    // SAFETY: the map is only read. No parser relies on a byte being the same when it is read a second time: each length or
    // index is copied out before it is checked and used. Should another program shorten the file meanwhile, the system ends
    // this process with SIGBUS, as it does for any program that maps files.
    let map = unsafe { Mmap::map(&file)? };
    // Only advice: the system may decline.
    let _ = map.advise(Advice::Sequential);
    expand(Bytes::Mapped(map), options)
}

/// What a pipe or a device gives, if its first bytes are of a known format: it may never end.
fn read_stream(stream: &mut impl Read) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    stream.take(64).read_to_end(&mut bytes)?;
    if !bytes.is_empty() && Compression::detect(&bytes).is_none() && !super::is_known(&bytes) {
        return Err(FormatError::UnknownFormat);
    }
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn expand(bytes: Bytes, options: &ReadOptions) -> Result<Bytes, FormatError> {
    let expanded = expand_slice(&bytes, options)?;
    Ok(expanded.map_or(bytes, Bytes::Owned))
}

/// Expands compressed bytes, within the limit of the options; `None` where they are not compressed.
pub(crate) fn expand_slice(bytes: &[u8], options: &ReadOptions) -> Result<Option<Vec<u8>>, FormatError> {
    let Some(compression) = Compression::detect(bytes) else {
        return Ok(None);
    };
    let limit = options.expanded_limit(bytes.len() as u64);
    let input = Reporting { bytes, done: 0, options };
    let expanded = match compression {
        Compression::Gzip => read_within(flate2::read::MultiGzDecoder::new(input), limit)?,
        Compression::Xz => {
            let concatenated = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, concatenated);
            let stream = stream.map_err(std::io::Error::other)?;
            read_within(liblzma::read::XzDecoder::new_stream(input, stream), limit)?
        }
        Compression::Zstd => read_within(zstd::Decoder::new(input)?, limit)?,
    };
    Ok(Some(expanded))
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
    bytes: &'a [u8],
    done: usize,
    options: &'a ReadOptions<'a>,
}

impl Read for Reporting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = (&self.bytes[self.done..]).read(buffer)?;
        self.done += count;
        self.options.report(self.done as u64, self.bytes.len() as u64);
        Ok(count)
    }
}
