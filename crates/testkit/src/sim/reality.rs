//! The world outside the driver: clients that go on when their owner dies, and a clock.
//!
//! It survives every crash of the simulated machine, and it remembers what was really done, so that
//! it can tell when the journal lies.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use raymond_core::budget::Cost;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::TurnId;
use raymond_core::protocol::{Reading, Source};
use raymond_core::run::input::{Finished, Interruption, Outcome};
use raymond_core::run::{Effect, Record, Run};
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::{Hash, Value};
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_engine::driver::World;
use raymond_store::Blobs;

use crate::dice::Dice;

use super::auditor::{Auditor, Violation};
use super::coverage::{Column, Coverage};
use super::plan::Plan;
use super::speech::{Place, Speech, Voice};

/// One attempt at one turn.
pub type Attempt = (TurnId, u32);

/// What a started turn will come to.
#[derive(Debug, Clone)]
pub struct Fate {
    /// What happens.
    pub speech: Speech,
    /// Where it works.
    pub cwd: String,
    /// Who speaks.
    pub source: Source,
}

/// Everything outside.
#[derive(Debug)]
pub struct Reality {
    /// The time.
    pub now: Timestamp,
    /// What agents say.
    pub voice: Box<dyn Voice>,
    /// Chooses delays.
    pub dice: Dice,
    /// Where things go wrong.
    pub plan: Plan,
    /// What happens next, by time and order.
    pub agenda: BTreeMap<(Timestamp, u64), Attempt>,
    order: u64,
    /// What started turns come to.
    pub fates: BTreeMap<Attempt, Fate>,
    /// Effects that were released.
    pub released: BTreeSet<Attempt>,
    /// The books.
    pub auditor: Auditor,
    /// The hash of every acknowledged record.
    pub acknowledged: Vec<Hash>,
    /// The run as it was when the last record was acknowledged.
    pub last: Run,
    /// What was met.
    pub coverage: Coverage,
    /// The last record that was acknowledged.
    pub last_record: Option<Record>,
    /// Something that must never happen.
    pub violation: Option<Violation>,
    /// Whether the machine is down.
    pub down: bool,
}

impl Reality {
    /// A world at peace.
    pub fn new(voice: Box<dyn Voice>, seed: u64, plan: Plan) -> Self {
        Self {
            now: Timestamp(1_700_000_000_000),
            voice,
            dice: Dice::new(seed ^ 0xc10c),
            plan,
            agenda: BTreeMap::new(),
            order: 0,
            fates: BTreeMap::new(),
            released: BTreeSet::new(),
            auditor: Auditor::default(),
            acknowledged: Vec::new(),
            last: Run::default(),
            coverage: Coverage::default(),
            last_record: None,
            violation: None,
            down: false,
        }
    }

    fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        }
    }

    fn start(&mut self, attempt: Attempt, place: &Place<'_>, cwd: String) {
        let speech = self.voice.speech(place, attempt.1, self.now);
        let source =
            if place.state.ends_with(".md") { Source::Message } else { Source::Script };
        let delay = match speech {
            // The executor's idle clock ends it.
            Speech::Hangs => Span::minutes(30),
            _ => Span(self.dice.below(5_000)),
        };
        self.order += 1;
        self.agenda.insert((self.now + delay, self.order), attempt.clone());
        self.released.insert(attempt.clone());
        self.fates.insert(attempt, Fate { speech, cwd, source });
    }

    /// The turn is ended by its owner; it may have been faster.
    fn cancel(&mut self, attempt: &Attempt) {
        let Some(fate) = self.fates.get_mut(attempt) else { return };
        if !self.dice.percent(20) {
            fate.speech = Speech::Hangs;
        }
        self.agenda.retain(|_, waiting| waiting != attempt);
        self.order += 1;
        self.agenda.insert((self.now + Span(10), self.order), attempt.clone());
    }

    /// What the executor reports about an attempt that is over. A large text is stored first.
    pub fn outcome(&self, attempt: &Attempt, blobs: &Blobs) -> Result<Outcome, String> {
        let Some(fate) = self.fates.get(attempt) else { return Err("no such turn".to_owned()) };
        Ok(match &fate.speech {
            Speech::Says(text, cost) => {
                Outcome::Finished(Box::new(finished(text, *cost, fate, blobs)?))
            }
            Speech::Capped(cost) => Outcome::Capped { cost: *cost },
            Speech::Fails(failure, cost) => {
                Outcome::Failed { failure: failure.clone(), cost: *cost }
            }
            Speech::Hangs if self.stopping() => Outcome::Interrupted {
                by: Interruption::Stop,
                cost: unknown(fate.source),
                progressed: false,
            },
            Speech::Hangs => Outcome::Failed {
                failure: TurnFailure::Timeout { clock: Clock::Idle, after: Span::minutes(30) },
                cost: unknown(fate.source),
            },
        })
    }

    fn stopping(&self) -> bool {
        matches!(self.last.phase, raymond_core::run::Phase::Stopping(_))
    }
}

