//! Files: what is written reads back to the same bits, in every format; what Krylith's own writers never write is read too.

use krylith::io::{self, FormatError, LineFault, ReadOptions, matrix_market, plain};
use krylith::{Csr, MatrixError};
use proptest::prelude::*;
use std::io::Write;

const MATRIX_ENDINGS: [&str; 6] = ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npz", "petsc"];
const VECTOR_ENDINGS: [&str; 7] = ["mtx", "mtx.gz", "mtx.xz", "mtx.zst", "npy", "txt", "petsc"];

fn parse(text: &str) -> Result<Csr<f64>, FormatError> {
    matrix_market::parse_matrix(text.as_bytes(), &ReadOptions::default())
}

fn line_fault(text: &str) -> (u64, LineFault) {
    match parse(text).unwrap_err() {
        FormatError::Line { line, fault } => (line, fault),
        other => panic!("{other}"),
    }
}

/// Any finite numbers, subnormal and signed zero among them.
fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::*;
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

fn matrix() -> impl Strategy<Value = Csr<f64>> {
    (0usize..12, 0usize..12, any::<bool>()).prop_flat_map(|(m, n, square)| {
        let (m, n) = if square { (m, m) } else { (m, n) };
        let count = if m * n == 0 { 0..1 } else { 0..40 };
        let one = (0..m.max(1) as u32, 0..n.max(1) as u32, number());
        (prop::collection::vec(one, count), 0..3).prop_map(move |(mut e, form)| {
            e.sort_by_key(|e| (e.0, e.1));
            e.dedup_by_key(|e| (e.0, e.1));
            if square && form > 0 {
                // One triangle and its mirror image, or its negative.
                e.retain(|e| e.0 > e.1 || (form == 1 && e.0 == e.1));
                let sign = if form == 1 { 1.0 } else { -1.0 };
                let mirrored: Vec<_> =
                    e.iter().filter(|e| e.0 != e.1).map(|&(i, j, v)| (j, i, sign * v)).collect();
                e.extend(mirrored);
            }
            let rows: Vec<u32> = e.iter().map(|e| e.0).collect();
            let columns: Vec<u32> = e.iter().map(|e| e.1).collect();
            let values: Vec<f64> = e.iter().map(|e| e.2).collect();
            Csr::from_triplets(m, n, &rows, &columns, &values).unwrap()
        })
    })
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn matrices_read_back_to_the_same_bits(a in matrix()) {
        let folder = tempfile::tempdir().unwrap();
        for ending in MATRIX_ENDINGS {
            let path = folder.path().join(format!("a.{ending}"));
            io::write_matrix(&path, &a).unwrap();
            let b = io::read_matrix(&path).unwrap();
            prop_assert_eq!(a.pattern(), b.pattern(), "{}", ending);
            prop_assert_eq!(bits(a.values()), bits(b.values()), "{}", ending);
        }
    }

    #[test]
    fn vectors_read_back_to_the_same_bits(x in prop::collection::vec(number(), 0..50)) {
        let folder = tempfile::tempdir().unwrap();
        for ending in VECTOR_ENDINGS {
            let path = folder.path().join(format!("x.{ending}"));
            io::write_vector(&path, &x).unwrap();
            prop_assert_eq!(bits(&x), bits(&io::read_vector(&path).unwrap()), "{}", ending);
        }
    }

    /// Text of the right letters in any order: an error or a matrix, never a panic.
    #[test]
    fn near_misses_do_not_panic(body in "[0-9 .eE+\\-\n%dD\r\tna]{0,200}", form in 0..3usize, field in 0..3usize) {
        let form = ["general", "symmetric", "skew-symmetric"][form];
        let field = ["real", "integer", "pattern"][field];
        let _ = parse(&format!("%%MatrixMarket matrix coordinate {field} {form}\n{body}"));
        let _ = parse(&format!("%%MatrixMarket matrix coordinate {field} {form}\n9 9 3\n{body}"));
        let text = format!("%%MatrixMarket matrix array real general\n4 1\n{body}");
        let _ = matrix_market::parse_vector(text.as_bytes(), &ReadOptions::default());
    }

    /// The same of plain text.
    #[test]
    fn near_misses_of_plain_text_do_not_panic(text in "[0-9 .,;eE+\\-\n%#dD\r\tna]{0,200}") {
        let _ = plain::parse_vector(text.as_bytes());
        let _ = io::parse_as_vector(text.as_bytes(), &ReadOptions::default());
    }

    /// Cut anywhere and with any byte changed, binary files give an error or a matrix.
    #[test]
    fn damaged_binary_files_do_not_panic(a in matrix(), cut in 0.0..1.0, at in 0.0..1.0, byte: u8) {
        let folder = tempfile::tempdir().unwrap();
        for ending in MATRIX_ENDINGS {
            let path = folder.path().join(format!("a.{ending}"));
            io::write_matrix(&path, &a).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let position = (at * bytes.len() as f64) as usize;
            bytes[position] = byte;
            let _ = io::parse(&bytes, &ReadOptions::default());
            bytes.truncate((cut * bytes.len() as f64) as usize);
            let _ = io::parse(&bytes, &ReadOptions::default());
        }
    }
}

