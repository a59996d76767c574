//! Paths: `$.vars.a.b[0]` into the namespaces of a step, and `$.a[0]` into one value.
//!
//! A key has letters, digits, `_` and `-`; an index is a whole number in brackets. A [`Path`]
//! always names a value inside a namespace: no path names a namespace as a whole. Templates
//! write the same path without its `$.`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::problem::{meant, quoted};
use super::problem_code::ProblemCode;

#[cfg(test)]
mod tests;

/// The values that a step can read, by name.
pub trait Namespaces {
    /// Returns the stored value of `name` in `root`.
    fn named(&self, root: Namespace, name: &str) -> Option<&Value>;

    /// Returns the value at the end of a path. A value that is not stored is built.
    fn lookup(&self, path: &Path) -> Option<Cow<'_, Value>> {
        walk(self.named(path.root, &path.name)?, &path.rest).map(Cow::Borrowed)
    }
}

/// The first part of a path, which names where its value is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespace {
    /// Variables of the workflow and of the request.
    Vars,
    /// Results of earlier steps, by step id.
    Results,
    /// Variables bound by the enclosing `forEach` steps.
    Locals,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// `.key` of an object.
    Key(String),
    /// `[n]` of an array.
    Index(usize),
}

/// The key under which a loop has the results of its iterations.
pub const ITEMS: &str = "items";

impl Segment {
    pub fn is_key(&self, wanted: &str) -> bool {
        matches!(self, Self::Key(key) if key == wanted)
    }

    /// Returns the part of a value that the segment leads to.
    pub fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match (self, value) {
            (Self::Key(key), Value::Object(fields)) => fields.get(key),
            (Self::Index(index), Value::Array(items)) => items.get(*index),
            // No conversion: a key does not select from an array, nor an index from an object.
            _ => None,
        }
    }
}

/// A path from a namespace: `$.results.fetch.json.items[0]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    pub root: Namespace,
    /// The variable, step or local in the namespace.
    pub name: String,
    /// The path inside its value.
    pub rest: Vec<Segment>,
}

/// A path from a value: `$` is the value itself, `$.a[0]` a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ValuePath(pub Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It has the wrong prefix.
    #[error("{path} is not a path: it must begin with {begin}", path = quoted(.path))]
    Beginning {
        path: String,
        /// The required prefix.
        begin: &'static str,
    },
    /// Its first key is not a namespace.
    #[error(
        "{path} names the unknown namespace {root}: there are `vars`, `results` and `locals`{meant}",
        path = quoted(.path), root = quoted(.root), meant = meant(.root, Namespace::NAMES)
    )]
    UnknownRoot { path: String, root: String },
    /// It names a namespace as a whole.
    #[error(
        "{path} must name something in `{root}`, such as `{root}.x`", path = quoted(.path)
    )]
    NoName { path: String, root: Namespace },
    /// Something in it is neither a key nor an index.
    #[error(
        "{path} is not a path from its character {at} on: `.key` or `[n]` is expected, \
         a key has letters, digits, `_` and `-`", path = quoted(.path)
    )]
    Syntax {
        path: String,
        /// The position in characters, from 1.
        at: usize,
    },
}

impl BadPath {
    /// Returns the stable code of the problem.
    pub fn code(&self) -> ProblemCode {
        match self {
            Self::UnknownRoot { .. } => ProblemCode::UnknownNamespace,
            Self::Beginning { .. } | Self::NoName { .. } | Self::Syntax { .. } => {
                ProblemCode::BadPath
            }
        }
    }
}

