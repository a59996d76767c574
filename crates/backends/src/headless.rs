//! Clients without a terminal: one per prompt, whatever language it speaks.
//!
//! The client writes its stream into the transcript of the turn, which is followed line by line and
//! folded into an answer. So it outlives its owner: the next one adopts it, or reads what it left. How a
//! client is started, what its lines mean and how a turn ended is told by its [`ClientProtocol`]; everything
//! that is the same for all of them is here. Nothing is tried again.

mod argument_list;
mod client_end;
mod follow;
pub mod program;
mod recovered_turn;
mod session_step;
mod start;
mod start_gate;
mod stream_health;
mod timeouts;
mod transcript_item;
mod warnings;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{BackendName, SessionId};
use raymond_core::prices::Prices;
use tokio::time::Instant;

pub use timeouts::ClientTimeouts;
pub use transcript_item::{Speaker, TranscriptItem};

pub(crate) use argument_list::ArgumentList;
pub(crate) use client_end::{ClientEnd, death_message, output_too_large, shorten};
pub(crate) use session_step::SessionStep;
pub(crate) use start::{refused, unwritable_file};
pub(crate) use stream_health::{StreamHealth, UnknownLine};
pub(crate) use transcript_item::is_name;
pub(crate) use warnings::Warnings;

use follow::ClientFollower;
use recovered_turn::RecoveredTurn;
use start_gate::{StartGate, StartPermit};
use timeouts::TurnTimer;

use crate::contract::{
    Answer, AnswerFuture, AttachResult, Backend, Capability, Request, StartedTurn, TurnObserver,
};
use crate::process::{Client, Files, Grace, Marker, Spec, StreamEvent, adopt, shorten_long_lines};

/// What the lines of a turn add up to: the same for a client that runs, one that is adopted, and a
/// transcript that nobody writes any more.
pub(crate) trait TurnReader: Debug + Send {
    /// How well the client was heard.
    fn health(&mut self) -> &mut StreamHealth;

    /// Takes in a line, and tells what was said.
    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine>;

    /// Takes in what was heard, and tells what was said.
    fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        let bytes = match event {
            StreamEvent::Line(bytes) => bytes,
            event => {
                if matches!(event, StreamEvent::LongLine { .. } | StreamEvent::TooLarge { .. }) {
                    self.note_unread_output();
                }
                return self.health().note(event);
            }
        };
        let line = self.health().text(bytes);
        match self.read(&line) {
            Ok(said) => said,
            Err(unknown) => vec![self.health().note_unknown_line(unknown, &line)],
        }
    }

    /// Takes in that a part of the output could not be read.
    fn note_unread_output(&mut self) {}

    /// How far the client is.
    fn stage(&self) -> Stage;

    /// Whether there is a result that counts.
    fn is_complete(&self) -> bool;

    /// Whether the model has said anything.
    fn has_progressed(&self) -> bool;

    /// Whether the client is to be ended now, because of what it said: the turn knows why.
    fn should_abort(&self) -> bool;

    /// The session that the client opened under an id of its own.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// The turn as the next client takes it up, when this one did not know its session.
    fn successor(&self) -> Self
    where
        Self: Sized;

    /// A client is about to start. An error is a file that cannot be written: none may start then.
    fn before_start(&mut self, _: &SessionStep, _: &Request) -> Result<(), TurnFailure> {
        Ok(())
    }

    /// The client is about to be ended.
    fn before_end(&mut self) {}

    /// Whether what it said last is no sign of progress: its clocks run on.
    fn is_stalled(&self) -> bool {
        false
    }

    /// How often to look at what the client writes elsewhere.
    fn poll_interval(&self) -> Option<Duration> {
        None
    }

    /// Looks at what the client writes elsewhere.
    fn poll(&mut self) {}
}

/// How one kind of client is run and understood.
pub(crate) trait ClientProtocol: Debug + Send + Sync {
    /// What its lines add up to.
    type Turn: TurnReader;

    /// How workflows and flags name it.
    const NAME: &str;

    /// What it can do.
    const CAPABILITIES: &'static [Capability];

    /// A client whose tokens have these prices.
    fn new(prices: Arc<Prices>) -> Self;

    /// A turn of which nothing was heard yet.
    fn begin(&self, started: &StartedTurn) -> Self::Turn;

