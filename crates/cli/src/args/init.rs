//! The flags of `init`.

use std::path::PathBuf;

use clap::Args;

use crate::completion;

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to write it [default: workflows/change; with --from, the name of the example]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Name the examples
    #[arg(long, conflicts_with_all = ["directory", "from", "dry_run"])]
    pub(crate) list: bool,
    /// Copy this example instead
    #[arg(long, value_name = "NAME", add = completion::example())]
    pub(crate) from: Option<String>,
    /// Only say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
