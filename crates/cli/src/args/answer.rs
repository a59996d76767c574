//! Flags of the command that answers questions.

use clap::Args;

use super::run::{BackgroundFlags, OutputFlags};
use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct AnswerFlags {
    /// Name the run: id, unique prefix or @last [default: list all questions]
    #[arg(add = completion::unfinished_run())]
    pub(crate) run: Option<String>,
    /// Answer with an option, its number, or text if it has none (`-`: stdin)
    pub(crate) text: Option<String>,
    /// Answer this agent, if several ask
    #[arg(long, value_name = "AGENT", requires = "text")]
    pub(crate) agent: Option<String>,
    /// Record this name [default: your login name]
    #[arg(long, value_name = "NAME", requires = "text")]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) background: BackgroundFlags,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputFlags,
}
