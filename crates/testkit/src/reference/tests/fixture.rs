//! A small workflow for tests: its states, their answers in order, and the expected history.

use std::collections::{BTreeMap, VecDeque};

use raymond_core::budget::Micros;
use raymond_core::protocol::TagName;

use super::super::{
    Allowed, Answer, Attempt, AttemptLimit, FailureKind, InterpreterSettings, Policy, Prompt,
    State, Workflow, interpret,
};

/// A workflow that starts at `START.md` in `/w`; `/w/sub`, `/w/sub/deep` and `/other` exist too.
pub(super) struct Fixture {
    pub(super) workflow: Workflow,
    pub(super) settings: InterpreterSettings,
    /// Answers by `agent state`, in order.
    answers: BTreeMap<String, VecDeque<Answer>>,
}

/// Creates a workflow with these states beside `START.md`.
pub(super) fn fixture(states: &[&str]) -> Fixture {
    let names = states.iter().copied().chain(["START.md"]);
    let states = names.map(|name| match name.strip_suffix(".md") {
        Some(_) => (name.into(), State::Prompt(Box::default())),
        None => (name.into(), State::Script),
    });
    Fixture {
        workflow: Workflow {
            states: states.collect(),
            start: "START.md".into(),
            input: None,
            cwd: "/w".into(),
            directories: ["/w", "/w/sub", "/w/sub/deep", "/other"].map(String::from).into(),
        },
        settings: InterpreterSettings::default(),
        answers: BTreeMap::new(),
    }
}

impl Fixture {
    pub(super) fn with(mut self, state: &str, change: impl FnOnce(&mut Prompt)) -> Self {
        match self.workflow.states.get_mut(&state.into()) {
            Some(State::Prompt(prompt)) => change(prompt),
            Some(State::Script) | None => panic!("{state} is not a prompt of this workflow"),
        }
        self
    }

    /// `says("main START.md", text)` adds the next answer of this agent at this state.
    pub(super) fn says(self, place: &str, text: &str) -> Self {
        self.answers(place, Answer::text(text))
    }

    /// Adds a failure as the next answer of this agent at this state.
    pub(super) fn fails(self, place: &str, kind: FailureKind) -> Self {
        self.answers(place, Answer::failure(kind))
    }

    /// Adds the next answer of this agent at this state.
    pub(super) fn answers(mut self, place: &str, answer: Answer) -> Self {
        let answers = self.answers.entry(place.to_owned()).or_default();
        answers.push_back(answer);
        self
    }

    /// Runs to the end, and checks that every answer was used.
    #[track_caller]
    pub(super) fn check(mut self, expected: &str) {
        let history = self.run().expect("the workflow ends");
        let lines = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join(
                "
",
            )
        };
        let (history, expected) = (lines(&history), lines(expected));
        assert_eq!(history, expected, "\n{history}");
        self.answers.retain(|_, left| !left.is_empty());
        assert_eq!(self.answers, BTreeMap::new(), "unused answers");
    }

    pub(super) fn run(&mut self) -> Result<String, AttemptLimit> {
        let answers = &mut self.answers;
        let mut oracle = |attempt: Attempt<'_>| {
            let place = format!("{} {}", attempt.agent, attempt.state);
            let answer = answers.get_mut(&place).and_then(VecDeque::pop_front);
            answer.unwrap_or_else(|| panic!("no answer for {place}"))
        };
        let history = interpret(&self.workflow, &self.settings, &mut oracle)?;
        Ok(history.to_string())
    }
}

pub(super) fn cents(cents: u64) -> Micros {
    Micros(cents * 10_000)
}

/// `TARGET` or `TARGET > RETURN`; `*` means any.
pub(super) fn allowed(text: &str) -> Allowed {
    let (target, then) = text.split_once(" > ").unwrap_or((text, "*"));
    let name = |name: &str| (name != "*").then(|| name.to_owned());
    Allowed { target: name(target), then: name(then) }
}

/// Builds a policy of the form `allowed_transitions`.
pub(super) fn transitions(list: &[(TagName, &str)]) -> Policy {
    let list = list.iter().map(|(tag, text)| (*tag, allowed(text)));
    Policy { transitions: Some(list.collect()), ..Policy::default() }
}
