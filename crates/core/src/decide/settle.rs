//! Decides what follows when a turn ends: the charge, and then a transition, a reminder, a retry, a
//! continuation or a failure.
//!
//! Exactly one outcome counts per attempt; [`settled`] refuses any other. The transition itself is
//! in [`crate::machine::transition`]. Reading the text of a turn is not done here: the executor has
//! read it already.

use crate::agent::{Agent, AgentStatus, Session, SessionPlan};
use crate::budget::Micros;
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::{BackendName, SessionId, TurnAttempt};
use crate::machine::joins;
use crate::machine::transition::lacks_a_part;
use crate::program;
use crate::protocol::Notice;
use crate::run::share::{charge, charge_capped};
use crate::scheduler::backoff::backoff;
use crate::scheduler::{Lane, Prompt, Turn, TurnPhase};
use crate::time::{Span, Timestamp};
use crate::workflow::Definition;

use super::Refusal;
use super::caller_session;
use crate::run::decision::{Decision, EndedTurn};
use crate::run::event::Event;
use crate::run::outcome::{Finished, Outcome};
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

pub(super) fn settled(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    attempt: &TurnAttempt,
    outcome: &Outcome,
) -> Result<Vec<Event>, Refusal> {
    let fenced = || Refusal::Fenced(attempt.clone());
    let turn = run.scheduler.turns.get(&attempt.turn.agent).ok_or_else(fenced)?;
    let agent = run.agents.get(&attempt.turn.agent).ok_or_else(fenced)?;
    let TurnPhase::Running { share } = turn.phase else {
        return Err(fenced());
    };
    // A late outcome of an earlier attempt must not end the attempt that replaced it.
    if turn.id != attempt.turn || turn.attempt != attempt.number {
        return Err(fenced());
    }
    let rule = if outcome.is_capped() { charge_capped } else { charge };
    let charge = rule(run, outcome.cost(), share);
    // Rejected after the charge was computed: a turn in the wrong session costs money all the same.
    let rejected = caller_session::reject(turn, agent, outcome);
    let outcome = rejected.as_ref().unwrap_or(outcome);
    let ended = EndedTurn { turn, agent, charge, session: outcome.opened() };
    let mut decision = Decision::new(run, definition, at);
    if matches!(agent.status, AgentStatus::Cancelling(_)) {
        cancelled(&mut decision, &ended);
        threshold(&mut decision, ended.charge.amount);
        return Ok(decision.events);
    }
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
    // A finished turn has warned before its transition, and an interrupted one reports no denials.
    if let Outcome::Capped { denied, .. } | Outcome::Failed { denied, .. } = outcome {
        warn_denied(&mut decision, agent, denied);
    }
    // Last, so that the warning follows the event that charges the turn.
    threshold(&mut decision, ended.charge.amount);
    Ok(decision.events)
}

/// Charges the turn of an agent that is cancelled. A result that still arrives is discarded.
fn cancelled(decision: &mut Decision<'_>, ended: &EndedTurn<'_>) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    decision.push(Event::TurnInterrupted {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        by: Interruption::Stop,
        crashes: turn.stalls,
        session: ended.session.cloned(),
    });
    joins::leave(decision, agent);
}

fn finished(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, outcome: &Finished) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    let session = session_after(turn, agent, outcome.session.as_ref());
    decision.push(Event::TurnSettled {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        session: session.clone(),
        model: outcome.model.clone(),
    });
    warn(decision, agent, outcome);
    program::finished(decision, ended, &session, outcome);
}

/// Returns the agent's session after a turn. Scripts have no session and leave it unchanged.
fn session_after(turn: &Turn, agent: &Agent, reported: Option<&SessionId>) -> Session {
    match turn.current.as_ref().and_then(SessionPlan::session) {
        None => agent.session.clone(),
        // The client's own id wins: it could not use the planned one.
        Some(planned) => Session::At(reported.unwrap_or(planned).clone()),
    }
}

