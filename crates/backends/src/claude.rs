//! Claude Code, without a terminal: one invocation for each turn.
//!
//! The client writes its stream of typed lines into the transcript of the turn. [`turn`] folds those
//! lines, and [`outcome`] says what they add up to: the same for a client that runs, one that an
//! earlier owner started, and a transcript that nobody writes any more. Nothing here decides what
//! follows from it.

mod arguments;
mod clocks;
mod fault;
mod follow;
mod line;
mod outcome;
pub mod preflight;
mod shape;
mod spending;
mod steps;
mod tools;
mod turn;
mod warnings;

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::BackendName;
use raymond_core::machine::SessionPlan;
use raymond_core::prices::Prices;
use raymond_core::time::Span;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub use arguments::DEFAULT_MODE;
pub use clocks::Clocks;

use crate::contract::{Answer, Answering, Attached, Backend, Capability, Request, Started, Watch};
use crate::process::{self, Client, Files, Grace, Inherit, Input, Marker, Spec};
use crate::script::foreign;
use clocks::Timer;
use outcome::{How, answer};
use steps::Step;
use turn::{Ended, Turn};

/// Its name.
pub const NAME: &str = "claude";

/// The variable that says how often the client itself tries again, and what it is set to: whoever
/// waits in here cannot be resumed.
const RETRIES: (&str, &str) = ("CLAUDE_CODE_MAX_RETRIES", "2");

/// The client, and what is known about it.
#[derive(Debug, Clone)]
pub struct Claude {
    command: OsString,
    prices: Prices,
    clocks: Clocks,
    grace: Grace,
    /// Clients that share a configuration start one after the other.
    door: Arc<Semaphore>,
}

impl Claude {
    /// The client that is started as `command`.
    pub fn new(command: impl Into<OsString>, prices: Prices) -> Self {
        Self {
            command: command.into(),
            prices,
            clocks: Clocks::default(),
            grace: Grace::default(),
            door: Arc::new(Semaphore::new(1)),
        }
    }

    /// The same with other clocks.
    #[must_use]
    pub fn with_clocks(self, clocks: Clocks, grace: Grace) -> Self {
        Self { clocks, grace, ..self }
    }

    async fn run(&self, request: &Request, watch: &Watch) -> Answer {
        let steps = Step::of(&request.started.plan);
        let mut turn = Turn::default();
        let mut timer = self.timer(&request.started);
        for step in &steps {
            let (client, permit) = match self.start(request, step, watch).await {
                Ok(Some(started)) => started,
                Ok(None) => {
                    let (cost, progressed) = (Cost::Reported(Micros::ZERO), false);
                    return Answer::Interrupted { cost, progressed };
                }
                Err(error) => return self.not_started(&error),
            };
            timer.starts(Instant::now());
            let how = self.follow_to_the_end(client, (&mut turn, &mut timer), watch, permit).await;
            if how == How::Cancelled || !may_go_on(&turn, &request.started.plan) {
                return answer(turn, &how, step, &self.prices);
            }
        }
        self.not_started(&io::Error::other("the plan has no session"))
    }

    async fn follow_to_the_end(
        &self,
        mut client: Client,
        state: (&mut Turn, &mut Timer),
        watch: &Watch,
        permit: Option<OwnedSemaphorePermit>,
    ) -> How {
        follow::follow(&mut client, state, (watch, &self.grace), permit).await
    }

    /// Starts the client of a step; nothing when the turn was cancelled before.
    async fn start(
        &self,
        request: &Request,
        step: &Step,
        watch: &Watch,
    ) -> io::Result<Option<(Client, Option<OwnedSemaphorePermit>)>> {
        let permit = if request.config_home.is_some() {
            None
        } else {
            tokio::select! {
                biased;
                () = watch.cancel.cancelled() => return Ok(None),
                permit = Arc::clone(&self.door).acquire_owned() => permit.ok(),
            }
        };
        if watch.cancel.is_cancelled() {
            return Ok(None);
        }
        if let Some(home) = &request.config_home {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        }
        let client = process::start_client(self.spec(request, step), &files(&request.started))?;
        Ok(Some((client, permit)))
    }

