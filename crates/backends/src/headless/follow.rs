//! Following a client until it exits or until Raymond has to end it.
//!
//! The loop reads events, keeps the timeouts and the start gate, and reports progress. It does not
//! judge the turn; the protocol of the client does that afterwards.

use std::process::ExitStatus;

use tokio::time::Instant;

use super::client_end::reports_full_disk;
use super::start_gate::StartPermit;
use super::timeouts::{Due, TurnTimer};
use super::{ClientEnd, TranscriptItem, TurnReader, death_message};
use crate::contract::{ClientProgress, TurnObserver};
use crate::process::{Client, Grace, StreamEvent};

/// A client that is being followed, with its turn.
#[derive(Debug)]
pub(super) struct ClientFollower<T> {
    pub(super) client: Client,
    pub(super) turn: T,
    pub(super) timer: TurnTimer,
    /// The start gate, held until the client has written something.
    pub(super) gate: Option<StartPermit>,
}

enum Next {
    Event(StreamEvent),
    Cancelled,
}

impl<T: TurnReader> ClientFollower<T> {
    /// Follows the client until it ends.
    pub(super) async fn finish(mut self, observer: &TurnObserver, grace: &Grace) -> (T, ClientEnd) {
        let end = loop {
            if let Some(end) = self.advance(observer).await {
                break end;
            }
        };
        // A client that exited in the middle of a turn may have left a child that keeps working.
        // That child would write to the same conversation as the client that continues the turn.
        if !matches!(end, ClientEnd::Exited { .. }) || !self.turn.is_complete() {
            self.turn.before_end();
            self.end_tree(observer, grace).await;
        }
        self.turn.poll();
        self.client.release_reserved_space();
        (self.turn, end)
    }

    /// Handles the next event, and returns the end if this event is the end of the client.
    async fn advance(&mut self, observer: &TurnObserver) -> Option<ClientEnd> {
        let (at, due) = self.timer.next(self.turn.stage());
        let gate = self.gate.as_ref().map(|gate| gate.until);
        let look = self.turn.poll_interval().map(|pause| Instant::now() + pause);
        // The nearest of all deadlines: one wait serves the timeouts, the gate and the polls.
        let deadline = [gate, look].into_iter().flatten().fold(at, Instant::min);
        let next = tokio::select! {
            biased;
            () = observer.cancel.cancelled() => Next::Cancelled,
            event = self.client.next(Some(deadline)) => Next::Event(event),
        };
        let event = match next {
            Next::Cancelled => return Some(ClientEnd::Cancelled),
            Next::Event(event) => event,
        };
        match event {
            // Any output means that the start is over.
            StreamEvent::Line(_) | StreamEvent::LongLine { .. } => self.gate = None,
            StreamEvent::Stderr => {}
            StreamEvent::Suspended { gap } => {
                self.timer.add_gap(gap);
                return None;
            }
            StreamEvent::TooLarge { .. } => {
                self.read_event(&event, observer);
                return Some(ClientEnd::Flooded);
            }
            StreamEvent::Exited(status) => return Some(self.exited(status)),
            StreamEvent::Unreadable { why } => return Some(ClientEnd::Environment { why }),
            StreamEvent::Deadline => {
                self.turn.poll();
                return self.abort().or_else(|| self.handle_deadline(at, due, observer));
            }
        }
        self.read_event(&event, observer);
        self.turn.poll();
        // A client that only reports retries must still reach its idle timeout.
        if !self.turn.is_stalled() {
            self.timer.note_output(Instant::now());
        }
        self.abort()
    }

    /// Returns the end of a client that has exited.
    fn exited(&mut self, status: Option<ExitStatus>) -> ClientEnd {
        // A client without a result may have died because it could not write the result.
        let stderr = self.client.stderr();
        let exited = |stderr| ClientEnd::Exited { status, stderr };
        if self.turn.is_complete() {
            return exited(stderr);
        }
        let shortage = self
            .client
            .find_disk_shortage()
            .or_else(|| reports_full_disk(&stderr).then(|| death_message(&exited(stderr.clone()))));
        shortage.map_or_else(|| exited(stderr), |why| ClientEnd::Environment { why })
    }

    fn abort(&self) -> Option<ClientEnd> {
        self.turn.should_abort().then_some(ClientEnd::Aborted)
    }

    /// Handles a deadline: of a timeout, of the start gate or of the next poll.
    fn handle_deadline(
        &mut self,
        at: Instant,
        due: Due,
        observer: &TurnObserver,
    ) -> Option<ClientEnd> {
        let now = Instant::now();
        self.gate = self.gate.take().filter(|gate| now < gate.until);
        // The deadline belonged to the gate or to a poll.
        if now < at {
            return None;
        }
        match due {
            Due::Silent(span) => {
                self.timer.note_silence_report();
                (observer.listener)(ClientProgress::Silent(span));
                None
            }
            Due::Settled => Some(ClientEnd::Settled),
            Due::TimedOut(clock, after) => Some(ClientEnd::TimedOut { clock, after }),
        }
    }

    fn read_event(&mut self, event: &StreamEvent, observer: &TurnObserver) {
        for sign in self.turn.read_event(event).iter().filter_map(TranscriptItem::progress) {
            (observer.listener)(sign);
        }
    }

    /// Ends the process tree and reads the remaining output.
    async fn end_tree(&mut self, observer: &TurnObserver, grace: &Grace) {
        let survivors = self.client.end(grace).await;
        for survivor in survivors {
            let pid = survivor.pid;
            self.turn
                .health()
                .warnings
                .add_message(format!("could not end process {pid} of the client"));
        }
        loop {
            let event = self.client.next(Some(Instant::now())).await;
            match event {
                StreamEvent::Exited(_) | StreamEvent::Deadline | StreamEvent::Unreadable { .. } => {
                    return;
                }
                event => self.read_event(&event, observer),
            }
        }
    }
}
