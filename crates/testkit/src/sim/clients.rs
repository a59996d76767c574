//! The clients and scripts that a run has started.
//!
//! They are processes of their own: they go on when their owner dies, and they come to an end whether
//! anybody looks or not. So this is where a turn that is run twice at once shows, whatever the journal
//! says.

use std::collections::BTreeMap;

use raymond_core::ids::{SessionId, TurnId};
use raymond_core::protocol::Source;
use raymond_core::time::Timestamp;

use super::client_cost::ClientCost;
use super::reply::Reply;
use crate::violation::Violation;

/// One attempt at one turn.
pub type Attempt = (TurnId, u32);

/// A client that was started, and what it will come to.
#[derive(Debug, Clone)]
pub struct Client {
    /// What happens.
    pub reply: Reply,
    /// Where it works.
    pub cwd: String,
    /// Who speaks.
    pub source: Source,
    /// The conversation that it writes into.
    pub session: Option<SessionId>,
    /// What it really spends.
    pub client_cost: ClientCost,
    /// Whether it had said anything when it is interrupted.
    pub progressed: bool,
    /// Whether its owner has ended it.
    pub cancelled: bool,
    /// How many owners found it running.
    pub adoptions: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Clients {
    known: BTreeMap<Attempt, Client>,
    /// Those that run, by the time at which they end, and order.
    agenda: BTreeMap<(Timestamp, u64), Attempt>,
    order: u64,
}

impl Clients {
    /// A client runs, and ends then. Nobody may run the same turn, or write into the same
    /// conversation, meanwhile.
    pub fn start(
        &mut self,
        attempt: Attempt,
        client: Client,
        ends: Timestamp,
    ) -> Result<(), Violation> {
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
        self.known.insert(attempt.clone(), client);
        self.schedule(attempt, ends);
        rival.map_or(Ok(()), Err)
    }

    /// A client that was started once.
    pub fn get(&self, attempt: &Attempt) -> Option<&Client> {
        self.known.get(attempt)
    }

    /// A client that was started once.
    pub fn get_mut(&mut self, attempt: &Attempt) -> Option<&mut Client> {
        self.known.get_mut(attempt)
    }

    /// Those that run, whoever owns them.
    pub fn running(&self) -> impl Iterator<Item = (&Attempt, &Client)> {
        self.agenda.values().filter_map(|attempt| Some((attempt, self.known.get(attempt)?)))
    }

    /// The first to end, and when.
    pub fn next(&self) -> Option<(Timestamp, &Attempt)> {
        self.agenda.first_key_value().map(|((at, _), attempt)| (*at, attempt))
    }

    /// The first to end does.
    pub fn pop(&mut self) -> Option<(Timestamp, Attempt)> {
        self.agenda.pop_first().map(|((at, _), attempt)| (at, attempt))
    }

    /// When a client ends; none when it does not run.
    pub fn ends(&self, attempt: &Attempt) -> Option<Timestamp> {
        let place = self.agenda.iter().find(|(_, running)| *running == attempt);
        place.map(|((at, _), _)| *at)
    }

    /// A client runs no longer.
    pub fn end(&mut self, attempt: &Attempt) {
        self.agenda.retain(|_, running| running != attempt);
    }

    /// A client ends at another time.
    pub fn reschedule(&mut self, attempt: &Attempt, ends: Timestamp) {
        self.end(attempt);
        self.schedule(attempt.clone(), ends);
    }

    /// The clock jumps, and every client has as much to do as before.
    pub fn shift(&mut self, from: Timestamp, to: Timestamp) {
        let agenda = std::mem::take(&mut self.agenda);
        let shifted = |at: Timestamp| Timestamp((at.0 + to.0).saturating_sub(from.0));
        self.agenda =
            agenda.into_iter().map(|((at, order), who)| ((shifted(at), order), who)).collect();
    }

    fn schedule(&mut self, attempt: Attempt, ends: Timestamp) {
        self.order += 1;
        self.agenda.insert((ends, self.order), attempt);
    }
}
