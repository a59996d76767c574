//! One line of a journal: a JSON object whose last field is a checksum, chained to the line before.
//!
//! `{"seq":1}` becomes `{"seq":1,"sum":"<32 hex digits>"}` and a newline. The checksum is the first
//! 16 bytes of BLAKE3 over the digits of the previous checksum and the original body. The first
//! line is chained to [`Sum::NONE`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The hexadecimal digits of a checksum: 128 bits, so an accidental match is practically
/// impossible.
const DIGITS: usize = 32;
// The checksum is the last field, so it can be added and removed without parsing the JSON.
const BEFORE: &[u8] = b",\"sum\":\"";
const AFTER: &[u8] = b"\"}";
/// The length in bytes of the text that replaces the last brace of a body.
pub(super) const SUFFIX: usize = BEFORE.len() + DIGITS + AFTER.len();

/// The checksum of a line and of all lines before it. It prints as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Sum([u8; DIGITS]);

impl Sum {
    /// The value to which the first line is chained.
    pub const NONE: Self = Self([b'0'; DIGITS]);

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    fn of(bytes: &[u8]) -> Self {
        let hex = blake3::hash(bytes).to_hex();
        let mut digits = [0; DIGITS];
        digits.copy_from_slice(&hex.as_bytes()[..DIGITS]);
        Self(digits)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not a checksum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sum of 32 hexadecimal digits")]
pub struct BadSum(String);

impl FromStr for Sum {
    type Err = BadSum;

    fn from_str(text: &str) -> Result<Self, BadSum> {
        let bad = || BadSum(text.to_owned());
        let digits: [u8; DIGITS] = text.as_bytes().try_into().map_err(|_| bad())?;
        // Lower case only: a checksum has exactly one spelling, and is compared as text.
        let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if digits.iter().all(hex) { Ok(Self(digits)) } else { Err(bad()) }
    }
}

impl TryFrom<String> for Sum {
    type Error = BadSum;

    fn try_from(text: String) -> Result<Self, BadSum> {
        text.parse()
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        sum.as_str().to_owned()
    }
}

/// Why bytes cannot be a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    /// The bytes are not `{…}` with at least one field.
    #[error("a record must be a JSON object with at least one key")]
    NotAnObject,
    /// The bytes contain a newline or a NUL byte, by which recovery recognises a torn line.
    #[error("a record cannot contain a newline or a NUL byte")]
    Control,
}

/// The problem of a complete line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it does not end in a checksum")]
    Shape,
    /// The line, or a line before it, differs from what was written.
    #[error("its checksum is wrong")]
    Sum,
    /// A part of the line was never written, although other lines follow.
    #[error("a part of it is missing")]
    Hole,
}

/// Writes the line of `body`, with its newline, into `line`, and returns its checksum.
pub(super) fn seal(previous: &Sum, body: &[u8], line: &mut Vec<u8>) -> Result<Sum, BadBody> {
    let [b'{', inside @ .., b'}'] = body else {
        return Err(BadBody::NotAnObject);
    };
    // The checksum is added after a comma, which needs a field before it.
    if inside.trim_ascii().is_empty() {
        return Err(BadBody::NotAnObject);
    }
    if memchr::memchr2(b'\n', 0, body).is_some() {
        return Err(BadBody::Control);
    }
    line.clear();
    // The buffer first contains the bytes to hash, then the line: one buffer is enough for both.
    line.reserve(previous.0.len() + body.len() + SUFFIX);
    line.extend_from_slice(&previous.0);
    line.extend_from_slice(body);
    // The previous checksum is hashed first, so every line vouches for all lines before it.
    let sum = Sum::of(line);
    write(body, &sum, line);
    Ok(sum)
}

/// Writes the line of `body` into `line`, with a known checksum.
pub(super) fn write(body: &[u8], sum: &Sum, line: &mut Vec<u8>) {
    line.clear();
    line.extend_from_slice(&body[..body.len() - 1]);
    line.extend_from_slice(BEFORE);
    line.extend_from_slice(&sum.0);
    line.extend_from_slice(AFTER);
    line.push(b'\n');
}

