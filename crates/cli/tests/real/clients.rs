//! The paths and the versions of the real clients.

use std::env;
use std::path::{Path, PathBuf};

/// The output of `claude --version`.
pub(crate) const CLAUDE_VERSION: &str = "2.1.325 (Claude Code)";

/// The output of `codex --version`.
pub(crate) const CODEX_VERSION: &str = "codex-cli 0.166.0";

pub(crate) fn claude() -> PathBuf {
    installed("claude")
}

pub(crate) fn codex() -> PathBuf {
    installed("codex")
}

/// A client, as `cargo xtask test real` installs it.
pub(crate) fn installed(client: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = env::var_os("RAYMOND_TEST_CLIENTS")
        .map_or_else(|| workspace.join("target/clients"), PathBuf::from);
    let path = place.join("bin").join(client);
    assert!(path.exists(), "{} is missing; install with cargo xtask test real", path.display());
    path.canonicalize().unwrap()
}
