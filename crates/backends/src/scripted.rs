//! The backend that plays replies from a file, for tests, demonstrations and workflow authors.
//!
//! ```yaml
//! START: "<goto>REVIEW</goto>"            # every visit, every turn
//! REVIEW:                                 # a list goes by visit
//!   - "<goto>FIX</goto>"
//!   - ["no tag here", "<goto>FIX</goto>"] # a list within it goes by turn (after a reminder)
//!   - { text: "<result>ok</result>", cost: 0.02, delay: 100ms, expect: "diff" }
//! FIX.md:                                 # numbers and "*" say the same in any order
//!   1: { attempts: [{ fail: transient }, "<goto>REVIEW</goto>"] }
//!   "*": { fail: { kind: quota, message: "come back later", for: 15m } }
//! BUILD: { text: "<goto>FIX</goto>", write: { src/lib.rs: "text", notes.txt: null } }
//! agents:                                 # one agent's own replies come first
//!   main_worker2: { WORKER: { hang: true } }
//! defaults: { cost: 0.01 }                # otherwise a reply costs 0
//! ```
//!
//! A reply is chosen only by agent, state, visit, turn and attempt. It costs its stated cost,
//! however the turn ends. A session exists because a plan names it; only `fail: lost_session` loses
//! one.

mod parse;
mod reader;
mod replies;
mod reply;
mod writes;
mod yaml;

use std::future::pending;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raymond_core::agent::SessionPlan;
use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{BackendName, SessionId};
use raymond_core::text::{excerpt, joined_words};
use raymond_core::time::{Span, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use raymond_core::run::outcome::{Finished, Reply};
use raymond_core::run::stop::Interruption;

use crate::contract::{Answer, AnswerFuture, Backend, Capability, PromptRequest, TurnObserver};
pub use replies::Replies;
use replies::{Action, Reset, ScriptedFailure, ScriptedReply, key};
pub use reply::KEYS;

/// The name in workflows and flags.
pub const NAME: &str = BackendName::SCRIPTED;

/// Effort and permissions are accepted, but no client exists that they could affect.
pub const CAPABILITIES: &[Capability] = &[
    Capability::Fresh,
    Capability::Resume,
    Capability::Branch,
    Capability::ChosenIds,
    Capability::Cost,
    Capability::Cap,
    Capability::Effort,
    Capability::Permissions,
];

/// A backend whose answers are in a file.
#[derive(Debug, Clone)]
pub struct Scripted {
    replies: Replies,
}

impl Scripted {
    pub fn new(replies: Replies) -> Self {
        Self { replies }
    }

    async fn play_reply(&self, request: &PromptRequest, cancel: &CancellationToken) -> Answer {
        let reply = match self.replies.find(request) {
            Ok(reply) => reply,
            // Without an entry no client was asked, so this is not a failure of a client.
            Err(why) => {
                return failed(TurnFailure::NotStarted { why }, Cost::Reported(Micros::ZERO));
            }
        };
        if let Some(why) = unexpected(reply, request) {
            return failed(TurnFailure::NotStarted { why }, reply.cost);
        }
        let progressed =
            matches!(&reply.action, Action::Say { earlier, .. } if !earlier.is_empty());
        let answer = async {
            if let Some(delay) = reply.delay {
                sleep(Duration::from_millis(delay.0)).await;
            }
            match writes::apply(&reply.writes, &request.cwd) {
                Ok(()) => perform(reply, request).await,
                Err(why) => failed(TurnFailure::Task { why }, reply.cost),
            }
        };
        // `biased` makes the order certain when several futures are ready, so that replays are
        // deterministic.
        tokio::select! {
            biased;
            () = cancel.cancelled() => interrupted(reply.cost, progressed),
            answer = answer => answer,
            failure = time_out(Clock::Idle, request.started.idle_timeout) => failed(failure, reply.cost),
            failure = time_out(Clock::Wall, request.started.timeout) => failed(failure, reply.cost),
        }
    }
}

impl Backend for Scripted {
    fn name(&self) -> BackendName {
        BackendName::new(NAME)
    }

    fn capabilities(&self) -> &'static [Capability] {
        CAPABILITIES
    }

    fn answer(&self, request: PromptRequest, observer: TurnObserver) -> AnswerFuture<'_> {
        Box::pin(async move { self.play_reply(&request, &observer.cancel).await })
    }
}

