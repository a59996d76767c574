//! `cargo xtask torture`: everything that must hold, for as long as is wanted, ending in one table.
//!
//! Without `--minutes` it is the short version, a lane of `cargo xtask test`. With it, the parts
//! that have no end of their own (kills, fuzzing, simulation) continue with further seeds until
//! their share of the time is used up. A part that fails is a violation: its output is shown, and
//! the others continue.

mod table;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::clients::{self, Versions};
use crate::commands::{built, cargo, program, root, run, run_silently};
use table::Table;

/// How long it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    /// A few minutes.
    Short,
    /// As long as this, from the end of the builds on.
    For(Duration),
}

/// One of the things that are done.
struct Part {
    name: &'static str,
    what: &'static str,
    /// Its share of the time in percent; `None` if it ends by itself.
    share: Option<u32>,
    run: fn(&mut Torture) -> Result<()>,
}

const PARTS: [Part; 8] = [
    Part {
        name: "journals",
        what: "golden journals, applied and decided again",
        share: None,
        run: journals,
    },
    Part {
        name: "store",
        what: "a disk that fails, under journal and blobs",
        share: None,
        run: store,
    },
    Part {
        name: "disks",
        what: "full and read-only disks, really mounted",
        share: None,
        run: disks,
    },
    Part { name: "load", what: "many agents, many runs, long journals", share: None, run: load },
    Part {
        name: "sweep",
        what: "a crash at every port call of the corpus",
        share: None,
        run: sweep,
    },
    Part { name: "fuzz", what: "hostile input for every parser", share: Some(10), run: fuzz },
    Part {
        name: "kill",
        what: "kills of the real binary, by name and by clock",
        share: Some(30),
        run: kill,
    },
    Part {
        name: "simulation",
        what: "random runs on a machine that goes wrong",
        share: Some(64),
        run: simulation,
    },
];

struct Torture {
    length: Length,
    begun: Instant,
    /// When the part that is under way has had its share.
    until: Instant,
    /// The first seed, and the next unused seed.
    seed: u64,
    next: u64,
    counts: PathBuf,
    violations: Vec<String>,
}

/// Parses the arguments: the parts and the time.
pub(crate) fn parse(words: &[&str]) -> Result<()> {
    let (mut length, mut seed, mut parts) = (Length::Short, 1, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let next = words.next().with_context(|| format!("{word} takes a number"))?;
            next.parse().with_context(|| format!("{word} takes a number, not {next:?}"))
        };
        match *word {
            "--minutes" => length = Length::For(Duration::from_mins(number()?)),
            "--seed" => seed = number()?,
            part => parts.push(part),
        }
    }
    torture(length, seed, &parts)
}

/// Runs the named parts; all of them when none is named.
#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a task runner says what it does")]
pub(crate) fn torture(length: Length, seed: u64, wanted: &[&str]) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| PARTS.iter().all(|p| p.name != **name)) {
        let names = PARTS.map(|part| part.name).join(", ");
        bail!("there is no part {unknown:?}; there are {names}");
    }
    build(length)?;
    let counts = root().join("target/torture/counts.jsonl");
    fs::create_dir_all(counts.parent().unwrap_or(&counts))?;
    // Tests append to this file, so counts of an earlier torture must not stay in it.
    fs::write(&counts, "").context("writing target/torture/counts.jsonl")?;
    let now = Instant::now();
    let mut torture = Torture {
        length,
        begun: now,
        until: now,
        seed,
        next: seed,
        counts,
        violations: Vec::new(),
    };
    let chosen: Vec<&Part> =
        PARTS.iter().filter(|part| wanted.is_empty() || wanted.contains(&part.name)).collect();
    for (place, part) in chosen.iter().enumerate() {
        let begun = Instant::now();
        eprintln!("--> {}: {}", part.name, part.what);
        // Computed again for each part: time that earlier parts did not use, or used too much, is
        // shared again.
        torture.until = begun + torture.time_for(part, &chosen[place..]);
        if let Err(error) = (part.run)(&mut torture) {
            eprintln!("{error:#}");
            torture.violations.push(part.name.to_owned());
        }
        eprintln!("--> {} took {} s", part.name, begun.elapsed().as_secs());
    }
    println!("{}", Table::read(&torture)?);
    if !torture.violations.is_empty() {
        bail!("violated: {}", torture.violations.join(", "));
    }
    Ok(())
}

/// Everything is compiled before a clock runs: for the short version as the other tests know it,
/// which is there already. Where there is time, what only computes is optimised, with every
/// assertion on.
fn build(length: Length) -> Result<()> {
    run(&mut cargo(&["test", "-q", "--workspace", "--no-run"]))?;
    if let Length::For(_) = length {
        run(cargo(&["build", "-q"]).args(SIMULATE))?;
        run(cargo(&["test", "-q", "--no-run"]).args(FUZZ))?;
    }
    Ok(())
}

const SIMULATE: [&str; 6] =
    ["--profile", "simulation", "-p", "raymond-testkit", "--bin", "simulate"];
