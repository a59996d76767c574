//! The next command for a run, as a fact: the command line renders it.
//!
//! Every status has one. A resume contains the changes without which the run would fail in the same
//! way again.

use crate::agent::{Agent, AgentStatus};
use crate::crayfish::{ErrorCode, VariableProblem};
use crate::extension::{Extension, StateKind};
use crate::failure::{AgentFailure, Clock, TurnFailure};
use crate::ids::{AgentId, StateName};
use crate::protocol::Fault;
use crate::run::{Ending, Phase, Run};
use crate::steps::decide;
use crate::time::Span;

use super::backend_labels::is_rehearsed;
use super::denied::Denied;
use super::status::{OwnerState, Status};

/// The next command for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextCommand {
    /// Watch the run, or wait for it.
    Wait,
    /// Show its result.
    Show,
    /// Resume it with these changes.
    Resume(Vec<Change>),
    /// Resume it with this budget.
    ResumeWithBudget { dollars: u64 },
    /// Answer the question of this agent; `None` if several agents ask.
    Answer { agent: Option<AgentId>, options: Vec<String> },
    /// Start a new run like it.
    Start,
    /// Call the tool: only its caller can continue the run.
    Call(CallTarget),
}

/// The run of the next call of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallTarget {
    SameRun,
    /// The run has ended, and its id is final.
    OtherRun,
    /// Another run, which continues with the results of this one.
    OtherRunWithResults,
}

/// A change without which a failed run would be refused, or fail in the same way again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Open a fresh session if the client has lost one.
    FreshSessions,
    /// Allow these tools.
    Allow(Vec<String>),
    MaxAgents(u64),
    /// Allow a loop this many iterations.
    MaxIterations(u64),
    Timeout(Span),
    IdleTimeout(Span),
    /// Use the states or the document as they are on disk.
    CurrentStates,
    /// Give a variable of the document another value.
    Variable(VariableProblem),
    /// Use the states of the start.
    PinnedStates,
}

/// The state of the workflow files since the run started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// They are as pinned, or were not compared.
    AsPinned,
    /// They differ: a failed run needs a flag that says which to use.
    Edited,
    /// They differ or are missing, and the run cannot use them.
    Unusable,
}

/// Returns the next command for a run with this status; every status has one.
pub fn next_command(run: &Run, status: Status, states: States) -> NextCommand {
    match status {
        Status::Running | Status::Waiting(..)
            if !matches!(run.phase, Phase::Stopping(_))
                && let Some(command) = answer(run) =>
        {
            command
        }
        Status::Running | Status::Waiting(_, OwnerState::Alive) => NextCommand::Wait,
        Status::Completed => NextCommand::Show,
        // A resume would only repeat the state that gave up.
        Status::Failed if gave_up(run) => NextCommand::Start,
        Status::Waiting(_, OwnerState::Gone)
        | Status::Failed
        | Status::Stopped
        | Status::Interrupted => resume(run, states),
        Status::OverBudget => NextCommand::ResumeWithBudget { dollars: more(run) },
        Status::Cancelled if is_of_caller(run) => NextCommand::Call(CallTarget::OtherRun),
        Status::Cancelled => NextCommand::Start,
    }
}

/// Returns the command that answers the open questions, if there are any.
fn answer(run: &Run) -> Option<NextCommand> {
    let open = run.scheduler.asks.keys().filter_map(|ask| {
        let AgentStatus::Asking(asking) = &run.agents.get(&ask.agent)?.status else { return None };
        Some((&ask.agent, asking.kept.question()?))
    });
    let mut open = open.peekable();
    let (agent, question) = open.next()?;
    Some(match open.peek() {
        None => {
            let (agent, options) = (Some(agent.clone()), question.options.clone());
            NextCommand::Answer { agent, options }
        }
        Some(_) => NextCommand::Answer { agent: None, options: Vec::new() },
    })
}

