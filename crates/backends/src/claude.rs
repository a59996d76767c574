//! Claude Code, without a terminal: one client per prompt.
//!
//! The client writes its stream into the transcript of the turn, which is followed line by line and
//! folded into an answer. So it outlives its owner: the next one adopts it, or reads what it left. The
//! id of every session is chosen before the client starts. All that is decided here comes from typed
//! fields of the stream; nothing is tried again.

mod arguments;
mod clocks;
mod fault;
mod follow;
mod found;
mod gate;
mod line;
mod outcome;
pub mod preflight;
mod said;
mod shape;
mod spending;
mod steps;
mod surrogates;
mod tools;
mod turn;
mod warnings;

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use tokio::time::Instant;

pub use arguments::DEFAULT_MODE;
pub use clocks::Clocks;
pub use said::{Recount, Said, Speaker};

use clocks::Timer;
use follow::Following;
use found::Left;
use gate::{Gate, Held};
use outcome::End;
use spending::Spending;
use steps::Step;
use turn::Turn;

use crate::contract::{Answer, Answering, Attached, Backend, Capability, Request, Started, Watch};
use crate::process::{
    Client, Files, Grace, Inherit, Input, Marker, Spec, adopt, cut_long_lines, start_client,
};

/// How workflows and flags name it.
pub const NAME: &str = "claude";

/// What it can do.
pub const CAPABILITIES: &[Capability] = &[
    Capability::Fresh,
    Capability::Resume,
    Capability::Branch,
    Capability::ChosenIds,
    Capability::Cost,
    Capability::Cap,
    Capability::Effort,
    Capability::Permissions,
];

/// How the client is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A path, or a name that is looked up in `PATH`.
    pub command: OsString,
    /// For turns that end without saying what they cost.
    pub prices: Prices,
    /// How long a client may take.
    pub clocks: Clocks,
    /// How patient its end is.
    pub grace: Grace,
}

/// The Claude Code client.
#[derive(Debug, Clone)]
pub struct Claude {
    settings: Settings,
    gate: Gate,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: NAME.into(),
            prices: Prices::default(),
            clocks: Clocks::default(),
            grace: Grace::default(),
        }
    }
}

impl Claude {
    /// A client that is run like this.
    pub fn new(settings: Settings) -> Self {
        Self { settings, gate: Gate::new() }
    }

    /// One client after the other, until one knows its session.
    async fn carry_out(&self, request: &Request, watch: &Watch) -> Answer {
        let steps = Step::of(&request.started.plan);
        // A client that knows no such session has never seen an earlier attempt.
        let messages = std::iter::once(request.message())
            .chain(std::iter::repeat_with(|| request.prompt.clone()));
        let mut answer = not_started("the plan of the turn has no conversation");
        let mut spending = Spending::default();
        for (step, message) in steps.iter().zip(messages) {
            answer = self.take(step, request, (message, &mut spending), watch).await;
            if !found::is_lost(&answer) {
                break;
            }
        }
        answer
    }

    /// Runs one client. What those before it spent is part of the turn.
    async fn take(
        &self,
        step: &Step,
        request: &Request,
        (message, spending): (String, &mut Spending),
        watch: &Watch,
    ) -> Answer {
        let prices = &self.settings.prices;
        if message.trim().is_empty() {
            return not_started("the prompt is empty, and the client takes none");
        }
        let gate = tokio::select! {
            biased;
            () = watch.cancel.cancelled() => {
                let cost = spending.cost(prices);
                return Answer::Interrupted { cost, progressed: false };
            }
            gate = self.turn_to_start(request) => gate,
        };
        let client = match self.start(step, request, message) {
            Ok(client) => client,
            Err(why) => {
                let (failure, cost) = (TurnFailure::NotStarted { why }, spending.cost(prices));
                return Answer::Failed { failure, cost, denied: Vec::new() };
            }
        };
        let begun = Turn::after(std::mem::take(spending));
        let (turn, end) = self.following(client, (&request.started, begun), gate, watch).await;
        *spending = turn.spending.clone();
        outcome::answer(turn, end, step, prices)
    }

