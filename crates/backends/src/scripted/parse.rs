//! Parsing a replies file: the levels of states, visits, turns and attempts.
//!
//! Parsing continues after a mistake, so that an author sees all mistakes at once. `reply` parses
//! single replies.

use std::collections::BTreeMap;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, Place};
use raymond_core::ids::StateName;
use raymond_core::run::prepared_answers::StateAnswers;
use raymond_core::text::bytes;
use raymond_core::value::INLINE_MAX;

use super::reader::{Reader, Rejected};
use super::replies::{ANY, Attempts, Entry, Numbered, Replies, Section};
use super::reply;
use super::yaml::{self, Node, Value};

/// Keys of the file that name no state.
const AGENTS: &str = "agents";
const ANSWERS: &str = "answers";
const DEFAULTS: &str = "defaults";

impl Replies {
    /// Reads a file; the error lists all mistakes.
    pub fn load(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("could not read {}: {error}", path.display());
            let hint = "name a file that exists: --replies FILE";
            vec![Diagnostic::error("unreadable", message).in_file(&*name).hint(hint)]
        })?;
        Self::parse(&name, &text)
    }

    /// Parses the text of a file; the error lists all mistakes.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        parse_file(name, text)
    }
}

fn parse_file(file: &str, text: &str) -> Result<Replies, Vec<Diagnostic>> {
    let mut reader = Reader::new(file, text);
    let root = yaml::read(text).map_err(|mistake| vec![mistake.in_file(file)])?;
    let found = reader.root(root);
    reader.finish().map(|()| found)
}

