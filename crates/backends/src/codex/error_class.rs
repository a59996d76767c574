//! The classes of errors, by what can be done about them.
//!
//! The rollout gives errors a type, which decides. If the type is only `other`, Raymond uses an
//! HTTP status in the message, or the client's fixed texts for a broken stream and for a missing
//! provider key.

use super::rollout::RolloutError;

/// The start of the client's message about a broken stream.
const STREAM_BROKE: &str = "stream disconnected before completion";

/// The class of an error, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The user must log in or pay.
    Auth,
    /// Raymond must wait until a usage limit ends.
    Quota,
    /// A retry may succeed.
    Transient,
    /// The turn continues with another budget share.
    Capped,
    /// A retry would fail in the same way.
    Task,
}

impl ErrorClass {
    /// Classifies an error by its type, or by the message if the type is unknown.
    pub(super) fn from_problem(problem: Option<&RolloutError>, message: &str) -> Self {
        let typed = problem.and_then(|problem| Self::from_kind(&problem.kind, problem.status));
        typed.unwrap_or_else(|| Self::from_message(message))
    }

    /// Whether no model can have worked on the request, because the provider did not serve it or
    /// the client did not send it. A request that failed in another way may have been answered in
    /// part, and paid for.
    pub(super) fn is_refusal(problem: Option<&RolloutError>, message: &str) -> bool {
        const REFUSAL_KINDS: [&str; 5] = [
            "rate_limit_exceeded",
            "model_not_found",
            "bad_request",
            "server_overloaded",
            "internal_server_error",
        ];
        let kind = problem.map_or("", |problem| problem.kind.as_str());
        // The stream had begun, so the model had worked.
        if kind == "response_stream_disconnected" || message.starts_with(STREAM_BROKE) {
            return false;
        }
        let typed = problem.and_then(|problem| problem.status);
        let is_answered = typed.or_else(|| parse_status(message)).is_some_and(is_unserved);
        let fault = Self::from_problem(problem, message);
        let is_named = REFUSAL_KINDS.contains(&kind);
        is_named || is_answered || matches!(fault, Self::Auth | Self::Quota | Self::Capped)
    }

    fn from_kind(kind: &str, status: Option<u16>) -> Option<Self> {
        Some(match kind {
            "unauthorized" => Self::Auth,
            "usage_limit_exceeded" => Self::Quota,
            "rate_limit_exceeded"
            | "server_overloaded"
            | "internal_server_error"
            | "policy_capacity_unavailable"
            | "flex_unavailable" => Self::Transient,
            "session_budget_exceeded" => Self::Capped,
            "context_window_exceeded"
            | "model_not_found"
            | "bad_request"
            | "invalid_prompt"
            | "cyber_policy"
            | "bio_policy"
            | "misalignment_policy_violation"
            | "sandbox_error"
            | "too_many_denials" => Self::Task,
            "http_connection_failed"
            | "response_stream_connection_failed"
            | "response_stream_disconnected"
            | "response_too_many_failed_attempts" => Self::from_status(status),
            _ => return None,
        })
    }

    fn from_status(status: Option<u16>) -> Self {
        match status {
            Some(401..=403) => Self::Auth,
            Some(429) => Self::Quota,
            // A timeout (408) may pass, so it is not among them.
            Some(400..=407 | 409..=499) => Self::Task,
            Some(_) | None => Self::Transient,
        }
    }

    fn from_message(message: &str) -> Self {
        const MISSING_KEY: &str = "Missing environment variable: ";
        match parse_status(message) {
            Some(status) => Self::from_status(Some(status)),
            None if message.starts_with(STREAM_BROKE) => Self::Transient,
            // The client names no type if its provider is not configured.
            None if message.starts_with(MISSING_KEY) => Self::Auth,
            None => Self::Task,
        }
    }
}

/// A request that the client is about to retry. The notice has no type, only an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// The retry may succeed.
    Useful,
    /// The retry is useless: the user must log in.
    LoggedOut,
    /// The retry is useless until a usage limit ends.
    Limited,
}

impl Retry {
    /// Reads a notice of the client; returns `None` if it is not about a retry.
    pub(super) fn from_notice(notice: &str) -> Option<Self> {
        // All retries of the client begin with this word.
        let why = notice.strip_prefix("Reconnecting...")?;
        Some(match parse_status(why).map(|status| ErrorClass::from_status(Some(status))) {
            Some(ErrorClass::Auth) => Self::LoggedOut,
            Some(ErrorClass::Quota) => Self::Limited,
            Some(ErrorClass::Transient | ErrorClass::Capped | ErrorClass::Task) | None => {
                Self::Useful
            }
        })
    }

