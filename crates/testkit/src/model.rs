//! A model that does what its prompts say, behind the APIs that real clients speak.
//!
//! It listens on a port of this machine. What it answers depends on the request alone, so a client
//! that was killed and resumed sees a consistent world: the script is in the prompt, as lines
//! `model: …` of the last user text that has any, and the message that is due is told by how many
//! assistant messages follow that text.
//!
//! | line | what the model does |
//! |---|---|
//! | `say TEXT` | its final text (`\n` is a newline): ends a message |
//! | `tool NAME {…}` | calls a tool with this input: ends a message |
//! | `text TEXT`, `think TEXT` | a text, a thought, before that in the same message |
//! | `refuse` | refuses: ends a message |
//! | `usage input=N output=N cache_read=N cache_write=N` | what the messages after this line cost (1000 in and 100 out, unless said) |
//! | `error STATUS [type=…] [retry-after=N] [header:NAME=VALUE …] [message=…]` | the API fails |
//! | `drop`, `hang` | closes the connection without a byte; never answers |
//! | `latency 300ms`, `wait FILE` | before the next message: so long; makes `FILE.waiting`, until FILE exists |
//! | `cut N` | the next message is cut after N events |
//! | `then` | what follows answers the next user text without lines of its own, such as a reminder |
//! | `again` | what follows is played instead when the conversation held the same lines before: a turn that is continued |
//!
//! The lines of an agent step stand in the `instructions` of its message. A model without a script, or at its end, says `ok`. A line that cannot be read is a 400 that says
//! why. Every request is recorded ([`RecordedRequest`]); the [`NetworkState`] is not the model's, and may change at
//! any time.

mod answer;
mod api;
mod conversation;
mod directive;
mod event;
mod http;
mod messages;
mod network;
mod record;
mod reply;
mod responses;
mod script;
mod server;

pub use api::Api;
pub use conversation::{ConversationItem, Role};
pub use network::{FaultDuration, NetworkState};
pub use record::{RecordedRequest, RequestOutcome};
pub use reply::{DEFAULT_USAGE, Failure};

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use raymond_core::budget::Micros;
use raymond_core::prices::{Prices, Usage};
use tokio::sync::mpsc;

use record::RequestLog;
use server::{Change, Shared};

/// How a model is served.
#[derive(Debug, Default)]
pub struct Settings {
    /// 0 is any port that is free.
    pub port: u16,
    /// Where the files of `model: wait` are.
    pub gates: PathBuf,
    /// Gets every request as a line of JSON once it is answered.
    pub log: Option<File>,
}

/// A model that is served until this is dropped.
pub struct Model {
    address: SocketAddr,
    record: RequestLog,
    /// None while it is dropped.
    changes: Option<mpsc::UnboundedSender<Change>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Serves a model; it listens when this returns.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let record = RequestLog::new(settings.log);
        let network = Mutex::new(NetworkState::Normal);
        let shared = Arc::new(Shared { network, record: record.clone(), gates: settings.gates });
        let (changes, received) = mpsc::unbounded_channel();
        let (address, thread) = server::start(settings.port, shared, received)?;
        Ok(Self { address, record, changes: Some(changes), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client takes as its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the weather; it holds for every request that arrives after this returns.
    pub fn set_network(&self, network: NetworkState) -> io::Result<()> {
        let gone = || io::Error::other("the model is not served any more");
        let (done, set) = std::sync::mpsc::channel();
        let changes = self.changes.as_ref().ok_or_else(gone)?;
        changes.send((network, done)).map_err(|_| gone())?;
        set.recv().map_err(|_| gone())?
    }

    /// Every request so far, in the order in which they arrived.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.record.all()
    }

    /// What all replies cost that were delivered to their end, by model.
    pub fn usage(&self) -> BTreeMap<String, Usage> {
        let mut usage = BTreeMap::<String, Usage>::new();
        for seen in self.requests().iter().filter(|seen| seen.is_answered()) {
            let (sum, more) = (usage.entry(seen.model.clone()).or_default(), seen.usage());
            *sum = Usage {
                input: sum.input + more.input,
                output: sum.output + more.output,
                cache_write: sum.cache_write + more.cache_write,
                cache_read: sum.cache_read + more.cache_read,
            };
        }
        usage
    }

    /// What that is in money; none when a model has no price.
    pub fn cost(&self, prices: &Prices) -> Option<Micros> {
        let each = self.usage().into_iter();
        let each = each.map(|(model, usage)| prices.estimate(&model, &usage).map(|cost| cost.0));
        each.sum::<Option<u64>>().map(Micros)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
