//! `cargo xtask mutants`: small changes of the source, made one at a time by cargo-mutants.
//!
//! The tests must notice each change, or `.cargo/mutants.toml` explains why no test can. The quick
//! tests of the changed crate come first; a change that survives them meets the tests of the
//! crates that are built on it. `--changed` tries a few changes in the lines of the latest commits,
//! and others with every commit. All other arguments go to cargo-mutants.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::commands::{commits, in_scratch_build, program, root};
use crate::tools;

const VERSION: &str = "27.1.0";

/// The crates without processes. A change in the code that ends processes could end any process of
/// this user, so the other crates are only tried on request and in a process table of their own.
const PURE: [&str; 2] = ["raymond-core", "raymond-store"];

/// Their tests meet the changes that survive the tests of the changed crate.
const TESTED: [&str; 4] = ["raymond-core", "raymond-store", "raymond-engine", "raymond-testkit"];

/// Parts of the names of slow tests: each takes about as long as all quick tests of its crate
/// together.
const SLOW: [&str; 6] =
    ["::any_", "properties::", "hostile", "hundred", "random_runs", "trouble_at_any_call"];

/// The baseline is what the other lanes test. A constant loop that never ends keeps the compiler
/// busy.
const LIMITS: [&str; 4] = ["--baseline", "skip", "--build-timeout", "300"];

/// `--changed` looks at the lines of so many commits.
const COMMITS: usize = 20;

/// `--changed` tries at most about so many mutants: each takes up to a minute on two cores.
const MOST: usize = 8;

/// Tries mutants: `--changed`, or arguments of cargo-mutants such as `--shard 0/8` or `--file
/// x.rs`.
pub(crate) fn mutants(arguments: &[&str]) -> Result<()> {
    let tool = Tool::install()?;
    if arguments != ["--changed"] {
        return tool.judge(arguments);
    }
    let changes =
        program("git").args(["diff", &format!("HEAD~{COMMITS}"), "--", "crates"]).output()?;
    let diff = tool.home.join("change.diff");
    fs::write(&diff, &changes.stdout)?;
    let in_diff = ["--in-diff", &*diff.to_string_lossy()];
    let count = tool.count(&in_diff)?;
    if count == 0 {
        return Ok(());
    }
    let shards = count.div_ceil(MOST);
    // Each commit tries another part, so that all parts are tried over time.
    let shard = format!("{}/{shards}", commits()? % shards);
    tool.judge(&[&in_diff[..], &["--shard", &shard]].concat())
}

/// cargo-mutants, and the directory that it works in.
struct Tool {
    program: String,
    home: PathBuf,
}

impl Tool {
    fn install() -> Result<Self> {
        let home = root().join("target/mutants");
        fs::create_dir_all(&home).context("could not create target/mutants")?;
        Ok(Self { program: tools::install("cargo-mutants", VERSION)?, home })
    }

    /// A command for these arguments. A process table of its own protects all other processes.
    fn command(&self, arguments: &[&str]) -> Command {
        let chooses = ["--package", "-p", "--file", "-f"];
        // These flags may choose a crate that starts and ends processes.
        let is_pure = !arguments.iter().any(|argument| chooses.contains(argument));
        let mut command = if is_pure { program(&self.program) } else { caged(&self.program) };
        command.arg("mutants").args(["--colors", "never"]);
        if is_pure {
            command.args(PURE.iter().flat_map(|package| ["--package", package]));
        }
        command.args(arguments);
        in_scratch_build(&mut command);
        command
    }

    fn count(&self, arguments: &[&str]) -> Result<usize> {
        let output = self.command(arguments).arg("--list").output()?;
        if !output.status.success() {
            bail!("could not list mutants: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().count())
    }

    /// Fails if a mutant survives all tests.
    fn judge(&self, arguments: &[&str]) -> Result<()> {
        let out = self.home.join("out");
        // Results of an earlier call would make `--iterate` skip mutants that this call has not
        // tried.
        fs::remove_dir_all(&out).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        fs::create_dir_all(&out)?;
        let mut quick = self.command(arguments);
        quick.args(LIMITS).args(["--timeout", "120", "--output"]).arg(&out);
        quick.args(["--", "--lib", "--"]).args(SLOW.iter().flat_map(|slow| ["--skip", slow]));
        quick.env("PROPTEST_CASES", "32");
        // Most mutants fail a quick test, so the slow tests of all crates meet only a few.
        if survives(&mut quick)? {
            let mut thorough = self.command(&without_shard(arguments));
            thorough.args(LIMITS).args(["--timeout", "900", "--output"]).arg(&out);
            // By name: the shard of a shorter list would contain other mutants.
            let missed = fs::read_to_string(out.join("mutants.out/missed.txt"))?;
            let names = missed.lines().map(|name| format!("^{}$", regex::escape(name)));
            thorough.args(names.flat_map(|name| ["--re".to_owned(), name]));
            thorough.args(TESTED.iter().flat_map(|package| ["--test-package", package]));
            if survives(&mut thorough)? {
                bail!(
                    "write a test for each mutant that survived, or explain it in .cargo/mutants.toml"
                );
            }
        }
        Ok(())
    }
}

fn without_shard<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut kept = arguments.to_vec();
    if let Some(shard) = kept.iter().position(|argument| *argument == "--shard") {
        kept.drain(shard..(shard + 2).min(arguments.len()));
    }
    kept
}

/// A program in a process table of its own.
fn caged(name: &str) -> Command {
    let mut unshare = program("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", name]);
    unshare
}

/// Runs cargo-mutants, and returns whether a mutant survived.
fn survives(command: &mut Command) -> Result<bool> {
    let status = command.status().context("could not start cargo-mutants")?;
    match status.code() {
        // A mutant that makes a test hang is noticed.
        Some(0 | 3) => Ok(false),
        Some(2) => Ok(true),
        _ => bail!("cargo-mutants failed: {status}"),
    }
}
