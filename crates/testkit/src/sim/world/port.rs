//! The driver's access to the world: released effects happen, unless the machine goes down first.
//!
//! Every effect is audited before it happens. The reply of a client is decided when the client
//! starts, so that a crash in between does not change it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use raymond_core::agent::SessionPlan;
use raymond_core::ids::TurnId;
use raymond_core::protocol::Source;
use raymond_core::run::turn_spec::{PromptSpec, PromptText, TurnHeader, Work};
use raymond_core::run::{Effect, Record, Run, TurnSpec};
use raymond_core::time::Span;
use raymond_core::value::Value;
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_engine::driver::World;

use super::super::client_cost::ClientCost;
use super::super::clients::{Attempt, Client};
use super::super::definitions::definition_of;
use super::super::outcome::IDLE;
use super::super::reply::{Reply, TurnRequest};
use super::SimWorld;
use crate::step_trace::{QuestionSettings, call_of, question_of};
use crate::violation::Violation;

#[derive(Debug, Clone)]
pub struct WorldPort {
    pub world: Rc<RefCell<SimWorld>>,
    /// Every definition that the run may use, by its manifest. The auditor needs them; effects are
    /// complete without.
    pub definitions: Rc<BTreeMap<Value, Definition>>,
}

impl World for WorldPort {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        let world = &mut *self.world.borrow_mut();
        // The interface returns nothing, so the violation is kept until the host looks for it.
        let verdict = world.accept(run, record);
        world.keep_violation(verdict);
    }

    fn release(&mut self, effect: Effect) {
        let world = &mut *self.world.borrow_mut();
        // A machine that is down runs no effect, but the driver releases all effects of a record in
        // one go.
        if world.is_down {
            return;
        }
        if world.faults.release() {
            world.is_down = true;
            // In half of the cases the effect still happened, but its owner died before it knew.
            if world.dice.percent(50) {
                return;
            }
            // Scripts end with their owner, so only a client can be found by the next one.
            if let Effect::Start(TurnSpec { header, work: Work::Prompt(_) }) = &effect {
                world.unseen.insert((header.turn.clone(), header.attempt));
            }
        }
        let definition = definition_of(&self.definitions, &world.last);
        // Audited although the owner is dead: the effect was released after its record, or it is a
        // violation.
        let verdict = world.auditor.effect(definition, &effect);
        world.keep_violation(verdict);
        let verdict = world.act(effect);
        world.keep_violation(verdict);
    }
}

impl SimWorld {
    fn start(&mut self, spec: TurnSpec) -> Result<(), Violation> {
        let TurnHeader { turn, attempt, location, cwd, .. } = *spec.header;
        let (source, count) = match &spec.work {
            Work::Prompt(prompt) => (self.last.program.messages(), prompt.count),
            Work::Script(script) => (Source::Script, script.values.visit),
            Work::Exec(_) => (Source::Script, 1),
        };
        let prompt = match &spec.work {
            Work::Prompt(prompt) => Some(&**prompt),
            Work::Script(_) | Work::Exec(_) => None,
        };
        let finished = self.finished.get(&(turn.agent.clone(), location.clone()));
        let state = location.to_string();
        let request = TurnRequest {
            agent: turn.agent.as_str(),
            state: &state,
            count,
            turn: turn.turn,
            attempt: 1 + self.attempts.get(&turn).copied().unwrap_or(0),
            finished: finished.copied().unwrap_or(0),
            backend: prompt.map_or("", |prompt| prompt.backend.as_str()),
            cap: prompt.and_then(|prompt| prompt.cap),
        };
        // The reply is fixed at the start, so that a recovery finds the same reply however late it
        // looks.
        let reply = match &spec.work {
            Work::Exec(exec) => {
                let (key, attempt, call) = (request.state, request.attempt, call_of(&exec.call));
                self.ran.push(format!("{key} {attempt} {call}"));
                Reply::Ran(self.replies.exec(exec.call.io.mode(), key, attempt, &call))
            }
            Work::Prompt(_) | Work::Script(_) => self.replies.reply(request, self.now),
        };
        if let Some(PromptText::Request { text, .. }) = prompt.map(|prompt| &prompt.message) {
            let settings = prompt.map(QuestionSettings::of_prompt).unwrap_or_default();
            let question = question_of(text, turn.turn, &settings)?;
            self.asked.push(format!("{location} {} {question}", turn.turn));
        }
        let attempt = (turn.clone(), attempt);
        let delay = match reply {
            // The executor's idle limit ends the client.
            Reply::Hangs => IDLE,
            _ => Span(self.dice.below(5_000)),
        };
        // The world keeps this across crashes, so a recovery can compare it with the attempts in
        // the journal.
        self.released.insert(attempt.clone());
        let session = prompt.and_then(|prompt| prompt.plan.session()).cloned();
        let client_cost = match source {
            Source::Script => ClientCost::FREE,
            Source::Message | Source::Iteration => ClientCost::of(&mut self.dice, request, &reply),
        };
        let client = Client {
            client_cost,
            // Mostly true, because five interruptions in a row without progress fail an agent.
            progressed: self.dice.percent(70),
            reply,
            cwd,
            source,
            session,
            cancelled: false,
            adoptions: 0,
        };
        // The client starts even if a check fails, as the real one would.
        let known = prompt.map_or(Ok(()), |prompt| self.check_conversation(&turn, prompt));
        self.clients.start(attempt, client, self.now + delay).and(known)
    }

    /// Checks that a client uses only conversations of its own backend.
    fn check_conversation(&mut self, turn: &TurnId, prompt: &PromptSpec) -> Result<(), Violation> {
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
            // The first backend keeps the conversation: a later attempt at opening it elsewhere is
            // a violation.
            self.conversations.entry(new.clone()).or_insert_with(|| prompt.backend.clone());
        }
        for session in old.into_iter().chain(new) {
            match self.conversations.get(session) {
                Some(holder) if *holder != prompt.backend => {
                    let backend = &prompt.backend;
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
        // Otherwise the client keeps its reply: its result was complete before the signal arrived.
        if !self.dice.percent(20) {
            client.reply = Reply::Hangs;
        }
        // Not at once: other outcomes may arrive between the cancellation and the end of the
        // client.
        self.clients.reschedule(attempt, self.now + Span(10));
    }

    fn act(&mut self, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::Start(spec) => self.start(spec),
            Effect::Cancel { turn, attempt } => {
                self.cancel(&(turn, attempt));
                Ok(())
            }
            // Released after all turns have ended, so a client that still runs has outlived its
            // run.
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
