//! Flags of the commands that end a run.

use clap::Args;

use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run: its id, a unique beginning of it, or @last
    #[arg(add = completion::driven_run())]
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
    #[arg(add = completion::driven_run())]
    pub(crate) run: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
