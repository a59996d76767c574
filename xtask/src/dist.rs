//! `cargo xtask dist`: the archive that people download.
//!
//! It contains a static binary, the licence, the README, the changelog, the pages they link to and,
//! if the binary can run here, shell completions. Each archive is unpacked again, and its binary
//! must run in an empty environment, before `SHA256SUMS` names it.

mod elf;
mod platform;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::commands::{cargo, program, root, run, succeeds};
use platform::Platform;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// With a target that is named, this spares build scripts and macros.
const STATIC: &str = "-C target-feature=+crt-static";
const PAGES: [&str; 5] =
    ["LICENSE", "README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Folders that the pages link to. Only files that git knows are packed.
const FOLDERS: [&str; 2] = ["docs", "examples"];
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn dist() -> Result<()> {
    let platform = Platform::of_this_machine()?;
    let name = format!("raymond-{VERSION}-{}", platform.label());
    let output = target_folder().join("dist");
    let binary = build(platform)?;
    let folder = fill(&output.join(&name), &binary)?;
    let archive = pack(&folder)?;
    fs::remove_dir_all(&folder)?;
    // Before the archive gets a checksum: `SHA256SUMS` names only archives whose binary runs.
    verify(&archive, &name)?;
    sign(&output, &archive)?;
    let bytes = fs::metadata(&archive)?.len();
    eprintln!("==> {} ({} KiB)", archive.display(), bytes / 1024);
    Ok(())
}

/// Where cargo builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds the binary, which links nothing at run time.
fn build(platform: Platform) -> Result<PathBuf> {
    // Apart from other builds, whose flags differ, and from the archives.
    let folder = target_folder().join("dist-build");
    let triple = platform.triple();
    let words = ["build", "--locked", "--profile", "dist", "-p", "raymond", "--target", &triple];
    let mut build = cargo(&words);
    build.arg("--target-dir").arg(&folder);
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    run(build.env("RUSTFLAGS", format!("{flags} {STATIC}").trim()))?;
    let binary = folder.join(triple).join("dist/raymond");
    // The linker may ignore the flag silently, so the result is checked.
    match elf::loader(&fs::read(&binary)?)? {
        None => Ok(binary),
        Some(loader) => bail!("{} is not static: it needs {loader}", binary.display()),
    }
}

/// A new folder with everything that is packed.
fn fill(folder: &Path, binary: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    fs::copy(binary, folder.join("raymond"))?;
    let listed = program("git").args(["ls-files", "-z"]).args(FOLDERS).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    // In a source archive without git the list would be empty, and the archive would lack its
    // pages.
    if listed.is_empty() {
        bail!("git lists no file in {}", FOLDERS.join(" and "));
    }
    for file in PAGES.into_iter().chain(listed.split_terminator('\0')) {
        let to = folder.join(file);
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        fs::copy(root().join(file), to).with_context(|| format!("copying {file}"))?;
    }
    for shell in SHELLS {
        if let Some(script) = completions(binary, shell)? {
            let completions = folder.join("completions");
            fs::create_dir_all(&completions)?;
            fs::write(completions.join(format!("raymond.{shell}")), script)?;
        }
    }
    Ok(folder.to_owned())
}

/// The script for a shell, where the binary can write one.
fn completions(binary: &Path, shell: &str) -> Result<Option<Vec<u8>>> {
    let path = binary.to_str().context("the path of the binary is not UTF-8")?;
    let mut command = program(path);
    // Called by a path, it would write a script that calls that path.
    let written = command.arg0("raymond").args(["completions", shell]).output()?;
    if String::from_utf8_lossy(&written.stdout).contains(path) {
        bail!("the completions for {shell} call {path}");
    }
    Ok(written.status.success().then_some(written.stdout))
}

/// Packs a folder. The same files give the same archive: names are sorted, and all times are the
/// time of the commit.
fn pack(folder: &Path) -> Result<PathBuf> {
    let dated = program("git").args(["log", "-1", "--format=%ct"]).output()?;
    let time = String::from_utf8_lossy(&dated.stdout).trim().to_owned();
    let time = if time.is_empty() { "0".to_owned() } else { time };
    let archive = folder.with_file_name(format!("{}.tar.gz", name(folder)));
    let mut tar = program("tar");
    // Everything that differs between two machines is fixed: order, owner, umask and times.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{time}")).args(["-I", "gzip -n -9", "-cf"]).arg(&archive);
    run(tar.arg("-C").arg(folder.parent().unwrap_or(folder)).arg(name(folder)))?;
    Ok(archive)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Unpacks the archive and takes the binary for a tour, with nothing in its environment but `PATH`.
fn verify(archive: &Path, name: &str) -> Result<()> {
    let folder = archive.with_file_name("verify");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    run(program("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
    let binary = folder.join(name).join("raymond");
    let binary = binary.to_str().context("the path of the binary is not UTF-8")?;
    let clean = || {
        let mut command = program(binary);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(&folder);
        command
    };
    run(clean().arg("--version"))?;
    if !succeeds(clean().arg("demo")) {
        bail!("{binary} demo fails");
    }
    Ok(fs::remove_dir_all(&folder)?)
}

/// Names the archive in `SHA256SUMS`, beside those that were made before it.
fn sign(output: &Path, archive: &Path) -> Result<()> {
    let sums = output.join("SHA256SUMS");
    let summed = program("sha256sum").current_dir(output).arg(name(archive)).output()?;
    let line = String::from_utf8(summed.stdout)?;
    if !summed.status.success() {
        bail!("sha256sum {} failed", archive.display());
    }
    let before = fs::read_to_string(&sums).unwrap_or_default();
    // A second build of the same version replaces its line.
    let others = before.lines().filter(|line| !line.ends_with(&name(archive)));
    let mut lines: Vec<&str> = others.chain(line.lines()).collect();
    lines.sort_by_key(|line| line.split_whitespace().last());
    fs::write(&sums, format!("{}\n", lines.join("\n")))?;
    run(program("sha256sum").current_dir(output).args(["--check", "--quiet", "SHA256SUMS"]))
}
