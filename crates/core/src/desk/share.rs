//! What a turn may spend, and what it is charged afterwards.

use crate::budget::{Basis, Charge, Cost, Micros};
use crate::run::Run;

/// The answer to a paid turn that wants to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The run has no cap, and neither has the visit.
    Unlimited,
    /// It may spend this much.
    Of(Micros),
    /// Too little is free now, but turns in flight may give some back.
    Wait,
    /// Nothing is left.
    Nothing,
}

/// The share of the next paid turn, whose visit may still spend `visit_left`.
pub fn share(run: &Run, visit_left: Option<Micros>) -> Share {
    let Some(free) = run.unreserved() else {
        return visit_left.map_or(Share::Unlimited, Share::Of);
    };
    if free < Micros::LEAST_SHARE && run.desk.paid_in_flight > 0 {
        return Share::Wait;
    }
    if free == Micros::ZERO {
        return Share::Nothing;
    }
    // A slot that a script holds is soon a paid turn's: it must find something left.
    let slots = run.settings.max_parallel.max(1).saturating_sub(run.desk.paid_in_flight);
    let takers = run.live.saturating_sub(run.desk.paid_in_flight);
    let parts = u64::from(slots.min(takers).max(1));
    let fair = Micros(free.0 / parts).max(Micros::LEAST_SHARE);
    Share::Of(fair.min(free).min(visit_left.unwrap_or(free)))
}

/// What a paid turn is charged. A turn that does not say what it cost is never free.
pub fn charge(run: &Run, cost: Cost, share: Option<Micros>) -> Charge {
    match (cost, share) {
        (Cost::Free, _) => Charge { amount: Micros::ZERO, basis: Basis::Free },
        (Cost::Reported(amount), _) => Charge { amount, basis: Basis::Reported },
        (Cost::Estimated(_) | Cost::Unknown, Some(share)) if run.settings.strict_budget => {
            Charge { amount: share, basis: Basis::Estimated }
        }
        (Cost::Estimated(amount), _) => Charge { amount, basis: Basis::Estimated },
        (Cost::Unknown, _) if run.dearest > Micros::ZERO => {
            Charge { amount: run.dearest, basis: Basis::Estimated }
        }
        (Cost::Unknown, _) => Charge { amount: Micros::ZERO, basis: Basis::Unpriced },
    }
}
