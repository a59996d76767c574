//! What an error means for a turn.
//!
//! The rollout has types for errors, and they decide. Where it has none but `other`, a status in the
//! message does, or the words by which the client tells that a stream broke or that the key of its provider
//! is not there; all of them are the client's own.

use super::rollout::Problem;

/// How the client begins to tell that a stream broke.
const BROKE: &str = "stream disconnected before completion";

/// What is to be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A person has to log in, or to pay.
    Auth,
    /// To wait until a usage limit is lifted.
    Quota,
    /// To try again.
    Transient,
    /// To go on with another share.
    Capped,
    /// Nothing: it would be the same again.
    Task,
}

impl Fault {
    /// By its type, where that is known, else by what the client says.
    pub(super) fn of(problem: Option<&Problem>, message: &str) -> Self {
        let typed = problem.and_then(|problem| Self::typed(&problem.kind, problem.status));
        typed.unwrap_or_else(|| Self::told(message))
    }

    /// Whether no model can have worked on the request: the provider says that it did not serve it, or the
    /// client did not send it. A request that failed in any other way may have been answered in part, and
    /// paid for.
    pub(super) fn is_refusal(problem: Option<&Problem>, message: &str) -> bool {
        const REFUSALS: [&str; 5] = [
            "rate_limit_exceeded",
            "model_not_found",
            "bad_request",
            "server_overloaded",
            "internal_server_error",
        ];
        let kind = problem.map_or("", |problem| problem.kind.as_str());
        if kind == "response_stream_disconnected" || message.starts_with(BROKE) {
            return false;
        }
        let typed = problem.and_then(|problem| problem.status);
        let is_answered = typed.or_else(|| status(message)).is_some_and(is_unserved);
        let fault = Self::of(problem, message);
        let is_named = REFUSALS.contains(&kind);
        is_named || is_answered || matches!(fault, Self::Auth | Self::Quota | Self::Capped)
    }

    fn typed(kind: &str, status: Option<u16>) -> Option<Self> {
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
            | "response_too_many_failed_attempts" => Self::answered(status),
            _ => return None,
        })
    }

    fn answered(status: Option<u16>) -> Self {
        match status {
            Some(401..=403) => Self::Auth,
            Some(429) => Self::Quota,
            Some(400..=407 | 409..=499) => Self::Task,
            Some(_) | None => Self::Transient,
        }
    }

    fn told(message: &str) -> Self {
        const NO_KEY: &str = "Missing environment variable: ";
        match status(message) {
            Some(status) => Self::answered(Some(status)),
            None if message.starts_with(BROKE) => Self::Transient,
            None if message.starts_with(NO_KEY) => Self::Auth,
            None => Self::Task,
        }
    }
}

/// A request that the client is about to try again. It tells no type then, only a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// It may help.
    Useful,
    /// It is in vain: a person has to log in.
    LoggedOut,
    /// It is in vain until a usage limit is lifted.
    Limited,
}

impl Retry {
    /// What the client says, when it tells of a retry.
    pub(super) fn of(notice: &str) -> Option<Self> {
        let why = notice.strip_prefix("Reconnecting...")?;
        Some(match status(why).map(|status| Fault::answered(Some(status))) {
            Some(Fault::Auth) => Self::LoggedOut,
            Some(Fault::Quota) => Self::Limited,
            Some(Fault::Transient | Fault::Capped | Fault::Task) | None => Self::Useful,
        })
    }

    /// Whether the request before the retry may have been answered in part: it was not refused.
    pub(super) fn follows_a_break(notice: &str) -> bool {
        let is_refused = status(notice).is_some_and(is_unserved) && !notice.contains(BROKE);
        Self::of(notice).is_some() && !is_refused
    }
}

/// Whether a status means that the provider did not serve the request. A timeout (408) and the errors of a
/// gateway (502, 504) do not: the model behind it may have worked.
const fn is_unserved(status: u16) -> bool {
    matches!(status, 400..=407 | 409..=501 | 503 | 529)
}

/// The status in `unexpected status 401 Unauthorized: …` or `last status: 429 Too Many Requests`.
fn status(message: &str) -> Option<u16> {
    let places = ["unexpected status ", "last status: "];
    let after = places.iter().find_map(|place| message.split_once(place))?.1;
    after.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kinds_by_their_types() {
        let check = |kind: &str, status: Option<u16>, expected: Fault| {
            let problem = Problem { kind: kind.into(), status };
            assert_eq!(Fault::of(Some(&problem), "prose"), expected, "{kind} {status:?}");
        };
        check("unauthorized", None, Fault::Auth);
        check("usage_limit_exceeded", None, Fault::Quota);
        check("rate_limit_exceeded", None, Fault::Transient);
        check("server_overloaded", None, Fault::Transient);
        check("internal_server_error", None, Fault::Transient);
        check("session_budget_exceeded", None, Fault::Capped);
        check("context_window_exceeded", None, Fault::Task);
        check("model_not_found", None, Fault::Task);
        check("cyber_policy", None, Fault::Task);
        check("http_connection_failed", Some(401), Fault::Auth);
        check("http_connection_failed", Some(403), Fault::Auth);
        check("http_connection_failed", None, Fault::Transient);
        check("response_too_many_failed_attempts", Some(429), Fault::Quota);
        check("response_too_many_failed_attempts", Some(503), Fault::Transient);
        check("response_stream_disconnected", None, Fault::Transient);
        check("response_stream_connection_failed", Some(404), Fault::Task);
        check("response_stream_connection_failed", Some(408), Fault::Transient);
        // Nothing is known of it: a person has to look.
        check("other", None, Fault::Task);
        check("a type of tomorrow", None, Fault::Task);
    }

    #[test]
    fn an_error_without_a_type_is_told_by_the_words_of_the_client() {
        let check = |message: &str, expected: Fault| {
            let other = Problem { kind: "other".into(), status: None };
            assert_eq!(Fault::of(Some(&other), message), expected, "{message}");
            assert_eq!(Fault::of(None, message), expected, "{message}");
        };
        check("stream disconnected before completion: error sending request", Fault::Transient);
        check("unexpected status 401 Unauthorized: no, url: http://x", Fault::Auth);
        check("unexpected status 502 Bad Gateway: no", Fault::Transient);
        check("exceeded retry limit, last status: 429 Too Many Requests", Fault::Quota);
        check("Missing environment variable: `KEY`.", Fault::Auth);
        check("a tool says: Missing environment variable: `KEY`.", Fault::Task);
        check("unexpected status 4", Fault::Task);
        check("unexpected status €€€", Fault::Task);
        check("", Fault::Task);
    }

    #[test]
    fn a_request_is_not_tried_again_in_vain() {
        let check = |notice: &str, expected: Option<Retry>| assert_eq!(Retry::of(notice), expected);
        let of = |why: &str| format!("Reconnecting... 1/5 ({why})");
        check(&of("unexpected status 401 Unauthorized: no"), Some(Retry::LoggedOut));
        let limited = "exceeded retry limit, last status: 429 Too Many Requests";
        check(&of(limited), Some(Retry::Limited));
        check(&of("unexpected status 502 Bad Gateway: no"), Some(Retry::Useful));
        check(&of("stream disconnected before completion: x"), Some(Retry::Useful));
        // This is no retry: its type follows.
        check("unexpected status 401 Unauthorized: no", None);
    }
}
