//! What a new owner finds of turns that were in flight.

use raymond_core::budget::Cost;
use raymond_core::protocol::Source;
use raymond_engine::recovery::Attached;
use raymond_store::Blobs;

use super::super::reality::{Attempt, Reality};
use super::super::speech::Speech;
use super::Leftovers;

/// What a new owner finds.
pub(super) struct Found {
    pub(super) leftovers: Leftovers,
    pub(super) power_was_cut: bool,
}

impl Found {
    /// A client may have finished while nobody owned it, or still run.
    pub(super) fn attach(
        &self,
        reality: &mut Reality,
        attempt: &Attempt,
        blobs: &Blobs,
    ) -> Attached {
        let fate = reality.fates.get(attempt);
        let script = fate.is_some_and(|f| f.source == Source::Script);
        let said = fate.is_some_and(|f| matches!(f.speech, Speech::Says(..) | Speech::Denied(..)));
        let waits = reality.agenda.values().any(|waiting| waiting == attempt);
        let ended = fate.is_some_and(|f| f.cancelled) || self.power_was_cut;
        if waits && !script && !ended && reality.dice.percent(30) {
            return Attached::Running;
        }
        reality.agenda.retain(|_, waiting| waiting != attempt);
        if said
            && !script
            && reality.dice.percent(40)
            && let Ok(outcome) = reality.outcome(attempt, blobs)
        {
            return Attached::Finished(outcome);
        }
        let progressed = match self.leftovers {
            Leftovers::Any => reality.dice.percent(70),
            Leftovers::Progress => true,
        };
        let cost = if script { Cost::Free } else { Cost::Unknown };
        Attached::Absent { cost, progressed }
    }
}
