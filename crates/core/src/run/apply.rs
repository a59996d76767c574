//! Folds an event into a run.
//!
//! `apply` computes nothing and cannot fail, because old journals must give the same run in every
//! later release: it is frozen per journal format. Decisions belong in [`crate::decide`]. An event
//! about an unknown agent changes nothing.

use std::collections::BTreeMap;

use crate::agent::{
    Agent, AgentStatus, Asking, EndedAgent, Frame, HandedWorker, Joining, Location, Parked,
    Session, Visit, WorkerEnd,
};
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::StepEvent;
use crate::few::Few;
use crate::ids::{AgentId, BackendName, SessionId, StateName, TurnId};
use crate::protocol::{Need, ResultStatus, TagName};
use crate::scheduler::{Lane, Timer, Turn, TurnPhase};
use crate::value::Value;

use super::event::{Event, StackChange};
use super::group::{Group, Member};
use super::state::{Phase, Run};
use crate::run::start::Start;

/// Applies `event` to `run`.
#[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
pub fn apply(run: &mut Run, event: &Event) {
    match event {
        Event::RunStarted(start) => begin(run, start),
        Event::RunResumed { settings } => {
            run.settings = (**settings).clone();
            run.phase = Phase::Open;
            if let Some(steps) = run.program.steps_mut() {
                // Outputs that an earlier call brought must not answer the steps of a later call.
                steps.forget_call();
            }
        }
        Event::DefinitionAdopted { manifest } => run.manifest = manifest.clone(),
        Event::RunRewound { nonce, discarded, governed, .. } => {
            run.nonce = nonce.clone();
            if let Some(settings) = governed {
                run.settings.clone_from(settings);
            }
            run.spent = run.spent.plus(discarded.amount);
            run.unpriced = run.unpriced.saturating_add(discarded.unpriced);
            for (agent, amount) in &discarded.visits {
                if let Some(agent) = run.agents.get_mut(agent) {
                    // Without this a rewind would renew the budget of the visit.
                    agent.visit.spent = agent.visit.spent.plus(*amount);
                }
            }
        }
        Event::StopRequested { mode, key, .. } => {
            run.keys.insert(key.clone());
            run.phase = Phase::Stopping(*mode);
        }
        Event::RunEnded { ending } => run.phase = Phase::Ended(*ending),

        Event::TurnQueued { turn, lane, prompt, plan, order, notice } => {
            unpark(run, &turn.agent);
            if let Some(agent) = run.agents.get_mut(&turn.agent) {
                agent.visit.turn = turn.turn;
            }
            // A new turn starts its counters at zero; `queue` drops the agent's earlier turn.
            run.scheduler.queue(Turn {
                id: turn.clone(),
                lane: lane.clone(),
                prompt: prompt.clone(),
                plan: plan.clone(),
                current: None,
                opened: None,
                order: *order,
                attempt: 0,
                notice: *notice,
                stalls: 0,
                recalled: false,
                phase: TurnPhase::Queued,
            });
        }
        Event::TurnRequeued { turn, order, notice } => {
            run.scheduler.requeue(&turn.agent, *order, *notice);
        }
        Event::TurnStarted { turn, attempt, share, plan } => {
            run.scheduler.start(&turn.agent, *attempt, *share, plan);
        }
        Event::TurnSettled { turn, charge, session, .. } => {
            land(run, turn, *charge);
            // Read before `forget` drops the turn.
            let lane = run.scheduler.turns.get(&turn.agent).map(|turn| turn.lane.clone());
            run.scheduler.forget(&turn.agent);
            run.settled += 1;
            if let Some(agent) = run.agents.get_mut(&turn.agent) {
                agent.session = session.clone();
                // A script does not touch the conversation, so its backend stays.
                if let Some(Lane::Prompt(backend)) = lane {
                    agent.holder = Some(backend);
                }
            }
        }
        Event::TurnRecalled { turn, .. } => run.scheduler.recall(&turn.agent),
        Event::TurnContinues { turn, charge, session, stalls, .. } => {
            land(run, turn, *charge);
            unsettled(run, turn, session.as_ref(), *stalls);
        }
        Event::TurnFailed { turn, charge, session, .. } => {
            land(run, turn, *charge);
            unsettled(run, turn, session.as_ref(), 0);
        }
        Event::TurnInterrupted { turn, charge, crashes, session, .. } => {
            land(run, turn, *charge);
            unsettled(run, turn, session.as_ref(), *crashes);
        }
        Event::RetryAt { turn, until, retry, .. } => {
            run.scheduler.retry_at(&turn.agent, *until);
            if let Some(agent) = run.agents.get_mut(&turn.agent) {
                agent.visit.retries = *retry;
            }
        }
        Event::BackendHeld { backend, hold } => {
            run.scheduler.hold_backend(backend, hold.clone());
        }
        Event::BackendReleased { backend } => run.scheduler.release_backend(backend),
        Event::SessionLost { turn, plan, .. } => {
            if let Some(turn) = run.scheduler.turns.get_mut(&turn.agent) {
                turn.plan = plan.clone();
                // No attempt has used the new plan, so the next attempt must not continue the lost
                // session.
                (turn.current, turn.opened) = (None, None);
            }
        }
        Event::Asked { ask, due, .. } => {
            run.scheduler.ask(ask, *due);
        }
        Event::AskAnswered { ask, key, value, .. } => {
            run.keys.insert(key.clone());
            run.scheduler.close(ask);
            if let Some(Agent { status: AgentStatus::Asking(asking), .. }) =
                run.agents.get_mut(&ask.agent)
                && asking.ask == *ask
            {
                asking.answer = Some(value.clone());
            }
        }
        Event::AskExpired { ask } => run.scheduler.close(ask),

        Event::AgentSpawned { agent, parent, cwd, attributes } => {
            spawn(run, agent, parent.as_ref(), cwd, attributes);
        }
        Event::VisitEntered { agent, location, visit, count, input, result_status } => {
            run.visits += 1;
            if let Some(agent) = run.agents.get_mut(agent) {
                // A step is entered under a new key each time, so that its visits need no count.
                if let Location::State(state) = location {
                    agent.visits.insert(state.clone(), *count);
                }
                let input = input.clone();
                agent.visit = Visit {
                    result_status: *result_status,
                    ..enter(location.clone(), *visit, input)
                };
            }
        }
        Event::Reminded { agent, reminder, .. } => {
            if let Some(agent) = run.agents.get_mut(agent) {
                agent.visit.reminders = *reminder;
            }
        }
        Event::Moved { agent: id, tag, stack, session, cwd, model, model_of, forks, .. } => {
            unhold(run, id);
            unpark(run, id);
            // The results are for a `goto` only; the agent has decided against it.
            if *tag != TagName::Goto {
                run.groups.remove(id);
            }
            if let Some(agent) = run.agents.get_mut(id) {
                restack(&mut agent.stack, &mut agent.holder, stack);
                agent.session = session.clone();
                // Any backend may open a fresh conversation.
                if *session == Session::Fresh {
                    agent.holder = None;
                }
                agent.model.clone_from(model);
                agent.model_of.clone_from(model_of);
                agent.forks = *forks;
                agent.status = AgentStatus::Live;
                if let Some(cwd) = cwd {
                    agent.cwd.clone_from(cwd);
                }
            }
        }
        Event::AgentEnded { agent: id, result } => {
            run.scheduler.forget(id);
            if let Some(Agent { parent, forks, .. }) = leave(run, id) {
                if let Some(group) = group_with(run, id, parent.as_ref()) {
                    group.note_end();
                }
                let ended = EndedAgent { parent, forks, result: result.clone() };
                run.ended.insert(id.clone(), ended);
            }
        }
        Event::AgentFailed { agent: id, failure, kept } => {
            unhold(run, id);
            unpark(run, id);
            run.scheduler.give_up(id);
            if let Some(agent) = run.agents.get_mut(id) {
                agent.status = AgentStatus::Failed { failure: failure.clone(), kept: kept.clone() };
                // Counted once, even if the agent fails again before a resume.
                if run.failed.insert(id.clone()) {
                    run.live = run.live.saturating_sub(1);
                    let parent = agent.parent.clone();
                    if let Some(group) = group_with(run, id, parent.as_ref()) {
                        group.note_failure();
                    }
                }
            }
        }
        Event::AgentHeld { agent: id, kept } => {
            unpark(run, id);
            if let Some(agent) = run.agents.get_mut(id) {
                let earlier = std::mem::replace(&mut agent.status, AgentStatus::Held(kept.clone()));
                // An agent that is held already keeps its place in the queue of held forks.
                if earlier == AgentStatus::Live {
                    run.held.push_back(id.clone());
                }
            }
        }
        Event::AgentWaits { agent: id, kept, until, span, forks } => {
            unhold(run, id);
            unpark(run, id);
            if let Some(agent) = run.agents.get_mut(id) {
                agent.forks = *forks;
                let parked = Parked { kept: kept.clone(), until: *until, span: *span };
                agent.status = AgentStatus::Parked(parked);
                run.parked += 1;
                run.scheduler.timers.set(*until, Timer::Wake(id.clone()));
            }
        }
        Event::AgentJoins { agent: id, kept, workers, need, until, forks } => {
            unhold(run, id);
            unpark(run, id);
            let group = group_of(run, workers, *need);
            if let Some(agent) = run.agents.get_mut(id) {
                agent.forks = *forks;
                agent.status = AgentStatus::Joining(Joining { kept: kept.clone(), until: *until });
                run.parked += 1;
                run.groups.insert(id.clone(), group);
                if let Some(until) = until {
                    run.scheduler.timers.set(*until, Timer::Wake(id.clone()));
                }
            }
        }
        Event::AgentAsks { agent: id, kept, ask, at } => {
            unhold(run, id);
            unpark(run, id);
            if let Some(agent) = run.agents.get_mut(id) {
                let (kept, ask) = (kept.clone(), ask.clone());
                agent.status = AgentStatus::Asking(Asking { kept, ask, at: *at, answer: None });
                run.parked += 1;
            }
        }
        Event::WaitOver { agent: id, end } => {
            if let Some(group) = run.groups.get_mut(id) {
                group.over = Some(*end);
            }
            // The wait cannot time out any more.
            if let Some(Agent { status: AgentStatus::Joining(joining), .. }) =
                run.agents.get_mut(id)
                && let Some(until) = joining.until.take()
            {
                run.scheduler.timers.cancel(until, Timer::Wake(id.clone()));
            }
        }
        Event::Joined { agent, failed } => hand_over(run, agent, failed),
        Event::CancelRequested { key, .. } => {
            run.keys.insert(key.clone());
        }
        Event::AgentCancelling { agent: id, why } => {
            unhold(run, id);
            unpark(run, id);
            run.scheduler.give_up(id);
            if let Some(agent) = run.agents.get_mut(id) {
                agent.status = AgentStatus::Cancelling(why.clone());
                run.cancelling.insert(id.clone());
            }
        }
        Event::AgentCancelled { agent: id, .. } => {
            run.scheduler.forget(id);
            let has_failed = run.failed.contains(id);
            if let Some(agent) = leave(run, id)
                && let Some(group) = group_with(run, id, agent.parent.as_ref())
            {
                group.note_cancellation(has_failed);
            }
        }
        Event::AgentRevived { agent: id } => revive(run, id),
        Event::Stepped { agent, event } => {
            if let StepEvent::Begun { .. } = event {
                // The document begins again: an unfinished turn of its main branch is dropped.
                run.scheduler.forget(agent);
            }
            if let Some(steps) = run.program.steps_mut() {
                steps.apply(agent, event);
            }
        }
        // The ledger counts the warnings that a view needs.
        Event::Warned { .. } => {}
    }
}