    /// Waits for the clients that start with the same configuration.
    async fn turn_to_start(&self, request: &Request) -> Option<Held> {
        match request.config_home {
            Some(_) => None,
            None => self.gate.pass(self.settings.clocks.start).await,
        }
    }

    fn start(&self, step: &Step, request: &Request, message: String) -> Result<Client, String> {
        let program = preflight::find(&self.settings.command, env::var_os("PATH").as_deref());
        let program = program.map_err(|problem| problem.to_string())?;
        // States may have been edited since the start.
        preflight::keeps_checks(&request.permissions).map_err(|problem| problem.to_string())?;
        // The directory of the transcripts may have vanished under a living run.
        let transcripts = request.started.transcript.parent();
        for place in request.config_home.as_deref().into_iter().chain(transcripts) {
            private_directory(place)
                .map_err(|error| format!("cannot create {}: {error}", place.display()))?;
        }
        let spec = Spec {
            arguments: arguments::arguments(request, step),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set: arguments::environment(request, |name| env::var_os(name).is_some()),
            unset: arguments::foreign(env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: Input::Bytes(message.into_bytes()),
            program: program.into_os_string(),
        };
        let program = spec.program.clone();
        start_client(spec, &files(&request.started)).map_err(|error| refused(&program, &error))
    }

    async fn following(
        &self,
        client: Client,
        (started, turn): (&Started, Turn),
        gate: Option<Held>,
        watch: &Watch,
    ) -> (Turn, End) {
        let limits = (started.timeout, started.idle_timeout);
        let timer = Timer::new(self.settings.clocks, limits, Instant::now());
        let following = Following { client, turn, timer, gate };
        let (turn, end) = following.finish(watch, &self.settings.grace).await;
        if turn.long_lines > 0 {
            // It is said in a warning, whether the file can be cut or not.
            cut_long_lines(&started.transcript).ok();
        }
        (turn, end)
    }
}

impl Backend for Claude {
    fn name(&self) -> BackendName {
        BackendName::new(NAME)
    }

    fn capabilities(&self) -> &'static [Capability] {
        CAPABILITIES
    }

    fn answer(&self, request: Request, watch: Watch) -> Answering<'_> {
        Box::pin(async move { self.carry_out(&request, &watch).await })
    }

    fn attach(&self, started: &Started) -> Attached {
        match adopt(&marker(started), &files(started)) {
            Some(client) => {
                client.leave();
                Attached::Running
            }
            None => match found::read(started, &self.settings.prices) {
                Left::Answer(answer) => Attached::Finished(answer),
                Left::Nothing { cost, progressed } => Attached::Absent { cost, progressed },
            },
        }
    }

    fn follow(&self, started: Started, watch: Watch) -> Answering<'_> {
        Box::pin(async move {
            let Some(client) = adopt(&marker(&started), &files(&started)) else {
                return match found::read(&started, &self.settings.prices) {
                    Left::Answer(answer) => answer,
                    Left::Nothing { cost, progressed } => Answer::Interrupted { cost, progressed },
                };
            };
            let begun = Turn::default();
            let (turn, end) = self.following(client, (&started, begun), None, &watch).await;
            found::answer(turn, end, &started, &self.settings.prices)
        })
    }
}

fn marker(started: &Started) -> Marker {
    Marker::new(&started.nonce, &started.turn, started.attempt)
}

fn files(started: &Started) -> Files {
    let stdout = started.transcript.clone();
    Files { stderr: stdout.with_extension("stderr"), stdout }
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn refused(program: &OsString, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::ArgumentListTooLong => " (its arguments or its environment are too large)",
        _ => "",
    };
    format!("cannot run {}: {error}{hint}", program.display())
}

fn failed(failure: TurnFailure) -> Answer {
    Answer::Failed { failure, cost: Cost::Reported(Micros::ZERO), denied: Vec::new() }
}

fn not_started(why: impl Into<String>) -> Answer {
    failed(TurnFailure::NotStarted { why: why.into() })
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
