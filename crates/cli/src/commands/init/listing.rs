//! Reads the directory that `init` looks at.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::detect::{Git, Listing};

/// Of a larger file only the beginning is read.
const MOST_BYTES: u64 = 1 << 20;
/// More tests say no more about how they are run.
const MOST_TESTS: usize = 20;

/// The listing of a directory, which is absolute.
pub(super) fn read(directory: &Path) -> io::Result<Listing> {
    let git = if repository(directory).is_some() { Git::Repository } else { Git::None };
    let mut listing = Listing { git, ..Listing::default() };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Some(name) = plain_name(&entry.file_name()) else { continue };
        // Follows links, and never opens a pipe.
        match fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => {
                if Listing::opens(&name) {
                    add_tests(&mut listing, &entry.path(), &name);
                }
                listing.folders.insert(name);
            }
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

/// A name that may stand in a line of a script: anything else says nothing.
fn plain_name(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    (!name.contains(char::is_control)).then(|| name.to_owned())
}

/// What a folder of tests says, as far as it is read. One that cannot be listed says nothing.
fn add_tests(listing: &mut Listing, folder: &Path, name: &str) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| plain_name(&entry.file_name()));
    let paths = names.map(|file| (format!("{name}/{file}"), folder.join(file)));
    let wanted = paths.filter(|(path, file)| Listing::wants(path) && file.is_file());
    for (path, file) in wanted.take(MOST_TESTS) {
        listing.texts.insert(path.clone(), beginning(&file));
        listing.files.insert(path);
    }
}

/// The top of the repository that a directory belongs to.
pub(super) fn repository(directory: &Path) -> Option<PathBuf> {
    let is_top = |path: &&Path| path.join(".git/HEAD").exists() || path.join(".git").is_file();
    directory.ancestors().find(is_top).map(Path::to_owned)
}

/// A file that cannot be read says nothing.
fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    match fs::File::open(path).map(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)) {
        Ok(Ok(_)) => String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}
