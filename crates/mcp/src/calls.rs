//! The calls that are running: each on a thread of its own, so that none holds up the protocol, and
//! none is left behind.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use raymond_core::crayfish::code::Code;
use raymond_core::crayfish::envelope::Reply;
use raymond_engine::call::{Follower, Progress, Sent};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Host;

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
}

/// A client that wants to know how its call is going.
pub(crate) struct Listener {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) token: ProgressToken,
}

impl Listener {
    async fn tell(&self, progress: Progress) {
        #[expect(clippy::cast_precision_loss, reason = "no call has so many steps")]
        let told = ProgressNotificationParam::new(self.token.clone(), progress.count as f64)
            .with_message(progress.message);
        // A client that is gone will be noticed elsewhere.
        self.peer.notify_progress(told).await.ok();
    }
}

/// A call that has not ended.
struct Running(Arc<watch::Sender<usize>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl Calls {
    pub(crate) fn new(host: Arc<dyn Host>, ending: CancellationToken) -> Self {
        Self { host, ending, running: Arc::new(watch::Sender::new(0)) }
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

    /// Answers a request. It is given up with the server, with `cancel`, and when nobody waits for
    /// its answer any more.
    pub(crate) async fn answer(
        &self,
        sent: Sent,
        cancel: &CancellationToken,
        listener: Option<&Listener>,
    ) -> Reply {
        let token = self.ending.child_token();
        let _given_up_with_this = token.clone().drop_guard();
        let (progress, mut told) = mpsc::unbounded_channel();
        let follower = Follower { cancel: token.clone(), progress };
        let mut answered = match self.start(sent, follower) {
            Ok(answered) => answered,
            Err(error) => return internal(&format!("no thread could be started: {error}")),
        };
        let telling = async {
            let mut last = None;
            while let Some(progress) = told.recv().await {
                // What the protocol promises is kept here, whatever is told.
                if let Some(listener) = listener.filter(|_| last < Some(progress.count)) {
                    last = Some(progress.count);
                    listener.tell(progress).await;
                }
            }
        };
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

    fn start(&self, sent: Sent, follower: Follower) -> std::io::Result<oneshot::Receiver<Reply>> {
        self.running.send_modify(|running| *running += 1);
        let running = Running(Arc::clone(&self.running));
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
    Reply::failed(Code::Internal, message, Vec::new())
}
