//! Pictures as SVG or PNG, drawn by one code for both, with the same letters on every machine.

mod heat;

pub use heat::{heat_map, shade};
pub use plotters;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use std::path::Path;

/// Why there is no picture.
pub type Failure = Box<dyn std::error::Error>;

/// The colour of what is shown.
pub const INK: RGBColor = RGBColor(0x1f, 0x2d, 0x5c);
/// The colour of lines behind it.
pub const GRID: RGBColor = RGBColor(0xd8, 0xda, 0xe0);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Svg,
    Png,
}

fn kind(path: &Path) -> Result<Kind, Failure> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "svg" => Ok(Kind::Svg),
        "png" => Ok(Kind::Png),
        _ => Err(format!("{}: a picture's name must end in .svg or .png", path.display()).into()),
    }
}

/// An error for names that no picture can have, before any work is done.
pub fn check_ending(path: &Path) -> Result<(), Failure> {
    kind(path).map(|_| ())
}

/// What can be drawn on either backend.
pub trait Picture {
    /// Draws on the whole of an area.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static;
}

/// Draws into a file of the kind its name ends in.
pub fn save(path: &Path, (width, height): (u32, u32), picture: &impl Picture) -> Result<(), Failure> {
    // The same letters on every machine, whether it has fonts or not.
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| "the built-in font cannot be read")?;
    let at_path = |e: std::io::Error| Failure::from(format!("{}: {e}", path.display()));
    match kind(path)? {
        Kind::Svg => {
            let mut text = String::new();
            {
                let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
                picture.draw(&area)?;
                area.present()?;
            }
            std::fs::write(path, text).map_err(at_path)
        }
        Kind::Png => {
            let mut pixels = vec![0xffu8; (width * height * 3) as usize];
            {
                let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
                picture.draw(&area)?;
                area.present()?;
            }
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, width, height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&pixels)?;
            writer.finish()?;
            std::fs::write(path, file).map_err(at_path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blank;

    impl Picture for Blank {
        fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
        where
            B::ErrorType: 'static,
        {
            Ok(area.fill(&WHITE)?)
        }
    }

    #[test]
    fn the_ending_decides() {
        let name =
            |ending: &str| std::env::temp_dir().join(format!("krylith-plot-{}.{ending}", std::process::id()));
        for (ending, first) in [("svg", &b"<svg"[..]), ("PNG", &b"\x89PNG"[..])] {
            save(&name(ending), (20, 10), &Blank).unwrap();
            assert!(std::fs::read(name(ending)).unwrap().starts_with(first));
            std::fs::remove_file(name(ending)).unwrap();
        }
        assert!(check_ending(&name("jpg")).unwrap_err().to_string().contains(".svg or .png"));
    }
}
