//! Strict reading of JSON text.
//!
//! The result is an ordinary [`Value`]; what `serde_json` accepts is accepted, but for two things:
//! a key that stands twice in an object is an error, because half of what was written would be
//! lost, and the limit is [`LEVELS`] levels or some more instead of 128. Every fault names line, column and the
//! JSON pointer of the value it stands in. Nothing here recurses, and time is linear, so hostile
//! text costs no more than its length. Numbers beyond 64 bits are floating point, rounded to the
//! nearest; those that do not fit there either are errors.

use serde_json::{Map, Value};

use super::problem::{Problem, push_token, quoted};
use super::problem_code::ProblemCode;
pub use places::places;
use scan::Scanner;

mod places;
mod scan;
#[cfg(test)]
pub(super) mod tests;

/// How many arrays and objects of a value may stand inside each other.
///
/// Reading needs no stack, but copying, comparing, printing and dropping a [`Value`] do: up to
/// 1.3 KiB a level without optimisation. So many levels leave a quarter of a stack of 2 MiB free,
/// and hold the deepest document there is with a deep schema in its innermost step.
pub const LEVELS: usize = 1_200;

/// What a text holds. Each holds the one before it, so whatever was read once can be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A value: a document, a variable, what a step left, what was answered.
    Value,
    /// A request, with values in it.
    Request,
    /// A record of ours, with what came in requests.
    Record,
}

impl Holds {
    /// How many levels such a text may have.
    pub const fn levels(self) -> usize {
        match self {
            Self::Value => LEVELS,
            Self::Request => LEVELS + 16,
            Self::Record => LEVELS + 32,
        }
    }
}

/// The text is not strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct Unreadable {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// In bytes, from 0.
    pub offset: usize,
    /// The JSON pointer of the value that was being read; of the key, when it stands twice.
    pub pointer: String,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with a text that should be JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Bytes that are not UTF-8.
    #[error("this is not UTF-8")]
    NotUtf8,
    /// A byte order mark.
    #[error("the text begins with a byte order mark, which JSON does not have")]
    ByteOrderMark,
    /// The text ends too early.
    #[error("the text ends where {0} is expected")]
    Ends(&'static str),
    /// Something else stands here.
    #[error("{expected} is expected here, not {found}", found = quoted(&.found.to_string()))]
    Unexpected {
        /// What the grammar wants.
        expected: &'static str,
        /// What stands there.
        found: char,
    },
    /// A word that JavaScript or Python has and JSON has not.
    #[error("{word} is not JSON", word = quoted(.0))]
    Word(String),
    /// A number that breaks the grammar, such as `01` or `1.`.
    #[error("{number} is not a JSON number", number = quoted(.0))]
    BadNumber(String),
    /// A number that is too large for 64-bit floating point.
    #[error("the number {number} is too large", number = quoted(.0))]
    TooLarge(String),
    /// A control character that was not escaped.
    #[error("a control character in a string must be written as an escape")]
    Control,
    /// A backslash with something after it that means nothing.
    #[error("this escape does not exist in JSON")]
    BadEscape,
    /// Half of a surrogate pair.
    #[error("this escape is half of a character: a lone surrogate")]
    LoneSurrogate,
    /// A key that the object has already.
    #[error("the key {key} stands twice in this object", key = quoted(.0))]
    DuplicateKey(String),
    /// More than so many levels.
    #[error("more than {0} arrays and objects stand inside each other")]
    TooDeep(usize),
    /// Something after the value.
    #[error("there is more text after the JSON value")]
    Trailing,
}

