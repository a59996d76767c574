//! Programs of other projects that tests need: pinned in a folder of `tests`, installed from the
//! npm registry.
//!
//! A lock file contains every package and its checksum, but no address, so that any registry can be
//! used. The installation runs no script of a package.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use crate::commands::{program, root, run_silently, succeeds};

/// The file that says what was installed.
const STAMP: &str = "installed";

/// What is pinned in `tests/NAME`, and installed in `target/NAME`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pins {
    pub(crate) name: &'static str,
    pub(crate) lock: Lock,
}

/// How much a lock file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Every package: npm installs that, or nothing.
    Complete,
    /// Not those for other platforms that a registry lacks, which `npm ci` would miss.
    ThisPlatform,
}

impl Pins {
    /// Where they are pinned.
    pub(crate) fn folder(self) -> PathBuf {
        root().join("tests").join(self.name)
    }

    /// Where they are installed.
    pub(crate) fn home(self) -> PathBuf {
        root().join("target").join(self.name)
    }

    /// The files that say what is wanted.
    fn files(self) -> Result<Vec<PathBuf>> {
        let entries =
            fs::read_dir(self.folder()).with_context(|| format!("reading tests/{}", self.name))?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.sort();
        Ok(files)
    }

    /// What is pinned, unless it is installed already.
    fn wanted(self) -> Result<Option<Vec<u8>>> {
        let pins: Vec<Vec<u8>> = self.files()?.iter().map(fs::read).collect::<Result<_, _>>()?;
        // The contents are the stamp: any change of a pinned file installs again.
        let pins = pins.concat();
        let installed = fs::read(self.home().join(STAMP)).ok();
        Ok((installed.as_ref() != Some(&pins)).then_some(pins))
    }

    /// Checks that they are there, or can be fetched with npm and these other programs.
    pub(crate) fn check_machine(self, others: &[(&str, &str)]) -> Result<()> {
        if self.wanted()?.is_none() {
            return Ok(());
        }
        for (name, what) in [("npm", "Node.js with npm")].iter().chain(others) {
            if !succeeds(program(name).arg("--version")) {
                bail!(
                    "{name} is not installed: what tests/{} pins comes from registries. Install {what}, or run the other lanes by name",
                    self.name
                );
            }
        }
        Ok(())
    }

    /// Installs what is pinned, unless it is there already; `more` adds what npm does not have.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(crate) fn install(self, more: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let home = self.home();
        if let Some(pins) = self.wanted()? {
            eprintln!("    installing what tests/{} pins", self.name);
            self.download()?;
            more(&home)?;
            // Last, so that an interrupted installation is repeated.
            fs::write(home.join(STAMP), pins)?;
        }
        Ok(home)
    }

    fn download(self) -> Result<()> {
        let home = self.home();
        fs::create_dir_all(&home)?;
        for file in self.files()? {
            let copy = home.join(file.file_name().unwrap_or_default());
            fs::copy(&file, copy).with_context(|| format!("copying {}", file.display()))?;
        }
        let verb: &[&str] = match self.lock {
            Lock::Complete => &["ci"],
            Lock::ThisPlatform => INSTALL,
        };
        npm(verb, &home).with_context(|| {
            format!("could not install the packages that tests/{} pins", self.name)
        })
    }

    /// Installs the newest versions of the pinned packages, in a folder beside the pinned ones.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    pub(crate) fn install_newest(self) -> Result<PathBuf> {
        eprintln!("    installing the newest versions of what tests/{} names", self.name);
        let home = self.home().with_file_name(format!("{}-newest", self.name));
        // npm keeps an installed version as long as it satisfies the package, and every version
        // satisfies a tag.
        if home.exists() {
            fs::remove_dir_all(&home).with_context(|| format!("removing {}", home.display()))?;
        }
        fs::create_dir_all(&home)?;
        let pinned = fs::read_to_string(self.folder().join("package.json"))?;
        let mut package: Value = serde_json::from_str(&pinned)?;
        for list in ["dependencies", "optionalDependencies"] {
            for version in package[list].as_object_mut().into_iter().flat_map(Map::values_mut) {
                *version = "latest".into();
            }
        }
        fs::write(home.join("package.json"), package.to_string())?;
        npm(INSTALL, &home).context("could not install the newest packages")?;
        Ok(home)
    }
}

const INSTALL: &[&str] = &["install", "--no-save"];

/// Runs npm in a folder.
fn npm(verb: &[&str], home: &Path) -> Result<()> {
    // A script of a package could run any program on the machine of a developer.
    let flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run_silently(program("npm").args(verb).args(flags).current_dir(home))
}

/// Whether npm can be run.
pub(crate) fn has_npm() -> bool {
    succeeds(program("npm").arg("--version"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    pub(crate) type Versions = BTreeMap<String, String>;

    const ALL: [Pins; 4] =
        [crate::bench::PEERS, crate::clients::PINS, crate::mcp::PINS, crate::openclaw::PINS];

    pub(crate) fn pinned(pins: Pins, file: &str) -> Value {
        let text = fs::read_to_string(pins.folder().join(file)).expect("it is pinned");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// Returns the dependencies of a package: name and version.
    pub(crate) fn asked_for(package: &Value) -> Versions {
        let lists = [&package["dependencies"], &package["optionalDependencies"]];
        let each = lists.into_iter().filter_map(Value::as_object).flatten();
        each.map(|(name, version)| (name.clone(), word(version))).collect()
    }

    fn word(value: &Value) -> String {
        value.as_str().unwrap_or_default().to_owned()
    }

    /// A package inside another package is covered by the checksum of the outer one.
    #[test]
    fn lock_file_has_checksums_but_no_address() {
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
    fn lock_file_pins_the_requested_versions() {
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
