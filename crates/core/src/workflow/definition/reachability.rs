//! A definition while its mistakes are looked for.
//!
//! What no policy and no entry reaches cannot hurt a run, so a mistake there is a warning; and of a
//! state that cannot be read in full nothing is concluded.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Severity};
use crate::ids::StateName;

use super::super::frontmatter::{self, Role};
use super::{Definition, State};
use crate::extension::Kind;

/// A definition, which of its states a run can come to, and which could not be read.
#[derive(Debug)]
pub struct Reachability<'a> {
    /// The definition.
    pub definition: &'a Definition,
    reached: BTreeSet<StateName>,
    broken: BTreeSet<StateName>,
}

/// What a mistake stands at.
#[derive(Debug, Clone, Copy)]
pub enum Mark<'a> {
    /// A key of the frontmatter.
    Key(&'a str),
    /// A name in the policy, and what it is named for.
    Name(Role, &'a str),
}

impl<'a> Reachability<'a> {
    /// A definition that was read without mistakes.
    pub fn of(definition: &'a Definition) -> Self {
        Self::new(definition, BTreeSet::new())
    }

    /// The same for a run that goes on at these states.
    pub fn going_on<'s>(
        definition: &'a Definition,
        at: impl IntoIterator<Item = &'s StateName>,
    ) -> Self {
        let reached = definition.reach(at, &|_| false);
        Self { definition, reached, broken: BTreeSet::new() }
    }

    /// All states are reached when the entry is unknown.
    pub(super) fn new(definition: &'a Definition, broken: BTreeSet<StateName>) -> Self {
        let reached = if definition.states.contains_key(&definition.entry) {
            definition.reach([&definition.entry], &|name| broken.contains(name))
        } else {
            definition.states.keys().cloned().collect()
        };
        Self { definition, reached, broken }
    }

    /// The prompts that could be read, and agent steps.
    pub fn prompts(&self) -> impl Iterator<Item = &'a State> {
        let states = self.definition.states.values().filter(|state| self.is_prompt(state));
        states.chain(&self.definition.asking)
    }

    /// The prompt that a name in a policy means, unless it could not be read.
    pub fn prompt(&self, name: &str) -> Option<&'a State> {
        self.definition.resolve(name).ok().filter(|state| self.is_prompt(state))
    }

    fn is_prompt(&self, state: &State) -> bool {
        state.kind == Kind::Prompt && !self.broken.contains(&state.name)
    }

    /// Whether a run can come to a state.
    pub fn is_reached(&self, state: &StateName) -> bool {
        // Which steps are left is for the run to find out.
        self.reached.contains(state) || self.definition.work.is_some()
    }

    /// A mistake in a state.
    #[must_use]
    pub fn placed(&self, diagnostic: Diagnostic, state: &StateName) -> Diagnostic {
        let diagnostic = diagnostic.in_file(state.as_str());
        match diagnostic.severity {
            Severity::Error if !self.is_reached(state) => Diagnostic {
                severity: Severity::Warning,
                message: format!("{} (nothing leads here)", diagnostic.message),
                ..diagnostic
            },
            Severity::Error | Severity::Warning => diagnostic,
        }
    }

    /// A mistake in a state, at what it stands at.
    #[must_use]
    pub fn marked(&self, diagnostic: Diagnostic, state: &State, mark: Mark<'_>) -> Diagnostic {
        let text = String::from_utf8_lossy(&state.source.bytes);
        let prompt = frontmatter::parse(&text);
        let span = match mark {
            Mark::Key(name) => prompt.keys.iter().find(|key| key.name == name).map(|key| &key.span),
            Mark::Name(role, name) => {
                let is_meant =
                    |mention: &&frontmatter::Mention| mention.role == role && mention.name == name;
                prompt.mentions.iter().find(is_meant).map(|mention| &mention.span)
            }
        };
        let diagnostic = match span {
            Some(span) => diagnostic.at(&text, span.clone()),
            None => diagnostic,
        };
        self.placed(diagnostic, &state.name)
    }
}
