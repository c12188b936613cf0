//! Compiled kernels on disk, so that a program compiles once per device and driver.
//!
//! A file is named by a hash of everything its content depends on: source, options, device, driver. It holds a mark, the length and a
//! hash of the binary, and the binary. A file that is not whole counts as missing. Where nothing can be written, nothing is kept.
//!
//! The folder is `$KRYLITH_CACHE_DIR`, or `krylith` in `$XDG_CACHE_HOME` or `~/.cache`; an empty `KRYLITH_CACHE_DIR` turns it off.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const MARK: &[u8; 8] = b"krylith1";
const HEAD: usize = 24;
/// The largest file that is read: a cubin of all kernels has a few hundred kilobytes.
const LARGEST: u64 = 1 << 28;

/// Where files are kept; `None` where nothing is.
pub(crate) fn folder() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("KRYLITH_CACHE_DIR") {
        return (!given.is_empty()).then(|| given.into());
    }
    let home = || {
        std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".cache"))
    };
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    base.or_else(home).map(|base| base.join("krylith"))
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// The file of a key.
fn file(folder: &Path, key: &str) -> PathBuf {
    // Two hashes with different starts: 128 bits tell keys apart.
    folder.join(format!("{:016x}{:016x}.bin", hash(key.as_bytes(), OFFSET), hash(key.as_bytes(), !OFFSET)))
}

/// The binary that was stored for a key.
pub(crate) fn find(folder: &Path, key: &str) -> Option<Vec<u8>> {
    let path = file(folder, key);
    if fs::metadata(&path).ok()?.len() > LARGEST {
        return None;
    }
    let mut bytes = fs::read(path).ok()?;
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let whole = bytes.starts_with(MARK)
        && number(8) == Some((bytes.len() as u64).checked_sub(HEAD as u64)?)
        && number(16) == Some(hash(&bytes[HEAD..], OFFSET));
    whole.then(|| bytes.split_off(HEAD))
}

/// Stores a binary; a reader sees the old file or the whole new one.
pub(crate) fn store(folder: &Path, key: &str, binary: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = file(folder, key);
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(MARK)?;
        file.write_all(&(binary.len() as u64).to_le_bytes())?;
        file.write_all(&hash(binary, OFFSET).to_le_bytes())?;
        file.write_all(binary)
    });
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_comes_back_and_a_damaged_file_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(find(folder, "a"), None);
        store(folder, "a", b"binary").unwrap();
        store(folder, "b", b"").unwrap();
        assert_eq!(find(folder, "a").as_deref(), Some(&b"binary"[..]));
        assert_eq!(find(folder, "b").as_deref(), Some(&b""[..]));
        let path = file(folder, "a");
        let whole = fs::read(&path).unwrap();
        for (what, damaged) in [
            ("empty", Vec::new()),
            ("short", whole[..whole.len() - 1].to_vec()),
            ("head only", whole[..10].to_vec()),
            ("another byte", [&whole[..HEAD], b"bInary"].concat()),
            ("another mark", [&b"krylith0"[..], &whole[8..]].concat()),
        ] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(find(folder, "a"), None, "{what}");
        }
        store(folder, "a", b"new").unwrap();
        assert_eq!(find(folder, "a").as_deref(), Some(&b"new"[..]));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2, "no temporary file is left");
    }
}
