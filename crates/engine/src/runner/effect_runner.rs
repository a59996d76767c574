//! Starts the work that the driver releases: each effect becomes a task, and each task reports.
//!
//! This is the [`World`] of the real runner. It keeps a cancellation token for every running turn
//! and sends outcomes and progress back through channels. It decides nothing, and it never awaits:
//! the driver calls it between two records. The work itself is in the modules `turn` and
//! `exec_step`.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::contract::{self, ClientProgress};
use raymond_core::agent::AgentStatus;
use raymond_core::budget::Cost;
use raymond_core::decide::turn_spec;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{TurnAttempt, TurnId};
use raymond_core::run::outcome::Outcome;
use raymond_core::run::turn_spec::{TurnSpec, Work};
use raymond_core::run::{Effect, Input, Record, Run, effect};
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;
use raymond_store::blobs;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::exec_step;
use super::run_directory::SharedJournal;
use super::turn;
use super::turn_context::TurnContext;
use crate::driver::World;
use crate::feed::{FeedItem, RunWatcher};

/// The outcome of a turn, or an error if one of its values could not be stored or read.
#[derive(Debug)]
pub(crate) struct TurnReport {
    turn: TurnId,
    attempt: u32,
    outcome: Result<Outcome, blobs::Error>,
}

impl TurnReport {
    pub(crate) fn into_input(self) -> Result<Input, blobs::Error> {
        let Self { turn, attempt, outcome } = self;
        Ok(Input::Settled { turn, attempt, outcome: outcome? })
    }
}

/// A sign of progress of a running turn.
pub(crate) struct TurnProgress {
    pub(crate) turn: TurnId,
    pub(crate) sign: ClientProgress,
}

/// The watcher of a run, and the journal that gives each record its place.
pub(crate) struct WatchedRun<'w> {
    pub(super) watcher: &'w mut (dyn RunWatcher + Send),
    pub(super) journal: SharedJournal,
}

impl WatchedRun<'_> {
    pub(crate) fn take(&mut self, item: FeedItem<'_>) {
        self.watcher.take(item);
    }
}

/// Runs the effects of one run.
pub(crate) struct EffectRunner<'w> {
    context: Arc<TurnContext>,
    reports: UnboundedSender<TurnReport>,
    progress: UnboundedSender<TurnProgress>,
    turns: BTreeMap<TurnAttempt, CancellationToken>,
    pub(crate) watch: WatchedRun<'w>,
    pub(crate) finished: bool,
}

impl<'w> EffectRunner<'w> {
    pub(crate) fn new(
        context: Arc<TurnContext>,
        reports: UnboundedSender<TurnReport>,
        progress: UnboundedSender<TurnProgress>,
        watch: WatchedRun<'w>,
    ) -> Self {
        Self { context, reports, progress, turns: BTreeMap::new(), watch, finished: false }
    }

    /// Returns the number of turns that have not reported yet.
    pub(crate) fn running_turns(&self) -> usize {
        self.turns.len()
    }

    /// Forgets a turn that has reported.
    pub(crate) fn remove_turn(&mut self, report: &TurnReport) {
        self.turns.remove(&TurnAttempt { turn: report.turn.clone(), number: report.attempt });
    }

    /// Cancels every turn. Each of them still reports.
    pub(crate) fn cancel_all(&self) {
        for token in self.turns.values() {
            token.cancel();
        }
    }

    fn start(&mut self, TurnSpec { header, work }: TurnSpec) {
        let (context, cancel) = (Arc::clone(&self.context), CancellationToken::new());
        let id = TurnAttempt { turn: header.turn.clone(), number: header.attempt };
        match work {
            Work::Prompt(prompt) => {
                let watch = self.turn_watch(&header.turn, cancel.clone());
                self.spawn(id, cancel, turn::prompt(context, header, prompt, watch));
            }
            Work::Script(script) => {
                let turn = turn::script(context, header, script, cancel.clone());
                self.spawn(id, cancel, turn);
            }
            Work::Exec(exec) => {
                let turn = exec_step::run(context, header, exec, cancel.clone());
                self.spawn(id, cancel, turn);
            }
        }
    }

    /// Follows every turn in flight that this process has not started: the client of an earlier
    /// owner still runs.
    pub(crate) fn adopt(&mut self, run: &Run, definition: &Definition) {
        for turn in effect::in_flight(run) {
            let id = turn.attempt_id();
            // Started by this process in the first batch.
            if self.turns.contains_key(&id) {
                continue;
            }
            let spec = turn_spec(run, definition, turn);
            let Some(TurnSpec { header, work: Work::Prompt(prompt) }) = spec else { continue };
            let (context, cancel) = (Arc::clone(&self.context), CancellationToken::new());
            let agent = run.agents.get(&turn.id.agent).map(|agent| &agent.status);
            if turn.recalled || matches!(agent, Some(AgentStatus::Cancelling(_))) {
                // Its `Cancel` effect was released before this process followed the client, so it
                // reached no token.
                cancel.cancel();
            }
            let watch = self.turn_watch(&turn.id, cancel.clone());
            self.spawn(id, cancel, turn::follow(context, header, prompt, watch));
        }
    }

    fn turn_watch(&self, turn: &TurnId, cancel: CancellationToken) -> contract::TurnObserver {
        let (turn, progress) = (turn.clone(), self.progress.clone());
        let listener = move |sign| drop(progress.send(TurnProgress { turn: turn.clone(), sign }));
        contract::TurnObserver { cancel, listener: Arc::new(listener) }
    }

    /// Starts a task for one attempt at a turn.
    fn spawn(
        &mut self,
        id: TurnAttempt,
        cancel: CancellationToken,
        task: impl Future<Output = Result<Outcome, blobs::Error>> + Send + 'static,
    ) {
        self.turns.insert(id.clone(), cancel);
        let reports = self.reports.clone();
        let TurnAttempt { turn, number: attempt } = id;
        let task = tokio::spawn(task);
        // A second task awaits the first, so that a panic is reported too. A turn without a report
        // would keep the runner waiting forever.
        tokio::spawn(async move {
            let outcome = task.await.unwrap_or_else(|defect| Ok(panicked(&defect)));
            reports.send(TurnReport { turn, attempt, outcome }).ok();
        });
    }
}

/// Turns a panic into a failed turn: the bug is in Raymond, but the run must record it and
/// continue.
fn panicked(defect: &tokio::task::JoinError) -> Outcome {
    let failure = TurnFailure::NotStarted { why: format!("a bug in Raymond: {defect}") };
    Outcome::Failed { failure, cost: Cost::Unknown, denied: Vec::new(), session: None }
}

impl World for EffectRunner<'_> {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        let cursor = self.watch.journal.cursor();
        self.watch.take(FeedItem::Record { cursor, record, run });
    }

    fn release(&mut self, effect: Effect) {
        match effect {
            Effect::Start(spec) => self.start(spec),
            // A turn that has reported meanwhile has no token: its outcome is already on its way.
            Effect::Cancel { turn, attempt } => {
                if let Some(token) = self.turns.get(&TurnAttempt { turn, number: attempt }) {
                    token.cancel();
                }
            }
            Effect::Finish => self.finished = true,
        }
    }
}
