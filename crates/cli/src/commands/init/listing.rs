//! Reads the directory that `init` examines.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::detect::{Git, Listing};

/// Most bytes of a file that are read; the declarations of a tool are near the start.
const MOST_BYTES: u64 = 1 << 20;
/// Most test files that are read: more add nothing about how tests run.
const MOST_TESTS: usize = 20;

/// Lists a directory, which must be absolute.
pub(super) fn read(directory: &Path) -> io::Result<Listing> {
    let git = if repository(directory).is_some() { Git::Repository } else { Git::None };
    let mut listing = Listing { git, ..Listing::default() };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Some(name) = plain_name(&entry.file_name()) else { continue };
        // Metadata follows links, and distinguishes files from pipes without opening a pipe, which
        // would block.
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

/// Returns a name that is safe in a line of a script; other names are ignored.
fn plain_name(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    (!name.contains(char::is_control)).then(|| name.to_owned())
}

/// Adds the files of a test folder. A folder that cannot be listed adds nothing.
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

/// Finds the top of the repository of a directory.
pub(super) fn repository(directory: &Path) -> Option<PathBuf> {
    // In a linked worktree or a submodule `.git` is a file.
    let is_top = |path: &&Path| path.join(".git/HEAD").exists() || path.join(".git").is_file();
    directory.ancestors().find(is_top).map(Path::to_owned)
}

/// Returns the start of a file; an unreadable file is empty.
fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    match fs::File::open(path).map(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)) {
        // Some editors write a byte order mark, which would make TOML and JSON invalid.
        Ok(Ok(_)) => String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}
