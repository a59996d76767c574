//! The end of a drive: cancels turns, records their last outcomes and ends all processes of the
//! run.
//!
//! This runs after success, after an error and after a signal. It never starts anything.

use std::time::Duration;

use raymond_backends::process::{self, Grace};
use raymond_core::run::Phase;
use raymond_core::run::stop::StopOrigin;
use raymond_core::view;

use super::active_runs::ActiveRun;
use super::{DriveOutcome, Runner, RunnerError, Shutdown, stop_now};

/// For the second signal: processes are killed at once. The five seconds are the time that the
/// kernel gets to remove killed processes.
const NO_GRACE: Grace = Grace {
    after_exit: Duration::ZERO,
    interrupt: Duration::ZERO,
    terminate: Duration::ZERO,
    kill: Duration::from_secs(5),
};

/// How long the runner waits for the reports of turns whose processes it killed. Their costs are
/// worth a short wait, but the user has asked twice to end now.
const REPORT_WAIT: Duration = Duration::from_secs(2);

impl Runner<'_> {
    /// Ends everything that still runs, even after an error, and returns the run.
    pub(super) async fn shut_down(
        mut self,
        done: Result<(), RunnerError>,
        active_run: &ActiveRun,
    ) -> Result<DriveOutcome, RunnerError> {
        match self.shutdown {
            Shutdown::Immediate => {
                self.end_processes(active_run, &NO_GRACE).await;
                tokio::time::timeout(REPORT_WAIT, self.collect_last_reports()).await.ok();
            }
            Shutdown::Graceful => {
                if done.is_err() {
                    // Outcomes that arrive from now on must not start new turns. The driver may
                    // refuse even this; then nothing can start either.
                    self.handle(vec![stop_now(StopOrigin::Trouble)]).ok();
                }
                self.driver.world().cancel_all();
                self.collect_last_reports().await;
                self.end_processes(active_run, &Grace::default()).await;
            }
        }
        // The first error counts, but the directory is restored in any case.
        let restored = self.restore_directory();
        done?;
        restored?;
        // Writes the state file even if it is not stale, so that the last version is right even if
        // an earlier write failed or another program changed the file.
        self.write_state();
        // The head of a dead driver contains events that are not in the journal.
        if !self.driver.is_dead() {
            self.directory.save_snapshot(self.driver.head());
        }
        // This process is still alive but leaves now: a run that has not ended has no owner any
        // more.
        let alive = match self.driver.run().phase {
            Phase::Ended(_) => view::OwnerState::Alive,
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => view::OwnerState::Gone,
        };
        let status = view::status(self.driver.run(), alive);
        let (head, ..) = self.driver.into_parts();
        Ok(DriveOutcome { head, status, signal: self.signal })
    }

    /// Ends all processes of the run. If another process owns the run by now, its processes carry
    /// the same markers, so only the processes that this one started are ended.
    async fn end_processes(&mut self, active_run: &ActiveRun, grace: &Grace) {
        let nonce = &self.driver.run().nonce.clone();
        if self.directory.lock.is_in_place().unwrap_or(false) {
            active_run.end_processes(nonce, grace).await;
        } else {
            process::end_own(nonce, grace).await;
        }
    }

    /// Records the outcomes of turns that were cancelled, because each may have cost money. Errors
    /// are ignored here: the caller reports the first error, which ended the run.
    async fn collect_last_reports(&mut self) {
        while self.driver.world().running_turns() > 0 {
            let Some(report) = self.reports.recv().await else { break };
            self.driver.world().remove_turn(&report);
            if let Ok(input) = report.into_input() {
                self.handle(vec![input]).ok();
            }
        }
    }
}