/// Verifies a line without its newline, and changes its beginning into the body, which has
/// `line.len() - SUFFIX + 1` bytes.
pub(super) fn open(previous: &Sum, line: &mut [u8], scratch: &mut Vec<u8>) -> Result<Sum, Damage> {
    let at = line.len().checked_sub(SUFFIX).ok_or(Damage::Shape)?;
    let digits = line[at..]
        .strip_prefix(BEFORE)
        .and_then(|rest| rest.strip_suffix(AFTER))
        .ok_or(Damage::Shape)?;
    scratch.clear();
    scratch.extend_from_slice(&previous.0);
    scratch.extend_from_slice(&line[..at]);
    scratch.push(b'}');
    let sum = Sum::of(scratch);
    if digits != sum.0 {
        return Err(Damage::Sum);
    }
    // The body ends where the checksum begins: its last brace is restored in place, without a copy.
    line[at] = b'}';
    Ok(sum)
}

/// Returns the checksum inside a line that [`open`] has verified.
pub(super) fn sum(line: &[u8]) -> Sum {
    let end = line.len() - AFTER.len();
    let mut digits = [0; DIGITS];
    digits.copy_from_slice(&line[end - DIGITS..end]);
    Sum(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_its_body_with_chained_sum() {
        let mut line = Vec::new();
        let first = seal(&Sum::NONE, br#"{"a":1}"#, &mut line).unwrap();
        let hash = blake3::hash(format!("{}{}", "0".repeat(32), r#"{"a":1}"#).as_bytes());
        assert_eq!(first.as_str(), &hash.to_hex()[..32]);
        assert_eq!(format!("{first:?}"), first.as_str());
        assert_eq!(line, format!("{{\"a\":1,\"sum\":\"{first}\"}}\n").as_bytes());
        let second = seal(&first, br#"{"a":1}"#, &mut line).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn a_line_opens_to_its_body_and_sum() {
        let mut line = Vec::new();
        let sealed = seal(&Sum::NONE, br#"{"a":1}"#, &mut line).unwrap();
        line.pop();
        assert_eq!(open(&Sum::NONE, &mut line, &mut Vec::new()), Ok(sealed));
        assert_eq!(line[..=line.len() - SUFFIX], *br#"{"a":1}"#);
        assert_eq!(sum(&line), sealed);
    }

    #[test]
    fn a_body_is_one_line_of_json() {
        let check = |body: &[u8], expected| {
            let sealed = seal(&Sum::NONE, body, &mut Vec::new());
            assert_eq!(sealed.unwrap_err(), expected);
        };
        check(b"", BadBody::NotAnObject);
        check(b"{}", BadBody::NotAnObject);
        check(b"{ }", BadBody::NotAnObject);
        check(b"{\"a\":1", BadBody::NotAnObject);
        check(b"[1]", BadBody::NotAnObject);
        check(b"{\"a\":\n1}", BadBody::Control);
        check(b"{\"a\":\x00}", BadBody::Control);
    }

    #[test]
    fn a_changed_line_is_damaged() {
        let mut sealed = Vec::new();
        seal(&Sum::NONE, br#"{"a":1}"#, &mut sealed).unwrap();
        sealed.pop();
        let check = |change: fn(&mut Vec<u8>), expected| {
            let mut line = sealed.clone();
            change(&mut line);
            let opened = open(&Sum::NONE, &mut line, &mut Vec::new());
            assert_eq!(opened, Err(expected));
        };
        check(|line| line[5] = b'2', Damage::Sum);
        check(|line| line.truncate(7), Damage::Shape);
        check(|line| line.truncate(46), Damage::Shape);
        check(Vec::clear, Damage::Shape);
        let at = sealed.len() - 3;
        assert!(sealed[at].is_ascii_hexdigit());
        check(
            |line| {
                let at = line.len() - 3;
                line[at] ^= 1;
            },
            Damage::Sum,
        );
    }
}
