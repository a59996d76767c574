//! The program of a run: the states of a workflow, one prompt in a loop, or the steps of a
//! document.
//!
//! A program carries the state that only its language has; agents, turns and money are the same for
//! all and belong to the run. The set is closed. Decisions that differ between the languages are in
//! [`crate::program`], or ask a method here, such as [`Program::messages`]. Views, the
//! engine and the command line ask for the language, too, but only for words, commands and files.

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Location};
use crate::crayfish::StepsState;
use crate::ids::StateName;
use crate::protocol::Source;
use crate::scheduler::Lane;
use crate::text::{CommandPhrase, counted};
use crate::workflow::Definition;

use super::settings::Settings;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The states of a workflow, connected by tags.
    #[default]
    States,
    /// One prompt in a loop, each time in a fresh session, until it gives a result.
    Ralph(Ralph),
    /// The steps of a JSON document.
    Steps(Steps),
}

/// A document of steps, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// The source of the answers to its agent steps.
    pub answers: AnswerSource,
    /// Empty at the start of a run.
    #[serde(default, skip_serializing_if = "is_new")]
    pub state: Box<StepsState>,
}

fn is_new(state: &StepsState) -> bool {
    *state == StepsState::default()
}

/// The source of the answers to agent steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// The backend of the run.
    Backend,
    /// The caller of the tool `crayfish`.
    Caller,
}

/// A loop over one prompt. Each visit of the prompt is an iteration, and the settings limit their
/// number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ralph {
    /// A command for `bash`, run after every iteration. The loop ends with success as soon as it
    /// exits with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The state that runs the command of [`Ralph::until`]. It cannot collide with the prompt, whose
/// name ends in `.md`.
pub const UNTIL: &str = "UNTIL.sh";

impl Program {
    /// Returns whether the states of a workflow are the program.
    pub const fn is_states(&self) -> bool {
        matches!(self, Self::States)
    }

    /// Returns a document of steps that has not begun.
    pub fn steps_of(answers: AnswerSource) -> Self {
        Self::Steps(Steps { answers, state: Box::default() })
    }

    /// Returns the loop if this program is one.
    pub const fn ralph(&self) -> Option<&Ralph> {
        match self {
            Self::States | Self::Steps(_) => None,
            Self::Ralph(ralph) => Some(ralph),
        }
    }

    /// Returns the progress of the steps if this program is a document.
    pub fn steps(&self) -> Option<&StepsState> {
        match self {
            Self::States | Self::Ralph(_) => None,
            Self::Steps(steps) => Some(&steps.state),
        }
    }

    pub fn steps_mut(&mut self) -> Option<&mut StepsState> {
        match self {
            Self::States | Self::Ralph(_) => None,
            Self::Steps(steps) => Some(&mut steps.state),
        }
    }

    /// Returns whether the caller of the run answers its agent steps.
    pub const fn is_answered_by_caller(&self) -> bool {
        matches!(self, Self::Steps(Steps { answers: AnswerSource::Caller, .. }))
    }

    /// Returns the lane in which the turns of a state or a step queue.
    pub(crate) fn lane(
        &self,
        settings: &Settings,
        definition: &Definition,
        location: &Location,
    ) -> Lane {
        match (self, location) {
            (Self::States | Self::Ralph(_), Location::State(state)) => {
                settings.state_lane(definition, state)
            }
            (Self::Steps(_), location) => {
                let steps = definition.steps.as_deref();
                let asks = location.step().and_then(|key| steps?.agent(key));
                // All other steps that have turns run programs.
                asks.map_or(Lane::Script, |_| Lane::Prompt(settings.backend.clone()))
            }
            // Not reachable: states and loops have no steps.
            (Self::States | Self::Ralph(_), Location::Step(_)) => Lane::Script,
        }
    }

    /// Returns whether the final texts of its turns have tags. The text of a step has none: it is a
    /// JSON value.
    pub const fn reads_tags(&self) -> bool {
        match self {
            Self::States | Self::Ralph(_) => true,
            Self::Steps(_) => false,
        }
    }

    /// Returns how the final messages of its agents are read.
    pub const fn messages(&self) -> Source {
        match self {
            Self::States | Self::Steps(_) => Source::Message,
            Self::Ralph(_) => Source::Iteration,
        }
    }
}

impl Ralph {
    /// Returns the text of [`UNTIL`]. Its output goes to stderr, because Raymond keeps the end of
    /// stderr when a script fails. The redirection shares the first line with the command, so that
    /// the line numbers in messages of `bash` are right.
    pub fn script(&self) -> Option<String> {
        self.until.as_ref().map(|command| format!("exec >&2; {command}\n"))
    }

    /// Returns how many iterations an agent has begun.
    pub fn iterations(agent: &Agent) -> u32 {
        // Visits of the `--until` command are not iterations.
        let prompts = agent.visits.iter().filter(|(state, _)| state.as_str() != UNTIL);
        prompts.map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// `PROMPT.md up to 50 times, until `cargo test` passes`
    pub fn describe(&self, prompt: &StateName, max_iterations: u32) -> String {
        let until = self.until.as_deref();
        let until = until.map(|command| format!(", until {} passes", CommandPhrase(command)));
        let times = counted(max_iterations, "time");
        format!("{prompt} up to {times}{}", until.unwrap_or_default())
    }
}

/// `50 iterations without a result`
pub fn without_result(iterations: u32, until: Option<&str>) -> String {
    let passing = until.map(|command| format!(" that passed {}", CommandPhrase(command)));
    format!("{} without a result{}", counted(iterations, "iteration"), passing.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ralph(until: Option<&str>) -> Ralph {
        Ralph { until: until.map(str::to_owned) }
    }

    #[test]
    fn loop_is_described_in_a_line() {
        let check = |max_iterations, until, expected: &str| {
            let described = ralph(until).describe(&"PROMPT.md".into(), max_iterations);
            assert_eq!(described, expected);
        };
        check(50, None, "PROMPT.md up to 50 times");
        check(1, None, "PROMPT.md up to 1 time");
        check(3, Some("cargo test"), "PROMPT.md up to 3 times, until `cargo test` passes");
        check(3, Some("\nset -e\nmake"), "PROMPT.md up to 3 times, until `set -e…` passes");
        let long = "ä".repeat(61);
        let shown = format!("PROMPT.md up to 3 times, until `{}…` passes", "ä".repeat(60));
        check(3, Some(&long), &shown);
        assert_eq!(without_result(1, None), "1 iteration without a result");
        assert_eq!(
            without_result(50, Some("make")),
            "50 iterations without a result that passed `make`"
        );
    }

    #[test]
    fn until_command_prints_to_stderr() {
        assert_eq!(ralph(None).script(), None);
        assert_eq!(ralph(Some("make check")).script().as_deref(), Some("exec >&2; make check\n"));
    }

    #[test]
    fn default_program_runs_states() {
        let written = |program: &Program| serde_json::to_string(program).unwrap();
        assert_eq!(written(&Program::default()), r#""states""#);
        let looped = Program::Ralph(ralph(Some("make")));
        let text = r#"{"ralph":{"until":"make"}}"#;
        assert_eq!(written(&looped), text);
        assert_eq!(serde_json::from_str::<Program>(text).unwrap(), looped);
    }
}
