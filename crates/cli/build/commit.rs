//! The commit that a checkout is at. A tree without git, such as an unpacked archive, has none.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `b0c1149 2026-11-15`, or `b0c1149-dirty 2026-11-15` when one of the sources differs from it.
pub(crate) fn of(top: &Path, sources: &[PathBuf]) -> Option<String> {
    // A source tree inside the checkout of another project has no commit of its own.
    let found = PathBuf::from(git(top, &["rev-parse", "--show-toplevel"])?);
    if found.canonicalize().ok()? != top {
        return None;
    }
    let commit = git(top, &["log", "-1", "--format=%h %cs"])?;
    let (hash, date) = commit.split_once(' ')?;
    let sources = sources.iter().map(|path| path.to_str()).collect::<Option<Vec<_>>>()?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let changes = git(top, &[status.as_slice(), &sources].concat())?;
    let dirty = if changes.is_empty() { "" } else { "-dirty" };
    Some(format!("{hash}{dirty} {date}"))
}

/// Returns the files that change when another commit is checked out. They must exist, because cargo
/// would rebuild every time for a missing one.
pub(crate) fn signs(top: &Path) -> Vec<PathBuf> {
    let paths = ["HEAD", "logs/HEAD"].into_iter().filter_map(|name| {
        let path = git(top, &["rev-parse", "--git-path", name])?;
        Some(top.join(path))
    });
    paths.filter(|path| path.exists()).collect()
}

/// Returns the output of git, or `None` if git fails. It takes no locks, so a build never blocks a
/// commit.
#[expect(clippy::disallowed_methods, reason = "a build script is not part of the product")]
fn git(top: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("--no-optional-locks").arg("-C").arg(top).args(arguments);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
