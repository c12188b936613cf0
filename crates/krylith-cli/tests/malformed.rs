//! Files that are not what they should be: each gives the expected words and exit status 2.

use std::process::Command;

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";
const SKEW: &str = "%%MatrixMarket matrix coordinate real skew-symmetric\n";

/// Name, content, and what the message must contain.
fn text_cases() -> Vec<(&'static str, String, &'static str)> {
    let with = |head: &str, rest: &str| format!("{head}{rest}");
    vec![
        ("empty file", String::new(), "the file is empty"),
        ("no banner", "2 2 1\n1 1 1\n".into(), "unknown format"),
        ("half a banner", "%%MatrixMarket matrix\n1 1 0\n".into(), "line 1: the first line must read"),
        ("a comment first", "% hello\n1 1 1\n1 1 1\n".into(), "line 1: the first line must read"),
        (
            "six words",
            "%%MatrixMarket matrix coordinate real general x\n".into(),
            "line 1: the first line must read",
        ),
        (
            "not utf-8 banner",
            "%%MatrixMarket m\u{fffd}trix coordinate real general\n".into(),
            "line 1: unknown object",
        ),
        ("a tensor", "%%MatrixMarket tensor coordinate real general\n".into(), "unknown object `tensor`"),
        ("unknown layout", "%%MatrixMarket matrix csr real general\n".into(), "unknown layout `csr`"),
        ("unknown field", "%%MatrixMarket matrix coordinate float general\n".into(), "unknown field `float`"),
        (
            "complex",
            "%%MatrixMarket matrix coordinate complex general\n".into(),
            "complex matrices are not supported",
        ),
        (
            "hermitian",
            "%%MatrixMarket matrix coordinate real hermitian\n".into(),
            "a real one is called symmetric",
        ),
        (
            "unknown symmetry",
            "%%MatrixMarket matrix coordinate real upper\n".into(),
            "unknown symmetry `upper`",
        ),
        ("pattern array", "%%MatrixMarket matrix array pattern general\n".into(), "unknown field `pattern`"),
        (
            "skew pattern",
            "%%MatrixMarket matrix coordinate pattern skew-symmetric\n".into(),
            "not of a pattern",
        ),
        (
            "an array",
            "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n".into(),
            "holds a dense array",
        ),
        ("no sizes", with(GENERAL, "% only comments\n"), "line 3: the file ends before the line of sizes"),
        (
            "two sizes",
            with(GENERAL, "2 2\n1 1 1\n"),
            "line 2: the line of sizes must hold three whole numbers",
        ),
        ("four sizes", with(GENERAL, "2 2 1 1\n1 1 1\n"), "line 2: the line of sizes"),
        ("negative size", with(GENERAL, "-2 2 1\n1 1 1\n"), "line 2: the line of sizes"),
        ("fractional size", with(GENERAL, "2.0 2 1\n1 1 1\n"), "line 2: the line of sizes"),
        (
            "overflowing size",
            with(GENERAL, "99999999999999999999999 2 1\n1 1 1\n"),
            "line 2: the line of sizes",
        ),
        (
            "huge count",
            with(GENERAL, "9 9 18446744073709551615\n1 1 1\n"),
            "the size of the file allows at most 1",
        ),
        ("huge rows", with(GENERAL, "4294967297 9 1\n1 1 1\n"), "4294967297 rows exceed the limit"),
        ("mostly empty", with(GENERAL, "4000000000 9 1\n1 1 1\n"), "--max-empty-rows"),
        ("symmetric rectangle", with(SYMMETRIC, "2 3 1\n1 1 1\n"), "must be square, this one is 2 x 3"),
        ("row zero", with(GENERAL, "2 2 1\n0 1 1\n"), "line 3: row 0 is outside of 1..=2"),
        ("row past the end", with(GENERAL, "2 2 1\n3 1 1\n"), "line 3: row 3 is outside of 1..=2"),
        ("column past the end", with(GENERAL, "2 2 1\n1 3 1\n"), "line 3: column 3 is outside of 1..=2"),
        (
            "overflowing row",
            with(GENERAL, "2 2 1\n99999999999999999999999 1 1\n"),
            "line 3: row 18446744073709551615",
        ),
        ("negative row", with(GENERAL, "2 2 1\n-1 1 1\n"), "line 3: the row index is not a whole number"),
        (
            "fractional column",
            with(GENERAL, "2 2 1\n1 1.5 1\n"),
            "line 3: the column index is not a whole number",
        ),
        ("a word for a row", with(GENERAL, "2 2 1\none 1 1\n"), "line 3: the row index"),
        ("column missing", with(GENERAL, "2 2 1\n1\n  %\n"), "line 3: the column index"),
        ("value missing", with(GENERAL, "2 2 1\n1 1\n     "), "line 3: the value is missing"),
        (
            "value is a word",
            with(GENERAL, "2 2 1\n1 1 x\n"),
            "line 3: the value is missing or not a finite real",
        ),
        (
            "value is NaN",
            with(GENERAL, "2 2 1\n1 1 nan\n"),
            "line 3: the value is missing or not a finite real",
        ),
        ("value is infinite", with(GENERAL, "2 2 1\n1 1 -inf\n"), "line 3: the value"),
        ("value overflows", with(GENERAL, "2 2 1\n1 1 1e999\n"), "line 3: the value"),
        ("text behind", with(GENERAL, "2 2 1\n1 1 1 1\n"), "line 3: unexpected text after the last number"),
        ("two values", with(GENERAL, "2 2 1\n1 1 1,5\n"), "line 3: unexpected text after the last number"),
        ("too few", with(GENERAL, "2 2 2\n1 1 1\n%%%%%%%%%%%%%\n"), "the file ends after 1 of 2 entries"),
        (
            "too many",
            with(GENERAL, "2 2 1\n1 1 1\n% note\n\n2 2 1\n"),
            "line 6: more entries than the 1 announced",
        ),
        (
            "skew diagonal",
            with(SKEW, "2 2 1\n2 2 1\n"),
            "line 3: a skew-symmetric matrix has no entries on the diagonal",
        ),
        (
            "both triangles",
            with(SYMMETRIC, "2 2 2\n2 1 1\n1 2 1\n"),
            "line 4: a symmetric matrix lists one triangle",
        ),
        (
            "fraction in integers",
            "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n".into(),
            "line 3: the value is missing or not a finite integer",
        ),
        (
            "value in a pattern",
            "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n".into(),
            "line 3: unexpected text",
        ),
    ]
}

