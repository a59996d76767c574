//! Reminders: the text for an agent whose message cannot be used.
//!
//! A reminder is short: the fault, the instruction, and the exact tags that are allowed. It does
//! not repeat the prompt, because the agent reads it in the same session.

use std::collections::BTreeSet;

use super::allowance::{Allowance, Choice, Route, Routes};
use super::fault::{Fault, names};
use super::reading::Malformed;
use super::tags::{Body, Follower, TagName};
use super::untagged::Untagged;
use crate::text::{excerpt, listed};

/// Names or tags that a reminder lists; further ones are counted, because each reminder costs
/// tokens.
const MOST_LISTED: usize = 40;
/// Malformed tags that a reminder explains.
const MOST_EXPLAINED: usize = 5;
/// The placeholder for the name of any state.
const STATE: &str = "STATE";
/// Characters of a text from the message that are shown.
const SHOWN: usize = 80;

/// Returns the reminder for `fault` at a state with these allowed tags.
pub fn reminder(fault: &Fault, allowed: &Allowance) -> String {
    let forks = if concerns_forks(fault) {
        " No worker was started: write all your <fork> tags again, the correct ones as well."
    } else {
        ""
    };
    format!("{}{forks}\n\n{}\n", complaint(fault), instruction(allowed))
}

/// Returns whether the message has a `fork` that was not taken, perhaps beside correct ones.
fn concerns_forks(fault: &Fault) -> bool {
    match fault {
        Fault::Malformed(tags) => tags.iter().any(|malformed| malformed.tag == TagName::Fork),
        Fault::Unresolved { tag, .. }
        | Fault::NoDirectory { tag, .. }
        | Fault::Forbidden { tag, .. }
        | Fault::OtherBackend { tag, .. } => *tag == TagName::Fork,
        Fault::NextDiffers { .. } => true,
        Fault::SeveralTags { tags, .. } => tags.contains(&TagName::Fork),
        Fault::NoTag(_) | Fault::NoBranch { .. } | Fault::Denied { .. } => false,
    }
}

fn complaint(fault: &Fault) -> String {
    match fault {
        Fault::NoTag(found) => untagged(found),
        Fault::SeveralTags { tags, count } => format!(
            "Your message contains {count} transition tags ({}), and only one can be followed. Where \
             you mean a tag itself, describe it, do not write it.",
            names(tags, *count)
        ),
        Fault::Malformed(tags) => malformed(tags),
        Fault::Unresolved { tag, attribute, why, .. } => {
            // `why` may end with a suggestion: "did you mean …?".
            let stop = if why.ends_with('?') { "" } else { "." };
            let part = attribute
                .as_ref()
                .map_or_else(String::new, |name| format!("attribute `{name}` of the "));
            format!("The {part}<{tag}> tag of your message leads nowhere: {why}{stop}")
        }
        Fault::NextDiffers { states } => format!(
            "All fork tags of one message, and the goto tag beside them, must continue at the same \
             state; yours name {}.",
            listed(states, MOST_LISTED, " and ")
        ),
        Fault::NoDirectory { tag, cd } => format!(
            "The <{tag}> tag of your message names a directory in `cd` that does not exist: {:?}.",
            excerpt(cd, SHOWN)
        ),
        Fault::Forbidden { tag, target, follower } => {
            forbidden(*tag, target.as_deref(), follower.as_deref())
        }
        Fault::OtherBackend { tag, state, answers, holds } => format!(
            "The <{tag}> tag of your message cannot be followed: {state} would continue this \
             conversation, which belongs to {holds}, but {answers} answers {state}. A state of another \
             backend needs a conversation of its own: {}.",
            fault.instead().unwrap_or_default()
        ),
        Fault::NoBranch { backend } => format!(
            "The <call> tag of your message cannot be followed: {backend} cannot branch this \
             conversation: {}.",
            fault.instead().unwrap_or_default()
        ),
        Fault::Denied { tools } => format!(
            "You were denied these tools: {}. Reach the goal without them, or say what is missing.",
            listed(tools, MOST_LISTED, ", ")
        ),
    }
}

fn untagged(found: &Untagged) -> String {
    let explained = match found.explanation() {
        Some(explanation) => format!(": {explanation}."),
        None => ". (In code, a tag counts only if it is alone on its lines.)".to_owned(),
    };
    format!("Your message contains no transition tag, so the workflow cannot continue{explained}")
}

fn forbidden(tag: TagName, target: Option<&str>, follower: Option<&str>) -> String {
    let target = target.map(|target| format!("the state {:?}", excerpt(target, SHOWN)));
    let follower = tag.spec().follower.zip(follower).map(|(Follower { attribute, .. }, named)| {
        format!("{attribute}={:?}", excerpt(named, SHOWN))
    });
    let parts: Vec<String> = target.into_iter().chain(follower).collect();
    if parts.is_empty() {
        return format!("The <{tag}> tag of your message is not allowed here.");
    }
    let parts = parts.join(" and ");
    format!("The <{tag}> tag of your message, with {parts}, is not allowed here.")
}

