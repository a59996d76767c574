//! The replies of a file, by agent, state, visit, turn and attempt.
//!
//! This module counts nothing: the same position in the program always finds the same entry.
//! Resuming a run or running agents in parallel therefore changes no reply.

use std::collections::BTreeMap;

use raymond_core::agent::Location;
use raymond_core::budget::Cost;
use raymond_core::crayfish::{StepId, StepKey};
use raymond_core::diagnostic::{Diagnostic, Place};
use raymond_core::ids::StateName;
use raymond_core::run::prepared_answers::{PreparedAnswers, StateAnswers};
use raymond_core::text::nearest;
use raymond_core::time::{Span, Timestamp};

use super::writes::Write;
use crate::contract::PromptRequest;

/// The key for all states without an entry, and for all further visits or turns.
pub(super) const ANY: &str = "*";

/// A parsed replies file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    pub(super) file: String,
    pub(super) states: Section,
    pub(super) agents: BTreeMap<String, Section>,
    /// Answers to questions, with the places of their states.
    pub(super) answers: BTreeMap<String, (Place, StateAnswers)>,
}

/// Entries by state as the file names them: by stem, by file name, or `*`.
pub(super) type Section = BTreeMap<String, Entry>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) visits: Numbered<Numbered<Attempts>>,
}

/// Values by a number that starts at 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Numbered<T> {
    /// One value for every number.
    Every(T),
    /// One value for each number, and perhaps one for all other numbers.
    Each { numbers: BTreeMap<u32, T>, others: Option<T> },
}

/// The replies for each attempt. The last one also serves all further attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempts {
    pub(super) earlier: Vec<ScriptedReply>,
    pub(super) last: ScriptedReply,
}

/// The reply to one attempt at a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedReply {
    /// The texts that the prompt must contain.
    pub(super) expect: Vec<String>,
    pub(super) delay: Option<Span>,
    pub(super) cost: Cost,
    /// The changes of the working directory before the action.
    pub(super) writes: Vec<Write>,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Answers with these messages; the last one is the final message.
    Say {
        earlier: Vec<String>,
        last: String,
        denied: Vec<String>,
    },
    /// Uses up the budget share.
    Cap,
    /// Never answers.
    Hang,
    Fail(ScriptedFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptedFailure {
    Transient(String),
    Timeout,
    Quota(String, Reset),
    Auth(String),
    Task(String),
    LostSession,
}

/// When a usage limit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    Unknown,
    At(Timestamp),
    After(Span),
}

