//! The command line as the user typed it: the short form of `run`, and mistyped commands.
//!
//! The commands and their flags are in `args`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use raymond_core::text::{nearest, quoted};

use crate::args::{Arguments, names_a_command, with_overview};
use crate::failure::{Failure, USAGE};
use crate::sanitize::{sanitized, styled};
use crate::secrets::redacted;
use crate::{runs, workflows};

/// Returns the names of all commands.
fn commands() -> Vec<String> {
    let command = Arguments::command();
    let names = command.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
    names.chain(["help"]).map(str::to_owned).collect()
}

/// Inserts `run` if the first argument is a workflow or a flag of `run`: `raymond WORKFLOW …`.
pub(crate) fn with_run(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let first = words.get(1).map(|word| word.to_string_lossy().into_owned());
    // With a command behind the flags, their order is the mistake, which the parser reports.
    let other = words.iter().skip(1).map(|word| word.to_string_lossy());
    let other = other.into_iter().find(|word| !word.starts_with('-'));
    let is_flag_of_run = first.as_deref().is_some_and(|word| {
        // A mistyped `--version` gets its hint from the parser, not one about flags of `run`.
        let meant = nearest(word, ["--help", "--version", "--verbose"]);
        word.starts_with("--") && word != "--" && !matches!(meant, Some("--help" | "--version"))
    }) && !other.is_some_and(|word| names_a_command(&word));
    let names_a_workflow = is_flag_of_run
        || first.is_some_and(|word| {
            !word.starts_with('-')
            // A mistyped path must reach `run`, which suggests a workflow; a bare word may be a
            // mistyped command.
            && (std::path::Path::new(&word).exists()
                || word.contains(['/', '.'])
                // Only for other words than commands, because the search reads directories.
                || !names_a_command(&word) && is_workflow_of_project(&word))
            // A folder may have the name of a command; the command wins, and `./name` means the
            // folder.
            && !commands().contains(&word)
        });
    if names_a_workflow {
        words.insert(1, "run".into());
    }
    words
}

/// Whether a bare word is a workflow in `workflows/` here or in the project.
fn is_workflow_of_project(word: &str) -> bool {
    let project = runs::project().ok();
    project.is_some_and(|project| workflows::named(word.as_ref(), project.root.project()).is_some())
}

/// Parses the command line.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let first = words.get(1).map(|word| word.to_string_lossy());
    // Most calls show no overview, so they do not pay for formatting it.
    let shows_overview = first.is_none_or(|word| word.starts_with('-') || word == "help");
    let mut program = if shows_overview { with_overview() } else { Arguments::command() };
    let matches = program.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Prints the error of the parser and returns the exit code. Help is not an error. For a mistyped
/// command it suggests the most similar command and workflow.
pub(crate) fn refuse(mut error: clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
            let failure = mistyped(word, std::env::args_os().skip(1));
            failure.print();
            ExitCode::from(failure.code)
        }
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => {
            error.print().ok();
            ExitCode::SUCCESS
        }
        (ErrorKind::UnknownArgument, _)
            if let Some(failure) = replaced_flag(&error).or_else(|| second_text(&error)) =>
        {
            failure.print();
            ExitCode::from(failure.code)
        }
        _ => {
            if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
                // A mistyped flag is never meant as the name of a workflow or a run.
                tips.retain(|tip| !tip.to_string().contains("as a value"));
                if !tips.is_empty() {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
                }
            }
            // The message repeats the typed arguments, which may contain a secret. A style inside
            // the secret would hide it, so secrets are searched in the text without styles.
            let (bare, coloured) = (error.render().to_string(), error.render().ansi().to_string());
            let words = match redacted(&bare) {
                Cow::Borrowed(_) => styled(&coloured),
                Cow::Owned(words) => sanitized(&words),
            };
            write!(anstream::stderr(), "{words}").ok();
            ExitCode::from(USAGE)
        }
    }
}

