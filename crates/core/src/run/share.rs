//! Budget shares: the amount that a turn may spend, and the charge afterwards.
//!
//! A share is reserved when a turn starts, so that turns in parallel cannot exceed the cap
//! together. Prices of models are in [`crate::prices`].

use crate::budget::{Basis, Charge, Cost, Micros};
use crate::run::Run;

/// The share of a paid turn that is ready to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Neither the run nor the visit has a cap.
    Unlimited,
    Of(Micros),
    /// Too little is free now, but turns in flight may return a part of their shares.
    Wait,
    Nothing,
}

/// Returns the share of the next paid turn. `visit_left` is the rest of its visit's budget.
pub fn share(run: &Run, visit_left: Option<Micros>) -> Share {
    let Some(free) = run.unreserved() else {
        return visit_left.map_or(Share::Unlimited, Share::Of);
    };
    if free < Micros::LEAST_SHARE && run.scheduler.paid_in_flight > 0 {
        return Share::Wait;
    }
    if free == Micros::ZERO {
        return Share::Nothing;
    }
    // Slots of scripts count as free: a paid turn may follow soon and needs a share too.
    let slots = run.settings.max_parallel.max(1).saturating_sub(run.scheduler.paid_in_flight);
    // More slots than agents would divide the rest into shares that no agent takes.
    let takers = run.live.saturating_sub(run.scheduler.paid_in_flight).saturating_sub(run.parked);
    let parts = u64::from(slots.min(takers).max(1));
    let fair = Micros(free.0 / parts).max(Micros::LEAST_SHARE);
    Share::Of(fair.min(free).min(visit_left.unwrap_or(free)))
}

/// Returns the charge for a paid turn. A turn whose cost is unknown is never free.
///
/// A strict budget charges at least the whole share when the client did not report the cost. It
/// never charges less than the known amount, because a client may have spent more than its share.
pub fn charge(run: &Run, cost: Cost, share: Option<Micros>) -> Charge {
    let strict = share.filter(|_| run.settings.strict_budget);
    let estimated = |amount| Charge { amount, basis: Basis::Estimated };
    match (cost, strict) {
        (Cost::Free, _) => Charge { amount: Micros::ZERO, basis: Basis::Free },
        (Cost::Reported(amount), _) => Charge { amount, basis: Basis::Reported },
        (Cost::Estimated(known) | Cost::AtLeast(known), Some(share)) => estimated(known.max(share)),
        (Cost::Unknown, Some(share)) => estimated(share),
        (Cost::Estimated(amount), None) => estimated(amount),
        (Cost::AtLeast(known), None) => incomplete(run, known),
        (Cost::Unknown, None) => incomplete(run, Micros::ZERO),
    }
}

/// Charges a turn whose cost is known only in part as much as the most expensive turn of the run.
/// If the known part is larger than that, the rest stays unpriced.
fn incomplete(run: &Run, known: Micros) -> Charge {
    if run.most_expensive > known {
        Charge { amount: run.most_expensive, basis: Basis::Estimated }
    } else {
        Charge { amount: known, basis: Basis::Unpriced }
    }
}

/// Returns the charge for a turn that stopped because its share was used up: at least that share,
/// even if its client reports less.
pub fn charge_capped(run: &Run, cost: Cost, share: Option<Micros>) -> Charge {
    let charged = charge(run, cost, share);
    match share {
        Some(share) if charged.amount < share => Charge { amount: share, basis: Basis::Estimated },
        Some(_) | None => charged,
    }
}
