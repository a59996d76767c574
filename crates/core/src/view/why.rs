//! The cause of a run's status: one sentence, and a hint that a caller may turn into a command.
//!
//! It reads the run and its ledger only, so it is the same in a live console, in `raymond why` and
//! in JSON. The next command is in [`mod@super::next_command`].

use crate::text::counted;
use std::collections::BTreeSet;

use crate::agent::{Agent, AgentStatus, Asking, Location};
use crate::crayfish::key::RequestId;
use crate::crayfish::{ErrorCode, VariableProblem};
use crate::extension::{Extension, StateKind};
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::protocol::{Fault, TagName};
use crate::run::program::without_result;
use crate::run::stop::StopOrigin;
use crate::run::{Ending, Phase, Ralph, Run};
use crate::scheduler::Hold;
use crate::scheduler::Lane;

use super::TimeFormat;
use super::backend_labels::{BackendLabels, answering, is_rehearsed};
use super::ledger::Ledger;
use super::next_command::{failed_state, is_final, is_of_caller, misses_variable};
use super::path::Loop;
use super::place::place;
use super::plan::Plan;
use super::status::{Status, Waiting};
use super::words::{options_words, preview};

/// The cause of a status. The text names no command and no flag, because only the command line
/// knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// One sentence without a full stop.
    pub text: String,
    /// What to edit, pass or read first. It concerns the first failed agent, and its words belong
    /// after that part of the text.
    pub hint: Option<Hint>,
    /// The rest of the sentence, behind the hint.
    pub rest: String,
    /// The other failed agents, at the end of the sentence: only the first ten are named.
    pub others: String,
}

/// What to edit, pass or read before a resume helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// The logs contain the output of this agent in a state or step; `None` if the step names it.
    Output {
        agent: Option<AgentId>,
        location: String,
    },
    /// Pass a variable that has no value.
    MissingVariable {
        name: String,
    },
    /// Pass a variable as a list.
    ListVariable {
        name: String,
    },
    RaiseMaxVisits {
        state: StateName,
    },
    /// Limit the visits of a state that was repeated until the cap was reached.
    LimitLoop {
        state: StateName,
    },
    /// Let this backend answer the state.
    AnswerWith {
        backend: BackendName,
        state: StateName,
    },
    /// Let `then` of the limited state lead to a state that this backend answers.
    RedirectThen {
        limited: StateName,
        backend: BackendName,
    },
    RaiseVisitBudget,
    /// Raise the budget of an agent step.
    RaiseStepBudget {
        step: String,
    },
    /// Fix the document: with the pinned one the run would fail in the same way again.
    FixDocument {
        document: String,
    },
    /// Fix the reason that the agent gave: a resume repeats this state.
    FixReason {
        location: String,
    },
    /// Check what this script did before it was interrupted: a resume runs it again.
    CheckScript {
        location: String,
    },
    /// Fix this script, or what it needs.
    FixScript {
        state: StateName,
    },
    /// Correct this prompt, whose replies had no usable tag.
    FixPrompt {
        state: StateName,
    },
    /// Let the policy of this prompt allow questions.
    AllowAsk {
        state: StateName,
    },
    /// Correct the reply to this prompt in the file of replies.
    FixReply {
        state: StateName,
    },
    /// Fix the reason for which a turn could not start.
    FixStart,
}

impl Hint {
    /// Returns whether it asks for an edit, so that it is of no use after the edit.
    pub fn is_edit(&self) -> bool {
        match self {
            Self::RaiseMaxVisits { .. }
            | Self::AnswerWith { .. }
            | Self::RedirectThen { .. }
            | Self::RaiseVisitBudget
            | Self::RaiseStepBudget { .. }
            | Self::FixDocument { .. }
            | Self::FixScript { .. }
            | Self::FixPrompt { .. }
            | Self::FixReply { .. }
            | Self::AllowAsk { .. }
            | Self::FixStart => true,
            Self::Output { .. }
            | Self::MissingVariable { .. }
            | Self::ListVariable { .. }
            | Self::FixReason { .. }
            | Self::CheckScript { .. }
            | Self::LimitLoop { .. } => false,
        }
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self { text, hint: None, rest: String::new(), others: String::new() }
    }
}

