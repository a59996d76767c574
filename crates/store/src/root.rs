//! Where everything lies: `.raymond/`, and the directory of each run in it.
//!
//! It stands beside the repository's `.git`; for a linked worktree beside that of the main one, so
//! that all worktrees share their runs; without a repository in the directory given. It is private
//! (0700) and ignored by git.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ballast::Ballast;
use crate::disk::{self, Disk, During as _, Metadata, create_dirs};
use crate::place::{self, Durability};

/// The name of the directory.
pub const NAME: &str = ".raymond";

/// Names that start so are of runs that were set aside; no run has such a name.
const ASIDE: &str = ".removed-";

/// A `.raymond/` directory, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

/// Where the parts of one run lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPaths {
    base: PathBuf,
    /// The directory of the run.
    pub directory: PathBuf,
    /// Its journal.
    pub journal: PathBuf,
    /// The directory of its blobs.
    pub blobs: PathBuf,
    /// Its lock.
    pub lock: PathBuf,
    /// The directory of requests to it.
    pub inbox: PathBuf,
    /// The directory of what its clients wrote.
    pub transcripts: PathBuf,
    /// The directory of the configuration that its clients have for each agent.
    pub homes: PathBuf,
    /// The directory of its pinned definition.
    pub definition: PathBuf,
    /// The snapshot of its fold.
    pub snapshot: PathBuf,
    /// Its state file.
    pub state: PathBuf,
}

/// The name cannot be that of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a run id of letters, digits, `-` and `_`")]
pub struct BadRun(String);

impl Root {
    /// Finds the place for `start`, which is absolute. Nothing is created.
    pub fn locate(disk: &dyn Disk, start: &Path) -> Result<Self, disk::Error> {
        for directory in start.ancestors() {
            let git = directory.join(".git");
            match disk.metadata(&git) {
                // Sandboxes leave empty ones in directories that hold many projects, such as `/tmp`.
                Ok(Metadata::Directory) if !disk::exists(disk, &git.join("HEAD"))? => {}
                Ok(Metadata::Directory) => return Ok(Self::in_directory(directory)),
                Ok(Metadata::File(_)) => {
                    let main = main_worktree(&disk::read(disk, &git)?, directory);
                    return Ok(Self::in_directory(main.as_deref().unwrap_or(directory)));
                }
                Err(error) if absent(&error) => {}
                Err(error) => return Err(error).during("look at", &git),
            }
        }
        Ok(Self::in_directory(start))
    }

    /// The one in `directory`.
    pub fn in_directory(directory: &Path) -> Self {
        Self(directory.join(NAME))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The project directory that it lies in.
    pub fn project(&self) -> &Path {
        self.0.parent().unwrap_or(&self.0)
    }

    /// The ballast of all its runs.
    pub fn ballast(&self, disk: Arc<dyn Disk>) -> Ballast {
        Ballast::new(disk, self.0.join("ballast"))
    }

    /// Creates whatever of it is missing.
    pub fn ensure(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for directory in [self.runs_directory(), self.0.join("state")] {
            create_dirs(disk, self.project(), &directory)?;
        }
        let ignore = self.0.join(".gitignore");
        if disk::exists(disk, &ignore)? {
            return Ok(());
        }
        place::place(disk, &ignore, b"*\n", Durability::Durable)
    }

    /// The ids of all runs, sorted. No directory means no runs.
    pub fn runs(&self, disk: &dyn Disk) -> Result<Vec<String>, disk::Error> {
        let directory = self.runs_directory();
        let names = match disk.list(&directory) {
            Err(error) if absent(&error) => return Ok(Vec::new()),
            names => names.during("list", &directory)?,
        };
        let ids = names.into_iter().filter_map(|name| name.into_string().ok());
        let is_directory =
            |id: &str| matches!(disk.metadata(&directory.join(id)), Ok(Metadata::Directory));
        Ok(ids.filter(|id| is_run(id) && is_directory(id)).collect())
    }

    /// Removes what was set aside, as far as it can be. The first trouble is returned.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        remove_all(disk, self.set_aside(disk)?)
    }

