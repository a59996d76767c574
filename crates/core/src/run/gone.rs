//! What records that are cut away leave behind: the run forgets them, and what they cost it must not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::apply::apply;
use super::effect::in_flight;
use super::{Event, Record, Run, Settings};
use crate::budget::{Basis, Charge, Cost, Micros};
use crate::desk::share::charge;
use crate::desk::{Lane, Phase, Turn};
use crate::ids::TurnId;

/// What records that are gone had cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gone {
    /// What turns were charged.
    pub amount: Micros,
    /// How many of them could not be priced. A record that cannot be read may have held one.
    pub unpriced: u64,
}

impl Gone {
    /// Whether it is worth no word.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, more: Self) {
        self.amount = self.amount.plus(more.amount);
        self.unpriced = self.unpriced.saturating_add(more.unpriced);
    }
}

impl From<Charge> for Gone {
    fn from(charge: Charge) -> Self {
        let unpriced = u64::from(charge.basis == Basis::Unpriced);
        Self { amount: charge.amount, unpriced }
    }
}

/// A run as it went on in records that are cut away.
#[derive(Debug)]
pub struct Abandoned<'a> {
    kept: &'a Run,
    run: Run,
    /// What only records say that nobody vouches for.
    doubtful: Gone,
    /// What they started, and do not tell the end of, with its share.
    unended: BTreeMap<(TurnId, u32), Micros>,
    again: BTreeSet<TurnId>,
    /// The lowest cap that only records say which nobody vouches for.
    lowest: Option<Micros>,
}

impl<'a> Abandoned<'a> {
    /// The run that is kept.
    pub fn new(kept: &'a Run) -> Self {
        let (doubtful, unended, again) = (Gone::default(), BTreeMap::new(), BTreeSet::new());
        Self { kept, run: kept.clone(), doubtful, unended, again, lowest: None }
    }

    /// Goes on by a record.
    pub fn follow(&mut self, record: &Record) {
        for event in events(record) {
            apply(&mut self.run, event);
            self.look_for_ends(event);
        }
    }

    /// Goes on past a record whose sum is wrong, or which follows such a one: it may be of another run. What
    /// it says that it cost is believed, and that it may cost less; nothing else.
    pub fn doubt(&mut self, record: &Record) {
        for event in events(record) {
            self.look_for_ends(event);
            match (ended(event), event) {
                (Some((turn, attempt, charge)), _) => {
                    self.unended.remove(&(turn.clone(), attempt));
                    self.doubtful.add(charge.into());
                }
                (None, Event::TurnStarted { turn, attempt, share: Some(share), .. }) => {
                    self.unended.insert((turn.clone(), *attempt), *share);
                }
                (None, Event::RunRewound { gone, governed, .. }) => {
                    self.doubtful.add(*gone);
                    self.limit(governed.as_deref());
                }
                (None, Event::RunResumed { settings }) => self.limit(Some(settings)),
                (None, _) => {}
            }
        }
    }

    /// Goes on past a record that cannot be read.
    pub fn miss(&mut self) {
        self.doubtful.add(Gone { amount: Micros::ZERO, unpriced: 1 });
    }

    /// The turns in flight in the kept run whose ends are cut away: they are done again.
    pub fn again(&self) -> Vec<TurnId> {
        self.again.iter().cloned().collect()
    }

    fn limit(&mut self, governed: Option<&Settings>) {
        let caps = [self.lowest, governed.and_then(|settings| settings.budget)];
        self.lowest = caps.into_iter().flatten().min();
    }

    /// What governed it at last, if that is not what governs the kept run: a cap that was lowered must not be
    /// raised by forgetting it.
    pub fn governed(&self) -> Option<Box<Settings>> {
        let mut settings = self.run.settings.clone();
        settings.budget = [settings.budget, self.lowest].into_iter().flatten().min();
        (settings != self.kept.settings).then(|| Box::new(settings))
    }

    /// What it had cost. A turn in flight that has no end is not among it where the kept run knows it, and
    /// will look what became of it.
    pub fn gone(&self) -> Gone {
        let Self { kept, run, .. } = self;
        let mut gone = self.doubtful;
        gone.add(Gone {
            amount: run.spent.minus(kept.spent),
            unpriced: run.unpriced.saturating_sub(kept.unpriced),
        });
        for turn in in_flight(run).filter(|turn| !self.keeps(turn)) {
            if let (Lane::Prompt(_), Phase::Running { share }) = (&turn.lane, &turn.phase) {
                gone.add(charge(run, Cost::Unknown, *share).into());
            }
        }
        for share in self.unended.values() {
            gone.add(charge(run, Cost::Unknown, Some(*share)).into());
        }
        gone
    }

    fn keeps(&self, turn: &Turn) -> bool {
        in_flight(self.kept).any(|kept| kept.id == turn.id && kept.attempt == turn.attempt)
    }

    /// An agent that starts another turn has ended the one before.
    fn look_for_ends(&mut self, event: &Event) {
        let of = match (ended(event), event) {
            (Some((turn, attempt, _)), _) => {
                in_flight(self.kept).find(|kept| kept.id == *turn && kept.attempt == attempt)
            }
            (None, Event::TurnStarted { turn, attempt, .. }) => in_flight(self.kept).find(|kept| {
                kept.id.agent == turn.agent && (&kept.id, kept.attempt) != (turn, *attempt)
            }),
            (None, _) => None,
        };
        self.again.extend(of.map(|turn| turn.id.clone()));
    }
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// The attempt that ends with an event, and what it is charged.
fn ended(event: &Event) -> Option<(&TurnId, u32, Charge)> {
    if let Event::TurnSettled { turn, attempt, charge, .. }
    | Event::TurnContinues { turn, attempt, charge, .. }
    | Event::TurnFailed { turn, attempt, charge, .. }
    | Event::TurnInterrupted { turn, attempt, charge, .. } = event
    {
        return Some((turn, *attempt, *charge));
    }
    None
}
