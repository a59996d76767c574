//! What was spent: every turn is charged once, by a rule that is written down here a second time.

use std::collections::BTreeMap;

use raymond_core::budget::{Basis, Charge, Cost, Micros};
use raymond_core::ids::TurnId;
use raymond_core::run::input::Outcome;
use raymond_core::run::warning::Warning;
use raymond_core::run::{Event, Input, Settings, Step};

use crate::reference::money::{Paid, charge};
use crate::sim::client_cost::{MAX_COST_WITHOUT_SHARE, MAX_REQUEST_COST};
use crate::violation::Violation;

/// The purse.
#[derive(Debug, Clone, Default)]
pub(super) struct Money {
    pub(super) spent: Micros,
    /// The true cost of everything that was charged.
    truth: Micros,
    /// How much of it the charges may leave out: see `covers`.
    hidden: Micros,
    /// What everything may really cost by now, apart from what is hidden: the cap that allowed the last
    /// turn to start, and one request for each turn that ended since. None without a cap.
    ceiling: Option<Micros>,
    /// What the most expensive turn was charged.
    most_expensive: Micros,
    /// The highest threshold that was warned of, by cap.
    warned: BTreeMap<Micros, u32>,
}

/// An attempt that is over, and its charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedAttempt<'a> {
    pub(super) turn: &'a TurnId,
    pub(super) attempt: u32,
    pub(super) report: Option<Report<'a>>,
    pub(super) share: Option<Micros>,
    pub(super) settings: &'a Settings,
    pub(super) charge: Charge,
    /// What it really cost; a client that was never started has spent nothing.
    pub(super) truth: Micros,
}

/// What the executor of a turn said about it.
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
    /// A turn is charged what its executor said, or what stands for it, and that covers the true cost.
    pub(super) fn charge(&mut self, ended: &EndedAttempt<'_>) -> Result<(), Violation> {
        let EndedAttempt { turn, attempt, share, settings, charge, truth, .. } = *ended;
        let report = ended.report.filter(|report| report.turn == turn && report.attempt == attempt);
        let report = report.ok_or_else(|| Violation(format!("nobody said how {turn} ended")))?;
        let expected = self.expected(report, share, settings);
        must!(charge == expected, "{turn} is charged {charge:?} instead of {expected:?}");
        let is_capped = report.outcome.is_capped();
        let charges_share = share.is_some() && (settings.strict_budget || is_capped);
        let hidden = covers(turn, report.cost, charge, truth, charges_share)?;
        self.spent = self.spent.plus(charge.amount);
        (self.truth, self.hidden) = (self.truth.plus(truth), self.hidden.plus(hidden));
        self.ceiling = self.ceiling.map(|ceiling| ceiling.plus(MAX_REQUEST_COST));
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

    /// A share is handed out: together with everything else it stays within the cap.
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
        let taken = self.spent.plus(reserved);
        must!(taken.plus(share) <= cap, "{turn} gets {share} with {taken} of {cap} taken");
        must!(share > Micros::ZERO, "{turn} gets nothing");
        let scraps = cap.minus(taken) < Micros::LEAST_SHARE;
        must!(!scraps || reserved == Micros::ZERO, "{turn} does not wait for what is in flight");
        self.ceiling = Some(cap);
        Ok(())
    }

    /// A resume may set another cap. What clients of the old one have spent is not undone: they may use
    /// up their shares until they are ended.
    pub(super) fn resumed(
        &mut self,
        cap: Option<Micros>,
        shares: impl Iterator<Item = Option<Micros>>,
    ) {
        let most = |share: Option<Micros>| share.unwrap_or(MAX_COST_WITHOUT_SHARE);
        let taken = shares.map(most).fold(self.spent, Micros::plus);
        self.ceiling = cap.map(|cap| cap.max(taken));
    }

    /// All charges cover what all requests really cost, and the cap bounds that.
    pub(super) fn covers_all(&self) -> Result<(), Violation> {
        let Self { spent, truth, hidden, ceiling, .. } = *self;
        must!(truth <= spent.plus(hidden), "really {truth}: {spent} charged, {hidden} hidden");
        let Some(ceiling) = ceiling else { return Ok(()) };
        must!(truth <= ceiling.plus(hidden), "really {truth}: {ceiling} allowed, {hidden} hidden");
        Ok(())
    }

    /// Half, four fifths and nearly all of a cap are said when they are passed, and once.
    pub(super) fn thresholds(
        &mut self,
        step: &Step,
        before: Micros,
        cap: Option<Micros>,
    ) -> Result<(), Violation> {
        let mut said = step.events.iter().filter_map(|event| match event {
            Event::Warned { warning: Warning::Spent { percent }, .. } => Some(*percent),
            _ => None,
        });
        let found = (said.next(), said.next());
        let Some(cap) = cap.filter(|cap| *cap > Micros::ZERO) else {
            must!(found.0.is_none(), "a threshold is passed without a cap");
            return Ok(());
        };
        let level = |spent: Micros| {
            let passed =
                |part: &&u32| u128::from(spent.0) * 100 >= u128::from(cap.0) * u128::from(**part);
            [50, 80, 95].iter().filter(passed).max().copied()
        };
        let (earlier, now) = (level(before), level(self.spent));
        let expected = now.filter(|_| now != earlier);
        must!(found == (expected, None), "warned of {found:?} instead of {expected:?}");
        if let Some(percent) = expected {
            let last = self.warned.insert(cap, percent).unwrap_or(0);
            must!(last < percent, "{percent} % of {cap} is warned of again");
        }
        Ok(())
    }
}

/// A charge covers the true cost. If a part is unknown, one request may be missing where at least the
/// whole share is charged; anywhere else the charge says that it is a guess. Returns what may be missing.
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
        return Ok(truth.minus(charge.amount));
    }
    let hidden = if charges_share { MAX_REQUEST_COST } else { Micros::ZERO };
    let covered = charge.amount.plus(hidden);
    must!(truth <= covered, "{turn} really cost {truth}, and is charged {charge:?}");
    Ok(hidden)
}