    /// Where runs are that were set aside, and are not removed yet.
    pub fn set_aside(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, disk::Error> {
        let directory = self.runs_directory();
        let names = match disk.list(&directory) {
            Err(error) if absent(&error) => return Ok(Vec::new()),
            names => names.during("list", &directory)?,
        };
        let aside = names.iter().filter(|name| name.to_string_lossy().starts_with(ASIDE));
        Ok(aside.map(|name| directory.join(name)).collect())
    }

    /// Where the run `id` lies, or would lie.
    pub fn run(&self, id: &str) -> Result<RunPaths, BadRun> {
        if !is_run(id) {
            return Err(BadRun(id.to_owned()));
        }
        let directory = self.runs_directory().join(id);
        Ok(RunPaths {
            base: self.project().to_owned(),
            journal: directory.join("journal.jsonl"),
            blobs: directory.join("blobs"),
            lock: directory.join("lock"),
            inbox: directory.join("inbox"),
            transcripts: directory.join("transcripts"),
            homes: directory.join("homes"),
            definition: directory.join("definition"),
            snapshot: directory.join("snapshot.json"),
            state: self.0.join("state").join(format!("{id}.json")),
            directory,
        })
    }

    fn runs_directory(&self) -> PathBuf {
        self.0.join("runs")
    }
}

impl RunPaths {
    /// Creates whatever directory of the run is missing, durably.
    pub fn ensure(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        create_dirs(disk, &self.base, &self.directory)?;
        for part in [&self.blobs, &self.inbox, &self.transcripts, &self.definition] {
            create_dirs(disk, &self.directory, part)?;
        }
        Ok(())
    }

    /// Whether the run's directory is there.
    pub fn exist(&self, disk: &dyn Disk) -> Result<bool, disk::Error> {
        disk::exists(disk, &self.directory)
    }

    /// Takes the run out of sight, for whoever holds its lock: from here on it is none. Returns where its
    /// directory went; [`Root::sweep`] removes it.
    pub fn set_aside(&self, disk: &dyn Disk) -> Result<PathBuf, disk::Error> {
        // Once its name is free, a state file of that name may be another run's.
        remove_tree(disk, &self.state)?;
        let runs = self.directory.parent().unwrap_or(&self.base);
        let id = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let mut n = 0_u64;
        let aside = loop {
            let aside = runs.join(format!("{ASIDE}{n}-{id}"));
            if !disk::exists(disk, &aside)? {
                break aside;
            }
            n += 1;
        };
        disk.rename(&self.directory, &aside).during("set aside", &self.directory)?;
        disk.sync_dir(runs).during("sync the directory", runs)?;
        Ok(aside)
    }

    /// Removes the run and its state file; the journal goes first, so that no half of a run is left.
    pub fn remove(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for file in [&self.journal, &self.state] {
            remove_tree(disk, file)?;
        }
        remove_tree(disk, &self.directory)
    }
}

/// Removes a file, or a directory with everything in it. What is gone already is fine.
///
/// A link is removed, never followed.
fn remove_tree(disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
    match disk.remove(path) {
        Err(error) if absent(&error) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            // Where that is refused, what follows says so.
            disk.unlock_dir(path).ok();
            let names = match disk.list(path) {
                Err(error) if absent(&error) => return Ok(()),
                names => names.during("list", path)?,
            };
            remove_all(disk, names.iter().map(|name| path.join(name)))?;
            match disk.remove(path) {
                Err(error) if absent(&error) => Ok(()),
                removed => removed.during("remove", path),
            }
        }
        removed => removed.during("remove", path),
    }
}

