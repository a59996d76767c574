//! Flags of the commands that only look.

use clap::{Args, ValueEnum};
use raymond_core::time::Span;

use super::Talk;
use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct Look {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    #[arg(add = completion::driven_run())]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Every turn
    #[arg(long, short)]
    pub(crate) verbose: bool,
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
pub(crate) struct Logs {
    /// The run: its id, a unique beginning of it, or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Only turns of this agent
    #[arg(long, add = completion::agent())]
    pub(crate) agent: Option<String>,
    /// Only turns in this state, with or without its extension
    #[arg(long, add = completion::state())]
    pub(crate) state: Option<String>,
    /// Go on until the run has ended; Ctrl-C leaves it alone
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print transcripts as clients wrote them: lines of JSON
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "follow")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// The run: its id, a unique beginning of it, or @last [default: all runs]
    #[arg(add = completion::any_run())]
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
    Backend,
    Workflow,
}
