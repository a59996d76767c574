//! Compares the cost of Raymond with the least possible cost and with other tools: `cargo xtask
//! bench`.
//!
//! ```text
//! bench path NAME TIMES
//! bench PROGRAMS [ROW…] [--peers FOLDER] [--rounds N] [--json FILE]
//! ```
//!
//! All programs of a row are measured alternately in one session, and the table shows medians. A
//! program that did not do its work is an error: counts, side effects and results are checked each
//! time. A row is a letter, or the name of a part of it.

mod measure;
mod paths;
mod rows;
mod series;
mod stage;
mod table;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use rows::PARTS;
use stage::Stage;

const USAGE: &str = "usage: bench PROGRAMS [ROW…] [--peers FOLDER] [--rounds N] [--json FILE], as `cargo xtask bench` says it";

/// How often each has its turn, at least.
const ROUNDS: u32 = 5;

/// The kinds of file systems in memory: tmpfs and ramfs.
// `TMPFS_MAGIC` and `RAMFS_MAGIC` of linux/magic.h.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

#[expect(clippy::print_stderr, reason = "a command line talks on stderr")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [word, name, times] if word == "path" => {
            times.parse().map_err(Into::into).and_then(|times| paths::take(name, times))
        }
        words => bench(words.iter().cloned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it shows what it measures")]
fn bench(mut words: impl Iterator<Item = String>) -> Result<()> {
    let programs = words.next().context(USAGE)?;
    let programs = std::fs::canonicalize(&programs)
        .with_context(|| format!("looking for {programs}\n{USAGE}"))?;
    let places = tempfile::TempDir::new()?;
    // There, nothing would be written to a disk, and syncing would cost nothing.
    ensure!(
        !IN_MEMORY.contains(&rustix::fs::statfs(places.path())?.f_type),
        "{} is in memory: set TMPDIR to a directory on a disk",
        places.path().display()
    );
    let mut stage = Stage { rounds: ROUNDS, programs, peers: None, places };
    let mut wanted = Vec::new();
    let mut file = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rounds" => {
                let number = words.next().and_then(|word| word.parse().ok());
                stage.rounds = number.context("--rounds takes a number")?;
            }
            "--peers" => stage.peers = Some(words.next().context("--peers takes a folder")?.into()),
            "--json" => {
                let path = words.next().context("--json takes a file")?;
                // Created now: a wrong path must not be found after minutes of measuring.
                file = Some(File::create(&path).with_context(|| format!("creating {path}"))?);
            }
            row if is_known(row) => wanted.push(word),
            _ => bail!("there is no row {word:?}: {}", known()),
        }
    }
    // Checked behind all flags, because `--rounds` may be anywhere.
    ensure!(stage.rounds >= ROUNDS, "a median of fewer than {ROUNDS} says little");
    let program = stage.version()?;
    let mut figures = Vec::new();
    let mut failed = Ok(());
    for (row, name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| *word == name || *word == row.to_string())
        {
            eprintln!("    {row}: {name}");
            match part(&stage).with_context(|| format!("{row}: {name}")) {
                Ok(measured) => figures.extend(measured),
                // Figures that were measured before the error are still printed.
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
    }
    let cores = std::thread::available_parallelism()?;
    print!("{}", table::table(&figures));
    println!("\n{program}; {} rounds; {cores} cores", stage.rounds);
    if let Some(mut file) = file {
        let json = json!({
            "program": program,
            "at": SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
            "rounds": stage.rounds,
            "cores": cores,
            "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
            "figures": table::json(&figures),
            "failed": failed.as_ref().err().map(|error| format!("{error:#}")),
        });
        writeln!(file, "{json:#}")?;
    }
    failed
}

fn is_known(word: &str) -> bool {
    PARTS.iter().any(|(row, name, _)| word == *name || word == row.to_string())
}

fn known() -> String {
    let names: Vec<String> = PARTS.iter().map(|(row, name, _)| format!("{row} ({name})")).collect();
    names.join(", ")
}
