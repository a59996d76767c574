//! Decides what follows when a turn ends: the charge, and then a transition, a reminder, a retry, a
//! continuation or a failure.
//!
//! Exactly one outcome counts per attempt; [`settled`] refuses any other. The transition itself is
//! in [`crate::machine::transition`]. Reading the text of a turn is not done here: the executor has
//! read it already.

use crate::agent::{Agent, Session, SessionPlan};
use crate::budget::{Charge, Micros};
use crate::failure::{Failure, TurnFailure};
use crate::ids::{BackendName, SessionId, StateName, TurnId};
use crate::machine::blocked::Blocked;
use crate::machine::ralph;
use crate::machine::transition;
use crate::machine::transition_context::TransitionContext;
use crate::protocol::Notice;
use crate::protocol::{Fault, Tag};
use crate::run::share::{charge, charge_capped};
use crate::scheduler::backoff::backoff;
use crate::scheduler::{Lane, Phase as TurnPhase, Prompt, Turn};
use crate::steps::decide;
use crate::time::{Span, Timestamp};
use crate::workflow::{Definition, OnDenied};

use super::Refusal;
use super::caller_session;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::input::{Finished, Outcome};
use crate::run::settings::OnLostSession;
use crate::run::state::Run;
use crate::run::stop::Interruption;
use crate::run::warning::Warning;
use crate::scheduler::Hold;

/// Attempts in a row without progress, after which the agent fails (docs/durability.md). The bound
/// ends a turn that crashes Raymond or its client each time.
const MOST_STALLS: u32 = 5;
/// Interval between probes of a usage limit whose end the client did not report
/// (docs/claude-code.md). A probe is a whole turn, so it must be rare.
const PROBE: Span = Span::minutes(15);
/// Shortest hold after a usage limit. An end that is nearer, or already past, would make Raymond
/// start turns in a loop.
const SHORTEST_HOLD: Span = Span::seconds(30);
/// Longest hold that Raymond accepts: 31 days, because no usage limit lasts longer than a month. A
/// later end comes from a wrong clock.
pub(super) const LONGEST_HOLD: Span = Span::minutes(31 * 24 * 60);

/// A turn that ended, with its charge.
struct Ended<'a> {
    turn: &'a Turn,
    agent: &'a Agent,
    charge: Charge,
    /// The session that the client opened under an id of its own.
    session: Option<&'a SessionId>,
}

/// The attempt that an outcome belongs to.
#[derive(Clone, Copy)]
pub(super) struct AttemptId<'a> {
    pub(super) turn: &'a TurnId,
    pub(super) attempt: u32,
}

pub(super) fn settled(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    attempt_id: AttemptId<'_>,
    outcome: &Outcome,
) -> Result<Vec<Event>, Refusal> {
    let AttemptId { turn: id, attempt } = attempt_id;
    let fenced = || Refusal::Fenced { turn: id.clone(), attempt };
    let turn = run.scheduler.turns.get(&id.agent).ok_or_else(fenced)?;
    let agent = run.agents.get(&id.agent).ok_or_else(fenced)?;
    let TurnPhase::Running { share } = turn.phase else {
        return Err(fenced());
    };
    // A late outcome of an earlier attempt must not end the attempt that replaced it.
    if turn.id != *id || turn.attempt != attempt {
        return Err(fenced());
    }
    let rule = if outcome.is_capped() { charge_capped } else { charge };
    let charge = rule(run, outcome.cost(), share);
    // Rejected after the charge was computed: a turn in the wrong session costs money all the same.
    let rejected = caller_session::reject(turn, agent, outcome);
    let outcome = rejected.as_ref().unwrap_or(outcome);
    let ended = Ended { turn, agent, charge, session: outcome.opened() };
    let mut decision = Decision::new(run, definition, at);
    match outcome {
        Outcome::Finished(outcome) => finished(&mut decision, &ended, outcome),
        Outcome::Capped { progressed, .. } if share.is_some() => {
            capped(&mut decision, &ended, *progressed);
        }
        // Raymond set no limit, so there is no share that could be renewed: only the retries bound
        // this.
        Outcome::Capped { .. } => {
            let why = "the client stopped at a limit of its own".to_owned();
            failed(&mut decision, &ended, &TurnFailure::Transient { why });
        }
        Outcome::Failed { failure, .. } => failed(&mut decision, &ended, failure),
        Outcome::Interrupted { by, progressed, .. } => {
            interrupted(&mut decision, &ended, *by, *progressed);
        }
    }
    if let Outcome::Capped { denied, .. } | Outcome::Failed { denied, .. } = outcome {
        warn_denied(&mut decision, agent, denied);
    }
    // Last, so that the warning follows the event that charges the turn.
    threshold(&mut decision, ended.charge.amount);
    Ok(decision.events)
}

