//! A stand-in for Claude Code 2.1.325, `claude -p --output-format stream-json --verbose`.
//!
//! It speaks the stream, keeps sessions, counts money, reacts to signals and fails as the real
//! program was seen to do; only the model is missing. What the model would do is written into the
//! prompt, so that a workflow reads by itself: lines `fake: …` are played in order, then a result
//! ends the invocation. Every invocation is recorded in `$CLAUDE_CONFIG_DIR/invocations.jsonl`
//! ([`Invocation`]).
//!
//! | line | what happens at this place |
//! |---|---|
//! | `say TEXT` | a message; the last one is the final text (`\n` is a newline) |
//! | `more TEXT`, `pad BYTES` | a further block of the same message |
//! | `cost USD`, `cap` | so much is spent (0.01 when nothing else is said); the whole `--max-budget-usd` is |
//! | `usage IN OUT` | the tokens that the next messages report |
//! | `tool NAME INPUT` | a tool call, denied unless the flags allow it |
//! | `deny NAME INPUT`, `tool-tag TEXT` | a tool call that is denied; one whose output is TEXT |
//! | `background`, `notify` | a task starts and a first result ends the message; the task is done and a second init follows |
//! | `retry STATUS` | an `api_retry` line, and on it goes |
//! | `error STATUS\|none [KIND]`, `refuse` | the API fails; the model refuses: the end |
//! | `quota [SECONDS]` | a usage limit, which is lifted then: the end |
//! | `fail TEXT`, `max-turns` | the turn failed: the end |
//! | `wait FILE` | makes `FILE.waiting`, waits for FILE; both in `$CLAUDE_CONFIG_DIR` |
//! | `hang silent\|stall\|after-result` | nothing more ever: not even a first line; from here on; after the result |
//! | `flood BYTES`, `line BYTES`, `raw TEXT`, `not-json`, `stderr TEXT` | output of that kind |
//! | `grandchild`, `daemon`, `bare-daemon` | a process that stays: in a session of its own, holding stdout; forked twice; without an environment too |
//! | `ignore INT\|TERM\|HUP` | that signal does nothing from here on |
//! | `half`, `no-result`, `kill` | half a result line; none; SIGKILL here |
//! | `forget` | the session was never kept, and its id is taken all the same |
//! | `stay` | the session that was to be branched is gone on in, and named |
//! | `exit CODE` | the exit code, whatever the result says |
//!
//! `fake[2]: …` holds the second time that these very lines are played in this configuration
//! directory, `fake[2-]: …` from then on. A message without such lines is a reminder: it plays the
//! lines `fake[reminder]: …` and `fake[reminder 1]: …` of the last message that has any.

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

/// What `--version` prints.
pub const VERSION: &str = "2.1.325 (Claude Code)";

/// The program.
pub fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(kind) = child_processes::parse_task(&words) {
        return child_processes::run_task(kind);
    }
    if words.iter().any(|word| word == "--version" || word == "-v") {
        writeln!(std::io::stdout(), "{VERSION}").ok();
        return ExitCode::SUCCESS;
    }
    signals::run_with_signals(move |state| script_runner::run(&words, &state))
}
