//! Pictures in the folder of a run.

use super::Drawn;
use crate::Failure;
use krylith_plot::{Picture, save};
use std::path::Path;

/// Writes a picture, `size` being its width and height in pixels. The name of the file ends in `.svg` or `.png`.
pub fn write(
    folder: &Path,
    file: &str,
    title: &str,
    size: (u32, u32),
    picture: &impl Picture,
) -> Result<Drawn, Failure> {
    save(&folder.join(file), size, picture)?;
    Ok(Drawn { file: file.into(), title: title.into() })
}
