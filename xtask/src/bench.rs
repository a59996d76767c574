//! The benchmark: what a transition takes, beside the least that would do.

use anyhow::{Context as _, Result};

use crate::commands::{built, cargo, program, run};
use crate::npm::{Lock, Pins};
use crate::pypi;

/// The other tools of the comparison.
pub(crate) const PEERS: Pins = Pins { name: "peers", lock: Lock::Complete };

/// Builds what is compared, and compares it.
pub(crate) fn bench(words: &[&str]) -> Result<()> {
    let packages = ["raymond", "raymond-floor", "raymond-bench"];
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    // One build for all: the programs must come from the same commit and the same profile.
    run(cargo(&["build", "--profile", "dist"]).args(packages))?;
    let bench = built("dist", "bench")?;
    let programs = bench.parent().context("a program is in a folder")?;
    let mut bench = program(&bench.to_string_lossy());
    bench.arg(programs);
    for (number, word) in words.iter().enumerate() {
        // The program runs in another directory, so relative paths are made absolute.
        match number.checked_sub(1).map(|before| words[before]) {
            Some("--json") => bench.arg(std::path::absolute(word)?),
            _ => bench.arg(word),
        };
        if *word == "--peers" {
            PEERS.check_machine(&[
                ("python3", "Python 3.10 or later, with venv"),
                ("node", "Node.js"),
            ])?;
            bench.arg(PEERS.install(pypi::install)?);
        }
    }
    run(&mut bench)
}
