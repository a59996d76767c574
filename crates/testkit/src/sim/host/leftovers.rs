//! What a new owner finds of turns that were in flight.

use raymond_core::budget::{Cost, Micros};
use raymond_core::protocol::Source;
use raymond_core::run::input::Outcome;
use raymond_core::time::Timestamp;
use raymond_engine::recovery::{FoundTurn, after_restart};
use raymond_store::Blobs;

use super::super::clients::{Attempt, Client};
use super::super::coverage::Situation;
use super::super::outcome::{IDLE, outcome, truth};
use super::super::reality::Reality;
use super::super::speech::Speech;
use super::Leftovers;

/// What a new owner does with clients that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survivors {
    /// They finish their turn.
    Adopted,
    /// They are ended.
    Ended,
}

/// What a new owner finds.
pub(super) struct Found {
    pub(super) leftovers: Leftovers,
    pub(super) power_was_cut: bool,
    pub(super) survivors: Survivors,
}

/// What a client has come to while nobody looked.
enum State {
    /// It still runs.
    Running,
    /// It has ended, and left a complete transcript.
    Over,
    /// It was cut off.
    CutOff,
}

impl Found {
    /// Looks for a client. A text that cannot be stored takes the machine down.
    pub(super) fn attach(
        &self,
        reality: &mut Reality,
        attempt: &Attempt,
        blobs: &Blobs,
    ) -> Result<FoundTurn, String> {
        let unseen = reality.unseen.remove(attempt);
        let Some(client) = reality.clients.get(attempt).cloned() else {
            reality.coverage.meet(Situation::NeverSpawned);
            return Ok(FoundTurn::Absent {
                cost: Cost::Unknown,
                progressed: self.progressed(false),
                session: None,
            });
        };
        match self.state(reality, attempt, &client) {
            State::Running => {
                adopt(reality, attempt, unseen);
                Ok(FoundTurn::Running)
            }
            State::Over => {
                reality.clients.end(attempt);
                reality.truth.insert(attempt.clone(), truth(&client));
                let outcome = outcome(&client, blobs)?;
                note_found(reality, &outcome, unseen);
                reality.found.insert(attempt.clone(), outcome.clone());
                Ok(FoundTurn::Finished(outcome))
            }
            State::CutOff => {
                reality.clients.end(attempt);
                let (cost, truth) = self.remains(&client);
                reality.truth.insert(attempt.clone(), truth);
                let progressed = self.progressed(client.progressed);
                if client.source != Source::Script {
                    note_gone(reality, cost, progressed);
                }
                Ok(FoundTurn::Absent { cost, progressed, session: None })
            }
        }
    }

    /// What is known of the cost of a client that is gone, and the truth. A power cut may take the end of
    /// a transcript with it, so what is left of it is only a part.
    fn remains(&self, client: &Client) -> (Cost, Micros) {
        let bill = client.bill;
        if self.power_was_cut {
            return (after_restart(bill.known), bill.whole.max(bill.interrupted));
        }
        (bill.known, bill.interrupted)
    }

    fn progressed(&self, progressed: bool) -> bool {
        match self.leftovers {
            Leftovers::Any => progressed,
            Leftovers::Progress => true,
            Leftovers::Nothing => false,
        }
    }

    /// Scripts end with their owner, and everything ends with the power; a transcript that was
    /// complete may be lost then, too. Now and then a client dies by itself.
    fn state(&self, reality: &mut Reality, attempt: &Attempt, client: &Client) -> State {
        let ends = reality.clients.ends(attempt);
        let late = |ends: Timestamp| ends <= reality.now;
        let over = ends.is_none_or(late) && client.speech != Speech::Hangs;
        let lost = if self.power_was_cut { 50 } else { 5 };
        let luck = !reality.dice.percent(lost);
        if client.source == Source::Script || self.leftovers == Leftovers::Nothing {
            State::CutOff
        } else if over {
            if luck { State::Over } else { State::CutOff }
        } else if self.power_was_cut || client.cancelled || self.survivors == Survivors::Ended {
            State::CutOff
        } else if luck {
            State::Running
        } else {
            State::CutOff
        }
    }
}

/// The next owner follows a client, with an idle clock of its own.
fn adopt(reality: &mut Reality, attempt: &Attempt, unseen: bool) {
    let now = reality.now;
    if reality.clients.ends(attempt).is_none_or(|ends| ends <= now) {
        reality.clients.reschedule(attempt, now + IDLE);
    }
    let Some(client) = reality.clients.get_mut(attempt) else { return };
    client.adoptions += 1;
    let again = client.adoptions > 1;
    reality.coverage.meet(if again { Situation::AdoptedAgain } else { Situation::Adopted });
    if unseen {
        reality.coverage.meet(Situation::AdoptedUnseen);
    }
}

fn note_found(reality: &mut Reality, outcome: &Outcome, unseen: bool) {
    reality.coverage.meet(match outcome {
        Outcome::Finished(_) => Situation::Finished,
        Outcome::Capped { .. } => Situation::FoundCapped,
        Outcome::Failed { .. } | Outcome::Interrupted { .. } => Situation::FoundFailed,
    });
    if unseen {
        reality.coverage.meet(Situation::FinishedUnseen);
    }
}

fn note_gone(reality: &mut Reality, cost: Cost, progressed: bool) {
    let how = if progressed { Situation::GoneWithProgress } else { Situation::GoneWithout };
    reality.coverage.meet(how);
    if let Cost::Estimated(_) = cost {
        reality.coverage.meet(Situation::GoneEstimated);
    }
}
