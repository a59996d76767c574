//! The auditor's rules about money. Every turn is charged once, by the rule of
//! [`crate::reference::money`], and the charges cover the true costs.

use std::collections::BTreeMap;

use raymond_core::budget::{Basis, Charge, Cost, Micros};
use raymond_core::ids::TurnId;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::warning::Warning;
use raymond_core::run::{Event, Input, RecordStep, Settings};

use crate::reference::money::{Paid, charge};
use crate::sim::client_cost::{MAX_COST_WITHOUT_SHARE, MAX_REQUEST_COST};
use crate::violation::Violation;

#[derive(Debug, Clone, Default)]
pub(super) struct Money {
    pub(super) spent: Micros,
    /// The true cost of all charged attempts.
    truth: Micros,
    /// The part of the true cost that charges may miss: see `covers`.
    hidden: Micros,
    /// The upper limit of the true cost, without the hidden part: the cap under which the last turn
    /// started, plus one request for each turn that ended since. `None` without a cap.
    ceiling: Option<Micros>,
    /// The highest charge so far.
    most_expensive: Micros,
    /// The highest threshold that was reported, by cap.
    warned: BTreeMap<Micros, u32>,
}

/// An attempt that has ended, and its charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedAttempt<'a> {
    pub(super) turn: &'a TurnId,
    pub(super) attempt: u32,
    pub(super) report: Option<Report<'a>>,
    pub(super) share: Option<Micros>,
    pub(super) settings: &'a Settings,
    pub(super) charge: Charge,
    /// The true cost; zero for a client that was never started.
    pub(super) truth: Micros,
}

/// The executor's report about a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) turn: &'a TurnId,
    attempt: u32,
    cost: Cost,
    pub(super) outcome: &'a Outcome,
}

impl<'a> Report<'a> {
    pub(super) fn of(cause: &'a Input) -> Option<Self> {
        let Input::Settled { turn, attempt, outcome } = cause else { return None };
        Some(Self { turn, attempt: *attempt, cost: outcome.cost(), outcome })
    }
}

impl Money {
    /// Checks that the charge follows the rule and covers the true cost.
    pub(super) fn charge(&mut self, ended: &EndedAttempt<'_>) -> Result<(), Violation> {
        let EndedAttempt { turn, attempt, share, settings, charge, truth, .. } = *ended;
        // The cause of a step reports one turn. A charge for any other turn has no evidence.
        let report = ended.report.filter(|report| report.turn == turn && report.attempt == attempt);
        let report =
            report.ok_or_else(|| Violation(format!("{turn} is charged without a report")))?;
        let expected = self.expected(report, share, settings);
        must!(charge == expected, "{turn} is charged {charge:?} instead of {expected:?}");
        let is_capped = report.outcome.is_capped();
        // In these cases the rule charges at least the whole share, unless the cost is exact. So a
        // charge can miss only the one request beyond the share.
        let charges_share = share.is_some() && (settings.strict_budget || is_capped);
        let hidden = covers(turn, report.cost, charge, truth, charges_share)?;
        self.spent = self.spent.plus(charge.amount);
        (self.truth, self.hidden) = (self.truth.plus(truth), self.hidden.plus(hidden));
        // A client learns the price of a request from the answer, so each ended turn may exceed its
        // share by one request. This is the documented overshoot.
        self.ceiling = self.ceiling.map(|ceiling| ceiling.plus(MAX_REQUEST_COST));
        // After `expected`, because a turn is compared with the turns before it, not with itself.
        self.most_expensive = self.most_expensive.max(charge.amount);
        Ok(())
    }

    fn expected(&self, report: Report<'_>, share: Option<Micros>, settings: &Settings) -> Charge {
        charge(Paid {
            cost: report.cost,
            share,
            capped: report.outcome.is_capped(),
            strict: settings.strict_budget,
            most_expensive: self.most_expensive,
        })
    }

    /// Checks that a new share, with everything spent and reserved, fits the cap.
    pub(super) fn reserve(
        &mut self,
        turn: &TurnId,
        cap: Micros,
        share: Option<Micros>,
        reserved: Micros,
    ) -> Result<(), Violation> {
        let Some(share) = share else {
            return Err(Violation(format!("{turn} is paid and has no share")));
        };
        // Reserved money counts as spent: the client that has it may use it up at any moment.
        let taken = self.spent.plus(reserved);
        must!(taken.plus(share) <= cap, "{turn} gets {share} with {taken} of {cap} taken");
        must!(share > Micros::ZERO, "{turn} gets nothing");
        // A turn in flight may return a part of its share, so a turn waits for that part instead of
        // starting with less than the least share. If nothing is in flight, the turn gets the rest.
        let scraps = cap.minus(taken) < Micros::LEAST_SHARE;
        must!(!scraps || reserved == Micros::ZERO, "{turn} does not wait for what is in flight");
        // All shares fit below the cap now, so earlier overshoots are part of `taken` and need no
        // allowance of their own.
        self.ceiling = Some(cap);
        Ok(())
    }

