//! Chooses the transition of a text: one tag, or several forks with at most one `goto`.
//!
//! Tags were found in [`crate::protocol`] and are taken in [`super::tags`].

use crate::protocol::{Fault, Malformed, Need, Tag, TagName, TagReading};
use crate::text::counted;
use crate::workflow::Policy;

/// Returns the one transition in a reading, or the fault that prevents it.
pub(crate) fn transition(reading: &TagReading, policy: &Policy) -> Result<Vec<Tag>, Fault> {
    let count = reading.tags.len() + reading.omitted;
    let no_tag = || Fault::NoTag(reading.untagged.clone());
    let malformed = || Fault::Malformed(reading.malformed.clone());
    match reading.tags.as_slice() {
        [] if !reading.malformed.is_empty() => Err(malformed()),
        // A tag in code shows that the agent meant to write one, so the implicit tag must not
        // replace it.
        [] if reading.untagged.in_code => Err(no_tag()),
        [] => policy.implicit().map(|tag| vec![tag]).ok_or_else(no_tag),
        _ if lacks_a_part(reading) => Err(malformed()),
        tags if count == tags.len()
            && (count == 1 || is_one_fork(tags))
            && let Some(why) = wrong_wait(tags) =>
        {
            Err(Fault::Malformed(vec![Malformed { tag: TagName::Goto, why }]))
        }
        [one] if count == 1 => Ok(vec![one.clone()]),
        tags if count == tags.len() && is_one_fork(tags) => Ok(tags.to_vec()),
        tags => {
            // Ten names are more than a fault shows; the journal does not need thousands of them.
            let tags = tags.iter().take(10).map(Tag::name).collect();
            Err(Fault::SeveralTags { tags, count })
        }
    }
}

/// Returns whether a message contains a question, well formed or not.
pub(crate) fn has_question(reading: &TagReading) -> bool {
    reading.tags.iter().any(is_question) || reading.malformed.iter().any(is_malformed_question)
}

fn is_question(tag: &Tag) -> bool {
    tag.name() == TagName::Ask
}

fn is_malformed_question(malformed: &Malformed) -> bool {
    malformed.tag == TagName::Ask
}

/// Returns the reading of a prompt that may not ask: its questions are text, unless the message has
/// nothing else.
pub(crate) fn without_questions(reading: &TagReading) -> Result<TagReading, Fault> {
    let mut rest = reading.clone();
    rest.tags.retain(|tag| !is_question(tag));
    rest.malformed.retain(|malformed| !is_malformed_question(malformed));
    if rest.tags.is_empty() && rest.malformed.is_empty() {
        return Err(Fault::Forbidden { tag: TagName::Ask, target: None, follower: None });
    }
    Ok(rest)
}

/// Returns why a `wait` does not fit the forks of its message.
fn wrong_wait(tags: &[Tag]) -> Option<String> {
    let need = tags.iter().find_map(Tag::need)?;
    let forks = tags.iter().filter(|tag| tag.name() == TagName::Fork).count();
    match need {
        _ if forks == 0 => {
            Some("`wait` needs forks in the same message: it waits for their workers".to_owned())
        }
        Need::Count(wanted) if wanted as usize > forks => Some(format!(
            "`wait` is {wanted}, but the message forks only {}",
            counted(forks as u64, "worker")
        )),
        Need::All | Need::Done | Need::Count(_) => None,
    }
}

/// Returns whether the correct tags are forks, and another fork or a `goto` is malformed. The
/// correct ones alone would be a transition that silently lacks a worker, or a wait.
pub(crate) fn lacks_a_part(reading: &TagReading) -> bool {
    let is_part = |malformed: &Malformed| matches!(malformed.tag, TagName::Fork | TagName::Goto);
    is_one_fork(&reading.tags) && reading.malformed.iter().any(is_part)
}

/// Returns whether the tags are one transition: forks, or forks with one `goto`.
fn is_one_fork(tags: &[Tag]) -> bool {
    let count = |name| tags.iter().filter(|tag| tag.name() == name).count();
    let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
    gotos <= 1 && forks > 0 && forks + gotos == tags.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::few::Few;
    use crate::protocol::{Route, Untagged};

    fn goto(target: &str) -> Tag {
        Tag::Goto { target: target.to_owned(), input: None }
    }

    fn fork() -> Tag {
        Tag::Fork {
            target: "W".to_owned(),
            next: None,
            cd: None,
            input: None,
            attributes: Few::default(),
        }
    }

    #[test]
    fn tag_in_code_prevents_the_implicit_tag() {
        let route = Route { target: Some("B".to_owned()), then: None, wait: None };
        let only = Policy { transitions: Some(vec![(TagName::Goto, route)]), ..Policy::default() };
        let check = |untagged: Untagged, policy: &Policy, taken: Option<Tag>| {
            let reading = TagReading { untagged: untagged.clone(), ..TagReading::default() };
            let expected = taken.map(|tag| vec![tag]).ok_or(Fault::NoTag(untagged));
            assert_eq!(transition(&reading, policy), expected, "{policy:?}");
        };
        let in_code = Untagged { in_code: true, ..Untagged::default() };
        check(Untagged::default(), &only, Some(goto("B")));
        check(in_code, &only, None);
        check(Untagged::default(), &Policy::default(), None);
    }

    #[test]
    fn malformed_part_refuses_the_forks_beside_it() {
        let check = |tag: TagName, good: Vec<Tag>, is_taken: bool| {
            let malformed = vec![Malformed { tag, why: "it names no state".to_owned() }];
            let reading = TagReading { tags: good.clone(), malformed, ..TagReading::default() };
            let expected =
                if is_taken { Ok(good) } else { Err(Fault::Malformed(reading.malformed.clone())) };
            assert_eq!(transition(&reading, &Policy::default()), expected, "{reading:?}");
        };
        check(TagName::Fork, vec![fork()], false);
        check(TagName::Fork, vec![fork(), fork(), goto("A")], false);
        check(TagName::Fork, vec![goto("A")], true);
        check(TagName::Goto, vec![fork()], false);
        check(TagName::Reset, vec![fork()], true);
    }

    #[test]
    fn omitted_tags_still_count_as_tags() {
        let check = |tags: Vec<Tag>, omitted: usize, expected: Result<Vec<Tag>, Fault>| {
            let reading = TagReading { tags, omitted, ..TagReading::default() };
            assert_eq!(transition(&reading, &Policy::default()), expected, "{reading:?}");
        };
        let several = |tags: &[TagName], count| Fault::SeveralTags { tags: tags.to_vec(), count };
        check(vec![goto("A")], 0, Ok(vec![goto("A")]));
        check(vec![goto("A")], 1, Err(several(&[TagName::Goto], 2)));
        check(vec![fork(), fork()], 0, Ok(vec![fork(), fork()]));
        check(vec![fork(), fork()], 3, Err(several(&[TagName::Fork, TagName::Fork], 5)));
    }
}
