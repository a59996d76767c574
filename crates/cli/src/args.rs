//! The commands of `raymond` with their flags and help texts, for clap.
//!
//! Help texts start with an imperative verb and fit into 70 columns. `reference` generates
//! docs/commands.md from them. The flags of settings are in `config::keys`. Meanings of flags are
//! in `settings` and in each command.

mod answer;
mod crayfish;
mod deferred;
mod emit;
mod init;
mod inspect;
mod machine;
mod mcp;
mod overview;
mod projects;
#[cfg(test)]
mod reference;
mod run;
mod stop;
mod tend;

use clap::{Parser, Subcommand};
use deferred::Deferred;

pub(crate) use answer::AnswerFlags;
pub(crate) use crayfish::{
    Crayfish, CrayfishCommand, Explain, SchemaKind, SchemaPathFlags, Validate,
};
pub(crate) use emit::Emit;
pub(crate) use init::Init;
pub(crate) use inspect::{Attach, CostBy, CostFlags, ListFlags, Logs, RunArgument, Show};
pub(crate) use machine::{Completions, Config, Demo, Doctor, Prune, Shell};
pub(crate) use mcp::Mcp;
pub(crate) use overview::{names_a_command, with_overview};
pub(crate) use projects::{AddProject, ForgetProject, Projects, ProjectsCommand};
pub(crate) use run::{BackgroundFlags, OutputFlags, RalphFlags, ResumeFlags, RunFlags, StepsFlags};
pub(crate) use stop::{Cancel, Stop};
pub(crate) use tend::Tend;

/// The version with commit and date: `0.1.0 (b0c1149 2026-11-15)`.
const VERSION: &str = env!("BUILT_FROM");
/// The version and the target.
const LONG_VERSION: &str = concat!(env!("BUILT_FROM"), "\n", env!("BUILT_FOR"));

/// The end of `raymond run --help`. It lists the exit codes for users who have only the binary.
const RUN_HELP: &str = "\
Example:
  raymond run workflows/review --input 'issue 195' --budget 5

Exit codes:
  0  completed
  1  failed
  2  usage error, invalid workflow or unknown run
  3  waiting for a person
  4  waiting for a time or a usage limit, with --no-wait
  5  over budget
  6  another process drives the run
  7  machine: disk, permissions, no usable backend, damaged journal
  8  cancelled
  129, 130, 143  ended by SIGHUP; by Ctrl-C or stop; by SIGTERM";

/// The end of `raymond tend --help`.
const TEND_HELP: &str = "\
Examples:
  raymond tend
  */5 * * * * cd PROJECT && raymond tend --once    (in a crontab)

Exit codes:
  0  with --once: each due run (at most 4) was continued, or the reason was printed
  6  another `raymond tend` is at work in this project
  129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM";

/// The end of `raymond answer --help`.
const ANSWER_HELP: &str = "\
Examples:
  raymond answer
  raymond answer @last approve
  git diff | raymond answer @last -

A run that waits without a process is continued by this command.";

/// The end of `raymond replay --help`.
const REPLAY_HELP: &str = "\
Example:
  raymond replay @last

Replay changes nothing, and a running run continues meanwhile.

Exit codes:
  0  every decision is the same
  1  a decision differs; the first difference is printed";

/// The end of `raymond emit --help`.
const EMIT_HELP: &str = "\
Examples:
  make test 2>&1 | raymond emit goto FIX --input-file -
  raymond emit fork WORKER --next WAIT --attribute item=\"$item\"
  raymond emit result --input-file report.txt
  raymond emit result --status failed \"no test passes\"";

/// The end of `raymond crayfish --help`.
const CRAYFISH_HELP: &str = "\
Example:
  raymond crayfish --workspace . < request.json

Reads one request of at most 64 MiB and writes one reply to stdout.
To run a document with an agent: raymond run flow.json

Exit codes:
  0  the reply reports the outcome, which may be a failure
  2  could not read the request; the reply is bad_request";

