//! What may be depended on: `deny.toml` says which crates, licences and sources.
//!
//! The tool is installed under the build directory once, in the version that is pinned here. Known
//! holes of dependencies are looked for where their database can be reached; where it cannot, that is
//! said, and is no failure: nothing of ours has changed.

use anyhow::{Context as _, Result};

use crate::commands::{cargo, program, root, run, run_silently, succeeds};

const VERSION: &str = "0.20.2";

/// How long the database of holes may take to arrive, in seconds.
const PATIENCE: &str = "60";

/// Checks every dependency.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn deny() -> Result<()> {
    let tool = install()?;
    let quiet = ["--log-level", "error"];
    let ours = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    run(program(&tool).args(quiet).args(ours))?;
    let mut fetch = program("timeout");
    fetch.args([PATIENCE, &tool]).args(quiet).args(["fetch", "db"]);
    if !succeeds(fetch.env("GIT_TERMINAL_PROMPT", "0")) {
        eprintln!("    advisories: not checked, because their database cannot be fetched");
        return Ok(());
    }
    run(program(&tool).args(quiet).args(["check", "--disable-fetch", "advisories"]))
}

/// The tool in the pinned version: the one on `PATH`, or the one that is kept under `target/tools`.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn install() -> Result<String> {
    let home = root().join("target/tools");
    let kept = home.join("bin/cargo-deny").to_string_lossy().into_owned();
    if let Some(tool) = ["cargo-deny", &kept].into_iter().find(|tool| is_pinned(tool)) {
        return Ok(tool.to_owned());
    }
    eprintln!("    installing cargo-deny {VERSION}: this takes some minutes, once");
    let mut install =
        cargo(&["install", "--quiet", "--locked", "cargo-deny", "--version", VERSION]);
    // It is built in a directory that goes away.
    install.arg("--root").arg(&home).env_remove("CARGO_TARGET_DIR");
    run_silently(&mut install).context("cargo-deny could not be installed")?;
    Ok(kept)
}

fn is_pinned(tool: &str) -> bool {
    let said = program(tool).arg("--version").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(VERSION))
}
