//! The true cost of simulated clients, which no client reports and no journal contains.
//!
//! A client makes one request after the other. It learns the cost of a request from the answer, and
//! stops once it has spent its share, so it exceeds the share by at most one request. An
//! interrupted client has a request in flight, which costs money although its answer is lost. The
//! reported cost may be lower than the true cost, or missing. The auditor compares the charge with
//! the true cost.

use raymond_core::budget::{Cost, Micros};

use crate::dice::Dice;

use super::reply::{Reply, TurnRequest};

/// The highest cost of one request, in millionths of a dollar.
pub const MAX_REQUEST_COST: Micros = Micros(15_000);

/// The highest cost of a client without a share, in millionths of a dollar.
pub const MAX_COST_WITHOUT_SHARE: Micros = Micros(60_000);

#[derive(Debug, Clone, Copy)]
pub struct ClientCost {
    /// The true cost of all its requests, if it finishes.
    pub whole: Micros,
    /// The true cost if it is interrupted, with the request in flight.
    pub interrupted: Micros,
    /// The cost in its transcript if it is interrupted.
    pub known: Cost,
}

impl ClientCost {
    /// The cost of a client that uses no model.
    pub const FREE: Self =
        Self { whole: Micros::ZERO, interrupted: Micros::ZERO, known: Cost::Free };

    /// Draws the costs of a client that reports the cost in `reply`.
    pub fn of(dice: &mut Dice, request: TurnRequest<'_>, reply: &Reply) -> Self {
        // Both fates are drawn at the start, because only a later fault decides which one counts.
        let (known, interrupted) = interrupted(dice, request.cap);
        Self { whole: whole(dice, request.cap, reply), interrupted, known }
    }
}

/// Draws the true cost behind the reported cost.
fn whole(dice: &mut Dice, share: Option<Micros>, reply: &Reply) -> Micros {
    let limit = max_cost(share);
    let (Reply::Says(_, reported)
    | Reply::SaysCapped(_, reported)
    | Reply::Denied(_, reported)
    | Reply::Fails(_, reported)
    | Reply::Answers(_, _, reported)
    | Reply::Capped(reported)) = reply
    else {
        return Micros::ZERO;
    };
    let truth = match reported {
        Cost::Free => Micros::ZERO,
        Cost::Reported(amount) => *amount,
        // Raymond rounds estimates up.
        Cost::Estimated(amount) => amount.minus(Micros(dice.below(1 + amount.0 / 4))),
        // The unknown part can be as large as everything that the client may spend.
        Cost::AtLeast(known) => known.plus(Micros(dice.below(1 + limit))),
        Cost::Unknown => Micros(dice.below(1 + limit)),
    };
    match (reply, share) {
        // A capped client has spent its share, even if it reports less.
        (Reply::Capped(_) | Reply::SaysCapped(..), Some(share)) if truth < share => {
            share.plus(Micros(dice.below(MAX_REQUEST_COST.0)))
        }
        // A client stops at most one request beyond its share, even if it reports more.
        (_, Some(_)) => truth.min(Micros(limit)),
        (_, None) => truth,
    }
}

/// Draws the known and the true cost of an interrupted client.
///
/// The request in flight is charged like the most expensive one before it, and no simulated request
/// costs more. Without any answer nothing is known.
fn interrupted(dice: &mut Dice, share: Option<Micros>) -> (Cost, Micros) {
    let mut answered = Micros::ZERO;
    let mut largest = Micros::ZERO;
    for _ in 0..dice.below(4) {
        let request = Micros(1 + dice.below(MAX_REQUEST_COST.0));
        // A client that has spent its share has stopped, so it cannot be interrupted afterwards.
        if share.is_some_and(|share| answered.plus(request) >= share) {
            break;
        }
        (answered, largest) = (answered.plus(request), largest.max(request));
    }
    if answered == Micros::ZERO {
        return (Cost::Unknown, Micros(dice.below(MAX_REQUEST_COST.0)));
    }
    // At most the largest: Raymond prices a request in flight like the most expensive one before
    // it. A larger one would break the rule that an estimate covers the truth.
    let in_flight = Micros(dice.below(1 + largest.0));
    let known = match dice.below(3) {
        // Such as after unreadable output: then Raymond knows that something is missing.
        0 => Cost::AtLeast(answered),
        _ => Cost::Estimated(answered.plus(largest)),
    };
    (known, answered.plus(in_flight))
}

fn max_cost(share: Option<Micros>) -> u64 {
    share
        .map_or(MAX_COST_WITHOUT_SHARE, |share| {
            share.plus(MAX_REQUEST_COST).min(MAX_COST_WITHOUT_SHARE)
        })
        .0
}
