//! Shortening of lines that are too long to read, in a finished transcript.
//!
//! A line of many megabytes is useless and fills the disk. This module keeps its beginning and adds
//! a note with its length. All other lines stay exactly as the client wrote them.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::files::{open_to_read, private};
use super::transcript::{CHUNK, LINE_MAX};

/// The kept beginning of a long line, in bytes: enough to recognise the line.
const KEPT: u64 = 4 * 1024;

/// Shortens every line over [`LINE_MAX`].
pub fn shorten_long_lines(path: &Path) -> io::Result<()> {
    shorten_over(LINE_MAX as u64, path)
}

fn shorten_over(limit: u64, path: &Path) -> io::Result<()> {
    let long = long_lines(limit, path)?;
    // Most transcripts are left alone, without a copy.
    if long.is_empty() {
        return Ok(());
    }
    let beside = path.with_extension("cut");
    // The shortened copy replaces the file by a rename, so a crash leaves the old or the new file.
    let mut from = open_to_read(path)?;
    let mut to = BufWriter::new(private(OpenOptions::new().write(true).truncate(true), &beside)?);
    let mut at = 0;
    for LongLine { start, length } in long {
        let kept = start + KEPT.min(length);
        io::copy(&mut (&from).take(kept - at), &mut to)?;
        write!(to, " … [shortened: the line had {length} bytes]")?;
        at = from.seek(SeekFrom::Start(start + length))?;
    }
    io::copy(&mut from, &mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(&beside, path)
}

struct LongLine {
    start: u64,
    /// Without its newline.
    length: u64,
}

fn long_lines(limit: u64, path: &Path) -> io::Result<Vec<LongLine>> {
    let mut from = BufReader::with_capacity(CHUNK, open_to_read(path)?);
    let mut chunk = vec![0; CHUNK];
    let mut long = Vec::new();
    let (mut start, mut at) = (0, 0);
    loop {
        let read = from.read(&mut chunk)?;
        for end in memchr::memchr_iter(b'\n', &chunk[..read]) {
            let end = at + end as u64;
            long.extend((end - start > limit).then_some(LongLine { start, length: end - start }));
            start = end + 1;
        }
        at += read as u64;
        if read == 0 {
            long.extend((at - start > limit).then_some(LongLine { start, length: at - start }));
            return Ok(long);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_lines_are_shortened_and_marked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("turn.jsonl");
        let check = |text: &str, expected: &str| {
            fs::write(&path, text).unwrap();
            shorten_over(5000, &path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        };
        let (fits, long) = ("x".repeat(5000), "y".repeat(200_000));
        let cut = format!("{} … [shortened: the line had 200000 bytes]", "y".repeat(4096));
        check("", "");
        check(&fits, &fits);
        check(&format!("{fits}\n\n"), &format!("{fits}\n\n"));
        check(&long, &cut);
        let several = format!("a\n{long}\nb\n{long}\n{fits}\n");
        check(&several, &format!("a\n{cut}\nb\n{cut}\n{fits}\n"));
    }
}
