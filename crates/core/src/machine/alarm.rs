//! Ends the wait of an agent whose timer fires: a wait for a time, or one for workers or for an
//! answer that takes too long.

use crate::agent::{Agent, AgentStatus};
use crate::ids::AgentId;
use crate::run::decision::Decision;
use crate::scheduler::Timer;

use super::{asking, joins, waking};

/// Ends the waits whose time has passed, the oldest first.
pub(crate) fn wake_due(decision: &mut Decision<'_>) {
    let run = decision.run;
    for timer in run.scheduler.timers.due(decision.at) {
        match timer {
            Timer::Wake(agent) => ring(decision, agent),
            Timer::AskExpires(ask) if decision.cancelled.contains(&ask.agent) => {}
            Timer::AskExpires(ask) => asking::expire(decision, ask),
            Timer::Hold(_) | Timer::Retry(_) => {}
        }
    }
}

/// Ends the wait of an agent whose time has come. A wait for workers first ends the workers.
pub(crate) fn ring(decision: &mut Decision<'_>, agent: &AgentId) {
    let run = decision.run;
    let status = run.agents.get(agent).map(Agent::status);
    match status {
        // The end of another wait cancels it.
        _ if decision.cancelled.contains(agent) => {}
        Some(AgentStatus::Joining(_)) => joins::time_out(decision, agent),
        Some(_) => waking::wake(decision, agent),
        None => {}
    }
}
