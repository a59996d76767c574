//! Environment variables that no process of a run inherits, because they describe another turn or
//! an agent client in which Raymond itself runs.
//!
//! A client gives its tools variables that identify its conversation, and some that let them act
//! for it: tokens, sockets and ports. A run inside such a tool must not hand them on, neither to
//! the same client nor to another one or a script. The login of the user stays.

use std::ffi::OsString;

use raymond_core::workflow::environment::is_ours;

/// The variables that an agent client sets for its tools: names behind a prefix.
struct OuterClient {
    prefix: &'static str,
    names: &'static [&'static str],
    beginnings: &'static [&'static str],
    ends: &'static [&'static str],
    /// Words between underscores. `TOKENS` is another word: settings limit tokens.
    words: &'static [&'static str],
    /// Logins that the user may have set. Without them, a client would be logged out.
    logins: &'static [&'static str],
}

const OUTER_CLIENTS: [OuterClient; 2] = [
    OuterClient {
        prefix: "CLAUDE",
        names: &["CODE", "_CODE_ENTRYPOINT"],
        beginnings: &["_CODE_SESSION_", "_CODE_CHILD_", "_CODE_BRIDGE_", "_CODE_REMOTE_SESSION_"],
        ends: &["_SESSION_ID", "_PORT", "_FD", "_FILE_DESCRIPTOR"],
        words: &["TOKEN", "SOCKET", "WEBSOCKET"],
        logins: &["_CODE_OAUTH_TOKEN", "_CODE_OAUTH_REFRESH_TOKEN"],
    },
    OuterClient {
        prefix: "CODEX_",
        names: &[
            "CI",
            "SESSION_ID",
            "THREAD_ID",
            "TOOL_CALL_ID",
            "VERSION",
            "APPLY_PATCH_PRESERVE_LINE_ENDINGS",
            "CONNECTORS_TOKEN",
        ],
        beginnings: &["SANDBOX", "SNAPSHOT_", "NETWORK_PROXY_", "EXEC_SERVER_", "INTERNAL_"],
        ends: &[],
        words: &["SOCKET"],
        logins: &[],
    },
];

impl OuterClient {
    fn sets(&self, name: &str) -> bool {
        name.strip_prefix(self.prefix).is_some_and(|rest| {
            !self.logins.contains(&rest)
                && (self.names.contains(&rest)
                    || self.beginnings.iter().any(|beginning| rest.starts_with(beginning))
                    || self.ends.iter().any(|end| rest.ends_with(end))
                    || rest.split('_').any(|word| self.words.contains(&word)))
        })
    }
}

/// Returns those of these variables that must be removed.
pub(crate) fn foreign_variables(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_foreign =
        |name: &str| is_ours(name) || OUTER_CLIENTS.iter().any(|client| client.sets(name));
    names.filter(|name| name.to_str().is_some_and(is_foreign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_outer_turn_and_client_are_removed() {
        let removed = [
            "RAYMOND_RESULT",
            "RAYMOND_ATTR_ITEM",
            "RAYMOND_VAR_X",
            "RAYMOND_VISIT",
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_MESSAGING_SOCKET_PATH",
            "CLAUDE_CODE_X_SOCKET_DIR",
            "CLAUDE_CODE_X_TOKEN_FILE",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_CODE_WEBSOCKET_AUTH_FILE_DESCRIPTOR",
            "CODEX_THREAD_ID",
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_CONNECTORS_TOKEN",
            "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        ];
        let kept = [
            "PATH",
            "RAYMOND_BUDGET",
            "RAYMOND_TURN",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "CODEX_HOME",
            "CODEX_API_KEY",
            "CODEX_ACCESS_TOKEN",
        ];
        let all = removed.into_iter().chain(kept).map(OsString::from);
        assert_eq!(foreign_variables(all), removed);
    }
}
