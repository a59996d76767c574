//! What is wrong in a document or a request, and where: a JSON pointer, a code and a message.
//!
//! A [`Report`] follows a reader through the JSON. It keeps the pointer of the place that is being
//! looked at, collects every problem and puts them into document order; beyond [`MOST`] it only
//! counts. Whatever it quotes is cut, so that no document can make its own report large.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::problem_code::ProblemCode;
use crate::text::nearest;

/// How many problems are told; one more says how many there are beyond.
pub const MOST: usize = 1_000;

/// The longest pointer in bytes; a longer one, of keys that nobody would write, is cut.
pub const LONGEST_POINTER: usize = 16 * 1024;

/// How many names are compared in one report to find those that were meant: a document full of
/// mistakes must not take longer than one without.
const COMPARED: usize = 100_000;

/// How many characters of the author's text a message quotes.
const QUOTED: usize = 60;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Where: a JSON pointer (RFC 6901), empty for the whole.
    pub path: String,
    /// What, as a stable code. It was not always written; what a schema says of a value never has it
    /// in a journal.
    #[serde(default, skip_serializing_if = "ProblemCode::is_of_value")]
    pub code: ProblemCode,
    /// What, for people: lower case, no full stop.
    pub message: String,
}

impl Problem {
    /// What a schema says of the place of a value.
    pub fn of_value(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(path, ProblemCode::InvalidOutput, message)
    }

    /// A problem at a pointer.
    pub fn new(path: impl Into<String>, code: ProblemCode, message: impl Into<String>) -> Self {
        let mut path = path.into();
        if path.len() > LONGEST_POINTER {
            path.truncate(path.floor_char_boundary(LONGEST_POINTER));
            path.push('…');
        }
        Self { path, code, message: message.into() }
    }

    /// How many problems it tells: one, or as many as it counts.
    pub fn tells(&self) -> usize {
        let counted = self.message.split(' ').find_map(|word| word.parse().ok());
        if self.code == ProblemCode::MoreProblems { counted.unwrap_or(1) } else { 1 }
    }

    /// As others read it: its code is always there.
    pub fn to_json(&self) -> Value {
        json!({ "path": self.path, "code": self.code.as_str(), "message": self.message })
    }
}

/// `/steps/0/id: message`, as a line for a reader.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// The problems found so far, and the place that is being looked at.
#[derive(Debug, Default)]
pub struct Report {
    pointer: String,
    chapter: u32,
    found: Vec<(u32, Problem)>,
    uncounted: usize,
    compared: usize,
}

impl Report {
    /// A report about nothing yet, at the root.
    pub fn new() -> Self {
        Self::default()
    }

    /// `; did you mean `x`?` when a candidate is near, as long as there is time to look.
    pub fn meant<'a>(&mut self, word: &str, among: impl IntoIterator<Item = &'a str>) -> String {
        let mut compared = 0;
        let left = COMPARED.saturating_sub(self.compared);
        let found = meant(word, among.into_iter().take(left).inspect(|_| compared += 1));
        self.compared += compared;
        found
    }

    /// Adds a problem at the current place.
    pub fn add(&mut self, flaw: ProblemCode, message: impl Into<String>) {
        // Twice as many as are told: some are found late and told early.
        if self.found.len() >= 2 * MOST {
            self.uncounted += 1;
        } else {
            self.insist(flaw, message);
        }
    }

    /// Adds a problem that is told even when there are many.
    pub(super) fn insist(&mut self, flaw: ProblemCode, message: impl Into<String>) {
        self.found.push((self.chapter, Problem::new(&self.pointer, flaw, message)));
    }

    /// Adds a problem at `key` of the current place.
    pub fn add_at(&mut self, key: &str, flaw: ProblemCode, message: impl Into<String>) {
        self.under(key, |report| report.add(flaw, message));
    }

    /// Looks at `key` of the current place for as long as `look` takes.
    pub fn under<T>(&mut self, key: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.enter(key);
        let seen = look(self);
        self.leave(length);
        seen
    }

    /// Goes to `key` of the current place; what is handed back leads out again.
    pub(super) fn enter(&mut self, key: &str) -> usize {
        let length = self.pointer.len();
        push_token(&mut self.pointer, key);
        length
    }

    /// Goes back to where `enter` was called.
    pub(super) fn leave(&mut self, length: usize) {
        self.pointer.truncate(length);
    }

    /// Looks at the item `index` of the current place for as long as `look` takes.
    pub fn item<T>(&mut self, index: usize, look: impl FnOnce(&mut Self) -> T) -> T {
        self.under(&index.to_string(), look)
    }

    /// Begins a chapter. Problems are told by chapter, and then as they were found.
    pub(super) fn chapter(&mut self, chapter: u32) {
        self.chapter = chapter;
    }

    /// Moves to another place altogether.
    pub(super) fn turn_to(&mut self, chapter: u32, pointer: &str) {
        self.chapter = chapter;
        self.pointer.clear();
        self.pointer.push_str(pointer);
    }

    /// The place that is being looked at.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The value, when there are no problems; otherwise all of them.
    pub fn settle<T>(mut self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.found.is_empty() => return Ok(value),
            None if self.found.is_empty() => self.add(ProblemCode::Internal, "it cannot be read"),
            Some(_) | None => {}
        }
        Err(self.problems())
    }

    /// All problems in document order, each once.
    pub fn problems(mut self) -> Vec<Problem> {
        let mut told = BTreeSet::new();
        self.found.retain(|(_, problem)| told.insert(problem.clone()));
        self.found.sort_by_key(|(chapter, _)| *chapter);
        let beyond = self.found.len().saturating_sub(MOST) + self.uncounted;
        self.found.truncate(MOST);
        let mut problems: Vec<Problem> =
            self.found.into_iter().map(|(_, problem)| problem).collect();
        if beyond > 0 {
            let message = format!("there are {beyond} more problems");
            problems.push(Problem::new("", ProblemCode::MoreProblems, message));
        }
        problems
    }
}

