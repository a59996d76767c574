//! The lines of files that contain mistakes, read again to show them to a person.
//!
//! Raymond shows no line of a file that contains a secret: a line can be a piece of the secret,
//! which the search for whole secrets would not find. An archive has no file to read, and a file
//! that has changed since the check would show another line; both show none either.

use std::fs::{self, File};
use std::io::Read as _;
use std::ops::Range;

use raymond_core::diagnostic::Place;

use crate::secrets::may_show_line;

/// The largest file that is read again. Most files of a workflow have a few kilobytes, and a file
/// with a thousand mistakes is searched a thousand times.
const LARGEST: u64 = 1 << 20;

/// How many bytes before and after the start of a mistake are shown: more than a terminal shows.
const REACH: usize = 240;

/// The part of a line around a mistake.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) text: String,
    /// The bytes of `text` that are the mistake.
    pub(super) span: Range<usize>,
}

/// Reads files, and keeps the last one: the mistakes of one file follow each other.
#[derive(Debug, Default)]
pub(super) struct SourceFiles {
    name: String,
    text: Option<String>,
}

impl SourceFiles {
    /// Returns the line of a place, if it can be shown.
    pub(super) fn line(&mut self, file: &str, place: &Place) -> Option<SourceLine> {
        if self.name != file {
            (self.name, self.text) = (file.to_owned(), read(file));
        }
        let text = self.text.as_deref()?;
        let is_same = Place::of(text, place.span.clone()) == *place;
        let line = text.lines().nth(place.line - 1).unwrap_or_default();
        (is_same && may_show_line(text, line)).then(|| around(text, place.span.clone()))
    }
}

/// Reads a small regular file. Others could block, or take long.
fn read(file: &str) -> Option<String> {
    let is_small = |found: &fs::Metadata| found.is_file() && found.len() <= LARGEST;
    // Before the file is opened, because a pipe would block.
    fs::metadata(file).ok().filter(is_small)?;
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    // Places in a file that is not UTF-8 are those of its text with replaced characters.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the part of the line in which `span` begins.
fn around(text: &str, span: Range<usize>) -> SourceLine {
    let first = text.ceil_char_boundary(span.start.saturating_sub(REACH));
    let last = text.floor_char_boundary(text.len().min(span.start + REACH));
    let (before, after) = (&text[first..span.start], &text[span.start..last]);
    let before = match before.rfind('\n') {
        Some(newline) => &before[newline + 1..],
        None if first > 0 => &format!("…{before}"),
        None => before,
    };
    let line = after.lines().next().unwrap_or_default();
    let is_cut = line.len() == after.len() && !text[last..].starts_with(['\r', '\n']);
    let more = if is_cut && last < text.len() { "…" } else { "" };
    let length = span.len().min(line.len());
    SourceLine { text: format!("{before}{line}{more}"), span: before.len()..before.len() + length }
}

#[cfg(test)]
mod tests {
    use std::fs::write;

    use super::*;

    #[test]
    fn line_of_a_place_is_marked() {
        let check = |text: &str, span: Range<usize>, line: &str, marked: &str| {
            let span = Place::of(text, span).span;
            let source = around(text, span);
            assert_eq!((&*source.text, &source.text[source.span]), (line, marked));
        };
        check("a: 1\nbc: dé\r\n", 9..12, "bc: dé", "dé");
        check("a: 1\nb", 0..1, "a: 1", "a");
        // Only the first line of a longer mistake is marked.
        check("a: [\n1\n", 3..7, "a: [", "[");
        check("a\n", 2..2, "", "");
        check("a\r\nb", 1..1, "a", "");
        check("", 9..10, "", "");
        let (long, half) = ("é".repeat(999), "é".repeat(REACH / 2));
        check(&long, 998..1000, &format!("…{half}{half}…"), "é");
        check(&format!("{half}\n{half}"), 0..2, &half, "é");
        check(&half, 0..2, &half, "é");
    }

    #[test]
    fn changed_large_and_secret_files_show_no_line() {
        let folder = tempfile::TempDir::new().unwrap();
        let check = |text: &str, place: &Place, expected: Option<&str>| {
            let file = folder.path().join("START.md");
            write(&file, text).unwrap();
            let line = SourceFiles::default().line(file.to_str().unwrap(), place);
            assert_eq!(line.map(|line| line.text).as_deref(), expected, "{text:.50}");
        };
        let place = Place::of("a: 1\nbc: 2", 5..7);
        check("a: 1\nbc: 2", &place, Some("bc: 2"));
        check("a: 11\nbc: 2", &place, None);
        check("a", &place, None);
        check(&format!("a: 1\nbc: 2{}", " ".repeat(1 << 20)), &place, None);
        let token = ["sk-ant-", "api03-0123456789abcdefghij"].concat();
        check(&format!("a: 1\nbc: 2\n{token}"), &place, None);
        assert_eq!(SourceFiles::default().line("no such file", &place), None);
    }
}
