//! The layout of `.raymond/` and of the directory of each run.
//!
//! `.raymond/` is beside the `.git` of the repository. A linked worktree uses the one of the main
//! worktree, so that all worktrees share their runs. Without a repository it is in the nearest
//! directory, from the given one upwards, that is already a project; otherwise in the given one. It
//! is private (mode 0700) and ignored by git. Nothing in it is written or removed
//! through a link.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::atomic_file::{self, Durability};
use crate::ballast::Ballast;
use crate::disk::{self, Disk, DiskErrorKind, During as _, Metadata, create_dirs};
use crate::trusted::TrustedUsers;

/// The name of the directory.
pub const NAME: &str = ".raymond";

/// The entries that make a directory outside repositories a project: runs, or settings.
const PROJECT_MARKS: [&str; 2] = [NAME, "raymond.toml"];

/// The file that makes git ignore the directory.
const IGNORE: &str = ".gitignore";

/// The beginning of the names of deleted runs that are not removed yet. A run id cannot start with
/// a dot.
const REMOVED_PREFIX: &str = ".removed-";

/// A `.raymond/` directory, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPaths {
    base: PathBuf,
    pub directory: PathBuf,
    pub journal: PathBuf,
    pub blobs: PathBuf,
    pub lock: PathBuf,
    /// The directory of requests to the owner.
    pub inbox: PathBuf,
    /// The directory of the output of its clients.
    pub transcripts: PathBuf,
    /// The directory of the clients' configurations, if each agent has its own.
    pub homes: PathBuf,
    /// The directory of pinned scripts.
    pub definition: PathBuf,
    /// The directory of long results that parents received from their workers.
    pub handed: PathBuf,
    /// The directory of prompts that cannot be rendered again.
    pub prompts: PathBuf,
    /// The replies of a rehearsal that got them from a pipe.
    pub replies: PathBuf,
    pub snapshot: PathBuf,
    pub state: PathBuf,
}

/// The error for a text that is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a run id of letters, digits, `-` and `_`")]
pub struct UnsafeRunName(String);

impl Root {
    /// Finds the `.raymond/` for `start`, which must be absolute. Nothing is created.
    ///
    /// A repository or `.raymond/` of another user is refused: a user who can write to `/tmp` must
    /// not decide for all who work below it.
    pub fn locate(disk: &dyn Disk, start: &Path) -> Result<Self, disk::Error> {
        let trusted = TrustedUsers::in_directory(disk, start);
        for directory in start.ancestors() {
            let git = directory.join(".git");
            match disk.metadata(&git) {
                // Sandboxes leave an empty `.git` in directories with many projects, such as
                // `/tmp`.
                Ok(Metadata::Directory) if !disk::exists(disk, &git.join("HEAD"))? => {}
                Ok(Metadata::Directory) => {
                    trusted.check(disk, &git)?;
                    return Self::in_directory(directory).check_owner(disk, trusted);
                }
                Ok(Metadata::File(_)) => {
                    trusted.check(disk, &git)?;
                    let main = main_worktree(&disk::read(disk, &git)?, directory);
                    let root = Self::in_directory(main.as_deref().unwrap_or(directory));
                    return root.check_owner(disk, trusted);
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error).during("look at", &git),
            }
        }
        let is_project = |directory: &&Path| is_own_project(disk, trusted, directory);
        let project = start.ancestors().find(is_project).unwrap_or(start);
        Self::in_directory(project).check_owner(disk, trusted)
    }

    /// Checks that neither the directory nor its repository belongs to another user.
    fn check_owner(self, disk: &dyn Disk, trusted: TrustedUsers) -> Result<Self, disk::Error> {
        trusted.check(disk, &self.0)?;
        trusted.check(disk, &self.project().join(".git"))?;
        Ok(self)
    }

