//! The real agent clients: pinned in `tests/clients`, installed from the npm registry.
//!
//! They are installed below the build directory, and `bin/` has a link to each of them. Each client
//! prints its version once, without the configuration of the user; `versions/` keeps that for the
//! tests. The newest published clients are installed beside the pinned ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::commands::program;
use crate::npm::{self, Lock, Pins};

/// The versions of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Versions {
    Pinned,
    /// Those that the registry has as the newest.
    Newest,
}

/// A client, and where its package keeps it: `*` is the name of a platform.
struct Pinned {
    name: &'static str,
    version: &'static str,
    path: [&'static str; 2],
}

pub(crate) const PINS: Pins = Pins { name: "clients", lock: Lock::Complete };

const CLIENTS: [Pinned; 2] = [
    Pinned { name: "claude", version: "2.1.325", path: ["@anthropic-ai/claude-code-*", "claude"] },
    Pinned { name: "codex", version: "0.166.0", path: ["@openai/codex-*/vendor/*", "bin/codex"] },
];

/// Checks that the clients are there, or can be fetched.
pub(crate) fn check_machine() -> Result<()> {
    PINS.check_machine(&[])
}

/// Checks that the newest clients can be fetched.
pub(crate) fn check_machine_for_newest() -> Result<()> {
    if !npm::has_npm() {
        bail!("npm is not installed: it fetches the newest clients");
    }
    Ok(())
}

/// Installs the clients, and prints which versions answer.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn install(versions: Versions) -> Result<PathBuf> {
    let home = match versions {
        Versions::Pinned => PINS.install(|_| Ok(()))?,
        Versions::Newest => PINS.install_newest()?,
    };
    fs::create_dir_all(home.join("versions"))?;
    for client in &CLIENTS {
        let link = linked(client, &home)?;
        let printed = printed_version(&link, &home)?;
        // The constant above and the lock file must name the same version.
        let is_pinned = printed.split_whitespace().any(|word| word == client.version);
        if versions == Versions::Pinned && !is_pinned {
            bail!("{} should be {} but says {printed:?}", link.display(), client.version);
        }
        fs::write(home.join("versions").join(client.name), &printed)?;
        eprintln!("    {}: {printed}", client.name);
    }
    Ok(home)
}

/// `bin/NAME`, leading to the client.
fn linked(client: &Pinned, home: &Path) -> Result<PathBuf> {
    let [folders, file] = client.path;
    let mut found = vec![home.join("node_modules")];
    for part in folders.split('/') {
        found = found.iter().flat_map(|folder| matching(folder, part)).collect();
    }
    let there = found.into_iter().map(|folder| folder.join(file)).find(|file| file.exists());
    let Some(there) = there else {
        bail!("{} has no package for this platform: see tests/clients/package.json", client.name);
    };
    let link = home.join("bin").join(client.name);
    fs::create_dir_all(home.join("bin"))?;
    if fs::read_link(&link).ok().as_ref() != Some(&there) {
        fs::remove_file(&link).ok();
        symlink(there, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(link)
}

/// The folders of that name; a `*` at the end stands for anything.
fn matching(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Some(beginning) = name.strip_suffix('*') else {
        return vec![folder.join(name)];
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = entries.filter(|e| e.file_name().to_string_lossy().starts_with(beginning));
    fits.map(|entry| entry.path()).collect()
}

/// Returns the version that the client prints.
fn printed_version(path: &Path, home: &Path) -> Result<String> {
    let private = home.join("home");
    fs::create_dir_all(&private)?;
    let mut asked = program(&path.to_string_lossy());
    // A private home, so that the client neither reads nor changes the configuration of the user.
    asked.arg("--version").env_clear().env("HOME", &private);
    let output = asked.output().with_context(|| format!("running {}", path.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npm::tests::{asked_for, pinned};

    #[test]
    fn checked_versions_are_the_pinned_ones() {
        for (name, version) in asked_for(&pinned(PINS, "package.json")) {
            let client = CLIENTS.iter().find(|client| name.contains(client.name));
            assert_eq!(client.map(|client| client.version), Some(version.as_str()), "{name}");
        }
    }
}
