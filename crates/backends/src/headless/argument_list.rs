//! A command line builder in which no value can be taken for a flag.
//!
//! Values come from replies, tags, frontmatter and settings. Raymond does not choose them, and a
//! value may start with `-`. A value is therefore always joined to a flag in one argument.
//! Arguments without a flag are constants of this program, which the type of [`ArgumentList::add`]
//! enforces. The only exception is the argument of a subcommand, which follows `--`.

use std::ffi::{OsStr, OsString};

/// The arguments of a command line.
#[derive(Debug, Default)]
pub(crate) struct ArgumentList(Vec<OsString>);

impl ArgumentList {
    /// Adds constants of this program.
    pub(crate) fn add<const N: usize>(&mut self, arguments: [&'static str; N]) {
        self.0.extend(arguments.map(OsString::from));
    }

    /// Adds a flag and its value as one argument: `--model=opus`.
    pub(crate) fn joined(&mut self, flag: &'static str, value: impl AsRef<OsStr>) {
        let mut word = OsString::from(flag);
        word.push("=");
        word.push(value);
        self.0.push(word);
    }

    /// Adds one argument for each value. A flag that takes a list would also consume the arguments
    /// after it.
    pub(crate) fn each(&mut self, flag: &'static str, values: &[String]) {
        for value in values {
            self.joined(flag, value);
        }
    }

    /// Adds a subcommand and its argument.
    pub(crate) fn subcommand(&mut self, name: &'static str, argument: &str) {
        // After `--` the client reads nothing as a flag.
        self.add([name, "--"]);
        self.0.push(argument.into());
    }

    pub(crate) fn finish(self) -> Vec<OsString> {
        self.0
    }
}
