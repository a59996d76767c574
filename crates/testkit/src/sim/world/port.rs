//! The driver's access to the world: released effects happen, unless the machine goes down first.

use std::cell::RefCell;
use std::rc::Rc;

use raymond_core::agent::Location;
use raymond_core::agent::SessionPlan;
use raymond_core::protocol::Source;
use raymond_core::run::effect::{PromptEffect, StepEffect};
use raymond_core::run::{Effect, Record, Run};
use raymond_core::time::Span;
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_engine::driver::World;
use serde_json::Value as Json;

use super::super::client_cost::ClientCost;
use super::super::clients::{Attempt, Client};
use super::super::outcome::IDLE;
use super::super::reply::{Reply, TurnRequest};
use super::SimWorld;
use crate::step_trace::{call_of, question_of};
use crate::violation::Violation;

#[derive(Debug, Clone)]
pub struct WorldPort(pub Rc<RefCell<SimWorld>>);

impl World for WorldPort {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        let world = &mut *self.0.borrow_mut();
        let verdict = world.accept(run, record);
        world.keep_violation(verdict);
    }

    fn release(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        let world = &mut *self.0.borrow_mut();
        if world.is_down {
            return;
        }
        if world.faults.release() {
            world.is_down = true;
            // In half of the cases the effect still happened, but its owner died before it knew.
            if world.dice.percent(50) {
                return;
            }
            if let Effect::Prompt(prompt) = &effect {
                world.unseen.insert((prompt.turn.clone(), prompt.attempt));
            }
        }
        let verdict = world.auditor.effect(definition, &effect);
        world.keep_violation(verdict);
        let verdict = world.act(run, definition, effect);
        world.keep_violation(verdict);
    }
}

impl SimWorld {
    fn start(&mut self, started: TurnStart<'_>) -> Result<(), Violation> {
        let TurnStart { attempt, location, count, cwd, source, prompt, program } = started;
        let turn = &attempt.0;
        let finished = self.finished.get(&(turn.agent.clone(), location.clone()));
        let state = location.to_string();
        let request = TurnRequest {
            agent: turn.agent.as_str(),
            state: &state,
            count,
            turn: turn.turn,
            attempt: 1 + self.attempts.get(turn).copied().unwrap_or(0),
            finished: finished.copied().unwrap_or(0),
            backend: prompt.map_or("", |prompt| prompt.backend.as_str()),
            cap: prompt.and_then(|prompt| prompt.cap),
        };
        let reply = match program {
            Some(program) => {
                let (key, attempt) = (request.state, request.attempt);
                self.ran.push(format!("{key} {attempt} {}", program.call));
                Reply::Ran(self.replies.exec(program.mode, key, attempt, &program.call))
            }
            None => self.replies.reply(request, self.now),
        };
        let delay = match reply {
            // The executor's idle limit ends the client.
            Reply::Hangs => IDLE,
            _ => Span(self.dice.below(5_000)),
        };
        self.released.insert(attempt.clone());
        let session = prompt.and_then(|prompt| prompt.plan.session()).cloned();
        let client_cost = match source {
            Source::Script => ClientCost::FREE,
            Source::Message | Source::Iteration => ClientCost::of(&mut self.dice, request, &reply),
        };
        let client = Client {
            client_cost,
            progressed: self.dice.percent(70),
            reply,
            cwd,
            source,
            session,
            cancelled: false,
            adoptions: 0,
        };
        let known = prompt.map_or(Ok(()), |prompt| self.check_conversation(prompt));
        self.clients.start(attempt, client, self.now + delay).and(known)
    }

