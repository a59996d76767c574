//! The two traits that one kind of client implements.
//!
//! [`ClientProtocol`] starts clients and judges finished turns; [`TurnReader`] is the state of one
//! turn, folded from its stream. `claude` and `codex` implement both. The parent module uses them
//! and knows nothing about a particular client.

use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Prices;

use super::client_end::ClientEnd;
use super::session_step::SessionStep;
use super::stream_health::{StreamHealth, UnknownLine};
use super::transcript_item::TranscriptItem;
use crate::contract::{Answer, Capability, PromptRequest, StartedTurn};
use crate::process::{Spec, StreamEvent};

/// The state of a turn, built from the lines of its stream. The same reader serves a running
/// client, an adopted client and the transcript of a client that has exited.
pub(crate) trait TurnReader: Debug + Send {
    /// Returns the warnings and read errors of the stream.
    fn health(&mut self) -> &mut StreamHealth;

    /// Reads one line and returns its readable items.
    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine>;

    /// Reads one event of the stream and returns its readable items.
    fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        let bytes = match event {
            StreamEvent::Line(bytes) => bytes,
            event => {
                // A skipped line may have contained costs, so the turn must know about it.
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

    /// Notes that a part of the output could not be read.
    fn note_unread_output(&mut self) {}

    /// Returns how far the client is.
    fn stage(&self) -> Stage;

    /// Whether the stream contains a usable result.
    fn is_complete(&self) -> bool;

    /// Whether the model has written anything.
    fn has_progressed(&self) -> bool;

    /// Whether the client must be ended now because of its output. The turn records the reason.
    fn should_abort(&self) -> bool;

    /// Returns the session that the client opened under its own id.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// Returns the turn for the next client after this client did not find its session.
    fn successor(&self) -> Self
    where
        Self: Sized;

    /// Prepares the start of a client. An error is a file that cannot be written; the client must
    /// not start then.
    fn before_start(&mut self, _: &SessionStep, _: &PromptRequest) -> Result<(), TurnFailure> {
        Ok(())
    }

    /// Notes that Raymond is about to end the client.
    fn before_end(&mut self) {}

    /// Whether the last output was not progress, so that timeouts keep running.
    fn is_stalled(&self) -> bool {
        false
    }

    /// Returns how often to call [`TurnReader::poll`].
    fn poll_interval(&self) -> Option<Duration> {
        None
    }

    /// Reads the files that the client writes besides its stream.
    fn poll(&mut self) {}
}

/// The way in which one kind of client is started and read.
pub(crate) trait ClientProtocol: Debug + Send + Sync {
    type Turn: TurnReader;

    /// The name in workflows and flags.
    const NAME: &str;

    const CAPABILITIES: &'static [Capability];

    /// Creates the protocol with the prices of its models.
    fn new(prices: Arc<Prices>) -> Self;

    /// Returns a turn without any output.
    fn begin(&self, started: &StartedTurn) -> Self::Turn;

    /// Returns the process to start for this step, or the reason why it cannot start.
    fn spec(
        &self,
        program: OsString,
        step: &SessionStep,
        request: &PromptRequest,
        message: String,
    ) -> Result<Spec, TurnFailure>;

    /// Whether the client cannot even look for the session that the step needs.
    fn cannot_find_session(&self, _: &SessionStep) -> bool {
        false
    }

    /// Returns the steps that carry out the plan of the turn.
    fn steps(&self, started: &StartedTurn) -> Vec<SessionStep> {
        SessionStep::of(&started.plan)
    }

    /// Returns the known cost of the turn.
    fn cost(&self, turn: &Self::Turn) -> Cost;

    /// Returns the answer of the turn; `step` is the step of the last client.
    fn answer(&self, turn: Self::Turn, end: ClientEnd, step: &SessionStep) -> Answer;

    /// Whether the transcript of a client that has exited shows how the turn ended.
    fn is_conclusive(&self, turn: &Self::Turn) -> bool;

    /// Returns the index of the step that wrote the end of the transcript.
    fn step_index(&self, turn: &Self::Turn, steps: &[SessionStep]) -> usize;
}

/// The stage of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// The client works, or has written nothing yet.
    #[default]
    Working,
    /// The client has a result, but some of its tasks still run.
    Background,
    /// The client has a result and nothing left to do.
    Done,
}

/// Returns the answer of the turn. If the machine lost output of the client, the turn fails as
/// `Environment` unless its result was read, and its cost is only a lower bound.
pub(super) fn answer<D: ClientProtocol>(
    protocol: &D,
    turn: D::Turn,
    end: ClientEnd,
    step: &SessionStep,
) -> Answer {
    match end {
        // A result that was read completely is valid, even if the disk failed afterwards.
        ClientEnd::Environment { why } if !turn.is_complete() => Answer::Failed {
            failure: TurnFailure::Environment { why },
            cost: protocol.cost(&turn).at_least(),
            denied: Vec::new(),
            session: turn.session(),
        },
        end => protocol.answer(turn, end, step),
    }
}
