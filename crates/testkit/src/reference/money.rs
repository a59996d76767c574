//! The rule for the charge of a turn, written a second time from the specification.

use raymond_core::budget::{Basis, Charge, Cost, Micros};

/// The facts about a turn that decide its charge.
#[derive(Debug, Clone, Copy)]
pub struct Paid {
    pub cost: Cost,
    /// The budget share of the turn.
    pub share: Option<Micros>,
    /// Whether it stopped because its share was used up.
    pub capped: bool,
    pub strict: bool,
    /// The charge of the run's most expensive turn so far.
    pub most_expensive: Micros,
}

pub fn charge(paid: Paid) -> Charge {
    let known = match paid.cost {
        Cost::Free | Cost::Unknown => Micros::ZERO,
        Cost::Reported(amount) | Cost::Estimated(amount) | Cost::AtLeast(amount) => amount,
    };
    // The three questions of the table in docs/budget.md, asked one after the other. Core matches
    // on all combinations instead, so that one mistake is not made twice.
    let is_exact = matches!(paid.cost, Cost::Free | Cost::Reported(_));
    let is_complete = is_exact || matches!(paid.cost, Cost::Estimated(_));
    let mut amount = known;
    let mut basis = match paid.cost {
        Cost::Free => Basis::Free,
        Cost::Reported(_) => Basis::Reported,
        Cost::Estimated(_) | Cost::AtLeast(_) | Cost::Unknown => Basis::Estimated,
    };
    let strict = paid.share.filter(|_| paid.strict && !is_exact);
    if let Some(share) = strict {
        amount = amount.max(share);
    } else if !is_complete {
        if paid.most_expensive > known {
            amount = paid.most_expensive;
        } else {
            basis = Basis::Unpriced;
        }
    }
    // Last, because it is a lower limit for every row of the table.
    match paid.share.filter(|share| paid.capped && amount < *share) {
        Some(share) => Charge { amount: share, basis: Basis::Estimated },
        None => Charge { amount, basis },
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::run::share;
    use raymond_core::run::{Run, Settings};

    use super::*;
    use crate::dice::Dice;

    #[test]
    fn core_charges_what_the_reference_charges() {
        let mut dice = Dice::new(21);
        for _ in 0..20_000 {
            let mut amount = || Micros(*dice.pick(&[0, 1, 2, 3, 1_000_000]));
            let (known, share, most_expensive) = (amount(), amount(), amount());
            let cost = *dice.pick(&[
                Cost::Free,
                Cost::Reported(known),
                Cost::Estimated(known),
                Cost::AtLeast(known),
                Cost::Unknown,
            ]);
            let share = *dice.pick(&[None, Some(share)]);
            let (capped, strict) = (dice.percent(50), dice.percent(50));
            let settings = Settings { strict_budget: strict, ..Settings::default() };
            let run = Run { settings, most_expensive, ..Run::default() };
            let found = if capped {
                share::charge_capped(&run, cost, share)
            } else {
                share::charge(&run, cost, share)
            };
            let paid = Paid { cost, share, capped, strict, most_expensive };
            assert_eq!(found, charge(paid), "{paid:?}");
        }
    }
}
