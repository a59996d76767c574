//! Turns the tags of a message into one transition or one fault.
//!
//! If a message has several faults, the first in the order of [`Fault`] is reported.

use std::collections::BTreeMap;

use raymond_core::protocol::TagName;

use super::history::Fault;
use super::message_context::MessageContext;
use super::read::Reading;
use super::tags::{Tag, Transition, forks, grammar, single};
use super::workflow::State;

pub(super) fn decide(reading: Reading, context: &MessageContext<'_>) -> Result<Transition, Fault> {
    let tags = one_transition(reading.settled(), context.state)?;
    match tags.as_slice() {
        [tag] => single(context, tag),
        several => forks(context, several),
    }
}

/// Returns the tags of one transition: a single tag, many forks, or the implicit tag.
fn one_transition(reading: Reading, state: &State) -> Result<Vec<Tag>, Fault> {
    let Reading { tags, malformed, malformed_parts, malformed_asks, in_code, .. } = reading;
    let (tags, malformed) = if may_ask(state) {
        (tags, malformed)
    } else {
        // Questions are text, unless nothing else is there.
        let asks = tags.iter().any(|tag| tag.name == TagName::Ask) || malformed_asks > 0;
        let others: Vec<Tag> = tags.into_iter().filter(|tag| tag.name != TagName::Ask).collect();
        if asks && others.is_empty() && malformed == malformed_asks {
            return Err(Fault::Forbidden);
        }
        (others, malformed - malformed_asks)
    };
    if tags.is_empty() {
        if malformed > 0 {
            return Err(Fault::Malformed);
        }
        // A tag in code may be what the agent meant, so it gets a reminder instead of the implicit
        // transition.
        let implicit = if in_code { None } else { implicit(state) };
        return implicit.map(|tag| vec![tag]).ok_or(Fault::NoTag);
    }
    let count = |name| tags.iter().filter(|tag| tag.name == name).count();
    let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
    let only_forks = forks > 0 && gotos <= 1 && forks + gotos == tags.len();
    // Other malformed tags beside good ones are ignored, but a fork must not lose a
    // worker or a wait.
    if only_forks && malformed_parts > 0 {
        return Err(Fault::Malformed);
    }
    if (tags.len() == 1 || only_forks) && has_wrong_wait(&tags, forks) {
        return Err(Fault::Malformed);
    }
    if tags.len() == 1 || only_forks { Ok(tags) } else { Err(Fault::SeveralTags) }
}

/// Returns whether the state may ask a person: a script, or a prompt whose policy names `ask`.
fn may_ask(state: &State) -> bool {
    let State::Prompt(prompt) = state else { return true };
    let policy = &prompt.policy;
    let is_entry = |(tag, _): &(TagName, _)| *tag == TagName::Ask;
    policy.tags.as_ref().is_some_and(|tags| tags.contains(&TagName::Ask))
        || policy.targets.contains_key(&TagName::Ask)
        || policy.transitions.iter().flatten().any(is_entry)
}

/// Returns whether a tag waits for more workers than the message starts.
fn has_wrong_wait(tags: &[Tag], forks: usize) -> bool {
    // A fork has no wait: the reader refuses it.
    let goto = tags.iter().filter(|tag| tag.name == TagName::Goto);
    goto.filter_map(|tag| tag.attributes.get("wait")).any(|wait| {
        let number = wait.trim().parse::<usize>();
        forks == 0 || number.is_ok_and(|number| number > forks)
    })
}

/// Returns the only entry of `allowed_transitions` if it is completely determined.
fn implicit(state: &State) -> Option<Tag> {
    let State::Prompt(prompt) = state else {
        return None;
    };
    let [(name, allowed)] = prompt.policy.transitions.as_deref()? else {
        return None;
    };
    let grammar = grammar(*name);
    if !grammar.has_target {
        return None;
    }
    let mut attributes = BTreeMap::new();
    if let Some(key) = grammar.second_state {
        attributes.insert(key.to_owned(), allowed.then.clone()?);
    }
    Some(Tag { name: *name, body: allowed.target.clone()?, attributes })
}
