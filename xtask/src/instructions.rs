//! Counts the instructions of the hot paths and compares them with `bench/instructions.txt`. Times
//! differ from machine to machine and from hour to hour, but counts do not, so a test can fail
//! because of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::commands::{built, cargo, program, root, run, succeeds};

/// In percent: larger differences are reported.
const TOLERANCE: u64 = 5;

/// The code paths of every turn, each alone: arguments of the program `bench`.
const PATHS: [&str; 4] = ["scan", "render", "decide", "append"];

/// Commands whose start is counted, in the build of the tests, because an optimised build takes a
/// quarter of an hour. A run is not counted: it ends with a search of all processes, and every
/// machine has others.
const STARTS: [(&str, &str); 2] = [("help", "--help"), ("list", "list")];

/// How often a path is taken; and how often more, so that the rest of the program does not count.
const FEW: u64 = 100;
const MORE: u64 = 1_000;

/// Counts everything and compares it with the recorded counts, or records it.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn instructions(words: &[&str]) -> Result<()> {
    check_machine()?;
    let counts = count()?;
    let file = root().join("bench/instructions.txt");
    match words {
        [] => {
            let written = fs::read_to_string(&file).context("bench/instructions.txt")?;
            let mut more = 0;
            for (name, count) in &counts {
                let before = before(&written, name)
                    .with_context(|| format!("bench/instructions.txt says nothing of {name}"))?;
                let verdict = verdict(before, *count);
                more += u32::from(verdict == TOO_MANY);
                eprintln!("    {name:8} {count:>10}, {before:>10} written down: {verdict}");
            }
            ensure!(
                more == 0,
                "{more} paths take over {TOLERANCE} % more than bench/instructions.txt says; if that is meant: \
                 cargo xtask instructions --update"
            );
            Ok(())
        }
        ["--update"] => {
            let mut text = "# Instructions of one turn of each path, and of a start: cargo xtask instructions --update\n".to_owned();
            for (name, count) in &counts {
                writeln!(text, "{name} {count}")?;
            }
            Ok(fs::write(file, text)?)
        }
        _ => bail!("instructions takes --update, or nothing"),
    }
}

pub(crate) fn check_machine() -> Result<()> {
    ensure!(
        succeeds(program("valgrind").arg("--version")),
        "instructions are counted by valgrind, which is not installed (Debian: apt-get install valgrind)"
    );
    Ok(())
}

/// What is written down for a path.
fn before(written: &str, name: &str) -> Option<u64> {
    let line = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    written.lines().find_map(line)
}

const TOO_MANY: &str = "MORE";

fn verdict(before: u64, now: u64) -> &'static str {
    let slack = before * TOLERANCE / 100;
    match now {
        now if now > before + slack => TOO_MANY,
        // Fewer instructions do not fail, but an old number would hide a later regression.
        now if now < before - slack => "less; write it down (--update)",
        _ => "as before",
    }
}

fn count() -> Result<Vec<(&'static str, u64)>> {
    run(&mut cargo(&["build", "--quiet", "--profile", "count", "-p", "raymond-bench"]))?;
    // With the features of the whole workspace, so that the build of the tests is used again.
    run(&mut cargo(&["test", "--quiet", "--workspace", "--test", "cli", "--no-run"]))?;
    let (bench, raymond) = (built("count", "bench")?, built("debug", "raymond")?);
    let place = tempfile::TempDir::new()?;
    let mut counts = Vec::new();
    for name in PATHS {
        let taken = |times: u64| counted(&bench, &format!("path {name} {times}"), place.path());
        // The difference of two counts leaves out the start and the end of the program.
        counts.push((name, (taken(FEW + MORE)? - taken(FEW)?) / MORE));
    }
    for (name, words) in STARTS {
        counts.push((name, counted(&raymond, words, place.path())?));
    }
    Ok(counts)
}

/// Returns the instructions of a program, without those of its children. The program gets an empty
/// environment, because even the length of a variable would count.
fn counted(of: &Path, words: &str, place: &Path) -> Result<u64> {
    let mut valgrind = program("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(of);
    valgrind.args(words.split(' ')).current_dir(place);
    valgrind.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", place);
    let output = valgrind.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{valgrind:?} failed: {}\n{said}", output.status);
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, number) = collected.with_context(|| format!("{valgrind:?} counted nothing"))?;
    Ok(number.trim().parse()?)
}
