//! A client is heard until it ends, or until it has to be ended.

use std::process::ExitStatus;

use tokio::time::Instant;

use super::clocks::{Due, Timer};
use super::end::tells_of_no_room;
use super::gate::Held;
use super::{End, Fold, Said, died};
use crate::contract::{Sign, Watch};
use crate::process::{Client, Grace, Heard};

/// A client and what is known of its turn.
#[derive(Debug)]
pub(super) struct Following<T> {
    pub(super) client: Client,
    pub(super) turn: T,
    pub(super) timer: Timer,
    /// Held while it starts.
    pub(super) gate: Option<Held>,
}

enum Next {
    Heard(Heard),
    Cancelled,
}

impl<T: Fold> Following<T> {
    /// Hears the client to its end.
    pub(super) async fn finish(mut self, watch: &Watch, grace: &Grace) -> (T, End) {
        let end = loop {
            if let Some(end) = self.advance(watch).await {
                break end;
            }
        };
        // One that exited in the middle may have left its work to a child, which would go on in the
        // same conversation as whoever continues the turn.
        if !matches!(end, End::Exited { .. }) || !self.turn.is_complete() {
            self.turn.ends();
            self.end(watch, grace).await;
        }
        self.turn.look();
        self.client.release_room();
        (self.turn, end)
    }

    /// Takes in what happens next; says how the client ends when this is its end.
    async fn advance(&mut self, watch: &Watch) -> Option<End> {
        let (at, due) = self.timer.next(self.turn.stage());
        let gate = self.gate.as_ref().map(|gate| gate.until);
        let look = self.turn.look_every().map(|pause| Instant::now() + pause);
        let deadline = [gate, look].into_iter().flatten().fold(at, Instant::min);
        let next = tokio::select! {
            biased;
            () = watch.cancel.cancelled() => Next::Cancelled,
            heard = self.client.next(Some(deadline)) => Next::Heard(heard),
        };
        let heard = match next {
            Next::Cancelled => return Some(End::Cancelled),
            Next::Heard(heard) => heard,
        };
        match heard {
            Heard::Line(_) | Heard::Cut { .. } => self.gate = None,
            Heard::Stderr => {}
            Heard::Woke { gap } => {
                self.timer.woke(gap);
                return None;
            }
            Heard::Flooded { .. } => {
                self.take(&heard, watch);
                return Some(End::Flooded);
            }
            Heard::Exited(status) => return Some(self.exited(status)),
            Heard::Broken { why } => return Some(End::Environment { why }),
            Heard::Deadline => {
                self.turn.look();
                return self.hopeless().or_else(|| self.due(at, due, watch));
            }
        }
        self.take(&heard, watch);
        self.turn.look();
        if !self.turn.is_getting_nowhere() {
            self.timer.heard(Instant::now());
        }
        self.hopeless()
    }

    /// A client that has no result may have died because it could not write one.
    fn exited(&mut self, status: Option<ExitStatus>) -> End {
        let stderr = self.client.stderr();
        let exited = |stderr| End::Exited { status, stderr };
        if self.turn.is_complete() {
            return exited(stderr);
        }
        let shortage = self
            .client
            .find_shortage()
            .or_else(|| tells_of_no_room(&stderr).then(|| died(&exited(stderr.clone()))));
        shortage.map_or_else(|| exited(stderr), |why| End::Environment { why })
    }

    fn hopeless(&self) -> Option<End> {
        self.turn.is_hopeless().then_some(End::Hopeless)
    }

    /// A deadline has passed: that of a clock, or that of the gate.
    fn due(&mut self, at: Instant, due: Due, watch: &Watch) -> Option<End> {
        let now = Instant::now();
        self.gate = self.gate.take().filter(|gate| now < gate.until);
        if now < at {
            return None;
        }
        match due {
            Due::Silent(span) => {
                self.timer.told();
                (watch.listener)(Sign::Silent(span));
                None
            }
            Due::Settled => Some(End::Settled),
            Due::TimedOut(clock, after) => Some(End::TimedOut { clock, after }),
        }
    }

    fn take(&mut self, heard: &Heard, watch: &Watch) {
        for sign in self.turn.hear(heard).iter().filter_map(Said::sign) {
            (watch.listener)(sign);
        }
    }

    /// Ends the tree, and hears its last words.
    async fn end(&mut self, watch: &Watch, grace: &Grace) {
        let survivors = self.client.end(grace).await;
        for survivor in survivors {
            let pid = survivor.pid;
            self.turn
                .hearing()
                .warnings
                .say(format!("process {pid} of the client could not be ended"));
        }
        loop {
            let heard = self.client.next(Some(Instant::now())).await;
            match heard {
                Heard::Exited(_) | Heard::Deadline | Heard::Broken { .. } => return,
                heard => self.take(&heard, watch),
            }
        }
    }
}