fn malformed(tags: &[Malformed]) -> String {
    if let [only] = tags {
        return format!("The <{}> tag of your message cannot be read: {}.", only.tag, only.why);
    }
    let mut lines = vec!["The tags of your message cannot be read:".to_owned()];
    let shown = tags.iter().take(MOST_EXPLAINED);
    lines.extend(shown.map(|each| format!("- <{}>: {}", each.tag, each.why)));
    if let Some(hidden @ [_, ..]) = tags.get(MOST_EXPLAINED..) {
        lines.push(format!("- … and {} more", hidden.len()));
    }
    lines.join("\n")
}

fn instruction(allowed: &Allowance) -> String {
    let routes: Vec<(TagName, &Route)> = allowed.choices.iter().flat_map(routes).collect();
    let ask = match routes.as_slice() {
        [] => return "The policy of this state allows no tag: say so, and stop.".to_owned(),
        [_] => "this tag",
        [_, _, ..] => "exactly one of these tags",
    };
    let mut parts = vec![
        format!(
            "Do not repeat finished work. End your next message with {ask}, written as plain text, \
             not in code:"
        ),
        tag_lines(allowed).join("\n"),
    ];
    let notes = allowed.choices.iter().filter_map(|choice| choice.tag.spec().note);
    parts.extend(notes.map(str::to_owned));
    if routes.iter().any(|(_, route)| route.wait.is_some()) {
        // Alone it would be malformed, and the forks alone would not be waited for.
        parts.push(
            "A <goto> with wait needs <fork> tags in the same message: it waits for their workers."
                .to_owned(),
        );
    }
    parts.extend(legend(&routes, &allowed.states));
    parts.join("\n\n")
}

/// Lists the allowed tags.
fn tag_lines(allowed: &Allowance) -> Vec<String> {
    // Each tag gets an equal part, so that a tag with many routes does not hide the others.
    let most = (MOST_LISTED / allowed.choices.len().max(1)).max(1);
    let mut lines = Vec::new();
    for choice in &allowed.choices {
        let all = routes(choice).count();
        let shown = routes(choice).take(most);
        lines.extend(shown.map(|(tag, route)| written(tag, route)));
        if all > most {
            lines.push(format!("… and {} more <{}> tags", all - most, choice.tag));
        }
    }
    lines
}

/// Explains the placeholders of the listed tags.
fn legend(routes: &[(TagName, &Route)], states: &[String]) -> Option<String> {
    let mut words = Vec::new();
    for (tag, route) in routes {
        let spec = tag.spec();
        let target = (spec.body == Body::Target && route.target.is_none()).then_some(STATE);
        let follower = spec.follower.filter(|_| route.then.is_none());
        words.extend(target.into_iter().chain(follower.map(|follower| follower.placeholder)));
    }
    // In the order in which tags are explained; the placeholder of the target comes first.
    words.sort_by_key(|word| *word != STATE);
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(*word));
    let any = !words.is_empty() && !states.is_empty();
    any.then(|| format!("{}: one of {}", words.join(", "), listed(states, MOST_LISTED, ", ")))
}

fn routes(choice: &Choice) -> impl Iterator<Item = (TagName, &Route)> {
    const ANY: &[Route] = &[Route { target: None, then: None, wait: None }];
    let spec = choice.tag.spec();
    let names_states = spec.body == Body::Target || spec.follower.is_some();
    let routes = match &choice.routes {
        Routes::Only(routes) if names_states => routes,
        Routes::Only(_) | Routes::Any => ANY,
    };
    routes.iter().map(|route| (choice.tag, route))
}

/// Returns a few of the allowed tags for the message of a failure: a `goto` and a `result` where
/// every tag is allowed.
pub fn examples(allowed: &Allowance) -> Vec<String> {
    // Tags; a failure is one line.
    const MOST: usize = 3;
    let is_free = allowed.choices.len() >= TagName::WITHOUT_POLICY.len();
    let usual = |tag: TagName| !is_free || matches!(tag, TagName::Goto | TagName::Result);
    let routes = allowed.choices.iter().flat_map(routes).filter(|(tag, _)| usual(*tag));
    routes.take(MOST).map(|(tag, route)| written(tag, route)).collect()
}

/// Returns the tag exactly as the agent has to write it, with placeholders for free names.
fn written(tag: TagName, route: &Route) -> String {
    let spec = tag.spec();
    let body = match spec.body {
        Body::Target => route.target.as_deref().unwrap_or(STATE),
        Body::Payload(placeholder) => placeholder,
    };
    let follower = spec.follower.map(|Follower { attribute, placeholder, .. }| {
        format!(" {attribute}=\"{}\"", route.then.as_deref().unwrap_or(placeholder))
    });
    let wait = route.wait.map(|need| format!(" wait=\"{need}\"")).unwrap_or_default();
    format!("<{tag}{}{wait}>{body}</{tag}>", follower.unwrap_or_default())
}

#[cfg(test)]
mod tests;
