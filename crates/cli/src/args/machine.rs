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
    /// End processes that nobody drives, and remove runs that were never started
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// These runs, whatever their age [default: finished ones that are old enough]
    #[arg(value_name = "RUN", add = completion::any_run())]
    pub(crate) runs: Vec<String>,
    /// How long ago they have to have ended [default: 30d]
    #[arg(long, value_name = "DURATION", conflicts_with = "runs", value_parser = Span::parse_any)]
    pub(crate) older_than: Option<Span>,
    /// Also failed, stopped and interrupted ones, and those over budget
    #[arg(long, conflicts_with = "runs")]
    pub(crate) unfinished: bool,
    /// Only say what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
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
