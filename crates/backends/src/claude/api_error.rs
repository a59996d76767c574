//! The API error that a client reported before the end of a round.
//!
//! When a usage limit is reached, the server's refusal contains the time at which the limit ends,
//! and so does the client's error message. A refusal because of a short rate limit, such as one for
//! each minute, names only a delay. The client waits for that delay before it tries again, so the
//! delay is in the client's lines about retries.

use raymond_core::time::{Span, Timestamp};

use super::error_class::ErrorClass;
use super::wire::{Assistant, RateLimitInfo, Refusal, Retry};

/// The API error of a round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ApiError {
    pub(super) kind: Option<String>,
    /// The refusal of the model.
    pub(super) refusal: Option<Refusal>,
    /// The specific name of the error, if it has one.
    name: Option<String>,
    /// When the reached limit ends.
    limit_end: Option<Timestamp>,
    /// When the client reported the error.
    reported_at: Option<Timestamp>,
    /// The delay that the server asked for.
    server_delay: Option<Span>,
}

impl ApiError {
    /// Notes an error message of the client.
    pub(super) fn note_error(&mut self, line: &Assistant) {
        self.kind.clone_from(&line.error);
        self.name.clone_from(&line.api_error);
        self.limit_end = line.api_error_params.rate_limit_info.limit_ends_at();
        self.reported_at = line.timestamp.as_deref().and_then(parse_time);
    }

    /// Notes the delay of a retry. A delay over the client's own maximum came from the server.
    pub(super) fn note_retry(&mut self, retry: &Retry) {
        let server_delay =
            Some(retry.delay).filter(|delay| *delay > default_retry_delay(retry.attempt));
        self.server_delay = server_delay.map(Span).or(self.server_delay);
    }

    /// Classifies the error, using the HTTP status if there is one.
    pub(super) fn class(&self, status: Option<u16>) -> ErrorClass {
        // The specific name wins, because status and kind are coarser.
        let named = self.name.as_deref().and_then(ErrorClass::named);
        named.unwrap_or_else(|| ErrorClass::of(status, self.kind.as_deref()))
    }

    /// Returns when the limit ends.
    pub(super) fn limit_ends_at(&self) -> Option<Timestamp> {
        // The time in the response itself comes first.
        self.limit_end.or_else(|| Some(self.reported_at? + self.server_delay?))
    }
}

impl RateLimitInfo {
    /// Returns when the limit ends, if it is reached.
    pub(super) fn limit_ends_at(&self) -> Option<Timestamp> {
        let seconds = self.resets_at.filter(|_| self.status == "rejected")?;
        // `resetsAt` is in seconds, timestamps are in milliseconds.
        Some(Timestamp(seconds.saturating_mul(1000)))
    }
}

/// Returns the longest delay in milliseconds that the client chooses by itself: half a second,
/// doubled up to 32 seconds, plus a quarter of random jitter.
fn default_retry_delay(attempt: u64) -> u64 {
    let doublings = attempt.saturating_sub(1).min(6);
    (500_u64 << doublings) * 5 / 4
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    u64::try_from(millis).ok().map(Timestamp)
}
