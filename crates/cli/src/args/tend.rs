//! Flags of `raymond tend`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Tend {
    /// Continue the runs that are due now, and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Also continue runs whose process was killed, which may cost money
    #[arg(long)]
    pub(crate) interrupted: bool,
    /// Print one JSON object (without --once: one whenever there is news)
    #[arg(long)]
    pub(crate) json: bool,
}
