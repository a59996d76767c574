//! A public type name has one meaning in the product, so that a search for it finds one type.
//!
//! Private types, types of a parent module only, and types of tests may share a name: a reader
//! meets them in one folder. A re-export does not count.

use std::collections::BTreeMap;

use anyhow::Result;
use regex::Regex;

/// The crates of the product.
const PRODUCT: &str = r"^crates/(backends|cli|core|engine|mcp|schema|store)/src/";

/// Files that contain only tests, such as `tests.rs`, `tests/waits.rs` and `test_runs.rs`.
const TEST_FILE: &str = r"/(tests?/|tests?\.rs$|test_|\w+_tests\.rs$)";

const DEFINITION: &str = r"^\s*pub(?:\(crate\))? (?:struct|enum|trait|type|union) (\w+)";

/// A name that each module may define, because it is always written as `module::Error`.
const FREE: &str = "Error";

/// The places of all definitions by name.
pub(super) struct TypeNames {
    product: Regex,
    test_file: Regex,
    definition: Regex,
    places: BTreeMap<String, Vec<String>>,
}

impl TypeNames {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            product: Regex::new(PRODUCT)?,
            test_file: Regex::new(TEST_FILE)?,
            definition: Regex::new(DEFINITION)?,
            places: BTreeMap::new(),
        })
    }

    /// Notes the public types that a file defines.
    pub(super) fn read(&mut self, file: &str, source: &str) {
        if !self.product.is_match(file) || self.test_file.is_match(file) {
            return;
        }
        for (number, line) in source.lines().enumerate() {
            if let Some(found) = self.definition.captures(line) {
                let place = format!("{file}:{}", number + 1);
                self.places.entry(found[1].to_owned()).or_default().push(place);
            }
        }
    }

    /// Returns a line for each name that is defined more than once.
    pub(super) fn broken(&self) -> Vec<String> {
        let repeated = self.places.iter().filter(|(name, at)| at.len() > 1 && *name != FREE);
        repeated
            .map(|(name, at)| format!("{}: rename `{name}`: also in {}", at[0], at[1..].join(", ")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_type_names_are_found() {
        let check = |one: [&str; 2], other: [&str; 2], is_broken: bool| {
            let mut names = TypeNames::new().unwrap();
            names.read(one[0], one[1]);
            names.read(other[0], other[1]);
            assert_eq!(!names.broken().is_empty(), is_broken, "{one:?} {other:?}");
        };
        let line = ["crates/core/src/view.rs", "pub struct Line {"];
        check(line, ["crates/store/src/lines.rs", "pub(crate) enum Line {"], true);
        check(line, ["crates/core/src/words.rs", "    pub type Line = String;"], true);
        check(line, ["crates/store/src/lines.rs", "pub struct Lines {"], false);
        check(line, ["crates/store/src/lines.rs", "struct Line {"], false);
        check(line, ["crates/store/src/lines.rs", "pub(super) struct Line {"], false);
        check(line, ["crates/store/src/lines.rs", "pub use view::Line;"], false);
        check(line, ["crates/store/src/lines/tests.rs", "pub struct Line {"], false);
        check(line, ["crates/store/src/fault_tests.rs", "pub struct Line {"], false);
        check(line, ["crates/testkit/src/lines.rs", "pub struct Line {"], false);
        let error = ["crates/core/src/view.rs", "pub enum Error {"];
        check(error, ["crates/store/src/lines.rs", "pub enum Error {"], false);
    }
}
