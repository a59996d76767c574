//! Reading lines from a file that may contain anything.
//!
//! A client may write a line of any length, or never end a line. Memory is bounded: a line over
//! [`LINE_MAX`] is skipped, and only its length is reported. Lines are bytes; the protocols of the
//! clients interpret them.

use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::files::{OutputFiles, open_to_read};
use super::followed::{FollowedFile, UnreadableFile};
use super::output::OutputTail;
use super::stream_event::StreamEvent;

/// The longest line that is kept: 16 MiB. Clients put whole tool results into one line.
pub const LINE_MAX: usize = 16 * 1024 * 1024;

/// The longest accepted transcript: 256 MiB. A longer one ends its turn.
pub const TRANSCRIPT_MAX: u64 = 256 * 1024 * 1024;

/// The size of one read, in bytes.
pub(super) const CHUNK: usize = 16 * 1024;

/// A splitter that turns pieces of bytes into lines.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    /// The line that has not ended yet.
    partial: Vec<u8>,
    /// The length so far of a line that is too long to keep.
    cut: Option<u64>,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_limit(LINE_MAX)
    }
}

impl Lines {
    fn with_limit(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), cut: None }
    }

    /// Adds a piece, and emits the lines that end in it.
    pub(super) fn push(&mut self, mut piece: &[u8], emit: &mut dyn FnMut(StreamEvent)) {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            self.add(&piece[..end]);
            emit(self.take());
            piece = &piece[end + 1..];
        }
        self.add(piece);
    }

    /// Returns the last line if it had no newline.
    pub(super) fn finish(&mut self) -> Option<StreamEvent> {
        let is_empty = self.partial.is_empty() && self.cut.is_none();
        (!is_empty).then(|| self.take())
    }

    fn add(&mut self, bytes: &[u8]) {
        match &mut self.cut {
            Some(length) => *length += bytes.len() as u64,
            None if self.partial.len() + bytes.len() > self.limit => {
                self.cut = Some((self.partial.len() + bytes.len()) as u64);
                // The memory is freed at once: a long line must not occupy it until its end.
                self.partial = Vec::new();
            }
            None => self.partial.extend_from_slice(bytes),
        }
    }

    fn take(&mut self) -> StreamEvent {
        match self.cut.take() {
            Some(length) => StreamEvent::LongLine { length },
            None => StreamEvent::Line(std::mem::take(&mut self.partial)),
        }
    }
}

/// Emits the lines of a finished transcript. A transcript over [`TRANSCRIPT_MAX`] is read up to
/// that size, and `TooLarge` is the last event.
pub fn read_transcript(path: &Path, emit: &mut dyn FnMut(StreamEvent)) -> io::Result<()> {
    read_up_to(path, TRANSCRIPT_MAX, emit)
}