impl Namespace {
    /// The namespaces as a document spells them.
    pub const NAMES: [&'static str; 3] = ["vars", "results", "locals"];

    pub fn of(name: &str) -> Option<Self> {
        match name {
            "vars" => Some(Self::Vars),
            "results" => Some(Self::Results),
            "locals" => Some(Self::Locals),
            _ => None,
        }
    }
}

impl Path {
    /// Returns the value at the end of this path.
    pub fn lookup<'a>(&self, names: &'a dyn Namespaces) -> Option<Cow<'a, Value>> {
        names.lookup(self)
    }

    /// Returns whether the path leads to the items of a loop, or into them.
    pub fn leads_to_items(&self) -> bool {
        let first = self.rest.first();
        self.root == Namespace::Results && first.is_some_and(|first| first.is_key(ITEMS))
    }

    /// Returns the path as templates spell it, without the `$.`.
    pub fn expression(&self) -> String {
        self.to_string().split_off("$.".len())
    }

    /// Builds the path of a scanned expression such as `vars.a[0]`; `path` is its text for errors.
    pub(super) fn from_segments(path: &str, segments: Vec<Segment>) -> Result<Self, BadPath> {
        let path = || path.to_owned();
        let mut segments = segments.into_iter();
        let root = match segments.next() {
            Some(Segment::Key(root)) => {
                Namespace::of(&root).ok_or_else(|| BadPath::UnknownRoot { path: path(), root })?
            }
            Some(Segment::Index(_)) | None => return Err(beginning(path())),
        };
        match segments.next() {
            Some(Segment::Key(name)) => Ok(Self { root, name, rest: segments.collect() }),
            Some(Segment::Index(_)) | None => Err(BadPath::NoName { path: path(), root }),
        }
    }
}

impl ValuePath {
    /// Returns the value at the end of this path from `value`.
    pub fn lookup<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        walk(value, &self.0)
    }
}

fn walk<'a>(value: &'a Value, segments: &[Segment]) -> Option<&'a Value> {
    segments.iter().try_fold(value, |value, segment| segment.of(value))
}

fn beginning(path: String) -> BadPath {
    BadPath::Beginning { path, begin: "`$.vars`, `$.results` or `$.locals`" }
}

impl FromStr for Path {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let Some(rest) = text.strip_prefix('$').filter(|rest| rest.starts_with('.')) else {
            return Err(beginning(text.to_owned()));
        };
        Self::from_segments(text, all_segments(text, rest)?)
    }
}

impl FromStr for ValuePath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let Some(rest) = text.strip_prefix('$') else {
            return Err(BadPath::Beginning { path: text.to_owned(), begin: "`$`" });
        };
        all_segments(text, rest).map(Self)
    }
}

fn all_segments(text: &str, rest: &str) -> Result<Vec<Segment>, BadPath> {
    let (segments, left) = segments(rest);
    if left.is_empty() {
        return Ok(segments);
    }
    // The message counts characters, not bytes.
    let at = text[..text.len() - left.len()].chars().count() + 1;
    Err(BadPath::Syntax { path: text.to_owned(), at })
}

/// Splits the segments at the beginning of `text` from the rest.
pub(super) fn segments(text: &str) -> (Vec<Segment>, &str) {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((segment, left)) = segment(rest) {
        found.push(segment);
        rest = left;
    }
    (found, rest)
}

fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let (key, rest) = key(rest)?;
        return Some((Segment::Key(key.to_owned()), rest));
    }
    let inside = text.strip_prefix('[')?;
    let (digits, rest) = inside.split_at(inside.find(|c: char| !c.is_ascii_digit())?);
    // Leading zeros are refused so that each element has exactly one path.
    let canonical = digits == "0" || !digits.starts_with('0');
    let index = digits.parse().ok().filter(|_| canonical)?;
    Some((Segment::Index(index), rest.strip_prefix(']')?))
}

/// Splits the key at the beginning of `text` from the rest.
pub(super) fn key(text: &str) -> Option<(&str, &str)> {
    let end =
        text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    (!key.is_empty() && !key.starts_with('-')).then_some((key, rest))
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vars => "vars",
            Self::Results => "results",
            Self::Locals => "locals",
        })
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, ".{key}"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$.{}.{}", self.root, self.name)?;
        self.rest.iter().try_for_each(|segment| write!(f, "{segment}"))
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|segment| write!(f, "{segment}"))
    }
}
