//! Five rules that neither rustfmt nor clippy knows.
//!
//! A parameter is not a tuple pattern, because a pair that travels together deserves a name. A
//! comment ends at 100 columns, as the code does. A test of the command line starts programs only
//! with a home of its own, because Raymond reads and writes files of its user. A public type name
//! is defined once in the product (`type_names`). The name of a test is short (`test_names`).
//! `cargo xtask check` and a test apply all five.

mod test_names;
mod type_names;

use std::fs;

use anyhow::{Result, bail};
use regex::Regex;

use crate::commands::{program, root};
use test_names::TestNames;
use type_names::TypeNames;

/// The width of rustfmt, which does not wrap comments.
const COLUMNS: usize = 100;

/// A parameter such as `(turn, attempt): (&TurnId, u32)`. A closure or a `let` may have one: it
/// ends on the same screen.
const TUPLE_PATTERN: &str = r"(^\s*|\w\(|, )\((mut )?\w+(, (mut )?\w+)+\): ";

/// Fails if a source breaks a rule.
pub(crate) fn tidy() -> Result<()> {
    let listed = program("git").args(["ls-files", "*.rs"]).current_dir(root()).output()?;
    let pattern = Regex::new(TUPLE_PATTERN)?;
    let (tests, mut types) = (TestNames::new()?, TypeNames::new()?);
    let mut found = Vec::new();
    for file in String::from_utf8(listed.stdout)?.lines() {
        // Git also lists a file that is deleted but not committed.
        let Ok(source) = fs::read_to_string(root().join(file)) else { continue };
        for (number, line) in source.lines().enumerate() {
            let rule = broken_rule(line, &pattern).or_else(|| unsafe_start(file, line));
            found.extend(rule.map(|rule| format!("{file}:{}: {rule}", number + 1)));
        }
        types.read(file, &source);
        found.extend(tests.broken(file, &source));
    }
    found.extend(types.broken());
    if found.is_empty() { Ok(()) } else { bail!("{}", found.join("\n")) }
}

fn broken_rule(line: &str, tuple_pattern: &Regex) -> Option<&'static str> {
    let is_comment = line.trim_start().starts_with("//");
    // A row of a table cannot be wrapped.
    let is_row = line.trim_start_matches([' ', '/', '!']).starts_with('|');
    if is_comment && !is_row && line.chars().count() > COLUMNS {
        return Some("wrap the comment at 100 columns");
    }
    // A closure, or a text such as those of the tests below.
    let is_other = is_comment || line.contains(['|', '"']);
    let is_parameter = !is_other && tuple_pattern.is_match(line);
    is_parameter.then_some("name the pair: a parameter is not a tuple pattern")
}

/// Refuses commands that may use the home of the developer.
fn unsafe_start(file: &str, line: &str) -> Option<&'static str> {
    let is_start = line.contains("Command::new(") || line.contains(".env_clear()");
    (file.starts_with("crates/cli/tests/") && is_start)
        .then_some("start programs with raymond_testkit::private_command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_tidy() {
        tidy().unwrap();
    }

    #[test]
    fn broken_rules_are_found() {
        let pattern = Regex::new(TUPLE_PATTERN).unwrap();
        let check = |line: &str, is_broken: bool| {
            assert_eq!(broken_rule(line, &pattern).is_some(), is_broken, "{line}");
        };
        let wide = "x".repeat(95);
        check("fn f((turn, attempt): (&TurnId, u32)) {", true);
        check("    pub(crate) fn f(&self, a: u8, (one, mut two): Pair) {", true);
        check("    (one, two): (u8, u8),", true);
        check(&format!("    /// {wide}"), true);
        check(&format!("    // {}", &wide[1..]), true);
        check("    let (one, two): (u8, u8) = pair;", false);
        check("    let f = |(one, two): (u8, u8)| one;", false);
        check("fn f(pair: (u8, u8)) -> (u8, u8) {", false);
        check(&format!("    // {}", &wide[2..]), false);
        check(&format!("//! | {wide} |"), false);
        check(&format!("let text = \"{wide}\";"), false);
    }

    #[test]
    fn tests_with_the_home_of_developers_are_found() {
        let check = |file: &str, line: &str, is_refused: bool| {
            assert_eq!(unsafe_start(file, line).is_some(), is_refused, "{file}: {line}");
        };
        let test = "crates/cli/tests/cli/harness.rs";
        check(test, "let mut command = Command::new(program);", true);
        check(test, "command.env_clear().env(\"PATH\", path);", true);
        check(test, "let mut command = private_command(program, &home);", false);
        check("crates/testkit/src/private_command.rs", "Command::new(program)", false);
    }
}