/// One that stays does not keep the others.
fn remove_all(
    disk: &dyn Disk,
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<(), disk::Error> {
    let removed: Vec<_> = paths.into_iter().map(|path| remove_tree(disk, &path)).collect();
    removed.into_iter().collect()
}

/// The main worktree, when `git` is the `.git` file of a linked one in `directory`.
///
/// Submodules (`…/.git/modules/x`) and worktrees of a bare repository have none.
fn main_worktree(git: &[u8], directory: &Path) -> Option<PathBuf> {
    let text = str::from_utf8(git).ok()?;
    let gitdir = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    let gitdir = normal(&directory.join(gitdir));
    let worktrees = gitdir.parent()?;
    let common = worktrees.parent()?;
    let linked = worktrees.file_name()? == "worktrees" && common.file_name()? == ".git";
    linked.then(|| common.parent().map(Path::to_owned))?
}

/// The path without `.` and `..`, as git writes relative ones.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_run(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Files, Memory};

    fn disk(directories: &[&str], git: Option<(&str, &str)>) -> Memory {
        let memory = Memory::new(0);
        for directory in directories {
            memory.create_dir(Path::new(directory)).unwrap();
        }
        if let Some((path, content)) = git {
            place::place(&memory, Path::new(path), content.as_bytes(), Durability::Derived)
                .unwrap();
        }
        memory
    }

    #[test]
    fn the_root_lies_beside_the_repository() {
        let check = |directories: &[&str], git, start: &str, expected: &str| {
            let found = Root::locate(&disk(directories, git), Path::new(start)).unwrap();
            assert_eq!(found.path(), Path::new(expected));
        };
        let plain = ["/p", "/p/.git", "/p/src"];
        let head = Some(("/p/.git/HEAD", "ref: refs/heads/main\n"));
        check(&plain, head, "/p/src", "/p/.raymond");
        check(&plain, head, "/p", "/p/.raymond");
        check(&plain, None, "/p/src", "/p/src/.raymond");
        check(&["/p", "/p/src"], None, "/p/src", "/p/src/.raymond");
        let linked = ["/main", "/main/.git", "/w", "/w/src"];
        let file = |content| Some(("/w/.git", content));
        check(&linked, file("gitdir: /main/.git/worktrees/w\n"), "/w/src", "/main/.raymond");
        check(&linked, file("gitdir: ../main/.git/worktrees/w"), "/w", "/main/.raymond");
        check(&linked, file("gitdir: ../main/.git/modules/w\n"), "/w", "/w/.raymond");
        check(&linked, file("gitdir: /bare.git/worktrees/w\n"), "/w", "/w/.raymond");
        check(&linked, file("garbage"), "/w", "/w/.raymond");
    }

    #[test]
    fn run_ids_are_plain_names() {
        let root = Root::in_directory(Path::new("/p"));
        let paths = root.run("flow-1_a").unwrap();
        assert_eq!(paths.journal, Path::new("/p/.raymond/runs/flow-1_a/journal.jsonl"));
        assert_eq!(paths.state, Path::new("/p/.raymond/state/flow-1_a.json"));
        for bad in ["", "..", "a/b", "a b", "ä", &"x".repeat(129)] {
            assert_eq!(root.run(bad).unwrap_err(), BadRun(bad.to_owned()));
        }
    }

    #[test]
    fn a_run_that_was_set_aside_is_none_and_makes_room_for_another() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::in_directory(directory.path());
        root.sweep(&Files).unwrap();
        root.ensure(&Files).unwrap();
        let run = root.run("r").unwrap();
        for _ in 0..2 {
            run.ensure(&Files).unwrap();
            for file in [&run.journal, &run.state] {
                place::place(&Files, file, b"x", Durability::Derived).unwrap();
            }
            let aside = run.set_aside(&Files).unwrap();
            assert!(!run.exist(&Files).unwrap() && !run.state.exists());
            assert!(aside.join("journal.jsonl").exists());
            assert_eq!(root.runs(&Files).unwrap(), [""; 0]);
        }
        let names = || Files.list(&root.runs_directory()).unwrap();
        assert_eq!(names(), [".removed-0-r", ".removed-1-r"]);
        run.ensure(&Files).unwrap();
        root.sweep(&Files).unwrap();
        assert_eq!(names(), ["r"]);
    }

    #[test]
    fn one_file_that_stays_keeps_nothing_else() {
        let memory = disk(&["/p"], None);
        let root = Root::in_directory(Path::new("/p"));
        root.ensure(&memory).unwrap();
        for name in [".removed-0-a", ".removed-0-b"] {
            let aside = root.runs_directory().join(name);
            memory.create_dir(&aside).unwrap();
            for file in ["journal.jsonl", "lock"] {
                place::place(&memory, &aside.join(file), b"x", Durability::Derived).unwrap();
            }
        }
        let stays = Path::new("/p/.raymond/runs/.removed-0-a/journal.jsonl");
        memory.set_hook(Some(Box::new(move |call| {
            let is_it = call.operation == disk::memory::Operation::Remove && call.path == stays;
            is_it.then_some(disk::memory::Fault::Fail(io::ErrorKind::PermissionDenied))
        })));
        let error = root.sweep(&memory).unwrap_err();
        assert_eq!(error.path, stays);
        let aside = stays.parent().unwrap();
        assert_eq!(root.set_aside(&memory).unwrap(), [aside]);
        assert_eq!(memory.list(aside).unwrap(), ["journal.jsonl"]);
        memory.set_hook(None);
        root.sweep(&memory).unwrap();
        assert_eq!(root.set_aside(&memory).unwrap(), Vec::<PathBuf>::new());
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_its_owner_may_not_change_is_unlocked_and_a_link_is_not() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (closed, link) = (directory.path().join("closed"), directory.path().join("link"));
        std::fs::create_dir(&closed).unwrap();
        symlink(&closed, &link).unwrap();
        let mode = || std::fs::metadata(&closed).unwrap().permissions().mode() & 0o777;
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o050)).unwrap();
        Files.unlock_dir(&link).unwrap();
        assert_eq!(mode(), 0o050);
        Files.unlock_dir(&closed).unwrap();
        assert_eq!(mode(), 0o750);
    }

    #[test]
    fn trouble_is_named_with_its_path() {
        use std::io::ErrorKind::{Other, PermissionDenied, ReadOnlyFilesystem, StorageFull};
        let check = |kind, trouble, text: &str| {
            let memory = disk(&["/p"], None);
            memory.set_hook(Some(Box::new(move |_| Some(disk::memory::Fault::Fail(kind)))));
            let root = Root::in_directory(Path::new("/p"));
            let error = root.ensure(&memory).unwrap_err();
            assert_eq!((error.trouble(), error.to_string().as_str()), (trouble, text));
        };
        let what = |why| format!("cannot create the directory /p/.raymond: {why}");
        check(StorageFull, disk::Trouble::Full, &what("the disk is full"));
        check(ReadOnlyFilesystem, disk::Trouble::ReadOnly, &what("the file system is read-only"));
        check(PermissionDenied, disk::Trouble::Denied, &what("permission denied"));
        check(Other, disk::Trouble::Other, &what("input/output error"));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_and_links_are_not_followed_when_a_run_is_removed() {
        use std::os::unix::fs::{MetadataExt as _, symlink};
        let directory = tempfile::tempdir().unwrap();
        let root = Root::in_directory(directory.path());
        root.ensure(&Files).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(root.path()), 0o700);
        assert_eq!(mode(&root.path().join(".gitignore")), 0o600);
        let outside = directory.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "").unwrap();
        let run = root.run("r").unwrap();
        run.ensure(&Files).unwrap();
        symlink(&outside, run.directory.join("link")).unwrap();
        run.remove(&Files).unwrap();
        assert!(!run.exist(&Files).unwrap());
        assert!(outside.join("precious").exists());
    }
}
