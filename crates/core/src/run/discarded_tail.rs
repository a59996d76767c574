//! A run as it continued in records that a rewind discards.

use std::collections::{BTreeMap, BTreeSet};

use super::apply::apply;
use super::discarded::{Attempt, DiscardedCost};
use super::effect::in_flight;
use super::transcript_cost::TranscriptCost;
use super::{Event, Record, Run, Settings};
use crate::budget::{Charge, Cost, Micros};
use crate::ids::{AgentId, TurnId};
use crate::scheduler::{Lane, Phase, Turn};

/// A run as it went on in records that are cut away.
#[derive(Debug)]
pub struct DiscardedTail<'a> {
    kept: &'a Run,
    run: Run,
    /// What only records say that nobody vouches for.
    doubtful: DiscardedCost,
    /// What they started, and do not tell the end of, with its share.
    unended: BTreeMap<Attempt, Micros>,
    again: BTreeSet<TurnId>,
    /// The lowest cap that only records say which nobody vouches for.
    lowest: Option<Micros>,
    /// What records that somebody vouches for charged to visits that are kept.
    paid: DiscardedCost,
    /// What transcripts say that attempts cost whose end no record tells.
    transcripts: BTreeMap<Attempt, TranscriptCost>,
}

impl<'a> DiscardedTail<'a> {
    /// The run that is kept.
    pub fn new(kept: &'a Run) -> Self {
        let (doubtful, unended, again) =
            (DiscardedCost::default(), BTreeMap::new(), BTreeSet::new());
        let (paid, transcripts) = (DiscardedCost::default(), BTreeMap::new());
        let run = kept.clone();
        Self { kept, run, doubtful, unended, again, lowest: None, paid, transcripts }
    }

    /// The same, knowing what transcripts say that attempts cost: those that no kept record starts, and
    /// those that are in flight in the kept run.
    #[must_use]
    pub fn knowing(self, transcripts: BTreeMap<Attempt, TranscriptCost>) -> Self {
        Self { transcripts, ..self }
    }

    /// Goes on by a record.
    pub fn follow(&mut self, record: &Record) {
        for event in events(record) {
            self.look_for_ends(event);
            self.follow_payment(event);
            apply(&mut self.run, event);
        }
    }

    fn follow_payment(&mut self, event: &Event) {
        if let Some((turn, attempt, charge)) = ended(event) {
            self.transcripts.remove(&(turn.clone(), attempt));
            if self.keeps_visit(&turn.agent, turn.visit) {
                self.paid.pay(&turn.agent, charge.amount);
            }
        }
        if let Event::RunRewound { discarded, .. } = event {
            for (agent, amount) in &discarded.visits {
                let visit = self.run.agents.get(agent).map(|agent| agent.visit.number);
                if visit.is_some_and(|visit| self.keeps_visit(agent, visit)) {
                    self.paid.pay(agent, *amount);
                }
            }
        }
    }

    /// Goes on past a record whose sum is wrong, or which follows such a one: it may be of another run. What
    /// it says that it cost is believed, and that it may cost less; nothing else.
    pub fn doubt(&mut self, record: &Record) {
        for event in events(record) {
            self.look_for_ends(event);
            match (ended(event), event) {
                (Some((turn, attempt, charge)), _) => {
                    let attempt = (turn.clone(), attempt);
                    let share = self.unended.remove(&attempt).or_else(|| self.kept_share(&attempt));
                    let told = self.transcripts.remove(&attempt).map(|told| told.known(share));
                    // A record that nobody vouches for does not make cheaper what a transcript tells.
                    let amount = charge.amount.max(told.unwrap_or_default());
                    let discarded = self.charged(turn, Charge { amount, ..charge });
                    self.doubtful.add(&discarded);
                }
                (None, Event::TurnStarted { turn, attempt, share: Some(share), .. }) => {
                    self.unended.insert((turn.clone(), *attempt), *share);
                }
                (None, Event::RunRewound { discarded, governed, .. }) => {
                    self.doubtful.add(discarded);
                    self.limit(governed.as_deref());
                }
                (None, Event::RunResumed { settings }) => self.limit(Some(settings)),
                (None, _) => {}
            }
        }
    }

    /// Goes on past a record that cannot be read.
    pub fn miss(&mut self) {
        self.doubtful.add(&DiscardedCost { unpriced: 1, ..DiscardedCost::default() });
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
    pub fn discarded(&self) -> DiscardedCost {
        let Self { kept, run, .. } = self;
        let mut discarded = self.doubtful.clone();
        discarded.add(&self.paid);
        discarded.add(&DiscardedCost {
            amount: run.spent.minus(kept.spent),
            unpriced: run.unpriced.saturating_sub(kept.unpriced),
            ..DiscardedCost::default()
        });
        for ((turn, _), (told, share)) in self.endless() {
            discarded.add(&self.charged(&turn, told.charge(run, share)));
        }
        discarded
    }

    /// The share of a turn that is in flight in the kept run.
    fn kept_share(&self, attempt: &Attempt) -> Option<Micros> {
        let turn = in_flight(self.kept).find(|turn| is_attempt(turn, attempt))?;
        if let Phase::Running { share } = turn.phase { share } else { None }
    }

    /// The attempts whose end no record tells, each with its cost as its transcript says, and its share.
    fn endless(&self) -> BTreeMap<Attempt, (TranscriptCost, Option<Micros>)> {
        let is_left = |attempt: &Attempt| {
            let is_kept = in_flight(self.kept).any(|turn| is_attempt(turn, attempt));
            !is_kept || self.again.contains(&attempt.0)
        };
        let told = self.transcripts.iter().filter(|(attempt, _)| is_left(attempt));
        let shared = |attempt: &Attempt, told: &TranscriptCost| (*told, self.kept_share(attempt));
        let mut endless: BTreeMap<Attempt, (TranscriptCost, Option<Micros>)> =
            told.map(|(attempt, told)| (attempt.clone(), shared(attempt, told))).collect();
        let unended = self.unended.iter().map(|(attempt, share)| (attempt.clone(), Some(*share)));
        for (attempt, share) in unended.chain(self.paid_in_flight()) {
            endless.entry(attempt).or_insert_with(|| (Cost::Unknown.into(), None)).1 = share;
        }
        endless
    }

    fn paid_in_flight(&self) -> impl Iterator<Item = (Attempt, Option<Micros>)> {
        let turns = in_flight(&self.run).filter(|turn| !self.keeps(turn));
        turns.filter_map(|turn| match (&turn.lane, &turn.phase) {
            (Lane::Prompt(_), Phase::Running { share }) => {
                Some(((turn.id.clone(), turn.attempt), *share))
            }
            _ => None,
        })
    }

    /// What a charge of a turn leaves behind. The budget of a visit that is kept must not be renewed.
    fn charged(&self, turn: &TurnId, charge: Charge) -> DiscardedCost {
        let mut discarded = DiscardedCost::from(charge);
        if self.keeps_visit(&turn.agent, turn.visit) {
            discarded.pay(&turn.agent, charge.amount);
        }
        discarded
    }

    fn keeps_visit(&self, agent: &AgentId, visit: u32) -> bool {
        self.kept.agents.get(agent).is_some_and(|agent| agent.visit.number == visit)
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

fn is_attempt(turn: &Turn, (id, attempt): &Attempt) -> bool {
    turn.id == *id && turn.attempt == *attempt
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
