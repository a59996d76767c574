//! The lanes of `cargo xtask test`: parts of the tests that need different programs or a different
//! time.
//!
//! A lane is skipped only by naming others. The machine is checked for all wanted lanes first, so
//! that a missing program does not show up late. A failing lane does not hide the others: they all
//! run, and the failed ones are named at the end. `rules` contains every test that needs nothing
//! but the toolchain and a few common programs.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use anyhow::{Error, Result, bail};

use crate::clients::Versions;
use crate::commands::{cargo, program, run, succeeds};
use crate::torture::{self, Length};
use crate::{clients, deny, instructions, mcp, openclaw, words};

/// A named part of the tests.
#[derive(Clone, Copy)]
struct Lane {
    name: &'static str,
    what: &'static str,
    /// Checks that the machine has what only this lane needs.
    check: Option<fn() -> Result<()>>,
    run: fn() -> Result<()>,
}

const LANES: [Lane; 7] = [
    Lane { name: "rules", what: "every test of the workspace", check: None, run: rules },
    Lane {
        name: "deny",
        what: "bans, licences and sources of all dependencies",
        check: None,
        run: deny::deny,
    },
    Lane {
        name: "instructions",
        what: "the instructions that the hot paths take",
        check: Some(instructions::check_machine),
        run: || instructions::instructions(&[]),
    },
    Lane {
        name: "real",
        what: "the real agent clients, against a scripted model",
        check: Some(clients::check_machine),
        run: || real(Versions::Pinned),
    },
    Lane {
        name: "mcp",
        what: "real MCP clients, and the conformance suite",
        check: Some(mcp::check_machine),
        run: mcp,
    },
    Lane {
        name: "openclaw",
        what: "the plugin for OpenClaw, alone and in a real gateway",
        check: Some(openclaw::check_machine),
        run: openclaw::test,
    },
    Lane {
        name: "torture",
        what: "crashes, kills, faults, hostile input: the short version",
        check: None,
        run: torture,
    },
];

/// The lane `real` with the clients that are newest today. No part of CI, because it can fail
/// without a change of this repository.
const NEWEST: Lane = Lane {
    name: "real",
    what: "the newest published agent clients, against a scripted model",
    check: Some(clients::check_machine_for_newest),
    run: || real(Versions::Newest),
};

/// Runs the named lanes; all of them when none is named.
pub(crate) fn test(words: &[&str]) -> Result<()> {
    let lanes = chosen(words)?;
    check_machine()?;
    // All checks come before the first lane: a missing program must not be found after an hour of
    // tests.
    for check in lanes.iter().filter_map(|lane| lane.check) {
        check()?;
    }
    run_all(&lanes)
}

/// Returns the lanes that the arguments name.
fn chosen(words: &[&str]) -> Result<Vec<Lane>> {
    if words.contains(&"--newest") {
        if words != ["real", "--newest"] {
            bail!("only the lane real has newest clients: cargo xtask test real --newest");
        }
        return Ok(vec![NEWEST]);
    }
    if let Some(unknown) = words.iter().find(|name| LANES.iter().all(|l| l.name != **name)) {
        let names = LANES.map(|lane| lane.name).join(", ");
        bail!("there is no lane {unknown:?}; there are {names}");
    }
    let is_wanted = |lane: &Lane| words.is_empty() || words.contains(&lane.name);
    Ok(LANES.into_iter().filter(is_wanted).collect())
}

/// Runs all lanes, and then fails if one of them failed.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
fn run_all(lanes: &[Lane]) -> Result<()> {
    let mut failed = Vec::new();
    for lane in lanes {
        let begun = Instant::now();
        eprintln!("==> {}: {}", lane.name, lane.what);
        let result = (lane.run)();
        let verdict = if result.is_ok() { "passed" } else { "failed" };
        eprintln!("==> {} {verdict} in {} s", lane.name, begun.elapsed().as_secs());
        failed.extend(result.err().map(|error| (lane.name, error)));
    }
    report(lanes.len(), &failed)
}

/// Returns one error that names every failed lane and its reason.
fn report(all: usize, failed: &[(&str, Error)]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let mut lines = format!("{} of {all} lanes failed", failed.len());
    for (name, error) in failed {
        write!(lines, "\n  {name}: {error:#}")?;
    }
    bail!(lines)
}

