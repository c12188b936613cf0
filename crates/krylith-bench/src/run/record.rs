//! Records of runs: JSON, compressed with zstd where the name of the file ends in `.zst`.

use crate::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::Path;

/// Records are written once and kept for long.
const LEVEL: i32 = 19;

/// Writes a record, whole or not at all: a run that was ended is taken up from it.
pub fn save(path: &Path, record: &impl Serialize) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    if is_compressed(path) {
        bytes = zstd::encode_all(bytes.as_slice(), LEVEL)?;
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, bytes)?;
    Ok(std::fs::rename(&new, path)?)
}

/// Reads a record back.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let read = || -> Result<T, Failure> {
        let bytes = std::fs::read(path)?;
        Ok(match is_compressed(path) {
            true => serde_json::from_slice(&zstd::decode_all(bytes.as_slice())?)?,
            false => serde_json::from_slice(&bytes)?,
        })
    };
    read().map_err(|error| format!("{}: {error}", path.display()).into())
}

/// A number that may not be one, for which JSON has null.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "zst")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_with_and_without_compression() {
        let folder = tempfile::tempdir().unwrap();
        let record = vec![Some(0.1), None];
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        for (name, begins) in [("a.json", "[\n".as_bytes()), ("a.json.zst", &magic)] {
            let path = folder.path().join(name);
            save(&path, &record).unwrap();
            assert!(std::fs::read(&path).unwrap().starts_with(begins), "{name}");
            assert_eq!(load::<Vec<Option<f64>>>(&path).unwrap(), record);
            assert!(load::<u8>(&path).unwrap_err().to_string().contains(name));
        }
        assert!(load::<u8>(&folder.path().join("none.json")).is_err());
    }

    #[test]
    fn what_is_no_number_reads_back() {
        #[derive(Serialize, Deserialize)]
        struct Ended {
            #[serde(deserialize_with = "number")]
            residual: f64,
        }
        let read = |residual| {
            let text = serde_json::to_string(&Ended { residual }).unwrap();
            serde_json::from_str::<Ended>(&text).unwrap().residual
        };
        assert!(read(f64::NAN).is_nan() && read(f64::INFINITY).is_nan());
        assert_eq!(read(0.1), 0.1);
    }
}
