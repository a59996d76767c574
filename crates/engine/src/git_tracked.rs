//! Whether a run came with the repository.
//!
//! `.raymond/` ignores itself in git, so whoever finds a run of it in the index was handed that run by
//! somebody else: with a clone, a pull, a checked out branch. What it pinned is a program of theirs,
//! and nobody asked for it here. Where nobody can tell, it counts as theirs.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use raymond_core::ids::RunId;

use crate::project::Project;

mod index_v4;

/// A larger file is no index: git would have tens of millions of files to look after.
const LARGEST: u64 = 4 << 30;
/// What stands before its first entry.
const HEAD: u64 = 12;
/// So much of it is searched at a time.
const BLOCK: u64 = 1 << 20;
/// A larger file does not say where a repository is.
const LONGEST_POINTER: u64 = 64 << 10;

/// Why a run is not ours to drive, or to delete.
#[derive(Debug, thiserror::Error)]
pub enum GitTracked {
    /// Git tracks files of it.
    #[error("{0} came with the repository: git tracks its files")]
    Run(RunId),
    /// RecordOnly can tell whether git does.
    #[error("cannot tell whether {run} came with the repository: {}: {source}", path.display())]
    Unknown {
        /// The run.
        run: RunId,
        /// What cannot be read.
        path: PathBuf,
        /// Why it cannot.
        source: io::Error,
    },
}

/// Refuses a run whose files git tracks.
pub(crate) fn check(project: &Project, run: &RunId) -> Result<(), GitTracked> {
    let unknown = |path: &Path, source| {
        let (run, path) = (run.clone(), path.to_owned());
        GitTracked::Unknown { run, path, source }
    };
    let directory = project.root.project();
    let git = directory.join(".git");
    let repository = repository(&git, directory).map_err(|source| unknown(&git, source))?;
    let wanted = format!("{}/runs/{run}/", raymond_store::root::NAME);
    for index in indices(&repository).map_err(|source| unknown(&repository, source))? {
        if holds(&index, wanted.as_bytes()).map_err(|source| unknown(&index, source))? {
            return Err(GitTracked::Run(run.clone()));
        }
    }
    Ok(())
}

/// The index of a repository, and the one that it shares entries with, where git has split it: which of
/// those have been removed since is not looked at.
fn indices(repository: &Path) -> io::Result<Vec<PathBuf>> {
    let index = repository.join("index");
    let mut indices = vec![index.clone()];
    let names = match fs::read_dir(repository) {
        Err(error) if is_absent(&error) => return Ok(indices),
        names => names?,
    };
    for entry in names {
        let entry = entry?;
        let name = entry.file_name();
        let hash = name.to_str().and_then(|name| bytes(name.strip_prefix("sharedindex.")?));
        if let Some(hash) = hash
            && contains(&index, &hash)?
        {
            indices.push(entry.path());
        }
    }
    Ok(indices)
}

/// The bytes that a hash is written for.
fn bytes(hash: &str) -> Option<Vec<u8>> {
    let pairs = hash.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>();
    bytes.filter(|bytes| !bytes.is_empty())
}

/// Where the index lies of the repository whose `.git` this is. That of a submodule or of a linked worktree
/// is a file, which points there.
fn repository(git: &Path, directory: &Path) -> io::Result<PathBuf> {
    if !fs::metadata(git).is_ok_and(|found| found.is_file()) {
        return Ok(git.to_owned());
    }
    let mut text = Vec::new();
    open(git, LONGEST_POINTER)?.read_to_end(&mut text)?;
    let repository = pointed(&text, directory)
        .ok_or_else(|| io::Error::other("it does not say where the repository is"))?;
    if !repository.is_dir() {
        let gone = format!("there is no repository at {}", repository.display());
        return Err(io::Error::other(gone));
    }
    Ok(repository)
}

fn pointed(text: &[u8], directory: &Path) -> Option<PathBuf> {
    let named = str::from_utf8(text).ok()?.strip_prefix("gitdir:")?.trim();
    (!named.is_empty()).then(|| directory.join(named))
}

/// Whether an index has a path that begins so.
fn holds(index: &Path, wanted: &[u8]) -> io::Result<bool> {
    let mut head = Vec::new();
    match open(index, LARGEST) {
        Err(error) if is_absent(&error) => return Ok(false),
        opened => opened?.take(HEAD).read_to_end(&mut head)?,
    };
    let Some(count) = index_v4::count(&head) else { return contains(index, wanted) };
    let entries = || {
        let mut file = open(index, LARGEST)?;
        file.seek(SeekFrom::Start(HEAD))?;
        Ok(BufReader::new(file))
    };
    index_v4::any(entries, count, wanted)
}

