//! JSON pointers, and their spelling in the fragment of a reference.

use std::fmt::Write as _;

/// Appends a segment to a pointer.
pub(crate) fn join(base: &str, segment: &str) -> String {
    // `~` first: the other order would escape the `~` of `~1` again.
    format!("{base}/{}", segment.replace('~', "~0").replace('/', "~1"))
}

/// Splits the first segment, still escaped, from a pointer.
pub(crate) fn split_first(pointer: &str) -> Option<(&str, &str)> {
    let rest = pointer.strip_prefix('/')?;
    Some(rest.find('/').map_or((rest, ""), |at| rest.split_at(at)))
}

/// Returns a pointer as a reference within the document: `#/…`.
pub(crate) fn fragment(pointer: &str) -> String {
    let mut text = String::from("#");
    for byte in pointer.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@?".contains(&byte);
        if plain {
            text.push(char::from(byte));
        } else {
            let _writing_to_a_string_cannot_fail = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Decodes a percent-encoded text; `None` if it is malformed.
pub(crate) fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        // `from_str_radix` also takes a sign: `%+1` is not an escape.
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_pointer_survives_its_fragment() {
        let check = |segments: &[&str], expected: &str| {
            let pointer = segments.iter().fold(String::new(), |base, segment| join(&base, segment));
            assert_eq!(fragment(&pointer), expected);
            assert_eq!(decode(&expected[1..]), Some(pointer));
        };
        check(&[], "#");
        check(&["$defs", "A"], "#/$defs/A");
        check(&["a/b", "c~d", ""], "#/a~1b/c~0d/");
        check(&["100% \u{e9}\"#"], "#/100%25%20%C3%A9%22%23");
    }

    #[test]
    fn a_broken_fragment_is_not_read() {
        for text in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
