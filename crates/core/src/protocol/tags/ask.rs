//! `<ask next="STATE">QUESTION</ask>`: wait until a person has answered.
//!
//! The answer leads to `next` as a `goto` would. A prompt may ask only if its policy names the tag:
//! see [`crate::workflow::policy`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::{Body, Follower, Tag, TagContent, TagProblem, TagSpec, when};
use crate::time::{Span, Timestamp};
use crate::value::Value;

/// Bytes of a question. A person reads it on one screen.
const LONGEST_QUESTION: usize = 64 * 1024;
/// Options of a question. A person chooses one by its number.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=20;
/// Characters of an option.
const LONGEST_OPTION: usize = 80;

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Payload("YOUR QUESTION"),
    follower: Some(NEXT),
    continues_at_target: false,
    attributes: &["next", "options", "timeout", "then", "default"],
    note: Some(
        "An <ask> waits for a person. options=\"yes|no\" offers answers, and the state that you \
         name in `next` receives the answer.",
    ),
    cheat_sheet: [
        "`<ask next=\"N\" options=\"yes|no\">text</ask>`",
        "",
        "N in this one, when a person has answered",
    ],
    read,
    // A question needs a text, so it is never implicit.
    implicit: |_, _| None,
};

/// The state that receives the answer.
const NEXT: Follower = Follower { attribute: "next", placeholder: "NEXT", advice: "continue at" };

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "N: Deserialize<'de>, T: Deserialize<'de>"))]
pub struct Question<N = String, T = Value> {
    /// The state that receives the answer.
    pub next: N,
    /// The text between the tags, as written.
    pub text: T,
    /// The possible answers; empty if any text is an answer.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<N>,
    /// What happens when no answer comes in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<AskTimeout<N>>,
}

/// The time limit of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskTimeout<N = String> {
    pub after: Span,
    pub otherwise: Otherwise<N>,
}

/// What happens when the time of a question is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Otherwise<N = String> {
    /// The agent enters this state.
    Then(N),
    /// This is the answer.
    Default(N),
}

impl Question {
    /// Returns the option that an answer means: its text in any case, or its number. Without
    /// options, any text is an answer.
    pub fn option(&self, answer: &str) -> Option<&str> {
        let answer = answer.trim();
        let by_text = self.options.iter().find(|option| is_same(option, answer));
        let by_number = || self.options.get(answer.parse::<usize>().ok()?.checked_sub(1)?);
        by_text.or_else(by_number).map(String::as_str)
    }

    /// Returns the answer as it is recorded; `None` if it is not one of the options.
    pub fn accepted<'a>(&'a self, answer: &'a str) -> Option<&'a str> {
        if self.options.is_empty() { Some(answer) } else { self.option(answer) }
    }

    /// Returns when a question of this time expires.
    pub fn due(&self, at: Timestamp) -> Option<Timestamp> {
        Some(at + self.timeout.as_ref()?.after)
    }

    /// Returns the state to enter when the time is up, if the question names one.
    pub fn then(&self) -> Option<&str> {
        match &self.timeout.as_ref()?.otherwise {
            Otherwise::Then(state) => Some(state),
            Otherwise::Default(_) => None,
        }
    }
}

/// Compares an answer with an option.
fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn read<'a>(given: &mut Attributes<'a>, text: &'a str) -> Result<TagContent<'a>, TagProblem<'a>> {
    let next = given.required(NEXT.attribute)?;
    if text.trim().is_empty() {
        return Err(TagProblem::EmptyQuestion);
    }
    if text.len() > LONGEST_QUESTION {
        return Err(TagProblem::LongQuestion);
    }
    let written = given.peek("options");
    let options = given.text("options").map(options).transpose()?.unwrap_or_default();
    let timeout = timeout(given, &options, written.unwrap_or_default())?;
    Ok(Tag::Ask(Question { next, text: text.into(), options, timeout }))
}

fn options(written: Cow<'_, str>) -> Result<Vec<Cow<'_, str>>, TagProblem<'_>> {
    let options: Vec<Cow<'_, str>> = match written {
        Cow::Borrowed(text) => text.split('|').map(|option| option.trim().into()).collect(),
        Cow::Owned(text) => {
            text.split('|').map(|option| Cow::Owned(option.trim().to_owned())).collect()
        }
    };
    if !OPTIONS.contains(&options.len()) {
        return Err(TagProblem::OptionCount);
    }
    let fits = |option: &Cow<'_, str>| (1..=LONGEST_OPTION).contains(&option.chars().count());
    if !options.iter().all(fits) {
        return Err(TagProblem::OptionLength);
    }
    // An answer is compared without case, so such options would be the same.
    let is_repeated = |(place, option): (usize, &Cow<'_, str>)| {
        options[..place].iter().any(|other| is_same(other, option))
    };
    if options.iter().enumerate().any(is_repeated) {
        return Err(TagProblem::OptionTwice);
    }
    Ok(options)
}

fn timeout<'a>(
    given: &mut Attributes<'a>,
    options: &[Cow<'a, str>],
    written: &'a str,
) -> Result<Option<AskTimeout<Cow<'a, str>>>, TagProblem<'a>> {
    let after = given.raw("timeout").map(when::timeout).transpose()?;
    let (then, default) = (given.word("then")?, given.peek("default"));
    let answer = given.text("default");
    let Some(after) = after else {
        return match (then, answer) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(TagProblem::NeedsTimeout("then")),
            (None, Some(_)) => Err(TagProblem::NeedsTimeout("default")),
        };
    };
    let otherwise = match (then, answer) {
        (Some(then), None) => Otherwise::Then(then),
        (None, Some(answer)) if options.is_empty() => Otherwise::Default(answer),
        (None, Some(answer)) => {
            let is_it = |option: &&Cow<'a, str>| is_same(option, answer.trim());
            let default = default.unwrap_or_default();
            let bad = TagProblem::BadDefault { default, options: written };
            Otherwise::Default(options.iter().find(is_it).ok_or(bad)?.clone())
        }
        (None, None) | (Some(_), Some(_)) => return Err(TagProblem::TimeoutNeedsOne),
    };
    Ok(Some(AskTimeout { after, otherwise }))
}
