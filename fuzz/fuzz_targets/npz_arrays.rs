//! SciPy archives whose checksums are right and whose arrays are not: what mutation of a whole file cannot reach.
#![no_main]

use krylith_fuzz::{COMPRESSED, bounded, check, options};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;

#[derive(Debug, Arbitrary)]
enum Type {
    F8,
    F4,
    I4,
    I8,
    BigI4,
    Bool,
    Text,
    Any(String),
}

#[derive(Debug, Arbitrary)]
struct Array {
    kind: Type,
    /// The right length, or this one.
    length: Option<u32>,
    data: Vec<u8>,
}

impl Array {
    fn file(&self) -> Vec<u8> {
        let (descr, width) = match &self.kind {
            Type::F8 => ("<f8", 8),
            Type::F4 => ("<f4", 4),
            Type::I4 => ("<i4", 4),
            Type::I8 => ("<i8", 8),
            Type::BigI4 => (">i4", 4),
            Type::Bool => ("|b1", 1),
            Type::Text => ("|S3", 3),
            Type::Any(text) => (text.as_str(), 1),
        };
        let length = self.length.unwrap_or((self.data.len() / width) as u32);
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        let kept = if self.length.is_none() { self.data.len() / width * width } else { self.data.len() };
        file.extend(&self.data[..kept]);
        file
    }
}

#[derive(Debug, Arbitrary)]
enum Layout {
    Csr { indptr: Array, indices: Array },
    Csc { indptr: Array, indices: Array },
    Coo { row: Array, col: Array },
}

#[derive(Debug, Arbitrary)]
struct Archive {
    layout: Layout,
    shape: [u32; 2],
    data: Array,
}

fuzz_target!(|archive: Archive| {
    let (format, arrays) = match &archive.layout {
        Layout::Csr { indptr, indices } => (b"csr", [("indptr", indptr), ("indices", indices)]),
        Layout::Csc { indptr, indices } => (b"csc", [("indptr", indptr), ("indices", indices)]),
        Layout::Coo { row, col } => (b"coo", [("row", row), ("col", col)]),
    };
    let format = Array { kind: Type::Text, length: None, data: format.to_vec() };
    let shape = archive.shape.iter().flat_map(|n| n.to_le_bytes()).collect();
    let shape = Array { kind: Type::I4, length: None, data: shape };
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, array) in
        arrays.into_iter().chain([("format", &format), ("shape", &shape), ("data", &archive.data)])
    {
        zip.start_file(format!("{name}.npy"), stored).unwrap();
        zip.write_all(&array.file()).unwrap();
    }
    let file = zip.finish().unwrap().into_inner();
    if let Ok(a) = bounded(&file, COMPRESSED, |file| krylith::io::parse(file, &options())) {
        check(&a);
    }
});
