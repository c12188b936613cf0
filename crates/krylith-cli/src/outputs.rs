//! Files to write, checked before the work whose result they hold.
//!
//! The check changes nothing: an existing file is opened for writing and not truncated, and whether a folder takes a new file
//! is found with a file of another name that is removed at once.

use crate::Failure;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file that the user wants written.
pub struct Output<'a> {
    /// The option that names it, such as `-x`; empty for an argument without one.
    option: &'static str,
    path: &'a Path,
    /// Written beside its place and moved there, so its folder has to take a new file even where the file exists.
    moved: bool,
}

impl<'a> Output<'a> {
    /// A matrix or a vector, which the library writes beside its place and moves there when complete.
    pub fn moved(option: &'static str, path: &'a Path) -> Self {
        Output { option, path, moved: true }
    }

    /// A picture or JSON, which is written in place; `-` stands for standard output, which needs no check.
    pub fn in_place(option: &'static str, path: &'a Path) -> Self {
        Output { option, path, moved: false }
    }

    fn name(&self) -> String {
        format!("{} {}", self.option, self.path.display()).trim_start().to_owned()
    }

    /// Why the file cannot be written, and what to do.
    fn check(&self, path: &Path) -> Result<(), String> {
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match path.metadata() {
            Ok(found) if found.is_dir() => Err("it is a directory; name a file in it".into()),
            Err(error) if error.kind() == ErrorKind::NotFound && ends_as_folder => {
                Err("its name ends as that of a directory; name a file".into())
            }
            Ok(found) if found.is_file() => {
                OpenOptions::new().write(true).open(path).map_err(|error| {
                    format!("the file exists and {error}; allow writing to it, or choose another name")
                })?;
                let place = path.canonicalize().map_err(|error| error.to_string())?;
                if self.moved { self.check_folder(&place) } else { Ok(()) }
            }
            // A pipe or a device is opened when there is something to write.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => match path.read_link() {
                // Through a link, a new file comes to where the link points.
                Ok(target) if !self.moved => self.check(&path.with_file_name("").join(target)),
                _ => self.check_folder(path),
            },
            Err(error) => Err(format!("{error}; choose another name")),
        }
    }

    /// Creates and removes a file in the folder of `path`.
    fn check_folder(&self, path: &Path) -> Result<(), String> {
        let folder = folder_of(path);
        match folder.metadata() {
            Ok(found) if !found.is_dir() => {
                return Err(format!("{} is not a directory; choose another name", folder.display()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!(
                    "the directory {} does not exist; create it, or choose another one",
                    folder.display()
                ));
            }
            _ => {}
        }
        let mut name = std::ffi::OsString::new();
        if self.moved {
            // As long as the name under which the library writes: a name that is too long for that is found here.
            name.push(path.file_name().unwrap_or_default());
        }
        for attempt in 0.. {
            let mut unused = name.clone();
            unused.push(format!(".{}-{attempt}.partial", std::process::id()));
            let unused = folder.join(unused);
            match File::create_new(&unused) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let folder = folder.display();
                    return Err(format!(
                        "the directory {folder} takes no new file ({error}); choose another one"
                    ));
                }
                // Should removing fail, the file is empty and its name says what it is.
                Ok(_) => {
                    let _ = std::fs::remove_file(&unused);
                    break;
                }
            }
        }
        Ok(())
    }
}

/// An error for the first output that cannot be written, that is one of the inputs, or that another output overwrites.
pub fn check(outputs: &[Output], inputs: &[&Path]) -> Result<(), Failure> {
    for (k, output) in outputs.iter().enumerate().filter(|(_, output)| output.path != Path::new("-")) {
        let name = output.name();
        output.check(output.path).map_err(|reason| format!("{name} cannot be written: {reason}"))?;
        let place = place(output.path);
        if let Some(input) = inputs.iter().find(|input| self::place(input) == place && place.is_some()) {
            let input = input.display();
            return Err(format!("{name} would overwrite the input {input}; choose another name").into());
        }
        if let Some(other) = outputs[..k].iter().find(|o| self::place(o.path) == place && place.is_some()) {
            return Err(format!("{name} would overwrite {}; give each its own file", other.name()).into());
        }
    }
    Ok(())
}

/// Where a file is or will be, links resolved; nothing for what is no file, such as a device.
fn place(path: &Path) -> Option<PathBuf> {
    match path.metadata() {
        Ok(found) if found.is_file() => path.canonicalize().ok(),
        Ok(_) => None,
        Err(_) => Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?)),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