/// Returns whether `main` ended as failed on purpose, and no other agent is left.
pub fn gave_up(run: &Run) -> bool {
    let mut failures = run.failed.iter().filter_map(|id| Some(&run.agents.get(id)?.status));
    run.program.ralph().is_none()
        && run.failed.contains(&AgentId::main())
        && failures.all(|status| {
            matches!(status, AgentStatus::Failed { failure: AgentFailure::Declared { .. }, .. })
        })
}

/// Returns the command that continues a run. A step that failed for good needs an edited document;
/// a caller of the tool needs another run.
fn resume(run: &Run, states: States) -> NextCommand {
    match (is_of_caller(run), is_final(run)) {
        (false, false) => NextCommand::Resume(needed(run, states)),
        // The pinned document would fail at the same step again. An edited one keeps all results.
        (false, true) => NextCommand::Resume(edited(run)),
        // With the results the loop would end in the same way at once.
        (true, _) if failed_with(run, ErrorCode::WhileNotConverged) => {
            NextCommand::Call(CallTarget::OtherRun)
        }
        (true, true) => NextCommand::Call(CallTarget::OtherRunWithResults),
        (true, false) => NextCommand::Call(CallTarget::SameRun),
    }
}

/// Returns the changes for a document that would fail at the same step again.
fn edited(run: &Run) -> Vec<Change> {
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let variables = failed.filter_map(|agent| match &agent.status {
        AgentStatus::Failed { failure: AgentFailure::Step { variable, .. }, .. } => {
            variable.clone()
        }
        AgentStatus::Failed { .. }
        | AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_) => None,
    });
    let mut changes = vec![Change::CurrentStates];
    for change in variables.map(Change::Variable) {
        // Several iterations may miss the same variable.
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

fn failed_with(run: &Run, of: ErrorCode) -> bool {
    let status = |id| Some(&run.agents.get(id)?.status);
    run.failed.iter().filter_map(status).any(|status| {
        matches!(status, AgentStatus::Failed { failure: AgentFailure::Step { code, .. }, .. } if *code == of)
    })
}

/// Returns whether a step failed because of a variable.
pub(super) fn misses_variable(run: &Run) -> bool {
    edited(run).iter().any(|change| matches!(change, Change::Variable(_)))
}

/// Returns whether only the caller of the tool can continue the run.
pub fn is_of_caller(run: &Run) -> bool {
    run.program.is_answered_by_caller()
}

/// Returns whether a step failed that a resume does not repeat, because it would fail again.
pub fn is_final(run: &Run) -> bool {
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let is_final = |status: &AgentStatus| match status {
        AgentStatus::Failed { failure: failure @ AgentFailure::Step { .. }, .. } => {
            !decide::is_revived(run, failure)
        }
        AgentStatus::Failed { .. }
        | AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_) => false,
    };
    run.phase == Phase::Ended(Ending::Failed) && failed.map(|agent| &agent.status).any(is_final)
}

