//! The paths and the versions of the real clients.

use std::path::{Path, PathBuf};
use std::{env, fs};

pub(crate) fn claude() -> PathBuf {
    installed("claude")
}

pub(crate) fn codex() -> PathBuf {
    installed("codex")
}

/// Returns the output of `CLIENT --version`, as `cargo xtask test real` found it.
pub(crate) fn printed_version(client: &str) -> String {
    let path = home().join("versions").join(client);
    let printed = fs::read_to_string(&path);
    printed.unwrap_or_else(|error| panic!("{}: {error}; {INSTALL}", path.display()))
}

/// Returns the number in this output.
pub(crate) fn version(client: &str) -> String {
    let printed = printed_version(client);
    let mut words = printed.split(' ');
    words.find(|word| word.starts_with(char::is_numeric)).unwrap().to_owned()
}

/// A client, as `cargo xtask test real` installs it.
pub(crate) fn installed(client: &str) -> PathBuf {
    let path = home().join("bin").join(client);
    assert!(path.exists(), "{} is missing; {INSTALL}", path.display());
    path.canonicalize().unwrap()
}

const INSTALL: &str = "install with cargo xtask test real";

fn home() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("RAYMOND_TEST_CLIENTS")
        .map_or_else(|| workspace.join("target/clients"), PathBuf::from)
}
