//! The reasons for which `decide` refuses an input.
//!
//! A refusal records nothing. Its text is shown to the user who made the request.
use crate::agent::Location;
use crate::ids::{AgentId, BackendName, StateName, TurnAttempt, TurnId};
use crate::run::event::Ending;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the run has already started")]
    AlreadyStarted,
    #[error("the run has not started")]
    NotStarted,
    /// The outcome names a turn or an attempt that is not in flight, usually because it is late.
    #[error("attempt {} of {} is not in flight", .0.number, .0.turn)]
    // Harmless: the first outcome is recorded, or another attempt replaced this one.
    Fenced(TurnAttempt),
    #[error("the run has already ended")]
    Ended(Ending),
    #[error("no question {0} is open")]
    NoSuchQuestion(TurnId),
    #[error(
        "could not answer `{agent}`: {answer:?} is not an option; choose {}",
        alternatives(options)
    )]
    NotAnOption { agent: AgentId, answer: String, options: Vec<String> },
    #[error("could not answer `{0}`: the answer is empty")]
    EmptyAnswer(AgentId),
    #[error("could not answer `{0}`: the answer has more than 16 MiB as a JSON string")]
    LongAnswer(AgentId),
    #[error("could not answer `{0}`: the time of its question is up")]
    QuestionExpired(AgentId),
    #[error("no live or failed agent has the name `{0}`")]
    NoSuchAgent(AgentId),
    /// Only a worker can be cancelled, and not a branch of a document of steps.
    #[error("could not cancel `{0}`: only workers can be cancelled")]
    OnlyWorkers(AgentId),
    /// An agent needs a state that the edited workflow does not have.
    #[error("{agent} needs {state}, which the edited workflow does not have")]
    StateGone { agent: AgentId, state: StateName },
    /// A parked agent waits to enter a state that the edited workflow does not have.
    #[error("`{agent}` waits to enter `{state}`, which no longer exists")]
    WaitGone { agent: AgentId, state: StateName },
    /// A document can be replaced only while the run is at rest.
    #[error("{0} has an unfinished turn, whose outcome must be recorded first")]
    TurnInFlight(AgentId),
    /// An agent's conversation belongs to another backend than the one that would continue it.
    #[error(
        "{agent} has a conversation of {holds} for {location}, which {answers} would answer now"
    )]
    OtherBackend {
        agent: AgentId,
        /// The state or step that the agent is at, or the state that it returns to.
        location: Location,
        /// The backend that would answer now.
        answers: BackendName,
        /// The backend that has the conversation.
        holds: BackendName,
    },
}

/// Returns `approve, reject or wait`.
fn alternatives(options: &[String]) -> String {
    match options {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
