//! The directory that `init` writes to, in which no file may be overwritten.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use raymond_core::extension::is_state;
use raymond_core::text::quoted;

use crate::args::Init;
use crate::failure::Failure;
use crate::sanitize::sanitized;

use super::files::{self, File};

/// The default directory of the workflow.
pub(super) const DEFAULT: &str = "workflows/change";

/// The directory that receives the files.
pub(super) struct Directory {
    /// The path as the user gave it.
    pub(super) name: String,
    path: PathBuf,
}

impl Directory {
    /// Returns the directory that the user gave, or the default.
    pub(super) fn named(flags: &Init, usual: &str) -> Result<Self, Failure> {
        let path = flags.directory.as_deref().unwrap_or_else(|| Path::new(usual));
        // The name becomes part of commands in the README, which a user pastes into a shell.
        let name = path.to_str().filter(|name| !name.chars().any(char::is_control));
        let Some(name) = name else {
            let shown = sanitized(&path.display().to_string());
            return Err(Failure::usage(format!("{shown:?} is not a valid folder name")));
        };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // Git ignores `.raymond`, and `.git` belongs to git: a workflow there would be lost.
        for taken in [".raymond", ".git"] {
            if absolute.components().any(|part| part.as_os_str() == taken) {
                let failure = Failure::usage(format!("{name} cannot contain a workflow"));
                return Err(
                    failure.hint("choose a folder of the project, such as workflows/change")
                );
            }
        }
        Ok(Self { name: name.to_owned(), path: path.to_owned() })
    }

    /// Refuses a directory that contains one of the files already.
    pub(super) fn check_free(&self, files: &[File], flags: &Init) -> Result<(), Failure> {
        let there = self.conflicts(files, flags)?;
        let exist = match there.len() {
            0 => return Ok(()),
            1 => "exists",
            _ => "exist",
        };
        let (there, here) = (sanitized(&there.join(", ")), sanitized(&self.name));
        let failure =
            Failure::usage(format!("nothing was written: {there} already {exist} in {here}"));
        Err(failure.hint(format!("choose another folder: {}", self.free_name_command(flags))))
    }

    /// Returns the files that would be overwritten. For a new workflow, existing states count, too:
    /// a second entry state would break both workflows.
    fn conflicts(&self, files: &[File], flags: &Init) -> Result<Vec<String>, Failure> {
        let mut there = files::existing(&self.path, files)?;
        if flags.from.is_none() {
            let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            there.extend(names.filter(|name| is_state(name)));
        }
        there.sort();
        there.dedup();
        Ok(there)
    }

    /// Returns the same command with a free directory name.
    fn free_name_command(&self, flags: &Init) -> String {
        let from = flags.from.as_ref().map(|name| format!("--from {name} ")).unwrap_or_default();
        let name = self.name.trim_end_matches('/');
        let name = if matches!(name, "" | "." | "..") { DEFAULT } else { name };
        let mut names = (2..).map(|number| format!("{name}-{number}"));
        let free = names.find(|name| !Path::new(name).exists()).unwrap_or_default();
        format!("raymond init {from}{}", sanitized(&quoted(&free)))
    }

    pub(super) fn write(&self, files: &[File], flags: &Init) -> Result<(), Failure> {
        if flags.dry_run { Ok(()) } else { files::write(&self.path, files) }
    }

    pub(super) fn paths(&self, files: &[File]) -> Vec<String> {
        files.iter().map(|file| self.path_of(file)).collect()
    }

    fn path_of(&self, file: &File) -> String {
        sanitized(&self.path.join(&file.name).display().to_string())
    }

    /// ```text
    /// wrote
    ///   workflows/change/START.md  makes the change
    /// ```
    pub(super) fn written_text(&self, files: &[File], flags: &Init) -> String {
        let paths = self.paths(files);
        let width = paths.iter().map(|path| path.chars().count()).max().unwrap_or_default();
        let mut text = String::from(if flags.dry_run { "would write\n" } else { "wrote\n" });
        for (path, file) in paths.iter().zip(files) {
            match &file.purpose {
                Some(purpose) => writeln!(text, "  {path:<width$}  {purpose}").ok(),
                None => writeln!(text, "  {path}").ok(),
            };
        }
        text
    }
}
