//! Paths that the user gave, and the directories of the user.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::path_text;

/// Returns the absolute path without links; the path must exist.
pub(crate) fn absolute(path: &Path) -> Result<String, Failure> {
    let named = path.display();
    let found = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::usage(format!("could not find {named}")),
        _ => Failure::usage(format!("could not find {named}: {error}")),
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::usage(format!("the path {named} is not UTF-8")))
}

/// Whether a file can be read only once: standard input, a pipe, or `<(…)` of a shell.
pub(crate) fn is_read_once(path: &Path) -> bool {
    path == Path::new("-") || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns a directory of the user by the XDG specification: the variable if it is set, otherwise
/// the usual place below the home directory.
pub(crate) fn user_directory(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    // The specification requires that a relative path is ignored.
    let named = named.filter(|path| path.is_absolute());
    named.or_else(|| path_text::home().map(|home| home.join(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("replies.yaml");
        std::fs::write(&file, "").unwrap();
        let check = |path: &Path, expected: bool| assert_eq!(is_read_once(path), expected);
        check(Path::new("-"), true);
        check(Path::new("/dev/null"), true);
        check(&file, false);
        check(&directory.path().join("missing"), false);
    }
}
