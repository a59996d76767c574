//! Finds policies that lead a conversation to a backend that does not have it.
//!
//! A prompt has had a turn when it emits a tag, so its backend has the conversation that `goto`,
//! `call`, a `return` or a `next` continues. An entry that names a prompt of another backend can
//! therefore never be taken, which is an error. A policy that allows any state names no prompt, so
//! it is not checked here. A `then` may be reached with a fresh conversation, so it is only a
//! warning.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::protocol::tags::Follower;
use crate::protocol::{Route, Routes, TagName};
use crate::workflow::frontmatter::Role;
use crate::workflow::{FrontmatterPart, Reachability, State};

use super::Requirements;

impl<'a> Requirements<'a> {
    pub(super) fn mismatches(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        reachability.prompts().flat_map(|state| self.mismatches_of(reachability, state)).collect()
    }

    fn mismatches_of(&self, reachability: &Reachability<'a>, state: &State) -> Vec<Diagnostic> {
        let own = self.settings.real_backend_of(&state.front);
        let mut names = BTreeSet::new();
        for (tag, routes) in state.front.policy.allowances() {
            // Allowing any state names none, so no entry of it is certain to fail.
            let Routes::Only(routes) = routes else { continue };
            names.extend(routes.iter().flat_map(|route| continuing(tag, route)));
        }
        let mismatched = |(tag, part, name): (TagName, EntryPart, String)| {
            let target = reachability.prompt(&name)?;
            let other = self.settings.real_backend_of(&target.front);
            // An unknown backend has a finding of its own, which a second one would only repeat.
            let known = self.catalog.of(own).is_some() && self.catalog.of(other).is_some();
            if own == other || !known {
                return None;
            }
            let mistake = mistake(tag, part, target, own, other);
            Some(reachability.marked(mistake, state, FrontmatterPart::Name(part.role(tag), &name)))
        };
        names.into_iter().filter_map(mismatched).chain(self.limit_of(reachability, state)).collect()
    }

    /// Warns about a `then` that leads to another backend. A transition that begins a conversation
    /// can still take it.
    fn limit_of(&self, reachability: &Reachability<'a>, state: &State) -> Option<Diagnostic> {
        // A script has no conversation, so `then` may always lead to one.
        let target = reachability.prompt(state.front.then.as_deref()?)?;
        let own = self.settings.backend_of(&state.front);
        let other = self.settings.backend_of(&target.front);
        if own == other || self.catalog.of(own).is_none() || self.catalog.of(other).is_none() {
            return None;
        }
        let (name, target) = (&state.name, &target.name);
        let message = format!(
            "`then` leads from {own} to {other}, which answers {target}: only a fresh conversation can go there"
        );
        let hint = format!(
            "name a state that {own} answers, or reach {name} by `reset`, `function` or `fork` alone"
        );
        let warning = Diagnostic::warning("other-backend", message).hint(hint);
        Some(reachability.marked(warning, state, FrontmatterPart::Key("then")))
    }
}

/// The part of a policy entry that names a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryPart {
    Target,
    Follower,
}

impl EntryPart {
    const fn role(self, tag: TagName) -> Role {
        match self {
            Self::Target => Role::Policy(tag),
            Self::Follower => Role::Following(tag),
        }
    }
}

/// Returns the states of an entry that continue the conversation.
fn continuing(tag: TagName, route: &Route) -> Vec<(TagName, EntryPart, String)> {
    let spec = tag.spec();
    let target = route.target.clone().filter(|_| spec.continues_at_target);
    let follower = route.then.clone().filter(|_| spec.follower.is_some());
    let target = target.map(|name| (tag, EntryPart::Target, name));
    target.into_iter().chain(follower.map(|name| (tag, EntryPart::Follower, name))).collect()
}

fn mistake(
    tag: TagName,
    part: EntryPart,
    target: &State,
    own: &BackendName,
    other: &BackendName,
) -> Diagnostic {
    let name = &target.name;
    let (what, hint) = match (part, tag.spec().follower) {
        (EntryPart::Follower, Some(Follower { attribute, advice, .. })) => (
            format!("the `{attribute}` of `{tag}`, {name},"),
            format!("{advice} a state that {own} answers"),
        ),
        (EntryPart::Target | EntryPart::Follower, _) => (
            format!("`{tag}` to {name}"),
            format!("reach {name} by `reset`, `function` or `fork`: they begin a conversation"),
        ),
    };
    let message =
        format!("{what} would continue a conversation of {own}, but {other} answers {name}");
    Diagnostic::error("other-backend", message).hint(hint)
}