    /// Whether the request before the retry may have been answered in part, because it was not
    /// refused.
    pub(super) fn follows_a_break(notice: &str) -> bool {
        let is_refused =
            parse_status(notice).is_some_and(is_unserved) && !notice.contains(STREAM_BROKE);
        Self::from_notice(notice).is_some() && !is_refused
    }
}

/// Whether a status means that the provider did not serve the request.
const fn is_unserved(status: u16) -> bool {
    // A timeout (408) and gateway errors (502, 504) do not, because the model behind the gateway
    // may have worked.
    matches!(status, 400..=407 | 409..=501 | 503 | 529)
}

/// Returns the status in `unexpected status 401 Unauthorized: …` or `last status: 429 Too Many
/// Requests`.
fn parse_status(message: &str) -> Option<u16> {
    let places = ["unexpected status ", "last status: "];
    let after = places.iter().find_map(|place| message.split_once(place))?.1;
    after.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kinds_by_their_types() {
        let check = |kind: &str, status: Option<u16>, expected: ErrorClass| {
            let problem = RolloutError { kind: kind.into(), status };
            assert_eq!(
                ErrorClass::from_problem(Some(&problem), "prose"),
                expected,
                "{kind} {status:?}"
            );
        };
        check("unauthorized", None, ErrorClass::Auth);
        check("usage_limit_exceeded", None, ErrorClass::Quota);
        check("rate_limit_exceeded", None, ErrorClass::Transient);
        check("server_overloaded", None, ErrorClass::Transient);
        check("internal_server_error", None, ErrorClass::Transient);
        check("session_budget_exceeded", None, ErrorClass::Capped);
        check("context_window_exceeded", None, ErrorClass::Task);
        check("model_not_found", None, ErrorClass::Task);
        check("cyber_policy", None, ErrorClass::Task);
        check("http_connection_failed", Some(401), ErrorClass::Auth);
        check("http_connection_failed", Some(403), ErrorClass::Auth);
        check("http_connection_failed", None, ErrorClass::Transient);
        check("response_too_many_failed_attempts", Some(429), ErrorClass::Quota);
        check("response_too_many_failed_attempts", Some(503), ErrorClass::Transient);
        check("response_stream_disconnected", None, ErrorClass::Transient);
        check("response_stream_connection_failed", Some(404), ErrorClass::Task);
        check("response_stream_connection_failed", Some(408), ErrorClass::Transient);
        // Nothing is known of it: a person has to look.
        check("other", None, ErrorClass::Task);
        check("a type of tomorrow", None, ErrorClass::Task);
    }

    #[test]
    fn untyped_error_is_classified_by_its_message() {
        let check = |message: &str, expected: ErrorClass| {
            let other = RolloutError { kind: "other".into(), status: None };
            assert_eq!(ErrorClass::from_problem(Some(&other), message), expected, "{message}");
            assert_eq!(ErrorClass::from_problem(None, message), expected, "{message}");
        };
        check(
            "stream disconnected before completion: error sending request",
            ErrorClass::Transient,
        );
        check("unexpected status 401 Unauthorized: no, url: http://x", ErrorClass::Auth);
        check("unexpected status 502 Bad Gateway: no", ErrorClass::Transient);
        check("exceeded retry limit, last status: 429 Too Many Requests", ErrorClass::Quota);
        check("Missing environment variable: `KEY`.", ErrorClass::Auth);
        check("a tool says: Missing environment variable: `KEY`.", ErrorClass::Task);
        check("unexpected status 4", ErrorClass::Task);
        check("unexpected status €€€", ErrorClass::Task);
        check("", ErrorClass::Task);
    }

    #[test]
    fn a_request_is_not_tried_again_in_vain() {
        let check = |notice: &str, expected: Option<Retry>| {
            assert_eq!(Retry::from_notice(notice), expected);
        };
        let of = |why: &str| format!("Reconnecting... 1/5 ({why})");
        check(&of("unexpected status 401 Unauthorized: no"), Some(Retry::LoggedOut));
        let limited = "exceeded retry limit, last status: 429 Too Many Requests";
        check(&of(limited), Some(Retry::Limited));
        check(&of("unexpected status 502 Bad Gateway: no"), Some(Retry::Useful));
        check(&of("stream disconnected before completion: x"), Some(Retry::Useful));
        // Not a retry: the type of the error follows.
        check("unexpected status 401 Unauthorized: no", None);
    }
}
