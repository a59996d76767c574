//! Small changes of the crates, made one by one by cargo-mutants: the tests notice each of them, or
//! `tests/mutants/explained.txt` says why nothing can.
//!
//! This file tries those of `core` and `store`, `edges` those of the crates that start processes. As many as
//! possible are woven into one copy of the source, each behind a switch, so that trying one compiles nothing;
//! cargo-mutants itself tries the others. Quick tests come first; whatever survives them
//! meets the tests of everything that is built on it. What became of a file is a line of
//! `tests/mutants/results.txt`. A shard is a part of the files; `--changed` looks at a few of what has
//! changed since.

mod cage;
mod edges;
mod listed;
mod reach;
mod results;
mod tree;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::commands::{commits, program, root};
use crate::tools;
use edges::{Depth, EDGES, is_edge};
use listed::Mutant;
use results::{Explained, Fates, Outcome, Results};
use tree::Tree;

const VERSION: &str = "27.1.0";
const PACKAGES: [&str; 2] = ["raymond-core", "raymond-store"];
const PURE: [Crate; 2] = [
    Crate { package: PACKAGES[0], root: "crates/core/src/lib.rs" },
    Crate { package: PACKAGES[1], root: "crates/store/src/lib.rs" },
];

/// A crate whose mutants are tried.
#[derive(Debug, Clone, Copy)]
struct Crate {
    package: &'static str,
    /// The file that the others are modules of.
    root: &'static str,
}

/// Whose tests try what survives.
const TESTED: [&str; 4] = ["raymond-core", "raymond-store", "raymond-engine", "raymond-testkit"];

/// Tests that come last, by a part of their names, because each takes about as long as all others together.
const SLOW: [&str; 24] = [
    "::any_",
    "a_bomb_is_refused_while_it_is_read",
    "a_crash_at_any_call",
    "a_scope_has_a_number_of_states",
    "a_second_interpreter_agrees",
    "any_faults_at_any_calls",
    "calls_at_the_same_time",
    "calls_come_to_what_the_reference_comes_to",
    "files_that_do_not_keep_their_contract",
    "four_hundred",
    "hostile",
    "hundred_thousand",
    "large_scope",
    "many_iterations_are_done_at_the_same_time",
    "many_steps_are_done",
    "mistakes_of_whole_documents",
    "nothing_that_is_done_is_done_again",
    "one_rendering_has_a_limit",
    "properties::",
    "random_runs_keep_every_promise",
    "the_deepest_document",
    "trouble_at_any_call",
    "what_looks_like_an_expression_and_is_text",
    "what_only_a_run_can_know",
];

/// Of a change, at most so many are tried at a time; each commit has others.
const MOST_OF_A_CHANGE: usize = 12;

/// The same for the crates at the edge: their unit tests alone decide, in about a minute after the build.
const MOST_AT_THE_EDGE: usize = 8;

/// The crates at the edge have what the others leave of this time: a change must not wait longer for CI.
const TIME_OF_A_CHANGE: Duration = Duration::from_mins(8);

