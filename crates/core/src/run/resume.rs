//! A run goes on: what was cut off is continued, what failed is revived, what was kept is taken.

use crate::desk::{Lane, Notice, Phase as TurnPhase, Prompt};
use crate::failure::Failure;
use crate::ids::TurnId;
use crate::machine::moves::{self, Blocked, Mover};
use crate::machine::{Agent, Kept, SessionPlan, Standing};
use crate::protocol::Fault;
use crate::time::Timestamp;
use crate::workflow::Definition;

use super::draft::Draft;
use super::event::{Event, Hold};
use super::settings::{InterruptedScripts, Settings};
use super::state::Run;

pub(super) fn resume(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    settings: &Settings,
) -> Vec<Event> {
    let resumed = Event::RunResumed {
        settings: Box::new(settings.clone()),
    };
    // What follows is decided under the new settings.
    let mut reopened = run.clone();
    super::apply(&mut reopened, &resumed);
    let mut draft = Draft::new(&reopened, definition, at);
    draft.push(resumed);
    for (backend, hold) in &run.desk.holds {
        match hold {
            Hold::Quota { until, .. } if *until > at => {}
            Hold::Quota { .. } | Hold::Auth { .. } => {
                draft.push(Event::BackendReleased {
                    backend: backend.clone(),
                });
            }
        }
    }
    let mut agents: Vec<&Agent> = reopened.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    for agent in agents {
        match &agent.standing {
            Standing::Live => go_on(&mut draft, agent),
            Standing::Held(_) => {}
            Standing::Failed { kept, .. } => revive(&mut draft, agent, kept.as_ref()),
        }
    }
    draft.events
}

/// A turn that was cut off waits again.
fn go_on(draft: &mut Draft<'_>, agent: &Agent) {
    let Some(turn) = draft.run.desk.turns.get(&agent.id) else {
        return;
    };
    if turn.phase != TurnPhase::Idle {
        return;
    }
    let repeats = draft.run.settings.interrupted_scripts == InterruptedScripts::Rerun;
    if turn.lane == Lane::Script && !repeats {
        let (agent, failure) = (agent.id.clone(), Failure::InterruptedScript);
        draft.push(Event::AgentFailed {
            agent,
            failure,
            kept: None,
        });
    } else {
        draft.requeue(&turn.id, Notice::Interrupted);
    }
}

/// A failed agent goes on at the visit that failed: a kept transition is decided again, otherwise
/// the body is sent once more after a notice.
fn revive(draft: &mut Draft<'_>, agent: &Agent, kept: Option<&Kept>) {
    draft.push(Event::AgentRevived {
        agent: agent.id.clone(),
    });
    if agent.id != crate::ids::AgentId::main() {
        draft.new_workers += 1;
    }
    let Some(kept) = kept else {
        return again(draft, agent, Prompt::Body);
    };
    let mover = Mover {
        agent,
        session: &agent.session,
        directories: &kept.directories,
    };
    match moves::take(draft, mover, &kept.tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) => refused(draft, agent, fault),
        Err(Blocked::Failed(failure)) => {
            let (agent, kept) = (agent.id.clone(), Some(kept.clone()));
            draft.push(Event::AgentFailed {
                agent,
                failure,
                kept,
            });
        }
        Err(Blocked::Held) => {
            let (agent, kept) = (agent.id.clone(), kept.clone());
            draft.push(Event::AgentHeld { agent, kept });
        }
    }
}

/// The edited workflow no longer allows what was kept. Who may not be reminded starts again.
fn refused(draft: &mut Draft<'_>, agent: &Agent, fault: Fault) {
    let script = draft.lane(&agent.visit.state) == Lane::Script;
    if script || draft.run.settings.reminders == 0 {
        return again(draft, agent, Prompt::Body);
    }
    draft.push(Event::Reminded {
        agent: agent.id.clone(),
        fault: fault.clone(),
        reminder: 1,
    });
    again(draft, agent, Prompt::Reminder(fault));
}

/// Another turn of the same visit. A turn that never settled may have left a session behind.
fn again(draft: &mut Draft<'_>, agent: &Agent, prompt: Prompt) {
    let turn = TurnId {
        agent: agent.id.clone(),
        visit: agent.visit.number,
        turn: agent.visit.turn + 1,
    };
    let lane = draft.lane(&agent.visit.state);
    let plan = match (&lane, draft.run.desk.turns.get(&agent.id)) {
        (Lane::Script, _) => SessionPlan::Carry,
        (Lane::Prompt(_), Some(unsettled)) => unsettled.next_plan(),
        (Lane::Prompt(_), None) => draft.plan(&turn, &lane, &agent.session),
    };
    let order = draft.order();
    let notice = Some(Notice::Revived);
    draft.push(Event::TurnQueued {
        turn,
        lane,
        prompt,
        plan,
        order,
        notice,
    });
}
