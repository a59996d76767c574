//! Reads the directory that `init` looks at.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::found::{Git, Listing};

/// Of a larger file only the beginning is read.
const MOST_BYTES: u64 = 1 << 20;

/// The listing of a directory, which is absolute.
pub(super) fn read(directory: &Path) -> io::Result<Listing> {
    let git = if repository(directory).is_some() { Git::Repository } else { Git::None };
    let mut listing = Listing { git, ..Listing::default() };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Follows links, and never opens a pipe.
        match fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => drop(listing.folders.insert(name)),
            Ok(found) if found.is_file() => {
                if Listing::wants(&name) {
                    listing.texts.insert(name.clone(), beginning(&entry.path()));
                }
                listing.files.insert(name);
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(listing)
}

/// The top of the repository that a directory belongs to.
pub(super) fn repository(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|path| path.join(".git").exists()).map(Path::to_owned)
}

/// A file that cannot be read says nothing.
fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    match fs::File::open(path).map(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)) {
        Ok(Ok(_)) => String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}