pub fn why(run: &Run, ledger: &Ledger, status: Status, time: TimeFormat) -> Cause {
    let naming = ledger.naming();
    let text = match status {
        Status::Running => running(run, naming) + &also_asks(run, time),
        Status::Waiting(waiting, _) => waits(run, waiting, naming, time),
        Status::Completed => completed(run, ledger),
        Status::Failed => return failed(run, naming),
        Status::OverBudget => return over_budget(run, ledger),
        Status::Cancelled => "a user cancelled it".to_owned(),
        // A resume does not continue such a run, so the number of agents would mislead.
        Status::Stopped if is_of_caller(run) => stopper_words(ledger.stopper).to_owned(),
        Status::Stopped => {
            let by = stopper_words(ledger.stopper);
            format!("{by}; {} can continue", counted(run.live, "agent"))
        }
        Status::Interrupted => interrupted(run, ledger),
    };
    text.into()
}

fn completed(run: &Run, ledger: &Ledger) -> String {
    let until = run.program.ralph().and_then(|ralph| ralph.until.as_deref());
    if run.program.steps().is_some() {
        return match collected(run) {
            0 => "every step is done".to_owned(),
            1 => "every step is done; 1 failure was collected".to_owned(),
            several => format!("every step is done; {several} failures were collected"),
        };
    }
    match ledger.exhausted {
        Some(iterations) => without_result(iterations, until),
        None => {
            let failures = handed_failures(run.handed_failures.len());
            format!("{} ended with a result{failures}", everybody(run.ended.len()))
        }
    }
}

/// Counts the failed workers that joins handed over. They do not make the run fail, so no other
/// text mentions them.
fn handed_failures(workers: usize) -> String {
    match workers {
        0 => String::new(),
        1 => "; 1 failed worker was handed to its parent".to_owned(),
        several => format!("; {several} failed workers were handed to their parents"),
    }
}

/// Returns how many failures the loops of a completed run collected.
pub fn collected(run: &Run) -> usize {
    let results = run.program.steps().into_iter().flat_map(|flow| flow.results.values());
    match run.phase {
        Phase::Ended(Ending::Completed) => results.filter(|stored| !stored.ok).count(),
        Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => 0,
    }
}

/// Returns `main` or `main and 3 workers`.
fn everybody(agents: usize) -> String {
    match agents.saturating_sub(1) {
        0 => "main".to_owned(),
        workers => format!("main and {}", counted(workers as u64, "worker")),
    }
}

const fn stopper_words(stopper: Option<StopOrigin>) -> &'static str {
    match stopper {
        Some(StopOrigin::Signal) => "a signal to its owner stopped it",
        Some(StopOrigin::Trouble) => "trouble in its owner stopped it",
        Some(StopOrigin::Command) => "a user stopped it",
        Some(StopOrigin::Caller) => "its caller gave up",
        None => "it was stopped",
    }
}

fn running(run: &Run, naming: BackendLabels) -> String {
    let mut agents = run.scheduler.in_flight.iter().filter_map(|id| run.agents.get(id));
    let Some(first) = agents.next() else {
        return "it is about to continue".to_owned();
    };
    let others = agents.count();
    let more = match others {
        0 => String::new(),
        1 => "; 1 more agent works".to_owned(),
        several => format!("; {several} more agents work"),
    };
    let stopping = match run.phase {
        // A stop waits for its turns in flight, so the run still counts as running.
        Phase::Stopping(_) => "; the run was asked to end",
        Phase::Unborn | Phase::Open | Phase::Ended(_) => "",
    };
    let iteration = run.program.ralph().map(|_| {
        format!(", iteration {} of {}", Ralph::iterations(first), run.settings.max_iterations)
    });
    let iteration = iteration.unwrap_or_default();
    let Agent { id, visit, .. } = first;
    let place = format!("{}{}", visit.location, naming.suffix(answering(run, first)));
    format!("{id} is in turn {} of {place}{iteration}{more}{stopping}", visit.turn)
}

