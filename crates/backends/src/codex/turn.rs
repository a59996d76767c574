//! The state of a turn of Codex, folded from its lines.
//!
//! The stream shows the progress of the turn. Its cost and the types of errors come from the
//! rollout files, through `thread_usage`. Both are read with every event, and the files more often
//! while there is a cap. `outcome` turns this state into an answer.

use std::time::Duration;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Usage;
use raymond_core::text::excerpt_bytes;
use tokio::time::Instant;

use super::error_class::{ErrorClass, Retry};
use super::line::{self, Item, Line};
use super::prior_turns_file;
use super::thread_usage::{Ending, ThreadUsage};
use crate::contract::PromptRequest;
use crate::headless::{
    SessionStep, Speaker, Stage, StreamHealth, TranscriptItem, TurnReader, UnknownLine, is_safe_id,
    shorten, unwritable_file,
};

/// The state of a turn.
#[derive(Debug)]
pub(super) struct CodexTurn {
    pub(super) thread_usage: ThreadUsage,
    /// The thread that the client reports.
    pub(super) session: Option<SessionId>,
    pub(super) message: Option<String>,
    pub(super) result: Option<Conclusion>,
    /// The reason to end the client before it has a result.
    pub(super) abort_reason: Option<AbortReason>,
    pub(super) denied: Vec<String>,
    pub(super) form: Form,
    pub(super) health: StreamHealth,
    cap: Option<Micros>,
    request_sent: RequestSent,
    // Four clocks. The client writes its files with a delay, so a condition counts only after it
    // has lasted for a while.
    //
    // Since when a client that may have asked has no readable thread file. It protects the cap from
    // a client whose spending never becomes visible: see `USAGE_FILE_WAIT`.
    invisible: Since,
    // Since when a tool has returned but the answer that called it has no tokens. It protects the
    // cap from answers that are paid for but would count as free: see `SETTLE_TIME`.
    uncounted: Since,
    // Since when the model seems to be finished. It protects the final message of a turn whose
    // share is used up, and limits what the turn spends if that message was not the last.
    finishing: Since,
    // Since when a request is open. It protects the run from paying for a request that the client
    // had no time to send when the cap ended it: see `MIN_REQUEST_AGE`.
    asking: Since,
    // A client that only reports retries makes output, but must still reach its idle timeout.
    is_retrying: bool,
    // Whether a request broke off and was retried. The model may have worked on the first one, so a
    // refused retry does not make the turn free.
    request_broke_off: bool,
    // The thread to continue. A client that names another one works in the wrong conversation.
    resumes: Option<SessionId>,
    // The tokens of the thread in all its turns, from the stream. They replace the thread file only
    // if that has no tokens and this turn opened the thread.
    reported_usage: Option<Usage>,
    /// The model of a newly opened thread, whose whole usage belongs to this turn.
    pub(super) opened_model: Option<String>,
    // The core fails an agent after five shares or five crashes in a row without progress.
    has_spoken: bool,
}

/// The requested form of the final message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conclusion {
    Completed,
    Failed { message: String },
}

/// The reason to end the client because no useful result can follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// The client is not logged in.
    LoggedOut(String),
    /// A usage limit is reached.
    Limited(String),
    /// The budget share is used up, and another request would follow.
    Capped,
    /// There is a budget share, but the spending of the client is not visible.
    UnknownSpending,
    /// The client writes to another thread than planned.
    WrongThread { from: SessionId, to: SessionId },
    /// There is a budget share, but the price of the model is unknown.
    Unpriced(String),
}

/// Whether a request to the model may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestSent {
    No,
    Maybe,
}

/// How often the rollout is read while there is a cap.
// A request that starts after the share was used up costs what it reads before it is stopped. 20
// reads a second keep that small, and each one reads only what was appended.
const USAGE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time since when a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Since(Option<Instant>);

impl Since {
    fn note(&mut self, is_so: bool) {
        self.0 = if is_so { self.0.or_else(|| Some(Instant::now())) } else { None };
    }