fn petsc(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// A NumPy array.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// A SciPy archive of one entry 1.0, with the index arrays given.
fn npz(format: &str, shape: [i64; 2], arrays: &[(&str, &[i32])]) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut add = |name: &str, file: Vec<u8>| {
        zip.start_file(format!("{name}.npy"), stored).unwrap();
        zip.write_all(&file).unwrap();
    };
    let shape: Vec<u8> = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
    add("format", npy("|S3", "()", format.as_bytes()));
    add("shape", npy("<i8", "(2,)", &shape));
    add("data", npy("<f8", "(1,)", &1.0f64.to_le_bytes()));
    for (name, numbers) in arrays {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        add(name, npy("<i4", &format!("({},)", numbers.len()), &bytes));
    }
    zip.finish().unwrap().into_inner()
}

/// Archives whose checksums are right and whose arrays are not.
fn npz_cases() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let many = 4_000_000_000;
    vec![
        ("npz: no indptr", npz("csr", [1, 1], &[]), "member `indptr`"),
        ("npz: short indptr", npz("csr", [2, 1], &[("indptr", &[0, 1])]), "indptr has 2 entries for 2 rows"),
        ("npz: negative indptr", npz("csr", [1, 1], &[("indptr", &[0, -1])]), "indptr has a negative entry"),
        (
            "npz: index past the end",
            npz("csr", [1, 1], &[("indptr", &[0, 1]), ("indices", &[1])]),
            "`indices` number 0 (counted from 0) is outside of 0..1",
        ),
        (
            "npz: more indices than values",
            npz("csr", [1, 2], &[("indptr", &[0, 2]), ("indices", &[0, 1])]),
            "values: length 1, expected 2",
        ),
        (
            "npz: many empty rows by columns",
            npz("csc", [many, 1], &[("indptr", &[0, 1]), ("indices", &[0])]),
            "4000000000 rows for 1 entries",
        ),
        ("npz: many empty rows", npz("coo", [many, 1], &[("row", &[0]), ("col", &[0])]), "--max-empty-rows"),
        ("npz: negative shape", npz("csr", [-1, 1], &[]), "its shape is not two dimensions"),
        ("npz: blocks", npz("bsr", [1, 1], &[]), "`bsr` is not supported; convert it to csr"),
    ]
}

fn binary_cases() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    vec![
        ("noise", vec![0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3], "unknown format"),
        ("a zip without arrays", b"PK\x03\x04 and nothing more".to_vec(), "not a valid npz file"),
        ("a NumPy array", b"\x93NUMPY\x01\x00".to_vec(), "holds a NumPy array"),
        ("half a gzip", vec![0x1f, 0x8b, 8, 0, 0, 0], "the compressed data are damaged or cut short"),
        ("half an xz", b"\xfd7zXZ\x00\x00".to_vec(), "the compressed data are damaged or cut short"),
        ("half a zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0x24], "the compressed data are damaged or cut short"),
        ("PETSc: no sizes", petsc(&[1_211_216, 2]), "PETSc binary file: it ends before"),
        ("PETSc: dense", petsc(&[1_211_216, 2, 2, -1]), "a dense PETSc matrix"),
        ("PETSc: negative rows", petsc(&[1_211_216, -2, 2, 0]), "the number of rows is -2"),
        ("PETSc: huge", petsc(&[1_211_216, i32::MAX, 2, i32::MAX]), "it ends before 2147483647 announced"),
        (
            "PETSc: too long a row",
            petsc(&[1_211_216, 1, 1, 1, 2, 0, 0, 0]),
            "more than the 1 entries announced",
        ),
        ("PETSc: too short a row", petsc(&[1_211_216, 1, 1, 1, 0, 0, 0, 0]), "row_ptr ends with 0"),
        (
            "PETSc: column past the end",
            petsc(&[1_211_216, 1, 1, 1, 1, 5, 0, 0]),
            "row 1, column 6 (both counted from 1) is outside of the 1 columns",
        ),
        (
            "PETSc: negative column",
            petsc(&[1_211_216, 1, 1, 1, 1, -1, 0, 0]),
            "the column of entry 0 (counted from 0) is negative",
        ),
        ("PETSc: a vector", petsc(&[1_211_214, 1, 0, 0]), "a sparse matrix is needed"),
    ]
}

#[test]
fn every_malformed_file_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.bin");
    let text = text_cases().into_iter().map(|(name, text, expected)| (name, text.into_bytes(), expected));
    let cases: Vec<_> = text.chain(binary_cases()).chain(npz_cases()).collect();
    let mut wrong = Vec::new();
    for (name, content, expected) in cases {
        std::fs::write(&path, content).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_krylith")).arg("info").arg(&path).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) || !message.contains(expected) {
            wrong.push(format!(
                "{name}: status {:?}, {message:?} should contain {expected:?}",
                output.status.code()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
