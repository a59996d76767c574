//! The search for clients of turns that were in flight, by a new owner.
//!
//! Clients are processes of their own: after the death of an owner they may run, have finished, or
//! have died at any point. The dice decide which, and the world keeps the true cost of each, so
//! that the auditor can check the charge.

use raymond_core::budget::{Cost, Micros};
use raymond_core::protocol::Source;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::stop::Interruption;
use raymond_core::time::Timestamp;
use raymond_engine::recovery::{self, ClientTraces};
use raymond_store::Blobs;

use super::super::client_cost::ClientCost;
use super::super::clients::{Attempt, Client};
use super::super::coverage::Situation;
use super::super::outcome::{IDLE, outcome, truth};
use super::super::reply::Reply;
use super::super::world::SimWorld;
use super::Leftovers;

/// The fate of clients that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survivors {
    Adopted,
    Ended,
}

pub(super) struct ClientSearch {
    pub(super) leftovers: Leftovers,
    pub(super) power_was_cut: bool,
    pub(super) survivors: Survivors,
}

/// The state of a client that had no owner.
enum ClientState {
    Running,
    /// It has ended with a complete transcript.
    Finished,
    /// It ended before its result.
    Interrupted,
}

impl ClientSearch {
    /// Looks for a client, and returns `None` if it still runs. An error means that its text could
    /// not be stored, so the machine goes down.
    pub(super) fn find(
        &self,
        world: &mut SimWorld,
        attempt: &Attempt,
        blobs: &Blobs,
    ) -> Result<Option<Outcome>, String> {
        let unseen = world.unseen.remove(attempt);
        let Some(client) = world.clients.get(attempt).cloned() else {
            // Unknown, although this client cost nothing. So the charge is a guess, but never too
            // low.
            world.coverage.note_situation(Situation::NeverSpawned);
            return Ok(Some(self.interrupted(Cost::Unknown, self.progressed(false))));
        };
        match self.state(world, attempt, &client) {
            ClientState::Running => {
                adopt(world, attempt, unseen);
                Ok(None)
            }
            ClientState::Finished => {
                world.clients.end(attempt);
                // Before the outcome is stored: a fault there takes the machine down, but the
                // client has cost its money all the same.
                world.truth.insert(attempt.clone(), truth(&client));
                let outcome = outcome(&client, blobs)?;
                note_found(world, &outcome, unseen);
                // The world remembers the outcome, to check that the record of this recovery
                // contains it.
                world.found.insert(attempt.clone(), outcome.clone());
                Ok(Some(outcome))
            }
            ClientState::Interrupted => {
                world.clients.end(attempt);
                world.truth.insert(attempt.clone(), self.true_cost(&client));
                let progressed = self.progressed(client.progressed);
                let outcome = self.interrupted(client.client_cost.known, progressed);
                let cost = outcome.cost();
                // Scripts never survive their owner, so counting them would hide that no client was
                // met.
                if client.source != Source::Script {
                    note_gone(world, cost, progressed);
                }
                Ok(Some(outcome))
            }
        }
    }

    /// Returns the true cost of an interrupted client. A power failure may destroy the end of a
    /// transcript, which does not make the client cheaper.
    fn true_cost(&self, client: &Client) -> Micros {
        let ClientCost { whole, interrupted, .. } = client.client_cost;
        // The client may have finished before the power failed, so the larger of both costs is
        // assumed.
        if self.power_was_cut { whole.max(interrupted) } else { interrupted }
    }

    /// Returns the outcome of a client that died with its owner, as the engine would report it.
    fn interrupted(&self, cost: Cost, progressed: bool) -> Outcome {
        let by = Interruption::Crash;
        let traces = ClientTraces { lost_transcript: false, restarted: self.power_was_cut };
        let outcome = Outcome::Interrupted { by, cost, progressed, session: None };
        recovery::with_possible_cost(outcome, traces)
    }

    fn progressed(&self, progressed: bool) -> bool {
        match self.leftovers {
            Leftovers::Any => progressed,
            Leftovers::Progress => true,
            Leftovers::Nothing => false,
        }
    }

    /// Decides the state of a client. Scripts end with their owner, and everything ends with the
    /// power, which may also destroy a complete transcript. Sometimes a client dies by itself.
    fn state(&self, world: &mut SimWorld, attempt: &Attempt, client: &Client) -> ClientState {
        let ends = world.clients.ends(attempt);
        let late = |ends: Timestamp| ends <= world.now;
        // A client without an end was already ended by an earlier recovery that then failed. A
        // hanging client never completes a transcript, however late it is.
        let over = ends.is_none_or(late) && client.reply != Reply::Hangs;
        // Clients do not sync their transcripts, so a power failure destroys many. The 5 percent
        // are clients that crashed while they had no owner.
        let lost = if self.power_was_cut { 50 } else { 5 };
        // Drawn before the branches, so that every path uses the same number of throws.
        let luck = !world.dice.percent(lost);
        if client.source == Source::Script || self.leftovers == Leftovers::Nothing {
            ClientState::Interrupted
        } else if over {
            if luck { ClientState::Finished } else { ClientState::Interrupted }
        // A cancelled client has received its signal already, so the next owner does not follow it.
        } else if self.power_was_cut || client.cancelled || self.survivors == Survivors::Ended {
            ClientState::Interrupted
        } else if luck {
            ClientState::Running
        } else {
            ClientState::Interrupted
        }
    }
}

/// Lets the new owner follow a client, with a new idle time limit.
fn adopt(world: &mut SimWorld, attempt: &Attempt, unseen: bool) {
    let now = world.now;
    // Only a hanging client can be here after its end. Its idle time starts again, because the new
    // owner measures it from its own start.
    if world.clients.ends(attempt).is_none_or(|ends| ends <= now) {
        world.clients.reschedule(attempt, now + IDLE);
    }
    let Some(client) = world.clients.get_mut(attempt) else { return };
    client.adoptions += 1;
    let again = client.adoptions > 1;
    world.coverage.note_situation(if again { Situation::AdoptedAgain } else { Situation::Adopted });
    if unseen {
        world.coverage.note_situation(Situation::AdoptedUnseen);
    }
}

fn note_found(world: &mut SimWorld, outcome: &Outcome, unseen: bool) {
    world.coverage.note_situation(match outcome {
        Outcome::Finished(_) => Situation::Finished,
        Outcome::Capped { .. } => Situation::FoundCapped,
        Outcome::Failed { .. } | Outcome::Interrupted { .. } => Situation::FoundFailed,
    });
    if unseen {
        world.coverage.note_situation(Situation::FinishedUnseen);
    }
}

fn note_gone(world: &mut SimWorld, cost: Cost, progressed: bool) {
    let how = if progressed { Situation::GoneWithProgress } else { Situation::GoneWithout };
    world.coverage.note_situation(how);
    if let Cost::Estimated(_) = cost {
        world.coverage.note_situation(Situation::GoneEstimated);
    }
}
