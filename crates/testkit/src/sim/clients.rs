//! The clients and scripts that a run has started.
//!
//! They are independent processes: they outlive their owner, and end without it. So this module
//! notices a turn that runs twice at once, even if the journal looks correct.

use std::collections::BTreeMap;

use raymond_core::ids::{SessionId, TurnId};
use raymond_core::protocol::Source;
use raymond_core::time::Timestamp;

use super::client_cost::ClientCost;
use super::reply::Reply;
use crate::violation::Violation;

pub type Attempt = (TurnId, u32);

/// A client that was started, with its predetermined reply.
#[derive(Debug, Clone)]
pub struct Client {
    pub reply: Reply,
    pub cwd: String,
    /// How its text is parsed.
    pub source: Source,
    /// The session that it writes to.
    pub session: Option<SessionId>,
    pub client_cost: ClientCost,
    /// Whether it has produced output by the time it is interrupted.
    pub progressed: bool,
    /// Whether its owner has ended it.
    pub cancelled: bool,
    /// How many owners have found it running.
    pub adoptions: u32,
}

#[derive(Debug, Default)]
pub struct Clients {
    known: BTreeMap<Attempt, Client>,
    /// Running clients, by their end and the order of their start.
    ends_by_time: BTreeMap<(Timestamp, u64), Attempt>,
    order: u64,
}

impl Clients {
    /// Starts a client that ends at `ends`. Returns a violation if another client runs the same
    /// turn or writes to the same session.
    pub fn start(
        &mut self,
        attempt: Attempt,
        client: Client,
        ends: Timestamp,
    ) -> Result<(), Violation> {
        // By agent, not only by turn: an agent has one turn at a time, also across owners.
        let rival = self.running().find(|(other, running)| {
            other.0.agent == attempt.0.agent
                || (client.session.is_some() && running.session == client.session)
        });
        let rival = rival.map(|((turn, number), _)| {
            let (wanted, next) = &attempt;
            Violation(format!(
                "attempt {next} of {wanted} starts while attempt {number} of {turn} runs"
            ))
        });
        // The client starts even after a violation, as the real one would.
        self.known.insert(attempt.clone(), client);
        self.schedule(attempt, ends);
        rival.map_or(Ok(()), Err)
    }

    pub fn get(&self, attempt: &Attempt) -> Option<&Client> {
        self.known.get(attempt)
    }

    pub fn get_mut(&mut self, attempt: &Attempt) -> Option<&mut Client> {
        self.known.get_mut(attempt)
    }

    /// Returns the running clients of all owners.
    pub fn running(&self) -> impl Iterator<Item = (&Attempt, &Client)> {
        self.ends_by_time.values().filter_map(|attempt| Some((attempt, self.known.get(attempt)?)))
    }

    /// Returns the client that ends first, and its end.
    pub fn next(&self) -> Option<(Timestamp, &Attempt)> {
        self.ends_by_time.first_key_value().map(|((at, _), attempt)| (*at, attempt))
    }

    /// Removes and returns the client that ends first.
    pub fn pop(&mut self) -> Option<(Timestamp, Attempt)> {
        self.ends_by_time.pop_first().map(|((at, _), attempt)| (at, attempt))
    }

    /// Returns when a client ends; `None` if it does not run.
    pub fn ends(&self, attempt: &Attempt) -> Option<Timestamp> {
        let place = self.ends_by_time.iter().find(|(_, running)| *running == attempt);
        place.map(|((at, _), _)| *at)
    }

    pub fn end(&mut self, attempt: &Attempt) {
        // `known` keeps the client: a recovery that follows must still find its reply and its cost.
        self.ends_by_time.retain(|_, running| running != attempt);
    }

    pub fn reschedule(&mut self, attempt: &Attempt, ends: Timestamp) {
        self.end(attempt);
        self.schedule(attempt.clone(), ends);
    }

    /// Moves all ends with the wall clock, so that a clock jump does not change the remaining time.
    pub fn shift(&mut self, from: Timestamp, to: Timestamp) {
        let ends_by_time = std::mem::take(&mut self.ends_by_time);
        // Addition first, because `to` is before `from` when the clock is set back.
        let shifted = |at: Timestamp| Timestamp((at.0 + to.0).saturating_sub(from.0));
        self.ends_by_time = ends_by_time
            .into_iter()
            .map(|((at, order), attempt)| ((shifted(at), order), attempt))
            .collect();
    }

    fn schedule(&mut self, attempt: Attempt, ends: Timestamp) {
        self.order += 1;
        self.ends_by_time.insert((ends, self.order), attempt);
    }
}
