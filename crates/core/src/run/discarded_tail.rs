//! Reads the records that a rewind discards, to find out what must outlive them.
//!
//! These are the costs, the settings (a lowered cap must stay lowered), and the turns in flight
//! that have to be done again. Records with a valid checksum are followed like any others. From
//! damaged records, and from all records after them, only costs and lower caps are taken, because
//! they may belong to another run. The rewind itself is decided in [`crate::decide`].

use std::collections::{BTreeMap, BTreeSet};

use super::apply::apply;
use super::discarded::DiscardedCost;
use super::effect::in_flight;
use super::transcript_cost::TranscriptCost;
use super::{Event, Record, Run, Settings};
use crate::budget::{Charge, Cost, Micros};
use crate::ids::{AgentId, TurnAttempt, TurnId};
use crate::scheduler::{Lane, Turn, TurnPhase};

/// A run as it continued in the discarded records.
#[derive(Debug)]
pub struct DiscardedTail<'a> {
    kept: &'a Run,
    run: Run,
    /// Costs that only damaged records report.
    untrusted: DiscardedCost,
    /// Attempts that damaged records start but do not end, with their shares.
    unended: BTreeMap<TurnAttempt, Micros>,
    /// Turns in flight in the kept run whose ends are discarded.
    to_repeat: BTreeSet<TurnId>,
    /// The lowest cap that only damaged records report.
    lowest: Option<Micros>,
    /// Charges to kept visits, from intact records.
    paid: DiscardedCost,
    /// Costs according to transcripts, for attempts whose end no record contains.
    transcripts: BTreeMap<TurnAttempt, TranscriptCost>,
}

impl<'a> DiscardedTail<'a> {
    pub fn new(kept: &'a Run) -> Self {
        let (untrusted, unended, to_repeat) =
            (DiscardedCost::default(), BTreeMap::new(), BTreeSet::new());
        let (paid, transcripts) = (DiscardedCost::default(), BTreeMap::new());
        let run = kept.clone();
        Self { kept, run, untrusted, unended, to_repeat, lowest: None, paid, transcripts }
    }

    /// Adds the costs that transcripts report: for attempts that no kept record starts, and for
    /// attempts in flight in the kept run.
    #[must_use]
    pub fn with_transcript_costs(self, transcripts: BTreeMap<TurnAttempt, TranscriptCost>) -> Self {
        Self { transcripts, ..self }
    }

    /// Follows an intact record.
    pub fn follow(&mut self, record: &Record) {
        for event in events(record) {
            self.look_for_ends(event);
            self.follow_payment(event);
            apply(&mut self.run, event);
        }
    }

