//! The search for clients of turns that were in flight, by a new owner.

use raymond_core::budget::{Cost, Micros};
use raymond_core::protocol::Source;
use raymond_core::run::input::Outcome;
use raymond_core::time::Timestamp;
use raymond_engine::recovery::{FoundTurn, after_restart};
use raymond_store::Blobs;

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
    /// Looks for a client. An error means that its text could not be stored, so the machine goes
    /// down.
    pub(super) fn find(
        &self,
        world: &mut SimWorld,
        attempt: &Attempt,
        blobs: &Blobs,
    ) -> Result<FoundTurn, String> {
        let unseen = world.unseen.remove(attempt);
        let Some(client) = world.clients.get(attempt).cloned() else {
            world.coverage.note_situation(Situation::NeverSpawned);
            return Ok(FoundTurn::Absent {
                cost: Cost::Unknown,
                progressed: self.progressed(false),
                session: None,
            });
        };
        match self.state(world, attempt, &client) {
            ClientState::Running => {
                adopt(world, attempt, unseen);
                Ok(FoundTurn::Running)
            }
            ClientState::Finished => {
                world.clients.end(attempt);
                world.truth.insert(attempt.clone(), truth(&client));
                let outcome = outcome(&client, blobs)?;
                note_found(world, &outcome, unseen);
                world.found.insert(attempt.clone(), outcome.clone());
                Ok(FoundTurn::Finished(outcome))
            }
            ClientState::Interrupted => {
                world.clients.end(attempt);
                let (cost, truth) = self.costs(&client);
                world.truth.insert(attempt.clone(), truth);
                let progressed = self.progressed(client.progressed);
                if client.source != Source::Script {
                    note_gone(world, cost, progressed);
                }
                Ok(FoundTurn::Absent { cost, progressed, session: None })
            }
        }
    }

    /// Returns the known and the true cost of an interrupted client. A power failure may destroy
    /// the end of a transcript, so its cost is only a lower bound then.
    fn costs(&self, client: &Client) -> (Cost, Micros) {
        let client_cost = client.client_cost;
        if self.power_was_cut {
            return (
                after_restart(client_cost.known),
                client_cost.whole.max(client_cost.interrupted),
            );
        }
        (client_cost.known, client_cost.interrupted)
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
        let over = ends.is_none_or(late) && client.reply != Reply::Hangs;
        let lost = if self.power_was_cut { 50 } else { 5 };
        // Drawn before the branches, so that every path uses the same number of throws.
        let luck = !world.dice.percent(lost);
        if client.source == Source::Script || self.leftovers == Leftovers::Nothing {
            ClientState::Interrupted
        } else if over {
            if luck { ClientState::Finished } else { ClientState::Interrupted }
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
