//! The progress reports of a call to its client.
//!
//! A call reports progress without waiting, but its client may not read. So only the last reports
//! are kept while one is being sent. While nothing new happens, a heartbeat repeats the last
//! report, because most clients give up after a time without progress.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use raymond_engine::call::CallProgress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How many reports wait for a client that reads slowly. A step reports twice, so these are the
/// last eight steps; older reports are out of date.
const KEPT: usize = 16;

/// The time without a report after which a heartbeat is sent. The shortest limit of the known
/// clients is 60 seconds.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// A client that asked for progress reports.
pub(crate) struct Listener {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    last: Mutex<LastReport>,
}

/// The last report that was sent.
#[derive(Debug, Clone)]
struct LastReport {
    progress: CallProgress,
    /// How often it was repeated since.
    heartbeats: u32,
    at: Instant,
}

impl LastReport {
    /// Notes a heartbeat, and returns its progress and message. The protocol requires that progress
    /// grows, so the value of a heartbeat is between the last report and the next one.
    fn beat(&mut self, now: Instant) -> (f64, String) {
        self.heartbeats += 1;
        self.at = now;
        let fraction = 1.0 - 1.0 / (f64::from(self.heartbeats) + 1.0);
        (
            number(self.progress.count) + fraction,
            format!("still running: {}", self.progress.message),
        )
    }
}

impl Listener {
    pub(crate) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let progress =
            CallProgress { count: 0, message: "the call waits for its start".to_owned() };
        let last = LastReport { progress, heartbeats: 0, at: Instant::now() };
        Self { peer, token, last: Mutex::new(last) }
    }

    async fn send(&self, progress: CallProgress) {
        let (count, message) = (number(progress.count), progress.message.clone());
        *self.last() = LastReport { progress, heartbeats: 0, at: Instant::now() };
        self.notify(count, message).await;
    }

    /// Sends heartbeats for ever.
    async fn beat(&self) {
        loop {
            let due = self.last().at + HEARTBEAT;
            if due > Instant::now() {
                sleep_until(due).await;
                continue;
            }
            let (count, message) = self.last().beat(Instant::now());
            self.notify(count, message).await;
        }
    }

    async fn notify(&self, progress: f64, message: String) {
        let notification =
            ProgressNotificationParam::new(self.token.clone(), progress).with_message(message);
        // A lost client is noticed elsewhere.
        self.peer.notify_progress(notification).await.ok();
    }

    fn last(&self) -> std::sync::MutexGuard<'_, LastReport> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_precision_loss, reason = "no call has so many steps")]
fn number(count: u64) -> f64 {
    count as f64
}

/// Does the work, and meanwhile sends heartbeats to a client that asked for progress.
pub(crate) async fn with_heartbeat<T>(
    listener: Option<&Listener>,
    work: impl Future<Output = T>,
) -> T {
    let Some(listener) = listener else { return work.await };
    tokio::select! {
        biased;
        done = work => done,
        () = listener.beat() => unreachable!("heartbeats never end"),
    }
}

/// Sends reports until the call ends.
pub(super) async fn report(
    mut progress: mpsc::UnboundedReceiver<CallProgress>,
    listener: Option<&Listener>,
) {
    let Some(listener) = listener else {
        while progress.recv().await.is_some() {}
        return;
    };
    let mut waiting = Waiting::default();
    let mut is_open = true;
    while is_open || !waiting.reports.is_empty() {
        let Some(next) = waiting.reports.pop_front() else {
            match progress.recv().await {
                Some(report) => waiting.add(report),
                None => is_open = false,
            }
            continue;
        };
        let sending = listener.send(next);
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                () = &mut sending => break,
                report = progress.recv(), if is_open => match report {
                    Some(report) => waiting.add(report),
                    None => is_open = false,
                },
            }
        }
    }
}

#[derive(Default)]
struct Waiting {
    reports: VecDeque<CallProgress>,
    last: Option<u64>,
}

impl Waiting {
    fn add(&mut self, report: CallProgress) {
        // The protocol requires that progress grows, but a call may report anything.
        if self.last >= Some(report.count) {
            return;
        }
        self.last = Some(report.count);
        if self.reports.len() == KEPT {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: S44
    #[test]
    fn only_the_last_reports_are_kept() {
        let mut waiting = Waiting::default();
        for count in [1, 1, 3, 2].into_iter().chain(4..=10_000) {
            waiting.add(CallProgress { count, message: String::new() });
        }
        let counts: Vec<u64> = waiting.reports.iter().map(|report| report.count).collect();
        assert_eq!(counts, (10_001 - KEPT as u64..=10_000).collect::<Vec<_>>());
    }

    #[test]
    fn heartbeats_grow_and_stay_below_the_next_report() {
        let progress = CallProgress { count: 3, message: "build begins".to_owned() };
        let mut last = LastReport { progress, heartbeats: 0, at: Instant::now() };
        let beats: Vec<f64> = (0..100_000).map(|_| last.beat(Instant::now()).0).collect();
        assert!(beats.is_sorted_by(|one, next| one < next), "they grow");
        assert!(3.0 < beats[0] && *beats.last().unwrap() < 4.0);
        assert_eq!(last.beat(Instant::now()).1, "still running: build begins");
    }
}
