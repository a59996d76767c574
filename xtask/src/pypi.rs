//! Libraries of Python that tests need: pinned with their sums in a `requirements.txt`.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::commands::{program, run_silently};

/// Installs what `requirements.txt` of this folder pins, in an environment of its own: `python`.
pub(crate) fn install(home: &Path) -> Result<()> {
    let python = home.join("python");
    run_silently(program("python3").args(["-m", "venv", "--clear"]).arg(&python))
        .context("no environment could be made for Python")?;
    // `--no-deps`: everything that is needed is in the list, and anything else would have no hash.
    let flags = ["install", "--quiet", "--require-hashes", "--no-deps", "-r"];
    let pip = python.join("bin/pip");
    run_silently(program(&pip.to_string_lossy()).args(flags).arg(home.join("requirements.txt")))
        .context("the libraries of Python could not be installed")
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_python_package_has_version_and_checksums() {
        for pins in [crate::mcp::PINS, crate::bench::PEERS] {
            let text = fs::read_to_string(pins.folder().join("requirements.txt")).expect("a file");
            for requirement in text.replace("\\\n", "").lines() {
                let (name, sums) = requirement.split_once(' ').unwrap_or((requirement, ""));
                assert!(name.contains("==") && sums.contains("--hash=sha256:"), "{name}");
            }
            assert!(!text.contains("://"), "an address");
        }
    }
}