    /// Applies the cap of a resume. Clients that started under the old cap may use up their shares
    /// until they are ended.
    pub(super) fn resumed(
        &mut self,
        cap: Option<Micros>,
        shares: impl Iterator<Item = Option<Micros>>,
    ) {
        // A client that started without a cap has no share. This constant bounds the known part of
        // its cost; an unknown part is hidden anyway.
        let limit = |share: Option<Micros>| share.unwrap_or(MAX_COST_WITHOUT_SHARE);
        let taken = shares.map(limit).fold(self.spent, Micros::plus);
        self.ceiling = cap.map(|cap| cap.max(taken));
    }

    /// Checks that all charges cover the true cost, and that the cap limits the true cost.
    pub(super) fn covers_all(&self) -> Result<(), Violation> {
        let Self { spent, truth, hidden, ceiling, .. } = *self;
        // Each charge alone may be a guess. The sum must still cover the truth, except for the
        // hidden part.
        must!(truth <= spent.plus(hidden), "really {truth}: {spent} charged, {hidden} hidden");
        let Some(ceiling) = ceiling else { return Ok(()) };
        must!(truth <= ceiling.plus(hidden), "really {truth}: {ceiling} allowed, {hidden} hidden");
        Ok(())
    }

    /// Checks that 50 %, 80 % and 95 % of a cap are each reported once, when they are reached.
    pub(super) fn thresholds(
        &mut self,
        step: &RecordStep,
        before: Micros,
        cap: Option<Micros>,
    ) -> Result<(), Violation> {
        let mut reported = step.events.iter().filter_map(|event| match event {
            Event::Warned { warning: Warning::Spent { percent }, .. } => Some(*percent),
            _ => None,
        });
        // Two are taken to notice a second warning: several thresholds passed at once give one
        // warning.
        let found = (reported.next(), reported.next());
        let Some(cap) = cap.filter(|cap| *cap > Micros::ZERO) else {
            must!(found.0.is_none(), "a threshold is passed without a cap");
            return Ok(());
        };
        let level = |spent: Micros| {
            let passed =
                // Multiplied instead of divided, so that no rounding hides the exact threshold, and
                // in 128 bits, because the products can exceed 64.
                |part: &&u32| u128::from(spent.0) * 100 >= u128::from(cap.0) * u128::from(**part);
            [50, 80, 95].iter().filter(passed).max().copied()
        };
        let (earlier, now) = (level(before), level(self.spent));
        let expected = now.filter(|_| now != earlier);
        must!(found == (expected, None), "warned of {found:?} instead of {expected:?}");
        if let Some(percent) = expected {
            // A resume may set another cap, which has thresholds of its own.
            let last = self.warned.insert(cap, percent).unwrap_or(0);
            must!(last < percent, "{percent} % of {cap} is warned of again");
        }
        Ok(())
    }
}

/// Checks that a charge covers the true cost, and returns the amount that may be missing.
///
/// If a part of the cost is unknown and at least the whole share is charged, one request may be
/// missing. Otherwise the charge must be marked as a guess.
fn covers(
    turn: &TurnId,
    cost: Cost,
    charge: Charge,
    truth: Micros,
    charges_share: bool,
) -> Result<Micros, Violation> {
    let is_known = matches!(cost, Cost::Free | Cost::Reported(_) | Cost::Estimated(_));
    if !is_known && !charges_share {
        let is_guess = matches!(charge.basis, Basis::Estimated | Basis::Unpriced);
        must!(is_guess, "{turn} is charged {charge:?}, and part of its cost is unknown");
        // `minus` stops at zero, so a guess that is too high does not pay for another turn's hidden
        // part.
        return Ok(truth.minus(charge.amount));
    }
    let hidden = if charges_share { MAX_REQUEST_COST } else { Micros::ZERO };
    let covered = charge.amount.plus(hidden);
    must!(truth <= covered, "{turn} really cost {truth}, and is charged {charge:?}");
    Ok(hidden)
}
