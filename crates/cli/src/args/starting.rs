//! Flags of the commands that drive a run.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Governing, Schemas};
use crate::completion;

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

/// What is new about a new run.
#[derive(Debug, Args)]
pub(crate) struct Beginning {
    /// The id of the run: letters, digits, `-` and `_`
    #[arg(long = "run-id", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Go on with the run of this id when there is one
    #[arg(long, requires = "id")]
    pub(crate) or_resume: bool,
    /// A template variable; for a document of steps also K:=JSON
    #[arg(long = "var", value_name = "K=V")]
    pub(crate) vars: Vec<String>,
}

/// What only documents of steps have.
#[derive(Debug, Args, Default)]
pub(crate) struct Steps {
    #[command(flatten)]
    pub(crate) schemas: Schemas,
    /// Where the steps of a document work [default: here]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
}

impl Steps {
    /// Where steps work.
    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.as_deref().unwrap_or_else(|| Path::new("."))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A state, a directory, a .zip, or a document of steps (.json)
    #[arg(add = completion::workflow())]
    pub(crate) workflow: PathBuf,
    #[command(flatten)]
    pub(crate) beginning: Beginning,
    /// Handed to the first state, as {{input}}
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) steps: Steps,
    /// Read the states at every visit instead of keeping them as they are now
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Only `ralph` has it.
    #[arg(skip)]
    pub(crate) max_iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) ground: Ground,
    #[command(flatten)]
    pub(crate) governing: Governing,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// One agent, which is never reminded, in sessions that it never goes back to.
#[derive(Debug, Args)]
#[command(
    mut_arg("max_parallel", |flag| flag.hide(true)),
    mut_arg("max_agents", |flag| flag.hide(true)),
    mut_arg("reminders", |flag| flag.hide(true)),
    mut_arg("on_lost_session", |flag| flag.hide(true)),
    mut_arg("vars", |flag| flag.help("A template variable"))
)]
pub(crate) struct Ralph {
    /// The prompt: a .md file, read anew for each iteration
    #[arg(add = completion::prompt())]
    pub(crate) prompt: PathBuf,
    /// The most iterations; without a result, the run is then completed and says so [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// Let a result count only if this command of bash exits 0
    ///
    /// It runs where the agent works, with the result in `$RAYMOND_RESULT_FILE`. When it fails, the
    /// next iteration gets the end of what it said as {{input}}.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) until: Option<String>,
    /// Keep the prompt as it is now instead of reading it for each iteration
    #[arg(long)]
    pub(crate) pinned: bool,
    #[command(flatten)]
    pub(crate) beginning: Beginning,
    #[arg(long, hide = true)]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) ground: Ground,
    #[command(flatten)]
    pub(crate) governing: Governing,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Debug, Args)]
#[command(mut_args(super::governing::kept))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Resume {
    /// The run: its id, a unique beginning of it, or @last [default: the only unfinished one]
    #[arg(add = completion::unfinished_run())]
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
    /// Use the prices as the configuration has them now
    #[arg(long)]
    pub(crate) current_prices: bool,
    /// The most iterations of a `ralph` loop, those so far included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
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