    /// Checks that a client uses only conversations of its own backend.
    fn check_conversation(&mut self, prompt: &PromptEffect) -> Result<(), Violation> {
        let mut plan = &prompt.plan;
        // `Continue` repeats an earlier plan, which names the old and the new conversation.
        while let SessionPlan::Continue { or_else, .. } = plan {
            plan = or_else;
        }
        let (old, new) = match plan {
            SessionPlan::Fresh(new) => (None, Some(new)),
            SessionPlan::Resume(old) => (Some(old), None),
            SessionPlan::Branch { from, to } => (Some(from), Some(to)),
            SessionPlan::Continue { .. } | SessionPlan::Carry => (None, None),
        };
        if let Some(new) = new {
            self.conversations.entry(new.clone()).or_insert_with(|| prompt.backend.clone());
        }
        for session in old.into_iter().chain(new) {
            match self.conversations.get(session) {
                Some(holder) if *holder != prompt.backend => {
                    let (turn, backend) = (&prompt.turn, &prompt.backend);
                    let what = format!("{turn} asks {backend} for a conversation of {holder}");
                    return Err(Violation(what));
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Ends a client; it may have finished before.
    fn cancel(&mut self, attempt: &Attempt) {
        let Some(client) = self.clients.get_mut(attempt) else { return };
        client.cancelled = true;
        if !self.dice.percent(20) {
            client.reply = Reply::Hangs;
        }
        self.clients.reschedule(attempt, self.now + Span(10));
    }

    fn act(&mut self, run: &Run, definition: &Definition, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::Prompt(prompt) => {
                let asked = definition.steps.as_ref().map(|_| asked(run, definition, &prompt));
                self.asked.extend(asked.transpose()?);
                self.start(TurnStart {
                    attempt: (prompt.turn.clone(), prompt.attempt),
                    location: prompt.location.clone(),
                    count: prompt.count,
                    cwd: prompt.cwd.clone(),
                    source: run.program.messages(),
                    prompt: Some(&prompt),
                    program: None,
                })
            }
            Effect::Script(script) => {
                let visits = run.agents.get(&script.turn.agent).map(|agent| &agent.visits);
                let count = visits.and_then(|visits| visits.get(&script.state)).copied();
                self.start(TurnStart {
                    attempt: (script.turn, script.attempt),
                    location: script.state.into(),
                    count: count.unwrap_or(1),
                    cwd: script.cwd,
                    source: Source::Script,
                    prompt: None,
                    program: None,
                })
            }
            Effect::Cancel { turn, attempt } => {
                self.cancel(&(turn, attempt));
                Ok(())
            }
            Effect::Step(step) => {
                let program = StepCall::of(run, definition, &step)?;
                self.start(TurnStart {
                    attempt: (step.turn, step.attempt),
                    location: step.key.into(),
                    count: 1,
                    cwd: step.cwd,
                    source: Source::Script,
                    prompt: None,
                    program: Some(program),
                })
            }
            Effect::Finish => self.check_no_client_runs(),
        }
    }

    /// Checks that no client runs after the end of the run.
    pub fn check_no_client_runs(&self) -> Result<(), Violation> {
        match self.clients.running().next() {
            None => Ok(()),
            Some(((turn, attempt), _)) => {
                let what = format!("the run has ended, and attempt {attempt} of {turn} still runs");
                Err(Violation(what))
            }
        }
    }
}

/// A turn that is about to start.
struct TurnStart<'a> {
    attempt: Attempt,
    location: Location,
    count: u32,
    cwd: String,
    /// How its text is parsed.
    source: Source,
    /// Present for prompts only.
    prompt: Option<&'a PromptEffect>,
    /// Present for programs of steps only.
    program: Option<StepCall>,
}

/// The program of a step with its templates filled in.
struct StepCall {
    mode: &'static str,
    call: Json,
}

impl StepCall {
    fn of(run: &Run, definition: &Definition, step: &StepEffect) -> Result<Self, Violation> {
        let steps = definition.steps.as_deref().zip(run.program.steps());
        let called =
            steps.and_then(|(steps, state)| steps.call(state, &step.turn.agent, &step.key));
        let nothing = || Violation(format!("{} cannot be filled in, and is run", step.key));
        let (_, exec, call) = called.ok_or_else(nothing)?;
        Ok(Self { mode: exec.io.mode(), call: call_of(&call) })
    }
}

/// Returns the question of an agent step, in the format of the reference.
fn asked(run: &Run, definition: &Definition, prompt: &PromptEffect) -> Result<String, Violation> {
    let (turn, key) = (&prompt.turn, prompt.location.step());
    let steps = definition.steps.as_deref().zip(run.program.steps()).zip(key);
    let message = steps
        .and_then(|((steps, state), key)| steps.message(state, (&turn.agent, key), &Json::Null));
    let message = message.ok_or_else(|| Violation(format!("{turn} asks nothing")))?;
    Ok(format!("{} {} {}", prompt.location, turn.turn, question_of(&message, turn.turn)?))
}
