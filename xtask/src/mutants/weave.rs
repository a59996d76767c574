//! Puts mutants into the text of a file, each beside what it replaces and behind a switch of its own.
//!
//! `a < b` becomes `(if crate::mutant(7) { a > b } else { a < b })`. Nothing of the text goes away, so
//! mutants may stand within each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context as _, Result};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::listed::{Genre, Mutant};

/// What a crate gets, so that its mutants can be switched on. Tests start the program without their own
/// environment, so the number is looked for in the processes above it, too.
pub(super) const SWITCH: &str = r#"
#[doc(hidden)]
pub fn mutant(number: usize) -> bool {
    fn said(name: &str) -> Option<String> {
        let own = std::env::var(name).ok();
        own.or_else(|| {
            let mut process = "self".to_owned();
            while process != "0" {
                let text = std::fs::read(format!("/proc/{process}/environ")).ok()?;
                let wanted = format!("{name}=");
                let mut entries = text.split(|byte| *byte == 0);
                if let Some(entry) = entries.find(|entry| entry.starts_with(wanted.as_bytes())) {
                    return String::from_utf8(entry[wanted.len()..].to_vec()).ok();
                }
                let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
                process = stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned();
            }
            None
        })
    }
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    static REACHED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    static SEEN: std::sync::Mutex<std::collections::BTreeSet<usize>> =
        std::sync::Mutex::new(std::collections::BTreeSet::new());
    if let Some(folder) = REACHED.get_or_init(|| said("RAYMOND_REACHED"))
        && SEEN.lock().is_ok_and(|mut seen| seen.insert(number))
    {
        std::fs::write(format!("{folder}/{number}"), "").ok();
    }
    *CHOSEN.get_or_init(|| said("RAYMOND_MUTANT")?.parse().ok()) == Some(number)
}
"#;

/// A text with mutants in it.
#[derive(Debug)]
pub(super) struct Woven {
    pub(super) text: String,
    /// Those that no grammar allows.
    pub(super) impossible: Vec<usize>,
    /// Whose each part of the text is.
    parts: Vec<(Range<usize>, Vec<usize>)>,
}

impl Woven {
    /// Whether this mutant stands in it.
    pub(super) fn has(&self, number: usize) -> bool {
        self.parts.iter().any(|(_, whose)| whose.contains(&number))
    }

    /// The mutants of the smallest part that holds all of `range`.
    pub(super) fn around(&self, range: &Range<usize>) -> &[usize] {
        let parts = self.parts.iter().filter(|(part, _)| holds(part, range));
        parts.min_by_key(|(part, _)| part.len()).map_or(&[], |(_, whose)| whose)
    }

    /// The mutants of all parts that begin in the lines of `range`.
    pub(super) fn in_lines_of(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let before = self.text.get(..range.start).unwrap_or_default();
        let after = self.text.get(range.end..).unwrap_or_default();
        let start = before.rfind('\n').unwrap_or(0);
        let end = range.end + after.find('\n').unwrap_or(after.len());
        let parts = self.parts.iter().filter(move |(part, _)| (start..end).contains(&part.start));
        parts.flat_map(|(_, whose)| whose.iter().copied())
    }
}

/// Weaves in whichever of these numbered mutants can be.
pub(super) fn weave(text: &str, mutants: &[(usize, &Mutant)]) -> Result<Woven> {
    let file = syn::parse_file(text).context("it cannot be parsed")?;
    let mut places = Places::default();
    places.visit_file(&file);
    let mut wraps: BTreeMap<(usize, usize, Kind), Vec<Choice>> = BTreeMap::new();
    let mut impossible = Vec::new();
    for (number, mutant) in mutants {
        if places.is_impossible(text, mutant) {
            impossible.push(*number);
        }
        if let Some((span, kind, instead)) = places.wrap(text, mutant) {
            let mut put = |span: &Range<usize>, kind, instead| {
                let choice = Choice { number: *number, instead };
                wraps.entry((span.start, span.end, kind)).or_default().push(choice);
            };
            if let Some(whole) = places.matches(&span).filter(|_| mutant.genre == Genre::Arm) {
                put(whole, Kind::Match, String::new());
            }
            put(&span, kind, instead);
        }
    }
    Ok(Woven { impossible, ..write(text, &wraps) })
}