fn warn(decision: &mut Decision<'_>, agent: &Agent, outcome: &Finished) {
    let reading = &outcome.reply.reading;
    let mut warnings = outcome.warnings.clone();
    // Otherwise a malformed tag is a fault, which the program handles.
    if !reading.tags.is_empty() && !lacks_a_part(reading) {
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

/// Continues a turn that used up its budget share with a new share, unless it made no progress too
/// often.
fn capped(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, progressed: bool) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    let (attempt, session) = (turn.attempt, ended.session.cloned());
    let stalls = if progressed { 0 } else { turn.stalls.saturating_add(1) };
    decision.push(Event::TurnContinues { turn: turn.id.clone(), attempt, charge, stalls, session });
    // After the event above, which charges the attempt.
    if stalls >= MOST_STALLS {
        return program::fail(decision, agent, AgentFailure::Stalled { count: stalls });
    }
    again(decision, ended, Notice::NewShare);
}

/// Queues the same turn again, unless the budget of its visit is used up.
fn again(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, notice: Notice) {
    match decision.out_of_visit_budget(ended.agent, ended.charge.amount) {
        Some(budget) => program::fail(decision, ended.agent, AgentFailure::VisitBudget { budget }),
        None => decision.requeue(&ended.turn.id, notice),
    }
}

fn failed(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, failure: &TurnFailure) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    decision.push(Event::TurnFailed {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        charge,
        failure: failure.clone(),
        session: ended.session.cloned(),
    });
    // The rules below are about clients. The program decides whether a script is repeated.
    let Lane::Prompt(backend) = &turn.lane else {
        return program::script_failed(decision, ended, failure);
    };
    match failure {
        TurnFailure::Transient { .. } | TurnFailure::Timeout { .. } => {
            retry(decision, ended, failure);
        }
        TurnFailure::Quota { until, why } => {
            // Not a retry: the turn waits in the queue until the hold ends, and uses up no retry.
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
        | TurnFailure::NotStarted { .. } => {
            program::fail(decision, agent, AgentFailure::Turn(failure.clone()));
        }
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
    // A second client may fail at the same limit without naming its end.
    let until = until.or(known).unwrap_or(decision.at + PROBE);
    let (until, why) = (until.max(decision.at + SHORTEST_HOLD), why.to_owned());
    decision
        .push(Event::BackendHeld { backend: backend.clone(), hold: Hold::Quota { until, why } });
}

fn retry(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, failure: &TurnFailure) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    if agent.visit.retries >= decision.run.settings.retries {
        return program::fail(decision, agent, AgentFailure::Turn(failure.clone()));
    }
    // Checked now and not after the wait, because the retry could not be paid then either.
    if let Some(budget) = decision.out_of_visit_budget(agent, charge.amount) {
        return program::fail(decision, agent, AgentFailure::VisitBudget { budget });
    }
    let retry = agent.visit.retries.saturating_add(1);
    let until = decision.at + backoff(&turn.attempt_id(), retry);
    decision.push(Event::RetryAt { turn: turn.id.clone(), until, retry, of: None });
}

/// Handles a session that the client no longer has. Raymond never starts a fresh session silently:
/// either the agent fails, or the journal records which session was lost. A client that cannot find
/// the session it should have opened would fail again, so its agent always fails.
fn lost(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, session: &SessionId) {
    let EndedTurn { turn, agent, .. } = *ended;
    let opens = matches!(turn.plan, SessionPlan::Fresh(_));
    if opens || decision.run.settings.on_lost_session == OnLostSession::Fail {
        let session = session.clone();
        let failure = TurnFailure::LostSession { session };
        return program::fail(decision, agent, AgentFailure::Turn(failure));
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
fn start_over(decision: &mut Decision<'_>, ended: &EndedTurn<'_>, plan: SessionPlan) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    if let Some(budget) = decision.out_of_visit_budget(agent, charge.amount) {
        return program::fail(decision, agent, AgentFailure::VisitBudget { budget });
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
fn interrupted(
    decision: &mut Decision<'_>,
    ended: &EndedTurn<'_>,
    by: Interruption,
    progressed: bool,
) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
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
        program::fail(decision, agent, AgentFailure::Crashes { count: crashes });
    } else if turn.recalled {
        again(decision, ended, Notice::NewShare);
    }
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
