//! The help of `raymond` itself: what it runs, and its commands in groups.
//!
//! Clap lists the commands of a program in one block. This module lists them by what a user wants
//! to do, with the descriptions that clap knows.

use clap::{Command, CommandFactory as _};

use super::Arguments;

/// The commands by purpose, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["run", "ralph", "demo"]),
    ("Look", &["list", "projects", "status", "why", "show", "logs", "cost", "attach", "wait"]),
    ("Steer", &["resume", "answer", "tend", "stop", "cancel", "prune"]),
    ("Write", &["init", "emit"]),
    ("Check", &["config", "doctor", "replay", "completions"]),
    ("Serve", &["crayfish", "mcp"]),
];

/// The longest entry is `list, ls, ps`.
const WIDTH: usize = 12;

const ABOUT: &str = "\
Run coding agents as programs.

A workflow is a folder of states: prompts (.md) and scripts (.sh). Each state ends
by naming the next one with a tag, such as <goto>TEST</goto>.";

const END: &str = "\
`raymond COMMAND --help` describes a command. `raymond WORKFLOW` is short for
`raymond run WORKFLOW`.

New here:
  raymond demo    watch a short tour that needs no model
  raymond init    write a first workflow for this project";

const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n{before-help}Options:\n{options}{after-help}";

/// Returns the parser with the help of `raymond` itself.
pub(crate) fn with_overview() -> Command {
    let program = Arguments::command();
    let groups = groups(&program);
    program.help_template(TEMPLATE).before_help(groups).about(ABOUT).after_help(END)
}

/// Returns whether a word is the name of a command; aliases are not known here. Asking the parser
/// would take longer than most commands do.
pub(crate) fn names_a_command(word: &str) -> bool {
    GROUPS.iter().any(|(_, names)| names.contains(&word))
}

/// Formats each group with its commands and their descriptions.
fn groups(program: &Command) -> String {
    let header = program.get_styles().get_header();
    let literal = program.get_styles().get_literal();
    let row = |command: &Command| {
        let names: Vec<&str> = command.get_name_and_visible_aliases();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{:<WIDTH$}{literal:#}  {about}\n", names.join(", "))
    };
    let group = |(title, names): (&str, &[&str])| {
        let commands = names.iter().filter_map(|name| program.find_subcommand(name));
        format!("\n{header}{title}:{header:#}\n{}", commands.map(row).collect::<String>())
    };
    GROUPS.map(group).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.to_vec()).collect();
        let program = Arguments::command();
        let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
