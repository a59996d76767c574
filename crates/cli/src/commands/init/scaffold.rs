//! The workflow that `init` writes: an agent makes a change, a script checks it, a reviewer reads
//! it.
//!
//! The templates are in `scaffold/`, with `@NAME@` where projects differ. Inserted values come from
//! a closed list of commands, or are quoted for the shell, because file names are untrusted.

use std::fmt::Write as _;

use raymond_core::protocol::TagName;
use raymond_core::text::quoted;

use super::client::{DetectedClient, PermissionStyle};
use super::detect::{Detected, Git};
use super::files::File;

/// The task in the example commands of the screen and the README.
const TASK: &str = "'say hello when the program starts'";

/// The files of the workflow, with the purpose of each.
macro_rules! files {
    ($($name:literal: $what:literal,)*) => {
        [$(($name, include_str!(concat!("scaffold/", $name)), $what)),*]
    };
}

const FILES: [(&str, &str, &str); 8] = files![
    "START.md": "makes the change",
    "CHECK.sh": "checks it with @RUNS@",
    "FIX.md": "fixes the findings, at most five times",
    "REVIEW.md": "reviews it in a new conversation",
    "DECIDE.sh": "ends, or asks for fixes",
    "GIVE_UP.sh": "ends, and reports what is left",
    "replies.yaml": "stands in for the model",
    "README.md": "explains the workflow",
];

/// A workflow for one project, in the directory that the user gave.
pub(super) struct Scaffold<'f> {
    found: &'f Detected,
    directory: String,
    pub(super) client: DetectedClient,
}

impl<'f> Scaffold<'f> {
    pub(super) fn new(found: &'f Detected, directory: &str, client: DetectedClient) -> Self {
        Self { found, directory: directory.to_owned(), client }
    }

    /// Returns the path of the script that contains the check.
    pub(super) fn check_script(&self) -> String {
        self.path("CHECK.sh")
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory.trim_end_matches('/'))
    }

    /// Returns the command that tries the workflow without a model.
    pub(super) fn try_it(&self) -> String {
        let (directory, replies) = (quoted(&self.directory), quoted(&self.path("replies.yaml")));
        format!("raymond run {directory} --replies {replies} --input {TASK}")
    }

    /// Returns the command that runs the workflow with a model.
    pub(super) fn run_it(&self) -> String {
        format!("raymond run {} --budget 5 --input {TASK}", quoted(&self.directory))
    }

    /// Returns the files in reading order.
    pub(super) fn files(&self) -> Vec<File> {
        let values = self.values();
        let fill = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
        };
        let file = |(name, text, what): (&str, &str, &str)| File {
            name: name.to_owned(),
            content: fill(text).into_bytes().into(),
            // Raymond starts `.sh` states with bash, so they need no permission to execute.
            executable: false,
            purpose: Some(fill(what)),
        };
        FILES.map(file).into()
    }

    /// Returns the value of each `@NAME@`.
    fn values(&self) -> [(&'static str, String); 14] {
        let check = self.found.check().map(|check| check.line);
        let or = |with: &dyn Fn(&str) -> String, without: &str| {
            check.map_or_else(|| without.to_owned(), with)
        };
        let unchecked = "nothing was checked: CHECK.sh has no command yet";
        [
            ("@MAY@", format!("{}\n{}", self.may(), self.allow())),
            ("@ALLOW@", self.allow()),
            ("@YOURS@", self.yours().to_owned()),
            ("@LOOK@", self.reviewer_permissions()),
            ("@WHERE@", self.reviewer_instruction().to_owned()),
            ("@CHECK@", self.commands()),
            ("@RUNS@", or(&|check| format!("`{check}`"), "a command that you fill in")),
            ("@SELF@", or(&|check| format!("Then `{check}` has to pass: run it."), "Try it out.")),
            ("@AGAIN@", or(&|check| format!(" Run `{check}` yourself."), "")),
            ("@PASSED@", or(&|check| format!("{check} passes"), unchecked)),
            ("@FAILED@", or(&|check| format!("{check} fails as it is"), "CHECK.sh fails")),
            ("@TAGS@", tags()),
            ("@TRY@", self.try_it()),
            ("@RUN@", self.run_it()),
        ]
    }

    /// Returns a comment about the permissions of the author.
    fn may(&self) -> &'static str {
        match self.client.permission_style() {
            PermissionStyle::Tools => {
                "# Commands that the agent may run. It may edit files of the project anyway. Other tools are denied,\n\
                 # and the summary of the run prints the line that would allow them."
            }
            PermissionStyle::Sandbox => {
                "# The agent may run any command in a sandbox: it can write below this directory and has no\n\
                 # network."
            }
        }
    }

    /// Returns the lines that a user adapts first.
    fn yours(&self) -> &'static str {
        match self.client.permission_style() {
            PermissionStyle::Tools => "the `allow` lines in START.md and FIX.md",
            PermissionStyle::Sandbox => "`permission_mode` in START.md and FIX.md",
        }
    }

    /// Returns the permissions of the author.
    fn allow(&self) -> String {
        if self.client.permission_style() == PermissionStyle::Sandbox {
            return "permission_mode: acceptEdits".to_owned();
        }
        let rules = self.found.rules();
        if rules.is_empty() {
            return "allow: [] # such as Bash(make test:*)".to_owned();
        }
        format!("allow:\n  - {}", rules.join("\n  - "))
    }

    fn reviewer_permissions(&self) -> String {
        if self.client.permission_style() == PermissionStyle::Sandbox {
            return "# The reviewer changes nothing: this sandbox is read-only.\n\
                    permission_mode: plan"
                .to_owned();
        }
        let allow = match self.found.git {
            Git::Repository => {
                "allow:\n  - Bash(git status:*)\n  - Bash(git diff:*)\n  - Bash(git log:*)\n"
            }
            Git::None => "",
        };
        format!(
            "# The reviewer changes nothing. `deny` wins over every `allow`.\n\
             {allow}deny: [Edit, Write, NotebookEdit]"
        )
    }

    const fn reviewer_instruction(&self) -> &'static str {
        match self.found.git {
            Git::Repository => "Look at it: `git status` and `git diff` show it.",
            Git::None => "Look at the files that it concerns.",
        }
    }

    /// Returns the body of `check`.
    fn commands(&self) -> String {
        let mut checks = self.found.checks();
        let Some((_, check)) = checks.next() else {
            return "  # Raymond found no command that checks a change. Replace this line with the \
                    project's own\n  # command; until then every change passes.\n  true"
                .to_owned();
        };
        let mut body = format!("  {}", check.line);
        for (index, (file, other)) in checks.enumerate() {
            if index == 0 {
                body.push_str(
                    "\n  # Also found here. With several lines, the first that fails ends the check:",
                );
            }
            // Only as comments: the strongest check is enough to start with, and the user may add
            // others.
            write!(body, "\n  # {} # {file}", other.line).ok();
        }
        body
    }
}

