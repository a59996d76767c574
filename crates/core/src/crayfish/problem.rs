//! Problems in a document or a request: a JSON pointer, a code and a message.
//!
//! A [`Report`] follows a reader through the JSON. It tracks the pointer of the current place,
//! collects every problem and sorts them into document order; beyond [`MOST`] it only counts. It
//! shortens every quotation, so no document can make its own report large.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::problem_code::ProblemCode;
use crate::text::{counted, excerpt_bytes, nearest, push_pointer_token};

/// How many problems are listed; one more says how many were left out.
pub const MOST: usize = 1_000;

/// The longest pointer in bytes; only hostile keys make a longer one, which is shortened.
pub const LONGEST_POINTER: usize = 16 * 1024;

/// How many names one report compares for "did you mean": a document full of mistakes must not
/// take longer than a correct one.
const COMPARED: usize = 100_000;

/// How many characters of the author's text a message quotes.
const QUOTED: usize = 60;

/// One problem at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// The JSON pointer (RFC 6901); empty for the whole document.
    pub path: String,
    /// The stable code. Old journals have none, so the default, which means "invalid by a schema",
    /// is never written.
    #[serde(default, skip_serializing_if = "ProblemCode::is_of_value")]
    pub code: ProblemCode,
    /// The message for people: lower case, no full stop.
    pub message: String,
    /// How many problems it stands for: one, except for a `MoreProblems`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: usize,
}

const fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_one(count: &usize) -> bool {
    *count == 1
}

impl Problem {
    /// Returns a problem that a schema found at a place of a value.
    pub fn of_value(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(path, ProblemCode::InvalidOutput, message)
    }

    /// Returns a problem at a pointer.
    pub fn new(path: impl Into<String>, code: ProblemCode, message: impl Into<String>) -> Self {
        // A pointer repeats the keys of the author, which may be of any length.
        let path = excerpt_bytes(path.into(), LONGEST_POINTER).into_owned();
        Self { path, code, message: message.into(), count: 1 }
    }

    /// Returns the entry that stands for `count` problems which are not listed.
    pub fn more(count: usize) -> Self {
        let message = format!("there are {count} more problems");
        Self { count, ..Self::new("", ProblemCode::MoreProblems, message) }
    }

    /// Returns the problem as callers read it; the code is always present.
    pub fn to_json(&self) -> Value {
        json!({ "path": self.path, "code": self.code.as_str(), "message": self.message })
    }
}

// One line for a reader: `/steps/0/id: message`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// The problems found so far, and the place that is being checked.
#[derive(Debug, Default)]
pub struct Report {
    pointer: String,
    chapter: u32,
    found: Vec<(u32, Problem)>,
    left_out: usize,
    compared: usize,
}

