//! Flags and arguments.

mod governing;
mod init;
#[cfg(test)]
mod reference;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use raymond_core::time::Span;
use raymond_core::workflow::nearest;

pub(crate) use governing::{Budget, Governing, InterruptedScripts, LostSession};
pub(crate) use init::Init;

use crate::failure::{Failure, USAGE};
use crate::secrets::redacted;
use crate::workflows;

/// What this was built from: `0.1.0 (b0c1149 2026-11-15)`.
const VERSION: &str = env!("BUILT_FROM");
/// The same, and what for.
const LONG_VERSION: &str = concat!(env!("BUILT_FROM"), "\n", env!("BUILT_FOR"));

/// Runs coding agents as programs: a folder of prompts and scripts, driven by the tags they emit.
#[derive(Debug, Parser)]
#[command(name = "raymond", version = VERSION, long_version = LONG_VERSION)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Example:\n  raymond run flows/review --budget 5\n  raymond resume @last")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a workflow; `raymond WORKFLOW` is short for it
    #[command(after_help = "Example:\n  raymond run flows/review --input 'issue 195' --budget 5")]
    Run(Box<Run>),
    /// Go on with a run that was stopped, interrupted or failed, or that ran out of money
    #[command(after_help = "Example:\n  raymond resume @last --budget 25")]
    Resume(Box<Resume>),
    /// Where a run is, and what leads out of it
    #[command(after_help = "Example:\n  raymond status review-20260102-k3f9 --json")]
    Status(Look),
    /// The history of a run
    #[command(after_help = "Example:\n  raymond show @last --verbose")]
    Show(Show),
    /// One sentence: why a run is where it is, and the command that changes it
    #[command(after_help = "Example:\n  raymond why @last")]
    Why(Look),
    /// Wait until a run has ended, and exit with its code
    #[command(after_help = "Example:\n  raymond wait @last && echo done")]
    Wait(Look),
    /// Follow a run until it has ended, and exit with its code; Ctrl-C leaves it alone
    #[command(after_help = "Example:\n  raymond attach @last")]
    Attach(Attach),
    /// Stop a run so that it can be resumed
    #[command(after_help = "Example:\n  raymond stop @last --after-turn")]
    Stop(Stop),
    /// End a run for good
    #[command(after_help = "Example:\n  raymond cancel @last")]
    Cancel(Cancel),
    /// All runs of this project
    #[command(after_help = "Example:\n  raymond list --json")]
    List(List),
    /// Where the money went, of one run or of all of this project
    #[command(after_help = "Example:\n  raymond cost --since 7d --by model")]
    Cost(Cost),
    /// What is configured here, and where each value was said
    #[command(after_help = "Example:\n  raymond config --json")]
    Config(Config),
    /// Write a workflow for this project to begin with, or copy an example
    #[command(after_help = "Example:\n  raymond init\n  raymond init --from title")]
    Init(Init),
    /// A tour in a few seconds: call, function, fork, a kill -9, and the resume
    #[command(after_help = "Example:\n  raymond demo --keep")]
    Demo(Demo),
}

/// How much is said.
#[derive(Debug, Args, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Talk {
    /// Say only what failed
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object on stdout instead of the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every event as a line of JSON on stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}

