//! The real agent clients: pinned in `tests/clients`, installed from the npm registry.
//!
//! They lie under the build directory, and `bin/` names each by its own word, wherever its package
//! keeps it. They are asked for their versions once, away from anybody's configuration.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::commands::{program, root, run_silently, succeeds};

/// A client, and where its package keeps it: `*` is the name of a platform.
struct Pinned {
    name: &'static str,
    version: &'static str,
    path: [&'static str; 2],
}

/// The file that says what was installed.
const STAMP: &str = "installed";

const CLIENTS: [Pinned; 2] = [
    Pinned { name: "claude", version: "2.1.325", path: ["@anthropic-ai/claude-code-*", "claude"] },
    Pinned { name: "codex", version: "0.166.0", path: ["@openai/codex-*/vendor/*", "bin/codex"] },
];

/// Where the clients are pinned, and where they are installed.
fn places() -> (PathBuf, PathBuf) {
    (root().join("tests/clients"), root().join("target/clients"))
}

/// What is pinned, unless it is installed already.
fn wanted() -> Result<Option<Vec<u8>>> {
    let (pins, home) = places();
    let lock = fs::read(pins.join("package-lock.json")).context("reading tests/clients")?;
    let installed = fs::read(home.join(STAMP)).ok();
    Ok((installed.as_ref() != Some(&lock)).then_some(lock))
}

/// Checks that the clients are there, or can be fetched.
pub(crate) fn check_machine() -> Result<()> {
    if wanted()?.is_some() && !succeeds(program("npm").arg("--version")) {
        bail!(
            "npm is not installed: the real clients come from its registry. Install Node.js with npm, or run the other lanes by name"
        );
    }
    Ok(())
}

/// Installs what is pinned, unless it is there already, and says which versions answer.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn install() -> Result<PathBuf> {
    let (pins, home) = places();
    if let Some(lock) = wanted()? {
        eprintln!("    installing the clients of tests/clients");
        download(&pins, &home)?;
        fs::write(home.join(STAMP), lock)?;
    }
    for client in &CLIENTS {
        let link = linked(client, &home)?;
        eprintln!("    {}", answering(client, &link, &home)?);
    }
    Ok(home)
}

fn download(pins: &Path, home: &Path) -> Result<()> {
    fs::create_dir_all(home)?;
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        fs::copy(pins.join(file), home.join(file)).with_context(|| format!("copying {file}"))?;
    }
    let flags = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run_silently(program("npm").args(flags).current_dir(home))
        .context("the real clients could not be installed")
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

/// What the client says of itself, which must be what is pinned.
fn answering(client: &Pinned, path: &Path, home: &Path) -> Result<String> {
    let private = home.join("home");
    fs::create_dir_all(&private)?;
    let mut asked = program(&path.to_string_lossy());
    asked.arg("--version").env_clear().env("HOME", &private);
    let output = asked.output().with_context(|| format!("running {}", path.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !said.split_whitespace().any(|word| word == client.version) {
        bail!("{} should be {} but says {said:?}", path.display(), client.version);
    }
    Ok(format!("{}: {said}", client.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    type Versions = BTreeMap<String, String>;

    fn pinned(file: &str) -> Value {
        let text = fs::read_to_string(places().0.join(file)).expect("it is pinned");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// What a package asks for: name and version.
    fn asked_for(package: &Value) -> Versions {
        let lists = [&package["dependencies"], &package["optionalDependencies"]];
        let each = lists.into_iter().filter_map(Value::as_object).flatten();
        each.map(|(name, version)| (name.clone(), word(version))).collect()
    }

    fn word(value: &Value) -> String {
        value.as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_lock_file_holds_no_address_and_every_sum() {
        let lock = pinned("package-lock.json");
        let packages = lock["packages"].as_object().expect("packages");
        for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
            assert_eq!(package.get("resolved"), None, "{path} has a download address");
            assert!(word(&package["integrity"]).starts_with("sha512-"), "{path} has no sum");
        }
        assert!(!lock.to_string().contains("://"), "{lock:#}");
    }

    #[test]
    fn the_lock_file_pins_exactly_what_is_asked_for() {
        let (package, lock) = (pinned("package.json"), pinned("package-lock.json"));
        let asked = asked_for(&package);
        assert_eq!(asked_for(&lock["packages"][""]), asked);
        let locked = |name: &String| {
            let version = &lock["packages"][format!("node_modules/{name}")]["version"];
            (name.clone(), word(version))
        };
        assert_eq!(asked.keys().map(locked).collect::<Versions>(), asked);
    }

    #[test]
    fn the_versions_that_are_checked_are_those_that_are_pinned() {
        for (name, version) in asked_for(&pinned("package.json")) {
            let client = CLIENTS.iter().find(|client| name.contains(client.name));
            assert_eq!(client.map(|client| client.version), Some(version.as_str()), "{name}");
        }
    }
}