impl Report {
    /// Returns an empty report at the root.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `; did you mean `x`?` if a candidate is near and the report may still compare names.
    pub fn meant<'a>(&mut self, word: &str, among: impl IntoIterator<Item = &'a str>) -> String {
        let mut compared = 0;
        // One budget for the whole report: many unknown names times many candidates would be
        // quadratic.
        let left = COMPARED.saturating_sub(self.compared);
        let found = meant(word, among.into_iter().take(left).inspect(|_| compared += 1));
        self.compared += compared;
        found
    }

    /// Adds a problem at the current place.
    pub fn add(&mut self, code: ProblemCode, message: impl Into<String>) {
        // Keep twice as many as are listed: a problem found late may belong to an early chapter.
        if self.found.len() >= 2 * MOST {
            self.left_out += 1;
        } else {
            self.insist(code, message);
        }
    }

    /// Adds a problem even when there are already too many.
    pub(super) fn insist(&mut self, code: ProblemCode, message: impl Into<String>) {
        self.found.push((self.chapter, Problem::new(&self.pointer, code, message)));
    }

    /// Adds a problem at `key` of the current place.
    pub fn add_at(&mut self, key: &str, code: ProblemCode, message: impl Into<String>) {
        self.under(key, |report| report.add(code, message));
    }

    /// Calls `look` with `key` of the current place as the current place.
    pub fn under<T>(&mut self, key: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.enter(key);
        let seen = look(self);
        self.leave(length);
        seen
    }

    /// Moves to `key` of the current place; pass the returned length to `leave`.
    pub(super) fn enter(&mut self, key: &str) -> usize {
        let length = self.pointer.len();
        push_pointer_token(&mut self.pointer, key);
        length
    }

    /// Moves back to the place where `enter` was called.
    pub(super) fn leave(&mut self, length: usize) {
        self.pointer.truncate(length);
    }

    /// Calls `look` with the item `index` of the current place as the current place.
    pub fn item<T>(&mut self, index: usize, look: impl FnOnce(&mut Self) -> T) -> T {
        self.under(&index.to_string(), look)
    }

    /// Starts a chapter. Problems are sorted by chapter, then by the order in which they were
    /// found.
    pub(super) fn chapter(&mut self, chapter: u32) {
        self.chapter = chapter;
    }

    /// Moves to an unrelated place.
    pub(super) fn turn_to(&mut self, chapter: u32, pointer: &str) {
        self.chapter = chapter;
        self.pointer.clear();
        self.pointer.push_str(pointer);
    }

    /// Returns the pointer of the current place.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the value if there are no problems, otherwise all problems.
    pub fn settle<T>(mut self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.found.is_empty() => return Ok(value),
            // No value and no problem is a bug of the reader: never report success without a value.
            None if self.found.is_empty() => self.add(ProblemCode::Internal, "it cannot be read"),
            Some(_) | None => {}
        }
        Err(self.problems())
    }

    /// Returns all problems in document order, without duplicates.
    pub fn problems(mut self) -> Vec<Problem> {
        let mut seen = BTreeSet::new();
        // Before the limit is applied, so that repeated problems take no place in the list.
        self.found.retain(|(_, problem)| seen.insert(problem.clone()));
        self.found.sort_by_key(|(chapter, _)| *chapter);
        let beyond = self.found.len().saturating_sub(MOST) + self.left_out;
        self.found.truncate(MOST);
        let mut problems: Vec<Problem> =
            self.found.into_iter().map(|(_, problem)| problem).collect();
        if beyond > 0 {
            problems.push(Problem::more(beyond));
        }
        problems
    }
}

/// Returns the first problems up to the limit, and one that counts the rest.
pub fn limited(problems: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
    let mut report = Report::new();
    for problem in problems {
        if report.found.len() >= 2 * MOST {
            report.left_out += 1;
        } else {
            report.found.push((0, problem));
        }
    }
    report.problems()
}

/// Returns the author's text in backticks, shortened, with control characters escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (n, c) in text.chars().enumerate() {
        if n == QUOTED {
            out.push('…');
            break;
        }
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// Returns `; did you mean `x`?` if a candidate is near.
pub fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

