//! Halves of characters in a line.
//!
//! The client counts text in halves of characters, and may cut one in two. Its JSON then holds one
//! half alone, escaped, which no text can hold. It must not cost the line, which may be the result.

use std::borrow::Cow;

/// The same line, with U+FFFD for every half that stands alone.
pub(super) fn replace_lone_surrogates(line: &str) -> Cow<'_, str> {
    let mut fixed = String::new();
    let mut copied = 0;
    let mut rest = 0;
    while let Some(found) = line[rest..].find('\\') {
        let at = rest + found;
        // Whatever else is escaped is one byte.
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

/// How long `\ud83d` is.
const ESCAPE: usize = 6;

#[derive(PartialEq)]
enum Surrogate {
    High,
    Low,
}

/// The half that is escaped there, if one is.
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
    fn a_half_that_stands_alone_is_replaced() {
        let check =
            |line: &str, expected: &str| assert_eq!(replace_lone_surrogates(line), expected);
        check("", "");
        check(r#"{"a":"plain \n \u00e9 é"}"#, r#"{"a":"plain \n \u00e9 é"}"#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\uD83D\uDE00 \ud83d""#, r#""\uD83D\uDE00 \ufffd""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ud83d\n""#, r#""\ufffd\n""#);
        // An escaped backslash is no escape.
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
        check("\\", "\\");
        check("\\é\\ud83", "\\é\\ud83");
        check("\\u+d83", "\\u+d83");
    }

    #[test]
    fn every_code_unit_alone_or_in_pairs_can_be_read() {
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