#[test]
fn every_form_by_hand() {
    let general =
        parse("%%MatrixMarket matrix coordinate integer general\n% note\n\n2 3 2\n2 3 -7\n1 1 4\n").unwrap();
    assert_eq!((general.get(1, 2), general.get(0, 0), general.nnz()), (-7.0, 4.0, 2));
    let upper = parse("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 0.5\n1 1 1e0\n").unwrap();
    assert_eq!((upper.get(0, 1), upper.get(1, 0), upper.nnz()), (0.5, 0.5, 3));
    let skew = parse("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n").unwrap();
    assert_eq!((skew.get(1, 0), skew.get(0, 1)), (3.0, -3.0));
    let pattern = parse("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n").unwrap();
    assert_eq!((pattern.get(0, 0), pattern.get(0, 1), pattern.nnz()), (1.0, 1.0, 3));
    // Words in any case, carriage returns, tabs, comments between entries, a last line without end, Fortran's exponents.
    let loose =
        "%%matrixmarket MATRIX Coordinate REAL General\r\n2 2 2\r\n1\t1  1.5D+1 \r\n% here\r\n\r\n  2 2 -2d0";
    let loose = parse(loose).unwrap();
    assert_eq!((loose.get(0, 0), loose.get(1, 1)), (15.0, -2.0));
    let duplicates =
        parse("%%MatrixMarket matrix coordinate real general\n1 1 3\n1 1 1\n1 1 2\n1 1 4\n").unwrap();
    assert_eq!((duplicates.nnz(), duplicates.get(0, 0)), (1, 7.0));
    assert_eq!(parse("%%MatrixMarket matrix coordinate real general\n0 0 0\n").unwrap().nrows(), 0);
}

