//! Strict reading of JSON text.
//!
//! The result is an ordinary [`Value`]. The reader accepts the same texts as `serde_json`, with two
//! exceptions. A repeated key is an error, because half of the object would be lost. The depth
//! limit is [`LEVELS`] or a little more, not 128. Every error names line, column and JSON pointer.
//! Nothing here recurses and time is linear, so hostile text costs no more than its length. Numbers
//! beyond 64 bits become the nearest float; those beyond a float are errors.

use serde_json::{Map, Value};

use super::problem::{Problem, quoted};
use super::problem_code::ProblemCode;
use crate::text::push_pointer_token;
pub use places::places;
use scan::Scanner;

mod places;
mod scan;
#[cfg(test)]
pub(super) mod tests;

/// How many arrays and objects of a value may be nested.
///
/// Reading needs no stack, but copying, comparing, printing and dropping a [`Value`] do: up to
/// 1.3 KiB a level without optimisation. This many levels leave a quarter of a 2 MiB stack free,
/// and are enough for the deepest valid document with a deep schema in its innermost step.
pub const LEVELS: usize = 1_200;

/// The role of a text. Each role contains the one before it, so a text read once can be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A value: a document, a variable, a result or an answer.
    Value,
    /// A request, with values inside.
    Request,
    /// A journal record, with parts of requests inside.
    Record,
}

impl Holds {
    /// Returns how many levels such a text may have.
    pub const fn levels(self) -> usize {
        match self {
            Self::Value => LEVELS,
            // A request adds a few levels around its values, and a record a few around a request.
            Self::Request => LEVELS + 16,
            Self::Record => LEVELS + 32,
        }
    }
}

/// The error for a text that is not strict JSON, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct UnreadableJson {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The offset in bytes, from 0.
    pub offset: usize,
    /// The JSON pointer of the value that was being read, or of a repeated key.
    pub pointer: String,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("this is not UTF-8")]
    NotUtf8,
    #[error("the text begins with a byte order mark, which JSON does not have")]
    ByteOrderMark,
    #[error("the text ends where {0} is expected")]
    Ends(&'static str),
    #[error("{expected} is expected here, not {found}", found = quoted(&.found.to_string()))]
    Unexpected { expected: &'static str, found: char },
    /// A word of JavaScript or Python that JSON does not have.
    #[error("{word} is not JSON", word = quoted(.0))]
    Word(String),
    /// A number that breaks the grammar, such as `01` or `1.`.
    #[error("{number} is not a JSON number", number = quoted(.0))]
    BadNumber(String),
    /// A number that is too large for 64-bit floating point.
    #[error("the number {number} is too large", number = quoted(.0))]
    TooLarge(String),
    #[error("a control character in a string must be written as an escape")]
    Control,
    #[error("this escape does not exist in JSON")]
    BadEscape,
    #[error("this escape is half of a character: a lone surrogate")]
    LoneSurrogate,
    #[error("the key {key} appears twice in this object", key = quoted(.0))]
    DuplicateKey(String),
    #[error("arrays and objects are nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("there is more text after the JSON value")]
    Trailing,
}

impl Reason {
    /// Returns the stable code of the problem.
    pub fn code(&self) -> ProblemCode {
        match self {
            Self::NotUtf8 => ProblemCode::NotUtf8,
            Self::DuplicateKey(_) => ProblemCode::DuplicateKey,
            Self::TooDeep(_) => ProblemCode::TooDeep,
            Self::TooLarge(_) => ProblemCode::OutOfRange,
            Self::ByteOrderMark
            | Self::Ends(_)
            | Self::Unexpected { .. }
            | Self::Word(_)
            | Self::BadNumber(_)
            | Self::Control
            | Self::BadEscape
            | Self::LoneSurrogate
            | Self::Trailing => ProblemCode::NotJson,
        }
    }
}

impl From<UnreadableJson> for Problem {
    fn from(bad: UnreadableJson) -> Self {
        let message = bad.to_string();
        Self::new(bad.pointer, bad.reason.code(), message)
    }
}

/// Reads bytes that contain exactly one JSON value.
pub fn read(bytes: &[u8]) -> Result<Value, UnreadableJson> {
    read_as(Holds::Value, bytes)
}

/// Reads a text that contains exactly one JSON value.
pub fn read_text(text: &str) -> Result<Value, UnreadableJson> {
    read_text_as(Holds::Value, text)
}

/// Reads bytes of a role, with its depth limit.
pub fn read_as(holds: Holds, bytes: &[u8]) -> Result<Value, UnreadableJson> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text_as(holds, text),
        Err(bad) => {
            // The prefix is valid, so nothing in it is replaced and its length is the offset.
            let valid = String::from_utf8_lossy(&bytes[..bad.valid_up_to()]);
            Err(unreadable(&valid, valid.len(), &[], Reason::NotUtf8))
        }
    }
}

