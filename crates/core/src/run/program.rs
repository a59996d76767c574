//! What a run executes: the states of a workflow, or one prompt again and again.
//!
//! A closed set: everything that differs between the two asks here, and a run of an older journal,
//! which says nothing, is one of states.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ids::StateName;
use crate::protocol::Source;
use crate::text::counted;

/// What a run executes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The states of a workflow, as their tags lead.
    #[default]
    States,
    /// One prompt, each time in a fresh session, until it has a result.
    Ralph(Ralph),
    /// The steps of a JSON document.
    Crayfish {
        /// Who answers its agent steps.
        answers: Answers,
    },
}

/// Who answers the agent steps of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// The backend of the run.
    Backend,
    /// Whoever called.
    Caller,
}

/// One prompt again and again. Each visit of it is an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ralph {
    /// The most iterations; at least 1.
    pub max_iterations: u32,
    /// A command for `bash`: a result counts only when it exits 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The state that runs the command of [`Ralph::until`]. The prompt is a `.md`: no name meets it.
pub const UNTIL: &str = "UNTIL.sh";

impl Program {
    /// The loop, where it is one.
    pub const fn ralph(&self) -> Option<&Ralph> {
        match self {
            Self::States | Self::Crayfish { .. } => None,
            Self::Ralph(ralph) => Some(ralph),
        }
    }

    /// Who answers agent steps, where it has any.
    pub const fn answers(&self) -> Option<Answers> {
        match self {
            Self::States | Self::Ralph(_) => None,
            Self::Crayfish { answers } => Some(*answers),
        }
    }

    /// What the final messages of its agents are read as.
    pub const fn messages(&self) -> Source {
        match self {
            Self::States | Self::Crayfish { .. } => Source::Message,
            Self::Ralph(_) => Source::Iteration,
        }
    }
}

impl Ralph {
    /// The most iterations, unless something else is asked for.
    pub const USUAL: u32 = 50;

    /// The text of [`UNTIL`]. What the command prints goes to stderr, whose end is kept when it
    /// fails; the first line stays the first, so that `bash` names the right ones.
    pub fn script(&self) -> Option<String> {
        self.until.as_ref().map(|command| format!("exec >&2; {command}\n"))
    }

    /// How many iterations an agent has begun.
    pub fn iterations(agent: &Agent) -> u32 {
        let prompts = agent.visits.iter().filter(|(state, _)| state.as_str() != UNTIL);
        prompts.map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// `PROMPT.md up to 50 times, until `cargo test` passes`
    pub fn describe(&self, prompt: &StateName) -> String {
        let until = self.until.as_deref();
        let until = until.map(|command| format!(", until {} passes", Command(command)));
        let times = counted(self.max_iterations, "time");
        format!("{prompt} up to {times}{}", until.unwrap_or_default())
    }
}

/// `50 iterations without a result`
pub fn without_result(iterations: u32, until: Option<&str>) -> String {
    let passing = until.map(|command| format!(" that passed {}", Command(command)));
    format!("{} without a result{}", counted(iterations, "iteration"), passing.unwrap_or_default())
}

/// A command in a sentence: its first line, and not too much of that.
pub(crate) struct Command<'c>(pub(crate) &'c str);

impl fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        let command = self.0.trim();
        let line = command.lines().next().unwrap_or_default();
        let cut = line.char_indices().nth(LONGEST).map_or(line.len(), |(cut, _)| cut);
        let more = if cut < command.len() { "…" } else { "" };
        write!(f, "`{}{more}`", &line[..cut])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ralph(max_iterations: u32, until: Option<&str>) -> Ralph {
        Ralph { max_iterations, until: until.map(str::to_owned) }
    }

    #[test]
    fn a_loop_is_told_in_a_line() {
        let check = |ralph: Ralph, expected: &str| {
            assert_eq!(ralph.describe(&"PROMPT.md".into()), expected);
        };
        check(ralph(50, None), "PROMPT.md up to 50 times");
        check(ralph(1, None), "PROMPT.md up to 1 time");
        check(ralph(3, Some("cargo test")), "PROMPT.md up to 3 times, until `cargo test` passes");
        check(ralph(3, Some("\nset -e\nmake")), "PROMPT.md up to 3 times, until `set -e…` passes");
        let long = "ä".repeat(61);
        let shown = format!("PROMPT.md up to 3 times, until `{}…` passes", "ä".repeat(60));
        check(ralph(3, Some(&long)), &shown);
        assert_eq!(without_result(1, None), "1 iteration without a result");
        assert_eq!(
            without_result(50, Some("make")),
            "50 iterations without a result that passed `make`"
        );
    }

    #[test]
    fn the_command_is_the_script_and_speaks_on_stderr() {
        assert_eq!(ralph(1, None).script(), None);
        assert_eq!(
            ralph(1, Some("make check")).script().as_deref(),
            Some("exec >&2; make check\n")
        );
    }

    #[test]
    fn a_program_that_says_nothing_is_one_of_states() {
        let written = |program: &Program| serde_json::to_string(program).unwrap();
        assert_eq!(written(&Program::default()), r#""states""#);
        let looped = Program::Ralph(ralph(50, Some("make")));
        let text = r#"{"ralph":{"max_iterations":50,"until":"make"}}"#;
        assert_eq!(written(&looped), text);
        assert_eq!(serde_json::from_str::<Program>(text).unwrap(), looped);
    }
}