fn waits(run: &Run, waiting: Waiting, naming: BackendLabels, time: TimeFormat) -> String {
    let wanted = |hold: &Hold| match (waiting, hold) {
        (Waiting::Person, Hold::Auth { .. })
        | (Waiting::Quota(_), Hold::Quota { .. })
        | (Waiting::Environment, Hold::Environment { .. }) => true,
        (
            Waiting::Person
            | Waiting::Caller
            | Waiting::Quota(_)
            | Waiting::Retry(_)
            | Waiting::Time(_)
            | Waiting::Environment,
            _,
        ) => false,
    };
    let hold = run.scheduler.holds.iter().find(|(_, hold)| wanted(hold));
    let words = match (waiting, hold) {
        (Waiting::Retry(_), _) => match run.scheduler.timers.retries().next() {
            Some((until, agent)) => {
                let backend = run.scheduler.turns.get(agent).and_then(|turn| turn.lane.backend());
                let backend = naming.suffix(backend);
                format!("{agent} tries its failed turn{backend} again at {}", time(until))
            }
            None => "a failed turn is tried again soon".to_owned(),
        },
        (Waiting::Time(_), _) => parked(run, time),
        (_, Some((backend, Hold::Quota { why, until }))) => {
            format!("the usage limit of {backend} is reached until {}: {why}", time(*until))
        }
        (_, Some((backend, Hold::Auth { why }))) => {
            format!("{backend} needs a person to log in: {why}")
        }
        (_, Some((_, Hold::Environment { why }))) => why.clone(),
        (Waiting::Environment, None) => {
            "a resource of the machine was missing, such as disk space".to_owned()
        }
        (Waiting::Person, None) => return asks(run, time),
        (Waiting::Caller, None) => owed(run),
        (Waiting::Quota(_), None) => "a usage limit was reached".to_owned(),
    };
    words + &also_asks(run, time)
}

/// Names the open question while other agents work or wait for something else.
fn also_asks(run: &Run, time: TimeFormat) -> String {
    let is_asked = run.scheduler.asks.keys().any(|ask| asking(run, ask).is_some());
    if is_asked { format!("; {}", asks(run, time)) } else { String::new() }
}

/// Names the question that is open for the longest time, and counts the others.
fn asks(run: &Run, time: TimeFormat) -> String {
    let mut open: Vec<&Asking> =
        run.scheduler.asks.keys().filter_map(|ask| asking(run, ask)).collect();
    open.sort_by_key(|asking| asking.at);
    let Some(first) = open.first() else {
        return "an agent can continue with its answer".to_owned();
    };
    let question = first.kept.question();
    let text = question.map(|asked| preview(&asked.text)).unwrap_or_default();
    let options = question.map(|asked| options_words(&asked.options)).unwrap_or_default();
    let due = run.scheduler.asks.get(&first.ask).copied().flatten();
    let due = due.map(|due| format!(" (until {})", time(due))).unwrap_or_default();
    let more = match open.len() {
        1 => String::new(),
        several => format!("; {} more", counted(several as u64 - 1, "question")),
    };
    format!("{} asks: {text}{options}{due}{more}", first.ask.agent)
}

fn asking<'r>(run: &'r Run, ask: &TurnId) -> Option<&'r Asking> {
    match &run.agents.get(&ask.agent)?.status {
        AgentStatus::Asking(asking) => Some(asking),
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Cancelling(_)
        | AgentStatus::Failed { .. } => None,
    }
}

/// Names the outputs that the caller has to send.
fn owed(run: &Run) -> String {
    let attempts = run.program.steps().map(|flow| &flow.attempts);
    let asked = run.scheduler.asks.keys().filter_map(|ask| {
        let key = run.agents.get(&ask.agent)?.visit.location.step()?.clone();
        let attempt = attempts?.get(&key).copied().unwrap_or(1);
        Some(RequestId { run: Some(run.id.clone()), key, attempt })
    });
    // Sorted by key, so that the first request is the one that the reply lists first.
    let asked: BTreeSet<RequestId> = asked.collect();
    match (asked.first(), asked.len()) {
        (None, _) => "the caller has to send an output".to_owned(),
        (Some(first), 1) => format!("the caller has to answer `{first}`"),
        (Some(first), several) => {
            let more = counted(several as u64 - 1, "more request");
            format!("the caller has to answer `{first}` and {more}")
        }
    }
}

fn failed(run: &Run, naming: BackendLabels) -> Cause {
    // In the order of ids, so that every command names the same agent first.
    let mut failed = run.failed.iter();
    let Some(first) = failed.next() else {
        return none_failed(run).into();
    };
    let others = others(failed);
    let Some(agent @ Agent { status: AgentStatus::Failed { failure, .. }, .. }) =
        run.agents.get(first)
    else {
        return Cause { others, ..format!("{first} failed").into() };
    };
    let backend = naming.suffix(answering(run, agent));
    let text = format!("{first} failed at {}{backend}: {failure}", place(run, agent));
    let waits = waiting_parent(run, agent).map(|parent| format!("; {parent} waits for it"));
    let hint = hint(run, agent, failure);
    Cause { text, hint, rest: waits.unwrap_or_default(), others }
}

/// Describes a failed run whose failed agents were all cancelled since it ended.
fn none_failed(run: &Run) -> String {
    let mut left = run.agents.keys();
    let waiting = match (left.next(), left.count()) {
        (None, _) => "the run waits to complete".to_owned(),
        (Some(first), 0) => format!("{first} waits to continue"),
        (Some(first), others) => format!("{first} and {others} more wait to continue"),
    };
    format!("{waiting}; no agent is failed any more")
}