fn begin(run: &mut Run, start: &Start) {
    *run = Run {
        id: start.run.clone(),
        nonce: start.nonce.clone(),
        workflow: start.workflow.clone(),
        scope: start.scope.clone(),
        manifest: start.manifest.clone(),
        program: start.program.clone(),
        settings: start.settings.clone(),
        phase: Phase::Open,
        ..Run::default()
    };
}

/// Remembers the session that an unfinished turn opened, for the attempt that continues it.
fn unsettled(run: &mut Run, turn: &TurnId, session: Option<&SessionId>, stalls: u32) {
    if let Some(turn) = run.scheduler.turns.get_mut(&turn.agent) {
        turn.stalls = stalls;
        turn.opened = session.cloned().or_else(|| turn.opened.take());
    }
}

/// Ends the flight of a turn and counts its cost.
fn land(run: &mut Run, turn: &TurnId, charge: Charge) {
    run.scheduler.land(&turn.agent);
    run.spent = run.spent.plus(charge.amount);
    run.most_expensive = run.most_expensive.max(charge.amount);
    if charge.basis == Basis::Unpriced {
        run.unpriced = run.unpriced.saturating_add(1);
    }
    if let Some(agent) = run.agents.get_mut(&turn.agent) {
        agent.visit.spent = agent.visit.spent.plus(charge.amount);
    }
}