fn finished(decision: &mut Decision<'_>, ended: &Ended<'_>, outcome: &Finished) {
    let Ended { turn, agent, charge, .. } = *ended;
    let session = session_after(turn, agent, outcome.session.as_ref());
    decision.push(Event::TurnSettled {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        session: session.clone(),
        model: outcome.model.clone(),
    });
    warn(decision, agent, outcome);
    if decision.run.flow.is_some() {
        return decide::finished(decision, agent, &session, outcome);
    }
    if let Some(ralph) = decision.run.settings.program.ralph() {
        return ralph::finished(decision, ralph, agent, outcome);
    }
    let holder = match &turn.lane {
        Lane::Prompt(backend) => Some(backend),
        Lane::Script => agent.holder.as_ref(),
    };
    let context =
        TransitionContext { agent, session: &session, holder, directories: &outcome.directories };
    let read = read(decision, agent, outcome);
    let tags = match read {
        Ok(tags) => tags,
        Err(Stop::Fault(fault)) => {
            return remind(decision, ended, &session, fault, &outcome.stderr);
        }
        Err(Stop::Failure(failure)) => return fail(decision, agent, failure),
    };
    match transition::take(decision, context, &tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) => remind(decision, ended, &session, fault, &outcome.stderr),
        Err(Blocked::Failed(failure)) => {
            let (agent, kept) = (agent.id.clone(), Some(context.keep(&tags)));
            decision.push(Event::AgentFailed { agent, failure, kept });
        }
        Err(Blocked::Held) => {
            let (agent, kept) = (agent.id.clone(), context.keep(&tags));
            decision.push(Event::AgentHeld { agent, kept });
        }
    }
}

enum Stop {
    Fault(Fault),
    Failure(Failure),
}

/// Returns the tags of the transition in the text, unless the state treats a denied tool as a
/// fault.
fn read(decision: &Decision<'_>, agent: &Agent, outcome: &Finished) -> Result<Vec<Tag>, Stop> {
    let Some(state) = decision.state(&agent.visit.state) else {
        return transition::transition(&outcome.reading, &crate::workflow::Policy::default())
            .map_err(Stop::Fault);
    };
    if !outcome.denied.is_empty() {
        let tools = outcome.denied.clone();
        match state.front.on_denied {
            OnDenied::Warn => {}
            OnDenied::Remind => return Err(Stop::Fault(Fault::Denied { tools })),
            OnDenied::Fail => return Err(Stop::Failure(Failure::Denied { tools })),
        }
    }
    transition::transition(&outcome.reading, &state.front.policy).map_err(Stop::Fault)
}

/// Returns the agent's session after a turn. Scripts have no session and leave it unchanged.
fn session_after(turn: &Turn, agent: &Agent, reported: Option<&SessionId>) -> Session {
    match turn.current.as_ref().and_then(SessionPlan::session) {
        None => agent.session.clone(),
        Some(planned) => Session::At(reported.unwrap_or(planned).clone()),
    }
}

