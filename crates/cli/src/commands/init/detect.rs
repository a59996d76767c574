//! Finds the tools that build and check a project.
//!
//! The result is a pure function of a directory listing and the text of a few files, so that tests
//! are tables. It names only commands that the project declares; it guesses none, and runs nothing.

mod cargo;
mod make;
mod node;
mod python;

use std::collections::{BTreeMap, BTreeSet};

/// The listing of a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    /// The names of its files, and of test files in test folders.
    pub(super) files: BTreeSet<String>,
    /// The names of its folders.
    pub(super) folders: BTreeSet<String>,
    /// The texts of the files that may declare a tool.
    pub(super) texts: BTreeMap<String, String>,
    /// Whether the directory belongs to a git repository.
    pub(super) git: Git,
}

impl Listing {
    /// Whether the text of this file is needed.
    pub(super) fn wants(name: &str) -> bool {
        let named = ["Cargo.toml", "package.json"].contains(&name);
        named || make::NAMES.contains(&name) || python::wants(name)
    }

    /// Whether the files of this folder are needed.
    pub(super) fn opens(name: &str) -> bool {
        python::FOLDERS.iter().any(|(folder, _)| *folder == name)
    }

    fn has(&self, name: &str) -> bool {
        self.files.contains(name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Git {
    Repository,
    #[default]
    None,
}

/// The tools of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Detected {
    /// The tools, in order of preference.
    pub(super) tools: Vec<DetectedTool>,
    pub(super) git: Git,
}

/// A tool that the project declares.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DetectedTool {
    /// The file that declares the tool.
    pub(super) file: String,
    pub(super) offer: DetectedOffer,
}

/// The commands of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DetectedOffer {
    /// A command that checks a change, and further ones that an agent may need.
    Commands { check: DetectedCommand, others: Vec<DetectedCommand> },
    /// No command, with the reason.
    Nothing(&'static str),
}

/// A command of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DetectedCommand {
    /// The command line.
    pub(super) line: &'static str,
    /// The prefix that an agent may run, with any arguments.
    pub(super) prefix: &'static str,
    proof: Proof,
}

/// The evidence that a command gives about a change, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    Tests,
    Lints,
    Builds,
}

impl DetectedCommand {
    const fn tests(line: &'static str) -> Self {
        Self { line, prefix: line, proof: Proof::Tests }
    }

    const fn lints(line: &'static str) -> Self {
        Self { line, prefix: line, proof: Proof::Lints }
    }

    const fn builds(line: &'static str) -> Self {
        Self { line, prefix: line, proof: Proof::Builds }
    }

    const fn with_prefix(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }
}

impl DetectedOffer {
    /// Builds an offer whose first command is the check.
    fn of(commands: Vec<DetectedCommand>, otherwise: &'static str) -> Self {
        let mut commands = commands.into_iter();
        match commands.next() {
            Some(check) => Self::Commands { check, others: commands.collect() },
            None => Self::Nothing(otherwise),
        }
    }
}

impl DetectedTool {
    fn new(file: &str, offer: DetectedOffer) -> Self {
        Self { file: file.to_owned(), offer }
    }

    /// Returns all commands, the check first.
    pub(super) fn commands(&self) -> impl Iterator<Item = &DetectedCommand> {
        let (check, others) = match &self.offer {
            DetectedOffer::Commands { check, others } => (Some(check), others.as_slice()),
            DetectedOffer::Nothing(_) => (None, [].as_slice()),
        };
        check.into_iter().chain(others)
    }
}

impl Detected {
    pub(super) fn of(listing: &Listing) -> Self {
        let finders = [cargo::find, node::find, make::find, python::find];
        let mut tools: Vec<DetectedTool> =
            finders.iter().filter_map(|find| find(listing)).collect();
        // Tests of one tool are stronger evidence than lints of a preferred tool.
        tools.sort_by_key(|tool| match &tool.offer {
            DetectedOffer::Commands { check, .. } => (0, Some(check.proof)),
            DetectedOffer::Nothing(_) => (1, None),
        });
        Self { tools, git: listing.git }
    }

    /// Returns the command that checks a change, from the first tool that has one.
    pub(super) fn check(&self) -> Option<&DetectedCommand> {
        self.checks().next().map(|(_, check)| check)
    }

    /// Returns the check of every tool, with the file that declares it.
    pub(super) fn checks(&self) -> impl Iterator<Item = (&str, &DetectedCommand)> {
        self.tools.iter().filter_map(|tool| match &tool.offer {
            DetectedOffer::Commands { check, .. } => Some((tool.file.as_str(), check)),
            DetectedOffer::Nothing(_) => None,
        })
    }

    /// Returns the rules that allow an agent the project's commands, and no others.
    pub(super) fn rules(&self) -> Vec<String> {
        let commands = self.tools.iter().flat_map(DetectedTool::commands);
        let mut rules: Vec<String> = commands.map(|command| rule(command.prefix)).collect();
        if self.git == Git::Repository {
            rules.extend(["git status", "git diff", "git log"].map(rule));
        }
        rules
    }
}

/// `Bash(cargo test:*)`
fn rule(prefix: &str) -> String {
    format!("Bash({prefix}:*)")
}

#[cfg(test)]
mod tests;