impl Reader<'_> {
    fn root(&mut self, root: Node) -> Replies {
        let mut replies = Replies {
            file: self.file().to_owned(),
            states: Section::new(),
            agents: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        let (reserved, states): (Vec<_>, Vec<_>) = match root.value {
            Value::Map(entries) => {
                entries.into_iter().partition(|(key, _)| is_reserved(&key.value))
            }
            // An empty file is valid: every state is then without a reply.
            Value::Null => return replies,
            Value::Bool(_)
            | Value::Whole(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_) => {
                self.mistyped(&root, "a mapping from states to replies");
                return replies;
            }
        };
        let mut sections = BTreeMap::new();
        for (key, node) in reserved {
            if let Value::Text(name) = key.value {
                sections.insert(name, node);
            }
        }
        // `defaults` comes first, wherever it is in the file, because replies take their cost from
        // it.
        if let Some(node) = sections.remove(DEFAULTS) {
            self.defaults(node);
        }
        if let Some(node) = sections.remove(AGENTS) {
            replies.agents = self.agents(node);
        }
        if let Some(node) = sections.remove(ANSWERS) {
            replies.answers = self.answers(node);
        }
        replies.states = self.section(states);
        replies
    }

    fn defaults(&mut self, node: Node) {
        let Value::Map(entries) = node.value else {
            self.mistyped(&node, "a mapping");
            return;
        };
        for (key, node) in entries {
            match self.name(&key).as_deref() {
                Ok("cost") => {
                    if let Ok(cost) = reply::cost(self, &node) {
                        self.cost = cost;
                    }
                }
                Ok(other) => {
                    self.unknown("key", other, key.span, &["cost"]);
                }
                Err(Rejected) => {}
            }
        }
    }

    fn agents(&mut self, node: Node) -> BTreeMap<String, Section> {
        let Value::Map(entries) = node.value else {
            self.mistyped(&node, "a mapping from agents to their replies");
            return BTreeMap::new();
        };
        let mut agents = BTreeMap::new();
        for (key, node) in entries {
            // An invalid agent is skipped with all its states.
            let (Ok(agent), Value::Map(states)) = (self.name(&key), &node.value) else {
                self.mistyped(&node, "a mapping from states to replies");
                continue;
            };
            agents.insert(agent, self.section(states.clone()));
        }
        agents
    }

    fn answers(&mut self, node: Node) -> BTreeMap<String, (Place, StateAnswers)> {
        let Value::Map(entries) = node.value else {
            self.mistyped(&node, "a mapping from states to answers");
            return BTreeMap::new();
        };
        let mut answers = BTreeMap::new();
        for (key, node) in entries {
            let Ok(name) = self.name(&key) else { continue };
            let found = match node.value {
                Value::List(items) => {
                    let items = items.into_iter().map(|item| self.answer(item));
                    items.collect::<Result<_, _>>().map(StateAnswers::ByVisit)
                }
                value => self.answer(Node { value, span: node.span }).map(StateAnswers::Every),
            };
            if let Ok(found) = found {
                answers.insert(name, (self.place(key.span), found));
            }
        }
        answers
    }

    fn answer(&mut self, node: Node) -> Result<String, Rejected> {
        match node.value {
            // The run keeps its answers in the journal.
            Value::Text(text) if text.len() > INLINE_MAX => {
                let message = format!("an answer has at most {}", bytes(INLINE_MAX as u64));
                Err(self.reject("wrong-type", node.span, message))
            }
            Value::Text(text) => Ok(text),
            _ => Err(self.mistyped(&node, "text")),
        }
    }

    fn section(&mut self, entries: Vec<(Node, Node)>) -> Section {
        let mut section = Section::new();
        for (key, node) in entries {
            let Ok(name) = self.name(&key) else { continue };
            if let Some(twin) = same_state_key(&section, &name) {
                let message = format!("{twin:?} and {name:?} name the same state");
                self.reject("duplicate-state", key.span.clone(), message);
            }
            if let Ok(visits) = self.numbered(node, "visit", &mut Self::turns) {
                let place = self.place(key.span);
                section.insert(name, Entry { place, visits });
            }
        }
        section
    }

    fn turns(&mut self, node: Node) -> Result<Numbered<Attempts>, Rejected> {
        self.numbered(node, "turn", &mut reply::attempts)
    }

    /// Parses a list, a mapping by number, or one value for every number.
    fn numbered<T>(
        &mut self,
        node: Node,
        what: &str,
        one: &mut dyn FnMut(&mut Self, Node) -> Result<T, Rejected>,
    ) -> Result<Numbered<T>, Rejected> {
        match node.value {
            Value::List(items) if items.is_empty() => {
                let message = format!("an empty list has no {what}");
                Err(self.reject("empty-value", node.span, message))
            }
            Value::List(items) => {
                let mut numbers = BTreeMap::new();
                // An invalid item keeps its number, so that the items after it do not move.
                for (number, item) in (1..).zip(items) {
                    if let Ok(value) = one(self, item) {
                        numbers.insert(number, value);
                    }
                }
                let others = None;
                Ok(Numbered::Each { numbers, others })
            }
            Value::Map(entries) if entries.iter().any(|(key, _)| is_number(&key.value)) => {
                Ok(self.by_number(entries, what, one))
            }
            value => one(self, Node { value, span: node.span }).map(Numbered::Every),
        }
    }

    fn by_number<T>(
        &mut self,
        entries: Vec<(Node, Node)>,
        what: &str,
        one: &mut dyn FnMut(&mut Self, Node) -> Result<T, Rejected>,
    ) -> Numbered<T> {
        let mut numbers = BTreeMap::new();
        let mut others = None;
        for (key, node) in entries {
            let value = one(self, node);
            match (&key.value, value) {
                (Value::Text(any), value) if any == ANY => others = value.ok(),
                (Value::Whole(number), value) if u32::try_from(*number).is_ok_and(|n| n > 0) => {
                    if let (Ok(number), Ok(value)) = (u32::try_from(*number), value) {
                        numbers.insert(number, value);
                    }
                }
                _ => {
                    let message = format!("expected the number of a {what} from 1, or \"{ANY}\"");
                    self.reject("bad-number", key.span, message);
                }
            }
        }
        Numbered::Each { numbers, others }
    }
}

/// Returns another entry for the same state: its name with or without an extension.
fn same_state_key<'s>(section: &'s Section, name: &str) -> Option<&'s str> {
    let state = StateName::new(name);
    let short = section.get_key_value(state.stem()).map(|(other, _)| other);
    let dotted = format!("{name}.");
    let longer = section.range(dotted.clone()..).map(|(other, _)| other);
    let mut longer = longer.take_while(|other| other.starts_with(&dotted));
    let long = || longer.find(|other| StateName::new(other.as_str()).stem() == name);
    short.or_else(long).map(String::as_str)
}

fn is_reserved(key: &Value) -> bool {
    matches!(key, Value::Text(name) if [AGENTS, ANSWERS, DEFAULTS].contains(&name.as_str()))
}

fn is_number(key: &Value) -> bool {
    match key {
        Value::Whole(_) => true,
        Value::Text(name) => name == ANY,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => false,
    }
}
