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
    limit_end: Option<Timestamp>,
    /// When the client told of the error.
    reported_at: Option<Timestamp>,
    /// How long the server wants a client to wait that comes too early.
    server_delay: Option<Span>,
}

impl ApiError {
    /// The client tells of an error.
    pub(super) fn emit(&mut self, line: &Assistant) {
        self.kind.clone_from(&line.error);
        self.name.clone_from(&line.api_error);
        self.limit_end = line.api_error_params.rate_limit_info.limit_ends_at();
        self.reported_at = line.timestamp.as_deref().and_then(parse_time);
    }

    /// The client comes too early, and waits.
    pub(super) fn note_retry(&mut self, retry: &Retry) {
        let server_delay =
            Some(retry.delay).filter(|delay| *delay > default_retry_delay(retry.attempt));
        self.server_delay = server_delay.map(Span).or(self.server_delay);
    }

    /// What it means for the turn, by the status of the answer, where there was one.
    pub(super) fn fault(&self, status: Option<u16>) -> ErrorClass {
        let named = self.name.as_deref().and_then(ErrorClass::named);
        named.unwrap_or_else(|| ErrorClass::of(status, self.kind.as_deref()))
    }

    /// When a limit is lifted.
    pub(super) fn limit_ends_at(&self) -> Option<Timestamp> {
        self.limit_end.or_else(|| Some(self.reported_at? + self.server_delay?))
    }
}

impl RateLimitInfo {
    /// When the limit is lifted, if it is reached.
    pub(super) fn limit_ends_at(&self) -> Option<Timestamp> {
        let seconds = self.resets_at.filter(|_| self.status == "rejected")?;
        Some(Timestamp(seconds.saturating_mul(1000)))
    }
}

/// How long a client waits at most when nobody tells it how long: half a second, doubling up to half
/// a minute, and up to a quarter more.
fn default_retry_delay(attempt: u64) -> u64 {
    let doublings = attempt.saturating_sub(1).min(6);
    (500_u64 << doublings) * 5 / 4
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    u64::try_from(millis).ok().map(Timestamp)
}
