//! Writes a set of files completely or not at all, and never overwrites a file.
//!
//! A workflow with half of its states would look valid to the user but fail later. The files are
//! written directly and removed after an error. A crash can leave a part of them behind; the next
//! `init` then refuses and names them.

use std::borrow::Cow;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::examples::Example;
use crate::failure::Failure;
use crate::sanitize::sanitized;

#[derive(Debug, Clone)]
pub(super) struct File {
    /// The path below the directory, with `/`.
    pub(super) name: String,
    pub(super) content: Cow<'static, [u8]>,
    pub(super) executable: bool,
    pub(super) purpose: Option<String>,
}

pub(super) fn example_files(example: &Example) -> Vec<File> {
    let file = |(name, content, executable): &(&str, &'static [u8], bool)| File {
        name: (*name).to_owned(),
        content: (*content).into(),
        executable: *executable,
        purpose: None,
    };
    example.files.iter().map(file).collect()
}

/// Returns the files that exist already, including broken links.
pub(super) fn existing(directory: &Path, files: &[File]) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for File { name, .. } in files {
        let path = directory.join(name);
        // Not `exists`, which follows links: a broken link would look like a free name.
        match fs::symlink_metadata(&path) {
            Ok(_) => found.push(name.clone()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(no_folder(&path));
            }
            Err(error) => return Err(refused(&path, &error)),
        }
    }
    Ok(found)
}

/// Writes all files. If one fails, removes the files written before it.
pub(super) fn write(directory: &Path, files: &[File]) -> Result<(), Failure> {
    // Tracks only what this call creates, so that `undo` cannot remove a file that existed before.
    let mut made = Made::default();
    for file in files {
        let path = directory.join(&file.name);
        if let Err(error) = made.write(&path, file) {
            made.undo();
            return Err(refused(&path, &error));
        }
    }
    Ok(())
}

/// The files and folders that were created, in order.
#[derive(Default)]
struct Made {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Made {
    fn write(&mut self, path: &Path, file: &File) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            self.folder(folder)?;
        }
        // The umask of the user removes the bits that the user does not want.
        let mode = if file.executable { 0o777 } else { 0o666 };
        let mut written =
            // `create_new` refuses an existing file even if it appeared after the check, and never
            // follows a link.
            fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        // Noted before the content is written, so that `undo` also removes a half-written file.
        self.files.push(path.to_owned());
        written.write_all(&file.content)
    }

    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.folder(parent)?;
        }
        fs::create_dir(folder)?;
        self.folders.push(folder.to_owned());
        Ok(())
    }

    /// Removes what was created. A failure is ignored, because the error that led here is the one
    /// to report.
    fn undo(self) {
        // Files first: a folder can be removed only when it is empty.
        for file in self.files.iter().rev() {
            fs::remove_file(file).ok();
        }
        for folder in self.folders.iter().rev() {
            // Fails for a folder that is not empty, so files of others survive.
            fs::remove_dir(folder).ok();
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("could not write {}: {error}", shown(path)))
}

/// The failure for a file in the place of a folder.
fn no_folder(path: &Path) -> Failure {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    // The error names the file that is in the way, not the path below it.
    let found = ancestors.into_iter().find(|path| path.exists() && !path.is_dir());
    let failure = Failure::usage(format!("{} is not a folder", shown(found.unwrap_or(path))));
    failure.hint("choose a folder that does not exist yet")
}

fn shown(path: &Path) -> String {
    sanitized(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> File {
        File {
            name: name.to_owned(),
            content: Cow::Borrowed(b"x"),
            executable: false,
            purpose: None,
        }
    }

    #[test]
    fn failed_write_removes_only_its_own_files() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("a/b");
        fs::create_dir(place.path().join("a")).unwrap();
        // The second needs a folder where the first is a file.
        let files = [file("c/x"), file("c/x/y")];
        assert_eq!(existing(&top, &files).unwrap(), [""; 0]);
        write(&top, &files).unwrap_err();
        let left: Vec<_> = fs::read_dir(place.path().join("a")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    // proves: S12
    #[test]
    fn late_file_is_never_overwritten() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("y"), "mine").unwrap();
        write(place.path(), &[file("x"), file("y")]).unwrap_err();
        assert_eq!(fs::read_to_string(place.path().join("y")).unwrap(), "mine");
        assert!(!place.path().join("x").exists());
    }
}