    /// How the client, which is this program, is started for this step, or why it cannot be.
    fn spec(
        &self,
        program: OsString,
        step: &SessionStep,
        request: &Request,
        message: String,
    ) -> Result<Spec, TurnFailure>;

    /// Whether the client would not even look for the session that the step needs.
    fn cannot_find_session(&self, _: &SessionStep) -> bool {
        false
    }

    /// How the plan of a turn is carried out.
    fn steps(&self, started: &StartedTurn) -> Vec<SessionStep> {
        SessionStep::of(&started.plan)
    }

    /// What is known of the cost.
    fn cost(&self, turn: &Self::Turn) -> Cost;

    /// How the turn ended for whoever asked. The step is the one that the last client took.
    fn answer(&self, turn: Self::Turn, end: ClientEnd, step: &SessionStep) -> Answer;

    /// Whether a transcript that nobody writes any more tells how its turn ended.
    fn is_conclusive(&self, turn: &Self::Turn) -> bool;

    /// Which of these steps wrote the end of the transcript.
    fn step_index(&self, turn: &Self::Turn, steps: &[SessionStep]) -> usize;
}

/// How far a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// It works, or has said nothing yet.
    #[default]
    Working,
    /// It has a result, and tasks of it still run.
    Background,
    /// It has a result, and nothing is left to do.
    Done,
}

/// How a client is run.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// A path, or a name that is looked up in `PATH`.
    pub command: OsString,
    /// For turns whose client does not say what they cost.
    pub prices: Prices,
    /// How long a client may take.
    pub timeouts: ClientTimeouts,
    /// How patient its end is.
    pub grace: Grace,
}

impl ClientSettings {
    /// This program, at the prices of the list and as patient as usual.
    pub fn of(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            prices: Prices::default(),
            timeouts: ClientTimeouts::default(),
            grace: Grace::default(),
        }
    }
}

/// Clients that speak one dialect.
#[derive(Debug, Clone)]
pub(crate) struct Headless<D> {
    command: OsString,
    pub(crate) protocol: D,
    timeouts: ClientTimeouts,
    pub(crate) grace: Grace,
    gate: StartGate,
}

/// One client to run: the step that it takes, and the turn as earlier clients left it.
struct StepRun<'a, T> {
    step: &'a SessionStep,
    request: &'a Request,
    message: String,
    turn: T,
}