    fn spec(&self, request: &Request, step: &Step) -> Spec {
        let mut set: Vec<(OsString, OsString)> = Vec::new();
        if std::env::var_os(RETRIES.0).is_none() {
            set.push((RETRIES.0.into(), RETRIES.1.into()));
        }
        if let Some(home) = &request.config_home {
            set.push(("CLAUDE_CONFIG_DIR".into(), home.into()));
        }
        Spec {
            program: self.command.clone(),
            arguments: arguments::arguments(request, step),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set,
            unset: foreign(std::env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: Input::Bytes(request.message().into_bytes()),
        }
    }

    fn timer(&self, started: &Started) -> Timer {
        let span = |span: Option<Span>| span.map(|span| Duration::from_millis(span.0));
        let timer = Timer::new(self.clocks, Instant::now());
        timer.limited(span(started.timeout), span(started.idle_timeout))
    }

    fn not_started(&self, error: &io::Error) -> Answer {
        let why = format!("{}: {error}", self.command.display());
        let failure = TurnFailure::NotStarted { why };
        Answer::Failed { failure, cost: Cost::Reported(Micros::ZERO) }
    }

    /// What a transcript that nobody writes any more adds up to.
    fn read(&self, started: &Started) -> Attached {
        let mut turn = Turn::default();
        let heard = hear(&mut turn, started);
        let is_over = match &turn.result {
            Some(ended) if ended.lost_its_session() => !may_go_on(&turn, &started.plan),
            Some(ended) => !ended.was_cut_off(),
            None => false,
        };
        if heard.is_ok() && is_over {
            return Attached::Finished(self.conclude(turn, &How::Settled, &started.plan));
        }
        let cost = turn.spending.cost(&self.prices);
        Attached::Absent { cost, progressed: turn.progressed() }
    }

    /// The answer of a turn of which only the transcript is known.
    fn conclude(&self, mut turn: Turn, how: &How, plan: &SessionPlan) -> Answer {
        if may_go_on(&turn, plan) {
            // The client that was to follow was never started: the next attempt starts it.
            turn.result = None;
        }
        let steps = Step::of(plan);
        // As many clients as lost their session came before the last one.
        match steps.get(turn.lost).or(steps.last()) {
            Some(step) => answer(turn, how, step, &self.prices),
            None => self.not_started(&io::Error::other("the plan has no session")),
        }
    }
}

/// Whether the last client lost its session, and the plan knows another way.
fn may_go_on(turn: &Turn, plan: &SessionPlan) -> bool {
    let is_lost = turn.result.as_ref().is_some_and(Ended::lost_its_session);
    is_lost && turn.lost < Step::of(plan).len()
}

impl Backend for Claude {
    fn name(&self) -> BackendName {
        BackendName::new(NAME)
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::Fresh,
            Capability::Resume,
            Capability::Branch,
            Capability::Cost,
            Capability::Cap,
        ]
    }

    fn answer(&self, request: Request, watch: Watch) -> Answering<'_> {
        Box::pin(async move { self.run(&request, &watch).await })
    }

    fn attach(&self, started: &Started) -> Attached {
        match process::adopt(&marker(started), &files(started)) {
            Some(client) => {
                // It is followed as soon as the run goes on.
                client.leave();
                Attached::Running
            }
            None => self.read(started),
        }
    }

    fn follow(&self, started: Started, watch: Watch) -> Answering<'_> {
        Box::pin(async move {
            let (mut turn, mut timer) = (Turn::default(), self.timer(&started));
            let how = match process::adopt(&marker(&started), &files(&started)) {
                Some(client) => {
                    let state = (&mut turn, &mut timer);
                    self.follow_to_the_end(client, state, &watch, None).await
                }
                // It ended since it was found.
                None => {
                    hear(&mut turn, &started).ok();
                    How::Settled
                }
            };
            self.conclude(turn, &how, &started.plan)
        })
    }
}

/// Hears all that a transcript holds.
fn hear(turn: &mut Turn, started: &Started) -> io::Result<()> {
    process::read_transcript(&started.transcript, &mut |heard| drop(turn.hear(&heard)))
}

fn marker(started: &Started) -> Marker {
    Marker::new(&started.nonce, &started.turn, started.attempt)
}

fn files(started: &Started) -> Files {
    Files {
        stdout: started.transcript.clone(),
        stderr: started.transcript.with_extension("stderr"),
    }
}

#[cfg(test)]
mod tests;
