//! The requests of one thread, as far as its file tells.
//!
//! The client writes the tokens of a request once it is answered. A request under way shows only in
//! the entries before it: a tool returned, or the last answer called one.

use raymond_core::prices::Usage;

/// The state of a thread's requests.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    calls: Calls,
    /// The tokens of the last answered request; none if they could not be read.
    pub(super) last: Option<Usage>,
    counting: Counting,
    client: Client,
}

/// What the model does, as far as its answers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// It calls tools in an answer that is not whole yet.
    Calling,
    /// It said something in an answer that is not whole yet, or nothing.
    Speaking,
    /// Its last answer was whole, and called tools: another request follows.
    Called,
    /// It was handed what a tool said, or a summary: another request is under way.
    Asked,
    /// Its last answer was whole, and was only words: nothing follows.
    Spoke,
}

/// Whether every answer comes with its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    Told,
    /// A tool that it called has returned, and what the call took is not told.
    Lacks,
}

/// Whether it goes on when a tool has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Works,
    /// It was told to end.
    Ends,
}

impl Default for Requests {
    fn default() -> Self {
        Self { calls: Calls::Speaking, last: None, counting: Counting::Told, client: Client::Works }
    }
}

impl Requests {
    /// A turn begins, with a request.
    pub(super) fn begin(&mut self) {
        self.calls = Calls::Speaking;
    }

    /// The model calls a tool.
    pub(super) fn call(&mut self) {
        self.calls = Calls::Calling;
    }

    /// A tool returned.
    pub(super) fn tool_returned(&mut self) {
        match self.calls {
            Calls::Calling => self.counting = Counting::Lacks,
            // Other tools may still run: rather one request too many than one too few.
            Calls::Called if self.client == Client::Works => self.calls = Calls::Asked,
            Calls::Called | Calls::Speaking | Calls::Asked | Calls::Spoke => {}
        }
    }

    /// The conversation was summed up, and the turn continues with a request.
    pub(super) fn compacted(&mut self) {
        self.calls = Calls::Asked;
    }

    /// A request was answered with these tokens.
    pub(super) fn answered(&mut self, usage: Option<Usage>) {
        (self.last, self.counting) = (usage, Counting::Told);
        self.calls = match self.calls {
            // What it spoke before was not its last word: it goes on without being called upon.
            Calls::Calling | Calls::Spoke => Calls::Called,
            Calls::Speaking | Calls::Asked | Calls::Called => Calls::Spoke,
        };
    }

    /// The turn is over.
    pub(super) fn end(&mut self) {
        self.calls = Calls::Spoke;
    }

    /// The client is told to end: a tool that returns from now on was interrupted, so no request
    /// follows.
    pub(super) fn client_ends(&mut self) {
        self.client = Client::Ends;
    }

    /// The request that seemed to be under way was not sent.
    pub(super) fn withdraw(&mut self) {
        if self.has_open_request() {
            self.calls = Calls::Called;
        }
    }

    /// Whether a request is under way.
    pub(super) fn has_open_request(&self) -> bool {
        match self.calls {
            Calls::Calling | Calls::Speaking | Calls::Asked => true,
            Calls::Called | Calls::Spoke => false,
        }
    }

    /// Whether nothing follows what the model said last.
    pub(super) fn is_finishing(&self) -> bool {
        self.calls == Calls::Spoke
    }

    /// Whether an answer came without its tokens, so far.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.counting == Counting::Lacks
    }
}
