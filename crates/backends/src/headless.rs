//! Clients without a terminal: one per prompt, whatever language it speaks.
//!
//! The client writes its stream into the transcript of the turn, which is followed line by line and
//! folded into an answer. So it outlives its owner: the next one adopts it, or reads what it left. How a
//! client is started, what its lines mean and how a turn ended is told by its [`Dialect`]; everything
//! that is the same for all of them is here. Nothing is tried again.

mod clocks;
mod end;
mod follow;
mod found;
mod gate;
mod hearing;
pub mod program;
mod said;
mod start;
mod steps;
mod warnings;
mod words;

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

pub use clocks::Clocks;
pub use said::{Said, Speaker};

pub(crate) use end::{End, died, shortened, too_large};
pub(crate) use hearing::{Hearing, Nonsense};
pub(crate) use said::is_name;
pub(crate) use start::{refused, unwritable};
pub(crate) use steps::Step;
pub(crate) use warnings::Warnings;
pub(crate) use words::Words;

use clocks::Timer;
use follow::Following;
use found::Left;
use gate::{Gate, Held};

use crate::contract::{Answer, Answering, Attached, Backend, Capability, Request, Started, Watch};
use crate::process::{Client, Files, Grace, Heard, Marker, Spec, adopt, cut_long_lines};

/// What the lines of a turn add up to: the same for a client that runs, one that is adopted, and a
/// transcript that nobody writes any more.
pub(crate) trait Fold: Debug + Send {
    /// How well the client was heard.
    fn hearing(&mut self) -> &mut Hearing;

    /// Takes in a line, and tells what was said.
    fn read(&mut self, line: &str) -> Result<Vec<Said>, Nonsense>;

    /// Takes in what was heard, and tells what was said.
    fn hear(&mut self, heard: &Heard) -> Vec<Said> {
        let bytes = match heard {
            Heard::Line(bytes) => bytes,
            heard => {
                if matches!(heard, Heard::Cut { .. } | Heard::Flooded { .. }) {
                    self.missed();
                }
                return self.hearing().note(heard);
            }
        };
        let line = self.hearing().text(bytes);
        match self.read(&line) {
            Ok(said) => said,
            Err(nonsense) => vec![self.hearing().nonsense(nonsense, &line)],
        }
    }

    /// Takes in that a part of the output could not be read.
    fn missed(&mut self) {}

    /// How far the client is.
    fn stage(&self) -> Stage;

    /// Whether there is a result that counts.
    fn is_complete(&self) -> bool;

    /// Whether the model has said anything.
    fn progressed(&self) -> bool;

    /// Whether the client is to be ended now, because of what it said: the turn knows why.
    fn is_hopeless(&self) -> bool;

    /// The session that the client opened under an id of its own.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// The turn as the next client takes it up, when this one did not know its session.
    fn successor(&self) -> Self
    where
        Self: Sized;

    /// A client is about to start. An error is a file that cannot be written: none may start then.
    fn starts(&mut self, _: &Step, _: &Request) -> Result<(), TurnFailure> {
        Ok(())
    }

    /// The client is about to be ended.
    fn ends(&mut self) {}

    /// Whether what it said last is no sign of progress: its clocks run on.
    fn is_getting_nowhere(&self) -> bool {
        false
    }

    /// How often to look at what the client writes elsewhere.
    fn look_every(&self) -> Option<Duration> {
        None
    }

    /// Looks at what the client writes elsewhere.
    fn look(&mut self) {}
}

/// How one kind of client is run and understood.
pub(crate) trait Dialect: Debug + Send + Sync {
    /// What its lines add up to.
    type Turn: Fold;

    /// How workflows and flags name it.
    const NAME: &str;

    /// What it can do.
    const CAPABILITIES: &'static [Capability];

    /// A client whose tokens have these prices.
    fn new(prices: Arc<Prices>) -> Self;

    /// A turn of which nothing was heard yet.
    fn begin(&self, started: &Started) -> Self::Turn;

    /// How the client, which is this program, is started for this step, or why it cannot be.
    fn spec(
        &self,
        program: OsString,
        step: &Step,
        request: &Request,
        message: String,
    ) -> Result<Spec, TurnFailure>;

    /// Whether the client would not even look for the session that the step needs.
    fn cannot_know(&self, _: &Step) -> bool {
        false
    }

    /// How the plan of a turn is carried out.
    fn steps(&self, started: &Started) -> Vec<Step> {
        Step::of(&started.plan)
    }

    /// What is known of the cost.
    fn cost(&self, turn: &Self::Turn) -> Cost;

    /// How the turn ended for whoever asked. The step is the one that the last client took.
    fn answer(&self, turn: Self::Turn, end: End, step: &Step) -> Answer;

    /// Whether a transcript that nobody writes any more tells how its turn ended.
    fn is_conclusive(&self, turn: &Self::Turn) -> bool;

    /// Which of these steps wrote the end of the transcript.
    fn place(&self, turn: &Self::Turn, steps: &[Step]) -> usize;
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
pub struct Settings {
    /// A path, or a name that is looked up in `PATH`.
    pub command: OsString,
    /// For turns whose client does not say what they cost.
    pub prices: Prices,
    /// How long a client may take.
    pub clocks: Clocks,
    /// How patient its end is.
    pub grace: Grace,
}

impl Settings {
    /// This program, at the prices of the list and as patient as usual.
    pub fn of(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            prices: Prices::default(),
            clocks: Clocks::default(),
            grace: Grace::default(),
        }
    }
}

