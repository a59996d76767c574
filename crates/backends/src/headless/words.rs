//! A command line in the making.

use std::ffi::OsString;

/// Words of a command line.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<OsString>);

impl Words {
    pub(crate) fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    pub(crate) fn joined(&mut self, flag: &str, value: &str) {
        self.0.push(format!("{flag}={value}").into());
    }

    pub(crate) fn each(&mut self, flag: &str, values: &[String]) {
        for value in values {
            self.joined(flag, value);
        }
    }
}