fn unknown(source: Source) -> Cost {
    match source {
        Source::Message => Cost::Unknown,
        Source::Script => Cost::Free,
    }
}

fn finished(text: &str, cost: Cost, fate: &Fate, blobs: &Blobs) -> Result<Finished, String> {
    let mut put = |bytes: &[u8]| {
        let stored = blobs.put(bytes).map_err(|error| error.to_string())?;
        let hash = Hash::of(bytes);
        if stored == hash.as_str() { Ok(hash) } else { Err("wrong hash".to_owned()) }
    };
    let reading = Reading::of(text, fate.source, &mut put)?;
    let directories = reading
        .tags
        .iter()
        .filter_map(|tag| tag.cd())
        .filter(|cd| !cd.starts_with("/nowhere"))
        .map(|cd| {
            let found =
                if cd.starts_with('/') { cd.to_owned() } else { format!("{}/{cd}", fate.cwd) };
            (cd.to_owned(), found)
        })
        .collect();
    Ok(Finished {
        text: Value::keep(text, &mut put)?,
        reading,
        directories,
        cost,
        session: None,
        stderr: String::new(),
        denied: Vec::new(),
        warnings: Vec::new(),
    })
}

/// The world as the driver sees it.
#[derive(Debug, Clone)]
pub struct Window(pub Rc<RefCell<Reality>>);

impl World for Window {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        let reality = &mut *self.0.borrow_mut();
        let verdict = reality.auditor.record(run, record);
        reality.judge(verdict);
        reality.coverage.note(record, Column::Seen);
        reality.last = run.clone();
        reality.last_record = Some(record.clone());
    }

    fn release(&mut self, run: &Run, _: &Definition, effect: Effect) {
        let reality = &mut *self.0.borrow_mut();
        if reality.down {
            return;
        }
        if reality.plan.release() {
            reality.down = true;
            // Half of the time the effect still happened.
            if reality.dice.percent(50) {
                return;
            }
        }
        let verdict = reality.auditor.effect(&effect);
        reality.judge(verdict);
        match effect {
            Effect::Prompt(prompt) => {
                let turn = &prompt.turn;
                let place = Place {
                    agent: turn.agent.as_str(),
                    state: prompt.state.as_str(),
                    count: prompt.count,
                    turn: turn.turn,
                };
                reality.start((turn.clone(), prompt.attempt), &place, prompt.cwd.clone());
            }
            Effect::Script(script) => {
                let turn = &script.turn;
                let visits = run.agents.get(&turn.agent).map(|agent| &agent.visits);
                let count = visits.and_then(|visits| visits.get(&script.state)).copied();
                let place = Place {
                    agent: turn.agent.as_str(),
                    state: script.state.as_str(),
                    count: count.unwrap_or(1),
                    turn: turn.turn,
                };
                reality.start((turn.clone(), script.attempt), &place, script.cwd.clone());
            }
            Effect::Cancel { turn, attempt } => reality.cancel(&(turn, attempt)),
            Effect::Finish => {}
        }
    }
}
