//! The command line as the user typed it: the short form of `run`, and mistyped commands.
//!
//! The commands and their flags are in `args`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use raymond_core::text::nearest;

use crate::args::Arguments;
use crate::failure::{Failure, USAGE};
use crate::sanitize::{sanitized, styled};
use crate::secrets::redacted;
use crate::workflows;

/// Returns the names of all commands.
fn commands() -> Vec<String> {
    let command = Arguments::command();
    let names = command.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
    names.chain(["help"]).map(str::to_owned).collect()
}

/// Inserts `run` if the first argument is a workflow: `raymond WORKFLOW …`.
pub(crate) fn with_run(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let first = words.get(1).map(|word| word.to_string_lossy().into_owned());
    let names_a_workflow = first.is_some_and(|word| {
        !word.starts_with('-')
            // A mistyped path must reach `run`, which suggests a workflow; a bare word may be a
            // mistyped command.
            && (std::path::Path::new(&word).exists() || word.contains(['/', '.']))
            // A folder may have the name of a command; the command wins, and `./name` means the
            // folder.
            && !commands().contains(&word)
    });
    if names_a_workflow {
        words.insert(1, "run".into());
    }
    words
}

/// Prints the error of the parser and returns the exit code. Help is not an error. For a mistyped
/// command it suggests the most similar command and workflow.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
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
        _ => {
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
    let command = nearest(word, commands.iter().map(String::as_str));
    let command = command.map(|command| format!("`raymond {command}`"));
    let workflow = workflows::nearest(word.as_ref());
    let workflow = workflow.map(|path| format!("`raymond run {}`", path.display()));
    let offers: Vec<String> = command.into_iter().chain(workflow).collect();
    if offers.is_empty() {
        return failure.hint("see `raymond --help`");
    }
    failure.hint(format!("did you mean {}?", offers.join(" or ")))
}

#[cfg(test)]
mod tests;
