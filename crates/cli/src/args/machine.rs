//! Flags of the commands about this machine and this project.

use clap::{Args, ValueEnum};
use raymond_core::time::Span;

use crate::completion;

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

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// End leftover processes and remove runs that never started
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Delete these runs, of any age and status [default: see --older-than]
    ///
    /// Runs that could be resumed are deleted, too. A run that a process drives is refused.
    #[arg(value_name = "RUN", add = completion::any_run())]
    pub(crate) runs: Vec<String>,
    /// Delete runs without activity for at least this long [default: 30d]
    #[arg(long, value_name = "DURATION", conflicts_with = "runs", value_parser = Span::parse_any)]
    pub(crate) older_than: Option<Span>,
    /// Also delete unfinished runs that no process drives
    #[arg(long, conflicts_with = "runs")]
    pub(crate) unfinished: bool,
    /// Show the runs without deleting them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Choose the shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}