/// A client that was started or adopted. It holds the gate while it starts.
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

    fn answer(&self, request: Request, observer: TurnObserver) -> AnswerFuture<'_> {
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
    /// Clients that are run like this.
    pub(crate) fn new(settings: ClientSettings) -> Self {
        let ClientSettings { command, prices, timeouts, grace } = settings;
        let protocol = D::new(Arc::new(prices));
        Self { command, protocol, timeouts, grace, gate: StartGate::new() }
    }

    /// One client after the other, until one knows its session. All of them share one budget share.
    async fn run_steps(&self, request: &Request, observer: &TurnObserver) -> Answer {
        let steps = self.protocol.steps(&request.started);
        // A client that knows no such session has never seen an earlier attempt.
        let messages = std::iter::once(request.message())
            .chain(std::iter::repeat_with(|| request.prompt.clone()));
        let mut answer = not_started("the plan of the turn has no conversation");
        let mut turn = self.protocol.begin(&request.started);
        for (step, message) in steps.iter().zip(messages) {
            let cost = self.protocol.cost(&turn);
            let Some(request) = with_remaining_cap(request, cost) else {
                let (progressed, denied) = (false, Vec::new());
                return Answer::Capped { cost, progressed, denied, session: None };
            };
            (answer, turn) =
                self.run_step(StepRun { step, request: &request, message, turn }, observer).await;
            if !is_lost(&answer) {
                break;
            }
        }
        answer
    }

    /// Runs one client. What those before it spent is part of the turn, which the next one takes up.
    async fn run_step(
        &self,
        run: StepRun<'_, D::Turn>,
        observer: &TurnObserver,
    ) -> (Answer, D::Turn) {
        let StepRun { step, request, message, mut turn } = run;
        let cost = self.protocol.cost(&turn);
        if message.trim().is_empty() {
            return (not_started("the prompt is empty, and the client takes none"), turn);
        }
        if let Some(session) =
            step.required_session().filter(|_| self.protocol.cannot_find_session(step))
        {
            let session = session.clone();
            return (failed(TurnFailure::LostSession { session }, cost), turn);
        }
        let gate = tokio::select! {
            biased;
            () = observer.cancel.cancelled() => {
                let answer = Answer::Interrupted { cost, progressed: false, session: None };
                return (answer, turn);
            }
            gate = self.turn_to_start(request) => gate,
        };
        let client = match self.start(step, request, message, &mut turn) {
            Ok(client) => client,
            // Without a client, nothing was spent beyond what those before it had.
            Err(failure) => return (failed(failure, cost), turn),
        };
        let launched = LaunchedClient { client, gate };
        let (turn, end) = self.follow_client(launched, turn, &request.started, observer).await;
        let next = turn.successor();
        (client_end::answer(&self.protocol, turn, end, step), next)
    }

    /// Waits for the clients that start with the same configuration.
    async fn turn_to_start(&self, request: &Request) -> Option<StartPermit> {
        match request.started.config_home {
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
            // It is said in a warning, whether the file can be cut or not.
            shorten_long_lines(&started.transcript).ok();
        }
        (turn, end)
    }

    /// Looks for a turn that an earlier owner of the run started.
    fn find_turn(&self, started: &StartedTurn) -> AttachResult {
        match adopt(&marker(started), &files(started)) {
            Ok(Some(client)) => {
                client.leave();
                AttachResult::Running
            }
            Ok(None) => match recovered_turn::read(&self.protocol, started) {
                RecoveredTurn::Answer(answer) => AttachResult::Finished(answer),
                RecoveredTurn::Nothing { cost, progressed, session } => {
                    AttachResult::Absent { cost, progressed, session }
                }
                RecoveredTurn::Unreadable { why } => AttachResult::Unreadable { why },
            },
            Err(error) => {
                AttachResult::Unreadable { why: recovered_turn::unreadable(started, &error) }
            }
        }
    }

    /// Observes a turn to its end that was found running.
    async fn adopt(&self, started: &StartedTurn, observer: &TurnObserver) -> Answer {
        let client = match adopt(&marker(started), &files(started)) {
            Ok(Some(client)) => client,
            Ok(None) => return recovered_turn::read(&self.protocol, started).into_answer(),
            Err(error) => {
                let why = recovered_turn::unreadable(started, &error);
                return RecoveredTurn::Unreadable { why }.into_answer();
            }
        };
        let begun = self.protocol.begin(started);
        let launched = LaunchedClient { client, gate: None };
        let (turn, end) = self.follow_client(launched, begun, started, observer).await;
        recovered_turn::answer(&self.protocol, turn, end, started)
    }
}

/// The marker of the client of a turn.
pub(crate) fn marker(started: &StartedTurn) -> Marker {
    Marker::new(&started.nonce, &started.turn, started.attempt)
}

/// Returns the request with what an earlier client has left of the budget share; none if nothing is
/// left, or nobody knows how much.
fn with_remaining_cap(request: &Request, spent: Cost) -> Option<Cow<'_, Request>> {
    let (cap, spent) = match (request.started.cap, spent) {
        (None, _) | (_, Cost::Free | Cost::Reported(Micros::ZERO)) => {
            return Some(Cow::Borrowed(request));
        }
        (Some(cap), Cost::Reported(spent) | Cost::Estimated(spent)) => (cap, spent),
        (Some(_), Cost::AtLeast(_) | Cost::Unknown) => return None,
    };
    let left = Some(cap.minus(spent)).filter(|left| *left > Micros::ZERO)?;
    let mut request = request.clone();
    request.started.cap = Some(left);
    Some(Cow::Owned(request))
}

fn files(started: &StartedTurn) -> Files {
    Files::of_turn(&started.transcript)
}

/// Whether the client knows no such session.
fn is_lost(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { failure: TurnFailure::LostSession { .. }, .. })
}

fn failed(failure: TurnFailure, cost: Cost) -> Answer {
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

/// The client was never started.
pub(crate) fn not_started(why: impl Into<String>) -> Answer {
    failed(TurnFailure::NotStarted { why: why.into() }, Cost::Reported(Micros::ZERO))
}