/// Run coding agents as programs
#[derive(Debug, Parser)]
#[command(name = "raymond", version = VERSION, long_version = LONG_VERSION)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a workflow (short form: `raymond WORKFLOW`)
    #[command(after_help = RUN_HELP)]
    Run(Deferred<RunFlags>),
    /// Repeat one prompt in fresh conversations until an answer has a result
    #[command(after_help = "Example:\n  raymond ralph PROMPT.md --until 'cargo test' --budget 5")]
    Ralph(Deferred<RalphFlags>),
    /// Continue a run that stopped, failed or reached its cap
    #[command(after_help = "Example:\n  raymond resume @last --budget 25")]
    Resume(Deferred<ResumeFlags>),
    /// Continue waiting runs as soon as their time has come
    #[command(after_help = TEND_HELP)]
    Tend(Deferred<Tend>),
    /// Show the status of a run and the next command
    #[command(after_help = "Example:\n  raymond status review-20260102-3c0f9a --json")]
    Status(Deferred<RunArgument>),
    /// Show the history of a run
    #[command(after_help = "Example:\n  raymond show @last --verbose")]
    Show(Deferred<Show>),
    /// Explain why a run has its status, and what to do
    #[command(after_help = "Example:\n  raymond why @last")]
    Why(Deferred<RunArgument>),
    /// Wait until a run ends, print its result and exit with its code
    #[command(after_help = "Example:\n  raymond wait @last && echo done")]
    Wait(Deferred<RunArgument>),
    /// Follow a run until it ends, and exit with its code
    #[command(after_help = "Example:\n  raymond attach @last")]
    Attach(Deferred<Attach>),
    /// List the open questions, or answer one
    #[command(after_help = ANSWER_HELP)]
    Answer(Deferred<AnswerFlags>),
    /// Stop a run so that it can be resumed
    #[command(after_help = "Example:\n  raymond stop @last --after-turn")]
    Stop(Deferred<Stop>),
    /// End a run for good, unless its journal is truncated later
    #[command(
        after_help = "Example:\n  raymond cancel @last\n  raymond cancel @last --agent main_check2"
    )]
    Cancel(Deferred<Cancel>),
    /// List the runs of this project
    #[command(visible_aliases = ["ls", "ps"])]
    #[command(after_help = "Example:\n  raymond list --status failed\n  raymond list --all --json")]
    List(Deferred<ListFlags>),
    /// List the projects of this user
    #[command(after_help = "Example:\n  raymond projects\n  raymond projects forget ~/old")]
    Projects(Deferred<Projects>),
    /// Show the transcripts of turns
    #[command(after_help = "Example:\n  raymond logs @last --state REVIEW\n  raymond logs -f")]
    Logs(Deferred<Logs>),
    /// Show the costs of one run or of all runs of this project
    #[command(after_help = "Example:\n  raymond cost --since 7d --by model")]
    Cost(Deferred<CostFlags>),
    /// Check that this release would decide a past run in the same way
    #[command(after_help = REPLAY_HELP)]
    Replay(Deferred<RunArgument>),
    /// Show settings and where each value comes from
    #[command(after_help = "Example:\n  raymond config --json")]
    Config(Deferred<Config>),
    /// Write a first workflow for this project, or copy an example
    #[command(after_help = "Example:\n  raymond init\n  raymond init --from title")]
    Init(Deferred<Init>),
    /// Print a tag for a script, with any text in it
    #[command(after_help = EMIT_HELP)]
    Emit(Deferred<Emit>),
    /// Check this machine and this project
    #[command(
        after_help = "Example:\n  raymond doctor\n  raymond doctor --fix\n\nDoctor changes nothing without --fix. It asks clients for their versions,\nbut does not check whether they are logged in."
    )]
    Doctor(Deferred<Doctor>),
    /// Delete completed and cancelled runs
    #[command(visible_alias = "rm")]
    #[command(after_help = "Example:\n  raymond prune --older-than 7d --dry-run")]
    Prune(Deferred<Prune>),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  echo 'source <(raymond completions bash)' >> ~/.bashrc")]
    Completions(Deferred<Completions>),
    /// Run the tool `crayfish` on one JSON request from stdin
    #[command(after_help = CRAYFISH_HELP)]
    Crayfish(Deferred<Crayfish>),
    /// Serve the tool `crayfish` to MCP clients (stdio or HTTP)
    #[command(
        after_help = "Example:\n  claude mcp add crayfish -- raymond mcp --workspace .\n  raymond mcp --http 127.0.0.1:7420"
    )]
    Mcp(Deferred<Mcp>),
    /// Watch a short tour: call, function, fork, kill -9 and resume
    #[command(after_help = "Example:\n  raymond demo --keep")]
    Demo(Deferred<Demo>),
}