#[test]
fn faults_carry_the_line_even_deep_in_a_large_file() {
    let mut text =
        String::from("%%MatrixMarket matrix coordinate real general\n% about 7 MB\n400000 400000 400000\n");
    for i in 1..=400_000 {
        text.push_str(&format!("{i} {i} 1.25e0\n"));
    }
    assert!(parse(&text).is_ok());
    let bad = text.replace("\n300000 300000 1.25e0\n", "\n300000 300000 1.25e0 7\n");
    assert_eq!(line_fault(&bad), (300_003, LineFault::Trailing));
    // Two faults: the first is reported, whoever finds it first.
    let bad = bad.replace("\n7 7 ", "\n7 seven ");
    assert_eq!(line_fault(&bad), (10, LineFault::Index { what: "column" }));
    assert_eq!(line_fault(&format!("{text}1 1 1\n")), (400_004, LineFault::TooMany { declared: 400_000 }));
    let short = text.replace("\n400000 400000 1.25e0\n", "\n");
    assert_eq!(line_fault(&short), (400_002, LineFault::TooFew { found: 399_999, declared: 400_000 }));

    // An entry too many on line 4 before garbage on line 5; below, the other triangle before garbage in the next line.
    let excess = line_fault("%%MatrixMarket matrix coordinate real general\n9 9 1\n1 1 1\n2 2 1\nx\n");
    assert_eq!(excess, (4, LineFault::TooMany { declared: 1 }));

    let mut text = text.replace("real general", "real symmetric").replace("\n3 3 ", "\n3 2 ");
    assert!(parse(&text).is_ok());
    text = text.replace("\n399999 399999 ", "\n399999 400000 ");
    assert_eq!(line_fault(&text), (400_002, LineFault::BothTriangles));
    text = text.replace("\n400000 400000 1.25e0", "\nx 400000 1.25e0");
    assert_eq!(line_fault(&text), (400_002, LineFault::BothTriangles));
}

#[test]
fn plain_text_by_hand() {
    let options = ReadOptions::default();
    for (text, expected) in [
        ("1\n-2.5e-3\n", &[1.0, -2.5e-3][..]),
        ("# a comment\r\n\r\n  1.5D+1 \r\n% another\r\n\t-0", &[15.0, -0.0]),
        ("% not a banner\n3\n", &[3.0]),
        ("%% nor this\n3\n", &[3.0]),
        ("\u{feff}7\n", &[7.0]),
        ("\n\n", &[]),
    ] {
        let vector = io::parse_as_vector(text.as_bytes(), &options).unwrap();
        assert_eq!(bits(&vector), bits(expected), "{text:?}");
    }
    // Matrix Market is still recognised, and a banner that is nearly one is not taken for a comment.
    let banner = "%%MatrixMarket matrix array real general\n2 1\n3\n4\n";
    assert_eq!(io::parse_as_vector(banner.as_bytes(), &options).unwrap(), [3.0, 4.0]);
    let error =
        io::parse_as_vector(b"%%MatrixMarkt matrix array real general\n1 1\n3\n", &options).unwrap_err();
    assert!(matches!(error, FormatError::Line { line: 1, fault: LineFault::Banner }), "{error}");
    // Words are no vector, and numbers alone are no matrix.
    assert!(matches!(io::parse_as_vector(b"hello\n", &options), Err(FormatError::UnknownFormat)));
    assert!(matches!(io::parse(b"1\n2\n", &options), Err(FormatError::UnknownFormat)));
}

#[test]
fn faults_of_plain_text_carry_the_line() {
    let fault = |text: &str| match plain::parse_vector(text.as_bytes()).unwrap_err() {
        FormatError::Line { line, fault } => (line, fault),
        other => panic!("{other}"),
    };
    for several in ["1 2", "1\t2", "1,5", "1, 2", "1;2", "1 -2", "1,"] {
        assert_eq!(fault(&format!("# head\n1\n\n{several}\n2\n")), (4, LineFault::Several), "{several:?}");
    }
    assert!(LineFault::Several.to_string().contains("one number per line is needed"));
    for word in ["x", "nan", "inf", "-infinity", "1e999", ",1", "-"] {
        assert_eq!(fault(&format!("1\n{word}\n")), (2, LineFault::Value { field: "real" }), "{word:?}");
    }
    for trailing in ["1x", "1 m", "1 # one", "1.5.2", "1/2"] {
        assert_eq!(fault(trailing), (1, LineFault::Trailing), "{trailing:?}");
    }
}

