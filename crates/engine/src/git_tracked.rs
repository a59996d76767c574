//! Refuses a run that came with the repository.
//!
//! `.raymond/` contains a `.gitignore` for itself, so git never adds a run by accident. If the
//! index lists a run, another person put it there, and it arrived with a clone, a pull or a branch.
//! The pinned scripts of the run are programs of that person, and this user has not asked to start
//! them. If the index cannot be read, the run is refused too. The index is read directly: no `git`
//! process is started.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use raymond_core::ids::RunId;

use crate::project::Project;

mod index_v4;

/// The largest index in bytes. A larger file is not an index: it would list tens of millions of
/// files.
const LARGEST: u64 = 4 << 30;
/// The bytes before the first entry: signature, version and number of entries.
const HEAD: u64 = 12;
/// The bytes that are searched at a time.
const BLOCK: u64 = 1 << 20;
/// The largest `.git` file of a submodule or worktree, in bytes. It contains one path.
const LONGEST_POINTER: u64 = 64 << 10;

/// Why Raymond does not drive or delete a run.
#[derive(Debug, thiserror::Error)]
pub enum GitTracked {
    /// Git tracks files of it.
    #[error("{0} came with the repository: git tracks its files")]
    Run(RunId),
    /// The index cannot be read.
    #[error("could not check whether {run} came with the repository: {}: {source}", path.display())]
    Unknown {
        run: RunId,
        /// The file that cannot be read.
        path: PathBuf,
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
    // With the slash at the end, so that the run `r` is not found in the files of `r2`.
    let wanted = format!("{}/runs/{run}/", raymond_store::root::NAME);
    for index in indices(&repository).map_err(|source| unknown(&repository, source))? {
        // A single tracked file is enough: it could be the journal, the lock or a pinned script.
        if holds(&index, wanted.as_bytes()).map_err(|source| unknown(&index, source))? {
            return Err(GitTracked::Run(run.clone()));
        }
    }
    Ok(())
}

/// Returns the index of a repository, and the shared index if git has split it.
///
/// Entries that were removed from the shared index since are still found: the run is refused once
/// too often, never once too rarely.
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
            // A split index names its shared index by hash. Other shared indexes are outdated.
            && contains(&index, &hash)?
        {
            indices.push(entry.path());
        }
    }
    Ok(indices)
}

/// Decodes a hash from hexadecimal.
fn bytes(hash: &str) -> Option<Vec<u8>> {
    let pairs = hash.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>();
    bytes.filter(|bytes| !bytes.is_empty())
}

/// Returns the directory of the index. `.git` is a file with the path of that directory in a
/// submodule or a linked worktree.
fn repository(git: &Path, directory: &Path) -> io::Result<PathBuf> {
    if !fs::metadata(git).is_ok_and(|found| found.is_file()) {
        return Ok(git.to_owned());
    }
    let mut text = Vec::new();
    open(git, LONGEST_POINTER)?.read_to_end(&mut text)?;
    let repository = pointed(&text, directory)
        .ok_or_else(|| io::Error::other("it does not contain the path of the repository"))?;
    // A repository that is missing has no index, and would otherwise count as one that tracks
    // nothing.
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

/// Returns whether an index has a path that begins with `wanted`.
fn holds(index: &Path, wanted: &[u8]) -> io::Result<bool> {
    let mut head = Vec::new();
    match open(index, LARGEST) {
        Err(error) if is_absent(&error) => return Ok(false),
        opened => opened?.take(HEAD).read_to_end(&mut head)?,
    };
    // Versions 2 and 3 contain whole paths, so a search in the raw bytes is enough.
    let Some(count) = index_v4::count(&head) else { return contains(index, wanted) };
    let entries = || {
        let mut file = open(index, LARGEST)?;
        file.seek(SeekFrom::Start(HEAD))?;
        Ok(BufReader::new(file))
    };
    index_v4::any(entries, count, wanted)
}

/// Returns whether a file contains these bytes. A repository without an index has no files.
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
        // The bytes may begin at the end of this block and end in the next one.
        let kept = block.len().min(wanted.len() - 1);
        block.drain(..block.len() - kept);
    }
    Ok(false)
}

/// Opens a regular file. Opening a pipe could block forever.
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

    /// What is said of the run `r` in a place with these files; those that end with a slash are
    /// directories.
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
        let disk = std::sync::Arc::new(raymond_store::disk::RealDisk);
        let root_directory = raymond_store::Root::in_directory(&root.join("p"));
        let project = Project { disk, root: root_directory };
        let message = match check(&project, &RunId::new("r")) {
            Ok(()) => String::new(),
            Err(refused) => refused.to_string(),
        };
        assert_eq!(message.replace(root.to_str().unwrap(), ""), expected, "{files:?}");
    }

    #[test]
    fn run_in_the_git_index_is_refused() {
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
    fn index_of_a_submodule_or_worktree_is_found() {
        let refused = "r came with the repository: git tracks its files";
        let submodule = ("p/.git", "gitdir: ../outer/.git/modules/p\n");
        check_in(&[submodule, ("outer/.git/modules/p/index", TRACKED)], refused);
        check_in(&[submodule, ("outer/.git/modules/p/index", "DIRC")], "");
        let worktree = ("p/.git", "gitdir: ROOT/bare.git/worktrees/p\n");
        check_in(&[worktree, ("bare.git/worktrees/p/index", TRACKED)], refused);
        check_in(&[worktree, ("bare.git/worktrees/p/HEAD", ""), ("bare.git/index", TRACKED)], "");
    }

    #[test]
    fn repository_without_an_index_tracks_nothing() {
        check_in(&[("p/", "")], "");
        check_in(&[("p/.git/HEAD", "ref: refs/heads/main\n")], "");
    }

    // proves: S2
    #[test]
    fn run_with_an_unreadable_index_is_refused() {
        let cannot = |path: &str, why: &str| {
            format!("could not check whether r came with the repository: {path}: {why}")
        };
        let nowhere = cannot("/p/.git", "there is no repository at /gone");
        check_in(&[("p/.git", "gitdir: ROOT/gone\n")], &nowhere);
        let garbage = cannot("/p/.git", "it does not contain the path of the repository");
        check_in(&[("p/.git", "garbage")], &garbage);
        check_in(&[("p/.git", "gitdir: \n")], &garbage);
        check_in(&[("p/.git/index/", "")], &cannot("/p/.git/index", "it is not a file"));
    }
}
