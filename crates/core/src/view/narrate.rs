//! Events as lines for people. A live console and `show` tell the same story.

use std::collections::BTreeMap;

use crate::budget::{Basis, Charge, Micros};
use crate::failure::Failure;
use crate::ids::{AgentId, StateName, TurnId};
use crate::protocol::TagName;
use crate::run::Event;
use crate::run::event::{Ending, Hold, Warning};
use crate::run::input::{Interruption, StopMode};
use crate::value::Value;

/// One line, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whom it concerns; none when it is the run.
    pub agent: Option<AgentId>,
    /// How much it matters.
    pub weight: Weight,
    /// What happened.
    pub text: String,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Only with `--verbose`.
    Detail,
    /// What people watch.
    Plain,
    /// Worth a look.
    Warning,
    /// Something failed.
    Error,
}

/// Tells a run, event by event. It remembers where each agent is.
#[derive(Debug, Clone, Default)]
pub struct Narrator {
    places: BTreeMap<AgentId, StateName>,
    moves: BTreeMap<AgentId, (TagName, Option<StateName>)>,
    spent: BTreeMap<AgentId, Micros>,
}

impl Narrator {
    /// The line for an event, when it is worth one.
    pub fn line(&mut self, event: &Event) -> Option<Line> {
        self.of_machine(event)
            .or_else(|| self.of_turn(event))
            .or_else(|| of_run(event))
    }

    fn of_machine(&mut self, event: &Event) -> Option<Line> {
        if let Event::VisitEntered {
            agent,
            state,
            count,
            ..
        } = event
        {
            return Some(self.entered(agent, state, *count));
        }
        if let Event::Moved {
            agent,
            tag,
            instead_of,
            ..
        } = event
        {
            self.moves.insert(agent.clone(), (*tag, instead_of.clone()));
            return None;
        }
        if let Event::AgentEnded { agent, result } = event {
            self.places.remove(agent);
            self.spent.remove(agent);
            return Some(line(
                agent,
                Weight::Plain,
                format!("ended: {}", preview(result)),
            ));
        }
        let (agent, weight, text) = if let Event::Reminded {
            agent,
            fault,
            reminder,
        } = event
        {
            (
                agent,
                Weight::Warning,
                format!("{}: reminder {reminder}: {fault}", self.at(agent)),
            )
        } else if let Event::AgentFailed {
            agent,
            failure,
            kept,
        } = event
        {
            let kept = if kept.is_some() {
                " (its transition is kept)"
            } else {
                ""
            };
            (
                agent,
                Weight::Error,
                format!("{}: failed: {failure}{kept}", self.at(agent)),
            )
        } else if let Event::AgentHeld { agent, .. } = event {
            (
                agent,
                Weight::Warning,
                format!("{}: waits until workers end", self.at(agent)),
            )
        } else if let Event::AgentRevived { agent } = event {
            (
                agent,
                Weight::Plain,
                format!("{}: goes on after its failure", self.at(agent)),
            )
        } else {
            return None;
        };
        Some(line(agent, weight, text))
    }

    fn entered(&mut self, agent: &AgentId, state: &StateName, count: u32) -> Line {
        let from = self.places.insert(agent.clone(), state.clone());
        let spent = self
            .spent
            .remove(agent)
            .filter(|spent| *spent > Micros::ZERO);
        let cost = spent.map(|spent| format!(" · {spent}")).unwrap_or_default();
        let again = if count > 1 {
            format!(" #{count}")
        } else {
            String::new()
        };
        let text = match (from, self.moves.remove(agent)) {
            (Some(from), Some((tag, instead_of))) => {
                let instead = instead_of
                    .map(|meant| format!(" instead of {meant}, which has had its visits"))
                    .unwrap_or_default();
                format!("{from} → {state}{again} ({tag}){instead}{cost}")
            }
            _ => format!("starts at {state}"),
        };
        line(agent, Weight::Plain, text)
    }

    fn of_turn(&mut self, event: &Event) -> Option<Line> {
        if let Event::TurnStarted { turn, attempt, .. } = event {
            let again = if *attempt > 1 {
                format!(", attempt {attempt}")
            } else {
                String::new()
            };
            let text = format!("{}: turn {}{again}", self.at(&turn.agent), turn.turn);
            return Some(line(&turn.agent, Weight::Detail, text));
        }
        if let Event::TurnSettled { turn, charge, .. } = event {
            self.charge(turn, *charge);
            return None;
        }
        if let Event::TurnContinues { turn, charge, .. } = event {
            self.charge(turn, *charge);
            return Some(self.turn(turn, Weight::Plain, "share used up, goes on with a new one"));
        }
        if let Event::TurnFailed {
            turn,
            charge,
            failure,
            ..
        } = event
        {
            self.charge(turn, *charge);
            return Some(self.turn(turn, Weight::Warning, &failure.to_string()));
        }
        if let Event::TurnInterrupted {
            turn, charge, by, ..
        } = event
        {
            self.charge(turn, *charge);
            let by = match by {
                Interruption::Crash => "was cut off when its owner died",
                Interruption::Stop => "stopped",
            };
            return Some(self.turn(turn, Weight::Warning, by));
        }
        if let Event::RetryAt { turn, retry, .. } = event {
            return Some(self.turn(turn, Weight::Detail, &format!("retry {retry} scheduled")));
        }
        if let Event::SessionLost { turn, lost, .. } = event {
            let text = format!("the client lost session {lost}: goes on in a fresh one");
            return Some(self.turn(turn, Weight::Warning, &text));
        }
        None
    }

