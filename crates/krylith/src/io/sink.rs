//! Files to write: the format from the name, compression, and the move into place.

use super::error::FormatError;
use super::source::Compression;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    MatrixMarket(Option<Compression>),
    Npz,
    Npy,
    Petsc,
}

impl Format {
    pub(crate) fn of_matrix(path: &Path) -> Result<Self, FormatError> {
        let endings = ".mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc, .bin, .dat";
        let format = Self::from_name(path).filter(|&f| f != Format::Npy);
        format.ok_or(FormatError::UnknownEnding { endings })
    }

    pub(crate) fn of_vector(path: &Path) -> Result<Self, FormatError> {
        let endings = ".mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npy, .petsc, .bin, .dat";
        let format = Self::from_name(path).filter(|&f| f != Format::Npz);
        format.ok_or(FormatError::UnknownEnding { endings })
    }

    fn from_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let endings = [
            (".mtx", Format::MatrixMarket(None)),
            (".mtx.gz", Format::MatrixMarket(Some(Compression::Gzip))),
            (".mtx.xz", Format::MatrixMarket(Some(Compression::Xz))),
            (".mtx.zst", Format::MatrixMarket(Some(Compression::Zstd))),
            (".npz", Format::Npz),
            (".npy", Format::Npy),
            (".petsc", Format::Petsc),
            (".bin", Format::Petsc),
            (".dat", Format::Petsc),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

/// Writes a file beside its place and moves it there when complete; what is no regular file is written directly.
pub(crate) fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let special = path.metadata().is_ok_and(|m| !m.is_file());
    let mut partial = path.as_os_str().to_owned();
    if !special {
        partial.push(".partial");
    }
    let partial = Path::new(&partial);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(partial)?);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out);
    if special {
        return written;
    }
    match written {
        Ok(()) => Ok(std::fs::rename(partial, path)?),
        Err(e) => {
            // The reason matters more than a leftover that cannot be removed.
            let _ = std::fs::remove_file(partial);
            Err(e)
        }
    }
}

/// Runs `write` on a stream that compresses into `out`.
pub(crate) fn compressed(
    out: &mut dyn Write,
    compression: Option<Compression>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    match compression {
        None => write(out),
        Some(Compression::Gzip) => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            write(&mut encoder)?;
            encoder.finish()?;
            Ok(())
        }
        Some(Compression::Xz) => {
            let mut encoder = liblzma::write::XzEncoder::new(out, 6);
            write(&mut encoder)?;
            encoder.finish()?;
            Ok(())
        }
        Some(Compression::Zstd) => {
            let mut encoder = zstd::Encoder::new(out, 3)?;
            write(&mut encoder)?;
            encoder.finish()?;
            Ok(())
        }
    }
}
