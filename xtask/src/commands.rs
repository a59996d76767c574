//! The one place of this task runner that starts programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The top of the checkout.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A program, to be run at the top of the checkout.
#[expect(clippy::disallowed_methods, reason = "the task runner is not part of the product")]
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    // No stdin: a program that asks a question must fail instead of waiting for an answer.
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    // Cargo sets this variable to its own path, so that the toolchain stays the same.
    let mut command = program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(arguments);
    command
}

/// Lets cargo build another copy of the workspace in a folder of its own. Mutants and deliberate
/// bugs share it, so that dependencies are compiled once, and without line tables.
pub(crate) fn in_scratch_build(command: &mut Command) {
    command.env("CARGO_TARGET_DIR", root().join("target/scratch"));
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
}

/// A program that cargo has built, in the folder of a profile.
pub(crate) fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    // `join` with an absolute path replaces the root, so both kinds of `CARGO_TARGET_DIR` work.
    let program = root().join(target).join(profile).join(name);
    program.canonicalize().with_context(|| format!("looking for {}", program.display()))
}

/// Runs it, and fails when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("could not start {shown}"))?;
    if !status.success() {
        bail!("{shown} failed: {status}");
    }
    Ok(())
}

/// A number that differs from commit to commit, so that everything has its turn.
pub(crate) fn commits() -> Result<usize> {
    let output = program("git").args(["rev-list", "--count", "HEAD"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0))
}

/// Whether it runs and succeeds, silently.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs it silently, and fails with all it printed when it fails.
pub(crate) fn run_silently(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("could not start {shown}"))?;
    if !output.status.success() {
        let printed = [output.stdout, output.stderr].concat();
        bail!("{}\n{shown} failed: {}", String::from_utf8_lossy(&printed), output.status);
    }
    Ok(())
}
