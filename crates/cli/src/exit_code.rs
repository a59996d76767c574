//! Exit codes of runs: the status of a run as one number, for scripts.
//!
//! The codes are an API, which docs/running.md lists. Errors have codes of their own: see
//! [`crate::failure`].

use raymond_core::view::{Status, Waiting};
use raymond_engine::runner::Signal;

/// Returns the exit code of a run with this status.
pub(crate) const fn of_run(status: Status) -> u8 {
    match status {
        Status::Running | Status::Completed => 0,
        Status::Failed => 1,
        Status::Waiting(Waiting::Person | Waiting::Caller, _) => 3,
        Status::Waiting(Waiting::Quota(_) | Waiting::Retry(_) | Waiting::Time(_), _) => 4,
        Status::OverBudget => 5,
        Status::Waiting(Waiting::Environment, _) => 7,
        Status::Cancelled => 8,
        Status::Stopped | Status::Interrupted => 130,
    }
}

/// Returns the exit code of a run that this process drove until a signal or its end.
pub(crate) const fn of_driven_run(status: Status, signal: Option<Signal>) -> u8 {
    match (status, signal) {
        // 128 and the number of the signal. SIGINT needs no row, because `Stopped` is 130 already.
        (Status::Stopped | Status::Interrupted, Some(Signal::Terminate)) => 143,
        (Status::Stopped | Status::Interrupted, Some(Signal::HangUp)) => 129,
        (status, _) => of_run(status),
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::time::Timestamp;
    use raymond_core::view::OwnerState;

    use super::*;

    #[test]
    fn status_decides_the_exit_code() {
        let waiting = |waiting| Status::Waiting(waiting, OwnerState::Gone);
        let rows = [
            (Status::Running, 0),
            (Status::Completed, 0),
            (Status::Failed, 1),
            (waiting(Waiting::Person), 3),
            (waiting(Waiting::Caller), 3),
            (waiting(Waiting::Quota(None)), 4),
            (waiting(Waiting::Retry(Timestamp(1))), 4),
            (waiting(Waiting::Time(Timestamp(1))), 4),
            (Status::OverBudget, 5),
            (waiting(Waiting::Environment), 7),
            (Status::Cancelled, 8),
            (Status::Stopped, 130),
            (Status::Interrupted, 130),
        ];
        for (status, code) in rows {
            assert_eq!(of_run(status), code, "{status:?}");
        }
    }

    #[test]
    fn signal_decides_the_code_of_stopped_runs() {
        let check = |status: Status, signal: Option<Signal>, code: u8| {
            assert_eq!(of_driven_run(status, signal), code, "{status:?} {signal:?}");
        };
        check(Status::Stopped, None, 130);
        check(Status::Stopped, Some(Signal::Interrupt), 130);
        check(Status::Stopped, Some(Signal::Terminate), 143);
        check(Status::Interrupted, Some(Signal::HangUp), 129);
        check(Status::Completed, Some(Signal::Terminate), 0);
    }
}
