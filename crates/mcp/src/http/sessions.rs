//! The sessions of the older era, at most [`SESSIONS`] at a time.
//!
//! Most clients never close their sessions, and a session without messages lives for hours. So a new one
//! takes the place of the one that was used least recently, unless all of them have an open stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{SessionId, SessionManager as _};

/// How many sessions are kept at a time: more than one user has clients, and each takes two tasks and
/// some buffers.
pub(crate) const SESSIONS: usize = 64;

/// The sessions of a server.
#[derive(Clone)]
pub(super) struct Sessions {
    kept: Arc<LocalSessionManager>,
    uses: Arc<Mutex<Uses>>,
}

/// When each session was used, in counted uses.
#[derive(Debug, Default)]
struct Uses {
    count: u64,
    sessions: HashMap<SessionId, Use>,
}

#[derive(Debug, Default)]
struct Use {
    last: u64,
    streams: usize,
}

/// A stream of a session that is open. The session is in use until it is dropped.
pub(super) struct OpenStream {
    uses: Arc<Mutex<Uses>>,
    session: SessionId,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = uses.sessions.get_mut(&self.session) {
            used.streams = used.streams.saturating_sub(1);
        }
    }
}

impl Uses {
    fn touch(&mut self, session: &SessionId) {
        self.count += 1;
        if let Some(used) = self.sessions.get_mut(session) {
            used.last = self.count;
        }
    }

    /// Takes the sessions that exist over, also those whose client was gone before it had an answer.
    fn synchronise<'a>(&mut self, existing: impl Iterator<Item = &'a SessionId>) {
        let mut sessions = HashMap::new();
        for id in existing {
            let used = self.sessions.remove(id);
            let used = used.unwrap_or(Use { last: self.count, streams: 0 });
            sessions.insert(id.clone(), used);
        }
        self.sessions = sessions;
    }

    /// Removes the sessions that are too many: the idle ones first, the newest one at last.
    fn remove_surplus(&mut self, newest: &SessionId) -> Vec<SessionId> {
        let mut removed = Vec::new();
        while self.sessions.len() > SESSIONS {
            let idle = self.sessions.iter().filter(|(id, used)| used.streams == 0 && *id != newest);
            let oldest = idle.min_by_key(|(_, used)| used.last).map(|(id, _)| id.clone());
            let surplus = oldest.unwrap_or_else(|| newest.clone());
            self.sessions.remove(&surplus);
            removed.push(surplus);
        }
        removed
    }
}

impl Sessions {
    pub(super) fn new(kept: Arc<LocalSessionManager>) -> Self {
        Self { kept, uses: Arc::default() }
    }

    /// Notes that a request of a session came, and keeps the session as long as its answer is read.
    pub(super) fn opened(&self, session: &str) -> Option<OpenStream> {
        let session: SessionId = session.into();
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.touch(&session);
        uses.sessions.get_mut(&session)?.streams += 1;
        Some(OpenStream { uses: Arc::clone(&self.uses), session })
    }

    /// Counts a session that has begun, and closes another one for it. Returns whether it may stay.
    pub(super) async fn begun(&self, session: &str) -> bool {
        let session: SessionId = session.into();
        let surplus = {
            let kept = self.kept.sessions.read().await;
            let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            uses.synchronise(kept.keys());
            uses.touch(&session);
            uses.remove_surplus(&session)
        };
        let may_stay = !surplus.contains(&session);
        for surplus in surplus {
            let kept = Arc::clone(&self.kept);
            // A session that is stuck takes long to close; nobody has to wait for it.
            drop(tokio::spawn(async move { kept.close_session(&surplus).await.ok() }));
        }
        may_stay
    }
}
