//! Where everything lies: `.raymond/`, and the directory of each run in it.
//!
//! It stands beside the repository's `.git`; for a linked worktree beside that of the main one, so
//! that all worktrees share their runs; without a repository in the directory given. It is private
//! (0700) and ignored by git.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ballast::Ballast;
use crate::disk::{self, Disk, During as _, Metadata, Trouble, create_dirs};
use crate::place::{self, Durability};
use crate::trusted::Trusted;

/// The name of the directory.
pub const NAME: &str = ".raymond";

/// The file that hides it from git.
const IGNORE: &str = ".gitignore";

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
    ///
    /// A repository or a place of somebody else is refused: whoever may write into `/tmp` must not
    /// decide for all who work below it.
    pub fn locate(disk: &dyn Disk, start: &Path) -> Result<Self, disk::Error> {
        let trusted = Trusted::in_directory(disk, start);
        for directory in start.ancestors() {
            let git = directory.join(".git");
            match disk.metadata(&git) {
                // Sandboxes leave empty ones in directories that hold many projects, such as `/tmp`.
                Ok(Metadata::Directory) if !disk::exists(disk, &git.join("HEAD"))? => {}
                Ok(Metadata::Directory) => {
                    trusted.check(disk, &git)?;
                    return Self::in_directory(directory).checked(disk, trusted);
                }
                Ok(Metadata::File(_)) => {
                    trusted.check(disk, &git)?;
                    let main = main_worktree(&disk::read(disk, &git)?, directory);
                    let root = Self::in_directory(main.as_deref().unwrap_or(directory));
                    return root.checked(disk, trusted);
                }
                Err(error) if absent(&error) => {}
                Err(error) => return Err(error).during("look at", &git),
            }
        }
        Self::in_directory(start).checked(disk, trusted)
    }

    /// The same, when neither it nor the repository that it is of belongs to somebody else.
    fn checked(self, disk: &dyn Disk, trusted: Trusted) -> Result<Self, disk::Error> {
        trusted.check(disk, &self.0)?;
        trusted.check(disk, &self.project().join(".git"))?;
        Ok(self)
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
        create_dirs(disk, self.project(), &[&self.runs_directory(), &self.state_directory()])?;
        let ignore = self.0.join(IGNORE);
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

    /// Refuses links in the place of its directories: what they lead to is none of ours.
    pub fn refuse_links(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        let directories = [self.0.clone(), self.runs_directory(), self.state_directory()];
        directories.iter().try_for_each(|directory| refuse_link(disk, directory))
    }

    /// Removes what was set aside, as far as it can be. The first trouble is returned.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links(disk)?;
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
    /// Creates the directory of the run and those in it that must be there in time, durably: of requests to it, and of
    /// its blobs, for which there may be no room later. Others are created by whoever has something to put there.
    pub fn ensure(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links(disk)?;
        create_dirs(disk, &self.base, &[&self.inbox, &self.blobs])
    }

    /// Removes what killed writers left unfinished. Only for the run's owner, before its first write.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for directory in [&self.directory, &self.blobs, &self.inbox] {
            place::sweep(disk, directory, |_| true)?;
        }
        place::sweep(disk, &self.base.join(NAME), |target| target == IGNORE)?;
        self.sweep_state(disk)
    }

    /// The same for its state file, which lies among those of other runs.
    fn sweep_state(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        let directory = self.state.parent().unwrap_or(&self.state);
        place::sweep(disk, directory, |target| self.state.ends_with(target))
    }

    /// Moves the transcripts whose names are not kept to a directory of this name beside them, durably.
    pub fn move_discarded_transcripts(
        &self,
        disk: &dyn Disk,
        aside: &str,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<(), disk::Error> {
        let (from, to) = (&self.transcripts, self.transcripts.join(aside));
        let names = match disk.list(from) {
            Err(error) if absent(&error) => return Ok(()),
            names => names.during("list", from)?,
        };
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
        disk::sync_dir(disk, &to)?;
        disk::sync_dir(disk, from)
    }

    /// Refuses a run with a link on the way to its files: somebody else chose where they would be
    /// written. What clients keep in their homes is theirs.
    pub fn refuse_links(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        self.refuse_links_above(disk)?;
        for directory in self.parts().into_iter().chain([&self.directory, &self.homes]) {
            match disk.link_in(directory) {
                Ok(Some(name)) => return Err(link(&directory.join(name))),
                Err(error) if !absent(&error) => return Err(error).during("list", directory),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Refuses a run whose directory or state file lies behind a link. What lies in its directory is not
    /// looked at: whoever removes it follows no link.
    pub fn refuse_links_above(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        let above = self.directory.ancestors().take_while(|above| *above != self.base);
        let mut directories = above.chain(self.state.parent());
        directories.try_for_each(|directory| refuse_link(disk, directory))
    }

    fn parts(&self) -> [&PathBuf; 4] {
        [&self.blobs, &self.inbox, &self.transcripts, &self.definition]
    }

    /// Whether the run's directory is there.
    pub fn exist(&self, disk: &dyn Disk) -> Result<bool, disk::Error> {
        disk::exists(disk, &self.directory)
    }

    /// Takes the run out of sight, for whoever holds its lock: from here on it is none. Returns where its
    /// directory went; [`Root::sweep`] removes it.
    pub fn set_aside(&self, disk: &dyn Disk) -> Result<PathBuf, disk::Error> {
        // Once its name is free, a state file of that name may be another run's.
        self.sweep_state(disk)?;
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
        disk::sync_dir(disk, runs)?;
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

fn refuse_link(disk: &dyn Disk, directory: &Path) -> Result<(), disk::Error> {
    match disk.is_link(directory) {
        Ok(true) => Err(link(directory)),
        Err(error) if !absent(&error) => Err(error).during("look at", directory),
        Ok(false) | Err(_) => Ok(()),
    }
}

fn link(path: &Path) -> disk::Error {
    disk::Error {
        attempt: "write into",
        path: path.to_owned(),
        source: disk::refused(Trouble::Link),
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
mod tests;