/// What text has no word for is not written, and no file is left.
#[test]
fn plain_text_has_finite_numbers_only() {
    let folder = tempfile::tempdir().unwrap();
    let error = io::write_vector(folder.path().join("x.txt"), &[1.0, f64::NAN]).unwrap_err();
    assert!(error.to_string().contains("entry (2, 1) is NaN; text has finite numbers only"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let mut text = Vec::new();
    plain::write_vector(&mut text, &[1.0, -0.0, 1e300, 0.1]).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "1\n-0\n1e+300\n0.1\n");
}

/// A reader of streams takes what a reader of files takes, and leaves a stream alone that is of no format.
#[test]
fn streams() {
    let options = ReadOptions::default();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"1\n2\n").unwrap();
    assert_eq!(io::read_vector_from(&gzip.finish().unwrap()[..], &options).unwrap(), [1.0, 2.0]);
    let text = &b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n"[..];
    assert_eq!(io::read_matrix_from(text, &options).unwrap().values(), [5.0]);
    assert!(matches!(io::read_matrix_from(std::io::repeat(0), &options), Err(FormatError::UnknownFormat)));
    assert!(matches!(io::read_vector_from(std::io::repeat(b'y'), &options), Err(FormatError::UnknownFormat)));
    assert!(matches!(io::read_vector_from(std::io::empty(), &options), Err(FormatError::Empty)));
}

#[test]
fn headers_do_not_allocate_what_the_file_cannot_hold() {
    let huge = line_fault("%%MatrixMarket matrix coordinate real general\n10 10 999999999999\n1 1 1\n");
    assert!(matches!(huge, (2, LineFault::TooManyDeclared { declared: 999_999_999_999, .. })));
    let empty = line_fault("%%MatrixMarket matrix coordinate real general\n4000000000 4000000000 1\n1 1 1\n");
    assert_eq!(empty, (2, LineFault::MostlyEmpty { rows: 4_000_000_000, entries: 1 }));
    let wide = parse("%%MatrixMarket matrix coordinate real general\n4294967297 1 0\n").unwrap_err();
    assert!(matches!(wide, FormatError::Matrix(MatrixError::TooLarge { .. })));
    // The limit can be raised by whoever means it.
    let options = ReadOptions { max_empty_rows: 2_000_000, ..ReadOptions::default() };
    let text = b"%%MatrixMarket matrix coordinate real general\n2000000 2000000 1\n1 1 1\n";
    assert_eq!(matrix_market::parse_matrix(text, &options).unwrap().nrows(), 2_000_000);
}

#[test]
fn bombs_are_refused() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..200 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let options = ReadOptions { max_expansion: 10, ..ReadOptions::default() };
    let limit = 10 * bomb.len() as u64 + (16 << 20);
    match io::parse(&bomb, &options).unwrap_err() {
        FormatError::Expansion { limit: l } => assert_eq!(l, limit),
        other => panic!("{other}"),
    }
}

#[test]
fn what_other_programs_write() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");
    let expected = Csr::from_triplets(3, 4, &[0, 1, 1, 2], &[3, 0, 2, 1], &[1.5, -2.0, 0.0, 4.0]).unwrap();
    for name in ["scipy_csr.npz", "scipy_csc.npz", "scipy_coo.npz", "scipy_csr_int64.npz"] {
        assert_eq!(io::read_matrix(format!("{folder}{name}")).unwrap(), expected, "{name}");
    }
    let small = io::read_matrix(format!("{folder}scipy_int8.npz")).unwrap();
    assert_eq!(small.values(), [1.0, -2.0, 4.0]);
    let refused = io::read_matrix(format!("{folder}scipy_dia.npz")).unwrap_err().to_string();
    assert!(refused.contains("`dia` is not supported"), "{refused}");
    let refused = io::read_matrix(format!("{folder}scipy_complex.npz")).unwrap_err().to_string();
    assert!(refused.contains("`<c16` are not supported"), "{refused}");
    for name in ["numpy_f8.npy", "numpy_big_endian.npy", "numpy_column.npy"] {
        assert_eq!(io::read_vector(format!("{folder}{name}")).unwrap(), [1.0, -2.5, 3.0], "{name}");
    }
}

