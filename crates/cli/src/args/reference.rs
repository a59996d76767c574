//! Generates the command reference, `docs/commands.md`, from the help texts.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::Arguments;

const HEAD: &str = "\
# Commands

Generated from the help texts that `raymond COMMAND --help` prints. `raymond WORKFLOW` is short for
`raymond run WORKFLOW`. Name a run by its id, a unique prefix of it, or `@last`.
";

fn page() -> String {
    let mut program = Arguments::command();
    program.build();
    let commands: Vec<&Command> = shown(&program).collect();
    let mut text = String::from(HEAD);
    text.push_str("\n| command | does |\n|---|---|\n");
    for command in &commands {
        let (name, about) = (command.get_name(), about(command));
        let aliases = command.get_visible_aliases().map(|alias| format!(", `{alias}`"));
        let aliases: String = aliases.collect();
        writeln!(text, "| [`{name}`](#{name}){aliases} | {about} |").unwrap();
    }
    for command in commands {
        section(&mut text, command);
        for inner in shown(command) {
            section(&mut text, inner);
        }
    }
    text
}

fn shown(program: &Command) -> impl Iterator<Item = &Command> {
    let commands = program.get_subcommands();
    commands.filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn section(text: &mut String, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let title = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let title = title.trim_start_matches("raymond ");
    write!(text, "\n## {title}\n\n{}.\n\n", about(command)).unwrap();
    write!(text, "```text\n{usage}\n```\n").unwrap();
    let arguments: Vec<&Arg> = command.get_arguments().filter(|arg| is_listed(arg)).collect();
    if !arguments.is_empty() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            writeln!(text, "| {} | {} |", name(argument), meaning(argument)).unwrap();
        }
    }
    if let Some(example) = command.get_after_help() {
        let example = example.to_string();
        let (example, behind) = example.split_once("\n\n").unwrap_or((&example, ""));
        let lines = example.lines().skip(1).map(str::trim_start);
        let lines = lines.collect::<Vec<_>>().join("\n");
        write!(text, "\n```text\n{lines}\n```\n").unwrap();
        if !behind.is_empty() {
            write!(text, "\n```text\n{behind}\n```\n").unwrap();
        }
    }
}

/// Whether an argument is listed; `--help` is the same for all commands.
fn is_listed(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// `` `-d`, `--detach` ``, `` `--budget USD|none` ``, `` `RUN` ``
fn name(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_value_names().unwrap_or_default();
    let value: Vec<&str> = values.iter().map(clap::builder::Str::as_str).collect();
    let value = if takes_value { format!(" {}", value.join(" ")) } else { String::new() };
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    match argument.get_long() {
        Some(long) => {
            let aliases = argument.get_visible_aliases().unwrap_or_default();
            let names: Vec<String> = std::iter::once(long)
                .chain(aliases)
                .map(|long| format!("`--{long}{value}`"))
                .collect();
            format!("{short}{}", names.join(", ")).replace('|', "\\|")
        }
        None => format!("`{}`", value.trim_start()),
    }
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut meaning = help.map(ToString::to_string).unwrap_or_default().replace("\n\n", ". ");
    meaning = meaning.replace('\n', " ").replace('|', "\\|");
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() {
        write!(meaning, ": {}", possible.join(", ")).unwrap();
    }
    meaning
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn the_command_reference_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page(), "docs/commands.md is stale: run this test with UPDATE=1");
}

#[test]
fn run_help_lists_all_exit_codes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/running.md");
    let page = std::fs::read_to_string(path).unwrap().replace('`', "");
    let (_, table) = page.split_once("\n### Exit codes\n").unwrap();
    let rows = table.split("\n## ").next().unwrap().lines();
    let rows = rows.filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |"));
    let rows: Vec<String> =
        rows.skip(1).map(|row| format!("  {}", row.replacen(" | ", "  ", 1))).collect();
    let (_, listed) = super::RUN_HELP.split_once("Exit codes:\n").unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), rows);
}

#[test]
fn resume_help_shows_unchanged_defaults() {
    let mut program = Arguments::command();
    program.build();
    let resume = program.find_subcommand("resume").unwrap();
    let help = resume.clone().render_long_help().to_string();
    let defaults: Vec<&str> =
        help.lines().filter_map(|line| Some(line.split_once("[default: ")?.1)).collect();
    let (run, flags) = defaults.split_first().unwrap();
    assert_eq!(*run, "the only unfinished one]");
    assert!(flags.len() > 5 && flags.iter().all(|flag| *flag == "unchanged]"), "{flags:?}");
}

#[test]
fn every_command_shows_an_example() {
    let mut program = Arguments::command();
    program.build();
    for command in shown(&program) {
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let name = command.get_name();
        assert!(example.starts_with("Example"), "{name} --help has no example");
        assert!(example.contains(&format!("raymond {name}")), "{name}: {example}");
    }
}

#[test]
fn every_help_text_fits_into_70_columns() {
    let mut program = Arguments::command();
    program.build();
    for command in
        shown(&program).flat_map(|command| std::iter::once(command).chain(shown(command)))
    {
        let helps = command.get_arguments().filter(|flag| !flag.is_hide_set());
        let helps = helps.filter_map(Arg::get_help).map(ToString::to_string);
        for text in helps.chain([about(command)]) {
            assert!(text.chars().count() <= 70, "{}: {text}", command.get_name());
        }
    }
}
