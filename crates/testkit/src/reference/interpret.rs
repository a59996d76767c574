//! The interpreter: one agent after the other, each to its end, in the order of their creation.
//!
//! Agents do not influence each other after a fork, so their order changes nothing. What does
//! depend on timing is left out: a cap on money, agents held until others end, and the hold that a
//! login needed by one agent puts on the others.

use std::collections::VecDeque;

use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::protocol::Source;

use super::agent::{Agent, Next, Refused};
use super::decide::{Place, decide};
use super::history::{Failure, History, Line, TurnName};
use super::read::read;
use super::workflow::{Answer, Attempt, Outcome, Settings, State, Trouble, Workflow};

/// The run made more attempts than [`Settings::most_attempts`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the workflow did not end within {0} attempts")]
pub struct Endless(pub u32);

/// What the workflow does when the oracle answers for its clients and scripts.
pub fn interpret(
    workflow: &Workflow,
    settings: &Settings,
    oracle: &mut dyn FnMut(Attempt<'_>) -> Answer,
) -> Result<History, Endless> {
    let mut interpreter =
        Interpreter { workflow, settings, oracle, attempts: 0, history: History::default() };
    let main = Agent::new(
        AgentId::main(),
        workflow.start.clone(),
        workflow.cwd.clone(),
        workflow.input.clone(),
    );
    let mut agents = VecDeque::from([main]);
    while let Some(mut agent) = agents.pop_front() {
        while let Next::Enters(workers) = interpreter.visit(&mut agent)? {
            agents.extend(workers);
        }
    }
    Ok(interpreter.history)
}

struct Interpreter<'a> {
    workflow: &'a Workflow,
    settings: &'a Settings,
    oracle: &'a mut dyn FnMut(Attempt<'_>) -> Answer,
    attempts: u32,
    history: History,
}

/// What is counted per visit.
#[derive(Default)]
struct Tally {
    turns: u32,
    reminders: u32,
    retries: u32,
    spent: u64,
}

/// How a visit ends without a transition.
enum Stuck {
    Fails(Failure),
    Waits(Trouble),
    Endless,
}

impl From<Failure> for Stuck {
    fn from(failure: Failure) -> Self {
        Self::Fails(failure)
    }
}

impl Interpreter<'_> {
    fn visit(&mut self, agent: &mut Agent) -> Result<Next, Endless> {
        let entered = agent.enter(self.workflow, self.settings);
        self.write(agent, entered);
        let id = agent.id.clone();
        let line = match self.turns(agent) {
            Ok(next) => return Ok(next),
            Err(Stuck::Fails(failure)) => Line::Fail { agent: id, failure },
            Err(Stuck::Waits(trouble)) => Line::Wait { agent: id, trouble },
            Err(Stuck::Endless) => return Err(Endless(self.settings.most_attempts)),
        };
        self.write(agent, line);
        Ok(Next::Over)
    }

    /// Turns and reminders until there is a transition.
    fn turns(&mut self, agent: &mut Agent) -> Result<Next, Stuck> {
        let workflow = self.workflow;
        let state = &workflow.states[&agent.state];
        let mut tally = Tally::default();
        loop {
            let text = self.turn(agent, &mut tally)?;
            let place = Place { workflow, state, cwd: &agent.cwd };
            let (source, reminders) = match state {
                State::Prompt(_) => (Source::Message, self.settings.reminders),
                State::Script => (Source::Script, 0),
            };
            let decided = decide(read(&text, source), &place).map_err(Refused::Fault);
            let weighed = decided.and_then(|transition| {
                agent.weigh(&transition, workflow)?;
                Ok(transition)
            });
            let fault = match weighed {
                Ok(transition) => {
                    let (lines, next) = agent.take(transition, workflow, self.settings)?;
                    for line in lines {
                        self.write(agent, line);
                    }
                    return Ok(next);
                }
                Err(Refused::Fails(failure)) => return Err(failure.into()),
                Err(Refused::Fault(fault)) => fault,
            };
            if tally.reminders == reminders {
                return Err(Failure::Protocol(fault).into());
            }
            if budget_is_spent(state, &tally) {
                return Err(Failure::VisitBudget.into());
            }
            tally.reminders += 1;
            let visit = agent.visit();
            self.write(agent, Line::Remind { visit, fault });
        }
    }

    /// One turn, attempt after attempt, until there is a text.
    fn turn(&mut self, agent: &mut Agent, tally: &mut Tally) -> Result<String, Stuck> {
        let workflow = self.workflow;
        let state = &workflow.states[&agent.state];
        tally.turns += 1;
        let turn = TurnName { visit: agent.visit(), number: tally.turns };
        let plan = agent.begin(&turn, state);
        let begun = Line::Turn { turn: turn.clone(), plan };
        self.write(agent, begun);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let answer = self.ask(agent, tally.turns, attempt)?;
            tally.spent = tally.spent.saturating_add(answer.cost.0);
            let trouble = match answer.outcome {
                Outcome::Text(text) => return Ok(text),
                Outcome::Failure(trouble) => trouble,
            };
            let failed = Line::Failed { turn: turn.clone(), attempt, trouble };
            self.write(agent, failed);
            self.go_on_after(trouble, state, tally)?;
        }
    }

    /// Whether a failed turn is tried again.
    fn go_on_after(&self, trouble: Trouble, state: &State, tally: &mut Tally) -> Result<(), Stuck> {
        let fails = Err(Failure::Turn(trouble).into());
        if *state == State::Script {
            return fails;
        }
        match trouble {
            Trouble::Quota | Trouble::Auth | Trouble::Environment => {}
            Trouble::Transient | Trouble::Timeout if tally.retries < self.settings.retries => {
                tally.retries += 1;
            }
            Trouble::Transient
            | Trouble::Timeout
            | Trouble::Task
            | Trouble::LostSession
            | Trouble::Script => return fails,
        }
        if budget_is_spent(state, tally) {
            return Err(Failure::VisitBudget.into());
        }
        let waits = matches!(trouble, Trouble::Auth | Trouble::Environment);
        if waits { Err(Stuck::Waits(trouble)) } else { Ok(()) }
    }

    fn ask(&mut self, agent: &Agent, turn: u32, attempt: u32) -> Result<Answer, Stuck> {
        self.attempts += 1;
        if self.attempts > self.settings.most_attempts {
            return Err(Stuck::Endless);
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

/// Whether the visit may not have another turn.
fn budget_is_spent(state: &State, tally: &Tally) -> bool {
    match state {
        State::Prompt(prompt) => prompt.budget.is_some_and(|Micros(cap)| tally.spent >= cap),
        State::Script => false,
    }
}