/// Clients that speak one dialect.
#[derive(Debug, Clone)]
pub(crate) struct Headless<D> {
    command: OsString,
    pub(crate) dialect: D,
    clocks: Clocks,
    pub(crate) grace: Grace,
    gate: Gate,
}

impl<D: Dialect> Backend for Headless<D> {
    fn name(&self) -> BackendName {
        BackendName::new(D::NAME)
    }

    fn capabilities(&self) -> &'static [Capability] {
        D::CAPABILITIES
    }

    fn answer(&self, request: Request, watch: Watch) -> Answering<'_> {
        Box::pin(async move { self.ask(&request, &watch).await })
    }

    fn attach(&self, started: &Started) -> Attached {
        self.look_for(started)
    }

    fn follow(&self, started: Started, watch: Watch) -> Answering<'_> {
        Box::pin(async move { self.adopt(&started, &watch).await })
    }
}

impl<D: Dialect> Headless<D> {
    /// Clients that are run like this.
    pub(crate) fn new(settings: Settings) -> Self {
        let Settings { command, prices, clocks, grace } = settings;
        let dialect = D::new(Arc::new(prices));
        Self { command, dialect, clocks, grace, gate: Gate::new() }
    }

    /// One client after the other, until one knows its session. All of them share one budget share.
    async fn ask(&self, request: &Request, watch: &Watch) -> Answer {
        let steps = self.dialect.steps(&request.started);
        // A client that knows no such session has never seen an earlier attempt.
        let messages = std::iter::once(request.message())
            .chain(std::iter::repeat_with(|| request.prompt.clone()));
        let mut answer = not_started("the plan of the turn has no conversation");
        let mut turn = self.dialect.begin(&request.started);
        for (step, message) in steps.iter().zip(messages) {
            let cost = self.dialect.cost(&turn);
            let Some(request) = with_rest(request, cost) else {
                let (progressed, denied) = (false, Vec::new());
                return Answer::Capped { cost, progressed, denied, session: None };
            };
            (answer, turn) = self.take(step, &request, (message, turn), watch).await;
            if !is_lost(&answer) {
                break;
            }
        }
        answer
    }

    /// Runs one client. What those before it spent is part of the turn, which the next one takes up.
    async fn take(
        &self,
        step: &Step,
        request: &Request,
        (message, mut turn): (String, D::Turn),
        watch: &Watch,
    ) -> (Answer, D::Turn) {
        let cost = self.dialect.cost(&turn);
        if message.trim().is_empty() {
            return (not_started("the prompt is empty, and the client takes none"), turn);
        }
        if let Some(session) = step.needs().filter(|_| self.dialect.cannot_know(step)) {
            let session = session.clone();
            return (failed(TurnFailure::LostSession { session }, cost), turn);
        }
        let gate = tokio::select! {
            biased;
            () = watch.cancel.cancelled() => {
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
        let (turn, end) = self.following(client, (&request.started, turn), gate, watch).await;
        let next = turn.successor();
        (end::answer(&self.dialect, turn, end, step), next)
    }

    /// Waits for the clients that start with the same configuration.
    async fn turn_to_start(&self, request: &Request) -> Option<Held> {
        match request.started.config_home {
            Some(_) => None,
            None => self.gate.pass(self.clocks.start).await,
        }
    }

    async fn following(
        &self,
        client: Client,
        (started, turn): (&Started, D::Turn),
        gate: Option<Held>,
        watch: &Watch,
    ) -> (D::Turn, End) {
        let limits = (started.timeout, started.idle_timeout);
        let timer = Timer::new(self.clocks, limits, Instant::now());
        let following = Following { client, turn, timer, gate };
        let (mut turn, end) = following.finish(watch, &self.grace).await;
        if turn.hearing().long_lines > 0 {
            // It is said in a warning, whether the file can be cut or not.
            cut_long_lines(&started.transcript).ok();
        }
        (turn, end)
    }

    /// Looks for a turn that an earlier owner of the run started.
    fn look_for(&self, started: &Started) -> Attached {
        match adopt(&marker(started), &files(started)) {
            Ok(Some(client)) => {
                client.leave();
                Attached::Running
            }
            Ok(None) => match found::read(&self.dialect, started) {
                Left::Answer(answer) => Attached::Finished(answer),
                Left::Nothing { cost, progressed, session } => {
                    Attached::Absent { cost, progressed, session }
                }
                Left::Unreadable { why } => Attached::Unreadable { why },
            },
            Err(error) => Attached::Unreadable { why: found::unreadable(started, &error) },
        }
    }

    /// Observes a turn to its end that was found running.
    async fn adopt(&self, started: &Started, watch: &Watch) -> Answer {
        let client = match adopt(&marker(started), &files(started)) {
            Ok(Some(client)) => client,
            Ok(None) => return found::read(&self.dialect, started).into_answer(),
            Err(error) => {
                let why = found::unreadable(started, &error);
                return Left::Unreadable { why }.into_answer();
            }
        };
        let begun = self.dialect.begin(started);
        let (turn, end) = self.following(client, (started, begun), None, watch).await;
        found::answer(&self.dialect, turn, end, started)
    }
}

/// The marker of the client of a turn.
pub(crate) fn marker(started: &Started) -> Marker {
    Marker::new(&started.nonce, &started.turn, started.attempt)
}

/// Returns the request with what an earlier client has left of the budget share; none if nothing is
/// left, or nobody knows how much.
fn with_rest(request: &Request, spent: Cost) -> Option<Cow<'_, Request>> {
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

fn files(started: &Started) -> Files {
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
