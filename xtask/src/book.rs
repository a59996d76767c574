//! The documentation as pages for a browser.
//!
//! mdBook is taken from `PATH`; when it is not there, it is installed below `target/tools`, once,
//! without the features that watch and serve. Whether pages say the truth is a matter of the tests,
//! not of this.

use std::path::PathBuf;

use anyhow::Result;

use crate::commands::{cargo, program, root, run, succeeds};

/// The version that is installed; any other on `PATH` will do.
const VERSION: &str = "0.5.4";

/// Builds the book in `target/book`.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn book() -> Result<()> {
    let mdbook = mdbook()?;
    run(program(&mdbook).arg("build"))?;
    eprintln!("the book is in target/book/index.html");
    Ok(())
}

/// The command of mdBook, which exists afterwards.
fn mdbook() -> Result<String> {
    let ours = tools().join("bin/mdbook").display().to_string();
    for known in ["mdbook", &ours] {
        if succeeds(program(known).arg("--version")) {
            return Ok(known.to_owned());
        }
    }
    let what = ["install", "mdbook", "--version", VERSION, "--locked"];
    // Only building is needed: the features that watch and serve would make the installation
    // longer.
    let features = ["--no-default-features", "--features", "search"];
    run(cargo(&what).args(features).arg("--root").arg(tools()))?;
    Ok(ours)
}

fn tools() -> PathBuf {
    root().join("target/tools")
}
