//! `raymond ralph`: repeats one prompt in fresh conversations until an answer has a result.
//!
//! It starts a run like `raymond run`, with another program.

use std::path::Path;

use raymond_core::run::{Program, Ralph as Loop};

use crate::args::{RalphFlags, RunFlags};
use crate::config::Layer;
use crate::failure::Failure;
use crate::{probe, runtime};

use super::run;

pub(crate) fn ralph(flags: RalphFlags) -> Result<u8, Failure> {
    if flags.input.is_some() {
        return Err(Failure::usage("--input would reach only the first iteration")
            .hint("use --var K=V, which reaches every iteration as {{K}}"));
    }
    if flags.until.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::usage("--until needs a command").hint(
            "for example --until 'cargo test'; without --until, Raymond accepts every result",
        ));
    }
    if let Some(missing) = flags.until.as_deref().and_then(missing_program) {
        return Err(Failure::usage(format!("could not find the program `{missing}` of --until"))
            .hint("install it, or correct the command: the loop could never end with success"));
    }
    if let Some(command) = &flags.until {
        check_syntax(command)?;
    }
    if let Some(flag) = without_effect(&flags.setting_flags) {
        let why = "each iteration is one agent in a fresh conversation";
        return Err(Failure::usage(format!("{flag} has no effect on a loop: {why}")));
    }
    let program = Loop { until: flags.until };
    let flags = RunFlags {
        workflow: flags.prompt,
        creation: flags.creation,
        input: None,
        steps: crate::args::StepsFlags::default(),
        // Unlike `run`: a user of a loop improves the prompt while it runs.
        unpinned: !flags.pinned,
        max_iterations: flags.max_iterations,
        background: flags.background,
        setting_flags: flags.setting_flags,
        output: flags.output,
    };
    run::start(flags, &Program::Ralph(program))
}

/// Lets `bash` read the command without running it.
fn check_syntax(command: &str) -> Result<(), Failure> {
    let Some(bash) = probe::find("bash") else { return Ok(()) };
    let words = ["-n", "-c", command];
    let read = probe::output(&bash, &words, Path::new("."));
    runtime::runtime()?.block_on(read).map(drop).map_err(|why| {
        Failure::usage(format!("bash cannot read the command of --until: {why}"))
            .hint("correct the command: the loop could never end with success")
    })
}

/// Returns the first flag that a loop does not use. The help does not list these flags.
fn without_effect(flags: &Layer) -> Option<&'static str> {
    [
        ("--max-parallel", flags.max_parallel.is_some()),
        ("--max-agents", flags.max_agents.is_some()),
        ("--reminders", flags.reminders.is_some()),
        ("--on-lost-session", flags.on_lost_session.is_some()),
    ]
    .into_iter()
    .find_map(|(name, is_given)| is_given.then_some(name))
}

/// Words that `bash` executes itself, so that no file has their name.
const BASH: &str = ". : [ [[ ! { } alias bg bind break builtin caller case cd command compgen \
    complete compopt continue coproc declare dirs disown do done echo elif else enable esac eval \
    exec exit export false fc fg fi for function getopts hash help history if in jobs kill let \
    local logout mapfile popd printf pushd pwd read readarray readonly return select set shift \
    shopt source suspend test then time times trap true type typeset ulimit umask unalias unset \
    until wait while";

/// Returns the program of a command if it does not exist. A first word that `bash` has to expand is
/// not checked.
fn missing_program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?.trim_end_matches(';');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    let is_known =
        BASH.split_whitespace().any(|known| known == word) || probe::find(word).is_some();
    (word.chars().all(is_plain) && !is_known).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_found() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(missing_program(command), expected, "{command}");
        };
        check("no-such-program --all", Some("no-such-program"));
        check("no-such-program; true", Some("no-such-program"));
        check("./no-such-file", Some("./no-such-file"));
        for command in ["sh -c true", "exit 3", "[ -e x ]", "! true", "\n set -e\nsh", "true;"] {
            check(command, None);
        }
        // Only `bash` knows the meaning of these.
        for command in ["$CHECK x", "A=b no-such-program", "\"no such\" x", "(no-such-program)", ""]
        {
            check(command, None);
        }
    }
}
