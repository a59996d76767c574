//! What a project is built and checked with.
//!
//! A pure function of a directory's listing and the text of a few files in it, so that every kind of
//! project is a row of a table. It names commands that the project itself declares; it never guesses
//! at one, and runs nothing.

mod cargo;
mod make;
mod node;
mod python;

use std::collections::{BTreeMap, BTreeSet};

/// A directory, as far as it is looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    /// The names of its files, and of those in folders of tests that are tests themselves.
    pub(super) files: BTreeSet<String>,
    /// The names of its folders.
    pub(super) folders: BTreeSet<String>,
    /// The text of those files that say something.
    pub(super) texts: BTreeMap<String, String>,
    /// Whether it belongs to a git repository.
    pub(super) git: Git,
}

impl Listing {
    /// Whether the text of this file would be read.
    pub(super) fn wants(name: &str) -> bool {
        let named = ["Cargo.toml", "package.json"].contains(&name);
        named || make::NAMES.contains(&name) || python::wants(name)
    }

    /// Whether it is looked into this folder.
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

/// Whether a directory belongs to a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Git {
    Repository,
    #[default]
    None,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Detected {
    /// The tools, in the order in which they are preferred.
    pub(super) tools: Vec<Tool>,
    pub(super) git: Git,
}

/// A tool that the project declares.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// The file that says so.
    pub(super) file: String,
    pub(super) offer: Offer,
}

/// What a tool can do for the project.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The command that checks a change, and further ones that an agent may want.
    Commands { check: Command, others: Vec<Command> },
    /// Nothing, and why.
    Nothing(&'static str),
}

/// A command of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// As it is run.
    pub(super) line: &'static str,
    /// What an agent may run: this, with any further arguments.
    pub(super) prefix: &'static str,
    proof: Proof,
}

/// What a command shows about a change, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    Tests,
    Lints,
    Builds,
}

impl Command {
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

impl Offer {
    /// The first command checks.
    fn of(commands: Vec<Command>, otherwise: &'static str) -> Self {
        let mut commands = commands.into_iter();
        match commands.next() {
            Some(check) => Self::Commands { check, others: commands.collect() },
            None => Self::Nothing(otherwise),
        }
    }
}

impl Tool {
    fn new(file: &str, offer: Offer) -> Self {
        Self { file: file.to_owned(), offer }
    }

    /// All its commands, the one that checks first.
    pub(super) fn commands(&self) -> impl Iterator<Item = &Command> {
        let (check, others) = match &self.offer {
            Offer::Commands { check, others } => (Some(check), others.as_slice()),
            Offer::Nothing(_) => (None, [].as_slice()),
        };
        check.into_iter().chain(others)
    }
}

impl Detected {
    pub(super) fn of(listing: &Listing) -> Self {
        let finders = [cargo::find, node::find, make::find, python::find];
        let mut tools: Vec<Tool> = finders.iter().filter_map(|find| find(listing)).collect();
        // Tests of one tool tell more than the lints of another that comes first.
        tools.sort_by_key(|tool| match &tool.offer {
            Offer::Commands { check, .. } => (0, Some(check.proof)),
            Offer::Nothing(_) => (1, None),
        });
        Self { tools, git: listing.git }
    }

    /// The command that checks a change: of the first tool that has one.
    pub(super) fn check(&self) -> Option<&Command> {
        self.checks().next().map(|(_, check)| check)
    }

    /// Every tool's command that checks a change, with the file that declares it.
    pub(super) fn checks(&self) -> impl Iterator<Item = (&str, &Command)> {
        self.tools.iter().filter_map(|tool| match &tool.offer {
            Offer::Commands { check, .. } => Some((tool.file.as_str(), check)),
            Offer::Nothing(_) => None,
        })
    }

    /// The rules that let an agent run the project's commands, and none beside them.
    pub(super) fn rules(&self) -> Vec<String> {
        let commands = self.tools.iter().flat_map(Tool::commands);
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
