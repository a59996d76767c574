//! Programs of others that tests need: pinned in a folder of `tests`, installed from the npm registry.
//!
//! A lock file names every package and its sum, and no address: whatever registry the machine uses
//! will do. Nothing that a package brings is run by the installation.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::commands::{program, root, run_silently, succeeds};

/// The file that says what was installed.
const STAMP: &str = "installed";

/// What is pinned in `tests/NAME`, and installed in `target/NAME`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pins(pub(crate) &'static str);

impl Pins {
    /// Where they are pinned.
    fn folder(self) -> PathBuf {
        root().join("tests").join(self.0)
    }

    /// Where they are installed.
    pub(crate) fn home(self) -> PathBuf {
        root().join("target").join(self.0)
    }

    /// What is pinned, unless it is installed already.
    fn wanted(self) -> Result<Option<Vec<u8>>> {
        let lock = fs::read(self.folder().join("package-lock.json"))
            .with_context(|| format!("reading tests/{}", self.0))?;
        let installed = fs::read(self.home().join(STAMP)).ok();
        Ok((installed.as_ref() != Some(&lock)).then_some(lock))
    }

    /// Checks that they are there, or can be fetched.
    pub(crate) fn check_machine(self) -> Result<()> {
        if self.wanted()?.is_some() && !has_npm() {
            bail!(
                "npm is not installed: what tests/{} pins comes from its registry. Install Node.js with npm, or run the other lanes by name",
                self.0
            );
        }
        Ok(())
    }

    /// Installs what is pinned, unless it is there already.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(crate) fn install(self) -> Result<PathBuf> {
        let home = self.home();
        if let Some(lock) = self.wanted()? {
            eprintln!("    installing what tests/{} pins", self.0);
            self.download()?;
            fs::write(home.join(STAMP), lock)?;
        }
        Ok(home)
    }

    fn download(self) -> Result<()> {
        let (folder, home) = (self.folder(), self.home());
        fs::create_dir_all(&home)?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(folder.join(file), home.join(file))
                .with_context(|| format!("copying {file}"))?;
        }
        let flags = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        run_silently(program("npm").args(flags).current_dir(home))
            .with_context(|| format!("what tests/{} pins could not be installed", self.0))
    }
}

/// Whether npm can be run.
pub(crate) fn has_npm() -> bool {
    succeeds(program("npm").arg("--version"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    pub(crate) type Versions = BTreeMap<String, String>;

    const ALL: [Pins; 2] = [Pins("clients"), Pins("openclaw")];

    pub(crate) fn pinned(pins: Pins, file: &str) -> Value {
        let text = fs::read_to_string(pins.folder().join(file)).expect("it is pinned");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// What a package asks for: name and version.
    pub(crate) fn asked_for(package: &Value) -> Versions {
        let lists = [&package["dependencies"], &package["optionalDependencies"]];
        let each = lists.into_iter().filter_map(Value::as_object).flatten();
        each.map(|(name, version)| (name.clone(), word(version))).collect()
    }

    fn word(value: &Value) -> String {
        value.as_str().unwrap_or_default().to_owned()
    }

    /// A package that lies within another one is covered by the sum of that one.
    #[test]
    fn a_lock_file_holds_no_address_and_every_sum() {
        for pins in ALL {
            let lock = pinned(pins, "package-lock.json");
            let packages = lock["packages"].as_object().expect("packages");
            for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
                assert_eq!(package.get("resolved"), None, "{path} has a download address");
                let summed = word(&package["integrity"]).starts_with("sha512-");
                assert!(summed || package["inBundle"] == true, "{path} has no sum");
            }
            assert!(!lock.to_string().contains("://"), "{lock:#}");
        }
    }

    #[test]
    fn a_lock_file_pins_exactly_what_is_asked_for() {
        for pins in ALL {
            let (package, lock) = (pinned(pins, "package.json"), pinned(pins, "package-lock.json"));
            let asked = asked_for(&package);
            assert_eq!(asked_for(&lock["packages"][""]), asked);
            let locked = |name: &String| {
                let version = &lock["packages"][format!("node_modules/{name}")]["version"];
                (name.clone(), word(version))
            };
            assert_eq!(asked.keys().map(locked).collect::<Versions>(), asked);
        }
    }
}
