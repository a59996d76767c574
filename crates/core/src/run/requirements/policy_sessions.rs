//! Policies that lead a conversation to a backend that does not hold it.
//!
//! A prompt has had a turn when it emits a tag, so its backend holds the conversation that `goto`,
//! `call`, a `return` and a `next` go on in: an entry that names a prompt of another backend can never
//! be taken. A policy that allows any state names none. A `then` may be met by a fresh conversation: it
//! is a warning.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::protocol::{Route, Routes, TagName};
use crate::workflow::frontmatter::Role;
use crate::workflow::{Mark, Reachability, State};

use super::Requirements;

impl<'a> Requirements<'a> {
    pub(super) fn crossings(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        reachability.prompts().flat_map(|state| self.crossings_of(reachability, state)).collect()
    }

    fn crossings_of(&self, reachability: &Reachability<'a>, state: &State) -> Vec<Diagnostic> {
        let own = self.settings.real_backend_of(&state.front);
        let mut names = BTreeSet::new();
        for (tag, routes) in state.front.policy.allowances() {
            let Routes::Only(routes) = routes else { continue };
            names.extend(routes.iter().flat_map(|route| going_on(tag, route)));
        }
        let crosses = |(tag, word, name): (TagName, Word, String)| {
            let target = reachability.prompt(&name)?;
            let other = self.settings.real_backend_of(&target.front);
            let known = self.catalog.of(own).is_some() && self.catalog.of(other).is_some();
            if own == other || !known {
                return None;
            }
            let mistake = mistake((tag, word), target, (own, other));
            Some(reachability.marked(mistake, state, Mark::Name(word.role(tag), &name)))
        };
        names.into_iter().filter_map(crosses).chain(self.limit_of(reachability, state)).collect()
    }

    /// A `then` that leads to another backend. A transition that begins a conversation can take it.
    fn limit_of(&self, reachability: &Reachability<'a>, state: &State) -> Option<Diagnostic> {
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
        Some(reachability.marked(warning, state, Mark::Key("then")))
    }
}

/// What names a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Target,
    Return,
    Next,
}

impl Word {
    const fn role(self, tag: TagName) -> Role {
        match self {
            Self::Target => Role::Policy(tag),
            Self::Return | Self::Next => Role::Following(tag),
        }
    }
}

/// The names of an entry that go on in the conversation.
fn going_on(tag: TagName, route: &Route) -> Vec<(TagName, Word, String)> {
    let target = (Word::Target, &route.target);
    let words = match tag {
        TagName::Goto => vec![target],
        TagName::Call => vec![target, (Word::Return, &route.then)],
        TagName::Function => vec![(Word::Return, &route.then)],
        TagName::Fork => vec![(Word::Next, &route.then)],
        TagName::Reset | TagName::Result => Vec::new(),
    };
    let named = |(word, name): (Word, &Option<String>)| Some((tag, word, name.clone()?));
    words.into_iter().filter_map(named).collect()
}

fn mistake(
    (tag, word): (TagName, Word),
    target: &State,
    (own, other): (&BackendName, &BackendName),
) -> Diagnostic {
    let name = &target.name;
    let (what, hint) = match word {
        Word::Target => (
            format!("`{tag}` to {name}"),
            format!("reach {name} by `reset`, `function` or `fork`: they begin a conversation"),
        ),
        Word::Return => (
            format!("the `return` of `{tag}` to {name}"),
            format!("return to a state that {own} answers"),
        ),
        Word::Next => (
            format!("the `next` of `{tag}`, {name},"),
            format!("go on at a state that {own} answers"),
        ),
    };
    let message =
        format!("{what} would go on in a conversation of {own}, and {other} answers {name}");
    Diagnostic::error("other-backend", message).hint(hint)
}