    fn has_lasted(&self, span: Duration) -> bool {
        self.0.is_some_and(|since| since.elapsed() >= span)
    }
}

/// The age from which an open request counts as sent.
// An open request shows only in the entries before it, so a younger one may not have been sent.
const MIN_REQUEST_AGE: Duration = Duration::from_millis(500);

/// How long the client may take to write the tokens of an answer and the end of the turn.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(1);

/// How long a working client may be without a rollout file.
// The client creates the file some time after its start, and what it spends until then is not seen.
pub(super) const USAGE_FILE_WAIT: Duration = Duration::from_secs(3);

impl CodexTurn {
    pub(super) fn new(thread_usage: ThreadUsage, cap: Option<Micros>, form: Form) -> Self {
        Self {
            thread_usage,
            session: None,
            message: None,
            result: None,
            abort_reason: None,
            denied: Vec::new(),
            form,
            health: StreamHealth::default(),
            cap,
            request_sent: RequestSent::No,
            invisible: Since::default(),
            uncounted: Since::default(),
            finishing: Since::default(),
            asking: Since::default(),
            is_retrying: false,
            request_broke_off: false,
            resumes: None,
            reported_usage: None,
            opened_model: None,
            has_spoken: false,
        }
    }

    /// Returns the known cost. Tokens are counted and priced by the price list.
    pub(super) fn cost(&self) -> Cost {
        let free = Cost::Reported(Micros::ZERO);
        // An unreadable file is not an empty one: its requests may have been answered and paid.
        let is_empty = self.thread_usage.has_readable_counts() && self.thread_usage.is_empty();
        let turned_away =
            matches!(self.abort_reason, Some(AbortReason::LoggedOut(_) | AbortReason::Limited(_)));
        let is_refused = !self.request_broke_off && (turned_away || self.was_refused());
        match (&self.result, self.request_sent) {
            (_, RequestSent::No) => free,
            // The provider served none of the requests. A request that broke off or that a gateway
            // failed may have been answered in part, even if the client retried it and only the
            // retry was refused.
            (Some(Conclusion::Failed { .. }) | None, _) if is_empty && is_refused => free,
            // The rollout may not contain more than the previous turn yet.
            (None, _) if self.thread_usage.may_be_behind() => Cost::Unknown,
            (Some(Conclusion::Completed), _) if self.thread_usage.is_empty() => {
                self.reported_cost().map_or(Cost::Unknown, Cost::Estimated)
            }
            // The first request was sent and no answer has counted tokens yet, so there is nothing
            // to estimate from.
            (Some(Conclusion::Failed { .. }) | None, _) if self.thread_usage.is_empty() => {
                Cost::Unknown
            }
            (Some(Conclusion::Completed), _) => {
                self.thread_usage.known_cost(Ending::Reported).cost()
            }
            // The provider did not serve the last request, so it is not charged as an open one.
            (Some(Conclusion::Failed { .. }) | None, _) if is_refused => {
                self.thread_usage.known_cost(Ending::Reported).cost()
            }
            (Some(Conclusion::Failed { .. }) | None, _) => {
                self.thread_usage.known_cost(Ending::Interrupted).cost()
            }
        }
    }

    /// Whether the turn failed because the provider refused its last request.
    fn was_refused(&self) -> bool {
        match &self.result {
            Some(Conclusion::Failed { message }) => {
                ErrorClass::is_refusal(self.thread_usage.problem(), message)
            }
            Some(Conclusion::Completed) | None => false,
        }
    }

    pub(super) fn may_have_asked(&self) -> bool {
        self.request_sent == RequestSent::Maybe
    }

    /// Returns the cost that the stream reports, if the rollout reports nothing.
    fn reported_cost(&self) -> Option<Micros> {
        // The stream counts the whole thread. That equals this turn only if it opened the thread.
        let model = self.opened_model.as_ref().filter(|_| self.thread_usage.is_empty())?;
        self.thread_usage.price(model, self.reported_usage.as_ref()?)
    }