impl Reason {
    /// The stable code.
    pub fn flaw(&self) -> ProblemCode {
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

/// As one of the things that are wrong with a request.
impl From<Unreadable> for Problem {
    fn from(bad: Unreadable) -> Self {
        let message = bad.to_string();
        Self::new(bad.pointer, bad.reason.flaw(), message)
    }
}

/// Reads bytes that hold exactly one JSON value.
pub fn read(bytes: &[u8]) -> Result<Value, Unreadable> {
    read_as(Holds::Value, bytes)
}

/// Reads a text that holds exactly one JSON value.
pub fn read_text(text: &str) -> Result<Value, Unreadable> {
    read_text_as(Holds::Value, text)
}

/// Reads bytes that hold exactly one of these.
pub fn read_as(holds: Holds, bytes: &[u8]) -> Result<Value, Unreadable> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text_as(holds, text),
        Err(bad) => {
            let valid = String::from_utf8_lossy(&bytes[..bad.valid_up_to()]);
            Err(unreadable(&valid, valid.len(), &[], Reason::NotUtf8))
        }
    }
}

fn read_text_as(holds: Holds, text: &str) -> Result<Value, Unreadable> {
    let mut reader = Reader { scanner: Scanner::new(text), open: Vec::new(), most: holds.levels() };
    reader
        .document()
        .map_err(|Fault { offset, reason }| unreadable(text, offset, &reader.open, reason))
}

/// A reason, and the byte it is about.
#[derive(Debug)]
struct Fault {
    offset: usize,
    reason: Reason,
}

/// A container that is not closed yet, with what it holds so far.
enum Open {
    Array(Vec<Value>),
    /// The key is the one whose value is being read; none between two of them.
    Object(Map<String, Value>, Option<String>),
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    open: Vec<Open>,
    most: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Fault> {
        if self.scanner.takes("\u{feff}") {
            return Err(Fault { offset: 0, reason: Reason::ByteOrderMark });
        }
        loop {
            let Some(mut value) = self.begin()? else { continue };
            // Every container that this value completes is a value in its turn.
            loop {
                match self.place(value)? {
                    Placed::Next => break,
                    Placed::Closed(container) => value = container,
                    Placed::Whole(whole) => return Ok(whole),
                }
            }
        }
    }

    /// Reads a value; none when a container was opened whose first item comes next.
    fn begin(&mut self) -> Result<Option<Value>, Fault> {
        self.scanner.skip_space();
        let opened = match self.scanner.peek() {
            Some(b'[') => Open::Array(Vec::new()),
            Some(b'{') => Open::Object(Map::new(), None),
            _ => return self.scanner.scalar().map(Some),
        };
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

    /// Puts a finished value where it belongs and reads what follows it.
    fn place(&mut self, value: Value) -> Result<Placed, Fault> {
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
                None => Ok(Placed::Next),
            }
        } else {
            Err(self.scanner.unexpected(expected))
        }
    }

    /// In an object: reads the next key and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        let Some(Open::Object(fields, key)) = self.open.last_mut() else {
            return Ok(());
        };
        let offset = self.scanner.offset();
        let read = key.insert(self.scanner.string("a key in double quotes")?);
        if fields.contains_key(read) {
            return Err(Fault { offset, reason: Reason::DuplicateKey(read.clone()) });
        }
        self.scanner.skip_space();
        if self.scanner.takes(":") { Ok(()) } else { Err(self.scanner.unexpected("`:`")) }
    }

    fn end(&mut self, value: Value) -> Result<Placed, Fault> {
        match self.scanner.peek() {
            None => Ok(Placed::Whole(value)),
            Some(_) => Err(self.scanner.fault(Reason::Trailing)),
        }
    }
}

/// Where a finished value went.
enum Placed {
    /// Into a container that goes on.
    Next,
    /// Into a container that it completed.
    Closed(Value),
    /// Nowhere: it is the document.
    Whole(Value),
}

fn unreadable(text: &str, offset: usize, open: &[Open], reason: Reason) -> Unreadable {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let mut pointer = String::new();
    for container in open {
        match container {
            Open::Array(items) => push_token(&mut pointer, &items.len().to_string()),
            Open::Object(_, Some(key)) => push_token(&mut pointer, key),
            Open::Object(_, None) => {}
        }
    }
    Unreadable {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        offset,
        pointer,
        reason,
    }
}
