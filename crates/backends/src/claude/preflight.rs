//! What stands in the way of a client, looked for before anything is spent.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use raymond_core::run::Permissions;
use raymond_core::run::permissions::Checks;
use rustix::process::geteuid;

/// Why the client cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no such program.
    #[error("the client {} is not installed, or not on PATH", .0.display())]
    Missing(OsString),
    /// It would refuse to start.
    #[error("the client refuses to skip permissions as root")]
    Root,
}

/// Whether `command` can be used with these permissions.
pub fn check(command: &OsStr, permissions: &[Permissions]) -> Result<PathBuf, Problem> {
    let path = std::env::var_os("PATH");
    let found = find(command, path.as_deref().unwrap_or_default());
    let found = found.ok_or_else(|| Problem::Missing(command.to_owned()))?;
    let sandbox = std::env::var_os("IS_SANDBOX").is_some_and(|value| value == "1");
    let root = geteuid().is_root() && !sandbox;
    if root && permissions.iter().any(skips) {
        return Err(Problem::Root);
    }
    Ok(found)
}

fn skips(permissions: &Permissions) -> bool {
    permissions.checks == Checks::Skipped
        || permissions.mode.as_deref() == Some("bypassPermissions")
}

/// The program of this name: a path as it is, any other name on `path`.
fn find(command: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let as_path = Path::new(command);
    if as_path.components().count() > 1 {
        return is_program(as_path).then(|| as_path.to_owned());
    }
    std::env::split_paths(path).map(|directory| directory.join(command)).find(|p| is_program(p))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_a_program_on_the_path_or_a_path_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (program, text) = (place("client", 0o755), place("text", 0o644));
        fs::create_dir(directory.path().join("folder")).unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), directory.path()]).unwrap();
        let check = |command: &OsStr, expected: Option<&Path>| {
            assert_eq!(find(command, &path).as_deref(), expected, "{}", command.display());
        };
        check("client".as_ref(), Some(&program));
        check(program.as_os_str(), Some(&program));
        check("text".as_ref(), None);
        check(text.as_os_str(), None);
        check("folder".as_ref(), None);
        check("none".as_ref(), None);
    }

    #[test]
    fn skipping_has_two_names() {
        let with = |mode: Option<&str>, checks| Permissions {
            mode: mode.map(str::to_owned),
            checks,
            ..Permissions::default()
        };
        let check = |permissions: &Permissions, expected: bool| {
            assert_eq!(skips(permissions), expected, "{permissions:?}");
        };
        check(&with(None, Checks::Kept), false);
        check(&with(Some("plan"), Checks::Kept), false);
        check(&with(Some("bypassPermissions"), Checks::Kept), true);
        check(&with(None, Checks::Skipped), true);
    }
}