fn spawn(
    run: &mut Run,
    id: &AgentId,
    parent: Option<&AgentId>,
    cwd: &str,
    attributes: &Few<String, Value>,
) {
    let agent = Agent {
        id: id.clone(),
        parent: parent.cloned(),
        born: run.born,
        session: Session::Fresh,
        holder: None,
        stack: Vec::new(),
        cwd: cwd.to_owned(),
        model: None,
        model_of: None,
        attributes: attributes.clone(),
        visits: BTreeMap::new(),
        forks: 0,
        visit: enter(StateName::new("").into(), 0, None),
        status: AgentStatus::Live,
    };
    // `apply` accepts any events: an agent that exists already is replaced, and the counters stay
    // true.
    leave(run, id);
    run.born += 1;
    run.live += 1;
    run.agents.insert(id.clone(), agent);
}

/// Removes an agent from the run and returns it.
fn leave(run: &mut Run, id: &AgentId) -> Option<Agent> {
    unhold(run, id);
    unpark(run, id);
    run.groups.remove(id);
    run.cancelling.remove(id);
    let left = run.agents.remove(id);
    if left.is_some() && !run.failed.remove(id) {
        run.live = run.live.saturating_sub(1);
    }
    left
}

fn enter(location: Location, number: u32, input: Option<Value>) -> Visit {
    let (result_status, spent) = (ResultStatus::Ok, Micros::ZERO);
    let handed = Vec::new();
    Visit {
        location,
        number,
        input,
        result_status,
        handed,
        turn: 0,
        reminders: 0,
        retries: 0,
        spent,
    }
}

