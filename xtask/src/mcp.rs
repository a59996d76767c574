//! The MCP clients of the tests: pinned in `tests/mcp`, installed from the registries of npm and of Python.
//!
//! They lie under the build directory. The Node.js that they need comes with them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::commands::{program, root, run_silently, succeeds};

/// What says what is wanted.
const PINS: [&str; 4] = ["package.json", "package-lock.json", ".npmrc", "requirements.txt"];
/// The file that says what was installed.
const STAMP: &str = "installed";

/// Where the clients are pinned, and where they are installed.
fn places() -> (PathBuf, PathBuf) {
    (root().join("tests/mcp"), root().join("target/mcp-clients"))
}

/// What is pinned, unless it is installed already.
fn wanted() -> Result<Option<String>> {
    let (pins, home) = places();
    let read = |file: &&str| fs::read_to_string(pins.join(file));
    let all: Vec<String> = PINS.iter().map(read).collect::<Result<_, _>>().context("tests/mcp")?;
    let all = all.concat();
    let installed = fs::read_to_string(home.join(STAMP)).ok();
    Ok((installed.as_ref() != Some(&all)).then_some(all))
}

/// Checks that the clients are there, or can be fetched.
pub(crate) fn check_machine() -> Result<()> {
    if wanted()?.is_none() {
        return Ok(());
    }
    for (name, what) in
        [("npm", "Node.js with npm"), ("python3", "Python 3.10 or later, with venv")]
    {
        if !succeeds(program(name).arg("--version")) {
            bail!(
                "{name} is not installed: the MCP clients come from registries. Install {what}, or run the other lanes by name"
            );
        }
    }
    Ok(())
}

/// Installs what is pinned, unless it is there already.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn install() -> Result<PathBuf> {
    let (pins, home) = places();
    if let Some(all) = wanted()? {
        eprintln!("    installing the clients of tests/mcp");
        fs::create_dir_all(&home)?;
        for file in PINS {
            fs::copy(pins.join(file), home.join(file))
                .with_context(|| format!("copying {file}"))?;
        }
        from_npm(&home)?;
        from_pypi(&home)?;
        fs::write(home.join(STAMP), all)?;
    }
    Ok(home)
}

/// The Inspector, the conformance suite, and the Node.js that runs them.
fn from_npm(home: &Path) -> Result<()> {
    // Not `ci`: it refuses a lock file without packages for other platforms that a registry lacks.
    let flags = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    run_silently(program("npm").args(flags).arg("--loglevel=error").current_dir(home))
        .context("the Inspector and the conformance suite could not be installed")?;
    let packages = fs::read_dir(home.join("node_modules"))?.flatten().map(|entry| entry.path());
    let is_node = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node-"))
            && path.join("bin/node").exists()
    };
    let Some(node) = packages.filter(is_node).max() else {
        bail!("Node.js has no package for this platform: see tests/mcp/package.json");
    };
    fs::create_dir_all(home.join("bin"))?;
    fs::remove_file(home.join("bin/node")).ok();
    Ok(symlink(node.join("bin/node"), home.join("bin/node"))?)
}

/// The library of Python, in an environment of its own.
fn from_pypi(home: &Path) -> Result<()> {
    let python = home.join("python");
    run_silently(program("python3").args(["-m", "venv", "--clear"]).arg(&python))
        .context("no environment could be made for Python")?;
    let flags = ["install", "--quiet", "--require-hashes", "--no-deps", "-r"];
    let pip = python.join("bin/pip");
    run_silently(program(&pip.to_string_lossy()).args(flags).arg(home.join("requirements.txt")))
        .context("the Python library `mcp` could not be installed")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pinned(file: &str) -> String {
        fs::read_to_string(places().0.join(file)).expect("it is pinned")
    }

    #[test]
    fn the_lock_file_holds_no_address_and_every_sum() {
        let lock: Value = serde_json::from_str(&pinned("package-lock.json")).expect("it is JSON");
        let packages = lock["packages"].as_object().expect("packages");
        for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
            let sum = package["integrity"].as_str().unwrap_or_default();
            assert!(sum.starts_with("sha512-"), "{path} has no sum");
        }
        assert!(!lock.to_string().contains("://"), "the lock file has an address");
        let asked: Value = serde_json::from_str(&pinned("package.json")).expect("it is JSON");
        for kind in ["dependencies", "optionalDependencies"] {
            assert_eq!(lock["packages"][""][kind], asked[kind]);
        }
    }

    #[test]
    fn every_package_of_python_has_its_version_and_its_sums() {
        let text = pinned("requirements.txt");
        for requirement in text.replace("\\\n", "").lines() {
            let (name, sums) = requirement.split_once(' ').unwrap_or((requirement, ""));
            assert!(name.contains("==") && sums.contains("--hash=sha256:"), "{name}");
        }
        assert!(!text.contains("://"), "an address");
    }
}