fn read_up_to(path: &Path, limit: u64, emit: &mut dyn FnMut(StreamEvent)) -> io::Result<()> {
    let file = open_to_read(path)?;
    let flooded = file.metadata()?.len() > limit;
    let mut file = file.take(limit);
    let mut chunk = vec![0; CHUNK];
    let mut lines = Lines::default();
    loop {
        match file.read(&mut chunk) {
            // An incomplete last line of a file that is too large is not emitted.
            Ok(0) if flooded => {
                emit(StreamEvent::TooLarge { limit });
                return Ok(());
            }
            Ok(0) => {
                if let Some(last) = lines.finish() {
                    emit(last);
                }
                return Ok(());
            }
            Ok(length) => lines.push(&chunk[..length], emit),
            // A signal interrupted the read; nothing was lost.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the end of a client's stderr, or an empty string if it cannot be read.
pub fn last_errors(files: &OutputFiles) -> String {
    let mut tail = OutputTail::default();
    let read = || {
        let file = open_to_read(&files.stderr)?;
        let length = file.metadata()?.len();
        let mut last = vec![0; tail.length()];
        let read = file.read_at(&mut last, length.saturating_sub(tail.length() as u64))?;
        // The file may have shrunk between the two calls.
        last.truncate(read);
        Ok::<_, io::Error>(last)
    };
    let last = read().unwrap_or_default();
    tail.push(&last);
    tail.text()
}

/// A transcript that may still grow, read from the last position.
#[derive(Debug)]
pub struct Transcript {
    file: FollowedFile,
    lines: Lines,
    chunk: Vec<u8>,
}

impl Transcript {
    /// Opens a transcript, which must be a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = FollowedFile::from_start(path)?;
        Ok(Self { file, lines: Lines::default(), chunk: vec![0; CHUNK] })
    }

    /// Returns the current length in bytes.
    pub fn length(&mut self) -> Result<u64, UnreadableFile> {
        self.file.length()
    }

    /// Emits the lines that were written since the last call. An unfinished line waits.
    pub fn read_on(&mut self, emit: &mut dyn FnMut(StreamEvent)) -> Result<(), UnreadableFile> {
        // Up to the length at the start of the call: a client that writes faster than Raymond reads
        // must not keep it here.
        let end = self.file.length()?;
        loop {
            let piece = self.file.read(end, &mut self.chunk)?;
            if piece.is_empty() {
                return Ok(());
            }
            self.lines.push(piece, emit);
        }
    }

    /// Emits the last line without its newline if it is already complete. Its newline is later
    /// emitted as an empty line.
    pub fn take_last_if(&mut self, is_whole: fn(&[u8]) -> bool, emit: &mut dyn FnMut(StreamEvent)) {
        // A line that is too long to keep cannot be checked.
        if self.lines.cut.is_none() && is_whole(&self.lines.partial) {
            emit(self.lines.take());
        }
    }

    /// Whether the last line has not ended.
    pub fn has_partial_line(&self) -> bool {
        !self.lines.partial.is_empty() || self.lines.cut.is_some()
    }

    /// Emits the rest of a finished transcript.
    pub fn finish(mut self, emit: &mut dyn FnMut(StreamEvent)) -> Result<(), UnreadableFile> {
        self.read_on(emit)?;
        if let Some(last) = self.lines.finish() {
            emit(last);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn line(text: &str) -> StreamEvent {
        StreamEvent::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn any_cut_gives_the_lines_of_the_whole() {
        const LIMIT: usize = 6;
        let check = |text: &str, expected: &[StreamEvent]| {
            let bytes = text.as_bytes();
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let mut lines = Lines::with_limit(LIMIT);
                    let mut found = Vec::new();
                    for piece in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                        lines.push(piece, &mut |event| found.push(event));
                    }
                    found.extend(lines.finish());
                    assert_eq!(found, expected, "{text:?} {first} {second}");
                    assert_eq!(lines.finish(), None);
                }
            }
        };
        check("", &[]);
        check("one\ntwo\n", &[line("one"), line("two")]);
        check("one\ntwo", &[line("one"), line("two")]);
        check("\n\nx\r\n", &[line(""), line(""), line("x\r")]);
        check("123456\n", &[line("123456")]);
        check("1234567\nx\n", &[StreamEvent::LongLine { length: 7 }, line("x")]);
        check("x\n12345678", &[line("x"), StreamEvent::LongLine { length: 8 }]);
        check("\u{20ac}\u{20ac}\nz", &[line("\u{20ac}\u{20ac}"), line("z")]);
    }

    #[test]
    fn growing_transcript_is_read_line_by_line() {
        use std::io::Write as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript");
        assert_eq!(Transcript::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let is_no_file = Transcript::open(directory.path()).unwrap_err();
        assert_eq!(is_no_file.kind(), io::ErrorKind::InvalidInput);
        let mut file = File::create(&path).unwrap();
        let mut transcript = Transcript::open(&path).unwrap();
        let mut check = |text: &str, expected: &[StreamEvent]| {
            file.write_all(text.as_bytes()).unwrap();
            let mut found = Vec::new();
            transcript.read_on(&mut |event| found.push(event)).unwrap();
            assert_eq!(found, expected);
        };
        check("", &[]);
        check("one\ntw", &[line("one")]);
        check("o", &[]);
        check("\nhalf", &[line("two")]);
        let mut found = Vec::new();
        transcript.finish(&mut |event| found.push(event)).unwrap();
        assert_eq!(found, [line("half")]);
    }

    #[test]
    fn finished_transcript_is_read_up_to_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript");
        let check = |text: &[u8], limit, expected: &[StreamEvent]| {
            fs::write(&path, text).unwrap();
            let mut found = Vec::new();
            read_up_to(&path, limit, &mut |event| found.push(event)).unwrap();
            assert_eq!(found, expected);
        };
        check(b"", 10, &[]);
        check(b"one\ntwo", 7, &[line("one"), line("two")]);
        check(b"half \xe2\x82", 10, &[StreamEvent::Line(b"half \xe2\x82".to_vec())]);
        check(
            b"one\ntwo\nthree\n",
            9,
            &[line("one"), line("two"), StreamEvent::TooLarge { limit: 9 }],
        );
        fs::remove_file(&path).unwrap();
        let missing = read_transcript(&path, &mut |_| {}).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
