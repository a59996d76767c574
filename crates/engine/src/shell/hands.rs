//! The world as the driver knows it, made of tasks: effects start them, outcomes come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::contract::{self, Progress};
use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::TurnId;
use raymond_core::run::effect::StepEffect;
use raymond_core::run::input::Outcome;
use raymond_core::run::{Effect, Input, Record, Run, effect};
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_store::blobs;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::Watch;
use super::asking::Asking;
use super::kit::Kit;
use super::step::{self, Doing};
use super::turn::{self, Subject};
use crate::driver::World;

/// What became of a turn; an error when a value of it could not be stored or read.
#[derive(Debug)]
pub(crate) struct Report {
    turn: TurnId,
    attempt: u32,
    outcome: Result<Outcome, blobs::Error>,
}

impl Report {
    pub(crate) fn into_input(self) -> Result<Input, blobs::Error> {
        let Self { turn, attempt, outcome } = self;
        Ok(Input::Settled { turn, attempt, outcome: outcome? })
    }
}

/// What was seen of a turn while it runs.
pub(crate) type Seen = (TurnId, Progress);

/// Starts what the driver releases.
pub(crate) struct Hands<'w> {
    kit: Arc<Kit>,
    reports: UnboundedSender<Report>,
    signs: UnboundedSender<Seen>,
    turns: BTreeMap<(TurnId, u32), CancellationToken>,
    pub(crate) watch: &'w mut (dyn Watch + Send),
    pub(crate) finished: bool,
}

impl<'w> Hands<'w> {
    pub(crate) fn new(
        kit: Arc<Kit>,
        (reports, signs): (UnboundedSender<Report>, UnboundedSender<Seen>),
        watch: &'w mut (dyn Watch + Send),
    ) -> Self {
        Self { kit, reports, signs, turns: BTreeMap::new(), watch, finished: false }
    }

    /// How many turns have not reported yet.
    pub(crate) fn busy(&self) -> usize {
        self.turns.len()
    }

    /// A turn has reported.
    pub(crate) fn reported(&mut self, report: &Report) {
        self.turns.remove(&(report.turn.clone(), report.attempt));
    }

    /// Ends every turn; each still reports.
    pub(crate) fn cancel_all(&self) {
        for token in self.turns.values() {
            token.cancel();
        }
    }

    fn start(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        let subject = |turn: &TurnId, prompt| {
            let agent = run.agents.get(&turn.agent)?;
            match Asking::of(run, definition, &agent.id, &self.kit.schemas) {
                Some(asking) => Some(Subject::step(agent, asking.into())),
                None => Subject::new(definition, agent, prompt),
            }
            .map(Box::new)
        };
        let (kit, cancel) = (Arc::clone(&self.kit), CancellationToken::new());
        match effect {
            Effect::Prompt(effect) => {
                let Some(subject) = subject(&effect.turn, Some(&effect.prompt)) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let watch = self.watch_over(&effect.turn, cancel.clone());
                self.spawn(id, cancel, turn::prompt(kit, effect, subject, watch));
            }
            Effect::Script(effect) => {
                let Some(subject) = subject(&effect.turn, None) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = turn::script(kit, effect, subject, cancel.clone());
                self.spawn(id, cancel, turn);
            }
            Effect::Step(effect) => {
                let Some(doing) = self.doing(run, definition, &effect) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = step::step(kit, effect, doing, cancel.clone());
                self.spawn(id, cancel, turn);
            }
            Effect::Cancel { .. } | Effect::Finish => {}
        }
    }

    /// What a step is about, filled in as its strand sees things now.
    fn doing(&self, run: &Run, definition: &Definition, effect: &StepEffect) -> Option<Doing> {
        let (work, flow) = (definition.work.as_deref()?, run.flow.as_deref()?);
        let (index, exec, call) = work.call(flow, &effect.turn.agent, &effect.key)?;
        Some(Doing { index, exec, call, schemas: Arc::clone(&self.kit.schemas) })
    }

    /// Follows every turn in flight that nobody here has started: its client was found running.
    pub(crate) fn adopt(&mut self, run: &Run, definition: &Definition) {
        for turn in effect::in_flight(run) {
            let id = (turn.id.clone(), turn.attempt);
            let Some(Effect::Prompt(effect)) = effect::of_turn(run, definition, turn) else {
                continue;
            };
            if self.turns.contains_key(&id) {
                continue;
            }
            let (kit, cancel) = (Arc::clone(&self.kit), CancellationToken::new());
            if turn.recalled {
                // Its `Cancel` was released before anybody followed the client.
                cancel.cancel();
            }
            let watch = self.watch_over(&turn.id, cancel.clone());
            let asking = Asking::of(run, definition, &turn.id.agent, &self.kit.schemas);
            self.spawn(id, cancel, turn::follow(kit, effect, asking.map(Box::new), watch));
        }
    }

    fn watch_over(&self, turn: &TurnId, cancel: CancellationToken) -> contract::TurnObserver {
        let (turn, signs) = (turn.clone(), self.signs.clone());
        let listener = move |sign| drop(signs.send((turn.clone(), sign)));
        contract::TurnObserver { cancel, listener: Arc::new(listener) }
    }

    /// Every task reports, whatever becomes of it.
    fn spawn(
        &mut self,
        (turn, attempt): (TurnId, u32),
        cancel: CancellationToken,
        task: impl Future<Output = Result<Outcome, blobs::Error>> + Send + 'static,
    ) {
        self.turns.insert((turn.clone(), attempt), cancel);
        let reports = self.reports.clone();
        let task = tokio::spawn(task);
        tokio::spawn(async move {
            let outcome = task.await.unwrap_or_else(|defect| Ok(broken(&defect)));
            reports.send(Report { turn, attempt, outcome }).ok();
        });
    }
}

/// A panic is a defect of ours: the agent fails, and the run stays alive to say so.
fn broken(defect: &tokio::task::JoinError) -> Outcome {
    let failure = TurnFailure::NotStarted { why: format!("a defect in raymond: {defect}") };
    Outcome::Failed { failure, cost: Cost::Unknown, denied: Vec::new(), session: None }
}

impl World for Hands<'_> {
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record) {
        self.watch.committed(run, ledger, record);
    }

    fn release(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        match effect {
            Effect::Prompt(_) | Effect::Script(_) | Effect::Step(_) => {
                self.start(run, definition, effect);
            }
            Effect::Cancel { turn, attempt } => {
                if let Some(token) = self.turns.get(&(turn, attempt)) {
                    token.cancel();
                }
            }
            Effect::Finish => self.finished = true,
        }
    }
}
