//! Tools of cargo that are installed once, in the versions that are pinned where they are used.

use anyhow::{Context as _, Result};

use crate::commands::{cargo, program, root, run_silently};

/// A tool in its pinned version: the one on `PATH`, or the one that is kept under `target/tools`.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn install(name: &str, version: &str) -> Result<String> {
    let home = root().join("target/tools");
    let kept = home.join("bin").join(name).to_string_lossy().into_owned();
    if let Some(tool) = [name, &kept].into_iter().find(|tool| is_pinned(tool, name, version)) {
        return Ok(tool.to_owned());
    }
    eprintln!("    installing {name} {version}: this takes some minutes, once");
    // Not optimised: that would take longer than all it has to do.
    let mut install =
        cargo(&["install", "--quiet", "--locked", "--debug", name, "--version", version]);
    // It is built in a directory that goes away.
    install.arg("--root").arg(&home).env_remove("CARGO_TARGET_DIR");
    run_silently(&mut install).with_context(|| format!("{name} could not be installed"))?;
    Ok(kept)
}

fn is_pinned(tool: &str, name: &str, version: &str) -> bool {
    // As cargo calls it: with its own name first.
    let word = name.trim_start_matches("cargo-");
    let said = program(tool).args([word, "--version"]).output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(version))
}