/// Returns the agent that waits for a failed worker.
fn waiting_parent<'r>(run: &'r Run, worker: &'r Agent) -> Option<&'r AgentId> {
    let parent = worker.parent.as_ref()?;
    run.groups.get(parent)?.members.contains_key(&worker.id).then_some(parent)
}

/// Returns the first failed worker for which its parent waits. The run can continue without it, if
/// it is cancelled.
pub fn awaited_failure(run: &Run) -> Option<&AgentId> {
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    failed.filter(|agent| waiting_parent(run, agent).is_some()).map(|agent| &agent.id).next()
}

/// Returns whether the logs contain an output of a step that failed with this code.
fn is_answered(run: &Run, code: ErrorCode) -> bool {
    code == ErrorCode::ExecFailed
        || code == ErrorCode::AgentOutputSchemaFailed && !is_of_caller(run)
}

fn hint(run: &Run, agent: &Agent, failure: &AgentFailure) -> Option<Hint> {
    let location = &agent.visit.location;
    match failure {
        // The failure itself shows the end of stderr.
        AgentFailure::Turn(TurnFailure::Script { stderr, .. }) if !stderr.is_empty() => None,
        // The failure says what is wrong, but only the output shows why.
        AgentFailure::Protocol { .. } | AgentFailure::Turn(TurnFailure::Script { .. }) => {
            Some(Hint::Output { agent: Some(agent.id.clone()), location: location.stem() })
        }
        AgentFailure::Step { code, .. } if is_answered(run, *code) => {
            Some(Hint::Output { agent: None, location: location.to_string() })
        }
        // A caller knows its own variables, and passes them in its request.
        AgentFailure::Step { variable: Some(problem), .. } if !is_of_caller(run) => {
            Some(match problem.clone() {
                VariableProblem::Missing { name } => Hint::MissingVariable { name },
                VariableProblem::NotAList { name } => Hint::ListVariable { name },
            })
        }
        AgentFailure::Visits { state, .. } => Some(Hint::RaiseMaxVisits { state: state.clone() }),
        AgentFailure::OtherBackend { state, holds, instead_of, .. } => {
            let backend = holds.clone();
            Some(match instead_of.clone() {
                None => Hint::AnswerWith { backend, state: state.clone() },
                Some(limited) => Hint::RedirectThen { limited, backend },
            })
        }
        AgentFailure::VisitBudget { .. } => Some(match location {
            Location::State(_) => Hint::RaiseVisitBudget,
            Location::Step(key) => Hint::RaiseStepBudget { step: key.step.to_string() },
        }),
        AgentFailure::Declared { .. } if run.program.ralph().is_none() => {
            Some(Hint::FixReason { location: location.to_string() })
        }
        AgentFailure::InterruptedScript => {
            Some(Hint::CheckScript { location: location.to_string() })
        }
        AgentFailure::Turn(_)
        | AgentFailure::Denied { .. }
        | AgentFailure::TooManyAgents { .. }
        | AgentFailure::HeldForGood { .. }
        | AgentFailure::TooDeep { .. }
        | AgentFailure::Crashes { .. }
        | AgentFailure::Stalled { .. }
        | AgentFailure::Step { .. }
        | AgentFailure::Declared { .. }
        | AgentFailure::Exhausted { .. }
        | AgentFailure::Unanswered => None,
    }
}

/// Names the other failed agents, up to a limit.
fn others<'a>(mut failed: impl ExactSizeIterator<Item = &'a AgentId>) -> String {
    // Agents; a run can have thousands, and the cause is one sentence.
    const NAMED: usize = 10;
    if failed.len() == 0 {
        return String::new();
    }
    let named: Vec<&str> = failed.by_ref().take(NAMED).map(AgentId::as_str).collect();
    let more = match failed.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("; {}{more} failed, too", named.join(", "))
}

