//! The passing of time on a machine: turns end, waits end, and the clock jumps.

use raymond_core::clock::ClockReading;
use raymond_core::run::outcome::Outcome;
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::INLINE_MAX;

use super::super::clients::Attempt;
use super::super::coverage::Column;
use super::super::reply::Reply;
use super::super::world::Jump;
use super::Host;
use crate::step_trace::ProgramResult;

/// The event of a tick.
#[derive(Debug)]
pub enum Ticked {
    /// Nothing more can happen by itself.
    Nothing,
    Due,
    Settled(Attempt, Box<Outcome>),
    Down,
}

impl Host {
    /// Advances to the next event: the end of a turn or of a durable wait.
    pub fn tick(&mut self) -> Ticked {
        let next = self.world.borrow().clients.next().map(|(at, _)| at);
        let due = self.until_due();
        match (next, due) {
            // In the same millisecond both orders are correct, but one order must be fixed, so that
            // a seed always gives the same run.
            (Some(at), due) if due.is_none_or(|due| at <= due) => self.settle_next(),
            (_, Some(due)) => {
                self.world.borrow_mut().pass_until(due);
                Ticked::Due
            }
            (_, None) => Ticked::Nothing,
        }
    }

    /// Returns the wall clock time at which the owner's next wait ends, if the clock is not set
    /// meanwhile.
    fn until_due(&mut self) -> Option<Timestamp> {
        let due = self.driver.as_ref()?.run().next_due()?;
        // By the owner's clock, which does not follow a wall clock that was set back.
        let wait = due.0.saturating_sub(self.owner_time().0);
        Some(self.world.borrow().now + Span(wait))
    }

    /// Returns the time of the owner's clock.
    pub(super) fn owner_time(&mut self) -> Timestamp {
        let world = self.world.borrow();
        // The clock is steady only while something waits; without a wait it shows the wall clock
        // again.
        let due = self.driver.as_ref().and_then(|driver| driver.run().next_due());
        self.clock.now(ClockReading { wall: world.now, uptime: world.uptime }, due)
    }

    /// Returns whether the text of the next turn to end needs a blob.
    pub fn next_is_large(&self) -> bool {
        let world = self.world.borrow();
        let next = world.clients.next().and_then(|(_, next)| world.clients.get(next));
        next.is_some_and(|client| match &client.reply {
            Reply::Says(text, _) | Reply::SaysCapped(text, _) | Reply::Denied(text, _) => {
                text.len() > INLINE_MAX
            }
            Reply::Ran(
                ProgramResult::Succeeded(left)
                | ProgramResult::Failed(left)
                | ProgramResult::NotRun(left),
            )
            | Reply::Answers(left, ..) => left.to_string().len() > INLINE_MAX,
            Reply::Capped(_) | Reply::Fails(..) | Reply::Hangs => false,
        })
    }

    fn settle_next(&mut self) -> Ticked {
        let (attempt, outcome) = {
            let world = &mut *self.world.borrow_mut();
            let Some((at, attempt)) = world.clients.pop() else { return Ticked::Nothing };
            world.pass_until(at);
            let outcome = world.outcome(&attempt, &self.blobs());
            (attempt, outcome)
        };
        match outcome {
            Ok(outcome) => Ticked::Settled(attempt, Box::new(outcome)),
            // The only error is a text that could not be stored: the client has ended, and its
            // outcome is lost until a recovery reads the transcript.
            Err(_) => {
                self.lose_text(&attempt);
                Ticked::Down
            }
        }
    }

    /// Takes the machine down because a text could not be stored.
    pub(super) fn lose_text(&mut self, attempt: &Attempt) {
        {
            let world = &mut *self.world.borrow_mut();
            world.last_fault = self.faults.take_fired();
            // The rows of the table are events, which exist only when the turn is recorded. So the
            // column waits for that record.
            if let Some(column) = world.last_fault.and_then(|(_, point)| Column::for_blob(point)) {
                world.unstored.insert(attempt.0.clone(), column);
            }
        }
        self.go_down();
    }

    /// Lets time pass; running clients continue.
    pub fn wait(&self, span: Span) {
        let world = &mut *self.world.borrow_mut();
        world.pass(span);
        world.trace.note(|| format!("{span} pass"));
    }

    /// Suspends the machine with all its clients.
    pub fn sleep(&self, span: Span) {
        let world = &mut *self.world.borrow_mut();
        let to = world.now + span;
        world.note_jump(Jump::Ahead);
        // The uptime does not pass: the monotonic clock stops while a machine sleeps.
        world.jump(to);
        world.trace.note(|| format!("the machine sleeps for {span}"));
    }

    /// Sets the wall clock back.
    pub fn set_back(&self, span: Span) {
        let world = &mut *self.world.borrow_mut();
        let to = Timestamp(world.now.0.saturating_sub(span.0));
        world.note_jump(Jump::Back);
        world.jump(to);
        world.trace.note(|| format!("the clock is set back by {span}"));
    }
}
