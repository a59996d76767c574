//! The floor of the benchmark: the least work of a tool that loses no data. It starts the programs
//! that Raymond starts, reads their output, and appends and syncs one record for each. It decides
//! and remembers nothing.
//!
//! ```text
//! floor steps N PROGRAM WORD…              in sequence
//! floor workers N PARALLEL PROGRAM WORD…   so many at the same time
//! floor turns N PROGRAM WORD…              in sequence: a prompt on stdin, stdout in a file
//! floor calls N PROGRAM CALLEE CALLER      in sequence: the caller reads the callee's output
//! ```
//!
//! Everything is in the working directory. A program gets the number of its step in
//! `RAYMOND_VISIT`. Its output is written to a file; the last program prints a result.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Longer texts are kept in a file of their own.
// In bytes, as in Raymond's journal: the comparison is fair only with the same number of files.
const LONGEST_INLINE: usize = 16 * 1024;

#[expect(clippy::print_stderr, reason = "a command line talks on stderr")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u32>().map_err(io::Error::other);
    let done = match words.as_slice() {
        ["steps", n, command @ ..] => number(n).and_then(|n| steps(n, command)),
        ["workers", n, parallel, command @ ..] => number(n)
            .and_then(|n| Ok((n, number(parallel)?)))
            .and_then(|(n, parallel)| workers(n, parallel, command)),
        ["turns", n, command @ ..] => number(n).and_then(|n| turns(n, command)),
        ["calls", n, program, callee, caller] => {
            number(n).and_then(|n| calls(n, &[program, callee], &[program, caller]))
        }
        _ => Err(io::Error::other("floor steps|workers|turns|calls N …")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn steps(n: u32, words: &[&str]) -> io::Result<()> {
    let mut journal = File::create("journal")?;
    for number in 1..=n {
        let said = hear(start(words, number)?)?;
        record(&mut journal, number, &said)?;
    }
    Ok(())
}

fn workers(n: u32, parallel: u32, words: &[&str]) -> io::Result<()> {
    let journal = Mutex::new(File::create("journal")?);
    let next = AtomicU32::new(1);
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > n {
                return Ok(());
            }
            let said = hear(start(words, number)?)?;
            // Locked only for the record: the programs of several workers run at the same time.
            let mut journal = journal.lock().map_err(|_| io::Error::other("a worker fell over"))?;
            record(&mut journal, number, &said)?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallel).map(|_| scope.spawn(work)).collect();
        let mut ended = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.try_for_each(|ended| ended.map_err(|_| io::Error::other("a worker fell over"))?)
    })
}

fn turns(n: u32, words: &[&str]) -> io::Result<()> {
    let mut journal = File::create("journal")?;
    for number in 1..=n {
        let transcript = format!("transcript-{number}");
        let mut child = command(words, number)?
            .stdin(Stdio::piped())
            .stdout(File::create(&transcript)?)
            .spawn()?;
        // Dropped at the end of the block: the client waits for the end of its input.
        if let Some(mut stdin) = child.stdin.take() {
            write!(stdin, "turn {number} of {n}")?;
        }
        succeed(&mut child)?;
        record(&mut journal, number, &fs::read(&transcript)?)?;
    }
    Ok(())
}

fn calls(n: u32, callee: &[&str], caller: &[&str]) -> io::Result<()> {
    let mut journal = File::create("journal")?;
    for number in 1..=n {
        let said = hear(start(callee, number)?)?;
        record(&mut journal, number, &said)?;
        let file = format!("said-{number}");
        // `record` has written a longer text to this file already.
        if said.len() <= LONGEST_INLINE {
            fs::write(&file, &said)?;
        }
        let mut command = command(caller, number)?;
        command.env("RAYMOND_RESULT_FILE", file);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        // Callers have numbers behind all callees, so that no two records name the same file.
        record(&mut journal, n + number, &hear(child)?)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the floor has no doors")]
fn command(words: &[&str], number: u32) -> io::Result<Command> {
    let (program, words) =
        words.split_first().ok_or_else(|| io::Error::other("there is no program"))?;
    let mut command = Command::new(program);
    // The scripts of the benchmark look only at the last number, as in Raymond's own value.
    command.args(words).env("RAYMOND_VISIT", format!("floor.main.{number}"));
    Ok(command)
}

fn start(words: &[&str], number: u32) -> io::Result<Child> {
    command(words, number)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

fn hear(mut child: Child) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        // Before `wait`: a program that fills the pipe would never end.
        stdout.read_to_end(&mut said)?;
    }
    succeed(&mut child)?;
    Ok(said)
}

fn succeed(child: &mut Child) -> io::Result<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

fn record(journal: &mut File, number: u32, said: &[u8]) -> io::Result<()> {
    let mut line = format!("{number} ").into_bytes();
    if said.len() > LONGEST_INLINE {
        let name = format!("said-{number}");
        let mut file = File::create(&name)?;
        file.write_all(said)?;
        // Before the journal names the file, as Raymond stores a blob before its record.
        file.sync_data()?;
        line.extend(name.as_bytes());
    } else {
        line.extend(said.escape_ascii());
    }
    line.push(b'\n');
    journal.write_all(&line)?;
    // One sync for each record: without it the floor would promise less than Raymond.
    journal.sync_data()
}
