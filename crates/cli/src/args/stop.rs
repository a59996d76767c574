//! Flags of the commands that stop a run.

use clap::Args;

use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Name the run: id, unique prefix or @last
    #[arg(add = completion::driven_run())]
    pub(crate) run: String,
    /// Let running turns finish first
    #[arg(long)]
    pub(crate) after_turn: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Name the run: id, unique prefix or @last
    #[arg(add = completion::driven_run())]
    pub(crate) run: String,
    /// Cancel only this worker, with its own workers
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