/// Script states need bash. The examples and pages that are played need the others, and `setsid`
/// makes daemons that have to be found again.
const PROGRAMS: [&str; 5] = ["bash", "git", "make", "jq", "setsid"];

fn check_machine() -> Result<()> {
    let there = |name: &&str| succeeds(program(name).arg("--version"));
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|name| !there(name)).collect();
    if !missing.is_empty() {
        bail!("the tests need programs that are not installed: {}", missing.join(", "));
    }
    Ok(())
}

fn has_nextest() -> bool {
    succeeds(&mut cargo(&["nextest", "--version"]))
}

fn rules() -> Result<()> {
    let wording = words::words(&[]);
    let tests = run(&mut tests(&["--workspace"]));
    // nextest does not run documentation tests.
    let documentation = run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]));
    // The quick check of the wording must not hide a failed test.
    wording.and(tests).and(documentation)
}

/// Runs the tests of some packages.
pub(crate) fn packages(names: &[&str]) -> Result<()> {
    let chosen: Vec<&str> = names.iter().flat_map(|name| ["-p", *name]).collect();
    run(&mut tests(&chosen))
}

fn tests(chosen: &[&str]) -> Command {
    let runner: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test"] };
    cargo(&[runner, chosen, &["--no-fail-fast"]].concat())
}

/// Every client is a second of work for a core, and some tests run four.
fn real(versions: Versions) -> Result<()> {
    let clients = clients::install(versions)?;
    run(ignored(&["--test", "real"], "3").env("RAYMOND_TEST_CLIENTS", clients))
}

/// The clients are heavy to start, and some tests start many.
fn mcp() -> Result<()> {
    let clients = mcp::install()?;
    run(ignored(&["--test", "mcp", "--test", "conformance"], "2").env("RAYMOND_TEST_MCP", clients))
}

/// Returns the command for the ignored tests of these files, `at_once` at a time. It selects them
/// from the whole workspace, because cargo would compile one package alone again with other
/// features.
fn ignored(files: &[&str], at_once: &str) -> Command {
    if has_nextest() {
        let nextest = ["nextest", "run", "--workspace", "--no-fail-fast", "--run-ignored", "only"];
        return cargo(&[&nextest[..], &["-j", at_once], files].concat());
    }
    let alone = ["--", "--ignored", "--test-threads", at_once];
    cargo(&[&["test", "--workspace"][..], files, &alone].concat())
}

fn torture() -> Result<()> {
    torture::torture(Length::Short, 1, &[])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use anyhow::anyhow;

    use super::*;

    fn lane(name: &'static str, run: fn() -> Result<()>) -> Lane {
        Lane { name, what: "a test", check: None, run }
    }

    static LANES_RUN: AtomicUsize = AtomicUsize::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "a lane returns a result")]
    fn passes() -> Result<()> {
        LANES_RUN.fetch_add(1, Relaxed);
        Ok(())
    }

    fn fails() -> Result<()> {
        LANES_RUN.fetch_add(1, Relaxed);
        Err(anyhow!("exit status: 1").context("cargo nextest run"))
    }

    #[test]
    fn failing_lane_does_not_hide_the_others() {
        let lanes = [lane("real", fails), lane("mcp", passes), lane("torture", fails)];
        let error = run_all(&lanes).expect_err("two lanes fail");
        assert_eq!(LANES_RUN.load(Relaxed), 3);
        let lines = "2 of 3 lanes failed
  real: cargo nextest run: exit status: 1
  torture: cargo nextest run: exit status: 1";
        assert_eq!(error.to_string(), lines);
        assert!(run_all(&lanes[1..2]).is_ok());
    }

    #[test]
    fn arguments_choose_lanes() {
        let check = |words: &[&str], expected: &str| {
            let shown = match chosen(words) {
                Ok(lanes) => lanes.iter().map(|lane| lane.name).collect::<Vec<_>>().join(" "),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expected, "{words:?}");
        };
        check(&[], "rules deny instructions real mcp openclaw torture");
        check(&["torture", "real"], "real torture");
        check(&["real", "--newest"], "real");
        let only = "only the lane real has newest clients: cargo xtask test real --newest";
        check(&["--newest"], only);
        check(&["rules", "--newest"], only);
        let names = "rules, deny, instructions, real, mcp, openclaw, torture";
        check(&["reel"], &format!("there is no lane \"reel\"; there are {names}"));
    }
}
