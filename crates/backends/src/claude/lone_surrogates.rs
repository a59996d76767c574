//! Lone surrogates in the JSON of the client.
//!
//! The client measures text in UTF-16 code units and may cut a character in two. Its JSON then
//! contains a lone escaped surrogate, which no Rust string can represent. Without this module such
//! a line, perhaps the result, would be unreadable.

use std::borrow::Cow;

/// Returns the line with U+FFFD in place of every lone surrogate.
pub(super) fn replace_lone_surrogates(line: &str) -> Cow<'_, str> {
    let mut fixed = String::new();
    let mut copied = 0;
    let mut rest = 0;
    while let Some(found) = line[rest..].find('\\') {
        let at = rest + found;
        // Every other escape continues after the next byte.
        rest = match surrogate_at(line, at) {
            None => (at + 2).min(line.len()),
            Some(Surrogate::High) if surrogate_at(line, at + ESCAPE) == Some(Surrogate::Low) => {
                at + 2 * ESCAPE
            }
            Some(Surrogate::High | Surrogate::Low) => {
                fixed.push_str(&line[copied..at]);
                fixed.push_str("\\ufffd");
                copied = at + ESCAPE;
                copied
            }
        };
        // The byte after a backslash may be the start of a longer character.
        while !line.is_char_boundary(rest) {
            rest += 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(line);
    }
    fixed.push_str(&line[copied..]);
    Cow::Owned(fixed)
}

/// The length of `\ud83d` in bytes.
const ESCAPE: usize = 6;

#[derive(PartialEq)]
enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate that is escaped at this position, if there is one.
fn surrogate_at(line: &str, at: usize) -> Option<Surrogate> {
    let digits = line.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogate_is_replaced() {
        let check =
            |line: &str, expected: &str| assert_eq!(replace_lone_surrogates(line), expected);
        check("", "");
        check(r#"{"a":"plain \n \u00e9 é"}"#, r#"{"a":"plain \n \u00e9 é"}"#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\uD83D\uDE00 \ud83d""#, r#""\uD83D\uDE00 \ufffd""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ud83d\n""#, r#""\ufffd\n""#);
        // An escaped backslash does not start an escape.
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
        check("\\", "\\");
        check("\\é\\ud83", "\\é\\ud83");
        check("\\u+d83", "\\u+d83");
    }

    #[test]
    fn every_code_unit_can_be_read() {
        for first in (0..=0xffff_u32).step_by(0x80) {
            for second in [0x41, 0xd83d, 0xde00] {
                let line = format!("\"\\u{first:04x}\\u{second:04x}\"");
                let read = serde_json::from_str::<String>(&replace_lone_surrogates(&line));
                let units = [first, second].map(|unit| u16::try_from(unit).unwrap());
                assert_eq!(read.unwrap(), String::from_utf16_lossy(&units), "{line}");
            }
        }
    }
}
