//! Where the real clients are, and which ones are meant.

use std::env;
use std::path::{Path, PathBuf};

/// What `claude --version` prints.
pub(crate) const CLAUDE_VERSION: &str = "2.1.325 (Claude Code)";

pub(crate) fn claude() -> PathBuf {
    installed("@anthropic-ai/claude-code-linux-x64/claude")
}

/// A program below `node_modules`.
fn installed(program: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = env::var_os("RAYMOND_TEST_CLIENTS")
        .map_or_else(|| workspace.join("target/clients"), PathBuf::from);
    let path = place.join("node_modules").join(program);
    assert!(path.exists(), "{} is missing; install with cargo xtask test real", path.display());
    path.canonicalize().unwrap()
}
