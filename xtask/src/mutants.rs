//! Small changes of `core` and `store`, made one by one by cargo-mutants: the tests notice each of them,
//! or `tests/mutants/explained.txt` says why nothing can.
//!
//! Quick tests try first; whatever survives them meets the tests of everything that is built on it. What
//! became of a file is a line of `tests/mutants/results.txt`. A shard is a part of the files, so that a
//! machine, or a day, can do its share; `--changed` looks at a few of what has changed since.

mod results;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::commands::{commits, program, root};
use crate::tools;
use results::{Explained, Fate, Results};

const VERSION: &str = "27.1.0";
const PACKAGES: [&str; 2] = ["raymond-core", "raymond-store"];
/// Whose tests try what survives.
const TESTED: [&str; 4] = ["raymond-core", "raymond-store", "raymond-engine", "raymond-testkit"];

/// What the first tests leave to the second ones, because it takes longer than everything else.
const SLOW: [&str; 6] =
    ["hostile", "properties", "hundred_thousand", "large_scope", "four_hundred", "any_"];

/// Of a change, at most so many are tried at a time; each commit has others.
const MOST_OF_A_CHANGE: usize = 12;

/// `[--shard K/N]`, or `--changed`.
pub(crate) fn mutants(words: &[&str]) -> Result<()> {
    match words {
        [] => all((0, 1)),
        ["--shard", shard] => all(parse(shard)?),
        ["--changed"] => changed(),
        _ => bail!("cargo xtask mutants [--shard K/N | --changed]"),
    }
}

/// `2/8` is the third of eight.
fn parse(shard: &str) -> Result<(usize, usize)> {
    let numbers = shard.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n)) if k < n => Ok((k, n)),
        _ => bail!("--shard takes K/N, where K is from 0 to N-1: {shard:?}"),
    }
}

/// Tries every mutant of every file of the shard, and writes down what became of them.
fn all((k, n): (usize, usize)) -> Result<()> {
    let tool = Tool::install()?;
    let files = tool.files()?;
    let mine: Vec<&String> = files.iter().skip(k).step_by(n).collect();
    let words: Vec<&str> = mine.iter().flat_map(|file| ["--file", file.as_str()]).collect();
    let fates = tool.try_all(&words)?;
    let mut results = Results::read()?;
    results.take(&mine, &fates);
    results.write(&files)?;
    judge(&fates)
}

/// Tries some of the mutants of what changed since the results were written.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn changed() -> Result<()> {
    let tool = Tool::install()?;
    let diff = tool.home.join("change.diff");
    let since = Results::last_commit()?;
    let output =
        program("git").args(["diff", &since, "--", "crates/core", "crates/store"]).output()?;
    if output.stdout.is_empty() {
        eprintln!("nothing of core and store has changed since {since}");
        return Ok(());
    }
    fs::write(&diff, output.stdout)?;
    let diff = diff.to_string_lossy().into_owned();
    let count = tool.list(&["--in-diff", &diff])?.len();
    if count == 0 {
        eprintln!("no mutant lies in what has changed since {since}");
        return Ok(());
    }
    let parts = count.div_ceil(MOST_OF_A_CHANGE);
    let turn = commits()? % parts;
    eprintln!("part {turn} of {parts} of {count} mutants in what has changed since {since}");
    let fates = tool.try_all(&["--in-diff", &diff, "--shard", &format!("{turn}/{parts}")])?;
    judge(&fates)
}

fn judge(fates: &[Fate]) -> Result<()> {
    let explained = Explained::read()?;
    let survived = fates.iter().filter(|fate| fate.is_unexplained(&explained));
    let names: Vec<&str> = survived.map(|fate| fate.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names = names.join("\n  ");
    bail!(
        "no test noticed:\n  {names}\nwrite one, or say in tests/mutants/explained.txt why none can"
    )
}

/// cargo-mutants, and where it works.
struct Tool {
    program: String,
    home: PathBuf,
}

impl Tool {
    fn install() -> Result<Self> {
        let home = root().join("target/mutants");
        fs::create_dir_all(&home).context("making target/mutants")?;
        Ok(Self { program: tools::install("cargo-mutants", VERSION)?, home })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = program(&self.program);
        command.arg("mutants").args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        command.args(words).args(["--colors", "never"]);
        // Whatever is compiled stays, and needs no line tables.
        command.env("CARGO_TARGET_DIR", self.home.join("build"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
        command
    }

    /// The names of mutants.
    fn list(&self, words: &[&str]) -> Result<Vec<String>> {
        let output = self.command(words).arg("--list").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }

    /// The files that have mutants.
    fn files(&self) -> Result<Vec<String>> {
        let mutants = self.list(&[])?;
        let mut files: Vec<String> =
            mutants.iter().filter_map(|name| Some(name.split_once(':')?.0.to_owned())).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Quick tests for all of them, then all tests for those that survive.
    fn try_all(&self, words: &[&str]) -> Result<Vec<Fate>> {
        let out = self.home.join("out");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let how = ["--baseline", "skip", "--no-shuffle", "--timeout", "120", "--cap-lints", "true"];
        let mut quick = self.command(words);
        quick.args(how).args(["--cargo-arg=--lib", "--output"]).arg(&out).args(["--", "--"]);
        quick.args(SLOW.iter().flat_map(|slow| ["--skip", slow])).env("PROPTEST_CASES", "32");
        let some_survived = try_once(&mut quick)?;
        let fates = Fate::read_all(&out.join("mutants.out"))?;
        if !some_survived {
            return Ok(fates);
        }
        let mut whole = self.command(words);
        whole.args(how).args(["--iterate", "--output"]).arg(&out);
        whole.args(TESTED.iter().flat_map(|package| ["--test-package", package]));
        try_once(&mut whole)?;
        Ok(Fate::overlay(fates, &Fate::read_all(&out.join("mutants.out"))?))
    }
}

/// Whether any mutant survived, or took too long.
fn try_once(command: &mut Command) -> Result<bool> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("could not start {shown}"))?;
    match status.code() {
        Some(0) => Ok(false),
        Some(2 | 3) => Ok(true),
        _ => bail!("{shown} failed: {status}"),
    }
}