    /// Whether there is a budget share and its rest is unknown.
    pub(super) fn is_spending_unknown(&self) -> bool {
        let is_over = self.result.is_some()
            || !self.thread_usage.has_readable_counts()
            || self.thread_usage.lacks_tokens();
        let is_known = self.cost() != Cost::Unknown && self.thread_usage.is_priced();
        self.cap.is_some() && is_over && !is_known
    }

    fn apply_line(&mut self, line: Line) -> Result<Vec<TranscriptItem>, UnknownLine> {
        match line {
            Line::Thread(id) => self.note_thread(&id),
            Line::Begins => self.request_sent = RequestSent::Maybe,
            Line::Doing(item) => return Ok(self.item_started(&item)),
            Line::Done(item) => return Ok(self.item_completed(item)),
            Line::Completed(usage) => {
                self.request_sent = RequestSent::Maybe;
                self.reported_usage = usage;
                self.result = Some(Conclusion::Completed);
            }
            Line::Failed(message) => {
                let said = TranscriptItem::Final { by: Speaker::Client, text: message.clone() };
                self.result = Some(Conclusion::Failed { message });
                return Ok(vec![said]);
            }
            Line::Error(message) => return Ok(self.note_error(&message)),
            Line::Ignored => {}
            Line::NotJson => {
                self.note_unread_output();
                return Err(UnknownLine::NotJson);
            }
            Line::Unknown(kind) => {
                self.note_unread_output();
                return Err(UnknownLine::Unknown(kind));
            }
        }
        Ok(Vec::new())
    }

    fn note_thread(&mut self, id: &str) {
        // Its id may become an argument of the next client, so unsafe ids are dropped.
        if !is_safe_id(id) {
            self.health.warnings.add_message("ignored an invalid thread id from the client");
            return;
        }
        let id = SessionId::new(id);
        // A client that names two threads, or not the one to continue, works in the wrong
        // conversation.
        match self.session.as_ref().or(self.resumes.as_ref()).filter(|known| **known != id) {
            Some(from) => {
                self.abort_reason = Some(AbortReason::WrongThread { from: from.clone(), to: id });
            }
            None => {
                self.thread_usage.add_thread(id.as_str());
                self.session = Some(id);
            }
        }
    }

    fn item_started(&mut self, item: &Item) -> Vec<TranscriptItem> {
        (self.has_spoken, self.is_retrying) = (true, false);
        self.request_sent = RequestSent::Maybe;
        self.add_agent_threads(item);
        match item {
            Item::Command { command, .. } => vec![TranscriptItem::Tool { name: shell(command) }],
            Item::Tool { name, .. } => vec![TranscriptItem::Tool { name: name.clone() }],
            Item::Agents { tool, .. } => vec![TranscriptItem::Tool { name: tool.clone() }],
            Item::Message(_) | Item::Files { .. } | Item::Note(_) | Item::Other => Vec::new(),
        }
    }

    fn item_completed(&mut self, item: Item) -> Vec<TranscriptItem> {
        self.add_agent_threads(&item);
        // A warning of the client itself does not prove that the model was asked.
        if !matches!(item, Item::Note(_)) {
            (self.has_spoken, self.is_retrying) = (true, false);
            self.request_sent = RequestSent::Maybe;
        }
        match item {
            Item::Message(text) => {
                self.health.unread = false;
                self.message = Some(text.clone());
                vec![TranscriptItem::Text { by: Speaker::Agent, text }]
            }
            Item::Command { command, status, .. } if status == "declined" => {
                self.note_denial(format!("the command {}", line(&command)))
            }
            Item::Command { status, output, .. } if status == "failed" => {
                vec![TranscriptItem::ToolFailed { why: output }]
            }
            Item::Files { paths, status } => {
                let paths = paths.join(", ");
                if status == "declined" {
                    self.note_denial(format!("the edit of {paths}"))
                } else {
                    vec![TranscriptItem::Tool { name: format!("Edit({paths})") }]
                }
            }
            Item::Tool { failed: Some(why), .. } => vec![TranscriptItem::ToolFailed { why }],
            Item::Note(message) => {
                self.health.warnings.add_message(format!("the client says: {message}"));
                vec![TranscriptItem::Unread { what: shorten(&message) }]
            }
            Item::Command { .. } | Item::Tool { .. } | Item::Agents { .. } | Item::Other => {
                Vec::new()
            }
        }
    }