impl Replies {
    /// Returns a mistake for every entry whose state does not exist; `noun` names the kind of
    /// state. A mistyped name is an error. Another name is only a warning, because several
    /// workflows may share a file.
    pub fn check<'a>(
        &self,
        states: impl IntoIterator<Item = &'a StateName>,
        noun: &str,
    ) -> Vec<Diagnostic> {
        let states: Vec<_> = states.into_iter().collect();
        let sections = std::iter::once(&self.states).chain(self.agents.values());
        let entries = sections.flatten().map(|(name, entry)| (name, &entry.place));
        let answers = self.answers.iter().map(|(name, (place, _))| (name, place));
        let names = |name: &str| states.iter().any(|state| is_key_of(name, state));
        entries
            .filter(|(name, _)| *name != ANY)
            .chain(answers)
            .filter(|(name, _)| !names(name))
            .map(|(name, place)| {
                let message = format!("no {noun} is called {name:?}");
                let known = states.iter().flat_map(|state| [state.stem(), state.as_str()]);
                let mistake = match nearest(name, known) {
                    Some(near) => Diagnostic::error("unknown-state", message)
                        .hint(format!("did you mean {near:?}?")),
                    None => Diagnostic::warning("unknown-state", message),
                };
                let place = Some(place.clone());
                Diagnostic { place, ..mistake.in_file(&*self.file) }
            })
            .collect()
    }

    /// Returns the answers to questions for a person.
    pub fn answers(&self) -> PreparedAnswers {
        let answers = self.answers.iter();
        PreparedAnswers(answers.map(|(name, (_, of))| (name.clone(), of.clone())).collect())
    }

    /// Returns the reply to a request. The error names the key without an entry.
    pub(super) fn find(&self, request: &PromptRequest) -> Result<&ScriptedReply, String> {
        let own = self.agents.get(request.started.turn.agent.as_str());
        // An agent's own replies come before those for all agents.
        let mut sections = own.into_iter().chain([&self.states]);
        sections
            .find_map(|section| entry(section, &request.location))
            .and_then(|entry| entry.attempts(request))
            .map(|attempts| attempts.at(request.started.attempt))
            .ok_or_else(|| {
                let (key, file) = (key(request), &self.file);
                format!("no reply for {key} in {file}: add one under {}", self.locate(request))
            })
    }

    /// Returns where a reply is searched first.
    fn locate(&self, request: &PromptRequest) -> String {
        let (agent, location) = (request.started.turn.agent.as_str(), &request.location);
        let own = self.agents.get(agent).is_some_and(|section| entry(section, location).is_some());
        let name = location.stem();
        if own { format!("{name} of agent {agent}") } else { name }
    }

    /// Returns one warning for all prompts that no entry answers.
    pub fn unanswered<'a>(
        &self,
        prompts: impl IntoIterator<Item = &'a StateName>,
    ) -> Option<Diagnostic> {
        let sections = std::iter::once(&self.states).chain(self.agents.values());
        let answers = |section: &Section, state: &StateName| {
            section.keys().any(|name| name == ANY || is_key_of(name, state))
        };
        let silent = |state: &&StateName| !sections.clone().any(|section| answers(section, state));
        let stems: Vec<&str> = prompts.into_iter().filter(silent).map(StateName::stem).collect();
        let condition = if stems.len() == 1 { "it is" } else { "they are" };
        let message = format!("no reply for {}, if {condition} reached", stems.join(", "));
        let warning = Diagnostic::warning("no-reply", message).in_file(&*self.file);
        (!stems.is_empty()).then_some(warning)
    }
}

/// Returns the position of a request: `main / REVIEW.md / visit 3 / turn 1`, or for a step `main /
/// attempt 2 of verify`.
pub(super) fn key(request: &PromptRequest) -> String {
    let (agent, turn) = (&request.started.turn.agent, request.started.turn.turn);
    let count = request.count;
    match &request.location {
        Location::Step(key) => format!("{agent} / attempt {count} of {key}"),
        Location::State(state) => format!("{agent} / {state} / visit {count} / turn {turn}"),
    }
}

/// Whether an entry of this name may answer a state, or a step that has keys of its own in loops.
fn is_key_of(name: &str, state: &StateName) -> bool {
    name == state.as_str()
        || name == state.stem()
        || step_in_loops(name).is_some_and(|step| step.as_str() == state.as_str())
}

/// Returns the step of a key with iterations: `verify` of `loop[2].verify`.
fn step_in_loops(key: &str) -> Option<StepId> {
    let key: StepKey = key.parse().ok()?;
    (!key.iterations.is_empty()).then_some(key.step)
}

fn entry<'a>(section: &'a Section, location: &Location) -> Option<&'a Entry> {
    let general = match location {
        Location::State(state) => state.stem(),
        Location::Step(key) => key.step.as_str(),
    };
    // The most specific key wins.
    let keys = [location.to_string().as_str(), general, ANY].map(|key| section.get(key));
    keys.into_iter().flatten().next()
}

impl Entry {
    /// Returns the attempts for a turn.
    fn attempts(&self, request: &PromptRequest) -> Option<&Attempts> {
        // A step is entered once under its key but may be asked repeatedly, so its list counts the
        // questions instead of the visits.
        if let Location::State(_) = request.location {
            return self.visits.at(request.count)?.at(request.started.turn.turn);
        }
        match self.visits.at(1) {
            Some(Numbered::Every(_)) | None => self.visits.at(request.count)?.at(1),
            Some(asked) => asked.at(request.count),
        }
    }
}

impl<T> Numbered<T> {
    fn at(&self, number: u32) -> Option<&T> {
        match self {
            Self::Every(same) => Some(same),
            Self::Each { numbers, others } => numbers.get(&number).or(others.as_ref()),
        }
    }
}

impl Attempts {
    fn at(&self, attempt: u32) -> &ScriptedReply {
        let index = attempt.saturating_sub(1) as usize;
        self.earlier.get(index).unwrap_or(&self.last)
    }
}
