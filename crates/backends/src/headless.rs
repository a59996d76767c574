//! Clients without a terminal: one process per prompt.
//!
//! The client writes its stream to the transcript of the turn. Raymond follows that file line by
//! line and folds the lines into an answer. A client therefore outlives its owner: the next owner
//! adopts the client, or reads its finished transcript.
//!
//! This module contains everything that all clients share. A [`ClientProtocol`] defines how one
//! kind of client is started and how its lines are read. Nothing here retries.

mod argument_list;
mod client_end;
mod follow;
mod preflight;
pub mod program;
mod protocol;
mod recovered_turn;
mod screen_line;
mod session_step;
mod start;
mod start_gate;
mod stream_health;
mod timeouts;
mod transcript_item;
pub(crate) mod warnings;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::stop::Interruption;
use tokio::time::Instant;

pub use preflight::{ClientProblem, RequestedOptions};
pub use timeouts::ClientTimeouts;
pub use transcript_item::{Speaker, TranscriptItem};

pub(crate) use argument_list::ArgumentList;
pub(crate) use client_end::{ClientEnd, death_message, output_too_large};
pub(crate) use protocol::{ClientProtocol, Stage, TurnReader};
pub(crate) use screen_line::shorten;
pub(crate) use session_step::SessionStep;
pub(crate) use start::{start_failure, unwritable_file};
pub(crate) use stream_health::{StreamHealth, UnknownLine};
pub(crate) use transcript_item::is_safe_id;

use follow::ClientFollower;
use start_gate::{StartGate, StartPermit};
use timeouts::TurnTimer;

use crate::contract::{
    Answer, AnswerFuture, AttachResult, Backend, Capability, PromptRequest, StartedTurn,
    TurnObserver,
};
use crate::process::{Client, Grace, Marker, OutputFiles, adopt, shorten_long_lines};

#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// A path, or a name that is looked up in `PATH`.
    pub command: OsString,
    /// The prices for turns whose client does not report costs.
    pub prices: Prices,
    pub timeouts: ClientTimeouts,
    /// The pauses between the signals that end a client.
    pub grace: Grace,
}

impl ClientSettings {
    /// Returns settings for this program with default prices, timeouts and grace.
    pub fn of(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            prices: Prices::default(),
            timeouts: ClientTimeouts::default(),
            grace: Grace::default(),
        }
    }
}

/// A backend whose clients use one protocol.
#[derive(Debug, Clone)]
pub(crate) struct Headless<D> {
    command: OsString,
    pub(crate) protocol: D,
    timeouts: ClientTimeouts,
    pub(crate) grace: Grace,
    gate: StartGate,
}

/// One client to run, with the turn as earlier clients left it.
struct StepRun<'a, T> {
    step: &'a SessionStep,
    request: &'a PromptRequest,
    message: String,
    turn: T,
}

/// A client that was started or adopted, with the gate if the client is still starting.
struct LaunchedClient {
    client: Client,
    gate: Option<StartPermit>,
}

impl<D: ClientProtocol> Backend for Headless<D> {
    fn name(&self) -> BackendName {
        BackendName::new(D::NAME)
    }

    fn capabilities(&self) -> &'static [Capability] {
        D::CAPABILITIES
    }

    fn answer(&self, request: PromptRequest, observer: TurnObserver) -> AnswerFuture<'_> {
        Box::pin(async move { self.run_steps(&request, &observer).await })
    }

    fn attach(&self, started: &StartedTurn) -> AttachResult {
        self.find_turn(started)
    }

    fn follow(&self, started: StartedTurn, observer: TurnObserver) -> AnswerFuture<'_> {
        Box::pin(async move { self.adopt(&started, &observer).await })
    }
}

