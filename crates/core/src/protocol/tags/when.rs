//! `after` and `at`: the time at which a `goto` or a `reset` is taken.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::{Tag, TagContent, TagProblem};
use crate::time::{Span, Timestamp};

/// When a transition is taken that does not follow at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// `after="5m"`: counted from the record of the transition.
    After(Span),
    /// `at="2026-11-18T07:00:00+01:00"`
    At(Timestamp),
}

impl When {
    pub(super) const SHORTEST: Span = Span::seconds(1);
    /// The longest wait, in both forms: 366 days, so that a yearly job is possible.
    pub const LONGEST: Span = Span::minutes(366 * 24 * 60);
}

/// Returns the tag with its attributes `after` and `at`.
pub(super) fn read<'a>(
    given: &mut Attributes<'a>,
    tag: TagContent<'a>,
) -> Result<TagContent<'a>, TagProblem<'a>> {
    let when = match (given.raw("after"), given.raw("at")) {
        (None, None) => return Ok(tag),
        (Some(_), Some(_)) => return Err(TagProblem::AfterAndAt),
        (Some(after), None) => {
            let span = Span::parse_any(after).map_err(|_| TagProblem::BadAfter(after))?;
            if !(When::SHORTEST..=When::LONGEST).contains(&span) {
                return Err(TagProblem::AfterRange);
            }
            When::After(span)
        }
        (None, Some(at)) => When::At(Timestamp::parse(at).ok_or(TagProblem::BadAt(at))?),
    };
    Ok(Tag::<Cow<'a, str>, Cow<'a, str>>::Later { tag: Box::new(tag), when })
}

/// Reads the longest wait of a tag.
pub(super) fn timeout(text: &str) -> Result<Span, TagProblem<'_>> {
    let span = Span::parse_any(text).map_err(|_| TagProblem::BadTimeout(text))?;
    if !(When::SHORTEST..=When::LONGEST).contains(&span) {
        return Err(TagProblem::TimeoutRange);
    }
    Ok(span)
}