fn warn(decision: &mut Decision<'_>, agent: &Agent, outcome: &Finished) {
    let reading = &outcome.reading;
    let mut warnings = outcome.warnings.clone();
    if !reading.tags.is_empty() {
        warnings.extend(reading.malformed.iter().cloned().map(Warning::MalformedTag));
    }
    warnings.extend(
        reading
            .unknown_attributes
            .iter()
            .map(|(tag, name)| Warning::UnknownAttribute { tag: *tag, name: name.clone() }),
    );
    for warning in warnings {
        decision.warn(&agent.id, warning);
    }
    warn_denied(decision, agent, &outcome.denied);
}

fn warn_denied(decision: &mut Decision<'_>, agent: &Agent, denied: &[String]) {
    for tool in denied {
        decision.warn(&agent.id, Warning::ToolDenied { tool: tool.clone() });
    }
}

/// Queues a reminder that names the fault. Fails the agent if it has no reminders left, if its
/// visit has no budget left, or if it is a script.
fn remind(
    decision: &mut Decision<'_>,
    ended: &Ended<'_>,
    session: &Session,
    fault: Fault,
    stderr: &str,
) {
    let Ended { turn, agent, charge, .. } = *ended;
    if turn.lane == Lane::Script || agent.visit.reminders >= decision.run.settings.reminders {
        let fault = with_states(decision, fault);
        return fail(decision, agent, Failure::Protocol { fault, stderr: stderr.to_owned() });
    }
    if let Some(budget) = out_of_visit_budget(decision, agent, charge.amount) {
        return fail(decision, agent, Failure::VisitBudget { budget });
    }
    decision.push(Event::Reminded {
        agent: agent.id.clone(),
        fault: fault.clone(),
        reminder: agent.visit.reminders.saturating_add(1),
    });
    // Keeps `order`: the visit has waited for its place already.
    let id = turn.id.following();
    let plan = decision.plan(&id, &turn.lane, session);
    decision.push(Event::TurnQueued {
        turn: id,
        lane: turn.lane.clone(),
        prompt: Prompt::Reminder(fault),
        plan,
        order: turn.order,
        notice: None,
    });
}

/// Adds the names of the states to a fault about an unknown state. Only the failure that a user
/// reads needs this; a reminder lists the allowed states anyway.
fn with_states(decision: &Decision<'_>, fault: Fault) -> Fault {
    // Names; enough for most workflows, and still one paragraph of an error.
    const MOST: usize = 20;
    let Fault::Unresolved { tag, target, why } = fault else { return fault };
    let states = &decision.definition.states;
    let mut names: Vec<&str> = states.keys().take(MOST).map(StateName::as_str).collect();
    if states.len() > MOST {
        names.push("…");
    }
    Fault::Unresolved { tag, target, why: format!("{why} (the states are {})", names.join(", ")) }
}

/// Continues a turn that used up its budget share with a new share, unless it made no progress too
/// often.
fn capped(decision: &mut Decision<'_>, ended: &Ended<'_>, progressed: bool) {
    let Ended { turn, agent, charge, .. } = *ended;
    let (attempt, session) = (turn.attempt, ended.session.cloned());
    let stalls = if progressed { 0 } else { turn.stalls.saturating_add(1) };
    decision.push(Event::TurnContinues { turn: turn.id.clone(), attempt, charge, stalls, session });
    if stalls >= MOST_STALLS {
        return fail(decision, agent, Failure::Stalled { count: stalls });
    }
    again(decision, ended, Notice::NewShare);
}

/// Queues the same turn again, unless the budget of its visit is used up.
fn again(decision: &mut Decision<'_>, ended: &Ended<'_>, notice: Notice) {
    match out_of_visit_budget(decision, ended.agent, ended.charge.amount) {
        Some(budget) => fail(decision, ended.agent, Failure::VisitBudget { budget }),
        None => decision.requeue(&ended.turn.id, notice),
    }
}

