//! Text for messages: counts, sizes, lists, excerpts, single lines, causes of errors, shell
//! quoting, JSON pointers and the nearest name.
//!
//! Nothing here knows what the text is about.

mod nearest;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::iter;

pub use nearest::nearest;

/// Returns at most `most` characters of `text`, followed by an ellipsis if there is more.
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Returns at most `most` bytes of `text`, followed by an ellipsis if there is more. This is
/// cheaper than [`excerpt`] for a text that may have megabytes.
pub fn excerpt_bytes<'t>(text: impl Into<Cow<'t, str>>, most: usize) -> Cow<'t, str> {
    let text = text.into();
    if text.len() <= most {
        return text;
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(most)]))
}

/// Returns the message of an error with the messages of its causes: `could not read x: not found`.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(error.source(), |cause: &&dyn Error| (*cause).source());
    causes.fold(error.to_string(), |message, cause| {
        let cause = cause.to_string();
        // Transparent errors and some libraries repeat the message of the cause at their end.
        if message.ends_with(&cause) { message } else { format!("{message}: {cause}") }
    })
}

/// Joins the lines of a text that are not empty: `first / second`.
pub fn joined_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" / ")
}

/// Joins the words of a text with single spaces.
pub fn joined_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Appends a token to a JSON pointer, escaped by RFC 6901.
pub fn push_pointer_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Lists the first of `names`, and how many more there are.
pub fn listed(names: &[String], most: usize, separator: &str) -> String {
    let shown = &names[..names.len().min(most)];
    let text = shown.join(separator);
    match names.len() - shown.len() {
        0 => text,
        more => format!("{text}{separator}… and {more} more"),
    }
}

/// Returns `1 turn`, `3 turns`.
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Returns `17 bytes`, `812 KiB`, `1.2 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return counted(n, "byte");
    }
    let mut unit = 0;
    let mut tenths = n.saturating_mul(10) / 1024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, rest @ 1..) => format!("{whole}.{rest} {}", UNITS[unit]),
        (whole, _) => format!("{whole} {}", UNITS[unit]),
    }
}

/// Quotes a word for a shell, if necessary.
pub fn quoted(word: &str) -> String {
    // Lists harmless characters and not special ones: a forgotten one only gets needless quotes.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command as part of a sentence: its first line, shortened.
pub(crate) struct CommandPhrase<'c>(pub(crate) &'c str);

impl fmt::Display for CommandPhrase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Characters, so that the sentence around the command still fits one line.
        const LONGEST: usize = 60;
        let command = self.0.trim();
        let line = command.lines().next().unwrap_or_default();
        let cut = line.char_indices().nth(LONGEST).map_or(line.len(), |(cut, _)| cut);
        let more = if cut < command.len() { "…" } else { "" };
        write!(f, "`{}{more}`", &line[..cut])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_is_shortened_and_counted() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names, 3, ", "), "a, b, c");
        assert_eq!(listed(&names, 2, ", "), "a, b, … and 1 more");
        assert_eq!(listed(&[], 2, ", "), "");
    }

    #[test]
    fn long_text_is_shortened_at_a_character() {
        assert_eq!(excerpt("", 3), "");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(excerpt("äöüß", 3), "äöü…");
        assert_eq!(excerpt_bytes("äö", 4), "äö");
        assert_eq!(excerpt_bytes("äöü", 4), "äö…");
        assert_eq!(excerpt_bytes("äöü", 5), "äö…");
    }

    #[test]
    fn lines_and_words_are_joined() {
        let text = "\n  one two\n\n\tthree \n";
        assert_eq!(joined_lines(text), "one two / three");
        assert_eq!(joined_words(text), "one two three");
    }

    #[test]
    fn repeated_cause_appears_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{text}")]
        struct Layered {
            text: &'static str,
            source: Option<Box<Self>>,
        }
        let check = |texts: [&'static str; 3], expected: &str| {
            let [outer, middle, inner] = texts;
            let inner = Layered { text: inner, source: None };
            let middle = Layered { text: middle, source: Some(Box::new(inner)) };
            let outer = Layered { text: outer, source: Some(Box::new(middle)) };
            assert_eq!(with_causes(&outer), expected);
        };
        check(
            ["could not open a", "could not read b", "not found"],
            "could not open a: could not read b: not found",
        );
        check(
            ["could not read b: not found", "could not read b: not found", "not found"],
            "could not read b: not found",
        );
        // Only at the end: elsewhere the text of the cause may mean something else.
        check(
            ["could not open end", "could not read b", "open"],
            "could not open end: could not read b: open",
        );
    }

    #[test]
    fn pointer_tokens_are_escaped() {
        let mut pointer = "/a".to_owned();
        push_pointer_token(&mut pointer, "b/c~d");
        push_pointer_token(&mut pointer, "");
        assert_eq!(pointer, "/a/b~1c~0d/");
    }

    #[test]
    fn only_words_that_need_it_are_quoted() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("/a/b-c_d.zip", "/a/b-c_d.zip");
        check("/my flow", "'/my flow'");
        check("it's", r"'it'\''s'");
        check("", "''");
        check("$HOME", "'$HOME'");
    }

    #[test]
    fn sizes_have_the_unit_that_keeps_them_short() {
        let check = |n, expected: &str| assert_eq!(bytes(n), expected);
        check(0, "0 bytes");
        check(1, "1 byte");
        check(1023, "1023 bytes");
        check(1024, "1 KiB");
        check(1536, "1.5 KiB");
        check(812 * 1024, "812 KiB");
        check(1024 * 1024 - 1, "1023 KiB");
        check(5 << 30, "5 GiB");
        check(3000 << 40, "3000 TiB");
        check(u64::MAX, "1677721 TiB");
    }
}
