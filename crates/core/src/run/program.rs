//! The program of a run: the states of a workflow, one prompt in a loop, or the steps of a
//! document.
//!
//! The set is closed, so that every difference between the programs is a `match` on [`Program`]. A
//! journal that is older than this field has no program and means states.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ids::StateName;
use crate::protocol::Source;
use crate::text::counted;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The states of a workflow, connected by tags.
    #[default]
    States,
    /// One prompt in a loop, each time in a fresh session, until it gives a result.
    Ralph(Ralph),
    /// The steps of a JSON document.
    Crayfish {
        /// The source of the answers to its agent steps.
        answers: Answers,
    },
}

/// The source of the answers to agent steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// The backend of the run.
    Backend,
    /// The caller of the tool `crayfish`.
    Caller,
}

/// A loop over one prompt. Each visit of the prompt is an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ralph {
    /// The maximum number of iterations, at least 1.
    pub max_iterations: u32,
    /// A command for `bash`. A result counts only if the command exits with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The state that runs the command of [`Ralph::until`]. It cannot collide with the prompt, whose
/// name ends in `.md`.
pub const UNTIL: &str = "UNTIL.sh";

impl Program {
    /// Returns the loop if this program is one.
    pub const fn ralph(&self) -> Option<&Ralph> {
        match self {
            Self::States | Self::Crayfish { .. } => None,
            Self::Ralph(ralph) => Some(ralph),
        }
    }

    /// Returns the source of answers if this program has agent steps.
    pub const fn answers(&self) -> Option<Answers> {
        match self {
            Self::States | Self::Ralph(_) => None,
            Self::Crayfish { answers } => Some(*answers),
        }
    }

    /// Returns how the final messages of its agents are read.
    pub const fn messages(&self) -> Source {
        match self {
            Self::States | Self::Crayfish { .. } => Source::Message,
            Self::Ralph(_) => Source::Iteration,
        }
    }
}

impl Ralph {
    /// Default number of iterations.
    pub const USUAL: u32 = 50;

    /// Returns the text of [`UNTIL`]. Its output goes to stderr, because Raymond keeps the end of
    /// stderr when a script fails. The redirection shares the first line with the command, so that
    /// the line numbers in messages of `bash` are right.
    pub fn script(&self) -> Option<String> {
        self.until.as_ref().map(|command| format!("exec >&2; {command}\n"))
    }

    /// Returns how many iterations an agent has begun.
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

/// A command as part of a sentence: its first line, shortened.
pub(crate) struct Command<'c>(pub(crate) &'c str);

impl fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Characters, so that the sentence around the command still fits one line.
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
    fn loop_is_described_in_a_line() {
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
    fn until_command_prints_to_stderr() {
        assert_eq!(ralph(1, None).script(), None);
        assert_eq!(
            ralph(1, Some("make check")).script().as_deref(),
            Some("exec >&2; make check\n")
        );
    }

    #[test]
    fn default_program_runs_states() {
        let written = |program: &Program| serde_json::to_string(program).unwrap();
        assert_eq!(written(&Program::default()), r#""states""#);
        let looped = Program::Ralph(ralph(50, Some("make")));
        let text = r#"{"ralph":{"max_iterations":50,"until":"make"}}"#;
        assert_eq!(written(&looped), text);
        assert_eq!(serde_json::from_str::<Program>(text).unwrap(), looped);
    }
}
