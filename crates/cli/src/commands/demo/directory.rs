//! The directory of the demo, and its lines on the screen.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use raymond_core::ids::RunId;
use raymond_engine::clock;
use raymond_engine::inspect::{Inspection, inspect};
use raymond_engine::project::Project;

use crate::failure::Failure;
use crate::sanitize::sanitized;

/// The files of the demo.
macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!($name))),*] };
}

const FILES: [(&str, &str); 13] = files![
    "notes/1_START.sh",
    "notes/PLAN.md",
    "notes/DIG.md",
    "notes/WRITE.md",
    "notes/JUDGE.md",
    "notes/PUBLISH.sh",
    "notes.yaml",
    "slow.yaml",
    "audit/1_START.sh",
    "audit/CHECK.md",
    "audit/TRANSLATE.md",
    "audit/REPORT.sh",
    "audit.yaml",
];

pub(super) struct DemoDirectory {
    directory: PathBuf,
    project: Project,
}

impl DemoDirectory {
    /// Writes the workflows into a new directory.
    pub(super) fn set() -> Result<Self, Failure> {
        // A random name: another user of a shared temporary directory cannot prepare a directory in
        // advance.
        let name = format!("raymond-demo-{}", &clock::nonce().to_string()[..8]);
        let directory = std::env::temp_dir().join(name);
        write(&directory).map_err(|error| {
            let directory = directory.display();
            Failure::environment(format!("could not write the demo into {directory}: {error}"))
        })?;
        let directory = directory.canonicalize().unwrap_or(directory);
        let project = Project::locate(&directory)?;
        Ok(Self { directory, project })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads a run of the demo.
    pub(super) fn inspect(&self, run: &str) -> Result<Inspection, Failure> {
        Ok(inspect(&self.project, &RunId::new(run))?)
    }

    /// Returns the number of lines of a file.
    pub(super) fn lines(&self, name: &str) -> Result<usize, Failure> {
        let path = self.directory.join(name);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| unreadable(&path, &error))?;
        Ok(text.lines().count())
    }

    pub(super) fn show(&self, name: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        print("");
        text.lines().for_each(quote);
        Ok(())
    }

    /// Keeps the directory, and prints where it is.
    pub(super) fn keep(&self) {
        let directory = self.directory.display();
        say(&format!(
            "\nThe workflows and their runs are kept in {directory}. There, `raymond list` lists\n\
             the runs, and `raymond show third --verbose` shows the last one turn by turn."
        ));
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.directory).map_err(|error| {
            let directory = self.directory.display();
            Failure::environment(format!("could not remove {directory}: {error}"))
        })?;
        say(&format!("\nRemoved {}; `raymond demo --keep` keeps it.", self.directory.display()));
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("could not read {}: {error}", path.display())).code(1)
}

fn write(directory: &Path) -> io::Result<()> {
    // Private, and `create` fails for a directory that exists: another user could have put states
    // into it.
    fs::DirBuilder::new().mode(0o700).create(directory)?;
    // Runs are stored beside the nearest `.git`, so this directory must be a project of its own.
    fs::create_dir(directory.join(".git"))?;
    fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    for (name, text) in FILES {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, text)?;
    }
    Ok(())
}

pub(super) fn title(text: &str) {
    let style = Style::new().bold();
    print(&format!("\n{style}{text}{style:#}"));
}

/// Prints a paragraph of the tour.
pub(super) fn say(text: &str) {
    print(text);
}

/// Prints a list of facts.
pub(super) fn list<T: AsRef<str>>(lines: &[T]) {
    print("");
    for line in lines {
        print(&format!("  {}", line.as_ref()));
    }
}

/// Prints a line of a file or of a child.
pub(super) fn quote(line: &str) {
    let style = Style::new().dimmed();
    print(&format!("  {style}│{style:#} {}", sanitized(line)));
}

/// Prints the command that runs next.
pub(super) fn command(arguments: &[&str]) {
    let style = Style::new().bold();
    print(&format!("\n  {style}$ raymond {}{style:#}", arguments.join(" ")));
}

/// Prints the kill command for the process.
pub(super) fn kill(process: Option<u32>) {
    let style = Style::new().bold();
    let process = process.map(|id| id.to_string()).unwrap_or_default();
    print(&format!("\n  {style}$ kill -9 {process}{style:#}\n"));
}

fn print(text: &str) {
    // A closed stdout must not stop the demo.
    writeln!(anstream::stdout(), "{text}").ok();
}
