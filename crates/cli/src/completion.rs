//! Shell completion: the script of the shell calls this program with a variable set and reads the
//! candidates from stdout.
//!
//! Completion changes nothing and prints nothing to stderr. A project that cannot be read has no
//! candidates. Flags are offered only if there is no other candidate, or after a dash.

mod runs;
mod turns;
mod workflows;

use std::ffi::OsStr;

use clap::CommandFactory as _;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::Arguments;

/// The variable that the script sets to the name of the shell.
const VARIABLE: &str = "RAYMOND_COMPLETE";

/// Whether this process was called for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    NotRequested,
    /// The candidates were printed to stdout.
    Answered,
}

/// Prints candidates if a shell asks for them.
pub(crate) fn answer() -> Result<Completion, clap::Error> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(visible_commands).var(VARIABLE);
    let answered = asked.try_complete(std::env::args_os(), here.as_deref())?;
    Ok(if answered { Completion::Answered } else { Completion::NotRequested })
}

/// Returns the completion script for a shell, which calls `program`.
pub(crate) fn script(shell: &str, program: &str) -> std::io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let unknown = || std::io::Error::other(format!("unknown shell {shell:?}"));
    let completer = shells.completer(shell).ok_or_else(unknown)?;
    completer.write_registration(VARIABLE, "raymond", "raymond", program, &mut script)?;
    let script = String::from_utf8_lossy(&script);
    let script = script.trim();
    if shell != "bash" {
        return Ok(format!("{script}\n"));
    }
    // Bash treats `@` as a word break, which would split `@last`. It quotes inserted text only for
    // file names, so candidates with blanks need `-o filenames`.
    let quoting = script.replace("complete -o nospace", "complete -o filenames -o nospace");
    Ok(format!("COMP_WORDBREAKS=${{COMP_WORDBREAKS/@/}}\n{quoting}\n"))
}

/// Completes a run, the last active one first.
pub(crate) fn any_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::any)
}

/// Completes a run that can be resumed; any run if none matches.
pub(crate) fn unfinished_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::unfinished)
}

/// Completes a run that has an owner; any run if none matches.
pub(crate) fn driven_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::driven)
}

/// Completes a workflow.
pub(crate) fn workflow() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::all)
}

/// Completes a document of steps.
pub(crate) fn document() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::documents)
}

/// Completes the prompt of a loop.
pub(crate) fn prompt() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::prompts)
}

/// Completes an agent of the run that is named earlier in the command line, or of the last run.
pub(crate) fn agent() -> ArgValueCompleter {
    ArgValueCompleter::new(turns::agents)
}

/// Completes a state of that run.
pub(crate) fn state() -> ArgValueCompleter {
    ArgValueCompleter::new(turns::states)
}

/// Completes the name of an example.
pub(crate) fn example() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = crate::commands::init::examples();
        with_prefix(names.map(str::to_owned), current)
    })
}

/// Returns the names that start with the typed text.
fn with_prefix(names: impl Iterator<Item = String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    names.filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// Returns the commands for completion. The top level also accepts the arguments of `run`, because
/// `raymond WORKFLOW` is short for `raymond run WORKFLOW`.
fn visible_commands() -> clap::Command {
    let mut known = Arguments::command();
    known.build();
    let mut command = shown(&known);
    if let Some(run) = known.find_subcommand("run") {
        let is_new =
            |arg: &&clap::Arg| known.get_arguments().all(|own| own.get_id() != arg.get_id());
        let args = run.get_arguments().filter(is_new).filter(|arg| !arg.is_hide_set());
        let visible_commands = |arg: clap::Arg| {
            if arg.is_positional() {
                // Not required, because the top level may also be followed by a command.
                arg.required(false).add(ArgValueCompleter::new(workflows::entries))
            } else {
                arg.hide(true)
            }
        };
        command = command.args(args.cloned().map(visible_commands));
    }
    command
}

/// Returns the command with hidden flags: `clap_complete` offers hidden flags only as a last
/// resort.
fn shown(known: &clap::Command) -> clap::Command {
    let args = known.get_arguments().filter(|arg| !arg.is_hide_set());
    let args = args.cloned().map(|arg| if arg.is_positional() { arg } else { arg.hide(true) });
    let subcommands = known.get_subcommands().filter(|command| command.get_name() != "help");
    let mut command = clap::Command::new(known.get_name().to_owned())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .version(env!("CARGO_PKG_VERSION"))
        .args(args)
        .subcommands(subcommands.map(shown));
    if let Some(about) = known.get_about() {
        command = command.about(about.clone());
    }
    command
}
