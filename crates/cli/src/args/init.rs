//! The flags of `init`.

use std::path::PathBuf;

use clap::Args;

use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write to this directory [default: workflows/change; NAME with --from]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// List the examples
    #[arg(long, conflicts_with_all = ["directory", "from", "dry_run"])]
    pub(crate) list: bool,
    /// Copy this example instead of writing a new workflow
    #[arg(long, value_name = "NAME", add = completion::example())]
    pub(crate) from: Option<String>,
    /// Show the files without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
