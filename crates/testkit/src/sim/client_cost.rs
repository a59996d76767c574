//! The true cost of simulated clients, which no client reports and no journal contains.
//!
//! A client makes one request after the other. It learns the cost of a request when its answer arrives,
//! and stops once it has spent its share, so it exceeds the share by at most one request. A client that is
//! interrupted has a request in flight, which costs money although nobody sees its answer. What a client
//! reports may be less than it spent, or nothing at all; the auditor compares the charge with the truth.

use raymond_core::budget::{Cost, Micros};

use crate::dice::Dice;

use super::reply::{Reply, TurnRequest};

/// The most that one request costs.
pub const MAX_REQUEST_COST: Micros = Micros(15_000);

/// What a client without a share spends at most.
pub const MAX_COST_WITHOUT_SHARE: Micros = Micros(60_000);

/// The money that one client spends.
#[derive(Debug, Clone, Copy)]
pub struct ClientCost {
    /// The true cost of all its requests, if it comes to its end.
    pub whole: Micros,
    /// The true cost of its requests if it is interrupted, with the one in flight.
    pub interrupted: Micros,
    /// What its transcript tells about that.
    pub known: Cost,
}

impl ClientCost {
    /// A client that asks no model.
    pub const FREE: Self =
        Self { whole: Micros::ZERO, interrupted: Micros::ZERO, known: Cost::Free };

    /// Draws the bill of a client that reports what `reply` says.
    pub fn of(dice: &mut Dice, request: TurnRequest<'_>, reply: &Reply) -> Self {
        let (known, interrupted) = interrupted(dice, request.cap);
        Self { whole: whole(dice, request.cap, reply), interrupted, known }
    }
}

/// The true cost behind the cost that a client reports at its end.
fn whole(dice: &mut Dice, share: Option<Micros>, reply: &Reply) -> Micros {
    let most = most(share);
    let (Reply::Says(_, told)
    | Reply::SaysCapped(_, told)
    | Reply::Denied(_, told)
    | Reply::Fails(_, told)
    | Reply::Answers(_, _, told)
    | Reply::Capped(told)) = reply
    else {
        return Micros::ZERO;
    };
    let truth = match told {
        Cost::Free => Micros::ZERO,
        Cost::Reported(amount) => *amount,
        // An estimate is rounded up.
        Cost::Estimated(amount) => amount.minus(Micros(dice.below(1 + amount.0 / 4))),
        Cost::AtLeast(known) => known.plus(Micros(dice.below(1 + most))),
        Cost::Unknown => Micros(dice.below(1 + most)),
    };
    match (reply, share) {
        // A capped client has spent its share, whatever it reports.
        (Reply::Capped(_) | Reply::SaysCapped(..), Some(share)) if truth < share => {
            share.plus(Micros(dice.below(MAX_REQUEST_COST.0)))
        }
        // Whatever a client reports, it stops one request beyond its share.
        (_, Some(_)) => truth.min(Micros(most)),
        (_, None) => truth,
    }
}

/// What is known of a client that is interrupted, and what it really spent.
///
/// The request in flight is charged like the most expensive one before it; a simulated request is not more
/// expensive than that. Without an answer nothing is known.
fn interrupted(dice: &mut Dice, share: Option<Micros>) -> (Cost, Micros) {
    let mut answered = Micros::ZERO;
    let mut largest = Micros::ZERO;
    for _ in 0..dice.below(4) {
        let request = Micros(1 + dice.below(MAX_REQUEST_COST.0));
        if share.is_some_and(|share| answered.plus(request) >= share) {
            break;
        }
        (answered, largest) = (answered.plus(request), largest.max(request));
    }
    if answered == Micros::ZERO {
        return (Cost::Unknown, Micros(dice.below(MAX_REQUEST_COST.0)));
    }
    let in_flight = Micros(dice.below(1 + largest.0));
    let known = match dice.below(3) {
        0 => Cost::AtLeast(answered),
        _ => Cost::Estimated(answered.plus(largest)),
    };
    (known, answered.plus(in_flight))
}

fn most(share: Option<Micros>) -> u64 {
    share
        .map_or(MAX_COST_WITHOUT_SHARE, |share| {
            share.plus(MAX_REQUEST_COST).min(MAX_COST_WITHOUT_SHARE)
        })
        .0
}
