//! A simulated machine: boots, drives a run, goes wrong as planned, boots again.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use raymond_core::ids::RunId;
use raymond_core::run::input::{Outcome, Start, StopMode};
use raymond_core::run::record::FORMAT;
use raymond_core::run::{Header, Input, Phase, Record, Refusal, Settings, event::Event};
use raymond_core::time::Span;
use raymond_core::value::{Hash, Value};
use raymond_core::workflow::Definition;
use raymond_engine::driver::{Driver, Head, Log};
use raymond_engine::fold;
use raymond_engine::recovery::{self, Attached};
use raymond_store::disk::{Disk, Memory};
use raymond_store::{Blobs, Journal, journal};

use super::auditor::Violation;
use super::coverage::Column;
use super::plan::{Plan, Trouble};
use super::reality::{Attempt, Reality, Window};
use super::speech::{Speech, Voice};

/// A machine with a disk.
pub struct Host {
    disk: Memory,
    /// Where things go wrong.
    pub plan: Plan,
    /// The world outside.
    pub reality: Rc<RefCell<Reality>>,
    definition: Definition,
    /// What governs the run from its next resume on.
    pub settings: Settings,
    driver: Option<Driver<Pen, Window>>,
    recovering: bool,
}

/// The journal, with an eye on what was being written when it failed.
struct Pen {
    journal: Journal,
    reality: Rc<RefCell<Reality>>,
    failed: Option<Record>,
}

impl Log for Pen {
    fn append(&mut self, body: &[u8]) -> Result<(), journal::Error> {
        match self.journal.append(body) {
            Ok(_) => {
                self.reality.borrow_mut().acknowledged.push(Hash::of(body));
                Ok(())
            }
            Err(error) => {
                self.failed = serde_json::from_slice(body).ok();
                let reality = &mut *self.reality.borrow_mut();
                if let (Some(record), Some((trouble, point))) = (&self.failed, reality.plan.fired())
                    && let Some(column) = Column::of(trouble, point)
                {
                    reality.coverage.note(record, column);
                }
                Err(error)
            }
        }
    }
}

impl Host {
    /// A machine that is about to run `definition` for the first time.
    pub fn new(seed: u64, definition: Definition, voice: Box<dyn Voice>, settings: Settings) -> Self {
        let plan = Plan::default();
        let disk = Memory::new(seed ^ 0xd15c);
        let hooked = plan.clone();
        disk.set_hook(Some(Box::new(move |call| hooked.disk_call(call))));
        let reality = Rc::new(RefCell::new(Reality::new(voice, seed, plan.clone())));
        Self { disk, plan, reality, definition, settings, driver: None, recovering: false }
    }

    /// Where the run stands, as far as it was acknowledged.
    pub fn phase(&self) -> Phase {
        self.reality.borrow().last.phase
    }

    /// Whether a process drives the run.
    pub fn is_up(&self) -> bool {
        self.driver.is_some()
    }

    /// Creates the run, or goes on with it.
    pub fn boot(&mut self) -> Result<(), Violation> {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        match Journal::open(Arc::clone(&disk), &path()) {
            Ok(opened) => self.recover(opened),
            Err(journal::Error::Missing(_) | journal::Error::Unborn(_)) => self.begin(disk),
            Err(journal::Error::Disk(_)) => self.go_down(),
            Err(error) => Err(Violation(format!("the journal does not open: {error}"))),
        }
    }

    fn begin(&mut self, disk: Arc<dyn Disk>) -> Result<(), Violation> {
        let lost = self.reality.borrow().acknowledged.len();
        if lost > 0 {
            return Err(Violation(format!("all {lost} acknowledged records are lost")));
        }
        for directory in ["/raymond", "/raymond/blobs"] {
            disk.create_dir(Path::new(directory)).ok();
        }
        if disk.sync_dir(Path::new("/")).is_err() {
            return self.go_down();
        }
        let header = Header { format: FORMAT, run: "sim".into(), nonce: "n0".into() };
        let header = serde_json::to_vec(&header).map_err(|error| Violation(error.to_string()))?;
        let Ok(journal) = Journal::create(disk, &path(), &header) else { return self.go_down() };
        self.drive(Head::unborn(), journal);
        self.start()
    }

