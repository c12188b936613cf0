//! Files that another program changes while they are read: an error or the matrix, never the end of the process.

use krylith::gallery::Problem;
use krylith::io::{self, FormatError, ReadOptions};
use krylith::{Csr, Pattern};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Several megabytes of text.
fn matrix() -> Csr<f64> {
    "atmosmod:40".parse::<Problem>().unwrap().generate().unwrap()
}

fn shorten(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

fn is_valid(a: &Csr<f64>) -> bool {
    let p = a.pattern();
    Pattern::new(p.nrows(), p.ncols(), p.row_ptr().to_vec(), p.col_idx().to_vec()).is_ok()
}

/// Shortened after the first piece was read, whatever thread read it.
#[test]
fn a_text_shortened_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let a = matrix();
    for remaining in [0, 1000, 3 << 20] {
        io::write_matrix(&path, &a).unwrap();
        let length = path.metadata().unwrap().len();
        assert!(length > 10 << 20);
        let progress = |_, _| shorten(&path, remaining);
        let options = ReadOptions { progress: Some(&progress), ..ReadOptions::default() };
        let error = io::read_matrix_with(&path, &options).unwrap_err();
        match error.source {
            FormatError::Shortened { at, length: expected } => {
                assert!(at >= remaining && at < length && expected == length, "{at} of {expected}");
            }
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains("was shortened while it was read"), "{error}");
    }
}

/// What is appended to a file after it was opened is not read.
#[test]
fn a_text_that_grows_while_it_is_read_keeps_its_first_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let a = matrix();
    io::write_matrix(&path, &a).unwrap();
    let progress = |_, _| {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"1 1 7\n").unwrap();
    };
    let options = ReadOptions { progress: Some(&progress), ..ReadOptions::default() };
    assert_eq!(io::read_matrix_with(&path, &options).unwrap(), a);
    // Now it has more entries than its header announces.
    assert!(matches!(io::read_matrix(&path).unwrap_err().source, FormatError::Line { .. }));
}

/// Another thread cuts the end of the file off and writes it again, over and over. What is read then may be a mixture, as with
/// any program that reads; it must be a matrix or an error, and the file must be readable when it is complete.
#[test]
fn files_of_every_format_may_be_rewritten_while_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let a = "atmosmod:24".parse::<Problem>().unwrap().generate().unwrap();
    for ending in ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npz", "petsc"] {
        let path = folder.path().join(format!("a.{ending}"));
        io::write_matrix(&path, &a).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file: File = OpenOptions::new().write(true).open(&path).unwrap();
                for k in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let cut = bytes.len() * (k % 8) / 8;
                    file.set_len(cut as u64).unwrap();
                    file.seek(SeekFrom::Start(cut as u64)).unwrap();
                    file.write_all(&bytes[cut..]).unwrap();
                    std::thread::sleep(Duration::from_micros(100 * (k as u64 % 40)));
                }
            });
            let started = Instant::now();
            let mut valid = true;
            while valid && started.elapsed() < Duration::from_millis(500) {
                valid = io::read_matrix(&path).map_or(true, |read| is_valid(&read));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(valid, "{ending}");
        });
        assert_eq!(io::read_matrix(&path).unwrap(), a, "{ending}");
    }
}
