//! The world as the driver knows it, made of tasks: effects start them, outcomes come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::ids::TurnId;
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

/// What a task reports.
pub(crate) type Report = Result<Input, blobs::Error>;

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
    pub(crate) fn reported(&mut self, input: &Input) {
        if let Input::Settled { turn, attempt, .. } = input {
            self.turns.remove(&(turn.clone(), *attempt));
        }
    }

    /// Ends every turn; each still reports.
    pub(crate) fn cancel_all(&self) {
        for token in self.turns.values() {
            token.cancel();
        }
    }

    fn start(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        let cancel = CancellationToken::new();
        let (kit, reports, token) = (Arc::clone(&self.kit), self.reports.clone(), cancel.clone());
        let agent = |turn: &TurnId| run.agents.get(&turn.agent);
        let (turn, attempt) = match effect {
            Effect::Prompt(effect) => {
                let Some(subject) = agent(&effect.turn)
                    .and_then(|agent| Subject::new(definition, agent, Some(&effect.prompt)))
                else {
                    return;
                };
                let (turn, attempt) = (effect.turn.clone(), effect.attempt);
                let settled = (turn.clone(), attempt);
                tokio::spawn(async move {
                    let outcome = turn::prompt(&kit, *effect, subject, token).await;
                    reports.send(outcome.map(|outcome| report(settled, outcome))).ok();
                });
                (turn, attempt)
            }
            Effect::Script(effect) => {
                let Some(subject) =
                    agent(&effect.turn).and_then(|agent| Subject::new(definition, agent, None))
                else {
                    return;
                };
                let (turn, attempt) = (effect.turn.clone(), effect.attempt);
                let settled = (turn.clone(), attempt);
                tokio::spawn(async move {
                    let outcome = turn::script(&kit, *effect, subject, token).await;
                    reports.send(outcome.map(|outcome| report(settled, outcome))).ok();
                });
                (turn, attempt)
            }
            Effect::Cancel { .. } | Effect::Finish => return,
        };
        self.turns.insert((turn, attempt), cancel);
    }
}

fn report((turn, attempt): (TurnId, u32), outcome: raymond_core::run::input::Outcome) -> Input {
    Input::Settled { turn, attempt, outcome }
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
