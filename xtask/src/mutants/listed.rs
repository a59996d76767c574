//! The mutants that there are, as cargo-mutants lists them.

use std::ops::Range;

use serde_json::Value;

/// A small change of the source.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// With file, line and column.
    pub(super) place: String,
    pub(super) file: String,
    pub(super) package: String,
    pub(super) genre: Genre,
    pub(super) replacement: String,
    start: Place,
    end: Place,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Genre {
    /// The body of a function.
    Body,
    Operator,
    /// An arm of a match, which goes away.
    Arm,
    Guard,
    /// A field that the rest of a struct stands in for.
    Field,
}

/// Both from 1, in characters.
#[derive(Debug, Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Mutant {
    pub(super) fn read(listed: &Value) -> Option<Self> {
        let text = |name: &str| listed[name].as_str().map(str::to_owned);
        Some(Self {
            place: text("name")?,
            file: text("file")?,
            package: text("package")?,
            genre: match listed["genre"].as_str()? {
                "FnValue" => Genre::Body,
                "BinaryOperator" | "UnaryOperator" => Genre::Operator,
                "MatchArm" => Genre::Arm,
                "MatchArmGuard" => Genre::Guard,
                "StructField" => Genre::Field,
                _ => return None,
            },
            replacement: text("replacement")?,
            start: Place::read(&listed["span"]["start"])?,
            end: Place::read(&listed["span"]["end"])?,
        })
    }

    /// What an explanation names: without line and column.
    pub(super) fn name(&self) -> String {
        let what = self.place.splitn(4, ':').nth(3).unwrap_or_default().trim();
        format!("{}: {what}", self.file)
    }

    /// The module of its crate that it stands in, as tests are named.
    pub(super) fn module(&self) -> String {
        let within = self.file.split_once("/src/").map_or("", |(_, within)| within);
        let first = within.split('/').next().unwrap_or_default();
        format!("{}::", first.trim_end_matches(".rs"))
    }

    /// The bytes of `text` that it replaces.
    pub(super) fn span(&self, text: &str) -> Option<Range<usize>> {
        Some(self.start.offset(text)?..self.end.offset(text)?)
    }
}

impl Place {
    fn read(place: &Value) -> Option<Self> {
        let number = |name: &str| usize::try_from(place[name].as_u64()?).ok();
        Some(Self { line: number("line")?, column: number("column")? })
    }

    fn offset(self, text: &str) -> Option<usize> {
        let before = text.split_inclusive('\n').take(self.line.checked_sub(1)?);
        let start: usize = before.map(str::len).sum();
        let line = text.get(start..)?;
        let (offset, _) = line.char_indices().nth(self.column.checked_sub(1)?)?;
        Some(start + offset)
    }
}
