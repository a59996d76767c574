//! A command line in the making, in which no value can be taken for a flag.
//!
//! Values come from replies, tags, frontmatter and settings: somebody else chose them, and one may
//! start with `-`. A value is therefore always part of a word that starts with a flag of ours. Words
//! on their own are constants of this program, which the type of [`ArgumentList::add`] makes certain. The
//! argument of a subcommand is the one exception; it follows `--`.

use std::ffi::{OsStr, OsString};

/// Words of a command line.
#[derive(Debug, Default)]
pub(crate) struct ArgumentList(Vec<OsString>);

impl ArgumentList {
    /// Adds words of this program.
    pub(crate) fn add<const N: usize>(&mut self, arguments: [&'static str; N]) {
        self.0.extend(arguments.map(OsString::from));
    }

    /// Adds a flag with its value as one word: `--model=opus`.
    pub(crate) fn joined(&mut self, flag: &'static str, value: impl AsRef<OsStr>) {
        let mut word = OsString::from(flag);
        word.push("=");
        word.push(value);
        self.0.push(word);
    }

    /// Adds a flag with its value as one word, for each value. A flag that takes a list would swallow
    /// every word that follows it.
    pub(crate) fn each(&mut self, flag: &'static str, values: &[String]) {
        for value in values {
            self.joined(flag, value);
        }
    }

    /// Adds a subcommand with its one argument, which is never read as a flag.
    pub(crate) fn subcommand(&mut self, name: &'static str, argument: &str) {
        self.add([name, "--"]);
        self.0.push(argument.into());
    }

    /// Returns the words in their order.
    pub(crate) fn finish(self) -> Vec<OsString> {
        self.0
    }
}
