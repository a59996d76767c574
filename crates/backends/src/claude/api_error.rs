//! What a client said of an error before it concluded.
//!
//! The message by which it tells of a usage limit holds what the refused request was answered. A
//! request that is merely too early has no such record: the server said how long to wait, the client
//! waited so long, and how long that was is in the lines of its retries.

use raymond_core::time::{Span, Timestamp};

use super::error_class::ErrorClass;
use super::wire::{Assistant, RateLimitInfo, Refusal, Retry};

/// What went wrong in a round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ApiError {
    /// The kind of an API error.
    pub(super) kind: Option<String>,
    /// The model refused.
    pub(super) refusal: Option<Refusal>,
    /// Which error it was, where that has a name of its own.
    name: Option<String>,
    /// When the limit that was reached is lifted.
    lifted: Option<Timestamp>,
    /// When the client told of the error.
    told: Option<Timestamp>,
    /// How long the server wants a client to wait that comes too early.
    wait: Option<Span>,
}

impl ApiError {
    /// The client tells of an error.
    pub(super) fn emit(&mut self, line: &Assistant) {
        self.kind.clone_from(&line.error);
        self.name.clone_from(&line.api_error);
        self.lifted = line.api_error_params.rate_limit_info.until();
        self.told = line.timestamp.as_deref().and_then(time);
    }

    /// The client comes too early, and waits.
    pub(super) fn throttled(&mut self, retry: &Retry) {
        let wait = Some(retry.delay).filter(|delay| *delay > own_delay(retry.attempt));
        self.wait = wait.map(Span).or(self.wait);
    }

    /// What it means for the turn, by the status of the answer, where there was one.
    pub(super) fn fault(&self, status: Option<u16>) -> ErrorClass {
        let named = self.name.as_deref().and_then(ErrorClass::named);
        named.unwrap_or_else(|| ErrorClass::of(status, self.kind.as_deref()))
    }

    /// When a limit is lifted.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.lifted.or_else(|| Some(self.told? + self.wait?))
    }
}

impl RateLimitInfo {
    /// When the limit is lifted, if it is reached.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let seconds = self.resets_at.filter(|_| self.status == "rejected")?;
        Some(Timestamp(seconds.saturating_mul(1000)))
    }
}

/// How long a client waits at most when nobody tells it how long: half a second, doubling up to half
/// a minute, and up to a quarter more.
fn own_delay(attempt: u64) -> u64 {
    let doublings = attempt.saturating_sub(1).min(6);
    (500_u64 << doublings) * 5 / 4
}

fn time(text: &str) -> Option<Timestamp> {
    let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    u64::try_from(millis).ok().map(Timestamp)
}
