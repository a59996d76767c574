//! Flags of `raymond projects`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::completion;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Projects {
    #[command(subcommand)]
    pub(crate) change: Option<ProjectsCommand>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The commands that change the list.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// Add a project (starting a run does so, too)
    #[command(after_help = "Example:\n  raymond projects add ~/app")]
    Add(AddProject),
    /// Remove a project from the list, and keep its runs
    #[command(after_help = "Example:\n  raymond projects forget ~/app")]
    Forget(ForgetProject),
}

#[derive(Debug, Args)]
pub(crate) struct AddProject {
    /// Add the project of this directory [default: .]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetProject {
    /// Forget the project of this directory, which need not exist
    #[arg(value_name = "DIR", add = completion::registered_project())]
    pub(crate) directory: PathBuf,
}
