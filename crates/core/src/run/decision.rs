//! A decision in progress: the run it is based on, and the events named so far.
//!
//! It collects events and assigns queue places. It applies nothing, so every helper sees the run as
//! it was before the decision.

use std::collections::BTreeSet;

use crate::agent::{Agent, Location, Session, SessionPlan};
use crate::budget::{Charge, Micros};
use crate::ids::{AgentId, SessionId, StateName, TurnId};
use crate::protocol::{Notice, ResultStatus};
use crate::scheduler::{Lane, Prompt, Turn};
use crate::time::Timestamp;
use crate::value::Value;
use crate::workflow::{Definition, State};

use super::event::Event;
use super::state::Run;
use crate::run::warning::Warning;

/// The context of one decision, and its events so far.
pub(crate) struct Decision<'a> {
    pub(crate) run: &'a Run,
    pub(crate) definition: &'a Definition,
    pub(crate) at: Timestamp,
    pub(crate) events: Vec<Event>,
    /// Workers that this decision spawns or revives, because `run` does not count them yet.
    pub(crate) new_workers: u32,
    /// Agents that this decision cancels, because `run` still contains them.
    pub(crate) cancelled: BTreeSet<AgentId>,
    // Places given out by this decision are not in `run` yet, so the decision counts them itself.
    next_order: u64,
}

/// A turn that ended, with its charge.
pub(crate) struct EndedTurn<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) agent: &'a Agent,
    pub(crate) charge: Charge,
    /// The session that the client opened under an id of its own.
    pub(crate) session: Option<&'a SessionId>,
}

/// The parts of a visit that is about to be entered.
pub(crate) struct VisitEntry<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) state: &'a StateName,
    pub(crate) visit: u32,
    pub(crate) count: u32,
    pub(crate) input: Option<Value>,
    pub(crate) result_status: ResultStatus,
    pub(crate) session: &'a Session,
}

impl<'a> Decision<'a> {
    pub(crate) fn new(run: &'a Run, definition: &'a Definition, at: Timestamp) -> Self {
        let next_order = run.scheduler.next_order;
        Self {
            run,
            definition,
            at,
            events: Vec::new(),
            new_workers: 0,
            cancelled: BTreeSet::new(),
            next_order,
        }
    }

    /// Returns the rest of the budget of an agent's visit, after `spent` more.
    pub(crate) fn visit_left(&self, agent: &AgentId, spent: Micros) -> Option<Micros> {
        let agent = self.run.agents.get(agent)?;
        let budget = self.visit_budget(agent)?;
        Some(budget.minus(agent.visit.spent.plus(spent)))
    }

    /// Returns the budget of an agent's visit: of its state, or of its agent step.
    pub(crate) fn visit_budget(&self, agent: &Agent) -> Option<Micros> {
        if let Some(state) = self.visited(agent) {
            return state.front.budget;
        }
        let key = agent.visit.location.step()?;
        self.definition.steps.as_deref()?.agent(key)?.settings.budget
    }

    /// Returns the budget of an agent's visit if nothing of it is left after `spent` more.
    pub(crate) fn out_of_visit_budget(&self, agent: &Agent, spent: Micros) -> Option<Micros> {
        let left = self.visit_left(&agent.id, spent)?;
        let budget = self.visit_budget(agent)?;
        (left == Micros::ZERO).then_some(budget)
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn warn(&mut self, agent: &AgentId, warning: Warning) {
        self.push(Event::Warned { agent: Some(agent.clone()), warning });
    }

    /// Returns the next place at the back of the queue.
    pub(crate) fn order(&mut self) -> u64 {
        let order = self.next_order;
        self.next_order = order.saturating_add(1);
        order
    }

    /// Enters a state and queues its first turn at the back.
    pub(crate) fn enter(&mut self, entry: VisitEntry<'_>) {
        let VisitEntry { agent, state, visit, count, input, result_status, session } = entry;
        self.push(Event::VisitEntered {
            agent: agent.clone(),
            location: state.clone().into(),
            visit,
            count,
            input,
            result_status,
        });
        let turn = TurnId { agent: agent.clone(), visit, turn: 1 };
        let lane = self.state_lane(state);
        let plan = self.plan(&turn, &lane, session);
        let order = self.order();
        let prompt = Prompt::Body;
        self.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice: None });
    }

    /// Queues a known turn again, at the back.
    pub(crate) fn requeue(&mut self, turn: &TurnId, notice: Notice) {
        // At the back, so that a turn that fails again and again does not keep others waiting.
        let order = self.order();
        self.push(Event::TurnRequeued { turn: turn.clone(), order, notice });
    }

    /// Returns the lane in which the turns of a state or a step queue.
    pub(crate) fn lane(&self, location: &Location) -> Lane {
        self.run.program.lane(&self.run.settings, self.definition, location)
    }

    /// Returns the lane in which the turns of a state queue.
    pub(crate) fn state_lane(&self, state: &StateName) -> Lane {
        self.run.settings.state_lane(self.definition, state)
    }

    /// Returns the state that an agent is in; `None` in a run of steps.
    pub(crate) fn visited(&self, agent: &Agent) -> Option<&'a State> {
        self.state(agent.visit.location.state()?)
    }

    pub(crate) fn state(&self, name: &StateName) -> Option<&'a State> {
        self.definition.states.get(name)
    }

    /// Returns how the first attempt at a turn gets its conversation.
    pub(crate) fn plan(&self, turn: &TurnId, lane: &Lane, session: &Session) -> SessionPlan {
        match lane {
            Lane::Script => SessionPlan::Carry,
            // The id follows from nonce and turn, so that a replay chooses the same one. 0 is never
            // an attempt: a session that replaces a lost one has the number of its attempt instead.
            Lane::Prompt(_) => session.plan(turn.session(&self.run.nonce, 0)),
        }
    }
}
