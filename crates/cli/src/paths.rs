//! Paths that the user gave, and the directories of the user: absolute paths, pipes, `~`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

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
    named.or_else(|| home().map(|home| home.join(usual)))
}

/// Returns the path for display, with `~` for the home directory.
pub(crate) fn below_home(path: &Path) -> String {
    // A name with a line break must not forge a row of a table.
    shortened(path, home().as_deref()).replace(['\n', '\r'], "\u{fffd}")
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn shortened(path: &Path, home: Option<&Path>) -> String {
    // Below `/`, which is the home of some services, `~` would shorten nothing.
    let home = home.filter(|home| home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_shortened_to_a_tilde() {
        let check = |path: &str, home: Option<&str>, expected: &str| {
            assert_eq!(shortened(Path::new(path), home.map(Path::new)), expected, "{home:?}");
        };
        check("/home/me/app", Some("/home/me"), "~/app");
        check("/home/me", Some("/home/me/"), "~");
        check("/home/meadow", Some("/home/me"), "/home/meadow");
        check("/srv/app", Some("/home/me"), "/srv/app");
        check("/srv/app", Some("/"), "/srv/app");
        check("/srv/app", None, "/srv/app");
    }

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
