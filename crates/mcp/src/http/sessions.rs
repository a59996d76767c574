//! The sessions of the older protocol version, at most [`SESSIONS`] at a time.
//!
//! Most clients never close their sessions, and an idle session lives for hours. So a new session
//! replaces the least recently used one, unless all of them have an open stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{SessionId, SessionManager as _};

/// How many sessions are kept at a time: more than one user has clients. Each takes two tasks and a
/// few buffers.
pub(crate) const SESSIONS: usize = 64;

#[derive(Clone)]
pub(super) struct Sessions {
    kept: Arc<LocalSessionManager>,
    uses: Arc<Mutex<Uses>>,
}

/// The last use of each session, counted in uses.
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

/// An open stream of a session. The session is in use until it is dropped.
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

    /// Adopts the sessions that exist, including those whose client left before it had an answer.
    fn synchronise<'a>(&mut self, existing: impl Iterator<Item = &'a SessionId>) {
        let mut sessions = HashMap::new();
        for id in existing {
            let used = self.sessions.remove(id);
            let used = used.unwrap_or(Use { last: self.count, streams: 0 });
            sessions.insert(id.clone(), used);
        }
        self.sessions = sessions;
    }

    /// Removes the sessions beyond the limit: idle ones first, and the newest one last.
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

    /// Records a request of a session, and keeps the session in use until its answer is read.
    pub(super) fn opened(&self, session: &str) -> Option<OpenStream> {
        let session: SessionId = session.into();
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.touch(&session);
        uses.sessions.get_mut(&session)?.streams += 1;
        Some(OpenStream { uses: Arc::clone(&self.uses), session })
    }

    pub(super) async fn exists(&self, session: &str) -> bool {
        self.kept.sessions.read().await.contains_key(session)
    }

    /// Counts a new session, and closes another one for it. Returns whether it may stay.
    pub(super) async fn begun(&self, session: &str) -> bool {
        let session: SessionId = session.into();
        // A block, so that both locks are released before sessions are closed.
        let surplus = {
            let kept = self.kept.sessions.read().await;
            let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            // The library closes idle sessions by itself, so the list is compared each time.
            uses.synchronise(kept.keys());
            uses.touch(&session);
            uses.remove_surplus(&session)
        };
        let may_stay = !surplus.contains(&session);
        for surplus in surplus {
            let kept = Arc::clone(&self.kept);
            // A stuck session takes long to close, so this does not wait.
            drop(tokio::spawn(async move { kept.close_session(&surplus).await.ok() }));
        }
        may_stay
    }
}
