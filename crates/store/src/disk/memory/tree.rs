//! The names of a simulated disk: the current names, the durable names, and the changes in between.
//!
//! Each change that was not synced survives a crash or not, independently of the others. A rename
//! is one change. A file is lost if its directory does not survive.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::{Dice, InodeNumber};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    File(InodeNumber),
    Directory,
}

type Names = BTreeMap<PathBuf, Entry>;

#[derive(Debug)]
pub(super) struct Tree {
    current: Names,
    durable: Names,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Create(PathBuf, Entry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Entry),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(path, entry) => {
                names.insert(path.clone(), *entry);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
            Self::Rename(from, to, entry) => {
                names.remove(from);
                names.insert(to.clone(), *entry);
            }
        }
    }

    fn is_in(&self, directory: &Path) -> bool {
        let within = |path: &Path| path.parent() == Some(directory);
        match self {
            Self::Create(path, _) | Self::Remove(path) => within(path),
            // A sync of either directory makes the whole rename durable, because a rename is one
            // change.
            Self::Rename(from, to, _) => within(from) || within(to),
        }
    }
}

impl Tree {
    /// Returns a tree that contains only `/`.
    pub(super) fn new() -> Self {
        let root = BTreeMap::from([(PathBuf::from("/"), Entry::Directory)]);
        Self { current: root.clone(), durable: root, pending: Vec::new() }
    }

    pub(super) fn find(&self, path: &Path) -> Option<Entry> {
        self.current.get(path).copied()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = InodeNumber> {
        self.current.values().filter_map(|entry| match entry {
            Entry::File(number) => Some(*number),
            Entry::Directory => None,
        })
    }

    pub(super) fn create(&mut self, path: &Path, entry: Entry) -> io::Result<()> {
        self.parent(path)?;
        if self.find(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(Change::Create(path.to_owned(), entry));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.parent(to)?;
        match (self.find(from), self.find(to)) {
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
            // The store renames directories only on a real disk, when it deletes a run.
            (Some(Entry::Directory), _) => return Err(io::ErrorKind::Unsupported.into()),
            (Some(_), Some(Entry::Directory)) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(entry), Some(Entry::File(_)) | None) => {
                self.change(Change::Rename(from.to_owned(), to.to_owned(), entry));
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        match self.find(path) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(Entry::Directory) if !self.list(path)?.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            Some(Entry::Directory | Entry::File(_)) => {
                self.change(Change::Remove(path.to_owned()));
            }
        }
        Ok(())
    }

    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.directory(directory)?;
        // Names are sorted, so the content of a directory follows it.
        let after = (Bound::Excluded(directory), Bound::Unbounded);
        let within = self.current.range::<Path, _>(after).map(|(path, _)| path);
        let within = within.take_while(|path| path.starts_with(directory));
        let children = within.filter(|path| path.parent() == Some(directory));
        let names = children.filter_map(|path| path.file_name());
        Ok(names.map(ToOwned::to_owned).collect())
    }

    /// Makes every change in `directory` durable.
    pub(super) fn sync(&mut self, directory: &Path) -> io::Result<()> {
        self.directory(directory)?;
        self.pending.retain(|change| {
            let synced = change.is_in(directory);
            if synced {
                change.apply(&mut self.durable);
            }
            !synced
        });
        Ok(())
    }

    /// Cuts the power.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        for change in self.pending.drain(..) {
            // Without a sync the order of changes on the disk is undefined, so each has its own
            // chance.
            if dice(2) == 1 {
                change.apply(&mut self.durable);
            }
        }
        // Parents sort before their children, so one pass sees every lost directory.
        let mut survivors = Names::new();
        for (path, entry) in &self.durable {
            let parent = path.parent().map(|parent| survivors.get(parent));
            if matches!(parent, None | Some(Some(Entry::Directory))) {
                survivors.insert(path.clone(), *entry);
            }
        }
        self.durable = survivors;
        self.current = self.durable.clone();
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    fn parent(&self, path: &Path) -> io::Result<()> {
        self.directory(path.parent().unwrap_or(path))
    }

    fn directory(&self, path: &Path) -> io::Result<()> {
        match self.find(path) {
            Some(Entry::Directory) => Ok(()),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_crash(survives: u64, change: impl FnOnce(&mut Tree)) -> Vec<String> {
        let mut tree = Tree::new();
        let old = Path::new("/old");
        tree.create(old, Entry::File(1)).unwrap();
        tree.sync(Path::new("/")).unwrap();
        change(&mut tree);
        let mut dice: Dice = Box::new(move |_| survives);
        tree.crash(&mut dice);
        let names = tree.current.keys().map(|path| path.display().to_string());
        names.skip(1).collect()
    }

    #[test]
    fn names_survive_only_after_a_directory_sync() {
        let check = |change: fn(&mut Tree), lost: &[&str], kept: &[&str]| {
            assert_eq!(after_a_crash(0, change), lost);
            assert_eq!(after_a_crash(1, change), kept);
        };
        check(
            |tree| tree.create(Path::new("/new"), Entry::File(2)).unwrap(),
            &["/old"],
            &["/new", "/old"],
        );
        check(|tree| tree.remove(Path::new("/old")).unwrap(), &["/old"], &[]);
        check(
            |tree| tree.rename(Path::new("/old"), Path::new("/new")).unwrap(),
            &["/old"],
            &["/new"],
        );
        check(
            |tree| {
                tree.remove(Path::new("/old")).unwrap();
                tree.sync(Path::new("/")).unwrap();
            },
            &[],
            &[],
        );
    }

    #[test]
    fn rename_is_durable_with_either_directory() {
        for synced in ["/", "/d"] {
            let moved = |tree: &mut Tree| {
                tree.create(Path::new("/d"), Entry::Directory).unwrap();
                tree.sync(Path::new("/")).unwrap();
                tree.rename(Path::new("/old"), Path::new("/d/new")).unwrap();
                tree.sync(Path::new(synced)).unwrap();
            };
            assert_eq!(after_a_crash(0, moved), ["/d", "/d/new"], "{synced}");
        }
    }

    #[test]
    fn a_file_is_lost_with_its_directory() {
        let inside = |tree: &mut Tree| {
            tree.create(Path::new("/d"), Entry::Directory).unwrap();
            tree.create(Path::new("/d/f"), Entry::File(2)).unwrap();
            tree.sync(Path::new("/d")).unwrap();
        };
        assert_eq!(after_a_crash(0, inside), ["/old"]);
        assert_eq!(after_a_crash(1, inside), ["/d", "/d/f", "/old"]);
    }
}