/// Where a run is driven.
#[derive(Debug, Args, Default)]
pub(crate) struct Ground {
    /// Start it in the background, and print its id
    #[arg(long, short = 'd')]
    pub(crate) detach: bool,
    /// This is the one in the background, and this is its run
    #[arg(long, hide = true)]
    pub(crate) detached_as: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A state, a directory or a .zip
    pub(crate) workflow: PathBuf,
    /// The id of the run: letters, digits, `-` and `_`
    #[arg(long = "run-id", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Go on with the run of this id when there is one
    #[arg(long, requires = "id")]
    pub(crate) or_resume: bool,
    /// Handed to the first state, as {{input}}
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    /// A template variable
    #[arg(long = "var", value_name = "K=V")]
    pub(crate) vars: Vec<String>,
    /// Read the states at every visit instead of keeping them as they are now
    #[arg(long)]
    pub(crate) unpinned: bool,
    #[command(flatten)]
    pub(crate) ground: Ground,
    #[command(flatten)]
    pub(crate) governing: Governing,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Resume {
    /// The run: its id, a unique beginning of it, or @last [default: the only unfinished one]
    pub(crate) run: Option<String>,
    /// Only say what would be done
    #[arg(long, conflicts_with = "truncate_to")]
    pub(crate) plan: bool,
    /// Use the states as they are now
    #[arg(long, conflicts_with = "pinned")]
    pub(crate) with_current: bool,
    /// Use the states as they were when the run started
    #[arg(long)]
    pub(crate) pinned: bool,
    /// Replace an owner on another host
    #[arg(long)]
    pub(crate) takeover: bool,
    /// Keep the records up to this one, and go on from there
    #[arg(long, value_name = "RECORD")]
    pub(crate) truncate_to: Option<u64>,
    #[arg(long, hide = true)]
    pub(crate) input: Option<String>,
    #[arg(long = "var", hide = true)]
    pub(crate) vars: Vec<String>,
    #[command(flatten)]
    pub(crate) ground: Ground,
    #[command(flatten)]
    pub(crate) governing: Governing,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Debug, Args)]
pub(crate) struct Look {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    pub(crate) run: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    pub(crate) run: Option<String>,
    /// Every turn
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run: its id, a unique beginning of it, or @last
    pub(crate) run: String,
    /// Let turns in flight finish first
    #[arg(long)]
    pub(crate) after_turn: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run: its id, a unique beginning of it, or @last
    pub(crate) run: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// The run: its id, a unique beginning of it, or @last [default: all runs]
    pub(crate) run: Option<String>,
    /// Only what was spent since then, such as 7d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<Span>,
    /// By what [default: state for one run, workflow for all]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<CostBy>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CostBy {
    State,
    Model,
    Workflow,
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the directory of the demo
    #[arg(long)]
    pub(crate) keep: bool,
}

const COMMANDS: [&str; 15] = [
    "run", "resume", "status", "show", "why", "wait", "attach", "stop", "cancel", "list", "cost",
    "config", "init", "demo", "help",
];

/// `raymond WORKFLOW …` is short for `raymond run WORKFLOW …`.
pub(crate) fn with_run(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let first = words.get(1).map(|word| word.to_string_lossy().into_owned());
    let names_a_workflow = first.is_some_and(|word| {
        !word.starts_with('-')
            && !COMMANDS.contains(&word.as_str())
            && (std::path::Path::new(&word).exists() || word.contains(['/', '.']))
    });
    if names_a_workflow {
        words.insert(1, "run".into());
    }
    words
}

/// What the parser has to say. Help is no mistake; a mistyped command is told the nearest command
/// and the nearest workflow.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
            let failure = mistyped(word);
            failure.print();
            ExitCode::from(failure.code)
        }
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => {
            error.print().ok();
            ExitCode::SUCCESS
        }
        _ => {
            // It may repeat what was typed.
            let words = error.render().to_string();
            match redacted(&words) {
                Cow::Borrowed(_) => error.print().ok(),
                Cow::Owned(words) => write!(anstream::stderr(), "{words}").ok(),
            };
            ExitCode::from(USAGE)
        }
    }
}

fn mistyped(word: &str) -> Failure {
    let failure = Failure::usage(format!("there is no command and no workflow {word:?}"));
    let command = nearest(word, COMMANDS).map(|command| format!("`raymond {command}`"));
    let workflow = workflows::nearest(word.as_ref());
    let workflow = workflow.map(|path| format!("`raymond run {}`", path.display()));
    let offers: Vec<String> = command.into_iter().chain(workflow).collect();
    if offers.is_empty() {
        return failure.hint("see `raymond --help`");
    }
    failure.hint(format!("did you mean {}?", offers.join(" or ")))
}
