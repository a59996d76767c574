//! The classes of API errors, by what can be done about them.
//!
//! The class comes from the HTTP status and the kind that the client reports, never from the
//! wording of a message, which may change with any release of the client.

/// The class of an API error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The user must log in or pay.
    Auth,
    /// Raymond must wait until a usage limit ends.
    Quota,
    /// A retry may succeed.
    Transient,
    /// A retry would fail in the same way.
    Task,
}

impl ErrorClass {
    /// Classifies an error by its HTTP status, if there is one, and by the kind that the client
    /// reports.
    pub(super) fn of(status: Option<u16>, kind: Option<&str>) -> Self {
        let by_kind = match kind.unwrap_or_default() {
            "authentication_failed"
            | "oauth_org_not_allowed"
            | "account_on_hold"
            | "verification_required"
            | "billing_error"
            | "cloud_credential_error" => Some(Self::Auth),
            "rate_limit" => Some(Self::Quota),
            "overloaded" | "server_error" => Some(Self::Transient),
            "invalid_request" | "model_not_found" | "max_output_tokens" => Some(Self::Task),
            _ => None,
        };
        let by_status = match status {
            Some(401..=403) => Some(Self::Auth),
            Some(429) => Some(Self::Quota),
            // A request timeout (408) may pass, unlike other client errors.
            Some(408 | 500..) => Some(Self::Transient),
            Some(400..=499) => Some(Self::Task),
            Some(_) | None => None,
        };
        // The client calls some login errors invalid requests. In both cases the user must act
        // first.
        match (by_kind, by_status) {
            (Some(Self::Auth), _) | (_, Some(Self::Auth)) => Self::Auth,
            (Some(fault), _) | (None, Some(fault)) => fault,
            // No connection, or a response that the client did not understand.
            (None, None) => Self::Transient,
        }
    }

    /// Classifies an error by its own name, if that says more than status and kind. For example,
    /// waiting does not end a limit that only a payment ends.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "model_requires_usage_credits"
            | "long_context_credits_required"
            | "consent_unanswered"
            | "provider_credentials"
            | "gateway_signin_required"
            | "gateway_session_expired"
            | "api_key_auth_disabled"
            | "org_disabled_credential"
            | "invalid_credential_header"
            | "network_edge_blocked" => Some(Self::Auth),
            "usage_limit_reached" => Some(Self::Quota),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kinds_by_typed_fields() {
        let check = |status: Option<u16>, kind: &str, expected: ErrorClass| {
            let kind = Some(kind).filter(|kind| !kind.is_empty());
            assert_eq!(ErrorClass::of(status, kind), expected, "{status:?} {kind:?}");
        };
        for kind in [
            "authentication_failed",
            "oauth_org_not_allowed",
            "account_on_hold",
            "verification_required",
            "billing_error",
            "cloud_credential_error",
        ] {
            check(None, kind, ErrorClass::Auth);
            check(Some(400), kind, ErrorClass::Auth);
        }
        check(Some(401), "", ErrorClass::Auth);
        check(Some(401), "invalid_request", ErrorClass::Auth);
        check(Some(402), "", ErrorClass::Auth);
        check(Some(403), "unknown", ErrorClass::Auth);
        check(Some(429), "", ErrorClass::Quota);
        check(Some(429), "rate_limit", ErrorClass::Quota);
        check(None, "rate_limit", ErrorClass::Quota);
        check(Some(500), "server_error", ErrorClass::Transient);
        check(Some(529), "server_error", ErrorClass::Transient);
        check(Some(529), "overloaded", ErrorClass::Transient);
        check(Some(503), "", ErrorClass::Transient);
        check(Some(408), "unknown", ErrorClass::Transient);
        check(None, "server_error", ErrorClass::Transient);
        check(None, "unknown", ErrorClass::Transient);
        check(None, "", ErrorClass::Transient);
        check(Some(400), "invalid_request", ErrorClass::Task);
        check(Some(404), "model_not_found", ErrorClass::Task);
        check(Some(404), "", ErrorClass::Task);
        check(Some(413), "", ErrorClass::Task);
        check(Some(422), "unknown", ErrorClass::Task);
        check(None, "invalid_request", ErrorClass::Task);
        check(None, "max_output_tokens", ErrorClass::Task);
    }

    #[test]
    fn some_errors_have_specific_names() {
        let check = |name: &str, expected: Option<ErrorClass>| {
            assert_eq!(ErrorClass::named(name), expected);
        };
        for name in [
            "model_requires_usage_credits",
            "long_context_credits_required",
            "consent_unanswered",
            "provider_credentials",
            "gateway_signin_required",
            "gateway_session_expired",
            "api_key_auth_disabled",
            "org_disabled_credential",
            "invalid_credential_header",
            "network_edge_blocked",
        ] {
            check(name, Some(ErrorClass::Auth));
        }
        check("usage_limit_reached", Some(ErrorClass::Quota));
        check("connection_failed", None);
        check("max_output_tokens", None);
    }
}
