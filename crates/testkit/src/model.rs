//! A scripted model behind the APIs that real clients use.
//!
//! It listens on a local port. The answer depends on the request alone, so a client that was killed
//! and resumed sees a consistent model: the script is in the prompt, as lines `model: …` of the
//! last user text that has any. The number of assistant messages after that text decides which
//! message comes next.
//!
//! | line | what the model does |
//! |---|---|
//! | `say TEXT` | its final text (`\n` is a newline): ends a message |
//! | `tool NAME {…}` | calls a tool with this input: ends a message |
//! | `text TEXT`, `think TEXT` | a text, a thought, before that in the same message |
//! | `refuse` | refuses: ends a message |
//! | `usage input=N output=N cache_read=N cache_write=N` | token counts of the messages after this line (default: 1000 input, 100 output) |
//! | `error STATUS [type=…] [retry-after=N] [header:NAME=VALUE …] [message=…]` | the API fails |
//! | `drop`, `hang` | closes the connection without a byte; never answers |
//! | `latency 300ms`, `wait FILE` | before the next message: waits this long; creates `FILE.waiting` and waits for FILE |
//! | `cut N` | the next message is cut after N events |
//! | `then` | the following lines answer the next user text without lines of its own, such as a reminder |
//! | `again` | the following lines apply if the conversation already contains the same script, as in a continued turn |
//!
//! An agent step has the lines in the `instructions` of its message. Without a script, and after
//! its end, the model says `ok`. A line that cannot be parsed is answered with status 400 and the
//! reason. Every request is recorded ([`RecordedRequest`]). Tests can add faults outside the script
//! with [`NetworkState`].

mod answer;
mod api;
mod conversation;
mod delivery;
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

#[derive(Debug, Default)]
pub struct ModelSettings {
    /// 0 means any free port.
    pub port: u16,
    /// The directory of the files of `model: wait`.
    pub gates: PathBuf,
    /// Receives every request as a line of JSON after its reply.
    pub log: Option<File>,
}

/// A server that runs until this value is dropped.
pub struct Model {
    address: SocketAddr,
    record: RequestLog,
    /// `None` during the drop.
    changes: Option<mpsc::UnboundedSender<Change>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a server, which accepts connections when this returns.
    pub fn start(settings: ModelSettings) -> io::Result<Self> {
        let record = RequestLog::new(settings.log);
        let network = Mutex::new(NetworkState::Normal);
        let shared = Arc::new(Shared { network, record: record.clone(), gates: settings.gates });
        let (changes, received) = mpsc::unbounded_channel();
        let (address, thread) = server::start(settings.port, shared, received)?;
        Ok(Self { address, record, changes: Some(changes), thread: Some(thread) })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the state of the network for every request that arrives after this returns.
    pub fn set_network(&self, network: NetworkState) -> io::Result<()> {
        let stopped = || io::Error::other("the server has stopped");
        // A confirmation, because a test sends its next request right after this call, and the
        // server runs on another thread.
        let (done, set) = std::sync::mpsc::channel();
        let changes = self.changes.as_ref().ok_or_else(stopped)?;
        changes.send((network, done)).map_err(|_| stopped())?;
        set.recv().map_err(|_| stopped())?
    }

    /// Returns every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.record.all()
    }

    /// Sums the usage of all replies that were delivered completely, by model.
    pub fn usage(&self) -> BTreeMap<String, Usage> {
        let mut usage = BTreeMap::<String, Usage>::new();
        for request in self.requests().iter().filter(|request| request.is_answered()) {
            let (sum, more) = (usage.entry(request.model.clone()).or_default(), request.usage());
            *sum = Usage {
                input: sum.input + more.input,
                output: sum.output + more.output,
                cache_write: sum.cache_write + more.cache_write,
                cache_read: sum.cache_read + more.cache_read,
            };
        }
        usage
    }

    /// Returns the price of all complete replies; `None` if a model has no price.
    pub fn cost(&self, prices: &Prices) -> Option<Micros> {
        let each = self.usage().into_iter();
        let each = each.map(|(model, usage)| prices.estimate(&model, &usage).map(|cost| cost.0));
        each.sum::<Option<u64>>().map(Micros)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Before the join: the server ends when this channel closes, and the join would wait
        // forever.
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