    /// Adds the threads of agents, because they spend from the same budget share.
    fn add_agent_threads(&mut self, item: &Item) {
        if let Item::Agents { threads, .. } = item {
            // The first thread that is added counts as the turn's own, so agents must wait for it.
            let threads = threads.iter().filter(|_| self.session.is_some());
            threads.for_each(|thread| self.thread_usage.add_thread(thread));
        }
    }

    fn note_denial(&mut self, call: String) -> Vec<TranscriptItem> {
        // It is not written as a permission rule, because no rule would allow it.
        // A bound for memory and journal; a client in a loop can be denied without end.
        const MAX_DENIED: usize = 1000;
        if self.denied.len() < MAX_DENIED {
            self.denied.push(call.clone());
        }
        vec![TranscriptItem::Denied { tool: call }]
    }

    fn note_error(&mut self, message: &str) -> Vec<TranscriptItem> {
        let why = shorten(message);
        self.request_broke_off |= Retry::follows_a_break(message);
        match Retry::from_notice(message) {
            // The final failure is reported again when the turn fails.
            None => return Vec::new(),
            Some(Retry::Useful) => self.is_retrying = true,
            Some(Retry::LoggedOut) => self.abort_reason = Some(AbortReason::LoggedOut(why.clone())),
            Some(Retry::Limited) => self.abort_reason = Some(AbortReason::Limited(why.clone())),
        }
        vec![TranscriptItem::Retries { why }]
    }
}

impl TurnReader for CodexTurn {
    fn health(&mut self) -> &mut StreamHealth {
        &mut self.health
    }

    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine> {
        self.apply_line(line::read(line))
    }

    /// The unread part may have been the start of the turn.
    fn note_unread_output(&mut self) {
        self.request_sent = RequestSent::Maybe;
    }

    // A result ends the turn: the client has no background tasks.
    fn stage(&self) -> Stage {
        if self.result.is_some() { Stage::Done } else { Stage::Working }
    }

    fn is_complete(&self) -> bool {
        self.result.is_some()
    }

    fn has_progressed(&self) -> bool {
        self.has_spoken || !self.thread_usage.is_empty()
    }

    fn should_abort(&self) -> bool {
        self.abort_reason.is_some() && self.result.is_none()
    }

    fn session(&self) -> Option<SessionId> {
        self.session.clone()
    }

    /// Returns a turn without spending, because a client that does not know its thread has spent
    /// nothing.
    fn successor(&self) -> Self {
        Self::new(self.thread_usage.for_next_client(), self.cap, self.form)
    }

    fn before_start(
        &mut self,
        step: &SessionStep,
        request: &PromptRequest,
    ) -> Result<(), TurnFailure> {
        let prior_turns = prior_turns_file(&request.started);
        // The rollout already contains the tokens of earlier turns, which must not be charged
        // again.
        let closed =
            self.thread_usage.record_prior_turns(step.required_session().map(SessionId::as_str));
        closed.map_err(|error| unwritable_file(&prior_turns, &error))?;
        if request.schema.is_some() {
            self.form = Form::Json;
        }
        // Not for a branch: its usage includes the thread from which it was branched.
        if let SessionStep::Open(_) = step {
            self.opened_model.clone_from(&request.model);
        }
        if let SessionStep::Resume(id) = step {
            self.thread_usage.add_thread(id.as_str());
            self.resumes = Some(id.clone());
            let is_new_text = |text: &String| !self.thread_usage.was_instructed(id.as_str(), text);
            if request.extras.append_system_prompt.as_ref().is_some_and(is_new_text) {
                let why = "the client keeps the system prompt that a thread was opened with";
                self.health
                    .warnings
                    .add_message(format!("append_system_prompt was ignored: {why}"));
            }
        }
        Ok(())
    }