/// Changes a return stack, and the backend that has the conversation of its agent.
pub(crate) fn restack(
    stack: &mut Vec<Frame>,
    holder: &mut Option<BackendName>,
    change: &StackChange,
) {
    match change {
        StackChange::Keep => {}
        // Events do not name the backend of a frame: it is the agent's backend at the time of the
        // call.
        StackChange::Push(frame) => {
            stack.push(Frame { holder: holder.clone(), ..frame.clone() });
        }
        StackChange::Pop => *holder = stack.pop().and_then(|frame| frame.holder),
        StackChange::Clear => stack.clear(),
    }
}

/// Removes an agent from the queue of held forks. Only held agents are searched for, and they are
/// nearly always at the front, so this stays cheap with many agents.
fn unhold(run: &mut Run, id: &AgentId) {
    if matches!(run.agents.get(id), Some(Agent { status: AgentStatus::Held(_), .. })) {
        let place = run.held.iter().position(|held| held == id);
        place.and_then(|place| run.held.remove(place));
    }
}

/// Ends the wait of a parked agent.
fn unpark(run: &mut Run, id: &AgentId) {
    let Some(agent) = run.agents.get_mut(id) else { return };
    let until = match &agent.status {
        AgentStatus::Parked(Parked { until, .. }) => Some(*until),
        AgentStatus::Joining(Joining { until, .. }) => *until,
        AgentStatus::Asking(Asking { ask, .. }) => {
            run.scheduler.close(ask);
            None
        }
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Cancelling(_)
        | AgentStatus::Failed { .. } => return,
    };
    agent.status = AgentStatus::Live;
    run.parked = run.parked.saturating_sub(1);
    if let Some(until) = until {
        run.scheduler.timers.cancel(until, Timer::Wake(id.clone()));
    }
}

fn revive(run: &mut Run, id: &AgentId) {
    unpark(run, id);
    if let Some(agent) = run.agents.get_mut(id)
        && run.failed.remove(id)
    {
        agent.status = AgentStatus::Live;
        agent.visit.reminders = 0;
        agent.visit.retries = 0;
        run.live += 1;
        let parent = agent.parent.clone();
        if let Some(group) = group_with(run, id, parent.as_ref()) {
            group.note_revival();
        }
    }
}

/// Returns the group of workers that were spawned just before.
fn group_of(run: &Run, workers: &[AgentId], need: Need) -> Group {
    let attributes = |id| run.agents.get(id).map(|agent| agent.attributes.clone());
    let members = workers.iter().zip(0..).map(|(id, place)| {
        (id.clone(), Member { place, attributes: attributes(id).unwrap_or_default() })
    });
    Group::new(need, members.collect())
}

/// Returns the group of an agent, if its parent waits for it.
fn group_with<'r>(
    run: &'r mut Run,
    id: &AgentId,
    parent: Option<&AgentId>,
) -> Option<&'r mut Group> {
    run.groups.get_mut(parent?).filter(|group| group.members.contains_key(id))
}

/// Hands the list of its workers to an agent. Failed workers leave the run.
fn hand_over(run: &mut Run, id: &AgentId, failed: &[AgentId]) {
    let mut failures = BTreeMap::new();
    for worker in failed {
        run.scheduler.forget(worker);
        if let Some(Agent { status: AgentStatus::Failed { failure, .. }, .. }) = leave(run, worker)
        {
            failures.insert(worker, failure);
        }
    }
    let Some(group) = run.groups.remove(id) else { return };
    let mut members: Vec<(AgentId, Member)> = group.members.into_iter().collect();
    members.sort_by_key(|(_, member)| member.place);
    let mut handed = Vec::with_capacity(members.len());
    for (worker, Member { attributes, .. }) in members {
        let end = if let Some(ended) = run.ended.get(&worker) {
            WorkerEnd::Ended(ended.result.clone())
        } else if let Some(failure) = failures.remove(&worker) {
            run.handed_failures.insert(worker.clone(), failure.clone());
            WorkerEnd::Failed(failure)
        } else {
            WorkerEnd::Cancelled
        };
        handed.push(HandedWorker { agent: worker, end, attributes });
    }
    if let Some(agent) = run.agents.get_mut(id) {
        agent.visit.handed = handed;
    }
}
