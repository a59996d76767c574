//! The directory of a script's pinned copy, made to look like the directory of the script itself.
//!
//! A script reads the files beside it through `$0`. The copy that runs is private to the run, so
//! every neighbour of the script gets a symbolic link beside the copy. The directories above the
//! script get the same treatment up to the root of its repository, because `$(dirname "$0")/../lib`
//! is as common as `$(dirname "$0")/lib`. Neighbours are linked, not pinned: docs/language.md.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

/// A directory with more entries than this is not linked; a scope has the same limit.
const MOST_LINKS: usize = 10_000;

/// These names are never linked. Git would take a directory with a linked `.git` for a work tree in
/// which every file has become a link.
const NOT_LINKED: [&str; 2] = [".git", ".raymond"];

/// Prepares a directory below `folder` for the copy of the script `name` of `scope`, and returns
/// it.
///
/// Each visit calls this function again, because neighbours come and go between visits.
pub(super) fn prepare(folder: &Path, scope: &Path, name: &str) -> io::Result<PathBuf> {
    create_directory(folder)?;
    let root = repository(scope);
    let mut private = folder.to_owned();
    let mut real = root.to_owned();
    for part in scope.strip_prefix(root).unwrap_or_else(|_| Path::new("")) {
        link_neighbours(&private, &real, part)?;
        private.push(part);
        real.push(part);
        create_directory(&private)?;
    }
    link_neighbours(&private, &real, OsStr::new(name))?;
    Ok(private)
}

/// Returns the root of the repository that contains the scope, or the scope if there is none.
fn repository(scope: &Path) -> &Path {
    let is_root = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
    scope.ancestors().find(is_root).unwrap_or(scope)
}

/// Creates a directory that only this user can enter. A link of that name is replaced, not
/// followed.
fn create_directory(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes the links in `private` those that `real` calls for: one for every entry but `own`.
fn link_neighbours(private: &Path, real: &Path, own: &OsStr) -> io::Result<()> {
    // A scope that was removed or that cannot be read does not stop a run: its states are pinned.
    let Some(mut wanted) = neighbours(real) else { return Ok(()) };
    wanted.remove(own);
    for entry in fs::read_dir(private)? {
        let entry = entry?;
        if wanted.remove(&entry.file_name()) || entry.file_name() == own {
            continue;
        }
        // Only links are removed: a file is something that the script itself wrote here.
        if entry.file_type()?.is_symlink() {
            ignore(ErrorKind::NotFound, fs::remove_file(entry.path()))?;
        }
    }
    for name in wanted {
        match symlink(real.join(&name), private.join(&name)) {
            // Not every file system has links. Scripts without neighbours still run there.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
            made => ignore(ErrorKind::AlreadyExists, made)?,
        }
    }
    Ok(())
}

/// Lists the names to link, if the directory can be read and is not too large.
fn neighbours(directory: &Path) -> Option<BTreeSet<OsString>> {
    let names = fs::read_dir(directory).ok()?.map(|entry| Some(entry.ok()?.file_name()));
    let names: BTreeSet<OsString> = names.take(MOST_LINKS + 1).collect::<Option<_>>()?;
    let is_linked = |name: &OsString| !NOT_LINKED.iter().any(|left_out| name == left_out);
    (names.len() <= MOST_LINKS).then(|| names.into_iter().filter(is_linked).collect())
}

fn ignore(kind: ErrorKind, result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scope `flows/x` in a repository, and the directory that its script's copy gets.
    struct Place {
        directory: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let place = Self { directory: tempfile::tempdir().unwrap() };
            for folder in ["repo/.git", "repo/.raymond", "repo/flows/x", "repo/flows/lib"] {
                fs::create_dir_all(place.path(folder)).unwrap();
            }
            for file in ["flows/x/START.sh", "flows/x/data", "flows/lib/common", "Makefile"] {
                fs::write(place.path("repo").join(file), file).unwrap();
            }
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn prepare(&self) -> PathBuf {
            prepare(&self.path("private"), &self.path("repo/flows/x"), "START.sh").unwrap()
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn files_beside_and_above_a_script_are_linked() {
        let place = Place::new();
        let home = place.prepare();
        assert_eq!(home, place.path("private/flows/x"));
        assert_eq!(names(&home), ["data"]);
        assert_eq!(names(&place.path("private/flows")), ["lib", "x"]);
        assert_eq!(names(&place.path("private")), ["Makefile", "flows"]);
        assert_eq!(fs::read(home.join("../lib/common")).unwrap(), b"flows/lib/common");
    }

    #[test]
    fn links_follow_changes_between_visits() {
        let place = Place::new();
        let home = place.prepare();
        fs::write(home.join("written"), "by the script").unwrap();
        fs::remove_file(place.path("repo/flows/x/data")).unwrap();
        fs::write(place.path("repo/flows/x/new"), "").unwrap();
        place.prepare();
        assert_eq!(names(&home), ["new", "written"]);
    }

    #[test]
    fn a_planted_link_is_replaced_by_a_directory() {
        let place = Place::new();
        fs::create_dir_all(place.path("private")).unwrap();
        fs::create_dir_all(place.path("elsewhere/x")).unwrap();
        symlink(place.path("elsewhere"), place.path("private/flows")).unwrap();
        place.prepare();
        assert_eq!(names(&place.path("elsewhere/x")), Vec::<String>::new());
        assert_eq!(names(&place.path("private/flows/x")), ["data"]);
    }

    #[test]
    fn a_scope_that_was_removed_has_no_neighbours() {
        let place = Place::new();
        fs::remove_dir_all(place.path("repo/flows")).unwrap();
        assert_eq!(names(&place.prepare()), Vec::<String>::new());
    }

    #[test]
    fn without_a_repository_only_the_scope_is_linked() {
        let place = Place::new();
        fs::remove_dir(place.path("repo/.git")).unwrap();
        assert_eq!(place.prepare(), place.path("private"));
        assert_eq!(names(&place.path("private")), ["data"]);
    }
}
