//! The interpreter: runs one agent after the other to its end, in the order of creation.
//!
//! Agents do not influence each other after a fork, so the order changes nothing. Rules that depend
//! on timing are left out: a cap on money, agents that wait for others to end, and the hold of a
//! whole backend for a login.

use std::collections::VecDeque;

use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::protocol::Source;

use super::agent::{Agent, End, Next, Rejection};
use super::decide::decide;
use super::history::{Failure, HandedEnd, History, Line, TurnName};
use super::message_context::MessageContext;
use super::read::read;
use super::tags::{Join, Transition};
use super::workflow::{
    Answer, Attempt, FailureKind, InterpreterSettings, Outcome, State, Workflow,
};

/// The run made more attempts than [`InterpreterSettings::max_attempts`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the workflow did not end within {0} attempts")]
pub struct AttemptLimit(pub u32);

/// Interprets a workflow; the oracle answers for its clients and scripts.
pub fn interpret(
    workflow: &Workflow,
    settings: &InterpreterSettings,
    oracle: &mut dyn FnMut(Attempt<'_>) -> Answer,
) -> Result<History, AttemptLimit> {
    let mut interpreter = Interpreter {
        workflow,
        settings,
        oracle,
        attempts: 0,
        spawned: VecDeque::new(),
        history: History::default(),
    };
    let main = Agent::new(
        AgentId::main(),
        workflow.start.clone(),
        workflow.cwd.clone(),
        workflow.input.clone(),
    );
    interpreter.spawned.push_back(main);
    while let Some(agent) = interpreter.spawned.pop_front() {
        interpreter.run(agent)?;
    }
    Ok(interpreter.history)
}

struct Interpreter<'a> {
    workflow: &'a Workflow,
    settings: &'a InterpreterSettings,
    oracle: &'a mut dyn FnMut(Attempt<'_>) -> Answer,
    attempts: u32,
    /// Agents that have not run yet.
    spawned: VecDeque<Agent>,
    history: History,
}

/// Counters of one visit.
#[derive(Default)]
struct VisitCounters {
    turns: u32,
    reminders: u32,
    retries: u32,
    spent: u64,
}

/// A visit that ends without a transition.
enum VisitEnd {
    Fails(Failure),
    Waits(FailureKind),
    /// A worker for which the agent waits has no result.
    Blocked,
    AttemptLimit,
}

impl From<Failure> for VisitEnd {
    fn from(failure: Failure) -> Self {
        Self::Fails(failure)
    }
}

