//! Verifies the lines of a journal, and distinguishes a torn last line from damage.
//!
//! One append is one line, and it is synced before the next one. A crash can therefore only leave a
//! part of one line after the last good line. If its newline was written, it is the last byte of
//! the file. Pages that were lost read as NUL bytes, which JSON never contains. Everything else is
//! damage.

use super::line::{self, Damage, Sum};
use super::lines::JournalLines;

/// A place between two lines, from which reading can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The offset of the next line in the file.
    pub offset: u64,
    /// The number of the next line.
    pub seq: u64,
    /// The checksum of the line before.
    pub sum: Sum,
}

impl Cursor {
    /// The start of a journal.
    pub(super) const START: Self = Self { offset: 0, seq: 0, sum: Sum::NONE };
}

/// The bytes after the last good line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    Torn,
    Damaged(Damage),
}

/// The result of a scan.
pub(super) struct Scanned {
    pub(super) lines: JournalLines,
    pub(super) end: Cursor,
    pub(super) rest: Rest,
}

/// Verifies the lines in `buffer`, which was read at `from`.
pub(super) fn scan(mut buffer: Vec<u8>, from: Cursor) -> Scanned {
    let (mut end, mut ends) = (from, Vec::new());
    let (mut start, mut scratch) = (0, Vec::new());
    let mut damage = None;
    while let Some(newline) = memchr::memchr(b'\n', &buffer[start..]) {
        let line = &mut buffer[start..start + newline];
        match line::open(&end.sum, line, &mut scratch) {
            Ok(sum) => end.sum = sum,
            // Checksums are chained, so no line after a bad one can be verified.
            Err(found) => {
                damage = Some(found);
                break;
            }
        }
        start += newline + 1;
        end.seq += 1;
        end.offset += newline as u64 + 1;
        ends.push(start);
    }
    let rest = classify_rest(&buffer[start..], damage);
    let lines = JournalLines::new(buffer, from.seq, ends);
    Scanned { lines, end, rest }
}

/// Classifies the bytes after the last good line. `damage` is the problem of the first line in
/// them.
fn classify_rest(tail: &[u8], damage: Option<Damage>) -> Rest {
    // Without a newline the append was interrupted.
    let Some(damage) = damage else {
        return if tail.is_empty() { Rest::Nothing } else { Rest::Torn };
    };
    let first = memchr::memchr(b'\n', tail).map_or(tail.len(), |newline| newline + 1);
    let hole = memchr::memchr(0, &tail[..first]).is_some();
    // A hole in the very last line is an interrupted append. A hole before other lines is damage,
    // because later lines were written only after this one was synced.
    match (hole, first == tail.len()) {
        (true, true) => Rest::Torn,
        (true, false) => Rest::Damaged(Damage::Hole),
        (false, _) => Rest::Damaged(damage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(bodies: &[&str]) -> Vec<u8> {
        let (mut bytes, mut sum, mut line) = (Vec::new(), Sum::NONE, Vec::new());
        for body in bodies {
            sum = line::seal(&sum, body.as_bytes(), &mut line).unwrap();
            bytes.extend_from_slice(&line);
        }
        bytes
    }

    /// Scans three good lines after `change`, which gets them and the start of the last one.
    fn check(change: fn(&mut Vec<u8>, usize), good: usize, expected: Rest) {
        let mut bytes = journal(&[r#"{"h":0}"#, r#"{"a":1}"#, r#"{"b":2}"#]);
        let last = journal(&[r#"{"h":0}"#, r#"{"a":1}"#]).len();
        change(&mut bytes, last);
        let scanned = scan(bytes, Cursor::START);
        assert_eq!((scanned.lines.len(), scanned.rest), (good, expected));
        assert_eq!(scanned.end.seq, good as u64);
    }

    // proves: P8
    #[test]
    fn only_an_interrupted_append_is_torn() {
        check(|_, _| {}, 3, Rest::Nothing);
        check(Vec::truncate, 2, Rest::Nothing);
        check(|bytes, _| bytes.truncate(bytes.len() - 1), 2, Rest::Torn);
        check(|bytes, last| bytes.truncate(last + 1), 2, Rest::Torn);
        check(|bytes, last| bytes[last..].fill(0), 2, Rest::Torn);
        check(|bytes, last| bytes[last..last + 9].fill(0), 2, Rest::Torn);
        check(|bytes, _| bytes.extend([0; 50]), 3, Rest::Torn);
        check(|bytes, _| bytes.extend(b"{\"c\":3"), 3, Rest::Torn);
        check(|bytes, _| bytes.extend(b"{\"c\":\0\0,\"sum\":\"0\"}\n"), 3, Rest::Torn);
    }

    // proves: P8, S18
    #[test]
    fn everything_else_is_damage() {
        let sum = Rest::Damaged(Damage::Sum);
        let hole = Rest::Damaged(Damage::Hole);
        let shape = Rest::Damaged(Damage::Shape);
        check(|bytes, last| bytes[last + 2] ^= 1, 2, sum);
        check(|bytes, last| bytes[last - 47] = b'x', 1, sum);
        check(|bytes, last| bytes[last - 45..last - 40].fill(0), 1, hole);
        check(|bytes, _| bytes.extend(b"\n"), 3, shape);
        check(|bytes, _| bytes.extend(b"{\"c\":3}\n"), 3, shape);
        check(|bytes, _| bytes.extend(b"\0\n\0\n"), 3, hole);
        check(|bytes, last| drop(bytes.drain(..last)), 0, sum);
    }

    #[test]
    fn scanning_continues_from_a_cursor() {
        let bytes = journal(&[r#"{"h":0}"#, r#"{"a":1}"#, r#"{"b":2}"#]);
        let first = scan(journal(&[r#"{"h":0}"#]), Cursor::START);
        let at = usize::try_from(first.end.offset).unwrap();
        let rest = scan(bytes[at..].to_vec(), first.end);
        let bodies: Vec<_> = rest.lines.iter().map(|line| (line.seq, line.body)).collect();
        assert_eq!(bodies, [(1, &br#"{"a":1}"#[..]), (2, &br#"{"b":2}"#[..])]);
        assert_eq!(rest.end, scan(bytes, Cursor::START).end);
    }
}
