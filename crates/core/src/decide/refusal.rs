//! Why an input changes nothing.

use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::run::event::Ending;

/// Why an input changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has started already.
    #[error("the run has already started")]
    AlreadyStarted,
    /// The run has not started.
    #[error("the run has not started")]
    NotStarted,
    /// It is not this turn, or not this attempt, that is in flight.
    #[error("attempt {attempt} of {turn} is not in flight")]
    Fenced {
        /// The turn.
        turn: TurnId,
        /// The attempt.
        attempt: u32,
    },
    /// The run has ended.
    #[error("the run has already ended")]
    Ended(Ending),
    /// There is no such open question.
    #[error("no question {0} is open")]
    NoSuchQuestion(TurnId),
    /// An agent needs a state that the edited workflow does not have.
    #[error("{agent} needs {state}, which the edited workflow does not have")]
    StateGone {
        /// The agent.
        agent: AgentId,
        /// The state.
        state: StateName,
    },
    /// An agent has a conversation of another backend than the one that would go on in it.
    #[error("{agent} has a conversation of {holds} for {state}, which {answers} would answer now")]
    OtherBackend {
        /// The agent.
        agent: AgentId,
        /// The state it is at, or returns to.
        state: StateName,
        /// The backend that would answer it.
        answers: BackendName,
        /// The backend that holds the conversation.
        holds: BackendName,
    },
}