fn interrupted(cost: Cost, progressed: bool) -> Answer {
    Answer::Interrupted { by: Interruption::Stop, cost, progressed, session: None }
}

async fn perform(reply: &ScriptedReply, request: &PromptRequest) -> Answer {
    let cost = reply.cost;
    match &reply.action {
        Action::Say { last, denied, .. } => {
            let finished = Finished::new(Reply::new(last), cost);
            Answer::Finished(Box::new(Finished { denied: denied.clone(), ..finished }))
        }
        Action::Cap => Answer::Capped { cost, progressed: true, denied: Vec::new(), session: None },
        Action::Hang => pending().await,
        Action::Fail(fail) => failed(failure(fail, request), cost),
    }
}

/// Returns the reason why the prompt does not meet the expectation, if it does not.
fn unexpected(reply: &ScriptedReply, request: &PromptRequest) -> Option<String> {
    let message = request.message();
    let missing = reply.expect.iter().find(|part| !message.contains(*part))?;
    let key = key(request);
    // The message of a step begins with fixed rules. The part that differs starts at the JSON.
    let own = message.find('{').filter(|_| request.location.step().is_some()).unwrap_or_default();
    let (missing, sent) = (shorten(missing), shorten(&message[own..]));
    Some(format!("{key} expects \"{missing}\" in the prompt, which is \"{sent}\""))
}

fn failure(fail: &ScriptedFailure, request: &PromptRequest) -> TurnFailure {
    match fail {
        ScriptedFailure::Transient(why) => TurnFailure::Transient { why: why.clone() },
        ScriptedFailure::Timeout => TurnFailure::Timeout {
            clock: Clock::Idle,
            after: request.started.idle_timeout.unwrap_or(Span::minutes(30)),
        },
        ScriptedFailure::Quota(why, reset) => {
            TurnFailure::Quota { until: reset_time(*reset), why: why.clone() }
        }
        ScriptedFailure::Auth(why) => TurnFailure::Auth { why: why.clone() },
        ScriptedFailure::Task(why) => TurnFailure::Task { why: why.clone() },
        ScriptedFailure::LostSession => match required_session(&request.started.plan) {
            Some(session) => TurnFailure::LostSession { session: session.clone() },
            None => TurnFailure::Task {
                why: format!("{} cannot lose its session because it opens a new one", key(request)),
            },
        },
    }
}

fn failed(failure: TurnFailure, cost: Cost) -> Answer {
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

async fn time_out(clock: Clock, after: Option<Span>) -> TurnFailure {
    match after {
        Some(after) => {
            sleep(Duration::from_millis(after.0)).await;
            TurnFailure::Timeout { clock, after }
        }
        None => pending().await,
    }
}

/// Returns the session that must already exist.
fn required_session(plan: &SessionPlan) -> Option<&SessionId> {
    match plan {
        SessionPlan::Resume(session) | SessionPlan::Branch { from: session, .. } => Some(session),
        SessionPlan::Continue { or_else, .. } => required_session(or_else),
        SessionPlan::Fresh(_) | SessionPlan::Carry => None,
    }
}

fn reset_time(reset: Reset) -> Option<Timestamp> {
    match reset {
        Reset::Unknown => None,
        Reset::At(time) => Some(time),
        Reset::After(span) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
            Some(Timestamp(u64::try_from(now.as_millis()).ok()?) + span)
        }
    }
}

/// Returns the start of a text for a message, in one line.
fn shorten(text: &str) -> String {
    // In characters.
    const LENGTH: usize = 200;
    excerpt(&joined_words(text), LENGTH).into_owned()
}

#[cfg(test)]
mod tests;
