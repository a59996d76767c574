//! Chooses the transition of a text: one tag, or several forks with at most one `goto`.
//!
//! Tags were found in [`crate::protocol`] and are taken in [`super::tags`].

use crate::protocol::{Fault, Reading, Tag, TagName};
use crate::workflow::Policy;

/// Returns the one transition in a reading, or the fault that prevents it.
pub(crate) fn transition(reading: &Reading, policy: &Policy) -> Result<Vec<Tag>, Fault> {
    let count = reading.tags.len() + reading.omitted;
    match reading.tags.as_slice() {
        [] if !reading.malformed.is_empty() => Err(Fault::Malformed(reading.malformed.clone())),
        // A tag in code shows that the agent meant to write one, so the implicit tag must not
        // replace it.
        [] if reading.in_code => Err(Fault::NoTag),
        [] => policy.implicit().map(|tag| vec![tag]).ok_or(Fault::NoTag),
        [one] if count == 1 => Ok(vec![one.clone()]),
        tags if count == tags.len() && is_one_fork(tags) => Ok(tags.to_vec()),
        tags => {
            // Ten names are more than a fault shows; the journal does not need thousands of them.
            let tags = tags.iter().take(10).map(Tag::name).collect();
            Err(Fault::SeveralTags { tags, count })
        }
    }
}

/// Returns whether several tags are one transition: forks, or forks with one `goto`.
fn is_one_fork(tags: &[Tag]) -> bool {
    let count = |name| tags.iter().filter(|tag| tag.name() == name).count();
    let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
    gotos <= 1 && forks + gotos == tags.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::few::Few;
    use crate::protocol::Route;

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
        let route = Route { target: Some("B".to_owned()), then: None };
        let only = Policy { transitions: Some(vec![(TagName::Goto, route)]), ..Policy::default() };
        let check = |in_code: bool, policy: &Policy, expected: Result<Vec<Tag>, Fault>| {
            let reading = Reading { in_code, ..Reading::default() };
            assert_eq!(transition(&reading, policy), expected, "{in_code}: {policy:?}");
        };
        check(false, &only, Ok(vec![goto("B")]));
        check(true, &only, Err(Fault::NoTag));
        check(false, &Policy::default(), Err(Fault::NoTag));
    }

    #[test]
    fn omitted_tags_still_count_as_tags() {
        let check = |tags: Vec<Tag>, omitted: usize, expected: Result<Vec<Tag>, Fault>| {
            let reading = Reading { tags, omitted, ..Reading::default() };
            assert_eq!(transition(&reading, &Policy::default()), expected, "{reading:?}");
        };
        let several = |tags: &[TagName], count| Fault::SeveralTags { tags: tags.to_vec(), count };
        check(vec![goto("A")], 0, Ok(vec![goto("A")]));
        check(vec![goto("A")], 1, Err(several(&[TagName::Goto], 2)));
        check(vec![fork(), fork()], 0, Ok(vec![fork(), fork()]));
        check(vec![fork(), fork()], 3, Err(several(&[TagName::Fork, TagName::Fork], 5)));
    }
}
