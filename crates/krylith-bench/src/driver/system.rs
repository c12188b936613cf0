//! The matrix file that every driver reads; `peers/README.md` has its layout.

use crate::Failure;
use krylith::Csr;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Entries converted at once.
const BLOCK: usize = 1 << 16;

/// Writes a square matrix, and behind it b, unless that is A·1, which drivers compute themselves.
pub fn write(path: &Path, a: &Csr<f64>, b: Option<&[f64]>) -> Result<(), Failure> {
    let view = a.view();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&(a.nrows() as u64).to_le_bytes())?;
    out.write_all(&(a.nnz() as u64).to_le_bytes())?;
    put(&mut out, view.row_ptr(), |&p| (p as u64).to_le_bytes())?;
    put(&mut out, view.col_idx(), |&j| j.to_le_bytes())?;
    put(&mut out, view.values(), |&v| v.to_le_bytes())?;
    put(&mut out, b.unwrap_or_default(), |&v| v.to_le_bytes())?;
    Ok(out.flush()?)
}

fn put<T, const N: usize>(
    out: &mut impl Write,
    items: &[T],
    bytes: impl Fn(&T) -> [u8; N],
) -> Result<(), Failure> {
    let mut buffer = Vec::with_capacity(BLOCK * N);
    for block in items.chunks(BLOCK) {
        buffer.clear();
        block.iter().for_each(|item| buffer.extend_from_slice(&bytes(item)));
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// Reads a matrix back, and b where the file has one.
pub fn read(path: &Path) -> Result<(Csr<f64>, Option<Vec<f64>>), Failure> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let length = file.metadata()?.len();
    let mut input = BufReader::with_capacity(1 << 20, file);
    let head = get(&mut input, 2, u64::from_le_bytes)?;
    let [n, nnz] = [head[0], head[1]];
    let expected = n.checked_add(3).and_then(|r| r.checked_mul(8)).zip(nnz.checked_mul(12));
    let expected = expected.and_then(|(r, e)| r.checked_add(e));
    let has_b = n > 0 && expected.and_then(|e| e.checked_add(8 * n)) == Some(length);
    if expected != Some(length) && !has_b {
        return Err(
            format!("{}: {length} bytes do not fit {n} rows and {nnz} entries", path.display()).into()
        );
    }
    let (n, nnz) = (usize::try_from(n)?, usize::try_from(nnz)?);
    let row_ptr = get(&mut input, n + 1, |b| u64::from_le_bytes(b) as usize)?;
    let col_idx = get(&mut input, nnz, u32::from_le_bytes)?;
    let values = get(&mut input, nnz, f64::from_le_bytes)?;
    let b = if has_b { Some(get(&mut input, n, f64::from_le_bytes)?) } else { None };
    Ok((Csr::new(n, n, row_ptr, col_idx, values)?, b))
}

fn get<T, const N: usize>(
    input: &mut impl Read,
    count: usize,
    value: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, Failure> {
    let mut items = Vec::with_capacity(count);
    let mut buffer = vec![0u8; BLOCK * N];
    while items.len() < count {
        let block = &mut buffer[..N * BLOCK.min(count - items.len())];
        input.read_exact(block)?;
        items.extend(block.as_chunks::<N>().0.iter().map(|&bytes| value(bytes)));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::gallery::Problem;

    #[test]
    fn a_matrix_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csr");
        let a = "convection3d:7".parse::<Problem>().unwrap().generate().unwrap();
        write(&path, &a, None).unwrap();
        assert_eq!(path.metadata().unwrap().len() as usize, 8 * (a.nrows() + 3) + 12 * a.nnz());
        assert_eq!(read(&path).unwrap(), (a, None));
    }

    #[test]
    fn a_right_hand_side_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csr");
        let a = "convection3d:3".parse::<Problem>().unwrap().generate().unwrap();
        let b: Vec<f64> = (0..a.nrows()).map(|i| i as f64 - 0.5).collect();
        write(&path, &a, Some(&b)).unwrap();
        assert_eq!(read(&path).unwrap(), (a, Some(b)));
    }

    #[test]
    fn a_file_of_another_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csr");
        let a = "poisson2d:5".parse::<Problem>().unwrap().generate().unwrap();
        write(&path, &a, None).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.pop();
        std::fs::write(&path, bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("do not fit"));
    }
}