/// As many of them as are told, and how many there are beyond.
pub fn told(problems: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
    let mut report = Report::new();
    for problem in problems {
        if report.found.len() >= 2 * MOST {
            report.uncounted += 1;
        } else {
            report.found.push((0, problem));
        }
    }
    report.problems()
}

/// Adds one reference token to a JSON pointer.
pub fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// The author's text in backticks, cut when it is long, with control characters escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (n, c) in text.chars().enumerate() {
        if n == QUOTED {
            out.push('…');
            break;
        }
        if c.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// `; did you mean `x`?` when a candidate is near.
pub fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_by_chapter_and_then_as_found() {
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
    fn what_cannot_be_read_is_a_problem_even_where_nobody_says_which() {
        assert_eq!(Report::new().settle(Some(1)), Ok(1));
        let expected = Problem::new("", ProblemCode::Internal, "it cannot be read");
        assert_eq!(Report::new().settle::<()>(None), Err(vec![expected]));
    }

    #[test]
    fn a_problem_is_told_once() {
        let mut report = Report::new();
        for message in ["x", "y", "x"] {
            report.add_at("a", ProblemCode::BadId, message);
        }
        let expected = ["x", "y"].map(|message| Problem::new("/a", ProblemCode::BadId, message));
        assert_eq!(report.problems(), expected);
    }

    #[test]
    fn a_thousand_problems_are_told_and_the_rest_is_counted() {
        for (there_are, last) in
            [(1_000, None), (1_001, Some(1)), (2_000, Some(1_000)), (9_000, Some(8_000))]
        {
            let mut report = Report::new();
            (0..there_are)
                .for_each(|n| report.item(n, |report| report.add(ProblemCode::BadId, "x")));
            let problems = report.settle(Some(())).unwrap_err();
            assert_eq!(problems[999], Problem::new("/999", ProblemCode::BadId, "x"));
            let more = last.map(|n| {
                Problem::new("", ProblemCode::MoreProblems, format!("there are {n} more problems"))
            });
            assert_eq!(problems.get(1_000), more.as_ref());
            assert_eq!(problems.iter().map(Problem::tells).sum::<usize>(), there_are);
        }
    }

    #[test]
    fn what_is_found_late_may_be_told_early() {
        let mut report = Report::new();
        report.turn_to(2, "");
        (0..1_500).for_each(|n| report.item(n, |report| report.add(ProblemCode::BadId, "x")));
        report.turn_to(1, "/late");
        report.add(ProblemCode::BadName, "y");
        let problems = report.problems();
        assert_eq!(problems[0], Problem::new("/late", ProblemCode::BadName, "y"));
        assert_eq!(problems.iter().map(Problem::tells).sum::<usize>(), 1_501);
    }

    #[test]
    fn a_thousand_of_others_are_told_and_the_rest_is_counted() {
        let other = |n: usize| Problem::new(format!("/{n}"), ProblemCode::BadId, "x");
        for there_are in [0, 999, 1_000, 1_001, 2_000, 2_001, 9_000] {
            let problems = told((0..there_are).map(other));
            let whole = there_are.min(1_000);
            assert_eq!(problems[..whole], (0..whole).map(other).collect::<Vec<_>>());
            assert_eq!(problems.len(), there_are.min(1_001));
            assert_eq!(problems.iter().map(Problem::tells).sum::<usize>(), there_are);
        }
        // What is said twice is not one more.
        let twice = (0..1_000).chain(0..1_000).map(other);
        assert_eq!(told(twice), (0..1_000).map(other).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_compared_only_so_often() {
        let mut report = Report::new();
        let far = "far".repeat(99);
        let (hint, none) = ("; did you mean `vars`?", "");
        assert_eq!(report.meant("var", ["vars"]), hint);
        assert_eq!(report.meant("var", (2..COMPARED).map(|_| far.as_str())), none);
        assert_eq!(report.meant("var", ["vars"]), hint);
        assert_eq!(report.meant("var", ["vars"]), none);
    }

    #[test]
    fn a_report_never_grows_with_what_it_quotes() {
        let mut report = Report::new();
        report.add_at(&"k".repeat(1 << 20), ProblemCode::UnknownKey, "x");
        let problems = report.settle(Some(())).unwrap_err();
        assert_eq!(problems[0].path.len(), 16_384 + '…'.len_utf8());
        assert_eq!(quoted(&"x".repeat(99)), format!("`{}…`", "x".repeat(60)));
        assert_eq!(quoted("a\nb"), "`a\\nb`");
    }
}