impl<D: ClientProtocol> Headless<D> {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        let ClientSettings { command, prices, timeouts, grace } = settings;
        let protocol = D::new(Arc::new(prices));
        Self { command, protocol, timeouts, grace, gate: StartGate::new() }
    }

    /// Runs one client after the other until a client finds its session.
    async fn run_steps(&self, request: &PromptRequest, observer: &TurnObserver) -> Answer {
        // All clients share one budget share.
        let steps = self.protocol.steps(&request.started);
        // Only the first step may meet a session that saw an earlier attempt, so later clients get
        // the prompt without the notice.
        let messages = std::iter::once(request.message())
            .chain(std::iter::repeat_with(|| request.prompt.clone()));
        let mut answer = not_started("the plan of the turn has no conversation");
        let mut turn = self.protocol.begin(&request.started);
        for (step, message) in steps.iter().zip(messages) {
            let cost = self.protocol.cost(&turn);
            // Earlier clients spent from the same budget share.
            let Some(request) = with_remaining_cap(request, cost) else {
                let (progressed, denied) = (false, Vec::new());
                return Answer::Capped { cost, progressed, denied, session: None };
            };
            (answer, turn) =
                self.run_step(StepRun { step, request: &request, message, turn }, observer).await;
            if !has_lost_session(&answer) {
                break;
            }
        }
        answer
    }

    /// Runs one client.
    async fn run_step(
        &self,
        run: StepRun<'_, D::Turn>,
        observer: &TurnObserver,
    ) -> (Answer, D::Turn) {
        // The returned turn includes the costs of earlier clients.
        let StepRun { step, request, message, mut turn } = run;
        let cost = self.protocol.cost(&turn);
        if message.trim().is_empty() {
            return (not_started("the prompt is empty, but the client needs one"), turn);
        }
        if let Some(session) =
            step.required_session().filter(|_| self.protocol.cannot_find_session(step))
        {
            let session = session.clone();
            return (failed(TurnFailure::LostSession { session }, cost), turn);
        }
        // `biased` checks the token first: a cancelled turn must never start a client.
        let gate = tokio::select! {
            biased;
            () = observer.cancel.cancelled() => {
                let answer = Answer::Interrupted { by: Interruption::Stop, cost, progressed: false, session: None };
                return (answer, turn);
            }
            gate = self.turn_to_start(request) => gate,
        };
        let client = match self.start(step, request, message, &mut turn) {
            Ok(client) => client,
            // Without a client, only the earlier clients of this turn cost anything.
            Err(failure) => return (failed(failure, cost), turn),
        };
        let launched = LaunchedClient { client, gate };
        let (turn, end) = self.follow_client(launched, turn, &request.started, observer).await;
        let next = turn.successor();
        (protocol::answer(&self.protocol, turn, end, step), next)
    }

    /// Waits until no other client starts with the same configuration.
    async fn turn_to_start(&self, request: &PromptRequest) -> Option<StartPermit> {
        match request.started.config_home {
            // No other client writes to a configuration directory of its own.
            Some(_) => None,
            None => self.gate.pass(self.timeouts.start).await,
        }
    }

    async fn follow_client(
        &self,
        launched: LaunchedClient,
        turn: D::Turn,
        started: &StartedTurn,
        observer: &TurnObserver,
    ) -> (D::Turn, ClientEnd) {
        let (wall, idle) = (started.timeout, started.idle_timeout);
        let timer = TurnTimer::new(self.timeouts, wall, idle, Instant::now());
        let LaunchedClient { client, gate } = launched;
        let follower = ClientFollower { client, turn, timer, gate };
        let (mut turn, end) = follower.finish(observer, &self.grace).await;
        if turn.health().long_lines > 0 {
            // A warning already reports the long line, so a failure to shorten the file is
            // harmless.
            shorten_long_lines(&started.transcript).ok();
        }
        (turn, end)
    }

    /// Looks for a turn that an earlier owner of the run started.
    fn find_turn(&self, started: &StartedTurn) -> AttachResult {
        match adopt(&marker(started), &turn_files(started)) {
            Ok(Some(client)) => {
                // `attach` only reports. The client must survive the drop of this handle.
                client.keep_running();
                AttachResult::Running
            }
            Ok(None) => match recovered_turn::from_transcript(&self.protocol, started) {
                Ok(answer) => AttachResult::Ended(answer),
                Err(why) => AttachResult::Unreadable { why },
            },
            Err(error) => AttachResult::Unreadable {
                why: recovered_turn::unreadable_message(started, &error),
            },
        }
    }

    /// Observes a turn that was found running until it ends.
    async fn adopt(&self, started: &StartedTurn, observer: &TurnObserver) -> Answer {
        let client = match adopt(&marker(started), &turn_files(started)) {
            Ok(Some(client)) => client,
            // The client exited between `attach` and this call.
            Ok(None) => {
                let found = recovered_turn::from_transcript(&self.protocol, started);
                return recovered_turn::answer_of(found);
            }
            Err(error) => {
                let why = recovered_turn::unreadable_message(started, &error);
                return recovered_turn::answer_of(Err(why));
            }
        };
        let begun = self.protocol.begin(started);
        let launched = LaunchedClient { client, gate: None };
        let (turn, end) = self.follow_client(launched, begun, started, observer).await;
        recovered_turn::adopted_answer(&self.protocol, turn, end, started)
    }
}

/// Returns the marker of the client of this turn.
pub(crate) fn marker(started: &StartedTurn) -> Marker {
    Marker::new(&started.nonce, &started.turn, started.attempt)
}

/// Returns the request with the rest of the budget share, or `None` if nothing is left or the rest
/// is unknown.
fn with_remaining_cap(request: &PromptRequest, spent: Cost) -> Option<Cow<'_, PromptRequest>> {
    let (cap, spent) = match (request.started.cap, spent) {
        (None, _) | (_, Cost::Free | Cost::Reported(Micros::ZERO)) => {
            return Some(Cow::Borrowed(request));
        }
        (Some(cap), Cost::Reported(spent) | Cost::Estimated(spent)) => (cap, spent),
        // An unknown rest counts as used up, because a second client could exceed the cap.
        (Some(_), Cost::AtLeast(_) | Cost::Unknown) => return None,
    };
    let left = Some(cap.minus(spent)).filter(|left| *left > Micros::ZERO)?;
    let mut request = request.clone();
    request.started.cap = Some(left);
    Some(Cow::Owned(request))
}

fn turn_files(started: &StartedTurn) -> OutputFiles {
    OutputFiles::for_turn(&started.transcript)
}

/// Whether the turn failed because the client does not know the session.
fn has_lost_session(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { failure: TurnFailure::LostSession { .. }, .. })
}

fn failed(failure: TurnFailure, cost: Cost) -> Answer {
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

/// Returns the answer for a client that was never started; it cost nothing.
pub(crate) fn not_started(why: impl Into<String>) -> Answer {
    failed(TurnFailure::NotStarted { why: why.into() }, Cost::Reported(Micros::ZERO))
}