const FUZZ: [&str; 6] = ["--profile", "simulation", "-p", "raymond-fuzz", "--test", "targets"];

impl Torture {
    /// The time of a part that has no end of its own: its share of what is left for its like.
    fn time_for(&self, part: &Part, left: &[&Part]) -> Duration {
        let (Length::For(length), Some(share)) = (self.length, part.share) else {
            return Duration::ZERO;
        };
        let shares: u32 = left.iter().filter_map(|part| part.share).sum();
        length.saturating_sub(self.begun.elapsed()) * share / shares.max(1)
    }

    /// Repeats a batch with seeds of its own until the time of the part is used up: once, when it
    /// is short.
    fn repeat(&mut self, seeds: u64, batch: impl Fn(&Self, u64) -> Result<()>) -> Result<()> {
        loop {
            let seed = self.next;
            self.next += seeds;
            // At least one batch runs, even if earlier parts took all the time.
            batch(self, seed)?;
            if Instant::now() >= self.until {
                return Ok(());
            }
        }
    }

    /// The tests of a file that have these words in their names, counted. They are those of the
    /// whole workspace, so that nothing is compiled with other features than before.
    fn tests(&self, file: &str, words: &[&str]) -> Command {
        self.counted(&["--workspace", "--test", file], words)
    }

    fn counted(&self, target: &[&str], words: &[&str]) -> Command {
        let mut tests = cargo(&["test", "-q"]);
        // Some of these tests are slow, so a plain `cargo test` ignores them.
        tests.args(target).args(["--", "--include-ignored"]).args(words);
        tests.env("RAYMOND_TALLY", &self.counts);
        tests
    }

    fn simulate(&self, words: &[&str]) -> Result<()> {
        let simulate = built(if self.is_long() { "simulation" } else { "debug" }, "simulate")?;
        let mut simulate = program(&simulate.to_string_lossy());
        run_silently(simulate.args(words).env("RAYMOND_TALLY", &self.counts))
    }

    /// Counts what a part did that does not count itself.
    fn count(&self, part: &str, what: &str, count: u64) -> Result<()> {
        let line = json!({ "part": part, "what": what, "count": count });
        let mut file = OpenOptions::new().append(true).open(&self.counts)?;
        Ok(writeln!(file, "{line}")?)
    }

    fn is_long(&self) -> bool {
        matches!(self.length, Length::For(_))
    }
}

fn journals(torture: &mut Torture) -> Result<()> {
    run_silently(&mut torture.tests("journals", &[]))
}

fn store(torture: &mut Torture) -> Result<()> {
    let cases = if torture.is_long() { 10_000 } else { 5_000 };
    run_silently(torture.tests("crash", &[]).env("STORE_CASES", cases.to_string()))?;
    torture.count("store", "worlds with faults at random calls", cases)
}

fn disks(torture: &mut Torture) -> Result<()> {
    run_silently(&mut torture.tests("kill", &["disks::"]))?;
    run_silently(&mut torture.tests("cli", &["disks::"]))
}

fn load(torture: &mut Torture) -> Result<()> {
    let percent = if torture.is_long() { "100" } else { "10" };
    let mut tests = torture.tests("scale", &["load::"]);
    // One after the other: each measures what it takes.
    run_silently(tests.arg("--test-threads=1").env("LOAD", percent))
}

fn sweep(torture: &mut Torture) -> Result<()> {
    torture.simulate(if torture.is_long() { &["sweep"] } else { &["sweep", "--one-in", "20"] })
}

/// The short version is part of the tests of the workspace.
fn fuzz(torture: &mut Torture) -> Result<()> {
    if !torture.is_long() {
        return Ok(());
    }
    let inputs = 5_000;
    torture.repeat(1, |torture, seed| {
        let mut tests = torture.counted(&FUZZ, &[]);
        let numbers = [("FUZZ_INPUTS", inputs), ("FUZZ_SEED", seed)];
        run_silently(tests.envs(numbers.map(|(name, number)| (name, number.to_string()))))
    })
}

/// The real client is slow to start: it has its turn once, and only where there is time.
fn kill(torture: &mut Torture) -> Result<()> {
    if torture.is_long() {
        let mut real = torture.tests("real", &["kills::", "crashes::"]);
        run_silently(real.env("RAYMOND_TEST_CLIENTS", clients::install(Versions::Pinned)?))?;
    }
    let words = ["calls::", "moments::", "signals::"];
    torture.repeat(1, |torture, seed| {
        // They wait more than they work.
        let mut tests = torture.tests("kill", &[&words[..], &["--test-threads=4"]].concat());
        run_silently(tests.env("KILL_SEED", seed.to_string()))
    })
}

fn simulation(torture: &mut Torture) -> Result<()> {
    let batch = if torture.is_long() { 50_000 } else { 10_000 };
    torture.repeat(batch, |torture, seed| {
        let words = |count: u64| [count.to_string(), seed.to_string()];
        for (command, count) in [("runs", batch), ("steps", batch), ("crashes", batch / 8)] {
            let [count, seed] = words(count);
            torture.simulate(&[command, &count, &seed])?;
        }
        Ok(())
    })
}