/// `[--shard K/N | --changed | [--quick] FILE…]`.
pub(crate) fn mutants(words: &[&str]) -> Result<()> {
    match words {
        ["--changed"] => changed(),
        ["--quick", files @ ..] => quick(files),
        ["--shard", shard] => {
            let (k, n) = parse(shard)?;
            all(|files| files.iter().skip(k).step_by(n).cloned().collect())
        }
        files if !files.iter().any(|file| file.starts_with('-')) => {
            let is_mine = |file: &&String| files.is_empty() || files.contains(&file.as_str());
            all(|all| all.iter().filter(is_mine).cloned().collect())
        }
        _ => bail!("cargo xtask mutants [--shard K/N | --changed | [--quick] FILE…]"),
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

/// Tries every mutant of some of the files, and writes down what became of them.
fn all(choose: impl Fn(&[String]) -> Vec<String>) -> Result<()> {
    let tool = Tool::install()?;
    let mut mutants = tool.list(&[])?;
    let mut files: Vec<String> = mutants.iter().map(|mutant| mutant.file.clone()).collect();
    files.sort();
    files.dedup();
    let mine = choose(&files);
    mutants.retain(|mutant| mine.contains(&mutant.file));
    some(&mutants)?;
    let fates = tool.try_both(mutants)?;
    let mut results = Results::read()?;
    results.take(&mine, &fates);
    results.write(&files)?;
    let explained = Explained::read()?;
    let superfluous = explained.superfluous(&mine, &fates);
    if !superfluous.is_empty() {
        let names = superfluous.join("\n  ");
        bail!("tests/mutants/explained.txt explains what does not survive:\n  {names}");
    }
    judge(&fates)
}

fn some(mutants: &[Mutant]) -> Result<()> {
    if mutants.is_empty() {
        bail!("there is no mutant: name files as git does, such as crates/core/src/budget.rs");
    }
    Ok(())
}

/// Tries the mutants of some files with quick tests only: for whoever writes tests.
fn quick(files: &[&str]) -> Result<()> {
    let tool = Tool::install()?;
    let mut mutants = tool.list(&[])?;
    mutants.retain(|mutant| files.contains(&mutant.file.as_str()));
    some(&mutants)?;
    let (edge, pure) = apart(mutants);
    if !edge.is_empty() {
        edges::try_all(&tool.home, edge, Depth::Own, None)?;
    }
    if !pure.is_empty() {
        let tree = Tree::grow(&tool.home, &pure, &PURE, None)?;
        let within: Vec<usize> = (0..pure.len()).filter(|number| tree.has(*number)).collect();
        tree.quickly(&within)?;
    }
    Ok(())
}

/// Those of the crates at the edge, and the others.
fn apart(mutants: Vec<Mutant>) -> (Vec<Mutant>, Vec<Mutant>) {
    mutants.into_iter().partition(|mutant| is_edge(&mutant.package))
}

/// Tries some of the mutants of what changed since the results were written.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn changed() -> Result<()> {
    let began = Instant::now();
    let since = Results::last_commit()?;
    let folders =
        ["core", "store", "backends", "engine", "cli"].map(|name| format!("crates/{name}/src"));
    let output = program("git").args(["diff", &since, "--"]).args(&folders).output()?;
    if output.stdout.is_empty() {
        eprintln!("nothing of these crates has changed since {since}");
        return Ok(());
    }
    let tool = Tool::install()?;
    let diff = tool.home.join("change.diff");
    fs::write(&diff, &output.stdout)?;
    let (edge, pure) = apart(tool.list(&["--in-diff", &diff.to_string_lossy()])?);
    let commits = commits()?;
    let chosen = a_part(pure, MOST_OF_A_CHANGE, commits);
    if !chosen.is_empty() {
        judge(&tool.try_all(chosen)?)?;
    }
    let crates: BTreeSet<String> = edge.iter().map(|mutant| mutant.package.clone()).collect();
    // One crate at a time, because to build the tests of all takes longest.
    let Some(package) = crates.iter().nth(commits % crates.len().max(1)) else { return Ok(()) };
    let edge = edge.into_iter().filter(|mutant| mutant.package == *package).collect();
    let chosen = a_part(edge, MOST_AT_THE_EDGE, commits);
    let deadline = began + TIME_OF_A_CHANGE;
    match edges::try_all(&tool.home, chosen, Depth::Own, Some(deadline)) {
        Ok(fates) => report(&fates),
        Err(_) if Instant::now() >= deadline => {
            eprintln!("there is no time left for mutants of {package}");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Some of these, evenly spread: each commit has others.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn a_part(mutants: Vec<Mutant>, most: usize, commits: usize) -> Vec<Mutant> {
    let parts = mutants.len().div_ceil(most).max(1);
    let turn = commits % parts;
    eprintln!("part {turn} of {parts} of {} mutants of what has changed", mutants.len());
    mutants.into_iter().skip(turn).step_by(parts).collect()
}

/// The unit tests alone do not decide about a crate whose promises the tests of the command line hold: what
/// they miss is listed, and fails nothing.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn report(fates: &Fates) {
    let noticed =
        |(_, outcome): &&(Mutant, Outcome)| matches!(outcome, Outcome::Caught | Outcome::Hung);
    let noticed = fates.iter().filter(noticed).count();
    eprintln!("unit tests noticed {noticed} of {} mutants", fates.len());
}

fn judge(fates: &Fates) -> Result<()> {
    let explained = Explained::read()?;
    let unexplained = |(mutant, outcome): &&(Mutant, Outcome)| {
        *outcome == Outcome::Survived && !explained.has(mutant)
    };
    let places: Vec<&str> =
        fates.iter().filter(unexplained).map(|(mutant, _)| mutant.place.as_str()).collect();
    if places.is_empty() {
        return Ok(());
    }
    let places = places.join("\n  ");
    bail!(
        "no test noticed:\n  {places}\nwrite one, or say in tests/mutants/explained.txt why none can"
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

    fn command(&self, crates: &[Crate], words: &[&str]) -> Command {
        let mut command = program(&self.program);
        command.arg("mutants").args(crates.iter().flat_map(|of| ["--package", of.package]));
        // What all disks and all clients are tried with is a test, although a feature gives it to others.
        command.args(
            ["conformance.rs", "conformance/**"]
                .map(|part| format!("--exclude=crates/*/src/{part}")),
        );
        command.args(["--colors", "never"]).args(words);
        // Whatever is compiled stays, and needs no line tables.
        command.env("CARGO_TARGET_DIR", self.home.join("build"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
        command
    }

    fn list(&self, words: &[&str]) -> Result<Vec<Mutant>> {
        let crates = [PURE.as_slice(), &EDGES].concat();
        let output = self.command(&crates, words).args(["--list", "--json"]).output()?;
        if !output.status.success() {
            bail!("cargo-mutants lists nothing: {}", String::from_utf8_lossy(&output.stderr));
        }
        // Where a change has no mutants, it says so, but not in JSON.
        if output.stdout.is_empty() {
            return Ok(Vec::new());
        }
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout).context("the list")?;
        Ok(listed.iter().filter_map(Mutant::read).collect())
    }

    /// Tries mutants of any crate.
    fn try_both(&self, mutants: Vec<Mutant>) -> Result<Vec<(Mutant, Outcome)>> {
        let (edge, pure) = apart(mutants);
        let mut fates = Vec::new();
        if !pure.is_empty() {
            fates.extend(self.try_all(pure)?);
        }
        if !edge.is_empty() {
            fates.extend(edges::try_all(&self.home, edge, Depth::All, None)?);
        }
        Ok(fates)
    }

    /// Quick tests for all of them, then all tests for those that survive.
    #[expect(clippy::print_stderr, reason = "a task runner says what it does")]
    fn try_all(&self, mutants: Vec<Mutant>) -> Result<Vec<(Mutant, Outcome)>> {
        let explained = Explained::read()?;
        let tree = Tree::grow(&self.home, &mutants, &PURE, None)?;
        let (unviable, viable): (Vec<usize>, Vec<usize>) =
            (0..mutants.len()).partition(|number| tree.is_unviable(*number));
        let (within, alone): (Vec<usize>, Vec<usize>) =
            viable.into_iter().partition(|number| tree.has(*number));
        eprintln!(
            "    {} mutants are woven in, {} cannot be, {} are tried alone",
            within.len(),
            unviable.len(),
            alone.len()
        );
        let mut outcomes: BTreeMap<usize, Outcome> = tree.quickly(&within)?.into_iter().collect();
        outcomes.extend(unviable.into_iter().map(|number| (number, Outcome::Unviable)));
        // What is explained would only take longest.
        let again: Vec<usize> = outcomes
            .iter()
            .filter(|(number, outcome)| {
                **outcome == Outcome::Survived && !explained.has(&mutants[**number])
            })
            .map(|(number, _)| *number)
            .collect();
        eprintln!("    {} of them survived quick tests, and meet all", again.len());
        if !again.is_empty() {
            outcomes.extend(tree.thoroughly(&again)?);
        }
        let alone: Vec<&Mutant> = alone.iter().map(|number| &mutants[*number]).collect();
        let became = self.try_alone(&alone)?;
        let fate = |(number, mutant): (usize, Mutant)| {
            let outcome = outcomes.get(&number).or_else(|| became.get(&mutant.place)).copied();
            let outcome = outcome.with_context(|| format!("{} was not tried", mutant.place))?;
            Ok((mutant, outcome))
        };
        mutants.into_iter().enumerate().map(fate).collect()
    }

    /// What becomes of mutants that are compiled one by one.
    fn try_alone(&self, mutants: &[&Mutant]) -> Result<BTreeMap<String, Outcome>> {
        if mutants.is_empty() {
            return Ok(BTreeMap::new());
        }
        let out = self.home.join("out");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let only: Vec<String> = mutants.iter().map(|mutant| exactly(&mutant.place)).collect();
        // Fields are deleted whatever an expression says, but not in other files.
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        let words = only.iter().flat_map(|only| ["--re", only]);
        let words: Vec<&str> =
            words.chain(files.iter().flat_map(|file| ["--file", file])).collect();
        let how = ["--baseline", "skip", "--no-shuffle", "--cap-lints", "true"];
        // A loop of a constant that never ends keeps the compiler busy.
        let how = [how.as_slice(), &["--build-timeout", "300", "--timeout"]].concat();
        let mut quick = self.command(&PURE, &words);
        quick.args(&how).args(["120", "--cargo-arg=--lib", "--output"]);
        quick.arg(&out).args(["--", "--"]);
        quick.args(SLOW.iter().flat_map(|slow| ["--skip", slow])).env("PROPTEST_CASES", "32");
        let some_survived = try_once(&mut quick)?;
        let mut became = Outcome::read_all(&out.join("mutants.out"))?;
        if some_survived {
            let mut whole = self.command(&PURE, &words);
            // All tests take about two minutes; whoever survives must not seem to hang.
            whole.args(&how).args(["900", "--iterate", "--output"]).arg(&out);
            whole.args(TESTED.iter().flat_map(|package| ["--test-package", package]));
            try_once(&mut whole)?;
            became.extend(Outcome::read_all(&out.join("mutants.out"))?);
        }
        Ok(became)
    }
}

/// The regular expression that only this text matches. A bracket that is escaped would be the edge of a word.
fn exactly(text: &str) -> String {
    let mut expression = String::from("^");
    for c in text.chars() {
        if c.is_ascii_punctuation() && !"<>".contains(c) {
            expression.push('\\');
        }
        expression.push(c);
    }
    expression.push('$');
    expression
}

/// Whether any mutant survived, or took too long.
fn try_once(command: &mut Command) -> Result<bool> {
    let status = command.status().context("could not start cargo-mutants")?;
    match status.code() {
        Some(0) => Ok(false),
        Some(2 | 3) => Ok(true),
        _ => bail!("cargo-mutants failed: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_escapes_what_means_something_else() {
        let place = "a.rs:1:2: replace < with <= in <impl A for B<'a>>::c -> &[u8]";
        let expected =
            r"^a\.rs\:1\:2\: replace < with <\= in <impl A for B<\'a>>\:\:c \-> \&\[u8\]$";
        assert_eq!(exactly(place), expected);
    }
}
