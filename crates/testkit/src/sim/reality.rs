//! The world outside the driver: clients that go on when their owner dies, and a clock.
//!
//! It survives every crash of the simulated machine, and it remembers what was really done, so that
//! it can tell when the journal lies.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use raymond_core::budget::Cost;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{AgentId, StateName, TurnId};
use raymond_core::protocol::{Reading, Source};
use raymond_core::run::input::{Finished, Interruption, Outcome};
use raymond_core::run::{Effect, Event, Input, Phase, Record, Run};
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::{Hash, Value};
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_engine::driver::{Head, World};
use raymond_store::Blobs;

use crate::dice::Dice;

use super::auditor::{Auditor, Violation};
use super::author::DIRECTORIES;
use super::coverage::{Column, Coverage};
use super::plan::{Plan, Point, Trouble};
use super::speech::{Place, Speech, Voice};
use super::story::Story;

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
    /// Whether its owner has ended it.
    pub cancelled: bool,
}

/// Everything outside.
#[derive(Debug)]
pub struct Reality {
    /// The time.
    pub now: Timestamp,
    /// What agents say.
    voice: Box<dyn Voice>,
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
    /// The bytes of every record that counts.
    pub acknowledged: Vec<Box<[u8]>>,
    /// Every record that counts.
    pub records: Vec<Record>,
    /// The run as it was when the last record was acknowledged.
    pub last: Run,
    /// What recoveries have read so far, and nothing else.
    pub read: Head,
    /// The attempts that it says were started.
    pub started: BTreeSet<Attempt>,
    /// The blobs that it names.
    pub blobs: BTreeSet<String>,
    /// The record that could not be written when the machine last went down.
    pub unwritten: Option<Record>,
    /// What was met.
    pub coverage: Coverage,
    /// Something that must never happen.
    pub violation: Option<Violation>,
    /// Whether the machine is down.
    pub down: bool,
    /// What went wrong last.
    pub hit: Option<(Trouble, Point)>,
    /// What is told of it.
    pub story: Story,
    /// Texts that could not be stored at first, and where that went wrong.
    pub unstored: BTreeMap<TurnId, Column>,
    /// Where each agent is.
    places: BTreeMap<AgentId, StateName>,
    /// Attempts that came to an end of their own, by turn.
    attempts: BTreeMap<TurnId, u32>,
    /// And by agent and state.
    heard: BTreeMap<(AgentId, StateName), usize>,
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
            records: Vec::new(),
            last: Run::default(),
            read: Head::unborn(),
            started: BTreeSet::new(),
            blobs: BTreeSet::new(),
            unwritten: None,
            coverage: Coverage::default(),
            violation: None,
            down: false,
            hit: None,
            story: Story::default(),
            unstored: BTreeMap::new(),
            places: BTreeMap::new(),
            attempts: BTreeMap::new(),
            heard: BTreeMap::new(),
        }
    }

    /// A record counts from now on.
    pub fn accept(&mut self, run: &Run, record: &Record) -> Result<(), Violation> {
        let audited = self.auditor.record(run, record);
        self.coverage.note(record, Column::Seen);
        self.story.record(record);
        for step in &record.steps {
            if let Input::Settled { turn, .. } = &step.cause
                && let Some(column) = self.unstored.remove(turn)
            {
                self.coverage.note_step(step, column);
            }
            for event in &step.events {
                self.follow(event);
            }
        }
        self.last = run.clone();
        self.records.push(record.clone());
        audited
    }

    /// How many turns came to an end of their own.
    pub fn turns_heard(&self) -> usize {
        self.heard.values().sum()
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::VisitEntered { agent, state, .. } => {
                self.places.insert(agent.clone(), state.clone());
            }
            Event::TurnSettled { turn, .. }
            | Event::TurnContinues { turn, .. }
            | Event::TurnFailed { turn, .. } => {
                *self.attempts.entry(turn.clone()).or_default() += 1;
                if let Some(state) = self.places.get(&turn.agent) {
                    let place = (turn.agent.clone(), state.clone());
                    *self.heard.entry(place).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        }
    }

    fn start(&mut self, attempt: Attempt, (state, count): (&StateName, u32), cwd: String) {
        let turn = &attempt.0;
        let heard = self.heard.get(&(turn.agent.clone(), state.clone()));
        let place = Place {
            agent: turn.agent.as_str(),
            state: state.as_str(),
            count,
            turn: turn.turn,
            attempt: 1 + self.attempts.get(turn).copied().unwrap_or(0),
            heard: heard.copied().unwrap_or(0),
        };
        let speech = self.voice.speech(place, self.now);
        let source = if place.is_prompt() { Source::Message } else { Source::Script };
        let delay = match speech {
            // The executor's idle clock ends it.
            Speech::Hangs => Span::minutes(30),
            _ => Span(self.dice.below(5_000)),
        };
        self.order += 1;
        self.agenda.insert((self.now + delay, self.order), attempt.clone());
        self.released.insert(attempt.clone());
        self.fates.insert(attempt, Fate { speech, cwd, source, cancelled: false });
    }

    /// The turn is ended by its owner; it may have been faster.
    fn cancel(&mut self, attempt: &Attempt) {
        let Some(fate) = self.fates.get_mut(attempt) else { return };
        fate.cancelled = true;
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
            Speech::Denied(text, cost) => {
                let mut finished = finished(text, *cost, fate, blobs)?;
                finished.denied.push("Bash(rm)".to_owned());
                Outcome::Finished(Box::new(finished))
            }
            Speech::Capped(cost) => Outcome::Capped { cost: *cost },
            Speech::Fails(failure, cost) => {
                Outcome::Failed { failure: failure.clone(), cost: *cost }
            }
            Speech::Hangs if matches!(self.last.phase, Phase::Stopping(_)) => {
                let (by, cost) = (Interruption::Stop, unknown(fate.source));
                Outcome::Interrupted { by, cost, progressed: false }
            }
            Speech::Hangs => Outcome::Failed {
                failure: TurnFailure::Timeout { clock: Clock::Idle, after: Span::minutes(30) },
                cost: unknown(fate.source),
            },
        })
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
    let exists = |cd: &str| {
        let found = absolute(&fate.cwd, cd);
        DIRECTORIES.contains(&found.as_str()).then(|| (cd.to_owned(), found))
    };
    let directories = reading.tags.iter().filter_map(|tag| exists(tag.cd()?)).collect();
    Ok(Finished {
        text: Value::keep(text, &mut put)?,
        reading,
        directories,
        cost,
        session: None,
        model: None,
        stderr: String::new(),
        denied: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Where `cd` leads from a directory.
fn absolute(cwd: &str, cd: &str) -> String {
    if cd.starts_with('/') {
        return cd.to_owned();
    }
    match cd {
        ".." => cwd.rsplit_once('/').map_or("/", |(above, _)| above).to_owned(),
        below => format!("{cwd}/{below}"),
    }
}

/// The world as the driver sees it.
#[derive(Debug, Clone)]
pub struct Window(pub Rc<RefCell<Reality>>);

impl World for Window {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        let reality = &mut *self.0.borrow_mut();
        let verdict = reality.accept(run, record);
        reality.judge(verdict);
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
                let attempt = (prompt.turn, prompt.attempt);
                reality.start(attempt, (&prompt.state, prompt.count), prompt.cwd);
            }
            Effect::Script(script) => {
                let visits = run.agents.get(&script.turn.agent).map(|agent| &agent.visits);
                let count = visits.and_then(|visits| visits.get(&script.state)).copied();
                let attempt = (script.turn, script.attempt);
                reality.start(attempt, (&script.state, count.unwrap_or(1)), script.cwd);
            }
            Effect::Cancel { turn, attempt } => reality.cancel(&(turn, attempt)),
            Effect::Finish => {}
        }
    }
}
