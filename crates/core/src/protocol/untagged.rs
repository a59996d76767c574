//! Describes a text without a usable tag, so that a message about it can say what is there instead.

use std::fmt;

use memchr::memchr_iter;
use serde::{Deserialize, Serialize};

use super::tags::TagName;
use crate::text::excerpt;

/// The facts about a text without a usable tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Untagged {
    /// Whether a tag is in code, where it does not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_code: bool,
    /// The name in an opening that resembles a tag, as written: `GOTO`, `call-workflow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resembles: Option<String>,
    /// The start of the last line that is not blank.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_line: String,
}

/// Names that other programs use for tags, and that agents and old workflows therefore write.
const FOREIGN: [&str; 5] =
    ["call-workflow", "function-workflow", "fork-workflow", "reset-workflow", "transition"];
/// The longest name that can resemble a tag, in bytes.
const LONGEST: usize = 20;
/// Characters of the last line that are kept, so that a fault fits a line.
const SHOWN: usize = 60;

impl Untagged {
    pub(super) fn of(text: &str, in_code: bool) -> Self {
        let last_line = text.trim_end().lines().next_back().unwrap_or_default().trim();
        let last_line = excerpt(last_line, SHOWN).into_owned();
        Self { in_code, resembles: lookalike(text).map(str::to_owned), last_line }
    }

    /// Returns the explanation for the author of the text, if something in it needs one.
    pub(super) fn explanation(&self) -> Option<String> {
        let Some(name) = &self.resembles else {
            let in_code =
                "the only tag is in code, where it does not count: write it as plain text";
            return self.in_code.then(|| in_code.to_owned());
        };
        let known = TagName::ALL.iter().find(|tag| name.eq_ignore_ascii_case(tag.as_str()));
        Some(match known {
            Some(tag) => format!("<{name}> is not a tag: write it in lower case, <{tag}>"),
            None => format!("Raymond has no tag <{name}>"),
        })
    }
}

impl fmt::Display for Untagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.explanation(), self.last_line.as_str()) {
            (Some(explanation), _) => write!(f, "no tag: {explanation}"),
            (None, "") => f.write_str("no tag: the output is empty"),
            (None, line) => write!(f, "no tag: the output ends with {line:?}"),
        }
    }
}

/// Returns the first name of an opening that looks like a tag but is none.
fn lookalike(text: &str) -> Option<&str> {
    memchr_iter(b'<', text.as_bytes()).find_map(|at| {
        let name = opening_name(&text[at + 1..])?;
        let is_tag = TagName::ALL.iter().any(|tag| name == tag.as_str());
        let resembles = |known: &str| name.eq_ignore_ascii_case(known);
        let resembles_any = TagName::ALL.iter().any(|tag| resembles(tag.as_str()))
            || FOREIGN.iter().any(|known| resembles(known));
        (resembles_any && !is_tag).then_some(name)
    })
}

/// Returns the name at the start of a text, if it is short and ends as in an opening.
fn opening_name(text: &str) -> Option<&str> {
    let mut window = text.bytes().take(LONGEST + 1);
    let end = window.position(|byte| !(byte.is_ascii_alphabetic() || byte == b'-'))?;
    let closes = matches!(text.as_bytes()[end], b'>' | b' ' | b'/' | b'\n');
    (end > 0 && closes).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, in_code: bool, expected: &str) {
        assert_eq!(Untagged::of(text, in_code).to_string(), expected);
    }

    #[test]
    fn the_last_line_is_quoted() {
        check("", false, "no tag: the output is empty");
        check(" \n\n", false, "no tag: the output is empty");
        check("one\n  two \n\n", false, "no tag: the output ends with \"two\"");
        let long = "ä".repeat(100);
        let shown = "ä".repeat(60);
        check(&long, false, &format!("no tag: the output ends with \"{shown}…\""));
    }

    #[test]
    fn lookalikes_are_named() {
        let lower =
            |name, tag| format!("no tag: <{name}> is not a tag: write it in lower case, <{tag}>");
        check("a <GOTO>B</GOTO>", false, &lower("GOTO", "goto"));
        check("<Result status='failed'>x</Result>", false, &lower("Result", "result"));
        check("<Call-Workflow\n>", true, "no tag: Raymond has no tag <Call-Workflow>");
        for other in ["<p>hi</p>", "<gotoX>", "<", "<asking>", "a <ask", "</GOTO>", "<ä>"] {
            let ends = format!("no tag: the output ends with {other:?}");
            check(other, false, &ends);
        }
    }

    #[test]
    fn tag_in_code_is_explained() {
        let expected =
            "no tag: the only tag is in code, where it does not count: write it as plain text";
        check("see `<goto>A</goto>`", true, expected);
    }

    #[test]
    fn long_name_resembles_nothing() {
        let text = format!("<{}>", "a".repeat(1_000));
        assert_eq!(Untagged::of(&text, false).resembles, None);
    }
}
