//! The MCP clients of the tests: pinned in `tests/mcp`, installed from the registries of npm and of
//! Python.
//!
//! They are installed below the build directory. The Node.js that they need comes with them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::npm::{Lock, Pins};
use crate::pypi;

pub(crate) const PINS: Pins = Pins { name: "mcp", lock: Lock::ThisPlatform };

/// Checks that the clients are there, or can be fetched.
pub(crate) fn check_machine() -> Result<()> {
    PINS.check_machine(&[("python3", "Python 3.10 or later, with venv")])
}

/// Installs what is pinned, unless it is there already.
pub(crate) fn install() -> Result<PathBuf> {
    PINS.install(|home| {
        link_node(home)?;
        pypi::install(home)
    })
}

/// `bin/node`, leading to the Node.js that runs the others.
fn link_node(home: &Path) -> Result<()> {
    let packages = fs::read_dir(home.join("node_modules"))?.flatten().map(|entry| entry.path());
    let is_node = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node-"))
            && path.join("bin/node").exists()
    };
    let Some(node) = packages.filter(is_node).max() else {
        bail!("Node.js has no package for this platform: see tests/mcp/package.json");
    };
    fs::create_dir_all(home.join("bin"))?;
    // `symlink` refuses an existing name, and an earlier link may lead to another version.
    fs::remove_file(home.join("bin/node")).ok();
    Ok(symlink(node.join("bin/node"), home.join("bin/node"))?)
}
