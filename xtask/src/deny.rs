//! Checks the dependencies: `deny.toml` lists the allowed crates, licences and sources.
//!
//! Known vulnerabilities are searched for if their database can be reached. Otherwise a line says
//! so, and the check does not fail, because nothing in this repository has changed.

use anyhow::Result;

use crate::commands::{program, run, succeeds};
use crate::tools;

const VERSION: &str = "0.20.2";

/// How long the database of holes may take to arrive, in seconds.
const PATIENCE: &str = "60";

/// Checks every dependency.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn deny() -> Result<()> {
    let tool = tools::install("cargo-deny", VERSION)?;
    let quiet = ["--log-level", "error"];
    let ours = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    // Without advisories, which need the network: these checks must also work offline.
    run(program(&tool).args(quiet).args(ours))?;
    let mut fetch = program("timeout");
    fetch.args([PATIENCE, &tool]).args(quiet).args(["fetch", "db"]);
    // Git would ask for a password on the terminal and wait for the answer.
    if !succeeds(fetch.env("GIT_TERMINAL_PROMPT", "0")) {
        eprintln!("    advisories: not checked, because their database cannot be fetched");
        return Ok(());
    }
    run(program(&tool).args(quiet).args(["check", "--disable-fetch", "advisories"]))
}