/// A matrix followed by its right-hand side in one file, with integers of either width, byte by byte.
#[test]
fn petsc_objects_in_sequence() {
    for wide in [false, true] {
        let mut file = Vec::new();
        let integers = |numbers: &[i64], file: &mut Vec<u8>| {
            for &n in numbers {
                if wide {
                    file.extend(n.to_be_bytes());
                } else {
                    file.extend((n as i32).to_be_bytes());
                }
            }
        };
        integers(&[1_211_216, 2, 2, 3, 2, 1, 0, 1, 1], &mut file);
        file.extend([4.0f64, -1.0, 5.0].iter().flat_map(|v| v.to_be_bytes()));
        integers(&[1_211_214, 2], &mut file);
        file.extend([7.0f64, 8.0].iter().flat_map(|v| v.to_be_bytes()));
        let a = io::parse(&file, &ReadOptions::default()).unwrap();
        assert_eq!((a.get(0, 0), a.get(0, 1), a.get(1, 1), a.nnz()), (4.0, -1.0, 5.0, 3));
        assert_eq!(io::parse_as_vector(&file, &ReadOptions::default()).unwrap(), [7.0, 8.0]);
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    io::write_matrix(&path, &Csr::identity(2).unwrap()).unwrap();
    let bad = Csr::from_triplets(2, 2, &[1], &[0], &[f64::NAN]).unwrap();
    let error = io::write_matrix(&path, &bad).unwrap_err();
    assert!(error.to_string().contains("entry (2, 1) is NaN"), "{error}");
    assert_eq!(io::read_matrix(&path).unwrap(), Csr::identity(2).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let error = io::write_matrix(folder.path().join("a.xyz"), &bad).unwrap_err();
    assert!(matches!(error.source, FormatError::UnknownEnding { .. }));
}

#[cfg(unix)]
#[test]
fn writing_keeps_links_permissions_and_other_files() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (real, link, other) = (
        folder.path().join("real.mtx"),
        folder.path().join("link.mtx"),
        folder.path().join("real.mtx.partial"),
    );
    std::fs::write(&real, "old").unwrap();
    std::fs::write(&other, "precious").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&real, &link).unwrap();
    io::write_matrix(&link, &Csr::identity(2).unwrap()).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(io::read_matrix(&real).unwrap(), Csr::identity(2).unwrap());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn an_editors_mark_before_the_text_is_skipped() {
    let text = b"\xef\xbb\xbf%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n";
    assert_eq!(io::parse(text, &ReadOptions::default()).unwrap().values(), [5.0]);
    assert!(matches!(io::parse(b"", &ReadOptions::default()), Err(FormatError::Empty)));
}

/// Zeros that differ in sign are equal numbers, but not the same bits: one triangle cannot stand for both.
#[test]
fn the_sign_of_zero_survives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    for zeros in [[0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]] {
        for value in [1.0, -1.0] {
            let values = [zeros[0], zeros[1], 1.0, value];
            let a = Csr::from_triplets(3, 3, &[0, 1, 1, 2], &[1, 0, 2, 1], &values).unwrap();
            io::write_matrix(&path, &a).unwrap();
            assert_eq!(bits(a.values()), bits(io::read_matrix(&path).unwrap().values()));
        }
    }
}

#[test]
fn the_same_matrix_on_any_number_of_threads() {
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n1000 1000 500000\n");
    for k in 0..500_000u64 {
        let hash = k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        text.push_str(&format!("{} {} 0.{}\n", hash % 1000 + 1, hash / 1000 % 1000 + 1, hash));
    }
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| parse(&text).unwrap())
    };
    let alone = run(1);
    assert!(alone.nnz() < 500_000, "duplicates are summed");
    assert_eq!(bits(alone.values()), bits(run(4).values()));
}