impl Interpreter<'_> {
    /// Runs an agent to its end.
    fn run(&mut self, mut agent: Agent) -> Result<End, AttemptLimit> {
        loop {
            match self.visit(&mut agent)? {
                Next::Enters(workers) => self.spawned.extend(workers),
                Next::Over(end) => return Ok(end),
            }
        }
    }

    fn visit(&mut self, agent: &mut Agent) -> Result<Next, AttemptLimit> {
        let entered = agent.enter(self.workflow, self.settings);
        self.write(agent, entered);
        let handed = std::mem::take(&mut agent.handed);
        if !handed.is_empty() {
            let line = Line::Handed { agent: agent.id.clone(), workers: handed };
            self.write(agent, line);
        }
        let id = agent.id.clone();
        let (line, end) = match self.turns(agent) {
            Ok(next) => return Ok(next),
            Err(VisitEnd::Fails(failure)) => (Line::Fail { agent: id, failure }, End::Failed),
            Err(VisitEnd::Waits(kind)) => (Line::Wait { agent: id, kind }, End::Waits),
            Err(VisitEnd::Blocked) => return Ok(Next::Over(End::Waits)),
            Err(VisitEnd::AttemptLimit) => return Err(AttemptLimit(self.settings.max_attempts)),
        };
        self.write(agent, line);
        Ok(Next::Over(end))
    }

    /// Runs turns and reminders until one gives a transition.
    fn turns(&mut self, agent: &mut Agent) -> Result<Next, VisitEnd> {
        let workflow = self.workflow;
        // The state of the visit. `take` changes `agent.state` to the next one.
        let state = &workflow.states[&agent.state];
        let mut counters = VisitCounters::default();
        loop {
            let text = self.turn(agent, &mut counters)?;
            let context = MessageContext { workflow, state, cwd: &agent.cwd };
            let (source, reminders) = match state {
                State::Prompt(_) => (Source::Message, self.settings.reminders),
                // A script reads no messages, so a reminder would reach nothing.
                State::Script => (Source::Script, 0),
            };
            let decided = decide(read(&text, source), &context).map_err(Rejection::Fault);
            let checked = decided.and_then(|transition| {
                agent.check(&transition, workflow)?;
                Ok(transition)
            });
            let fault = match checked {
                Ok(transition) => {
                    let transition = self.wait(agent, transition)?;
                    let (lines, next) = agent.take(transition, workflow, self.settings)?;
                    for line in lines {
                        self.write(agent, line);
                    }
                    return Ok(next);
                }
                Err(Rejection::Fails(failure)) => return Err(failure.into()),
                Err(Rejection::Fault(fault)) => fault,
            };
            // Before the budget: with no reminder left, the fault is the reason of the failure.
            if counters.reminders == reminders {
                return Err(Failure::Protocol(fault).into());
            }
            if budget_is_spent(state, &counters) {
                return Err(Failure::VisitBudget.into());
            }
            counters.reminders += 1;
            let visit = agent.visit();
            self.write(agent, Line::Remind { visit, fault });
        }
    }

    /// Parks the agent if the transition waits, and checks the transition again.
    fn wait(&mut self, agent: &mut Agent, transition: Transition) -> Result<Transition, VisitEnd> {
        let Transition::Move(mut moved) = transition else { return Ok(transition) };
        if !moved.parks {
            return Ok(Transition::Move(moved));
        }
        let (lines, workers) = agent.park(&mut moved, self.settings)?;
        for line in lines {
            self.write(agent, line);
        }
        match moved.joins {
            None => self.spawned.extend(workers),
            Some(join) => agent.handed = self.join(join, workers)?,
        }
        let transition = Transition::Move(moved);
        match agent.check(&transition, self.workflow) {
            Ok(()) => Ok(transition),
            Err(Rejection::Fails(failure)) => Err(failure.into()),
            // The same check has passed before the wait.
            Err(Rejection::Fault(fault)) => Err(Failure::Protocol(fault).into()),
        }
    }

    /// Runs workers to their ends, and returns these ends.
    fn join(
        &mut self,
        join: Join,
        workers: Vec<Agent>,
    ) -> Result<Vec<(AgentId, HandedEnd)>, VisitEnd> {
        let mut handed = Vec::new();
        let mut is_blocked = false;
        for worker in workers {
            let id = worker.id.clone();
            match self.run(worker).map_err(|_| VisitEnd::AttemptLimit)? {
                End::Ended(result) => handed.push((id, HandedEnd::Ended(result))),
                End::Failed if join == Join::Done => handed.push((id, HandedEnd::Failed)),
                // The other workers run to their ends.
                End::Failed | End::Waits => is_blocked = true,
            }
        }
        if is_blocked { Err(VisitEnd::Blocked) } else { Ok(handed) }
    }

    /// Runs one turn, attempt after attempt, until one gives a text.
    fn turn(
        &mut self,
        agent: &mut Agent,
        counters: &mut VisitCounters,
    ) -> Result<String, VisitEnd> {
        let workflow = self.workflow;
        let state = &workflow.states[&agent.state];
        counters.turns += 1;
        let turn = TurnName { visit: agent.visit(), number: counters.turns };
        let plan = agent.begin(&turn, state);
        let begun = Line::Turn { turn: turn.clone(), plan };
        self.write(agent, begun);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let answer = self.ask(agent, counters.turns, attempt)?;
            // Failed attempts cost money too, so they count for the visit's budget.
            counters.spent = counters.spent.saturating_add(answer.cost.0);
            let kind = match answer.outcome {
                Outcome::Text(text) => return Ok(text),
                Outcome::Failure(kind) => kind,
            };
            let failed = Line::Failed { turn: turn.clone(), attempt, kind };
            self.write(agent, failed);
            self.check_retry(kind, state, counters)?;
        }
    }

    /// Counts a retry, or returns the reason why the failed turn is not repeated.
    fn check_retry(
        &self,
        kind: FailureKind,
        state: &State,
        counters: &mut VisitCounters,
    ) -> Result<(), VisitEnd> {
        let fails = Err(Failure::Turn(kind).into());
        if *state == State::Script {
            return fails;
        }
        match kind {
            // These are not the agent's fault, so they use up no retry.
            FailureKind::Quota | FailureKind::Auth | FailureKind::Environment => {}
            FailureKind::Transient | FailureKind::Timeout
                if counters.retries < self.settings.retries =>
            {
                counters.retries += 1;
            }
            FailureKind::Transient
            | FailureKind::Timeout
            | FailureKind::Task
            | FailureKind::LostSession
            | FailureKind::Script => return fails,
        }
        // Before the wait: a login would not give the visit new money.
        if budget_is_spent(state, counters) {
            return Err(Failure::VisitBudget.into());
        }
        let waits = matches!(kind, FailureKind::Auth | FailureKind::Environment);
        if waits { Err(VisitEnd::Waits(kind)) } else { Ok(()) }
    }

    fn ask(&mut self, agent: &Agent, turn: u32, attempt: u32) -> Result<Answer, VisitEnd> {
        self.attempts += 1;
        if self.attempts > self.settings.max_attempts {
            return Err(VisitEnd::AttemptLimit);
        }
        Ok((self.oracle)(Attempt {
            agent: &agent.id,
            state: &agent.state,
            count: agent.count(),
            turn,
            attempt,
        }))
    }

    fn write(&mut self, agent: &Agent, line: Line) {
        let lines = self.history.agents.entry(agent.id.clone()).or_default();
        lines.push(line);
    }
}

/// Returns whether the visit's budget allows no further turn.
fn budget_is_spent(state: &State, counters: &VisitCounters) -> bool {
    match state {
        State::Prompt(prompt) => prompt.budget.is_some_and(|Micros(cap)| counters.spent >= cap),
        State::Script => false,
    }
}
