//! Flags of the commands that read runs.

use clap::{Args, ValueEnum};
use raymond_core::time::Span;
use raymond_core::view::Status;

use super::OutputFlags;
use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct RunArgument {
    /// Name the run: id, unique prefix or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Name the run: id, unique prefix or @last [default: the last one]
    #[arg(add = completion::driven_run())]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name the run: id, unique prefix or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Show every turn
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListFlags {
    /// List only runs with this status (can be repeated)
    #[arg(long, value_name = "STATUS", value_parser = Status::WORDS)]
    pub(crate) status: Vec<String>,
    /// List only runs of this workflow (its path or the end of it)
    #[arg(long, value_name = "WORKFLOW")]
    pub(crate) workflow: Option<String>,
    /// List only runs that started in the last DURATION, such as 7d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<Span>,
    /// List the runs of all projects of this user (see `raymond projects`)
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a flag of the command line")]
pub(crate) struct Logs {
    /// Name the run: id, unique prefix or @last [default: the last one]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Show only turns of this agent
    #[arg(long, add = completion::agent())]
    pub(crate) agent: Option<String>,
    /// Show only turns in this state (the extension may be omitted)
    #[arg(long, add = completion::state())]
    pub(crate) state: Option<String>,
    /// Also show the prompts as they were sent
    #[arg(long, conflicts_with_all = ["follow", "raw"])]
    pub(crate) prompts: bool,
    /// Follow until the run ends (Ctrl-C does not stop the run)
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print transcripts as clients wrote them (lines of JSON)
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "follow")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CostFlags {
    /// Name the run: id, unique prefix or @last [default: all runs]
    #[arg(add = completion::any_run())]
    pub(crate) run: Option<String>,
    /// Count only the costs of the last DURATION, such as 7d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<Span>,
    /// Group the costs by this [default: state for one run, workflow for all]
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
