//! A stand-in for Claude Code 2.1.325, `claude -p --output-format stream-json --verbose`.
//!
//! It writes the same stream, stores sessions, counts costs, reacts to signals and fails as the
//! real program was observed to do; only the model is missing. The prompt contains the model's
//! behaviour as lines `fake: …`, so a workflow is readable on its own. The lines run in order; then
//! a result ends the invocation. Every invocation is recorded in
//! `$CLAUDE_CONFIG_DIR/invocations.jsonl` ([`Invocation`]).
//!
//! | line | effect at this point |
//! |---|---|
//! | `say TEXT` | a message; the last one is the final text (`\n` is a newline) |
//! | `more TEXT`, `pad BYTES` | a further block of the same message |
//! | `cost USD`, `cap` | spends this amount (default: 0.01); spends all of `--max-budget-usd` |
//! | `claim-cap` | reports that the cap is reached, but no cost: the end |
//! | `usage IN OUT` | the tokens that the next messages report |
//! | `tool NAME INPUT` | a tool call, denied unless the flags allow it |
//! | `deny NAME INPUT`, `tool-tag TEXT` | a tool call that is denied; one whose output is TEXT |
//! | `background`, `notify` | a task starts and a first result ends the message; the task is done and a second init follows |
//! | `retry STATUS` | prints an `api_retry` line and continues |
//! | `error STATUS\|none [KIND]`, `refuse` | the API fails; the model refuses: the end |
//! | `quota [SECONDS]` | a usage limit that ends after SECONDS: the end |
//! | `fail TEXT`, `max-turns` | the turn failed: the end |
//! | `wait FILE` | creates `FILE.waiting` and waits for FILE; both in `$CLAUDE_CONFIG_DIR` |
//! | `hang silent\|stall\|after-result` | prints nothing more: not even a first line; from here on; after the result |
//! | `flood BYTES`, `line BYTES`, `raw TEXT`, `not-json`, `stderr TEXT` | output of that kind |
//! | `grandchild`, `daemon`, `bare-daemon` | a process that keeps running: in its own session, with stdout open; forked twice; also without an environment |
//! | `ignore INT\|TERM\|HUP` | that signal does nothing from here on |
//! | `half`, `no-result`, `kill` | half a result line; none; SIGKILL here |
//! | `forget` | the session was never stored, but its id is in use |
//! | `stay` | continues in the session that should have been branched, and names that session |
//! | `exit CODE` | the exit code, independent of the result |
//!
//! `fake[2]: …` applies the second time that these exact lines run in this configuration directory,
//! `fake[2-]: …` from then on. A message without such lines is a reminder: it runs the lines
//! `fake[reminder]: …` and `fake[reminder 1]: …` of the last message that has any.

mod arguments;
mod child_processes;
mod directive;
mod invocation;
mod script_runner;
mod sessions;
mod signals;
mod startup;
mod stream;
mod turn_state;

pub use invocation::{Invocation, Message, Role};

use std::io::Write as _;
use std::process::ExitCode;

pub const VERSION: &str = "2.1.325 (Claude Code)";

/// Runs the program with the arguments of this process.
pub fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // First: the processes that a script starts are the same program with other arguments.
    if let Some(kind) = child_processes::parse_task(&words) {
        return child_processes::run_task(kind);
    }
    if words.iter().any(|word| word == "--version" || word == "-v") {
        writeln!(std::io::stdout(), "{VERSION}").ok();
        return ExitCode::SUCCESS;
    }
    signals::run_with_signals(move |state| script_runner::run(&words, &state))
}