    fn recover(&mut self, opened: journal::Opened) -> Result<(), Violation> {
        let head = self.plan.aside(|| self.check_recovered(&opened))?;
        if head.seq == 0 {
            // The journal was created, and the start never became durable.
            self.drive(head, opened.journal);
            return self.start();
        }
        self.recovering = true;
        let inputs = {
            let reality = &mut *self.reality.borrow_mut();
            recovery::inputs(&head.run, self.settings.clone(), |turn| {
                let attempt = (turn.id.clone(), turn.attempt);
                attach(reality, &attempt, &blobs(&self.disk))
            })
        };
        self.drive(head, opened.journal);
        let done = self.handle(inputs).map(drop);
        self.recovering = false;
        done
    }

    fn start(&mut self) -> Result<(), Violation> {
        let start = Start {
            run: RunId::new("sim"),
            nonce: "n0".into(),
            workflow: "/flow".into(),
            scope: "/flow".into(),
            manifest: Value::from("[]"),
            cwd: "/home".into(),
            input: None,
            settings: self.settings.clone(),
        };
        self.handle(vec![Input::Start(Box::new(start))]).map(drop)
    }

    fn drive(&mut self, head: Head, journal: Journal) {
        let reality = Rc::clone(&self.reality);
        let pen = Pen { journal, reality: Rc::clone(&reality), failed: None };
        self.driver = Some(Driver::new(head, self.definition.clone(), pen, Window(reality)));
    }

    /// Nothing that was acknowledged may be lost, and nothing may be invented.
    fn check_recovered(&self, opened: &journal::Opened) -> Result<Head, Violation> {
        let unreadable = |error: fold::FoldError| Violation(error.to_string());
        fold::header(&opened.header).map_err(unreadable)?;
        let reality = &mut *self.reality.borrow_mut();
        let known = reality.acknowledged.len();
        let found = opened.lines.len();
        if found < known {
            return Err(Violation(format!("{known} records were acknowledged, {found} are left")));
        }
        let mut head = Head::unborn();
        for line in opened.lines.iter() {
            let index = usize::try_from(line.seq).unwrap_or(0) - 1;
            match reality.acknowledged.get(index) {
                Some(hash) if *hash != Hash::of(line.body) => {
                    return Err(Violation(format!("record {} changed", line.seq)));
                }
                Some(_) | None => {}
            }
            let record = fold::record(line.body, line.seq).map_err(unreadable)?;
            head.fold(&record);
            check_blobs(&record, &blobs(&self.disk))?;
            if index >= known {
                // It became durable although nobody was told: from now on it counts.
                reality.acknowledged.push(Hash::of(line.body));
                reality.auditor.record(&head.run, &record)?;
                reality.last = head.run.clone();
            }
        }
        if head.run != reality.last {
            return Err(Violation("the recovered run differs from the one that was driven".into()));
        }
        check_released(reality, &opened.lines)?;
        Ok(head)
    }

    /// Hands inputs to the driver; whatever goes wrong with the machine takes it down.
    pub fn handle(&mut self, inputs: Vec<Input>) -> Result<Vec<Result<(), Refusal>>, Violation> {
        let Some(driver) = &mut self.driver else { return Ok(Vec::new()) };
        let now = self.reality.borrow().now;
        let handled = driver.handle(now, inputs);
        if let Some(violation) = self.reality.borrow_mut().violation.take() {
            return Err(violation);
        }
        match handled {
            Ok(verdicts) if !self.reality.borrow().down => {
                if matches!(self.phase(), Phase::Ended(_)) {
                    self.driver = None;
                }
                Ok(verdicts)
            }
            Ok(_) | Err(_) => self.go_down().map(|()| Vec::new()),
        }
    }

    /// The machine or its process is gone; what is left of the disk is decided now.
    pub fn go_down(&mut self) -> Result<(), Violation> {
        self.driver = None;
        let reality = &mut *self.reality.borrow_mut();
        if let Some((trouble, point)) = self.plan.fired()
            && let (Some(record), Some(column)) =
                (&reality.last_record, Column::of(trouble, point))
        {
            reality.coverage.note(record, column);
        }
        if self.recovering && let Some(record) = &reality.last_record {
            reality.coverage.note(record, Column::InRecovery);
        }
        self.recovering = false;
        reality.down = false;
        self.plan.disarm();
        self.disk.set_capacity(None);
        self.disk = if self.disk.is_down() || reality.dice.percent(50) {
            self.disk.crash()
        } else {
            self.disk.kill();
            self.disk.process()
        };
        Ok(())
    }

