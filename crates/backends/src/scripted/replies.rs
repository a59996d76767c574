//! What a file of replies says, by agent, state, visit, turn and attempt.
//!
//! Nothing is counted here: the same place in the program always finds the same entry, so resuming
//! a run or running agents at once changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use raymond_core::budget::Cost;
use raymond_core::crayfish::{Key, StepId};
use raymond_core::diagnostic::{Diagnostic, Place};
use raymond_core::ids::StateName;
use raymond_core::time::{Span, Timestamp};
use raymond_core::workflow::{Extension, nearest};

use super::parse;
use super::writes::Write;
use crate::contract::Request;

/// The key of any state that has no entry of its own, and of any further visit or turn.
pub(super) const ANY: &str = "*";

/// A file of replies, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    pub(super) file: String,
    pub(super) states: Section,
    pub(super) agents: BTreeMap<String, Section>,
}

/// Entries by state, as the file names them: by stem, by file name, or `*`.
pub(super) type Section = BTreeMap<String, Entry>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) visits: Numbered<Numbered<Attempts>>,
}

/// Things that are told apart by a number from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Numbered<T> {
    /// The same for every number.
    Every(T),
    /// One for each number, and perhaps one for all others.
    Each { numbers: BTreeMap<u32, T>, others: Option<T> },
}

/// What is played at each attempt; the last one also at all further attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempts {
    pub(super) earlier: Vec<ScriptedReply>,
    pub(super) last: ScriptedReply,
}

/// How one attempt at a turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedReply {
    /// What the prompt must hold.
    pub(super) expect: Vec<String>,
    pub(super) delay: Option<Span>,
    pub(super) cost: Cost,
    /// What it does to the working directory, before it acts.
    pub(super) writes: Vec<Write>,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Says these messages; only the last one is the final one.
    Say {
        earlier: Vec<String>,
        last: String,
        denied: Vec<String>,
    },
    /// Uses up its cap.
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

/// When a usage limit is lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    Unknown,
    At(Timestamp),
    After(Span),
}

impl Replies {
    /// Reads the file; every mistake in it is told.
    pub fn load(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read {}: {error}", path.display());
            vec![Diagnostic::error("unreadable", message).in_file(&*name)]
        })?;
        Self::parse(&name, &text)
    }

    /// Reads the text of a file of this name; every mistake in it is told.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        parse::replies(name, text)
    }

    /// Warns of entries for states that the scope does not have; a noun says what they are.
    pub fn check<'a>(
        &self,
        states: impl IntoIterator<Item = &'a StateName>,
        noun: &str,
    ) -> Vec<Diagnostic> {
        let states: Vec<_> = states.into_iter().collect();
        let sections = std::iter::once(&self.states).chain(self.agents.values());
        let names = |name: &str| states.iter().any(|state| is_key_of(name, state));
        sections
            .flatten()
            .filter(|(name, _)| *name != ANY && !names(name))
            .map(|(name, entry)| {
                let message = format!("no {noun} is called {name:?}");
                let warning = Diagnostic::warning("unknown-state", message).in_file(&*self.file);
                let known = states.iter().flat_map(|state| [state.stem(), state.as_str()]);
                let hint = nearest(name, known).map(|near| format!("did you mean {near:?}?"));
                Diagnostic { place: Some(entry.place.clone()), hint, ..warning }
            })
            .collect()
    }

    /// What is played for the request; when there is nothing, the key that has no entry.
    pub(super) fn find(&self, request: &Request) -> Result<&ScriptedReply, String> {
        let own = self.agents.get(request.started.turn.agent.as_str());
        let mut sections = own.into_iter().chain([&self.states]);
        sections
            .find_map(|section| entry(section, &request.state))
            .and_then(|entry| entry.attempts(request))
            .map(|attempts| attempts.at(request.started.attempt))
            .ok_or_else(|| {
                let (key, file) = (key(request), &self.file);
                format!("no reply for {key} in {file}: add one under {}", self.locate(request))
            })
    }

    /// Where a reply is looked for first.
    fn locate(&self, request: &Request) -> String {
        let (agent, state) = (request.started.turn.agent.as_str(), &request.state);
        let own = self.agents.get(agent).is_some_and(|section| entry(section, state).is_some());
        let name = step_in_loops(state.as_str()).map_or_else(|| state.stem(), |_| state.as_str());
        if own { format!("{name} of agent {agent}") } else { name.to_owned() }
    }

    /// Warns of prompts that no entry answers, for any agent: all of them at once.
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
        let pronoun = if stems.len() == 1 { "it" } else { "they" };
        let message = format!("no reply for {}, should {pronoun} be reached", stems.join(", "));
        let warning = Diagnostic::warning("no-reply", message).in_file(&*self.file);
        (!stems.is_empty()).then_some(warning)
    }
}

/// `main / REVIEW.md / visit 3 / turn 1`, or of a step `main / attempt 2 of verify`
pub(super) fn key(request: &Request) -> String {
    let (agent, turn) = (&request.started.turn.agent, request.started.turn.turn);
    let (state, visit) = (&request.state, request.count);
    if is_step(request) {
        return format!("{agent} / attempt {visit} of {state}");
    }
    format!("{agent} / {state} / visit {visit} / turn {turn}")
}

/// Whether it is a step of a document that asks.
pub(super) fn is_step(request: &Request) -> bool {
    Extension::of(request.state.as_str()).is_none()
}

/// Whether an entry of this name may answer a state, or a step that is asked under keys of its own in
/// loops.
fn is_key_of(name: &str, state: &StateName) -> bool {
    name == state.as_str()
        || name == state.stem()
        || step_in_loops(name).is_some_and(|step| step.as_str() == state.as_str())
}

/// The step of a key that has iterations: `verify` of `loop[2].verify`.
fn step_in_loops(key: &str) -> Option<StepId> {
    let key: Key = key.parse().ok()?;
    (!key.iterations.is_empty()).then_some(key.step)
}

fn entry<'a>(section: &'a Section, state: &StateName) -> Option<&'a Entry> {
    let step = step_in_loops(state.as_str());
    let less = step.as_ref().map_or_else(|| state.stem(), StepId::as_str);
    let keys = [state.as_str(), less, ANY];
    keys.into_iter().find_map(|key| section.get(key))
}

impl Entry {
    /// What is played for a turn. A step is done once under its key, and asked for again and again: so
    /// its list goes by that.
    fn attempts(&self, request: &Request) -> Option<&Attempts> {
        if !is_step(request) {
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