/// How a mutant is put in. Of those at one place, the first stands around the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Changes nothing: a match, which may be incomplete without an arm.
    Match,
    /// Returned before the body begins.
    Return,
    /// An arm that has no guard gets one.
    NewGuard,
    /// The guard of an arm is given a condition more.
    Guard,
    /// One expression or the other.
    Either,
}

#[derive(Debug)]
struct Choice {
    number: usize,
    instead: String,
}

/// Where a text begins or ends to be something else.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    /// The innermost first: those that began last.
    End(std::cmp::Reverse<(usize, Kind)>),
    /// The outermost first: those that end last.
    Start(std::cmp::Reverse<usize>, Kind),
}

fn write(text: &str, wraps: &BTreeMap<(usize, usize, Kind), Vec<Choice>>) -> Woven {
    let mut edges: Vec<(usize, Edge, (usize, usize, Kind))> = Vec::new();
    for (start, end, kind) in wraps.keys().copied() {
        let key = (start, end, kind);
        edges.push((start, Edge::Start(std::cmp::Reverse(end), kind), key));
        if start < end {
            edges.push((end, Edge::End(std::cmp::Reverse((start, kind))), key));
        }
    }
    edges.sort();
    let mut woven = Woven { text: String::new(), impossible: Vec::new(), parts: Vec::new() };
    let mut open = Vec::new();
    let mut written = 0;
    for (at, edge, key) in edges {
        let (start, end, kind) = key;
        woven.text.push_str(text.get(written..at).unwrap_or_default());
        written = at;
        let choices = wraps.get(&key).map(Vec::as_slice).unwrap_or_default();
        if matches!(edge, Edge::Start(..)) {
            open.push(woven.text.len());
            woven.open(kind, choices);
        }
        if matches!(edge, Edge::End(_)) || start == end {
            woven.text.push_str(match kind {
                Kind::Match | Kind::Return | Kind::NewGuard => "",
                Kind::Guard => ")",
                Kind::Either => "})",
            });
            let part = open.pop().unwrap_or_default()..woven.text.len();
            woven.parts.push((part, choices.iter().map(|choice| choice.number).collect()));
        }
    }
    woven.text.push_str(text.get(written..).unwrap_or_default());
    woven
}

impl Woven {
    fn open(&mut self, kind: Kind, choices: &[Choice]) {
        if kind == Kind::Either {
            self.text.push('(');
        }
        for Choice { number, instead } in choices {
            let start = self.text.len();
            let switch = format!("crate::mutant({number})");
            let before = match kind {
                Kind::Match => continue,
                Kind::Return => format!("if {switch} {{ return {instead}; }} "),
                Kind::NewGuard => format!(" if !{switch}"),
                Kind::Guard => format!("!{switch} && ("),
                Kind::Either => format!("if {switch} {{ {instead} }} else "),
            };
            self.text.push_str(&before);
            self.parts.push((start..self.text.len(), vec![*number]));
        }
        if kind == Kind::Either {
            self.text.push('{');
        }
    }
}

/// Where the expressions of a file are.
#[derive(Debug, Default)]
struct Places {
    /// By where the operator begins: the whole.
    operations: BTreeMap<usize, Range<usize>>,
    /// By where the arm begins: its guard, or where one would stand.
    arms: BTreeMap<usize, Range<usize>>,
    matches: Vec<Range<usize>>,
    structs: Vec<Range<usize>>,
    /// Where the operator of a condition begins that binds names.
    bindings: BTreeSet<usize>,
}

impl Places {
    fn matches(&self, arm: &Range<usize>) -> Option<&Range<usize>> {
        smallest(&self.matches, arm)
    }