    fn turn(&self, turn: &TurnId, weight: Weight, text: &str) -> Line {
        line(
            &turn.agent,
            weight,
            format!("{}: {text}", self.at(&turn.agent)),
        )
    }

    fn at(&self, agent: &AgentId) -> &str {
        self.places.get(agent).map_or("?", StateName::as_str)
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge) {
        if charge.basis != Basis::Free {
            let spent = self.spent.entry(turn.agent.clone()).or_default();
            *spent = spent.plus(charge.amount);
        }
    }
}

fn of_run(event: &Event) -> Option<Line> {
    let (weight, text) = if let Event::RunResumed { .. } = event {
        (Weight::Plain, "resumed".to_owned())
    } else if let Event::StopRequested { mode, .. } = event {
        let how = match mode {
            StopMode::AfterTurn => "stopping after the turns in flight",
            StopMode::Now => "stopping",
            StopMode::Cancel => "cancelling",
        };
        (Weight::Plain, how.to_owned())
    } else if let Event::RunEnded { ending } = event {
        (Weight::Plain, ending_words(*ending).to_owned())
    } else if let Event::DefinitionAdopted { .. } = event {
        (
            Weight::Plain,
            "uses the edited states from here on".to_owned(),
        )
    } else if let Event::RunRewound { kept, .. } = event {
        (Weight::Warning, format!("rewound to record {kept}"))
    } else if let Event::BackendHeld { backend, hold } = event {
        let why = match hold {
            Hold::Quota { why, .. } => format!("{backend}: usage limit, waits: {why}"),
            Hold::Auth { why } => format!("{backend}: not logged in: {why}"),
        };
        (Weight::Warning, why)
    } else if let Event::BackendReleased { backend } = event {
        (Weight::Plain, format!("{backend}: tries again"))
    } else if let Event::Warned { agent, warning } = event {
        let weight = Weight::Warning;
        return Some(Line {
            agent: agent.clone(),
            weight,
            text: warning.to_string(),
        });
    } else {
        return None;
    };
    Some(Line {
        agent: None,
        weight,
        text,
    })
}

/// How a run ended, in a word.
pub const fn ending_words(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Failed => "failed",
        Ending::OverBudget => "over budget",
        Ending::Stopped => "stopped",
        Ending::Cancelled => "cancelled",
        Ending::NeedsPerson => "waits for a person",
        Ending::NoQuota => "usage limit reached, and told not to wait",
    }
}

fn line(agent: &AgentId, weight: Weight, text: String) -> Line {
    Line {
        agent: Some(agent.clone()),
        weight,
        text,
    }
}

/// The beginning of a payload, on one line.
pub fn preview(value: &Value) -> String {
    const LONGEST: usize = 72;
    match value {
        Value::Blob(blob) => format!("({} bytes)", blob.length),
        Value::Inline(text) => {
            let text = text.trim();
            let first: String = text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            match first.char_indices().nth(LONGEST) {
                Some((cut, _)) => format!("{}…", &first[..cut]),
                None => first,
            }
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MalformedTag(malformed) => write!(f, "a malformed tag was ignored: {malformed}"),
            Self::UnknownAttribute { tag, name } => {
                write!(f, "<{tag}> has no attribute {name:?}; it was ignored")
            }
            Self::InvalidUtf8 => write!(f, "the output was not UTF-8; bad bytes were replaced"),
            Self::UnknownVariable { name } => write!(f, "nothing binds {{{{{name}}}}}"),
            Self::ReturnsDropped { frames } => {
                write!(f, "stack=\"clear\" dropped {frames} pending return(s)")
            }
            Self::ToolDenied { tool } => write!(f, "the client denied {tool}"),
            Self::Spent { percent } => write!(f, "{percent} % of the cap is spent"),
            Self::Other { message } => f.write_str(message),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Turn(failure) => write!(f, "{failure}"),
            Self::Protocol { fault, stderr } if stderr.is_empty() => write!(f, "{fault}"),
            Self::Protocol { fault, stderr } => write!(f, "{fault}; stderr: {stderr}"),
            Self::Visits { state, limit } => {
                write!(
                    f,
                    "{state} has had its {limit} visit(s), and there is no way on"
                )
            }
            Self::VisitBudget { budget } => write!(f, "the visit's budget of {budget} is spent"),
            Self::TooManyAgents { asked, limit } => {
                write!(
                    f,
                    "one message asks for {asked} workers, and --max-agents is {limit}"
                )
            }
            Self::HeldForGood { limit } => {
                write!(
                    f,
                    "its fork found no room: --max-agents is {limit}, and nobody will end"
                )
            }
            Self::TooDeep { parent } => write!(f, "the name of a worker of {parent} is too long"),
            Self::Crashes { count } => {
                write!(
                    f,
                    "the turn was cut off {count} times in a row without any progress"
                )
            }
            Self::InterruptedScript => write!(f, "the script was cut off, and is not repeated"),
            Self::Denied { tools } => write!(f, "the client denied {}", tools.join(", ")),
            Self::Unanswered => write!(f, "the question was not answered in time"),
        }
    }
}