/// Whether a file contains these bytes. Where there is none, nothing was ever added to it.
fn contains(index: &Path, wanted: &[u8]) -> io::Result<bool> {
    let mut file = match open(index, LARGEST) {
        Err(error) if is_absent(&error) => return Ok(false),
        opened => opened?,
    };
    let mut block = Vec::new();
    while file.by_ref().take(BLOCK).read_to_end(&mut block)? > 0 {
        if memmem::find(&block, wanted).is_some() {
            return Ok(true);
        }
        // They may begin at the end of this block.
        let kept = block.len().min(wanted.len() - 1);
        block.drain(..block.len() - kept);
    }
    Ok(false)
}

/// Opens a file; only a regular one answers for certain.
fn open(path: &Path, largest: u64) -> io::Result<File> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if found.len() > largest {
        return Err(io::Error::other("it is too large"));
    }
    File::open(path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACKED: &str = "DIRC .raymond/runs/r/journal.jsonl";

    /// What is said of the run `r` in a place with these files; those that end with a slash are directories.
    fn check_in(files: &[(&str, &str)], expected: &str) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for (name, text) in files {
            let path = root.join(name);
            let directory = if name.ends_with('/') { &*path } else { path.parent().unwrap() };
            fs::create_dir_all(directory).unwrap();
            if !name.ends_with('/') {
                fs::write(&path, text.replace("ROOT", root.to_str().unwrap())).unwrap();
            }
        }
        let disk = std::sync::Arc::new(raymond_store::disk::Files);
        let root_directory = raymond_store::Root::in_directory(&root.join("p"));
        let project = Project { disk, root: root_directory };
        let told = match check(&project, &RunId::new("r")) {
            Ok(()) => String::new(),
            Err(refused) => refused.to_string(),
        };
        assert_eq!(told.replace(root.to_str().unwrap(), ""), expected, "{files:?}");
    }

    #[test]
    fn a_run_in_the_index_of_its_repository_is_refused() {
        let refused = "r came with the repository: git tracks its files";
        check_in(&[("p/.git/index", TRACKED)], refused);
        check_in(&[("p/.git/index", "DIRC .raymond/runs/other/journal.jsonl")], "");
        check_in(&[("p/.git/index", "DIRC .raymond/runs/r2/journal.jsonl")], "");
    }

    #[test]
    fn an_index_is_searched_to_its_end() {
        for before in [BLOCK - 9, BLOCK, 2 * BLOCK - 20] {
            let long = "x".repeat(usize::try_from(before).unwrap());
            let place = tempfile::tempdir().unwrap();
            let index = place.path().join("index");
            fs::write(&index, format!("{long}.raymond/runs/r/lock")).unwrap();
            assert!(contains(&index, b".raymond/runs/r/").unwrap(), "{before}");
            assert!(!contains(&index, b".raymond/runs/s/").unwrap());
        }
    }

    #[test]
    fn the_index_is_found_where_a_file_in_place_of_the_repository_points() {
        let refused = "r came with the repository: git tracks its files";
        let submodule = ("p/.git", "gitdir: ../outer/.git/modules/p\n");
        check_in(&[submodule, ("outer/.git/modules/p/index", TRACKED)], refused);
        check_in(&[submodule, ("outer/.git/modules/p/index", "DIRC")], "");
        let worktree = ("p/.git", "gitdir: ROOT/bare.git/worktrees/p\n");
        check_in(&[worktree, ("bare.git/worktrees/p/index", TRACKED)], refused);
        check_in(&[worktree, ("bare.git/worktrees/p/HEAD", ""), ("bare.git/index", TRACKED)], "");
    }

    #[test]
    fn what_was_never_added_is_not_tracked() {
        check_in(&[("p/", "")], "");
        check_in(&[("p/.git/HEAD", "ref: refs/heads/main\n")], "");
    }

    // proves: S2
    #[test]
    fn where_nobody_can_tell_it_is_refused() {
        let cannot = |path: &str, why: &str| {
            format!("cannot tell whether r came with the repository: {path}: {why}")
        };
        let nowhere = cannot("/p/.git", "there is no repository at /gone");
        check_in(&[("p/.git", "gitdir: ROOT/gone\n")], &nowhere);
        let garbage = cannot("/p/.git", "it does not say where the repository is");
        check_in(&[("p/.git", "garbage")], &garbage);
        check_in(&[("p/.git", "gitdir: \n")], &garbage);
        check_in(&[("p/.git/index/", "")], &cannot("/p/.git/index", "it is not a file"));
    }
}
