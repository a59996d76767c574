//! The progress reports of a call to its client.
//!
//! A call reports progress without waiting, but its client may not read. So only the last reports
//! are kept while one is being sent.

use std::collections::VecDeque;

use raymond_engine::call::Progress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;

/// How many reports wait for a client that reads slowly. A step reports twice, so these are the
/// last eight steps; older reports are out of date.
const KEPT: usize = 16;

/// A client that asked for progress reports.
pub(crate) struct Listener {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) token: ProgressToken,
}

impl Listener {
    async fn send(&self, progress: Progress) {
        #[expect(clippy::cast_precision_loss, reason = "no call has so many steps")]
        let notification =
            ProgressNotificationParam::new(self.token.clone(), progress.count as f64)
                .with_message(progress.message);
        // A lost client is noticed elsewhere.
        self.peer.notify_progress(notification).await.ok();
    }
}

/// Sends reports until the call ends.
pub(super) async fn report(
    mut progress: mpsc::UnboundedReceiver<Progress>,
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
    reports: VecDeque<Progress>,
    last: Option<u64>,
}

impl Waiting {
    fn add(&mut self, report: Progress) {
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
            waiting.add(Progress { count, message: String::new() });
        }
        let counts: Vec<u64> = waiting.reports.iter().map(|report| report.count).collect();
        assert_eq!(counts, (10_001 - KEPT as u64..=10_000).collect::<Vec<_>>());
    }
}
