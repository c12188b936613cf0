//! Files to write: the format from the name, compression, and the move into place.

use super::compression::Compression;
use super::error::FormatError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    MatrixMarket(Option<Compression>),
    Npz,
    Npy,
    Petsc,
    /// One number per line.
    Plain,
}

impl Format {
    pub(crate) fn of_matrix(path: &Path) -> Result<Self, FormatError> {
        let endings = ".mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc, .bin, .dat";
        let format = Self::from_name(path).filter(|f| !matches!(f, Format::Npy | Format::Plain));
        format.ok_or(FormatError::UnknownEnding { endings })
    }

    pub(crate) fn of_vector(path: &Path) -> Result<Self, FormatError> {
        let endings = ".mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npy, .txt, .petsc, .bin, .dat";
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
            (".txt", Format::Plain),
            (".petsc", Format::Petsc),
            (".bin", Format::Petsc),
            (".dat", Format::Petsc),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

/// Writes a file beside its place and moves it there when complete, with the permissions of the file it replaces; a link is
/// followed, and what is no regular file is written directly.
pub(crate) fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let old = path.metadata().ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        return write(&mut out).and_then(|()| Ok(out.flush()?));
    }
    let place = if old.is_some() { path.canonicalize()? } else { path.to_owned() };
    let (partial, file) = create_beside(&place)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = write(&mut out).and_then(|()| {
        out.flush()?;
        if let Some(old) = old {
            out.get_ref().set_permissions(old.permissions())?;
        }
        drop(out);
        Ok(std::fs::rename(&partial, &place)?)
    });
    if written.is_err() {
        // The reason matters more than a leftover that cannot be removed.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// A new file in the folder of `place`, under a name that nothing had.
fn create_beside(place: &Path) -> Result<(PathBuf, File), FormatError> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.partial", std::process::id()));
        let partial = place.with_file_name(name);
        match File::create_new(&partial) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => return Ok((partial, created?)),
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
        Some(compression) => compression.write(out, write),
    }
}
