//! What became of mutants, and what is written down of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::listed::Mutant;
use crate::commands::{program, root};

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// Every test passed.
    Survived,
    /// The tests did not end, which is noticed, too.
    Hung,
    /// It does not compile.
    Unviable,
    /// It cannot be woven in, and to build everything for it would take too long.
    Untried,
}

impl Outcome {
    fn read(summary: &str) -> Self {
        match summary {
            "CaughtMutant" => Self::Caught,
            "MissedMutant" => Self::Survived,
            "Timeout" => Self::Hung,
            _ => Self::Unviable,
        }
    }

    /// What a run of cargo-mutants left in its folder: the place of each mutant, and what became of it.
    pub(super) fn read_all(folder: &Path) -> Result<BTreeMap<String, Self>> {
        let text = fs::read_to_string(folder.join("outcomes.json")).context("the outcomes")?;
        let read: Value = serde_json::from_str(&text)?;
        let outcomes = read["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let one = |outcome: &Value| {
            let place = outcome["scenario"]["Mutant"]["name"].as_str()?.to_owned();
            Some((place, Self::read(outcome["summary"].as_str()?)))
        };
        Ok(outcomes.iter().filter_map(one).collect())
    }
}

/// Mutants, and what became of each.
pub(super) type Fates = [(Mutant, Outcome)];

fn folder() -> PathBuf {
    root().join("tests/mutants")
}

/// The survivors that no test can notice: each a line, and below it, indented, why.
pub(super) struct Explained(BTreeSet<String>);

impl Explained {
    pub(super) fn read() -> Result<Self> {
        let text = fs::read_to_string(folder().join("explained.txt"))?;
        let is_name = |line: &&str| !line.starts_with([' ', '#']) && !line.is_empty();
        Ok(Self(text.lines().filter(is_name).map(str::to_owned).collect()))
    }

    pub(super) fn has(&self, mutant: &Mutant) -> bool {
        self.0.contains(&mutant.name())
    }

    /// Of these files, those names under which nothing survived.
    pub(super) fn superfluous(&self, files: &[String], fates: &Fates) -> Vec<&str> {
        let survived = fates.iter().filter(|(_, outcome)| *outcome == Outcome::Survived);
        let survived: BTreeSet<String> = survived.map(|(mutant, _)| mutant.name()).collect();
        let is_mine = |name: &&str| files.iter().any(|file| name.starts_with(&format!("{file}:")));
        let names = self.0.iter().map(String::as_str).filter(is_mine);
        names.filter(|name| !survived.contains(*name)).collect()
    }
}

/// The results of all files: a line each.
pub(super) struct Results(BTreeMap<String, String>);

const HEAD: &str = "\
# What became of every small change of a file: cargo xtask mutants [--shard K/N]
# Those of core and store that survived are explained in explained.txt. Of engine, backends and cli, some files
# were tried, and a survivor that is not explained there is a test that is missing. Untried are those that
# cannot be woven in.
";

impl Results {
    pub(super) fn read() -> Result<Self> {
        let text = fs::read_to_string(folder().join("results.txt"))?;
        let lines = text.lines().filter(|line| line.starts_with("crates/"));
        let file = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        Ok(Self(lines.map(|line| (file(line), line.to_owned())).collect()))
    }

    /// Takes in what became of the mutants of these files.
    pub(super) fn take(&mut self, files: &[String], fates: &Fates) {
        for file in files {
            let count = |outcome: Outcome| {
                let is_one = |(mutant, became): &&(Mutant, Outcome)| {
                    mutant.file == *file && *became == outcome
                };
                fates.iter().filter(is_one).count()
            };
            let noticed = count(Outcome::Caught) + count(Outcome::Hung);
            let (survived, unviable) = (count(Outcome::Survived), count(Outcome::Unviable));
            let untried = match count(Outcome::Untried) {
                0 => String::new(),
                some => format!(" untried {some}"),
            };
            let line = format!(
                "{file} noticed {noticed} survived {survived} unviable {unviable}{untried}"
            );
            self.0.insert(file.clone(), line);
        }
    }

    /// Writes them, without files that are gone, and with the sum of all.
    pub(super) fn write(&self, files: &[String]) -> Result<()> {
        let mut text = HEAD.to_owned();
        let lines = || self.0.iter().filter(|(file, _)| files.contains(file)).map(|(_, line)| line);
        lines().try_for_each(|line| writeln!(text, "{line}"))?;
        let sum = |place: usize| -> u64 {
            lines().filter_map(|line| line.split(' ').nth(place)?.parse::<u64>().ok()).sum()
        };
        let (noticed, survived, unviable) = (sum(2), sum(4), sum(6));
        let of = lines().count();
        writeln!(
            text,
            "# {of} of {} files: noticed {noticed}, survived {survived}, unviable {unviable}",
            files.len()
        )?;
        Ok(fs::write(folder().join("results.txt"), text)?)
    }

    /// The commit in which results were written last.
    pub(super) fn last_commit() -> Result<String> {
        let words = ["log", "-1", "--format=%h", "--", "tests/mutants/results.txt"];
        let output = program("git").args(words).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}