fn over_budget(run: &Run, ledger: &Ledger) -> Cause {
    let cap = run.settings.budget.unwrap_or_default();
    let queued: usize = run
        .scheduler
        .queues
        .iter()
        // Scripts continue without money, so none of them waits for it.
        .filter(|(lane, _)| **lane != Lane::Script)
        .map(|(_, queue)| queue.len())
        .sum();
    let waiting = match queued {
        0 => String::new(),
        1 => "; 1 turn waits for a higher budget".to_owned(),
        several => format!("; {several} turns wait for a higher budget"),
    };
    // `raymond ralph` is a loop itself, and its path says no more than its iterations.
    let last_loop = ledger.path.last_loop().filter(|_| run.program.ralph().is_none());
    let repeated = last_loop.as_ref().map_or_else(String::new, |last| {
        format!("; main repeated {} {} times", last.words, last.times)
    });
    Cause {
        text: format!("{} of the {cap} cap is spent{repeated}", run.spent),
        hint: last_loop.as_ref().and_then(loop_limit),
        rest: waiting,
        others: String::new(),
    }
}

/// Suggests a limit for a loop that may never end, because more money would only repeat it.
fn loop_limit(last: &Loop<'_>) -> Option<Hint> {
    // Times; a loop of a usual workflow is repeated less often.
    const MANY: u64 = 5;
    if last.times < MANY {
        return None;
    }
    let mut states = last.locations.iter().filter_map(|location| location.state());
    let is_prompt = |state: &&StateName| {
        Extension::of(state.as_str()).map(Extension::kind) == Some(StateKind::Prompt)
    };
    states.find(is_prompt).map(|state| Hint::LimitLoop { state: state.clone() })
}

/// Counts the turns that a resume continues or repeats, as its plan does.
fn interrupted(run: &Run, ledger: &Ledger) -> String {
    let plan = Plan::of(run, ledger, &run.settings);
    let naming = ledger.naming();
    let asked = plan.open.iter().filter_map(|open| naming.label(open.backend.as_ref()));
    let asked: BTreeSet<&str> = asked.map(BackendName::as_str).collect();
    let backends = match asked.into_iter().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        names => format!(" ({names})"),
    };
    match plan.open.len() as u64 {
        0 => "its owner died; no turn was unfinished".to_owned(),
        turns => format!("its owner died with {}{backends}", counted(turns, "unfinished turn")),
    }
}

/// Describes the agent that wakes next.
fn parked(run: &Run, time: TimeFormat) -> String {
    let mut wakes = run.scheduler.timers.wakes();
    let Some((until, agent)) = wakes.next() else {
        return "an agent is about to continue".to_owned();
    };
    let then = match run.agents.get(agent).map(|agent| &agent.status) {
        Some(AgentStatus::Parked(parked)) => format!(", then enters {}", parked.kept.target()),
        Some(AgentStatus::Joining(_)) => " for its workers".to_owned(),
        Some(
            AgentStatus::Live
            | AgentStatus::Held(_)
            | AgentStatus::Asking(_)
            | AgentStatus::Cancelling(_)
            | AgentStatus::Failed { .. },
        )
        | None => String::new(),
    };
    let others = wakes.count();
    let more = if others > 0 { format!(" ({others} more wait)") } else { String::new() };
    format!("{agent} waits until {}{then}{more}", time(until))
}

/// Returns the edit without which a resume fails in the same way again; `None` if it needs none.
pub fn needed_edit(run: &Run) -> Option<Hint> {
    // A variable is set by a flag of the next command.
    if is_final(run) && !is_of_caller(run) && !misses_variable(run) {
        return Some(Hint::FixDocument { document: run.workflow.clone() });
    }
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let mut edits = failed.filter_map(|agent| match &agent.status {
        AgentStatus::Failed { failure, .. } => edit(run, agent, failure),
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_) => None,
    });
    edits.next()
}

fn edit(run: &Run, agent: &Agent, failure: &AgentFailure) -> Option<Hint> {
    if let AgentFailure::Protocol { fault, .. } = failure
        && matches!(**fault, Fault::Forbidden { tag: TagName::Ask, target: None, .. })
        && let Some(state) = agent.visit.location.state().cloned()
    {
        return Some(Hint::AllowAsk { state });
    }
    if let Some(state) = failed_state(agent, failure).cloned() {
        let kind = Extension::of(state.as_str()).map(Extension::kind);
        return Some(match kind {
            Some(StateKind::Script) => Hint::FixScript { state },
            Some(StateKind::Prompt) | None if is_rehearsed(run, agent) => Hint::FixReply { state },
            Some(StateKind::Prompt) | None => Hint::FixPrompt { state },
        });
    }
    if let AgentFailure::Turn(TurnFailure::NotStarted { .. }) = failure {
        let state = agent.visit.location.state().filter(|_| is_rehearsed(run, agent)).cloned();
        return Some(state.map_or(Hint::FixStart, |state| Hint::FixReply { state }));
    }
    hint(run, agent, failure).filter(Hint::is_edit)
}
