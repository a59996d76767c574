//! Turns the tags of a message into one transition or one fault.
//!
//! If a message has several faults, the first in the order of [`Fault`] is reported.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::ids::StateName;
use raymond_core::protocol::{Stack, TagName};

use super::history::Fault;
use super::names;
use super::policy;
use super::read::{Reading, Tag};
use super::workflow::{State, Workflow};

/// A transition that may be taken: everything in it exists and is allowed.
#[derive(Debug)]
pub(super) enum Transition {
    Goto { to: StateName, input: Option<String> },
    Reset { to: StateName, input: Option<String>, cwd: Option<String>, stack: Stack },
    Call { to: StateName, with: Invoke },
    Function { to: StateName, with: Invoke },
    Fork { workers: Vec<Worker>, next: StateName, input: Option<String> },
    Result { payload: String },
}

/// What `call` and `function` have in common.
#[derive(Debug)]
pub(super) struct Invoke {
    pub(super) return_to: StateName,
    pub(super) input: Option<String>,
    pub(super) model: Option<String>,
}

/// A worker before its start.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) state: StateName,
    pub(super) cwd: String,
    pub(super) input: Option<String>,
    pub(super) attributes: BTreeMap<String, String>,
}

/// The state that a message belongs to.
pub(super) struct MessageContext<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) state: &'a State,
    pub(super) cwd: &'a str,
}

pub(super) fn decide(reading: Reading, context: &MessageContext<'_>) -> Result<Transition, Fault> {
    let tags = one_transition(reading.settled(), context.state)?;
    match tags.as_slice() {
        [tag] => context.single(tag),
        forks => context.forks(forks),
    }
}

/// Returns the tags of one transition: a single tag, many forks, or the implicit tag.
fn one_transition(reading: Reading, state: &State) -> Result<Vec<Tag>, Fault> {
    let Reading { tags, malformed, in_code, unknown_attributes: _ } = reading;
    if tags.is_empty() {
        if malformed > 0 {
            return Err(Fault::Malformed);
        }
        let implicit = if in_code { None } else { implicit(state) };
        return implicit.map(|tag| vec![tag]).ok_or(Fault::NoTag);
    }
    let count = |name| tags.iter().filter(|tag| tag.name == name).count();
    let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
    let many_forks = gotos <= 1 && forks + gotos == tags.len();
    if tags.len() == 1 || many_forks { Ok(tags) } else { Err(Fault::SeveralTags) }
}

/// Returns the only entry of `allowed_transitions` if it is completely determined.
fn implicit(state: &State) -> Option<Tag> {
    let State::Prompt(prompt) = state else {
        return None;
    };
    let [(name, allowed)] = prompt.policy.transitions.as_deref()? else {
        return None;
    };
    let key = match name {
        TagName::Goto | TagName::Reset => None,
        TagName::Call | TagName::Function => Some("return"),
        TagName::Fork => Some("next"),
        TagName::Result => return None,
    };
    let mut attributes = BTreeMap::new();
    if let Some(key) = key {
        attributes.insert(key.to_owned(), allowed.then.clone()?);
    }
    Some(Tag { name: *name, body: allowed.target.clone()?, attributes })
}

impl MessageContext<'_> {
    fn single(&self, tag: &Tag) -> Result<Transition, Fault> {
        let input = tag.attributes.get("input").cloned();
        match tag.name {
            TagName::Fork => self.forks(std::slice::from_ref(tag)),
            TagName::Goto => {
                let to = self.state(&tag.body)?;
                self.permit(tag.name, Some(&to), None)?;
                Ok(Transition::Goto { to, input })
            }
            TagName::Reset => {
                let to = self.state(&tag.body)?;
                let cwd = self.directory(tag)?;
                self.permit(tag.name, Some(&to), None)?;
                let stack = match tag.attributes.get("stack") {
                    Some(_) => Stack::Clear,
                    None => Stack::Keep,
                };
                Ok(Transition::Reset { to, input, cwd, stack })
            }
            TagName::Call => {
                let (to, with) = self.invoke(tag)?;
                Ok(Transition::Call { to, with })
            }
            TagName::Function => {
                let (to, with) = self.invoke(tag)?;
                Ok(Transition::Function { to, with })
            }
            TagName::Result => {
                self.permit(tag.name, None, None)?;
                let payload = tag.body.clone();
                Ok(Transition::Result { payload })
            }
        }
    }

    fn invoke(&self, tag: &Tag) -> Result<(StateName, Invoke), Fault> {
        let to = self.state(&tag.body)?;
        let return_to = self.state(&tag.attributes["return"])?;
        self.permit(tag.name, Some(&to), Some(&return_to))?;
        let with = Invoke {
            return_to,
            input: tag.attributes.get("input").cloned(),
            model: tag.attributes.get("model").cloned(),
        };
        Ok((to, with))
    }

    /// Decides about forks, perhaps with one `goto` beside them.
    fn forks(&self, tags: &[Tag]) -> Result<Transition, Fault> {
        let mut targets = Vec::new();
        let mut nexts = BTreeSet::new();
        for tag in tags {
            let target = self.state(&tag.body)?;
            if tag.name == TagName::Goto {
                nexts.insert(target.clone());
            } else if let Some(next) = tag.attributes.get("next") {
                nexts.insert(self.state(next)?);
            }
            targets.push(target);
        }
        let next = nexts.pop_first().filter(|_| nexts.is_empty());
        let next = next.ok_or(Fault::NextDiffers)?;

        let mut directories = Vec::new();
        for tag in tags {
            directories.push(self.directory(tag)?);
        }
        for (tag, target) in tags.iter().zip(&targets) {
            let then = (tag.name == TagName::Fork).then_some(&next);
            self.permit(tag.name, Some(target), then)?;
        }

        let mut workers = Vec::new();
        let mut input = None;
        for ((tag, state), directory) in tags.iter().zip(targets).zip(directories) {
            if tag.name == TagName::Fork {
                workers.push(self.worker(tag, state, directory));
            } else {
                input = tag.attributes.get("input").cloned();
            }
        }
        Ok(Transition::Fork { workers, next, input })
    }

    fn worker(&self, tag: &Tag, state: StateName, directory: Option<String>) -> Worker {
        let mut attributes = tag.attributes.clone();
        attributes.remove("next");
        attributes.remove("cd");
        Worker {
            state,
            cwd: directory.unwrap_or_else(|| self.cwd.to_owned()),
            input: attributes.remove("input"),
            attributes,
        }
    }

    fn state(&self, name: &str) -> Result<StateName, Fault> {
        names::resolve(self.workflow, name).ok_or(Fault::Unresolved)
    }

    /// Resolves the directory of `cd`; `None` without a `cd`.
    fn directory(&self, tag: &Tag) -> Result<Option<String>, Fault> {
        let Some(cd) = tag.attributes.get("cd") else {
            return Ok(None);
        };
        let found = names::directory(self.workflow, self.cwd, cd);
        found.map(Some).ok_or(Fault::NoDirectory)
    }

    fn permit(
        &self,
        tag: TagName,
        target: Option<&StateName>,
        then: Option<&StateName>,
    ) -> Result<(), Fault> {
        if policy::is_allowed(self.state, tag, target, then) {
            Ok(())
        } else {
            Err(Fault::Forbidden)
        }
    }
}
