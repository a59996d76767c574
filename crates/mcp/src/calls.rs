//! The calls that are running: each on a thread of its own, so that none holds up the protocol, and
//! none is left behind.
//!
//! A bounded number of calls runs at a time, a bounded number waits for its turn, and any further call is
//! refused. [`telling`] reports the progress of a call.

mod telling;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use raymond_core::crayfish::envelope::Reply;
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_engine::call::{Follower, RawRequest};
use rmcp::ErrorData;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Host;

pub(crate) use telling::Listener;

/// The code of a request that the server has no room for. JSON-RPC leaves -32000 to -32099 to servers;
/// this one is used by neither the protocol nor its libraries.
pub(crate) const BUSY: rmcp::model::ErrorCode = rmcp::model::ErrorCode(-32050);

/// How many calls run at a time. A call takes a thread, a runtime, up to ten descriptors and about 3 MB,
/// beside its programs. So 32 of them take 100 MB, and a third of the 1,024 descriptors that a process
/// usually may have.
pub(crate) const RUNNING: usize = 32;

/// How many calls wait for one of these to end. A waiting call takes only its message, so this allows two
/// generations of calls to queue up before clients are told to slow down.
pub(crate) const WAITING: usize = 64;

/// How long the last progress of a call may hold up its reply.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a call that was given up may take to end: more than its programs are left.
const LONGEST_END: Duration = Duration::from_secs(30);

/// All calls of a server.
#[derive(Clone)]
pub(crate) struct Calls {
    host: Arc<dyn Host>,
    ending: CancellationToken,
    running: Arc<watch::Sender<usize>>,
    turns: Arc<Semaphore>,
    queue: Arc<Semaphore>,
}

/// The right of one call to run. Its thread gives it back, not the client that waits for the reply: a
/// call that was cancelled runs until its programs have ended.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// Why a call cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTurn {
    /// Too many others run and wait.
    #[error(
        "the server is busy: {RUNNING} calls are running and {WAITING} are waiting; repeat the call \
         when others have ended"
    )]
    Busy,
    /// It was cancelled while it waited.
    #[error("the call was cancelled before it began")]
    Cancelled,
}

impl From<NoTurn> for ErrorData {
    fn from(none: NoTurn) -> Self {
        match none {
            NoTurn::Busy => Self::new(BUSY, none.to_string(), None),
            NoTurn::Cancelled => Self::internal_error(none.to_string(), None),
        }
    }
}

/// A call that has not ended.
struct Running {
    count: Arc<watch::Sender<usize>>,
    _turn: Turn,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count.send_modify(|running| *running -= 1);
    }
}

impl Calls {
    pub(crate) fn new(host: Arc<dyn Host>, ending: CancellationToken) -> Self {
        Self {
            host,
            ending,
            running: Arc::new(watch::Sender::new(0)),
            turns: Arc::new(Semaphore::new(RUNNING)),
            queue: Arc::new(Semaphore::new(WAITING)),
        }
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Waits until nothing runs any more, as long as it takes to end what was given up.
    pub(crate) async fn idle(&self) {
        let mut running = self.running.subscribe();
        // The sender is held here: it cannot be gone.
        timeout(LONGEST_END, running.wait_for(|running| *running == 0)).await.ok();
    }

    /// Waits for a turn, unless too many calls wait already.
    pub(crate) async fn turn(&self, cancel: &CancellationToken) -> Result<Turn, NoTurn> {
        // The semaphore hands a free turn to the first in its queue, so this overtakes nobody.
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(Turn { _permit: turn });
        }
        let _place = self.queue.try_acquire().map_err(|_| NoTurn::Busy)?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(NoTurn::Cancelled),
            () = self.ending.cancelled() => Err(NoTurn::Cancelled),
            turn = Arc::clone(&self.turns).acquire_owned() => {
                turn.map(|permit| Turn { _permit: permit }).map_err(|_| NoTurn::Cancelled)
            }
        }
    }

    /// Answers a request. It is given up with the server, with `cancel`, and when nobody waits for
    /// its answer any more.
    pub(crate) async fn answer(
        &self,
        sent: RawRequest,
        turn: Turn,
        cancel: &CancellationToken,
        listener: Option<&Listener>,
    ) -> Reply {
        let token = self.ending.child_token();
        let _given_up_with_this = token.clone().drop_guard();
        let (progress, told) = mpsc::unbounded_channel();
        let follower = Follower { cancel: token.clone(), progress };
        let mut answered = match self.start(sent, turn, follower) {
            Ok(answered) => answered,
            Err(error) => return internal(&format!("no thread could be started: {error}")),
        };
        let telling = telling::tell(told, listener);
        tokio::pin!(telling);
        let mut is_told = false;
        let reply = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !token.is_cancelled() => token.cancel(),
                () = &mut telling, if !is_told => is_told = true,
                reply = &mut answered => break reply,
            }
        };
        if !is_told {
            // A client that does not read misses what is left.
            timeout(PATIENCE, telling).await.ok();
        }
        reply.unwrap_or_else(|_| internal("the call ended without a reply"))
    }

    fn start(
        &self,
        sent: RawRequest,
        turn: Turn,
        follower: Follower,
    ) -> std::io::Result<oneshot::Receiver<Reply>> {
        self.running.send_modify(|running| *running += 1);
        let running = Running { count: Arc::clone(&self.running), _turn: turn };
        let host = Arc::clone(&self.host);
        let (answer, answered) = oneshot::channel();
        let call = move || {
            let _running = running;
            // Nobody waits for the answer of a call that was given up.
            answer.send(host.call(sent, follower)).ok();
        };
        thread::Builder::new().name("call".to_owned()).spawn(call)?;
        Ok(answered)
    }
}

fn internal(message: &str) -> Reply {
    Reply::failed(ErrorCode::Internal, message, Vec::new())
}
