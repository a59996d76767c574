//! Time passes on a machine: turns end, waits are over, and the clock jumps.

use raymond_core::clock::Reading;
use raymond_core::run::input::Outcome;
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::INLINE_MAX;

use super::super::clients::Attempt;
use super::super::coverage::Column;
use super::super::reality::Jump;
use super::super::speech::Speech;
use super::Host;
use crate::step_trace::Ran;

/// What happened in a tick.
#[derive(Debug)]
pub enum Ticked {
    /// Nothing can happen by itself any more.
    Nothing,
    /// A durable wait is over.
    Due,
    /// A turn ended.
    Settled(Attempt, Box<Outcome>),
    /// The machine went down.
    Down,
}

impl Host {
    /// Lets the next thing happen: a turn ends, or a durable wait does.
    pub fn tick(&mut self) -> Ticked {
        let next = self.reality.borrow().clients.next().map(|(at, _)| at);
        let due = self.until_due();
        match (next, due) {
            (Some(at), due) if due.is_none_or(|due| at <= due) => self.settle_next(),
            (_, Some(due)) => {
                self.reality.borrow_mut().pass_until(due);
                Ticked::Due
            }
            (_, None) => Ticked::Nothing,
        }
    }

    /// What the wall clock will show when the owner's next wait is over, if nobody sets it meanwhile.
    fn until_due(&mut self) -> Option<Timestamp> {
        let due = self.driver.as_ref()?.run().next_due()?;
        let wait = due.0.saturating_sub(self.owner_time().0);
        Some(self.reality.borrow().now + Span(wait))
    }

    /// The time as the owner of the run tells it.
    pub(super) fn owner_time(&mut self) -> Timestamp {
        let reality = self.reality.borrow();
        let due = self.driver.as_ref().and_then(|driver| driver.run().next_due());
        self.clock.now(Reading { wall: reality.now, uptime: reality.uptime }, due)
    }

    /// Whether the next turn that ends has a text that does not fit into a record.
    pub fn next_is_large(&self) -> bool {
        let reality = self.reality.borrow();
        let next = reality.clients.next().and_then(|(_, next)| reality.clients.get(next));
        next.is_some_and(|client| match &client.speech {
            Speech::Says(text, _) | Speech::SaysCapped(text, _) | Speech::Denied(text, _) => {
                text.len() > INLINE_MAX
            }
            Speech::Ran(Ran::Well(left) | Ran::Badly(left) | Ran::NotAtAll(left))
            | Speech::Answers(left, ..) => left.to_string().len() > INLINE_MAX,
            Speech::Capped(_) | Speech::Fails(..) | Speech::Hangs => false,
        })
    }

    fn settle_next(&mut self) -> Ticked {
        let (attempt, outcome) = {
            let reality = &mut *self.reality.borrow_mut();
            let Some((at, attempt)) = reality.clients.pop() else { return Ticked::Nothing };
            reality.pass_until(at);
            let outcome = reality.outcome(&attempt, &self.blobs());
            (attempt, outcome)
        };
        match outcome {
            Ok(outcome) => Ticked::Settled(attempt, Box::new(outcome)),
            Err(_) => {
                self.text_is_lost(&attempt);
                Ticked::Down
            }
        }
    }

    /// A text could not be stored: its owner cannot go on.
    pub(super) fn text_is_lost(&mut self, attempt: &Attempt) {
        {
            let reality = &mut *self.reality.borrow_mut();
            reality.hit = self.plan.fired();
            if let Some(column) = reality.hit.and_then(|(_, point)| Column::of_blob(point)) {
                reality.unstored.insert(attempt.0.clone(), column);
            }
        }
        self.go_down();
    }

    /// Time passes; clients that run go on meanwhile.
    pub fn wait(&self, span: Span) {
        let reality = &mut *self.reality.borrow_mut();
        reality.pass(span);
        reality.story.tell(|| format!("{span} pass"));
    }

    /// The machine sleeps, and everything on it.
    pub fn sleep(&self, span: Span) {
        let reality = &mut *self.reality.borrow_mut();
        let to = reality.now + span;
        reality.note_jump(Jump::Ahead);
        reality.jump(to);
        reality.story.tell(|| format!("the machine sleeps for {span}"));
    }

    /// Somebody sets the clock back.
    pub fn set_back(&self, span: Span) {
        let reality = &mut *self.reality.borrow_mut();
        let to = Timestamp(reality.now.0.saturating_sub(span.0));
        reality.note_jump(Jump::Back);
        reality.jump(to);
        reality.story.tell(|| format!("the clock is set back by {span}"));
    }
}