    fn before_end(&mut self) {
        self.poll();
        // A used-up share is charged in full anyway. For every other reason to end the client, the
        // request counts: a turn that is stopped and resumed many times must never be free.
        if self.abort_reason == Some(AbortReason::Capped)
            && !self.asking.has_lasted(MIN_REQUEST_AGE)
        {
            self.thread_usage.withdraw();
        }
        self.thread_usage.before_end();
    }

    fn is_stalled(&self) -> bool {
        self.is_retrying
    }

    fn poll_interval(&self) -> Option<Duration> {
        let is_watched = self.session.is_some() || self.request_sent == RequestSent::Maybe;
        self.cap.filter(|_| is_watched).map(|_| USAGE_POLL_INTERVAL)
    }

    fn poll(&mut self) {
        self.thread_usage.read_new();
        if !self.thread_usage.is_empty() && !self.thread_usage.may_be_behind() {
            self.request_sent = RequestSent::Maybe;
        }
        // Noted before the early return below: `before_end` needs the age of the request in any
        // case.
        self.asking.note(self.thread_usage.has_open_request());
        self.check_spending_visible();
        if self.thread_usage.may_be_behind() {
            return;
        }
        // Also checked for a finished turn. Otherwise a run of short turns would never reach its
        // cap.
        let unpriced = self.cap.and_then(|_| self.thread_usage.unpriced()).map(str::to_owned);
        if let Some(model) = unpriced.filter(|_| self.abort_reason.is_none()) {
            self.abort_reason = Some(AbortReason::Unpriced(model));
        }
        let used_up = self
            .cap
            .is_some_and(|cap| !self.thread_usage.is_empty() && self.thread_usage.spent() >= cap);
        self.finishing.note(self.thread_usage.is_finishing());
        // After its last message a client usually ends by itself, so it gets a moment before the
        // cap ends it.
        let follows = !self.thread_usage.is_finishing() || self.finishing.has_lasted(SETTLE_TIME);
        if used_up && follows && self.abort_reason.is_none() {
            self.abort_reason = Some(AbortReason::Capped);
        }
    }
}

impl CodexTurn {
    /// Aborts the turn if its spending stays invisible, because an invisible cost cannot be kept
    /// below a cap.
    fn check_spending_visible(&mut self) {
        let is_watched = self.cap.is_some() && self.request_sent == RequestSent::Maybe;
        self.invisible.note(is_watched && !self.thread_usage.has_readable_counts());
        self.uncounted.note(is_watched && self.thread_usage.lacks_tokens());
        let is_invisible =
            self.invisible.has_lasted(USAGE_FILE_WAIT) || self.uncounted.has_lasted(SETTLE_TIME);
        if is_invisible && self.abort_reason.is_none() {
            self.abort_reason = Some(AbortReason::UnknownSpending);
        }
    }
}

/// Formats a command as a tool call.
fn shell(command: &str) -> String {
    format!("Bash({})", line(command))
}

/// Returns the command without the shell call that the client adds.
fn line(command: &str) -> String {
    // In bytes, because commands may be of any length.
    const MAX_LENGTH: usize = 2000;
    let line = command.split_once(" -lc ").map_or(command, |(_, line)| line).trim();
    let quoted = |quote| line.strip_prefix(quote).and_then(|line| line.strip_suffix(quote));
    let line = quoted('\'').or_else(|| quoted('"')).unwrap_or(line);
    excerpt_bytes(line, MAX_LENGTH).into_owned()
}

#[cfg(test)]
mod tests;
