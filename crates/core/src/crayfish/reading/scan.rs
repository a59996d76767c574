//! The tokens of JSON: strings, numbers, literals and white space.
//!
//! The scanner is strict (RFC 8259) and reports the byte of a mistake, which the parser turns into
//! a line and a column.

use memchr::memchr2;
use serde_json::{Number, Value};

use super::{ReadingFault, Reason};

/// A position in a text.
pub(super) struct Scanner<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    /// Skips one ASCII byte.
    pub(super) fn advance(&mut self) {
        self.offset += 1;
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.advance();
        }
    }

    /// Skips `word` if the text continues with it, and returns whether it did.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let here = self.rest().starts_with(word);
        if here {
            self.offset += word.len();
        }
        here
    }

    pub(super) fn fault(&self, reason: Reason) -> ReadingFault {
        ReadingFault { offset: self.offset, reason }
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ReadingFault {
        self.fault(match self.rest().chars().next() {
            None => Reason::Ends(expected),
            Some(found) => Reason::Unexpected { expected, found },
        })
    }

    /// Reads a value that is not a container.
    pub(super) fn scalar(&mut self) -> Result<Value, ReadingFault> {
        match self.peek() {
            Some(b'"') => self.string("a string").map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word(),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self) -> Result<Value, ReadingFault> {
        // Take the whole word, so that the error quotes `NaN` or `undefined` and not one letter.
        let word = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = match word {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            word => return Err(self.fault(Reason::Word(word.to_owned()))),
        };
        self.offset += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Number, ReadingFault> {
        let number =
            self.run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
        let parsed = match number {
            // `-Infinity` is a word like `NaN`, but begins like a number.
            "-Infinity" => Err(Reason::Word(number.to_owned())),
            // The parsers of Rust accept more than JSON: `+1`, `1.`, `inf`.
            number if !is_number(number.as_bytes()) => Err(Reason::BadNumber(number.to_owned())),
            number => parse(number).ok_or_else(|| Reason::TooLarge(number.to_owned())),
        };
        let parsed = parsed.map_err(|reason| self.fault(reason))?;
        self.offset += number.len();
        Ok(parsed)
    }

    /// Reads a string with its quotes.
    pub(super) fn string(&mut self, expected: &'static str) -> Result<String, ReadingFault> {
        if !self.takes("\"") {
            return Err(self.unexpected(expected));
        }
        let mut text = self.piece()?.to_owned();
        while !self.takes("\"") {
            if !self.takes("\\") {
                return Err(self.fault(Reason::Ends("the closing `\"`")));
            }
            text.push(self.escaped()?);
            text.push_str(self.piece()?);
        }
        Ok(text)
    }

    /// Reads the part of a string up to the next escape or quote.
    fn piece(&mut self) -> Result<&'a str, ReadingFault> {
        let rest = self.rest();
        let stop = memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let piece = &rest[..stop];
        // The minimum of many bytes is found faster than the first small byte.
        if piece.bytes().fold(u8::MAX, u8::min) < 0x20 {
            self.offset += piece.bytes().take_while(|byte| *byte >= 0x20).count();
            return Err(self.fault(Reason::Control));
        }
        self.offset += stop;
        Ok(piece)
    }

    /// Reads the character of an escape, after its backslash.
    fn escaped(&mut self) -> Result<char, ReadingFault> {
        let start = self.offset - 1;
        let bad = |reason| ReadingFault { offset: start, reason };
        let Some(letter) = self.peek() else {
            return Err(self.fault(Reason::Ends("the rest of an escape")));
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.advance();
                let first = self.hex().ok_or_else(|| bad(Reason::BadEscape))?;
                return self.character(first).ok_or_else(|| bad(Reason::LoneSurrogate));
            }
            _ => return Err(bad(Reason::BadEscape)),
        };
        self.advance();
        Ok(plain)
    }

    /// Returns the character of a UTF-16 unit; a high surrogate needs the low one after it.
    fn character(&mut self, first: u32) -> Option<char> {
        if !(0xd800..0xdc00).contains(&first) {
            // A low surrogate alone is not a character, so `from_u32` refuses it.
            return char::from_u32(first);
        }
        if !self.takes("\\u") {
            return None;
        }
        let second = self.hex().filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        // `get` refuses to split a character; such a text has no four digits either.
        let digits = self.rest().get(..4)?;
        // `from_str_radix` alone would accept a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.offset += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Returns the longest text from here of wanted bytes, which must all be ASCII.
    fn run(&self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.offset..];
        let end = rest.bytes().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        &rest[..end]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }
}

/// Returns whether the bytes are `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
fn is_number(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let (whole, mut rest) = digits(bytes);
    if whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') {
        return false;
    }
    if let Some(after) = rest.strip_prefix(b".") {
        let (fraction, after) = digits(after);
        if fraction.is_empty() {
            return false;
        }
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let sign = after.strip_prefix(b"+").or_else(|| after.strip_prefix(b"-"));
        let (exponent, after) = digits(sign.unwrap_or(after));
        if exponent.is_empty() {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len()))
}

/// Returns the value of a number, or `None` if it does not fit. `-0` is a float to keep its sign.
fn parse(number: &str) -> Option<Number> {
    if number != "-0" {
        if let Ok(whole) = number.parse::<u64>() {
            return Some(whole.into());
        }
        if let Ok(whole) = number.parse::<i64>() {
            return Some(whole.into());
        }
    }
    number.parse().ok().and_then(Number::from_f64)
}
