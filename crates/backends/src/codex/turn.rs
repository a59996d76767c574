//! What the lines of a turn add up to.
//!
//! The stream says how the turn goes; what it costs, and what an error is, comes from the books. Both
//! are looked at whenever the client is heard, and the books oftener while there is a cap to keep.

use std::time::Duration;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Usage;
use tokio::time::Instant;

use super::error_class::{ErrorClass, Retry};
use super::line::{self, Item, Line};
use super::prior_turns_file;
use super::thread_usage::{Ending, ThreadUsage};
use crate::contract::Request;
use crate::headless::{
    SessionStep, Speaker, Stage, StreamHealth, TranscriptItem, TurnReader, UnknownLine, is_safe_id,
    shorten, unwritable_file,
};

/// A turn, as far as it was heard.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) thread_usage: ThreadUsage,
    /// The thread that the client names.
    pub(super) session: Option<SessionId>,
    /// The last message.
    pub(super) message: Option<String>,
    /// How the client concludes.
    pub(super) result: Option<Conclusion>,
    /// Why the client is ended before that.
    pub(super) abort_reason: Option<AbortReason>,
    /// The calls that were declined.
    pub(super) denied: Vec<String>,
    pub(super) form: Form,
    pub(super) health: StreamHealth,
    cap: Option<Micros>,
    begun: Begun,
    /// Since when there is something to see in the books that cannot be seen.
    unseen: Since,
    /// Since when an answer lacks its tokens.
    uncounted: Since,
    /// Since when nothing should follow.
    finishing: Since,
    /// Since when a request is under way.
    asking: Since,
    /// The last that the client said is that it tries again.
    is_retrying: bool,
    /// A request broke off and was tried again: the model may have worked on it.
    request_broke_off: bool,
    /// The thread that it is to go on with.
    resumes: Option<SessionId>,
    /// What the stream says that a thread used, in all its turns.
    reported_usage: Option<Usage>,
    /// The model of a thread that is opened: all that it uses is of this turn.
    pub(super) opened_model: Option<String>,
    has_spoken: bool,
}

/// What the final message is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// How a client concludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conclusion {
    Completed,
    Failed { message: String },
}

/// Why nothing good can follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AbortReason {
    /// Nobody is logged in.
    LoggedOut(String),
    /// A usage limit is reached.
    Limited(String),
    /// The share is used up, and another request would follow.
    Capped,
    /// There is a share, and what the client spends cannot be seen.
    UnknownSpending,
    /// It writes another thread than it should.
    WrongThread { from: SessionId, to: SessionId },
    /// There is a share, and a model whose price is not known: it cannot be kept.
    Unpriced(String),
}

/// Whether the model may have been asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    NotYet,
    Already,
}

/// How often the books are read while there is a cap: a request that follows upon one that used up the
/// share is stopped before it is much older than this.
const USAGE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Since when something is so.
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

/// A request that is younger may not have been sent.
const MIN_REQUEST_AGE: Duration = Duration::from_millis(500);

/// How long the client may take to write down what goes with an answer: its tokens, the end of the turn.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(1);

/// How long a client that works may keep no books.
pub(super) const USAGE_FILE_WAIT: Duration = Duration::from_secs(3);

impl Turn {
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
            begun: Begun::NotYet,
            unseen: Since::default(),
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

    /// Returns what is known of the cost. Tokens are counted, and priced by the list.
    pub(super) fn cost(&self) -> Cost {
        let free = Cost::Reported(Micros::ZERO);
        let is_empty = self.thread_usage.has_open_file() && self.thread_usage.is_empty();
        let turned_away =
            matches!(self.abort_reason, Some(AbortReason::LoggedOut(_) | AbortReason::Limited(_)));
        let is_refused = !self.request_broke_off && (turned_away || self.was_refused());
        match (&self.result, self.begun) {
            (_, Begun::NotYet) => free,
            // The provider served none of the requests. One that broke off, or that a gateway failed, may
            // have been answered in part, also if the client tried it again and only that was refused.
            (Some(Conclusion::Failed { .. }) | None, _) if is_empty && is_refused => free,
            // The books may not have got further than the turn before.
            (None, _) if self.thread_usage.may_be_behind() => Cost::Unknown,
            (Some(Conclusion::Completed), _) if self.thread_usage.is_empty() => {
                self.reported_cost().map_or(Cost::Unknown, Cost::Estimated)
            }
            (Some(Conclusion::Failed { .. }) | None, _) if self.thread_usage.is_empty() => {
                Cost::Unknown
            }
            (Some(Conclusion::Completed), _) => {
                self.thread_usage.known_cost(Ending::Reported).cost()
            }
            (Some(Conclusion::Failed { .. }) | None, _) if is_refused => {
                self.thread_usage.known_cost(Ending::Reported).cost()
            }
            (Some(Conclusion::Failed { .. }) | None, _) => {
                self.thread_usage.known_cost(Ending::Interrupted).cost()
            }
        }
    }

