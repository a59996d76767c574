//! A definition while it is checked for mistakes.
//!
//! A mistake in a state that neither the entry nor a policy reaches cannot affect a run, so it
//! becomes a warning. Nothing is concluded from a state that could not be read completely.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Severity};
use crate::ids::StateName;

use super::super::frontmatter::{self, Role};
use super::{Definition, State};
use crate::extension::StateKind;

/// A definition with its reachable states and its unreadable states.
#[derive(Debug)]
pub struct Reachability<'a> {
    pub definition: &'a Definition,
    reached: BTreeSet<StateName>,
    broken: BTreeSet<StateName>,
}

/// The part of a frontmatter that a mistake is about.
#[derive(Debug, Clone, Copy)]
pub enum FrontmatterPart<'a> {
    /// A key of the frontmatter.
    Key(&'a str),
    /// A name in the policy, and its role.
    Name(Role, &'a str),
}

impl<'a> Reachability<'a> {
    /// Examines a definition without mistakes, from its entry.
    pub fn of(definition: &'a Definition) -> Self {
        Self::new(definition, BTreeSet::new())
    }

    /// Examines a definition from the states at which a run continues.
    pub fn from_states<'s>(
        definition: &'a Definition,
        at: impl IntoIterator<Item = &'s StateName>,
    ) -> Self {
        let reached = definition.reach(at, &|_| false);
        Self { definition, reached, broken: BTreeSet::new() }
    }

    /// Examines a definition that may have mistakes. If the entry is unknown, all states count as
    /// reachable.
    pub(super) fn new(definition: &'a Definition, broken: BTreeSet<StateName>) -> Self {
        // Without an entry nothing could be reached, and every mistake would become a warning.
        let reached = if definition.states.contains_key(&definition.entry) {
            definition.reach([&definition.entry], &|name| broken.contains(name))
        } else {
            definition.states.keys().cloned().collect()
        };
        Self { definition, reached, broken }
    }

    /// Whether every state could be read completely.
    pub fn is_complete(&self) -> bool {
        self.broken.is_empty()
    }

    /// Returns the readable prompts, and the agent steps.
    pub fn prompts(&self) -> impl Iterator<Item = &'a State> {
        let states = self.definition.states.values().filter(|state| self.is_prompt(state));
        states.chain(&self.definition.asking)
    }

    /// Returns the prompt that a name in a policy means, if it is readable.
    pub fn prompt(&self, name: &str) -> Option<&'a State> {
        self.definition.resolve(name).ok().filter(|state| self.is_prompt(state))
    }

    fn is_prompt(&self, state: &State) -> bool {
        state.kind == StateKind::Prompt && !self.broken.contains(&state.name)
    }

    /// Returns whether a run can reach a state.
    pub fn is_reached(&self, state: &StateName) -> bool {
        // In a document of steps only the run itself knows which steps are left.
        self.reached.contains(state) || self.definition.steps.is_some()
    }

    #[must_use]
    /// Attaches a diagnostic to a state, and turns an error into a warning if the state is not
    /// reachable.
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

    /// Attaches a diagnostic to a part of a state's frontmatter.
    #[must_use]
    pub fn marked(
        &self,
        diagnostic: Diagnostic,
        state: &State,
        mark: FrontmatterPart<'_>,
    ) -> Diagnostic {
        let text = String::from_utf8_lossy(&state.source.bytes);
        // Parsed again, because the definition does not keep spans: only rare mistakes need them.
        let prompt = frontmatter::parse(&text);
        let span = match mark {
            FrontmatterPart::Key(name) => {
                prompt.keys.iter().find(|key| key.name == name).map(|key| &key.span)
            }
            FrontmatterPart::Name(role, name) => {
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