    /// Names can be bound by all conditions, not by any of them.
    fn is_impossible(&self, text: &str, mutant: &Mutant) -> bool {
        let binds = mutant.span(text).is_some_and(|span| self.bindings.contains(&span.start));
        binds && mutant.replacement == "||"
    }

    /// What of the text is wrapped for it, how, and what stands there instead.
    fn wrap(&self, text: &str, mutant: &Mutant) -> Option<(Range<usize>, Kind, String)> {
        let span = mutant.span(text)?;
        let replaced = |whole: &Range<usize>| {
            let (before, after) =
                (text.get(whole.start..span.start)?, text.get(span.end..whole.end)?);
            Some(format!("{before}{}{after}", mutant.replacement))
        };
        match mutant.genre {
            Genre::Body => Some((span, Kind::Return, mutant.replacement.clone())),
            Genre::Guard => Some((span, Kind::Either, mutant.replacement.clone())),
            Genre::Operator => {
                let whole = self.operations.get(&span.start)?;
                Some((whole.clone(), Kind::Either, replaced(whole)?))
            }
            Genre::Field => {
                let whole = smallest(&self.structs, &span)?;
                Some((whole.clone(), Kind::Either, replaced(whole)?))
            }
            Genre::Arm => {
                let guard = self.arms.get(&span.start)?.clone();
                let kind = if guard.is_empty() { Kind::NewGuard } else { Kind::Guard };
                Some((guard, kind, String::new()))
            }
        }
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let start = it.op.span().byte_range().start;
        // A condition that binds names cannot stand in parentheses.
        if binds(&it.left) || binds(&it.right) {
            self.bindings.insert(start);
        } else {
            self.operations.insert(start, it.span().byte_range());
        }
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        self.operations.insert(it.op.span().byte_range().start, it.span().byte_range());
        visit::visit_expr_unary(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        let place = match &it.pat {
            syn::Pat::Guard(guarded) => guarded.guard.span().byte_range(),
            pattern => {
                let end = pattern.span().byte_range().end;
                end..end
            }
        };
        self.arms.insert(it.span().byte_range().start, place);
        visit::visit_arm(self, it);
    }

    fn visit_expr_match(&mut self, it: &'ast syn::ExprMatch) {
        self.matches.push(it.span().byte_range());
        visit::visit_expr_match(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        self.structs.push(it.span().byte_range());
        visit::visit_expr_struct(self, it);
    }
}

fn binds(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => binds(&both.left) || binds(&both.right),
        _ => false,
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn smallest<'a>(of: &'a [Range<usize>], within: &Range<usize>) -> Option<&'a Range<usize>> {
    of.iter().filter(|outer| holds(outer, within)).min_by_key(|outer| outer.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
fn ö(a: u8, b: u8) -> Point {
    match a {
        1 => Point { x: a, ..at(b) },
        2 if a < b && !odd(b) => at(a + b),
        _ => at(0),
    }
}
";

    /// A mutant of the first such words.
    fn mutant(genre: &str, words: &str, replacement: &str) -> Mutant {
        let start = TEXT.find(words).unwrap();
        let place = |offset: usize| {
            let before = &TEXT[..offset];
            let line = before.rsplit('\n').next().unwrap();
            let (line, column) = (before.matches('\n').count() + 1, line.chars().count() + 1);
            serde_json::json!({"line": line, "column": column})
        };
        let listed = serde_json::json!({
            "name": "file.rs:1:1: a change", "file": "file.rs", "package": "raymond-core",
            "genre": genre, "replacement": replacement,
            "span": {"start": place(start), "end": place(start + words.len())},
        });
        Mutant::read(&listed).unwrap()
    }

    fn woven(mutants: &[Mutant]) -> Woven {
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        weave(TEXT, &numbered).unwrap()
    }

    fn line(mutants: &[Mutant], words: &str) -> String {
        let text = woven(mutants).text;
        text.lines().find(|line| line.contains(words)).unwrap().trim().to_owned()
    }

    #[test]
    fn each_mutant_stands_beside_what_it_replaces() {
        let less = || mutant("BinaryOperator", "<", ">");
        let table = [
            (less(), "2 if (if crate::mutant(0) { a > b } else {a < b}) && !odd(b) => at(a + b),"),
            (
                mutant("UnaryOperator", "!", ""),
                "2 if a < b && (if crate::mutant(0) { odd(b) } else {!odd(b)}) => at(a + b),",
            ),
            (
                mutant("MatchArmGuard", "a < b && !odd(b)", "true"),
                "2 if (if crate::mutant(0) { true } else {a < b && !odd(b)}) => at(a + b),",
            ),
            (
                mutant("MatchArm", "2 if a < b && !odd(b) => at(a + b),", ""),
                "2 if !crate::mutant(0) && (a < b && !odd(b)) => at(a + b),",
            ),
            (
                mutant("MatchArm", "1 => Point { x: a, ..at(b) },", ""),
                "1 if !crate::mutant(0) => Point { x: a, ..at(b) },",
            ),
            (
                mutant("StructField", "x: a,", ""),
                "1 => (if crate::mutant(0) { Point {  ..at(b) } } else {Point { x: a, ..at(b) }}),",
            ),
        ];
        for (mutant, expected) in table {
            assert_eq!(line(&[mutant], "mutant"), expected);
        }
        let body = mutant(
            "FnValue",
            TEXT.trim_end_matches("\n}\n").split_once("{\n    ").unwrap().1,
            "at(1)",
        );
        assert_eq!(line(&[body], "mutant"), "if crate::mutant(0) { return at(1); } match a {");
    }

    #[test]
    fn what_no_grammar_allows_is_told_apart() {
        let text = "fn f() { if a && let Some(b) = c && d {} }";
        let place = |column: usize| serde_json::json!({"line": 1, "column": column});
        let operator = |start: usize| {
            Mutant::read(&serde_json::json!({
                "name": "file.rs:1:1: a change", "file": "file.rs", "package": "raymond-core",
                "genre": "BinaryOperator", "replacement": "||",
                "span": {"start": place(start + 1), "end": place(start + 3)},
            }))
        };
        let mutants = [text.find("&&"), text.rfind("&&")].map(|at| operator(at.unwrap()).unwrap());
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        assert_eq!(weave(text, &numbered).unwrap().impossible, [0, 1]);
    }

    #[test]
    fn mutants_stand_within_each_other() {
        let mutants = [
            mutant("BinaryOperator", "<", ">"),
            mutant("BinaryOperator", "<", "=="),
            mutant("BinaryOperator", "&&", "||"),
            mutant("MatchArmGuard", "a < b && !odd(b)", "false"),
            mutant("MatchArm", "2 if a < b && !odd(b) => at(a + b),", ""),
        ];
        let expected = "2 if !crate::mutant(4) && ((if crate::mutant(2) { a < b || !odd(b) } else \
            if crate::mutant(3) { false } else {(if crate::mutant(0) { a > b } else \
            if crate::mutant(1) { a == b } else {a < b}) && !odd(b)})) => at(a + b),";
        assert_eq!(line(&mutants, "mutant"), expected);
    }

    #[test]
    fn an_error_is_the_fault_of_the_closest_mutant_or_of_those_in_its_lines() {
        let woven = woven(&[
            mutant("BinaryOperator", "<", ">"),
            mutant("BinaryOperator", "&&", "||"),
            mutant("MatchArm", "1 => Point { x: a, ..at(b) },", ""),
        ]);
        let at = |words: &str| {
            let start = woven.text.find(words).unwrap();
            start..start + words.len()
        };
        assert_eq!(woven.around(&at("a > b")), [0]);
        assert_eq!(woven.around(&at("a < b || !odd(b)")), [1]);
        assert_eq!(woven.around(&at("match a")), [2], "without an arm it may be incomplete");
        assert!(woven.around(&at("fn ö")).is_empty());
        assert_eq!(woven.in_lines_of(&at("2 if")).collect::<BTreeSet<_>>(), [0, 1].into());
    }
}
