//! The world as the driver knows it, made of tasks: effects start them, outcomes come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::contract::{self, Sign};
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

use super::RunWatcher;
use super::agent_step::AgentStep;
use super::exec_step::{self, ExecStep};
use super::turn::{self, TurnSpec};
use super::turn_context::TurnContext;
use crate::driver::World;

/// What became of a turn; an error when a value of it could not be stored or read.
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

/// What was seen of a turn while it runs.
pub(crate) type Seen = (TurnId, Sign);

/// Starts what the driver releases.
pub(crate) struct EffectRunner<'w> {
    context: Arc<TurnContext>,
    reports: UnboundedSender<TurnReport>,
    signs: UnboundedSender<Seen>,
    turns: BTreeMap<(TurnId, u32), CancellationToken>,
    pub(crate) watch: &'w mut (dyn RunWatcher + Send),
    pub(crate) finished: bool,
}

impl<'w> EffectRunner<'w> {
    pub(crate) fn new(
        context: Arc<TurnContext>,
        (reports, signs): (UnboundedSender<TurnReport>, UnboundedSender<Seen>),
        watch: &'w mut (dyn RunWatcher + Send),
    ) -> Self {
        Self { context, reports, signs, turns: BTreeMap::new(), watch, finished: false }
    }

    /// How many turns have not reported yet.
    pub(crate) fn running_turns(&self) -> usize {
        self.turns.len()
    }

    /// A turn has reported.
    pub(crate) fn remove_turn(&mut self, report: &TurnReport) {
        self.turns.remove(&(report.turn.clone(), report.attempt));
    }

    /// Ends every turn; each still reports.
    pub(crate) fn cancel_all(&self) {
        for token in self.turns.values() {
            token.cancel();
        }
    }

    fn start(&mut self, run: &Run, definition: &Definition, effect: Effect) {
        let spec = |turn: &TurnId, prompt| {
            let agent = run.agents.get(&turn.agent)?;
            match AgentStep::of(run, definition, &agent.id, &self.context.schemas) {
                Some(agent_step) => Some(TurnSpec::step(agent, agent_step.into())),
                None => TurnSpec::new(definition, agent, prompt),
            }
            .map(Box::new)
        };
        let (context, cancel) = (Arc::clone(&self.context), CancellationToken::new());
        match effect {
            Effect::Prompt(effect) => {
                let Some(spec) = spec(&effect.turn, Some(&effect.prompt)) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let watch = self.turn_watch(&effect.turn, cancel.clone());
                self.spawn(id, cancel, turn::prompt(context, effect, spec, watch));
            }
            Effect::Script(effect) => {
                let Some(spec) = spec(&effect.turn, None) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = turn::script(context, effect, spec, cancel.clone());
                self.spawn(id, cancel, turn);
            }
            Effect::Step(effect) => {
                let Some(step) = self.exec_step(run, definition, &effect) else { return };
                let id = (effect.turn.clone(), effect.attempt);
                let turn = exec_step::run(context, effect, step, cancel.clone());
                self.spawn(id, cancel, turn);
            }
            Effect::Cancel { .. } | Effect::Finish => {}
        }
    }

    /// What a step is about, filled in as its strand sees things now.
    fn exec_step(
        &self,
        run: &Run,
        definition: &Definition,
        effect: &StepEffect,
    ) -> Option<ExecStep> {
        let (work, flow) = (definition.work.as_deref()?, run.flow.as_deref()?);
        let (index, exec, call) = work.call(flow, &effect.turn.agent, &effect.key)?;
        Some(ExecStep { index, exec, call, schemas: Arc::clone(&self.context.schemas) })
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
            let (context, cancel) = (Arc::clone(&self.context), CancellationToken::new());
            if turn.recalled {
                // Its `Cancel` was released before anybody followed the client.
                cancel.cancel();
            }
            let watch = self.turn_watch(&turn.id, cancel.clone());
            let agent_step = AgentStep::of(run, definition, &turn.id.agent, &self.context.schemas);
            self.spawn(id, cancel, turn::follow(context, effect, agent_step.map(Box::new), watch));
        }
    }

    fn turn_watch(&self, turn: &TurnId, cancel: CancellationToken) -> contract::Watch {
        let (turn, signs) = (turn.clone(), self.signs.clone());
        let listener = move |sign| drop(signs.send((turn.clone(), sign)));
        contract::Watch { cancel, listener: Arc::new(listener) }
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
            let outcome = task.await.unwrap_or_else(|defect| Ok(panicked(&defect)));
            reports.send(TurnReport { turn, attempt, outcome }).ok();
        });
    }
}

/// A panic is a defect of ours: the agent fails, and the run stays alive to say so.
fn panicked(defect: &tokio::task::JoinError) -> Outcome {
    let failure = TurnFailure::NotStarted { why: format!("a defect in raymond: {defect}") };
    Outcome::Failed { failure, cost: Cost::Unknown, denied: Vec::new(), session: None }
}

impl World for EffectRunner<'_> {
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
