//! The world as the driver knows it, made of tasks: effects start them, outcomes come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::TurnId;
use raymond_core::run::input::Outcome;
use raymond_core::run::{Effect, Input, Record, Run};
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_store::blobs;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::Watch;
use super::kit::Kit;
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

/// Starts what the driver releases.
pub(crate) struct Hands<'w> {
    kit: Arc<Kit>,
    reports: UnboundedSender<Report>,
    turns: BTreeMap<(TurnId, u32), CancellationToken>,
    pub(crate) watch: &'w mut dyn Watch,
    pub(crate) finished: bool,
}

impl<'w> Hands<'w> {
    pub(crate) fn new(
        kit: Arc<Kit>,
        reports: UnboundedSender<Report>,
        watch: &'w mut dyn Watch,
    ) -> Self {
        Self { kit, reports, turns: BTreeMap::new(), watch, finished: false }
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
            Subject::new(definition, agent, prompt)
        };
        let (kit, cancel) = (Arc::clone(&self.kit), CancellationToken::new());
        let token = cancel.clone();
        match effect {
            Effect::Prompt(effect) => {
                let Some(subject) = subject(&effect.turn, Some(&effect.prompt)) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = async move { turn::prompt(&kit, *effect, subject, token).await };
                self.spawn(id, cancel, turn);
            }
            Effect::Script(effect) => {
                let Some(subject) = subject(&effect.turn, None) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = async move { turn::script(&kit, *effect, subject, token).await };
                self.spawn(id, cancel, turn);
            }
            Effect::Cancel { .. } | Effect::Finish => {}
        }
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
    Outcome::Failed { failure, cost: Cost::Unknown }
}

impl World for Hands<'_> {
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record) {
        self.watch.committed(run, ledger, record);
    }

    fn release(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        match effect {
            Effect::Prompt(_) | Effect::Script(_) => self.start(run, definition, effect),
            Effect::Cancel { turn, attempt } => {
                if let Some(token) = self.turns.get(&(turn, attempt)) {
                    token.cancel();
                }
            }
            Effect::Finish => self.finished = true,
        }
    }
}