fn failed(decision: &mut Decision<'_>, ended: &Ended<'_>, failure: &TurnFailure) {
    let Ended { turn, agent, charge, .. } = *ended;
    decision.push(Event::TurnFailed {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        failure: failure.clone(),
        session: ended.session.cloned(),
    });
    let Lane::Prompt(backend) = &turn.lane else {
        if decision.run.flow.is_some() {
            return decide::failed(decision, agent, turn, failure);
        }
        return fail(decision, agent, Failure::Turn(failure.clone()));
    };
    match failure {
        TurnFailure::Transient { .. } | TurnFailure::Timeout { .. } => {
            retry(decision, ended, failure);
        }
        TurnFailure::Quota { until, why } => {
            limited(decision, backend, *until, why);
            again(decision, ended, Notice::Retried);
        }
        TurnFailure::Auth { why } => {
            let hold = Hold::Auth { why: why.clone() };
            decision.push(Event::BackendHeld { backend: backend.clone(), hold });
            again(decision, ended, Notice::Retried);
        }
        TurnFailure::Environment { why } => {
            let hold = Hold::Environment { why: why.clone() };
            decision.push(Event::BackendHeld { backend: backend.clone(), hold });
            again(decision, ended, Notice::Retried);
        }
        TurnFailure::LostSession { session } => lost(decision, ended, session),
        TurnFailure::Task { .. }
        | TurnFailure::Script { .. }
        | TurnFailure::OutputTooLarge { .. }
        | TurnFailure::Step { .. }
        | TurnFailure::NotStarted { .. } => fail(decision, agent, Failure::Turn(failure.clone())),
    }
}

/// Holds a backend until its usage limit ends, or until the next probe if the end is unknown. A
/// hold that only a user can end stays, and so does an end that is already known.
fn limited(
    decision: &mut Decision<'_>,
    backend: &BackendName,
    until: Option<Timestamp>,
    why: &str,
) {
    let known = match decision.run.scheduler.holds.get(backend) {
        Some(Hold::Auth { .. } | Hold::Environment { .. }) => return,
        Some(Hold::Quota { until, .. }) => Some(*until),
        None => None,
    };
    let until = until.filter(|until| *until <= decision.at + LONGEST_HOLD);
    let until = until.or(known).unwrap_or(decision.at + PROBE);
    let (until, why) = (until.max(decision.at + SHORTEST_HOLD), why.to_owned());
    decision
        .push(Event::BackendHeld { backend: backend.clone(), hold: Hold::Quota { until, why } });
}

fn retry(decision: &mut Decision<'_>, ended: &Ended<'_>, failure: &TurnFailure) {
    let Ended { turn, agent, charge, .. } = *ended;
    if agent.visit.retries >= decision.run.settings.retries {
        return fail(decision, agent, Failure::Turn(failure.clone()));
    }
    if let Some(budget) = out_of_visit_budget(decision, agent, charge.amount) {
        return fail(decision, agent, Failure::VisitBudget { budget });
    }
    let retry = agent.visit.retries.saturating_add(1);
    let until = decision.at + backoff(&turn.id, turn.attempt, retry);
    decision.push(Event::RetryAt { turn: turn.id.clone(), until, retry, of: None });
}

/// Handles a session that the client no longer has. Raymond never starts a fresh session silently:
/// either the agent fails, or the journal records which session was lost. A client that cannot find
/// the session it should have opened would fail again, so its agent always fails.
fn lost(decision: &mut Decision<'_>, ended: &Ended<'_>, session: &SessionId) {
    let Ended { turn, agent, .. } = *ended;
    let opens = matches!(turn.plan, SessionPlan::Fresh(_));
    if opens || decision.run.settings.on_lost_session == OnLostSession::Fail {
        let session = session.clone();
        let failure = TurnFailure::LostSession { session };
        return fail(decision, agent, Failure::Turn(failure));
    }
    // The attempt is part of the id, because Claude Code refuses to open a session id twice.
    let plan = SessionPlan::Fresh(turn.id.session(&decision.run.nonce, turn.attempt));
    decision.push(Event::SessionLost {
        turn: turn.id.clone(),
        lost: session.clone(),
        plan: plan.clone(),
    });
    match turn.prompt {
        Prompt::Body => again(decision, ended, Notice::SessionLost),
        Prompt::Reminder(_) => start_over(decision, ended, plan),
    }
}

