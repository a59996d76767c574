//! Finding the program of a client and comparing its version.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The reason for which a program cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingProgram {
    /// The program is not installed, or not at the configured path.
    #[error("{}", not_found(.0))]
    NotFound(OsString),
    /// The file exists but is not executable.
    #[error("cannot run the client {}: it is not an executable file", .0.display())]
    NotExecutable(PathBuf),
}

/// Returns the path of a command, which is a path or a name to look up in `PATH`. Raymond resolves
/// the name itself because the client may get another `PATH`.
pub fn find(command: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, MissingProgram> {
    let path = Path::new(command);
    if is_path(path) {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return match (is_program(&absolute), absolute.exists()) {
            (true, _) => Ok(absolute),
            (false, true) => Err(MissingProgram::NotExecutable(absolute)),
            (false, false) => Err(MissingProgram::NotFound(absolute.into_os_string())),
        };
    }
    let mut found = env::split_paths(search.unwrap_or_default()).map(|place| place.join(path));
    let found = found
        .find(|path| is_program(path))
        .ok_or_else(|| MissingProgram::NotFound(command.to_owned()))?;
    // An entry of `PATH` may be relative, but the client works in another directory.
    Ok(std::path::absolute(&found).unwrap_or(found))
}

/// Whether a version string is older than a version. A string without numbers is not older; the
/// callers have rejected it before.
pub fn is_older(version: &str, than: [u32; 3]) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers = version.split(['.', '-', '+', ' ']).map_while(|part| part.parse::<u32>().ok());
    let numbers: Vec<u32> = numbers.take(than.len()).collect();
    !numbers.is_empty() && numbers.as_slice() < than.as_slice()
}

/// Returns the resolved path of a command for messages, or the command itself if it cannot be
/// found.
pub(crate) fn display_command(command: &OsStr) -> String {
    // Messages show the resolved path, because several versions may be installed.
    let found = find(command, env::var_os("PATH").as_deref());
    found.map_or_else(|_| command.display().to_string(), |path| path.display().to_string())
}

pub(crate) fn display_version(version: [u32; 3]) -> String {
    version.map(|number| number.to_string()).join(".")
}

/// Whether a command is a path.
fn is_path(command: &Path) -> bool {
    // Only plain names are looked up in `PATH`.
    command.components().count() > 1 || command.is_absolute()
}

fn not_found(command: &OsStr) -> String {
    let shown = command.display();
    if is_path(Path::new(command)) {
        format!("could not find a program at {shown}")
    } else {
        format!("could not find the client {shown} on PATH")
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions as Mode};

    use super::*;

    #[test]
    fn client_is_found_by_path_or_name() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for (name, mode) in [("claude", 0o755), ("plain", 0o644)] {
            fs::write(place.join(name), "").unwrap();
            fs::set_permissions(place.join(name), Mode::from_mode(mode)).unwrap();
        }
        let search = env::join_paths([Path::new("/nowhere"), place]).unwrap();
        let check = |command: &OsStr, expected: Result<PathBuf, MissingProgram>| {
            assert_eq!(find(command, Some(&search)), expected);
        };
        let missing = |command: &OsStr| Err(MissingProgram::NotFound(command.to_owned()));
        check("claude".as_ref(), Ok(place.join("claude")));
        check(place.join("claude").as_os_str(), Ok(place.join("claude")));
        check("plain".as_ref(), missing("plain".as_ref()));
        check("gone".as_ref(), missing("gone".as_ref()));
        check("".as_ref(), missing("".as_ref()));
        // A path is not looked up, and is shown as an absolute path.
        let here = env::current_dir().unwrap().join("claude");
        check("./claude".as_ref(), missing(here.as_os_str()));
        check(place.join("gone").as_os_str(), missing(place.join("gone").as_os_str()));
        let plain = place.join("plain");
        check(plain.as_os_str(), Err(MissingProgram::NotExecutable(plain.clone())));
        check(place.as_os_str(), Err(MissingProgram::NotExecutable(place.to_owned())));
        assert_eq!(find("claude".as_ref(), None), missing("claude".as_ref()));
    }

    #[test]
    fn missing_program_message_depends_on_lookup() {
        let check = |command: &str, expected: &str| {
            assert_eq!(MissingProgram::NotFound(command.into()).to_string(), expected);
        };
        check("claude", "could not find the client claude on PATH");
        check("/opt/claude", "could not find a program at /opt/claude");
        check("bin/claude", "could not find a program at bin/claude");
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        let check = |version: &str, expected: bool| {
            assert_eq!(is_older(version, [2, 1, 309]), expected, "{version}");
        };
        check("2.1.308", true);
        check("2.1.309", false);
        check("2.1.309-beta.1", false);
        check("2.1.1000", false);
        check("2.2.0", false);
        check("10.0.0", false);
        check("1.9.999", true);
        check("2.1", true);
        check("v2.1.308", true);
        check("v2.1.325", false);
        check("unknown build", false);
        check("", false);
    }
}
