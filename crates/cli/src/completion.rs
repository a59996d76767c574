//! Completion in shells: the script that a shell loads calls this program with a variable set, and is
//! told what may follow.
//!
//! Nothing is changed by asking, nothing is said on stderr, and a project that cannot be read has
//! nothing to offer. Flags are offered where nothing else is, or once a dash is typed.

mod runs;
mod turns;
mod workflows;

use std::ffi::OsStr;

use clap::CommandFactory as _;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::Arguments;

/// Set by the script; what it holds is the name of the shell.
const VARIABLE: &str = "RAYMOND_COMPLETE";

/// Whether a shell has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// This is an ordinary call.
    NotRequested,
    /// It was answered on stdout.
    Answered,
}

/// Answers a shell, when one asks.
pub(crate) fn answer() -> Result<Completion, clap::Error> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(visible_commands).var(VARIABLE);
    let answered = asked.try_complete(std::env::args_os(), here.as_deref())?;
    Ok(if answered { Completion::Answered } else { Completion::NotRequested })
}

/// The script for a shell, which calls `program`.
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
    // Bash would take the `@` of `@last` for the beginning of the name of a host, and quotes what it
    // inserts only where it is told that these are names of files.
    let quoting = script.replace("complete -o nospace", "complete -o filenames -o nospace");
    Ok(format!("COMP_WORDBREAKS=${{COMP_WORDBREAKS/@/}}\n{quoting}\n"))
}

/// Completes a run; whichever was last active first.
pub(crate) fn any_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::any)
}

/// Completes a run that can be resumed; when none matches, any.
pub(crate) fn unfinished_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::unfinished)
}

/// Completes a run that somebody drives; when none matches, any.
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

/// Completes an agent of the run that is named before, or else of the last one.
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

/// Those that begin with what is typed.
fn with_prefix(names: impl Iterator<Item = String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    names.filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// The commands as they are offered. `raymond WORKFLOW` takes what `raymond run WORKFLOW` takes.
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
                arg.required(false).add(ArgValueCompleter::new(workflows::entries))
            } else {
                arg.hide(true)
            }
        };
        command = command.args(args.cloned().map(visible_commands));
    }
    command
}

/// The command with its flags in the second row: they are offered when nothing else is.
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
