//! What a transition costs, as live agents grow.

use anyhow::Result;

use crate::commands::{cargo, run};

/// Builds the release binary and lets the measuring test print its table.
pub(crate) fn measure() -> Result<()> {
    run(&mut cargo(&["build", "--release", "-p", "raymond"]))?;
    let test = ["test", "--release", "-p", "raymond", "--test", "scale", "--"];
    run(cargo(&test).args(["--ignored", "--nocapture", "--skip", "load::"]))
}
