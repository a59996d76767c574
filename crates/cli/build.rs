//! Writes two facts into the binary: the examples that it ships, and the commit it was built from.

#[path = "build/commit.rs"]
mod commit;
#[path = "build/examples.rs"]
mod examples;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let top = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let examples = examples::source(&top.join("examples"))?;
    fs::write(Path::new(&variable("OUT_DIR")?).join("examples.rs"), examples)?;

    let version = variable("CARGO_PKG_VERSION")?;
    let sources = sources(&top)?;
    let version = match commit::of(&top, &sources) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=BUILT_FROM={version}");
    let (target, profile) = (variable("TARGET")?, variable("PROFILE")?);
    println!("cargo::rustc-env=BUILT_FOR={target}, {profile}");

    for path in sources.into_iter().chain(commit::signs(&top)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(())
}

/// Returns the sources of the binary. Tests are left out, so that editing one does not rebuild it.
fn sources(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut sources = ["Cargo.toml", "Cargo.lock", "examples"].map(|name| top.join(name)).to_vec();
    for folder in fs::read_dir(top.join("crates"))? {
        let folder = folder?.path();
        // The binary does not contain the testkit.
        if !folder.ends_with("testkit") {
            let parts = ["Cargo.toml", "src", "build.rs", "build"].map(|part| folder.join(part));
            sources.extend(parts.into_iter().filter(|path| path.exists()));
        }
    }
    sources.sort();
    Ok(sources)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
