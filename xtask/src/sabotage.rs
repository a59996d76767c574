//! Deliberate bugs: each patch is applied in a scratch tree, and the tests must fail there.
//!
//! A patch begins with a line `# caught by: ARGUMENTS`, the arguments of the `cargo test` that
//! catches it soonest: the whole suite would catch it too, later.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::commands::{
    cargo, commits, in_scratch_build, program, root, run, run_silently, succeeds,
};

/// One deliberate bug.
struct Sabotage {
    name: String,
    patch: PathBuf,
    caught_by: Vec<String>,
}

/// Applies each wanted patch, all of them when none is named. Whichever is wanted, all must still
/// apply.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn sabotage(wanted: &[&str]) -> Result<()> {
    let scratch = scratch_tree()?;
    let mut survivors = Vec::new();
    let all = all()?;
    reset(&scratch)?;
    for patch in &all {
        run(apply(patch, &scratch).arg("--check"))
            .with_context(|| format!("{} no longer applies", patch.name))?;
    }
    let patches = chosen(all, wanted)?;
    // Before the first patch: tests that fail anyway would count every bug as caught.
    check_unharmed(&patches, &scratch)?;
    for patch in &patches {
        reset(&scratch)?;
        let caught = caught(patch, &scratch)?;
        eprintln!("{} {}", if caught { "caught  " } else { "MISSED  " }, patch.name);
        if !caught {
            survivors.push(patch.name.clone());
        }
    }
    reset(&scratch)?;
    if !survivors.is_empty() {
        bail!("no test noticed: {}", survivors.join(", "));
    }
    eprintln!("{} of {} deliberate bugs were caught", patches.len(), patches.len());
    Ok(())
}

/// A suite that fails without any bug would catch everything.
fn check_unharmed(patches: &[Sabotage], scratch: &Path) -> Result<()> {
    let mut suites: Vec<&Sabotage> = patches.iter().collect();
    suites.sort_by_key(|patch| &patch.caught_by);
    // Many patches share a suite, and each suite is slow.
    suites.dedup_by_key(|patch| &patch.caught_by);
    for patch in suites {
        let checked = run_silently(&mut suite(patch, scratch, &[]));
        checked.context("the tests fail without any bug, so they would catch everything")?;
    }
    Ok(())
}

fn chosen(mut all: Vec<Sabotage>, wanted: &[&str]) -> Result<Vec<Sabotage>> {
    if let ["--rotate", count] = wanted {
        let count: usize = count.parse().context("--rotate takes a number")?;
        // Each commit tries the next patches, so that all are tried over time.
        let turn = commits()? * count % all.len().max(1);
        all.rotate_left(turn);
        all.truncate(count);
        return Ok(all);
    }
    if let Some(unknown) = wanted.iter().find(|name| all.iter().all(|s| s.name != **name)) {
        bail!("there is no patch {unknown:?} in tests/sabotage");
    }
    Ok(all.into_iter().filter(|s| wanted.is_empty() || wanted.contains(&s.name.as_str())).collect())
}

fn all() -> Result<Vec<Sabotage>> {
    let folder = root().join("tests/sabotage");
    let mut patches = Vec::new();
    for entry in fs::read_dir(&folder).context("reading tests/sabotage")? {
        let patch = entry?.path();
        if patch.extension().is_some_and(|extension| extension == "patch") {
            patches.push(parse(patch)?);
        }
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

fn parse(patch: PathBuf) -> Result<Sabotage> {
    let text = fs::read_to_string(&patch)?;
    let first = text.lines().next().unwrap_or_default();
    let Some(arguments) = first.strip_prefix("# caught by: ") else {
        bail!("{} does not begin with `# caught by: `", patch.display());
    };
    let caught_by = arguments.split_whitespace().map(str::to_owned).collect();
    let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Sabotage { name, patch, caught_by })
}

/// A copy of the checkout, which stays for the next time.
fn scratch_tree() -> Result<PathBuf> {
    let scratch = root().join("target/sabotage/tree");
    fs::create_dir_all(&scratch)?;
    Ok(scratch)
}

/// Makes the scratch tree equal to the checkout. Only files that differ are touched.
fn reset(scratch: &Path) -> Result<()> {
    let listed = program("git").args(["ls-files", "-co", "--exclude-standard"]).output()?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let (from, to) = (root().join(name), scratch.join(name));
        // Git lists a file until its removal is committed.
        let Ok(content) = fs::read(&from) else {
            continue;
        };
        // Cargo compares times, so a file that is written again would be compiled again.
        if fs::read(&to).ok().as_ref() != Some(&content) {
            fs::create_dir_all(to.parent().unwrap_or(scratch))?;
            fs::write(&to, content)?;
        }
    }
    Ok(())
}

fn caught(sabotage: &Sabotage, scratch: &Path) -> Result<bool> {
    run(&mut apply(sabotage, scratch))?;
    // A patch that does not compile would also make `cargo test` fail.
    let compiled = run_silently(&mut suite(sabotage, scratch, &["--no-run"]));
    compiled.with_context(|| format!("{} does not compile: it proves nothing", sabotage.name))?;
    Ok(!succeeds(&mut suite(sabotage, scratch, &[])))
}

fn apply(sabotage: &Sabotage, scratch: &Path) -> Command {
    let mut apply = program("git");
    apply.current_dir(scratch).args(["apply", "-p1"]).arg(&sabotage.patch);
    // Without this, git would find the repository around the scratch tree.
    apply.env("GIT_CEILING_DIRECTORIES", root().join("target/sabotage"));
    apply
}

/// The tests that must notice, in the scratch tree.
fn suite(sabotage: &Sabotage, scratch: &Path, more: &[&str]) -> Command {
    let arguments: Vec<&str> = sabotage.caught_by.iter().map(String::as_str).collect();
    let mut suite = cargo(&["test", "--quiet"]);
    suite.args(more).args(arguments).current_dir(scratch);
    in_scratch_build(&mut suite);
    suite
}