    fn follow_payment(&mut self, event: &Event) {
        if let Some((attempt, charge)) = ended(event) {
            // The record has the charge: the same cost in the transcript must not count again.
            self.transcripts.remove(&attempt);
            let turn = &attempt.turn;
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

    /// Reads a record with a bad checksum, or one after it. Takes its costs and lower caps, and
    /// ignores everything else, because the record may belong to another run.
    pub fn read_untrusted(&mut self, record: &Record) {
        for event in events(record) {
            self.look_for_ends(event);
            match (ended(event), event) {
                (Some((attempt, charge)), _) => {
                    let share = self.unended.remove(&attempt).or_else(|| self.kept_share(&attempt));
                    let known =
                        self.transcripts.remove(&attempt).map(|transcript| transcript.known(share));
                    // A damaged record must not make an attempt cheaper than its transcript says.
                    let amount = charge.amount.max(known.unwrap_or_default());
                    let discarded = self.charged(&attempt.turn, Charge { amount, ..charge });
                    self.untrusted.add(&discarded);
                }
                (None, Event::TurnStarted { turn, attempt, share: Some(share), .. }) => {
                    let attempt = TurnAttempt { turn: turn.clone(), number: *attempt };
                    self.unended.insert(attempt, *share);
                }
                (None, Event::RunRewound { discarded, governed, .. }) => {
                    self.untrusted.add(discarded);
                    self.limit(governed.as_deref());
                }
                (None, Event::RunResumed { settings }) => self.limit(Some(settings)),
                (None, _) => {}
            }
        }
    }

    /// Counts a record that cannot be read: it may have contained a turn.
    pub fn count_unreadable(&mut self) {
        self.untrusted.add(&DiscardedCost { unpriced: 1, ..DiscardedCost::default() });
    }

    /// Returns the turns in flight in the kept run whose ends are discarded: they are done again.
    pub fn turns_to_repeat(&self) -> Vec<TurnId> {
        self.to_repeat.iter().cloned().collect()
    }

    fn limit(&mut self, governed: Option<&Settings>) {
        // A missing cap limits nothing, so it never is the lowest.
        let caps = [self.lowest, governed.and_then(|settings| settings.budget)];
        self.lowest = caps.into_iter().flatten().min();
    }

    /// Returns the last settings, if they differ from those of the kept run. A rewind must not
    /// raise a cap that was lowered.
    pub fn governed(&self) -> Option<Box<Settings>> {
        let mut settings = self.run.settings.clone();
        settings.budget = [settings.budget, self.lowest].into_iter().flatten().min();
        (settings != self.kept.settings).then(|| Box::new(settings))
    }

    /// Returns the cost of the discarded records. A turn in flight that the kept run knows is not
    /// included, because the next owner finds out its outcome.
    pub fn discarded(&self) -> DiscardedCost {
        let Self { kept, run, .. } = self;
        let mut discarded = self.untrusted.clone();
        discarded.add(&self.paid);
        discarded.add(&DiscardedCost {
            amount: run.spent.minus(kept.spent),
            unpriced: run.unpriced.saturating_sub(kept.unpriced),
            ..DiscardedCost::default()
        });
        for (attempt, (known, share)) in self.without_end() {
            discarded.add(&self.charged(&attempt.turn, known.charge(run, share)));
        }
        discarded
    }

    /// Returns the share of an attempt that is in flight in the kept run.
    fn kept_share(&self, attempt: &TurnAttempt) -> Option<Micros> {
        let turn = in_flight(self.kept).find(|turn| is_attempt(turn, attempt))?;
        if let TurnPhase::Running { share } = turn.phase { share } else { None }
    }

    /// Returns the attempts whose end no record contains, each with its cost by transcript and its
    /// share.
    fn without_end(&self) -> BTreeMap<TurnAttempt, (TranscriptCost, Option<Micros>)> {
        let is_left = |attempt: &TurnAttempt| {
            // The next owner finds out how a kept turn ended, unless a discarded record had its
            // end.
            let is_kept = in_flight(self.kept).any(|turn| is_attempt(turn, attempt));
            !is_kept || self.to_repeat.contains(&attempt.turn)
        };
        let known = self.transcripts.iter().filter(|(attempt, _)| is_left(attempt));
        let shared =
            |attempt: &TurnAttempt, known: &TranscriptCost| (*known, self.kept_share(attempt));
        let mut without_end: BTreeMap<TurnAttempt, (TranscriptCost, Option<Micros>)> =
            known.map(|(attempt, known)| (attempt.clone(), shared(attempt, known))).collect();
        let unended = self.unended.iter().map(|(attempt, share)| (attempt.clone(), Some(*share)));
        for (attempt, share) in unended.chain(self.paid_in_flight()) {
            // A transcript does not know the share, which a strict budget charges.
            without_end.entry(attempt).or_insert_with(|| (Cost::Unknown.into(), None)).1 = share;
        }
        without_end
    }

    fn paid_in_flight(&self) -> impl Iterator<Item = (TurnAttempt, Option<Micros>)> {
        let turns = in_flight(&self.run).filter(|turn| !self.keeps(turn));
        turns.filter_map(|turn| match (&turn.lane, &turn.phase) {
            // Scripts cost nothing, so only the ends of prompts matter.
            (Lane::Prompt(_), TurnPhase::Running { share }) => Some((turn.attempt_id(), *share)),
            _ => None,
        })
    }

    /// Returns what a charge leaves behind: a kept visit must not get its budget back.
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

    /// Finds turns in flight in the kept run that end in this event. An agent that starts another
    /// turn has ended the earlier one.
    fn look_for_ends(&mut self, event: &Event) {
        let of = match (ended(event), event) {
            (Some((attempt, _)), _) => in_flight(self.kept).find(|kept| is_attempt(kept, &attempt)),
            (None, Event::TurnStarted { turn, attempt, .. }) => in_flight(self.kept).find(|kept| {
                kept.id.agent == turn.agent && (&kept.id, kept.attempt) != (turn, *attempt)
            }),
            (None, _) => None,
        };
        // A set, because the end and the start of the next turn name the same turn twice.
        self.to_repeat.extend(of.map(|turn| turn.id.clone()));
    }
}

fn is_attempt(turn: &Turn, attempt: &TurnAttempt) -> bool {
    turn.id == attempt.turn && turn.attempt == attempt.number
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// The attempt that ends with an event, and what it is charged.
fn ended(event: &Event) -> Option<(TurnAttempt, Charge)> {
    if let Event::TurnSettled { turn, attempt, charge, .. }
    | Event::TurnContinues { turn, attempt, charge, .. }
    | Event::TurnFailed { turn, attempt, charge, .. }
    | Event::TurnInterrupted { turn, attempt, charge, .. } = event
    {
        return Some((TurnAttempt { turn: turn.clone(), number: *attempt }, *charge));
    }
    None
}
