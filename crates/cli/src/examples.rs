//! The examples that are part of this binary.
//!
//! The build script embeds every folder of `examples/`. The description of an example is the first
//! sentence of its README, and its commands are those of the first block with `raymond`.

use raymond_core::text::nearest;

use crate::failure::Failure;

pub(crate) struct Example {
    pub(crate) name: &'static str,
    /// The path of each file, its content, and whether it is executable.
    pub(crate) files: &'static [(&'static str, &'static [u8], bool)],
}

/// All examples, by name.
pub(crate) const EXAMPLES: &[Example] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|example| example.name)
}

pub(crate) fn find(name: &str) -> Result<&'static Example, Failure> {
    EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let failure = Failure::usage(format!("unknown example {name:?}"));
        match nearest(name, EXAMPLES.iter().map(|example| example.name)) {
            Some(meant) => failure.hint(format!("did you mean `raymond init --from {meant}`?")),
            None => failure.hint("run `raymond init --list` to see them"),
        }
    })
}

impl Example {
    /// Returns a one-sentence description.
    pub(crate) fn about(&self) -> String {
        first_sentence(self.readme())
    }

    /// Returns the commands that try the example in its directory.
    pub(crate) fn try_it(&self) -> Vec<String> {
        first_commands(self.readme())
    }

    fn readme(&self) -> &'static str {
        let readme = self.files.iter().find(|(name, ..)| *name == "README.md");
        readme.and_then(|(_, content, _)| str::from_utf8(content).ok()).unwrap_or_default()
    }
}

/// Returns the first sentence below the title, without emphasis.
fn first_sentence(readme: &str) -> String {
    let prose = |line: &&str| !line.starts_with(['#', '<', '`']) && !line.trim().is_empty();
    let lines = readme.lines().skip_while(|line| !prose(line)).take_while(prose);
    let paragraph = lines.map(str::trim).collect::<Vec<_>>().join(" ").replace("**", "");
    match paragraph.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => paragraph,
    }
}

/// Returns the commands of the first block that runs `raymond`, up to that line.
fn first_commands(readme: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut block = Block::None;
    for line in readme.lines() {
        let command = match (block, line.trim_end()) {
            (Block::None, "```sh") => {
                block = Block::Shell;
                continue;
            }
            (Block::None, "```console") => {
                block = Block::Console;
                continue;
            }
            (Block::None, _) => continue,
            (Block::Shell | Block::Console, "```") => {
                block = Block::None;
                commands.clear();
                continue;
            }
            (Block::Shell, line) => Some(line),
            (Block::Console, line) => line.strip_prefix("$ "),
        };
        // `cd` into the example is not needed, because the hint starts in the copied directory.
        if let Some(command) = command.filter(|command| !command.starts_with("cd examples/")) {
            commands.push(command.to_owned());
            if command.contains("raymond ") {
                return commands;
            }
        }
    }
    Vec::new()
}

/// The kind of block that contains a line.
#[derive(Clone, Copy)]
enum Block {
    None,
    /// A block in which every line is a command.
    Shell,
    /// A block in which only lines with a prompt are commands.
    Console,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_starts_with_a_description() {
        let check = |readme: &str, expected: &str| assert_eq!(first_sentence(readme), expected);
        check("# a\n\nOne thing. Then another.\n", "One thing.");
        check(
            "# a\n\nA **long** sentence\nover lines.\n\nMore. Text.\n",
            "A long sentence over lines.",
        );
        check("# a\n<!-- setup: x -->\n\nRuns v1.2 of it. Yes.\n", "Runs v1.2 of it.");
        check("# a\n\n```sh\n", "");
        check("", "");
    }

    #[test]
    fn first_raymond_block_contains_the_commands() {
        let check = |readme: &str, expected: &[&str]| assert_eq!(first_commands(readme), expected);
        check("```sh\nraymond run w\nraymond why\n```\n", &["raymond run w"]);
        check("```yaml\nraymond run w\n```\n```sh\nraymond list\n```\n", &["raymond list"]);
        check(
            "```sh\nmake\n```\n```sh\n./setup.sh\nraymond w\n```\n",
            &["./setup.sh", "raymond w"],
        );
        check(
            "```console\n$ cd examples/x\n$ ./setup.sh\nmade it\n$ raymond run w\nok\n```\n",
            &["./setup.sh", "raymond run w"],
        );
        check("raymond run w\n", &[]);
    }

    #[test]
    fn every_example_has_a_description_and_commands() {
        for example in EXAMPLES {
            assert!(example.about().ends_with('.'), "{}: {:?}", example.name, example.about());
            assert!(!example.try_it().is_empty(), "{} has no command", example.name);
        }
    }
}