/// Returns the changes without which a failed run would be refused, or fail in the same way again.
fn needed(run: &Run, states: States) -> Vec<Change> {
    // Any other run continues where it is, without a change.
    if run.phase != Phase::Ended(Ending::Failed) {
        return Vec::new();
    }
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let mut changes: Vec<Change> = Vec::new();
    let mut room: Option<u64> = None;
    for agent in failed {
        let AgentStatus::Failed { failure, .. } = &agent.status else { continue };
        let change = match failure {
            AgentFailure::Protocol { fault, .. } if let Fault::Denied { tools } = &**fault => {
                allowed(run, tools)
            }
            AgentFailure::Turn(TurnFailure::LostSession { .. }) => Some(Change::FreshSessions),
            AgentFailure::Denied { tools } => allowed(run, tools),
            AgentFailure::TooManyAgents { asked, .. } => {
                // One change for all failed agents: the largest need wins.
                room = room.max(Some(*asked as u64));
                None
            }
            AgentFailure::HeldForGood { limit } => {
                // The failure does not know how much room is missing. Doubling needs few resumes.
                room = room.max(Some(u64::from(*limit).saturating_mul(2)));
                None
            }
            AgentFailure::Visits { .. }
            | AgentFailure::VisitBudget { .. }
            | AgentFailure::OtherBackend { .. } => Some(Change::CurrentStates),
            AgentFailure::Exhausted { iterations, .. } => {
                Some(Change::MaxIterations(u64::from(*iterations).saturating_mul(2)))
            }
            AgentFailure::Turn(TurnFailure::Timeout { clock, after }) => {
                longer(run, *clock, *after)
            }
            // The state has to be edited, unless a script only missed something that it needs.
            AgentFailure::Protocol { .. }
            | AgentFailure::Turn(
                TurnFailure::Script { .. }
                | TurnFailure::OutputTooLarge { .. }
                | TurnFailure::NotStarted { .. },
            ) => {
                // An edit of the workflow cannot change a reply in a file.
                let state = failed_state(agent, failure).filter(|_| !is_rehearsed(run, agent));
                state.filter(|_| states != States::Unusable).map(|_| Change::CurrentStates)
            }
            AgentFailure::Turn(_)
            | AgentFailure::TooDeep { .. }
            | AgentFailure::Crashes { .. }
            | AgentFailure::Stalled { .. }
            | AgentFailure::InterruptedScript
            | AgentFailure::Step { .. }
            | AgentFailure::Declared { .. }
            | AgentFailure::Unanswered => None,
        };
        changes.extend(change.filter(|change| !changes.contains(change)));
    }
    changes.extend(room.map(Change::MaxAgents));
    // A run with edited states is refused without a choice of their version.
    if !changes.contains(&Change::CurrentStates) {
        match states {
            States::AsPinned => {}
            States::Edited => changes.push(Change::CurrentStates),
            // States that are missing or contain a mistake cannot be adopted.
            States::Unusable => changes.push(Change::PinnedStates),
        }
    }
    changes
}

/// Returns the state that failed, if a repetition would probably fail in the same way.
pub(super) fn failed_state<'a>(agent: &'a Agent, failure: &AgentFailure) -> Option<&'a StateName> {
    let state = agent.visit.location.state()?;
    let repeats = if let AgentFailure::Protocol { fault, .. } = failure {
        // Another permission helps against a denied tool, and no edit is needed.
        !matches!(**fault, Fault::Denied { .. })
    } else if let AgentFailure::Turn(
        TurnFailure::OutputTooLarge { .. } | TurnFailure::NotStarted { .. },
    ) = failure
    {
        // A prompt may get a shorter reply, and its client is not part of the workflow.
        Extension::of(state.as_str()).map(Extension::kind) == Some(StateKind::Script)
    } else {
        matches!(failure, AgentFailure::Turn(TurnFailure::Script { .. }))
    };
    repeats.then_some(state)
}

/// Returns the rules for denied tools, if there are any.
fn allowed(run: &Run, tools: &[String]) -> Option<Change> {
    let tools = tools.iter().map(|tool| (tool.clone(), 1)).collect();
    let denied = Denied::of(&tools, &run.settings.permissions.allow)?;
    let rules: Vec<String> = denied.rules().cloned().collect();
    (!rules.is_empty()).then_some(Change::Allow(rules))
}

/// Returns twice the time if the run set it; a state or the client set it otherwise.
fn longer(run: &Run, clock: Clock, after: Span) -> Option<Change> {
    let twice = Span(after.0.saturating_mul(2));
    match clock {
        Clock::Wall if run.settings.timeout == Some(after) => Some(Change::Timeout(twice)),
        Clock::Idle if run.settings.idle_timeout == Some(after) => Some(Change::IdleTimeout(twice)),
        // A flag would not change the limit of a state or of a client.
        Clock::Wall | Clock::Idle | Clock::FirstOutput => None,
    }
}

/// Returns a cap in whole dollars: two and a half times the larger of cap and spending.
fn more(run: &Run) -> u64 {
    let short = run.settings.budget.unwrap_or_default().max(run.spent).0;
    short.saturating_mul(5).div_ceil(2).div_ceil(1_000_000).max(1)
}
