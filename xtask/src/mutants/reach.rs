//! Tests, each with the mutants that it reaches.
//!
//! Every test runs once without a mutant, and the switches that it passes write down their numbers. A
//! mutant then meets only tests that can notice it, the quickest first.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::cage::Trial;
use super::edges::in_time;
use super::results::Outcome;
use super::tree::{Tests, each};
use crate::commands::program;

/// No test of these crates takes as long.
const LONGEST: Duration = Duration::from_mins(3);

/// A mutant is given up after so much time: thousands of tests may reach it.
const PATIENCE: Duration = Duration::from_mins(3);

/// A test that a mutant may meet.
pub(super) struct Case<'t> {
    tests: &'t Tests,
    name: String,
    took: Duration,
    reaches: BTreeSet<usize>,
}

/// The tests that pass without a mutant, the quickest first.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(super) fn cases<'t>(
    tests: &'t [Tests],
    home: &Path,
    deadline: Option<Instant>,
) -> Result<Vec<Case<'t>>> {
    let mut named: Vec<(&Tests, String)> = Vec::new();
    for tests in tests {
        named.extend(names(tests)?.into_iter().map(|name| (tests, name)));
    }
    let numbers: Vec<usize> = (0..named.len()).collect();
    let reached = home.join("reached");
    if reached.exists() {
        fs::remove_dir_all(&reached)?;
    }
    let tried = each(&numbers, |number| {
        in_time(deadline)?;
        let (tests, name) = &named[number];
        let folder = reached.join(number.to_string());
        let trial = Trial { tests, name, mutant: None, reached: &folder, limit: LONGEST };
        let (outcome, took) = trial.run()?;
        if outcome != Outcome::Survived {
            eprintln!("    left out, because it fails without a mutant: {name}");
            return Ok(None);
        }
        Ok(Some(Case { tests, name: name.clone(), took, reaches: switches(&folder)? }))
    })?;
    let mut cases: Vec<Case<'t>> = tried.into_iter().filter_map(|(_, case)| case).collect();
    cases.sort_by_key(|case| case.took);
    Ok(cases)
}

/// What becomes of a mutant.
pub(super) fn meet(cases: &[Case<'_>], number: usize, home: &Path) -> Result<Outcome> {
    let began = Instant::now();
    let folder = home.join("reached/mutants").join(number.to_string());
    for case in cases.iter().filter(|case| case.reaches.contains(&number)) {
        // Ten times as long is a hang, on a busy machine, too.
        let limit = (case.took * 10).max(Duration::from_secs(20));
        let Case { tests, name, .. } = case;
        let trial = Trial { tests, name, mutant: Some(number), reached: &folder, limit };
        let (outcome, _) = trial.run()?;
        if outcome != Outcome::Survived {
            return Ok(outcome);
        }
        if began.elapsed() > PATIENCE {
            break;
        }
    }
    Ok(Outcome::Survived)
}

fn names(tests: &Tests) -> Result<Vec<String>> {
    let listed = program(&tests.program.to_string_lossy())
        .args(["--list", "--format", "terse"])
        .current_dir(&tests.folder)
        .output()?;
    ensure!(listed.status.success(), "{} lists no tests", tests.program.display());
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn switches(folder: &Path) -> Result<BTreeSet<usize>> {
    let entries = fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}