/// Queues the body instead of a reminder, because a fresh session has never seen the task.
fn start_over(decision: &mut Decision<'_>, ended: &Ended<'_>, plan: SessionPlan) {
    let Ended { turn, agent, charge, .. } = *ended;
    if let Some(budget) = out_of_visit_budget(decision, agent, charge.amount) {
        return fail(decision, agent, Failure::VisitBudget { budget });
    }
    let order = decision.order();
    decision.push(Event::TurnQueued {
        turn: turn.id.following(),
        lane: turn.lane.clone(),
        prompt: Prompt::Body,
        plan,
        order,
        notice: Some(Notice::SessionLost),
    });
}

/// Records an interrupted turn. It waits for a resume, unless Raymond recalled it: then it
/// continues at once with a new share.
fn interrupted(decision: &mut Decision<'_>, ended: &Ended<'_>, by: Interruption, progressed: bool) {
    let Ended { turn, agent, charge, .. } = *ended;
    let crashes = match by {
        _ if progressed => 0,
        Interruption::Crash => turn.stalls.saturating_add(1),
        // A stop says nothing about the turn: it neither counts as a stall nor clears earlier ones.
        Interruption::Stop => turn.stalls,
    };
    decision.push(Event::TurnInterrupted {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        by,
        crashes,
        session: ended.session.cloned(),
    });
    if crashes >= MOST_STALLS {
        fail(decision, agent, Failure::Crashes { count: crashes });
    } else if turn.recalled {
        again(decision, ended, Notice::NewShare);
    }
}

/// Fails an agent, unless its program handles the failure: a ralph loop continues with the next
/// iteration, and a document of steps ends the branch.
pub(super) fn fail(decision: &mut Decision<'_>, agent: &Agent, failure: Failure) {
    match decision.run.settings.program.ralph() {
        Some(ralph) if ralph::survives(&failure) => ralph::failed(decision, ralph, agent, failure),
        None if decision.run.flow.is_some() => decide::break_off(decision, agent, failure),
        Some(_) | None => {
            decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
        }
    }
}

/// Returns the budget of the visit if nothing of it is left.
fn out_of_visit_budget(decision: &Decision<'_>, agent: &Agent, charged: Micros) -> Option<Micros> {
    let left = decision.visit_left(&agent.id, charged)?;
    let budget = decision.state(&agent.visit.state)?.front.budget?;
    (left == Micros::ZERO).then_some(budget)
}

/// Warns when this charge takes the run past 50, 80 or 95 percent of its cap. Several thresholds
/// passed at once give one warning.
fn threshold(decision: &mut Decision<'_>, charged: Micros) {
    let Some(cap) = decision.run.settings.budget.filter(|cap| *cap > Micros::ZERO) else {
        return;
    };
    let before = decision.run.spent;
    let reached = |spent: Micros| {
        // u128: an amount near `u64::MAX` times 100 would overflow.
        let percent = u128::from(spent.0) * 100 / u128::from(cap.0);
        let passed = |limit: &u32| percent >= u128::from(*limit);
        [95, 80, 50].into_iter().find(passed)
    };
    if let Some(percent) = reached(before.plus(charged))
        && reached(before) != Some(percent)
    {
        decision.push(Event::Warned { agent: None, warning: Warning::Spent { percent } });
    }
}
