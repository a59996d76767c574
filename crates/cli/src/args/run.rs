//! Flags of the commands that start or resume a run.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::SchemaPathFlags;
use crate::completion;
use crate::config::{Layer, count_from_one, with_unchanged_default};

/// The amount and the format of the output.
#[derive(Debug, Args, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct OutputFlags {
    /// Print only failures and notes to stderr (the result stays on stdout)
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more details
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object to stdout instead of the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every event to stdout as a line of JSON
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}

/// Whether the run is driven in the background.
#[derive(Debug, Args, Default)]
pub(crate) struct BackgroundFlags {
    /// Start or continue the run in the background and print its id
    #[arg(long, short = 'd')]
    pub(crate) detach: bool,
    /// Drive this run as its background process
    #[arg(long, hide = true)]
    pub(crate) detached_as: Option<String>,
}

/// The flags that only a new run has.
#[derive(Debug, Args)]
pub(crate) struct NewRunFlags {
    /// Set the id of the run: letters, digits, `-` and `_`
    #[arg(long = "run-id", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Continue the run that --run-id names, if it exists
    #[arg(long, requires = "id")]
    pub(crate) or_resume: bool,
    /// Set a template variable (for a document of steps also K:=JSON)
    #[arg(long = "var", value_name = "K=V")]
    pub(crate) vars: Vec<String>,
}

/// The flags that only documents of steps have.
#[derive(Debug, Args, Default)]
pub(crate) struct StepsFlags {
    #[command(flatten)]
    pub(crate) schemas: SchemaPathFlags,
    /// Run the steps of a document in this directory [default: .]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
}

impl StepsFlags {
    /// Returns the directory in which steps run.
    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.as_deref().unwrap_or_else(|| Path::new("."))
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// Run this state, directory, .zip or document of steps (.json)
    ///
    /// A bare name also finds a workflow in `workflows/`. Without a name, `run` lists workflows.
    #[arg(default_value = "", hide_default_value = true, add = completion::workflow())]
    // The parser of paths refuses an empty text, which means here that no name is given.
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) workflow: PathBuf,
    /// Pass this text to the first state as {{input}}
    ///
    /// `-` reads it from stdin, `@FILE` from a file.
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) creation: NewRunFlags,
    #[command(flatten)]
    pub(crate) background: BackgroundFlags,
    /// Read the states at every visit instead of pinning them
    #[arg(long)]
    pub(crate) unpinned: bool,
    #[command(flatten, next_help_heading = "Documents of steps")]
    pub(crate) steps: StepsFlags,
    /// Set only by `ralph`, which starts a run with these flags.
    #[arg(skip)]
    pub(crate) max_iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) setting_flags: Layer,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputFlags,
}

/// The flags of `ralph`. It hides flags that have no effect on one agent in fresh conversations.
#[derive(Debug, Args)]
#[command(
    mut_arg("max_parallel", |flag| flag.hide(true)),
    mut_arg("max_agents", |flag| flag.hide(true)),
    mut_arg("reminders", |flag| flag.hide(true)),
    mut_arg("on_lost_session", |flag| flag.hide(true)),
    mut_arg("vars", |flag| flag.help("Set a template variable"))
)]
pub(crate) struct RalphFlags {
    /// Repeat this prompt (.md); Raymond reads it for each iteration
    #[arg(add = completion::prompt())]
    pub(crate) prompt: PathBuf,
    /// Run at most this many iterations [default: 50]
    ///
    /// If none of them succeeds, the run fails (exit code 1).
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_iterations: Option<u32>,
    /// Repeat the prompt until this bash command exits with code 0
    ///
    /// The command runs after every iteration, in the agent's directory. If the iteration has a
    /// result, `$RAYMOND_RESULT_FILE` names a file with it. If the command fails, the next
    /// iteration gets the end of its output as {{input}}.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) until: Option<String>,
    /// Pin the prompt instead of reading it for each iteration
    #[arg(long)]
    pub(crate) pinned: bool,
    #[command(flatten)]
    pub(crate) creation: NewRunFlags,
    #[arg(long, hide = true)]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) background: BackgroundFlags,
    #[command(flatten)]
    pub(crate) setting_flags: Layer,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
#[command(mut_args(with_unchanged_default))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ResumeFlags {
    /// Name the run: id, prefix or @last [default: the only unfinished one]
    #[arg(add = completion::unfinished_run())]
    pub(crate) run: Option<String>,
    /// Show the plan without resuming
    #[arg(long, conflicts_with = "truncate_to")]
    pub(crate) plan: bool,
    /// End all waits of `after` and `at` at once
    #[arg(long, conflicts_with = "plan")]
    pub(crate) now: bool,
    /// Use the files as they are on disk, with your edits
    #[arg(long, conflicts_with = "pinned")]
    pub(crate) with_current: bool,
    /// Ignore edits: use the files as the run recorded them
    #[arg(long)]
    pub(crate) pinned: bool,
    /// Use the current prices of the configuration
    #[arg(long)]
    pub(crate) current_prices: bool,
    /// Run at most this many iterations in total (`ralph` only)
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_iterations: Option<u32>,
    /// Replace an owner on another host (only if that owner has ended)
    #[arg(long)]
    pub(crate) takeover: bool,
    /// Discard all records after number RECORD, then continue
    #[arg(long, value_name = "RECORD")]
    pub(crate) truncate_to: Option<u64>,
    #[arg(long, hide = true)]
    pub(crate) input: Option<String>,
    /// Only end the waits whose time has come: for `raymond tend`
    #[arg(long, hide = true)]
    pub(crate) wake: bool,
    /// Set a variable of a document (with --with-current; repeatable)
    #[arg(long = "var", value_name = "NAME=TEXT")]
    pub(crate) vars: Vec<String>,
    #[command(flatten)]
    pub(crate) background: BackgroundFlags,
    #[command(flatten)]
    pub(crate) setting_flags: Layer,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputFlags,
}