    /// Lets the next thing happen: a turn ends, or a durable wait does.
    pub fn tick(&mut self) -> Result<Ticked, Violation> {
        let next = self.reality.borrow().agenda.keys().next().copied();
        let due = self.driver.as_ref().and_then(|driver| driver.run().next_due());
        match (next, due) {
            (Some((at, _)), due) if due.is_none_or(|due| at <= due) => self.settle_next(),
            (_, Some(due)) => {
                let reality = &mut *self.reality.borrow_mut();
                reality.now = reality.now.max(due);
                Ok(Ticked::Due)
            }
            (_, None) => Ok(Ticked::Nothing),
        }
    }

    fn settle_next(&mut self) -> Result<Ticked, Violation> {
        let (attempt, outcome) = {
            let reality = &mut *self.reality.borrow_mut();
            let Some(((at, _), attempt)) = reality.agenda.pop_first() else {
                return Ok(Ticked::Nothing);
            };
            reality.now = reality.now.max(at);
            let outcome = reality.outcome(&attempt, &blobs(&self.disk));
            (attempt, outcome)
        };
        match outcome {
            Ok(outcome) => Ok(Ticked::Settled(attempt, Box::new(outcome))),
            // The text could not be stored: its owner cannot go on.
            Err(_) => self.go_down().map(|()| Ticked::Down),
        }
    }

    /// Asks the run to end.
    pub fn stop(&mut self, mode: StopMode, key: &str) -> Result<(), Violation> {
        self.handle(vec![Input::Stop { mode, key: key.to_owned() }]).map(drop)
    }

    /// Lets time pass.
    pub fn sleep(&self, span: Span) {
        let reality = &mut *self.reality.borrow_mut();
        reality.now = reality.now + span;
    }

    /// Arms the next trouble.
    pub fn arm(&self, call: u64, trouble: Trouble) {
        self.plan.arm(call, trouble);
    }
}

/// What happened in a tick.
#[derive(Debug)]
pub enum Ticked {
    /// Nothing can happen by itself any more.
    Nothing,
    /// A durable wait is over.
    Due,
    /// A turn ended.
    Settled(Attempt, Box<Outcome>),
    /// The machine went down.
    Down,
}

fn path() -> PathBuf {
    PathBuf::from("/raymond/journal.jsonl")
}

fn blobs(disk: &Memory) -> Blobs {
    Blobs::new(Arc::new(disk.clone()), PathBuf::from("/raymond/blobs"))
}

/// What a recovery finds of a turn: a client may have finished while nobody owned it.
fn attach(reality: &mut Reality, attempt: &Attempt, blobs: &Blobs) -> Attached {
    reality.agenda.retain(|_, waiting| waiting != attempt);
    let fate = reality.fates.get(attempt);
    let said = fate.is_some_and(|fate| matches!(fate.speech, Speech::Says(..)));
    let script = fate.is_some_and(|f| f.source == raymond_core::protocol::Source::Script);
    if said
        && !script
        && reality.dice.percent(40)
        && let Ok(outcome) = reality.outcome(attempt, blobs)
    {
        return Attached::Finished(outcome);
    }
    Attached::Absent { progressed: reality.dice.percent(70) }
}

/// Whatever was released must have been durable before.
fn check_released(reality: &Reality, lines: &journal::Lines) -> Result<(), Violation> {
    let mut started = std::collections::BTreeSet::new();
    for line in lines.iter() {
        let Ok(record) = serde_json::from_slice::<Record>(line.body) else { continue };
        for event in record.steps.into_iter().flat_map(|step| step.events) {
            if let Event::TurnStarted { turn, attempt, .. } = event {
                started.insert((turn, attempt));
            }
        }
    }
    match reality.released.difference(&started).next() {
        None => Ok(()),
        Some((turn, attempt)) => {
            Err(Violation(format!("attempt {attempt} of {turn} was run, and no record says so")))
        }
    }
}

/// A blob is durable before the record that names it.
fn check_blobs(record: &Record, blobs: &Blobs) -> Result<(), Violation> {
    let named = serde_json::to_value(record).map_err(|error| Violation(error.to_string()))?;
    let mut waiting = vec![&named];
    while let Some(value) = waiting.pop() {
        match value {
            serde_json::Value::Array(items) => waiting.extend(items),
            serde_json::Value::Object(fields) => {
                if let Some(hash) = fields.get("blob").and_then(serde_json::Value::as_str) {
                    if blobs.get(hash).is_err() {
                        return Err(Violation(format!("record {} names a lost blob", record.seq)));
                    }
                }
                waiting.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(())
}
