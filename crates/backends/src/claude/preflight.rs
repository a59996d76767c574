//! What must be there before anything is spent.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use raymond_core::run::permissions::{Checks, Permissions};

/// Why no client can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not installed.
    #[error("cannot find the client {} on PATH", .0.display())]
    NotFound(OsString),
    /// What is there is no program.
    #[error("cannot run the client {}: it is not an executable file", .0.display())]
    NotExecutable(PathBuf),
    /// It refuses to skip its checks for root.
    #[error("the client refuses --dangerously-skip-permissions for root")]
    Root,
}

impl Problem {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotFound(_) => {
                "install Claude Code (npm install -g @anthropic-ai/claude-code), or set `claude` in \
                 the configuration to its path; or play replies from a file with --replies FILE"
            }
            Self::NotExecutable(_) => "set `claude` in the configuration to the path of the client",
            Self::Root => {
                "run as another user, or allow tools one by one with --allow; inside a real sandbox, \
                 set IS_SANDBOX=1 (and name it in `environment`, where that is a list)"
            }
        }
    }
}

/// Checks that a client can be started with these permissions, where `environment` lists the
/// variables that it is handed; none means all.
pub fn check(
    command: &OsStr,
    permissions: &Permissions,
    environment: Option<&[String]>,
) -> Result<(), Problem> {
    let variable = |name: &str| env::var_os(name);
    find(command, variable("PATH").as_deref())?;
    let handed_on = environment.is_none_or(|names| names.iter().any(|name| name == SANDBOX));
    let sandbox = variable(SANDBOX).filter(|_| handed_on);
    let user = if rustix::process::getuid().is_root() { User::Root } else { User::Other };
    may_skip(permissions.checks, user, sandbox.as_deref())
}

const SANDBOX: &str = "IS_SANDBOX";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Other,
}

fn may_skip(checks: Checks, user: User, sandbox: Option<&OsStr>) -> Result<(), Problem> {
    match (checks, user) {
        (Checks::Skipped, User::Root) if sandbox != Some(OsStr::new("1")) => Err(Problem::Root),
        (Checks::Skipped | Checks::Kept, User::Root | User::Other) => Ok(()),
    }
}

/// The program of a command: a path, or a name that is looked up. The client may get another `PATH`
/// than ours, so it is looked up here.
pub(super) fn find(command: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, Problem> {
    let path = Path::new(command);
    if path.components().count() > 1 || path.is_absolute() {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return match (is_program(&absolute), absolute.exists()) {
            (true, _) => Ok(absolute),
            (false, true) => Err(Problem::NotExecutable(absolute)),
            (false, false) => Err(Problem::NotFound(command.to_owned())),
        };
    }
    let mut found = env::split_paths(search.unwrap_or_default()).map(|place| place.join(path));
    let found =
        found.find(|path| is_program(path)).ok_or_else(|| Problem::NotFound(command.to_owned()))?;
    // An entry of `PATH` may be relative, and the client works elsewhere.
    Ok(std::path::absolute(&found).unwrap_or(found))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions as Mode};

    use super::*;

    #[test]
    fn the_client_is_found_by_path_or_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for (name, mode) in [("claude", 0o755), ("plain", 0o644)] {
            fs::write(place.join(name), "").unwrap();
            fs::set_permissions(place.join(name), Mode::from_mode(mode)).unwrap();
        }
        let search = env::join_paths([Path::new("/nowhere"), place]).unwrap();
        let check = |command: &OsStr, expected: Result<PathBuf, Problem>| {
            assert_eq!(find(command, Some(&search)), expected);
        };
        let missing = |command: &OsStr| Err(Problem::NotFound(command.to_owned()));
        check("claude".as_ref(), Ok(place.join("claude")));
        check(place.join("claude").as_os_str(), Ok(place.join("claude")));
        check("plain".as_ref(), missing("plain".as_ref()));
        check("gone".as_ref(), missing("gone".as_ref()));
        check("".as_ref(), missing("".as_ref()));
        check("./claude".as_ref(), missing("./claude".as_ref()));
        check(place.join("gone").as_os_str(), missing(place.join("gone").as_os_str()));
        let plain = place.join("plain");
        check(plain.as_os_str(), Err(Problem::NotExecutable(plain.clone())));
        check(place.as_os_str(), Err(Problem::NotExecutable(place.to_owned())));
        assert_eq!(find("claude".as_ref(), None), missing("claude".as_ref()));
    }

    #[test]
    fn root_skips_checks_only_in_a_sandbox() {
        let check = |checks, user, sandbox: Option<&str>, expected| {
            assert_eq!(may_skip(checks, user, sandbox.map(OsStr::new)), expected);
        };
        check(Checks::Skipped, User::Root, None, Err(Problem::Root));
        check(Checks::Skipped, User::Root, Some("true"), Err(Problem::Root));
        check(Checks::Skipped, User::Root, Some("1"), Ok(()));
        check(Checks::Skipped, User::Other, None, Ok(()));
        check(Checks::Kept, User::Root, None, Ok(()));
    }

    #[test]
    fn a_client_that_is_missing_is_told_before_anything_else() {
        let found = check("no-such-client".as_ref(), &Permissions::default(), None);
        let problem = found.unwrap_err();
        assert_eq!(problem.to_string(), "cannot find the client no-such-client on PATH");
        assert!(problem.remedy().starts_with("install Claude Code"));
    }
}