/// Returns the first problem of an output and the number of the others.
pub fn first_problem(errors: &[Problem]) -> String {
    match errors {
        [] => String::new(),
        [only] => only.to_string(),
        [first, others @ ..] => {
            format!("{first} (and {})", counted(others.len() as u64, "more problem"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_sorted_by_chapter_then_discovery() {
        let mut report = Report::new();
        report.turn_to(2, "/steps/2");
        report.add(ProblemCode::BadId, "late");
        report.turn_to(1, "/steps/1");
        report.add_at("a/b~c", ProblemCode::BadPath, "early");
        report.under("io", |report| {
            report.item(3, |report| report.add(ProblemCode::BadName, "nested"));
        });
        report.chapter(0);
        report.add(ProblemCode::BadText, "first");
        let expected = vec![
            Problem::new("/steps/1", ProblemCode::BadText, "first"),
            Problem::new("/steps/1/a~1b~0c", ProblemCode::BadPath, "early"),
            Problem::new("/steps/1/io/3", ProblemCode::BadName, "nested"),
            Problem::new("/steps/2", ProblemCode::BadId, "late"),
        ];
        assert_eq!(report.settle(Some(())), Err(expected));
    }

    #[test]
    fn missing_value_without_problem_is_a_problem() {
        assert_eq!(Report::new().settle(Some(1)), Ok(1));
        let expected = Problem::new("", ProblemCode::Internal, "it cannot be read");
        assert_eq!(Report::new().settle::<()>(None), Err(vec![expected]));
    }

    #[test]
    fn problem_is_reported_once() {
        let mut report = Report::new();
        for message in ["x", "y", "x"] {
            report.add_at("a", ProblemCode::BadId, message);
        }
        let expected = ["x", "y"].map(|message| Problem::new("/a", ProblemCode::BadId, message));
        assert_eq!(report.problems(), expected);
    }

    #[test]
    fn problems_beyond_a_thousand_are_only_counted() {
        for (count, last) in
            [(1_000, None), (1_001, Some(1)), (2_000, Some(1_000)), (9_000, Some(8_000))]
        {
            let mut report = Report::new();
            (0..count).for_each(|n| report.item(n, |report| report.add(ProblemCode::BadId, "x")));
            let problems = report.settle(Some(())).unwrap_err();
            assert_eq!(problems[999], Problem::new("/999", ProblemCode::BadId, "x"));
            let more = last.map(Problem::more);
            assert_eq!(problems.get(1_000), more.as_ref());
            assert_eq!(problems.iter().map(|problem| problem.count).sum::<usize>(), count);
        }
    }

    #[test]
    fn late_problems_are_sorted_before_early_ones() {
        let mut report = Report::new();
        report.turn_to(2, "");
        (0..1_500).for_each(|n| report.item(n, |report| report.add(ProblemCode::BadId, "x")));
        report.turn_to(1, "/late");
        report.add(ProblemCode::BadName, "y");
        let problems = report.problems();
        assert_eq!(problems[0], Problem::new("/late", ProblemCode::BadName, "y"));
        assert_eq!(problems.iter().map(|problem| problem.count).sum::<usize>(), 1_501);
    }

    #[test]
    fn external_problems_beyond_a_thousand_are_only_counted() {
        let other = |n: usize| Problem::new(format!("/{n}"), ProblemCode::BadId, "x");
        for count in [0, 999, 1_000, 1_001, 2_000, 2_001, 9_000] {
            let problems = limited((0..count).map(other));
            let whole = count.min(1_000);
            assert_eq!(problems[..whole], (0..whole).map(other).collect::<Vec<_>>());
            assert_eq!(problems.len(), count.min(1_001));
            assert_eq!(problems.iter().map(|problem| problem.count).sum::<usize>(), count);
        }
        // A repeated problem is not counted.
        let twice = (0..1_000).chain(0..1_000).map(other);
        assert_eq!(limited(twice), (0..1_000).map(other).collect::<Vec<_>>());
    }

    #[test]
    fn name_comparisons_are_limited() {
        let mut report = Report::new();
        let far = "far".repeat(99);
        let (hint, none) = ("; did you mean `vars`?", "");
        assert_eq!(report.meant("var", ["vars"]), hint);
        assert_eq!(report.meant("var", (2..COMPARED).map(|_| far.as_str())), none);
        assert_eq!(report.meant("var", ["vars"]), hint);
        assert_eq!(report.meant("var", ["vars"]), none);
    }

    #[test]
    fn quotations_in_a_report_are_limited() {
        let mut report = Report::new();
        report.add_at(&"k".repeat(1 << 20), ProblemCode::UnknownKey, "x");
        let problems = report.settle(Some(())).unwrap_err();
        assert_eq!(problems[0].path.len(), 16_384 + '…'.len_utf8());
        assert_eq!(quoted(&"x".repeat(99)), format!("`{}…`", "x".repeat(60)));
        assert_eq!(quoted("a\nb"), "`a\\nb`");
    }
}