fn read_text_as(holds: Holds, text: &str) -> Result<Value, UnreadableJson> {
    let mut reader = Reader { scanner: Scanner::new(text), open: Vec::new(), most: holds.levels() };
    reader
        .document()
        .map_err(|ReadingFault { offset, reason }| unreadable(text, offset, &reader.open, reason))
}

/// A reason, and the byte offset it applies to.
#[derive(Debug)]
struct ReadingFault {
    offset: usize,
    reason: Reason,
}

/// A container that is not closed yet, with its content so far.
enum Open {
    Array(Vec<Value>),
    /// The key is the one whose value is being read; `None` between two values.
    Object(Map<String, Value>, Option<String>),
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    open: Vec<Open>,
    most: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, ReadingFault> {
        if self.scanner.takes("\u{feff}") {
            return Err(ReadingFault { offset: 0, reason: Reason::ByteOrderMark });
        }
        loop {
            let Some(mut value) = self.begin()? else { continue };
            // A value may complete its container, which is then a value to place itself.
            loop {
                match self.place(value)? {
                    Placed::Next => break,
                    Placed::Closed(container) => value = container,
                    Placed::Whole(whole) => return Ok(whole),
                }
            }
        }
    }

    /// Reads a value; `None` if it opened a container whose first item comes next.
    fn begin(&mut self) -> Result<Option<Value>, ReadingFault> {
        self.scanner.skip_space();
        let opened = match self.scanner.peek() {
            Some(b'[') => Open::Array(Vec::new()),
            Some(b'{') => Open::Object(Map::new(), None),
            _ => return self.scanner.scalar().map(Some),
        };
        // The limit protects later copies and drops of the value, which do recurse.
        if self.open.len() == self.most {
            return Err(self.scanner.fault(Reason::TooDeep(self.most)));
        }
        self.scanner.advance();
        self.scanner.skip_space();
        match opened {
            Open::Array(items) if self.scanner.takes("]") => Ok(Some(Value::Array(items))),
            Open::Object(fields, _) if self.scanner.takes("}") => Ok(Some(Value::Object(fields))),
            opened @ (Open::Array(_) | Open::Object(..)) => {
                self.open.push(opened);
                self.key()?;
                Ok(None)
            }
        }
    }

    /// Puts a finished value into its container and reads the separator after it.
    fn place(&mut self, value: Value) -> Result<Placed, ReadingFault> {
        self.scanner.skip_space();
        let (close, expected) = match self.open.last_mut() {
            None => return self.end(value),
            Some(Open::Array(items)) => {
                items.push(value);
                ("]", "`,` or `]`")
            }
            Some(Open::Object(fields, key)) => {
                fields.insert(key.take().unwrap_or_default(), value);
                ("}", "`,` or `}`")
            }
        };
        if self.scanner.takes(",") {
            self.scanner.skip_space();
            self.key()?;
            Ok(Placed::Next)
        } else if self.scanner.takes(close) {
            match self.open.pop() {
                Some(Open::Array(items)) => Ok(Placed::Closed(Value::Array(items))),
                Some(Open::Object(fields, _)) => Ok(Placed::Closed(Value::Object(fields))),
                // Cannot happen: a container was found above.
                None => Ok(Placed::Next),
            }
        } else {
            Err(self.scanner.unexpected(expected))
        }
    }

    /// Reads the next key and its colon, if the innermost container is an object.
    fn key(&mut self) -> Result<(), ReadingFault> {
        let Some(Open::Object(fields, key)) = self.open.last_mut() else {
            return Ok(());
        };
        // The error points at the beginning of the repeated key.
        let offset = self.scanner.offset();
        let read = key.insert(self.scanner.string("a key in double quotes")?);
        if fields.contains_key(read) {
            return Err(ReadingFault { offset, reason: Reason::DuplicateKey(read.clone()) });
        }
        self.scanner.skip_space();
        if self.scanner.takes(":") { Ok(()) } else { Err(self.scanner.unexpected("`:`")) }
    }

    fn end(&mut self, value: Value) -> Result<Placed, ReadingFault> {
        match self.scanner.peek() {
            None => Ok(Placed::Whole(value)),
            Some(_) => Err(self.scanner.fault(Reason::Trailing)),
        }
    }
}

/// The place where a finished value went.
enum Placed {
    /// Into a container that has more items.
    Next,
    /// Into a container that it completed.
    Closed(Value),
    /// Nowhere: it is the whole document.
    Whole(Value),
}

fn unreadable(text: &str, offset: usize, open: &[Open], reason: Reason) -> UnreadableJson {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let mut pointer = String::new();
    for container in open {
        match container {
            Open::Array(items) => push_pointer_token(&mut pointer, &items.len().to_string()),
            Open::Object(_, Some(key)) => push_pointer_token(&mut pointer, key),
            Open::Object(_, None) => {}
        }
    }
    UnreadableJson {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        offset,
        pointer,
        reason,
    }
}