    /// Returns the `.raymond/` in `directory`.
    pub fn in_directory(directory: &Path) -> Self {
        Self(directory.join(NAME))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of the project.
    pub fn project(&self) -> &Path {
        self.0.parent().unwrap_or(&self.0)
    }

    /// Writes a file of this directory in one step. A link with this name is replaced.
    pub fn replace(&self, disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<(), disk::Error> {
        atomic_file::write(disk, &self.0.join(name), bytes, Durability::Durable)
    }

    /// Returns the ballast that all runs share.
    pub fn ballast(&self, disk: Arc<dyn Disk>) -> Ballast {
        Ballast::new(disk, self.0.join("ballast"))
    }

    /// Creates the directories that are missing.
    pub fn ensure(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        create_dirs(disk, self.project(), &[&self.runs_directory(), &self.state_directory()])?;
        let ignore = self.0.join(IGNORE);
        if disk::exists(disk, &ignore)? {
            return Ok(());
        }
        atomic_file::write(disk, &ignore, b"*\n", Durability::Durable)
    }

    /// Returns the ids of all runs, sorted. Without the directory there are none.
    pub fn runs(&self, disk: &dyn Disk) -> Result<Vec<String>, disk::Error> {
        let directory = self.runs_directory();
        let names = match disk.list(&directory) {
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            names => names.during("list", &directory)?,
        };
        let ids = names.into_iter().filter_map(|name| name.into_string().ok());
        let is_directory =
            |id: &str| matches!(disk.metadata(&directory.join(id)), Ok(Metadata::Directory));
        Ok(ids.filter(|id| is_run(id) && is_directory(id)).collect())
    }

    /// Refuses links in place of its directories, because their targets may belong to anything.
    pub fn refuse_links(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        let directories = [self.0.clone(), self.runs_directory(), self.state_directory()];
        directories.iter().try_for_each(|directory| refuse_link(disk, directory))
    }

    /// Removes the files of deleted runs. It continues after an error, and returns the first one.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links(disk)?;
        remove_all(disk, self.removed_runs(disk)?)
    }

    /// Returns the directories of deleted runs that are not removed yet.
    pub fn removed_runs(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, disk::Error> {
        let directory = self.runs_directory();
        let names = match disk.list(&directory) {
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            names => names.during("list", &directory)?,
        };
        let aside = names.iter().filter(|name| name.to_string_lossy().starts_with(REMOVED_PREFIX));
        Ok(aside.map(|name| directory.join(name)).collect())
    }

    /// Returns the paths of the run `id`, which need not exist.
    pub fn run(&self, id: &str) -> Result<RunPaths, UnsafeRunName> {
        if !is_run(id) {
            return Err(UnsafeRunName(id.to_owned()));
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
            handed: directory.join("handed"),
            prompts: directory.join("prompts"),
            replies: directory.join("replies.yaml"),
            snapshot: directory.join("snapshot.json"),
            state: self.state_directory().join(format!("{id}.json")),
            directory,
        })
    }

    fn runs_directory(&self) -> PathBuf {
        self.0.join("runs")
    }

    fn state_directory(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl RunPaths {
    /// Creates the directory of the run with its inbox and its blobs, durably.
    ///
    /// These two must exist early: other processes write to the inbox, and a full disk may later
    /// have no room for a directory. All other directories are created when they are needed.
    pub fn ensure(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links(disk)?;
        create_dirs(disk, &self.base, &[&self.inbox, &self.blobs])
    }

    /// Keeps replies that cannot be read again.
    pub fn keep_replies(&self, disk: &dyn Disk, text: &str) -> Result<(), disk::Error> {
        atomic_file::write(disk, &self.replies, text.as_bytes(), Durability::Durable)
    }

    /// Removes the unfinished files of killed writers. Only the owner may call this, before its
    /// first write.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for directory in [&self.directory, &self.blobs, &self.inbox] {
            atomic_file::sweep(disk, directory, |_| true)?;
        }
        atomic_file::sweep(disk, &self.base.join(NAME), |target| target == IGNORE)?;
        self.sweep_state(disk)
    }

    /// Removes the unfinished state files of this run. The directory also contains those of other
    /// runs.
    fn sweep_state(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        let directory = self.state.parent().unwrap_or(&self.state);
        atomic_file::sweep(disk, directory, |target| self.state.ends_with(target))
    }

    /// Moves the transcripts that are not kept to a directory of this name beside them, durably.
    pub fn move_discarded_transcripts(
        &self,
        disk: &dyn Disk,
        aside: &str,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<(), disk::Error> {
        let (from, to) = (&self.transcripts, self.transcripts.join(aside));
        let names = match disk.list(from) {
            Err(error) if is_absent(&error) => return Ok(()),
            names => names.during("list", from)?,
        };
        // Directories are those of earlier rewinds, which stay where they are.
        let is_file = |name: &str| matches!(disk.metadata(&from.join(name)), Ok(Metadata::File(_)));
        let names = names.iter().filter_map(|name| name.to_str());
        let names: Vec<&str> = names.filter(|name| is_file(name) && !is_kept(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        create_dirs(disk, from, &[&to])?;
        for name in names {
            disk.rename(&from.join(name), &to.join(name)).during("move", &from.join(name))?;
        }
        // The new names first: a crash in between must not lose both names of a file.
        disk::sync_dir(disk, &to)?;
        disk::sync_dir(disk, from)
    }

    /// Refuses a run with a link on the way to its files: another user could have chosen where
    /// Raymond writes. Links inside the configurations of clients are allowed, because clients
    /// create them.
    pub fn refuse_links(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links_above(disk)?;
        for directory in self.parts().into_iter().chain([&self.directory, &self.homes]) {
            match disk.link_in(directory) {
                Ok(Some(name)) => return Err(link(&directory.join(name))),
                Err(error) if !is_absent(&error) => return Err(error).during("list", directory),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Refuses a run whose directory or state file is behind a link. Links inside the directory do
    /// not matter here, because removal follows no link.
    pub fn refuse_links_above(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        // The user chose the path of the project, links included, so the search ends there.
        let above = self.directory.ancestors().take_while(|above| *above != self.base);
        let mut directories = above.chain(self.state.parent());
        directories.try_for_each(|directory| refuse_link(disk, directory))
    }

    fn parts(&self) -> [&PathBuf; 6] {
        let Self { blobs, inbox, transcripts, definition, handed, prompts, .. } = self;
        [blobs, inbox, transcripts, definition, handed, prompts]
    }

    /// Returns whether the directory of the run exists.
    pub fn exists(&self, disk: &dyn Disk) -> Result<bool, disk::Error> {
        disk::exists(disk, &self.directory)
    }

    /// Renames the directory of the run, so that the run no longer exists. The caller holds its
    /// lock. Returns the new path, which [`Root::sweep`] removes.
    pub fn move_to_removed(&self, disk: &dyn Disk) -> Result<PathBuf, disk::Error> {
        // The state file goes first: after the rename, a file of that name may belong to a new run.
        self.sweep_state(disk)?;
        remove_tree(disk, &self.state)?;
        let runs = self.directory.parent().unwrap_or(&self.base);
        let id = self.directory.file_name().unwrap_or_default().to_string_lossy();
        // Several deleted runs may have had the same id, so a free number is searched.
        let mut n = 0_u64;
        let aside = loop {
            let aside = runs.join(format!("{REMOVED_PREFIX}{n}-{id}"));
            if !disk::exists(disk, &aside)? {
                break aside;
            }
            n += 1;
        };
        // One rename instead of many removals: after a crash the run exists completely or not at
        // all.
        disk.rename(&self.directory, &aside).during("set aside", &self.directory)?;
        disk::sync_dir(disk, runs)?;
        Ok(aside)
    }

    /// Removes the run and its state file. The journal is removed first, so that a crash does not
    /// leave half a run that looks complete.
    pub fn remove(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for file in [&self.journal, &self.state] {
            remove_tree(disk, file)?;
        }
        remove_tree(disk, &self.directory)
    }
}

fn refuse_link(disk: &dyn Disk, directory: &Path) -> Result<(), disk::Error> {
    match disk.is_link(directory) {
        Ok(true) => Err(link(directory)),
        Err(error) if !is_absent(&error) => Err(error).during("look at", directory),
        Ok(false) | Err(_) => Ok(()),
    }
}

fn link(path: &Path) -> disk::Error {
    disk::Error {
        attempt: "write into",
        path: path.to_owned(),
        source: disk::refused(DiskErrorKind::Link),
    }
}

/// Removes a file, or a directory with everything in it. A missing path is not an error. A link is
/// removed, never followed.
fn remove_tree(disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
    match disk.remove(path) {
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            // A script may have left a directory without write permission. If the permission cannot
            // be changed, the removal below reports the error.
            disk.make_dir_writable(path).ok();
            let names = match disk.list(path) {
                Err(error) if is_absent(&error) => return Ok(()),
                names => names.during("list", path)?,
            };
            remove_all(disk, names.iter().map(|name| path.join(name)))?;
            match disk.remove(path) {
                Err(error) if is_absent(&error) => Ok(()),
                removed => removed.during("remove", path),
            }
        }
        removed => removed.during("remove", path),
    }
}

/// Removes all paths, even if one of them fails, and returns the first error.
fn remove_all(
    disk: &dyn Disk,
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<(), disk::Error> {
    // Collected before the first error is looked at, because a lazy iterator would stop at that
    // error.
    let removed: Vec<_> = paths.into_iter().map(|path| remove_tree(disk, &path)).collect();
    removed.into_iter().collect()
}

/// Returns the main worktree if `git` is the content of the `.git` file of a linked worktree in
/// `directory`.
///
/// Submodules (`…/.git/modules/x`) and worktrees of a bare repository have no main worktree.
fn main_worktree(git: &[u8], directory: &Path) -> Option<PathBuf> {
    let text = str::from_utf8(git).ok()?;
    let gitdir = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    let gitdir = normalise(&directory.join(gitdir));
    let worktrees = gitdir.parent()?;
    let common = worktrees.parent()?;
    // The `.git` file of a linked worktree contains `<main>/.git/worktrees/<name>`.
    let linked = worktrees.file_name()? == "worktrees" && common.file_name()? == ".git";
    linked.then(|| common.parent().map(Path::to_owned))?
}

/// Removes `.` and `..` from a path as text, because git writes relative paths in worktrees.
fn normalise(path: &Path) -> PathBuf {
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

/// Whether a directory is a project of a trusted user. A project of anyone else is passed over: a
/// `.raymond/` that a stranger left in `/tmp` must neither be used nor stop others below it.
fn is_own_project(disk: &dyn Disk, trusted: TrustedUsers, directory: &Path) -> bool {
    // A directory in which every user may write, such as `/tmp`, belongs to no project. Neither
    // does `/`: one run that root started there would take in all other directories.
    if directory.parent().is_none() || disk.is_open_to_all(directory).unwrap_or(true) {
        return false;
    }
    PROJECT_MARKS
        .iter()
        .map(|mark| directory.join(mark))
        .any(|mark| disk.metadata(&mark).is_ok() && trusted.check(disk, &mark).is_ok())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_run(id: &str) -> bool {
    // No dots and no slashes, so that an id can never lead out of `runs/`. 128 bytes stay below the
    // 255 that file systems allow, even with a prefix and a suffix.
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}

#[cfg(test)]
mod tests;