    /// Whether the turn failed because no model was to work on its last request.
    fn was_refused(&self) -> bool {
        match &self.result {
            Some(Conclusion::Failed { message }) => {
                ErrorClass::is_refusal(self.thread_usage.problem(), message)
            }
            Some(Conclusion::Completed) | None => false,
        }
    }

    /// Whether the client may have asked the model.
    pub(super) fn may_have_asked(&self) -> bool {
        self.begun == Begun::Already
    }

    /// What the stream says, where the books say nothing.
    fn reported_cost(&self) -> Option<Micros> {
        let model = self.opened_model.as_ref().filter(|_| self.thread_usage.is_empty())?;
        self.thread_usage.price(model, self.reported_usage.as_ref()?)
    }

    /// Whether there is a share to keep, and nobody knows how much of it is left.
    pub(super) fn is_spending_unknown(&self) -> bool {
        let is_over = self.result.is_some()
            || !self.thread_usage.has_open_file()
            || self.thread_usage.lacks_tokens();
        let is_known = self.cost() != Cost::Unknown && self.thread_usage.is_priced();
        self.cap.is_some() && is_over && !is_known
    }

    fn apply_line(&mut self, line: Line) -> Result<Vec<TranscriptItem>, UnknownLine> {
        match line {
            Line::Thread(id) => self.note_thread(&id),
            Line::Begins => self.begun = Begun::Already,
            Line::Doing(item) => return Ok(self.item_started(&item)),
            Line::Done(item) => return Ok(self.item_completed(item)),
            Line::Completed(usage) => {
                self.begun = Begun::Already;
                self.reported_usage = usage;
                self.result = Some(Conclusion::Completed);
            }
            Line::Failed(message) => {
                let said = TranscriptItem::Final { by: Speaker::Client, text: message.clone() };
                self.result = Some(Conclusion::Failed { message });
                return Ok(vec![said]);
            }
            Line::AbortReason(message) => return Ok(self.note_error(&message)),
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

    /// The thread that the client names will be an argument of the next client.
    fn note_thread(&mut self, id: &str) {
        if !is_safe_id(id) {
            self.health
                .warnings
                .add_message("the client names a thread in a way that cannot be used");
            return;
        }
        let id = SessionId::new(id);
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
        self.begun = Begun::Already;
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
        if !matches!(item, Item::Note(_)) {
            (self.has_spoken, self.is_retrying) = (true, false);
            self.begun = Begun::Already;
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

    /// The agents that it starts are paid with the same money.
    fn add_agent_threads(&mut self, item: &Item) {
        if let Item::Agents { threads, .. } = item {
            let threads = threads.iter().filter(|_| self.session.is_some());
            threads.for_each(|thread| self.thread_usage.add_thread(thread));
        }
    }

    /// Not in the words of a rule: no list would allow it.
    fn note_denial(&mut self, call: String) -> Vec<TranscriptItem> {
        const MOST: usize = 1000;
        if self.denied.len() < MOST {
            self.denied.push(call.clone());
        }
        vec![TranscriptItem::Denied { tool: call }]
    }

    fn note_error(&mut self, message: &str) -> Vec<TranscriptItem> {
        let why = shorten(message);
        self.request_broke_off |= Retry::follows_a_break(message);
        match Retry::from_notice(message) {
            // What it fails with is told again when it does.
            None => return Vec::new(),
            Some(Retry::Useful) => self.is_retrying = true,
            Some(Retry::LoggedOut) => self.abort_reason = Some(AbortReason::LoggedOut(why.clone())),
            Some(Retry::Limited) => self.abort_reason = Some(AbortReason::Limited(why.clone())),
        }
        vec![TranscriptItem::Retries { why }]
    }
}

impl TurnReader for Turn {
    fn health(&mut self) -> &mut StreamHealth {
        &mut self.health
    }

    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine> {
        self.apply_line(line::read(line))
    }

    /// The unread part may have been the start of the turn.
    fn note_unread_output(&mut self) {
        self.begun = Begun::Already;
    }

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

    /// One that does not know its thread has spent nothing.
    fn successor(&self) -> Self {
        Self::new(self.thread_usage.for_next_client(), self.cap, self.form)
    }

    fn before_start(&mut self, step: &SessionStep, request: &Request) -> Result<(), TurnFailure> {
        let prior_turns = prior_turns_file(&request.started);
        let closed =
            self.thread_usage.record_prior_turns(step.required_session().map(SessionId::as_str));
        closed.map_err(|error| unwritable_file(&prior_turns, &error))?;
        if request.schema.is_some() {
            self.form = Form::Json;
        }
        if let SessionStep::Open(_) = step {
            self.opened_model.clone_from(&request.model);
        }
        if let SessionStep::Resume(id) = step {
            self.thread_usage.add_thread(id.as_str());
            self.resumes = Some(id.clone());
            let told = |text: &String| !self.thread_usage.was_instructed(id.as_str(), text);
            if request.extras.append_system_prompt.as_ref().is_some_and(told) {
                let why = "the client keeps the system prompt that a thread was opened with";
                self.health
                    .warnings
                    .add_message(format!("append_system_prompt was not heard: {why}"));
            }
        }
        Ok(())
    }

    fn before_end(&mut self) {
        self.poll();
        // A share that is used up is charged in full. For every other reason to end the client, the
        // request counts: no matter how often a turn is stopped and resumed, none is free.
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
        let is_watched = self.session.is_some() || self.begun == Begun::Already;
        self.cap.filter(|_| is_watched).map(|_| USAGE_POLL_INTERVAL)
    }

    fn poll(&mut self) {
        self.thread_usage.read_new();
        if !self.thread_usage.is_empty() && !self.thread_usage.may_be_behind() {
            self.begun = Begun::Already;
        }
        self.asking.note(self.thread_usage.has_open_request());
        self.find_usage_file();
        if self.thread_usage.may_be_behind() {
            return;
        }
        // Also of a turn that is done: else a run of short ones would never meet its cap.
        let unpriced = self.cap.and_then(|_| self.thread_usage.unpriced()).map(str::to_owned);
        if let Some(model) = unpriced.filter(|_| self.abort_reason.is_none()) {
            self.abort_reason = Some(AbortReason::Unpriced(model));
        }
        let used_up = self
            .cap
            .is_some_and(|cap| !self.thread_usage.is_empty() && self.thread_usage.spent() >= cap);
        self.finishing.note(self.thread_usage.is_finishing());
        let follows = !self.thread_usage.is_finishing() || self.finishing.has_lasted(SETTLE_TIME);
        if used_up && follows && self.abort_reason.is_none() {
            self.abort_reason = Some(AbortReason::Capped);
        }
    }
}

impl Turn {
    /// What cannot be seen cannot be kept below a share.
    fn find_usage_file(&mut self) {
        let is_watched = self.cap.is_some() && self.begun == Begun::Already;
        self.unseen.note(is_watched && !self.thread_usage.has_open_file());
        self.uncounted.note(is_watched && self.thread_usage.lacks_tokens());
        let is_unseen =
            self.unseen.has_lasted(USAGE_FILE_WAIT) || self.uncounted.has_lasted(SETTLE_TIME);
        if is_unseen && self.abort_reason.is_none() {
            self.abort_reason = Some(AbortReason::UnknownSpending);
        }
    }
}

/// A command as a tool.
fn shell(command: &str) -> String {
    format!("Bash({})", line(command))
}

/// A command as it was meant: the client has a shell run it.
fn line(command: &str) -> String {
    const LENGTH: usize = 2000;
    let line = command.split_once(" -lc ").map_or(command, |(_, line)| line).trim();
    let quoted = |quote| line.strip_prefix(quote).and_then(|line| line.strip_suffix(quote));
    let line = quoted('\'').or_else(|| quoted('"')).unwrap_or(line);
    let cut = line.floor_char_boundary(LENGTH);
    let dots = if cut < line.len() { "…" } else { "" };
    format!("{}{dots}", &line[..cut])
}

#[cfg(test)]
mod tests;