/// Returns the rows of the table of tags.
fn tags() -> String {
    let row =
        |tag: TagName| format!("| {} |", tag.spec().cheat_sheet.join(" | ")).replace("  ", " ");
    TagName::ALL.map(row).join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use raymond_backends::scripted;
    use raymond_core::workflow::environment::is_ours;
    use raymond_core::workflow::frontmatter;

    use super::*;

    const README: &str = include_str!("scaffold/README.md");

    /// Returns the words in backticks of the paragraph that starts with this text.
    fn named(beginning: &str) -> BTreeSet<&'static str> {
        let mut paragraphs = README.split("\n\n");
        let paragraph = paragraphs.find(|text| text.starts_with(beginning)).unwrap();
        paragraph.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn scripts_encode_texts_only_with_emit() {
        for (name, text, _) in FILES {
            assert!(!text.contains("&amp;") && !text.contains("input=\\\""), "{name}: {text}");
        }
    }

    #[test]
    fn cheat_sheet_lists_every_known_name() {
        assert_eq!(named("Frontmatter"), BTreeSet::from(frontmatter::KEYS));
        assert_eq!(named("Replies"), BTreeSet::from(scripted::KEYS));
        let variables: Vec<&str> =
            named("Scripts").into_iter().filter(|name| name.starts_with("RAYMOND_")).collect();
        assert!(variables.iter().all(|name| is_ours(name)), "{variables:?}");
        assert_eq!(variables.len(), 11, "{variables:?}");
        let rows = tags();
        let readme = README.replace("@TAGS@", &rows);
        assert_eq!(
            rows.lines().next(),
            Some(
                "| `<goto>S</goto>` | this one continues | `after=\"5m\"` waits first; \
                 beside forks, `wait=\"all\"` waits for their workers |"
            )
        );
        assert_eq!(rows.lines().count(), TagName::ALL.len());
        let sheet = readme.split_once("## Cheat sheet\n\n").unwrap().1;
        assert!(sheet.lines().count() <= 30, "{}", sheet.lines().count());
    }
}