/// Names that other tools give to commands.
const SYNONYMS: [(&str, &str); 8] = [
    ("continue", "resume"),
    ("history", "show"),
    ("kill", "stop"),
    ("new", "init"),
    ("restart", "resume"),
    ("runs", "list"),
    ("start", "run"),
    ("validate", "crayfish validate"),
];

/// Flags of the first Raymond, a Go program, and of similar tools: what to use here.
const REPLACED_FLAGS: [(&str, &str); 13] = [
    ("--list", "`raymond list` shows all runs"),
    ("--status", "`raymond status RUN` shows the status of a run"),
    ("--resume", "`raymond resume RUN` continues a run"),
    ("--recover", "`raymond list` shows the runs that can be resumed"),
    ("--init-config", "settings are in raymond.toml; `raymond config` shows them all"),
    ("--workflow-id", "--run-id ID sets the id of a run"),
    ("--no-run", "leave it out; to rehearse a workflow without a model: --replies FILE"),
    ("--debug", "leave it out; `raymond logs` shows the transcripts of every run"),
    ("--no-debug", "leave it out; `raymond prune` deletes transcripts with their runs"),
    ("--state-dir", "leave it out; runs are stored in .raymond/ of the project"),
    ("--cap", "the cap is --budget USD"),
    ("--max-cost", "the cap is --budget USD"),
    ("--max-budget-usd", "the cap is --budget USD"),
];

/// Returns the failure for a flag that has another name here.
fn replaced_flag(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let (flag, hint) = REPLACED_FLAGS.iter().find(|(replaced, _)| replaced == flag)?;
    Some(Failure::usage(format!("there is no flag `{flag}`")).hint(*hint))
}

/// Advises a user who typed a text behind the workflow, as other agents take it.
fn second_text(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let words: Vec<OsString> = with_run(std::env::args_os());
    let starts = words.get(1).is_some_and(|command| command == "run" || command == "ralph");
    let is_text = !word.starts_with('-') && starts;
    let word = quoted(&redacted(word));
    is_text.then(|| {
        Failure::usage(format!("unexpected argument {word}"))
            .hint(format!("to pass a text to the first state: --input {word}"))
    })
}

fn mistyped(word: &str, typed: impl Iterator<Item = OsString>) -> Failure {
    let mut program = Arguments::command();
    program.build();
    let mut command = &program;
    let mut path = String::from("raymond");
    for word in typed {
        // Every command with subcommands has a generated `help`, which repeats them all.
        let inner = command.find_subcommand(&word).filter(|inner| inner.get_name() != "help");
        let Some(inner) = inner else { break };
        path = format!("{path} {}", inner.get_name());
        command = inner;
    }
    if command.get_name() != "raymond" {
        let failure = Failure::usage(format!("unknown command `{path} {word}`"));
        let names = command.get_subcommands().map(clap::Command::get_name);
        return match nearest(word, names) {
            Some(near) => failure.hint(format!("did you mean `{path} {near}`?")),
            None => failure.hint(format!("see `{path} --help`")),
        };
    }
    let failure = Failure::usage(format!("unknown command or workflow `{word}`"));
    let commands = commands();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, command)| *command);
    let command = synonym.or_else(|| nearest(word, commands.iter().map(String::as_str)));
    let command = command.map(|command| format!("`raymond {command}`"));
    let project = runs::project().ok();
    let workflow = workflows::nearest(word.as_ref()).map(|path| path.display().to_string());
    let workflow = workflow.or_else(|| workflows::meant_in(project?.root.project(), word.as_ref()));
    let workflow = workflow.map(|name| format!("`raymond run {name}`"));
    let offers: Vec<String> = command.into_iter().chain(workflow).collect();
    if offers.is_empty() {
        return failure.hint("see `raymond --help`");
    }
    failure.hint(format!("did you mean {}?", offers.join(" or ")))
}

#[cfg(test)]
mod tests;
