//! `raymond completions`: prints the completion script for a shell.
//!
//! The script calls this program with a variable set and reads the candidates from stdout. Flags
//! are offered only if there is no other candidate, or after a dash. The candidates for arguments
//! are in `completion`.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::{Arguments, Completions, Shell};
use crate::completion;
use crate::failure::Failure;

use super::write_stdout;

/// The variable that the script sets to the name of the shell.
const VARIABLE: &str = "RAYMOND_COMPLETE";

/// Whether this process was called for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    NotRequested,
    /// The candidates were printed to stdout.
    Answered,
}

pub(crate) fn completions(flags: &Completions) -> Result<u8, Failure> {
    let shell = match flags.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Elvish => "elvish",
        Shell::Powershell => "powershell",
    };
    let script = script(shell, &program())
        .map_err(|error| Failure::environment(format!("could not write the script: {error}")))?;
    write_stdout(&script)?;
    Ok(0)
}

/// Returns the program that the script calls: the name or the path by which this process was
/// called. A path that needs quoting in a shell is replaced by the name.
fn program() -> String {
    const NAME: &str = "raymond";
    let called = std::env::args_os().next().unwrap_or_default();
    // Called by name: the script uses the name, too, so that the shell completes the program that
    // it would run.
    if Path::new(&called).components().count() < 2 {
        return NAME.to_owned();
    }
    let path =
        std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let is_plain = |path: &String| raymond_core::text::quoted(path) == *path;
    path.filter(is_plain).unwrap_or_else(|| NAME.to_owned())
}

/// Prints candidates if a shell asks for them.
pub(crate) fn answer() -> Result<Completion, clap::Error> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(visible_commands).var(VARIABLE);
    let answered = asked.try_complete(std::env::args_os(), here.as_deref())?;
    Ok(if answered { Completion::Answered } else { Completion::NotRequested })
}

/// Returns the completion script for a shell, which calls `program`.
fn script(shell: &str, program: &str) -> std::io::Result<String> {
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
                arg.required(false).add(completion::entry_workflow())
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
