//! Measures what a commit and a recovery cost on this machine's disk:
//! `cargo run --release -p raymond-store --example measure`.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raymond_store::Journal;
use raymond_store::disk::RealDisk;
use raymond_store::journal::Error;

const APPENDS: u32 = 2_000;
const LINES: u32 = 100_000;

fn body(n: u32) -> Vec<u8> {
    format!(r#"{{"seq":{n},"text":"{}"}}"#, "x".repeat(180)).into_bytes()
}

/// The median time of one append, sync included.
fn append(path: &Path) -> Result<Duration, Error> {
    let mut journal = Journal::create(Arc::new(RealDisk), path, br#"{"format":1}"#)?;
    let mut times = Vec::new();
    for n in 0..APPENDS {
        let (body, start) = (body(n), Instant::now());
        journal.append(&body)?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// The time to open a journal of many lines, written without waiting for the disk.
fn open(scratch: &Path, path: &Path) -> Result<(usize, Duration), Box<dyn std::error::Error>> {
    let memory: Arc<dyn raymond_store::disk::Disk> = Arc::new(raymond_store::disk::Memory::new(0));
    let mut journal = Journal::create(Arc::clone(&memory), scratch, br#"{"format":1}"#)?;
    for n in 0..LINES {
        journal.append(&body(n))?;
    }
    let mut source = memory.open(scratch, raymond_store::disk::OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(source.size()?)?];
    source.read_at(0, &mut bytes)?;
    std::fs::write(path, bytes)?;
    std::fs::File::open(path)?.sync_all()?;
    let start = Instant::now();
    let opened = Journal::open(Arc::new(RealDisk), path)?;
    Ok((opened.lines.len(), start.elapsed()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let mut out = std::io::stdout();
    let median = append(&directory.path().join("appended.jsonl"))?;
    writeln!(out, "append and sync, median of {APPENDS}: {median:?}")?;
    let (lines, time) = open(Path::new("/scratch"), &directory.path().join("long.jsonl"))?;
    writeln!(out, "open {lines} lines: {time:?}")?;
    Ok(())
}
