//! The running calls, each on its own thread, so that none delays the protocol.
//!
//! A bounded number of calls runs at a time, a bounded number waits, and any further call is
//! refused. A cancelled call keeps its slot until its programs have ended. [`progress`] reports
//! progress, and [`abandoned`] lets a call wait for the end of an earlier one on the same run.

mod abandoned;
mod progress;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use raymond_core::crayfish::envelope::CallReply;
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_engine::call::{CallChannels, RawRequest};
use rmcp::ErrorData;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ToolHost;

use abandoned::{RunCall, RunCalls};

#[cfg(test)]
pub(crate) use progress::HEARTBEAT;
pub(crate) use progress::{Listener, with_heartbeat};

/// The JSON-RPC code of a request that the server has no room for. JSON-RPC leaves -32000 to -32099
/// to servers; neither the protocol nor its libraries use this one.
pub(crate) const BUSY: rmcp::model::ErrorCode = rmcp::model::ErrorCode(-32050);

/// How many calls run at a time. A call takes a thread, a runtime, up to ten descriptors and about
/// 3 MB, in addition to its programs. So 32 of them take 100 MB, and a third of the usual limit of
/// 1,024 descriptors.
pub(crate) const RUNNING: usize = 32;

/// How many calls wait for a running one to end. A waiting call takes only its message, so two
/// generations of calls may queue before clients are refused.
pub(crate) const WAITING: usize = 64;

/// How long the last progress reports of a call may delay its reply.
const PROGRESS_LIMIT: Duration = Duration::from_secs(1);

/// How long a cancelled call may take to end: longer than the time limit for ending its programs.
const END_LIMIT: Duration = Duration::from_secs(30);

/// The calls of a server.
#[derive(Clone)]
pub(crate) struct Calls {
    host: Arc<dyn ToolHost>,
    ending: CancellationToken,
    running: Arc<watch::Sender<usize>>,
    permits: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    by_run: RunCalls,
}

/// The right of one call to run. The thread of the call releases it, not the client that waits for
/// the reply: a cancelled call runs until its programs have ended.
#[derive(Debug)]
pub(crate) struct CallPermit {
    _permit: OwnedSemaphorePermit,
}

/// The reason why a call cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPermit {
    #[error(
        "the server is busy: {RUNNING} calls are running and {WAITING} are waiting; repeat the call \
         when others have ended"
    )]
    Busy,
    #[error("the call was cancelled before it began")]
    Cancelled,
}

impl From<NoPermit> for ErrorData {
    fn from(none: NoPermit) -> Self {
        match none {
            NoPermit::Busy => Self::new(BUSY, none.to_string(), None),
            NoPermit::Cancelled => Self::internal_error(none.to_string(), None),
        }
    }
}

/// Counts a call until it has ended.
struct Running {
    count: Arc<watch::Sender<usize>>,
    _permit: CallPermit,
    _run_call: Option<RunCall>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count.send_modify(|running| *running -= 1);
    }
}

impl Calls {
    pub(crate) fn new(host: Arc<dyn ToolHost>, ending: CancellationToken) -> Self {
        Self {
            host,
            ending,
            running: Arc::new(watch::Sender::new(0)),
            permits: Arc::new(Semaphore::new(RUNNING)),
            queue: Arc::new(Semaphore::new(WAITING)),
            by_run: RunCalls::default(),
        }
    }

    pub(crate) fn host(&self) -> &Arc<dyn ToolHost> {
        &self.host
    }

    /// Waits until no call runs, at most as long as cancelled calls may take to end.
    pub(crate) async fn idle(&self) {
        let mut running = self.running.subscribe();
        // The wait cannot fail, because `self` has the sender.
        timeout(END_LIMIT, running.wait_for(|running| *running == 0)).await.ok();
    }

    /// Waits for a slot, unless too many calls wait already.
    pub(crate) async fn permit(&self, cancel: &CancellationToken) -> Result<CallPermit, NoPermit> {
        // The semaphore gives a free slot to the first waiter, so this does not overtake one.
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(CallPermit { _permit: permit });
        }
        let _place = self.queue.try_acquire().map_err(|_| NoPermit::Busy)?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(NoPermit::Cancelled),
            () = self.ending.cancelled() => Err(NoPermit::Cancelled),
            permit = Arc::clone(&self.permits).acquire_owned() => {
                permit.map(|permit| CallPermit { _permit: permit }).map_err(|_| NoPermit::Cancelled)
            }
        }
    }

    /// Answers a request. The call is cancelled with the server, with `cancel`, and when the caller
    /// of this function stops waiting. If an earlier call on the same run was cancelled, this one
    /// waits for its end, so that a client that gave up can continue the run.
    pub(crate) async fn answer(
        &self,
        sent: RawRequest,
        permit: CallPermit,
        cancel: &CancellationToken,
        listener: Option<&Listener>,
    ) -> CallReply {
        // A child token: cancelling this call must not end the server.
        let token = self.ending.child_token();
        let _cancelled_on_drop = token.clone().drop_guard();
        let run = sent.request["runId"].as_str().map(str::to_owned);
        if let Some(run) = &run {
            timeout(END_LIMIT, self.by_run.no_abandoned(run, cancel)).await.ok();
        }
        let run_call = run.map(|run| self.by_run.enter(run, [cancel.clone(), token.clone()]));
        let (progress, reports) = mpsc::unbounded_channel();
        let channels = CallChannels { cancel: token.clone(), progress };
        let mut answered = match self.start(sent, self.count(permit, run_call), channels) {
            Ok(answered) => answered,
            Err(error) => return internal(&format!("no thread could be started: {error}")),
        };
        let reporting = progress::report(reports, listener);
        tokio::pin!(reporting);
        let mut is_reported = false;
        let reply = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !token.is_cancelled() => token.cancel(),
                () = &mut reporting, if !is_reported => is_reported = true,
                reply = &mut answered => break reply,
            }
        };
        if !is_reported {
            // A client that does not read misses the remaining reports.
            timeout(PROGRESS_LIMIT, reporting).await.ok();
        }
        reply.unwrap_or_else(|_| internal("the call ended without a reply"))
    }

    /// Counts a call before its thread starts, so that `idle` cannot miss it.
    fn count(&self, permit: CallPermit, run_call: Option<RunCall>) -> Running {
        self.running.send_modify(|running| *running += 1);
        Running { count: Arc::clone(&self.running), _permit: permit, _run_call: run_call }
    }

    fn start(
        &self,
        sent: RawRequest,
        running: Running,
        channels: CallChannels,
    ) -> std::io::Result<oneshot::Receiver<CallReply>> {
        let host = Arc::clone(&self.host);
        let (answer, answered) = oneshot::channel();
        let call = move || {
            let _running = running;
            // The receiver of a cancelled call may be dropped.
            answer.send(host.call(sent, channels)).ok();
        };
        thread::Builder::new().name("call".to_owned()).spawn(call)?;
        Ok(answered)
    }
}

fn internal(message: &str) -> CallReply {
    CallReply::failed(ErrorCode::Internal, message, Vec::new())
}
