//! Compressed content: gzip, xz and zstd, each behind a cargo feature of its name. All three are on by default.

use super::error::FormatError;
use std::io::{Read, Write};

/// Memory that an xz decoder may take for its dictionary: four times what `xz -9` asks for.
#[cfg(feature = "xz")]
const XZ_MEMORY: u64 = 256 << 20;

/// Matrix text shrinks hardly more with higher presets, which take many times as long.
#[cfg(feature = "xz")]
const XZ_PRESET: u32 = 1;

/// Compression, recognised by the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    pub(crate) fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Its cargo feature, if this build has it.
    fn require(self) -> Result<(), FormatError> {
        let (feature, has) = match self {
            Compression::Gzip => ("gzip", cfg!(feature = "gzip")),
            Compression::Xz => ("xz", cfg!(feature = "xz")),
            Compression::Zstd => ("zstd", cfg!(feature = "zstd")),
        };
        if has { Ok(()) } else { Err(FormatError::WithoutFeature { feature }) }
    }

    /// The stream that expands `input`.
    pub(crate) fn reader<'r>(self, input: impl Read + 'r) -> Result<Box<dyn Read + 'r>, FormatError> {
        self.require()?;
        match self {
            #[cfg(feature = "gzip")]
            Compression::Gzip => Ok(Box::new(flate2::read::MultiGzDecoder::new(input))),
            #[cfg(feature = "xz")]
            Compression::Xz => {
                let concatenated = liblzma::stream::CONCATENATED;
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, concatenated);
                let stream = stream.map_err(std::io::Error::other)?;
                Ok(Box::new(liblzma::read::XzDecoder::new_stream(input, stream)))
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => Ok(Box::new(zstd::Decoder::new(input)?)),
            #[allow(unreachable_patterns, reason = "with all features there is no other")]
            _ => {
                drop(input);
                Ok(Box::new(std::io::empty()))
            }
        }
    }

    /// Runs `write` on a stream that compresses into `out`.
    pub(crate) fn write(
        self,
        out: &mut dyn Write,
        write: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.require()?;
        match self {
            #[cfg(feature = "gzip")]
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                write(&mut encoder)?;
                encoder.finish()?;
            }
            #[cfg(feature = "xz")]
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(out, XZ_PRESET);
                write(&mut encoder)?;
                encoder.finish()?;
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(out, 3)?;
                write(&mut encoder)?;
                encoder.finish()?;
            }
            #[allow(unreachable_patterns, reason = "with all features there is no other")]
            _ => write(out)?,
        }
        Ok(())
    }
}
