//! The state of the requests of one thread.
//!
//! The client writes the tokens of a request after its answer. An open request shows only in the
//! entries before it: a tool returned, or the last answer called a tool.

use raymond_core::prices::Usage;

/// The state of a thread's requests.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    conversation: Conversation,
    /// The tokens of the last answered request, or `None` if they could not be read.
    pub(super) last: Option<Usage>,
    token_counts: TokenCounts,
    client: ClientState,
}

/// The state of the conversation with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversation {
    /// The model calls tools in an answer that is not complete yet.
    Calling,
    /// The model has written text or nothing in an answer that is not complete yet.
    Speaking,
    /// The last answer is complete and called tools: another request follows.
    Called,
    /// The model received a tool result or a summary: a request is open.
    Asked,
    /// The last answer is complete and called no tools: nothing follows.
    Spoke,
}

/// Whether every answer has its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenCounts {
    Reported,
    /// A tool has returned, but the tokens of the answer that called it are missing.
    Missing,
}

/// Whether the client continues when a tool has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientState {
    Working,
    /// Raymond is ending the client.
    Ending,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            conversation: Conversation::Speaking,
            last: None,
            token_counts: TokenCounts::Reported,
            client: ClientState::Working,
        }
    }
}

impl Requests {
    /// Notes the start of a turn, which sends a request.
    pub(super) fn begin(&mut self) {
        self.conversation = Conversation::Speaking;
    }

    /// Notes that the model calls a tool.
    pub(super) fn call(&mut self) {
        self.conversation = Conversation::Calling;
    }

    /// Notes that a tool returned.
    pub(super) fn tool_returned(&mut self) {
        match self.conversation {
            // The client writes the tokens of an answer before it runs the tools of that answer.
            Conversation::Calling => self.token_counts = TokenCounts::Missing,
            // Other tools may still run. Counting one request too many is safer than one too few.
            Conversation::Called if self.client == ClientState::Working => {
                self.conversation = Conversation::Asked;
            }
            Conversation::Called
            | Conversation::Speaking
            | Conversation::Asked
            | Conversation::Spoke => {}
        }
    }

    /// Notes that the conversation was compacted; the turn continues with a request.
    pub(super) fn compacted(&mut self) {
        self.conversation = Conversation::Asked;
    }

    /// Notes the tokens of an answered request.
    pub(super) fn answered(&mut self, usage: Option<Usage>) {
        (self.last, self.token_counts) = (usage, TokenCounts::Reported);
        self.conversation = match self.conversation {
            // The model had seemed to be finished, but it continues without a tool result.
            Conversation::Calling | Conversation::Spoke => Conversation::Called,
            Conversation::Speaking | Conversation::Asked | Conversation::Called => {
                Conversation::Spoke
            }
        };
    }

    /// Notes the end of the turn.
    pub(super) fn end(&mut self) {
        self.conversation = Conversation::Spoke;
    }

    /// Notes that Raymond is ending the client. A tool that returns from now on was interrupted, so
    /// no request follows.
    pub(super) fn client_ends(&mut self) {
        self.client = ClientState::Ending;
    }

    /// Notes that the seemingly open request was not sent.
    pub(super) fn withdraw(&mut self) {
        if self.has_open_request() {
            self.conversation = Conversation::Called;
        }
    }

    pub(super) fn has_open_request(&self) -> bool {
        match self.conversation {
            Conversation::Calling | Conversation::Speaking | Conversation::Asked => true,
            Conversation::Called | Conversation::Spoke => false,
        }
    }

    /// Whether nothing follows the last message of the model.
    pub(super) fn is_finishing(&self) -> bool {
        self.conversation == Conversation::Spoke
    }

    /// Whether an answer has no tokens yet.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.token_counts == TokenCounts::Missing
    }
}
