//! What the lines of a turn add up to.
//!
//! A fold: the same for a client that runs, one that is adopted, and a transcript that nobody writes
//! any more. There may be several rounds, each with a result: the last one counts. Only the last
//! message is kept, because only that can be the answer.

use std::collections::BTreeSet;

use raymond_core::ids::SessionId;
use raymond_core::time::Timestamp;

use super::api_error::ApiError;
use super::error_class::ErrorClass;
use super::line::{self, Line};
use super::spending::Spending;
use super::tools;
use super::transcript_parser;
use super::wire::{
    Assistant, Compaction, Conclusion, Denial, Init, Message, Retry, Task, Tokens, User,
};
use crate::headless::{
    Speaker, Stage, StreamHealth, TranscriptItem, TurnReader, UnknownLine, is_safe_id,
};

/// A turn, as far as it was heard.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) spending: Spending,
    /// The session that it opens when the one that was planned is taken.
    spare: Option<SessionId>,
    /// The session that the client names.
    session: Option<SessionId>,
    /// The model that spoke last, or that the client named.
    pub(super) model: Option<String>,
    /// The last result that counts.
    pub(super) result: Option<RoundResult>,
    /// The calls that were denied, in order, as far as they are listed.
    pub(super) denied: Vec<Denial>,
    /// When the usage limit is lifted.
    pub(super) limited_until: Option<Timestamp>,
    /// How often the client said that it knows no such session.
    pub(super) lost: usize,
    pub(super) health: StreamHealth,
    /// The ids of calls that are listed.
    denied_calls: BTreeSet<String>,
    last: JoinedMessage,
    error: ApiError,
    login: Option<String>,
    /// Those that run in the background.
    tasks: BTreeSet<String>,
    stage: Stage,
    spoke: bool,
}

/// A round that ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundResult {
    /// How the client concludes it.
    pub(super) conclusion: Conclusion,
    /// Its last message, when that calls no tool.
    pub(super) message: Option<String>,
    /// What went wrong in it.
    pub(super) api_error: ApiError,
}

/// A message, joined from its lines.
#[derive(Debug, Default)]
struct JoinedMessage {
    id: String,
    text: String,
    calls_tools: bool,
}

/// The model of messages that the client makes up itself.
const SYNTHETIC: &str = "<synthetic>";

impl TurnReader for Turn {
    fn health(&mut self) -> &mut StreamHealth {
        &mut self.health
    }

    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine> {
        if !line.trim().is_empty() {
            self.spending.note_line();
        }
        let read = line::read(line);
        if matches!(read, Line::NotJson) && is_damaged(line) {
            self.spending.note_unread_output();
        }
        self.apply_line(read)
    }

    fn note_unread_output(&mut self) {
        self.spending.note_unread_output();
    }

    fn stage(&self) -> Stage {
        match self.stage {
            Stage::Working => Stage::Working,
            Stage::Background | Stage::Done if self.tasks.is_empty() => Stage::Done,
            Stage::Background | Stage::Done => Stage::Background,
        }
    }

    fn is_complete(&self) -> bool {
        self.result.as_ref().is_some_and(|ended| !ended.was_interrupted())
    }

    fn has_progressed(&self) -> bool {
        self.spoke
    }

    fn should_abort(&self) -> bool {
        self.login.is_some()
    }

    fn session(&self) -> Option<SessionId> {
        self.session.clone().filter(|named| self.spare.as_ref() == Some(named))
    }

    fn successor(&self) -> Self {
        Self { spending: self.spending.clone(), ..Self::with_spare_session(self.spare.clone()) }
    }
}

impl Turn {
    /// A turn of which nothing was heard yet, and the session that it has to spare.
    pub(super) fn with_spare_session(session: Option<SessionId>) -> Self {
        Self { spare: session, ..Self::default() }
    }

    /// The session that the client names, whether it was told to write that or not.
    pub(super) const fn announced_session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// What the client said when it was found to be logged out.
    pub(super) fn login(&self) -> Option<&str> {
        self.login.as_deref()
    }

    fn apply_line(&mut self, line: Line) -> Result<Vec<TranscriptItem>, UnknownLine> {
        match line {
            Line::Init(init) => self.note_round_start(init),
            Line::Assistant(line) => return Ok(self.read_message(line)),
            Line::User(user) => return Ok(self.read_tool_results(user)),
            Line::Retry(retry) => return Ok(vec![self.note_retry(&retry)]),
            Line::Refusal(refusal) => {
                self.error.refusal = Some(refusal);
            }
            Line::RateLimit(limit) => self.limited_until = limit.info.limit_ends_at(),
            Line::TaskStarted(task) => self.note_task_start(task),
            Line::TaskUpdated(task) => self.note_task_change(task),
            Line::TaskEnded(task) => self.note_task_end(&task),
            Line::Tasks(all) => {
                self.tasks.clear();
                all.tasks.into_iter().for_each(|task| self.note_task_running(task));
            }
            Line::Compacted(compaction) => self.note_compaction(&compaction),
            Line::Result(conclusion) => return Ok(self.conclude(*conclusion)),
            Line::Ignored => {}
            Line::NotJson => return Err(UnknownLine::NotJson),
            Line::Unknown { kind } => {
                // A known type without the shape that it should have.
                if matches!(kind.as_str(), "assistant" | "result" | "system") {
                    self.spending.note_unread_output();
                }
                return Err(UnknownLine::Unknown(kind));
            }
        }
        Ok(Vec::new())
    }

    fn read_tool_results(&mut self, user: User) -> Vec<TranscriptItem> {
        self.health.unread = false;
        let call = user.message.content.iter().find_map(|answer| answer.call.clone());
        if let Some(call) = call {
            self.spending.agent_finished(&call, &user.totals, self.model.as_deref());
        }
        let errors = user.message.content.into_iter().filter(|answer| answer.kind == "tool_result");
        errors
            .filter_map(|answer| answer.error)
            .map(|why| TranscriptItem::ToolFailed { why })
            .collect()
    }

    fn note_round_start(&mut self, init: Init) {
        self.spending.note_request();
        self.stage = Stage::Working;
        self.health.unread = false;
        // Another client follows one that was cut off, and speaks for itself.
        self.result = self.result.take().filter(|ended| !ended.was_interrupted());
        self.note_session(init.session_id);
        self.model = init.model.or_else(|| self.model.take());
        for server in init.mcp_servers {
            if matches!(server.status.as_str(), "failed" | "needs-auth") {
                let (name, status) = (server.name, server.status);
                self.health
                    .warnings
                    .add_message(format!("the MCP server {name} is not there: {status}"));
            }
        }
    }

    /// The client does not stream the request that sums a conversation up.
    fn note_compaction(&mut self, compaction: &Compaction) {
        let usage = Tokens { input: compaction.about.pre_tokens, ..Tokens::default() };
        let model = self.model.clone();
        self.spending.add_message(&Message { model, usage, ..Message::default() }, None);
    }

    /// What the client names is told to people, and may be an argument of the next client.
    fn note_session(&mut self, session: Option<String>) {
        match session {
            None => {}
            Some(id) if is_safe_id(&id) => self.session = Some(SessionId::new(id)),
            Some(_) => {
                self.health
                    .warnings
                    .add_message("the client names a session in a way that cannot be used");
            }
        }
    }

    fn read_message(&mut self, line: Assistant) -> Vec<TranscriptItem> {
        let own = line.parent_tool_use_id.is_none();
        let is_synthetic = line.message.model.as_deref() == Some(SYNTHETIC);
        if !is_synthetic {
            self.spending.add_message(&line.message, line.parent_tool_use_id.clone());
        }
        if line.error.is_some() || is_synthetic {
            if own {
                self.error.emit(&line);
            }
            let texts = line.message.content.into_iter().map(|block| block.text);
            let texts = texts.filter(|text| !text.is_empty());
            return texts.map(|text| TranscriptItem::Text { by: Speaker::Client, text }).collect();
        }
        let message = line.message;
        (self.spoke, self.health.unread) = (true, false);
        let mut said = Vec::new();
        if own {
            if self.last.id != message.id {
                self.last = JoinedMessage { id: message.id, ..JoinedMessage::default() };
                self.error = ApiError::default();
            }
            self.model = message.model.or_else(|| self.model.take());
        }
        for block in message.content {
            match block.kind.as_str() {
                "tool_use" => {
                    self.last.calls_tools |= own;
                    said.push(TranscriptItem::Tool {
                        name: tools::display_call(&block.name, &block.input),
                    });
                }
                "text" => {
                    let by = if own { Speaker::Agent } else { Speaker::Subagent };
                    if own {
                        self.last.text.push_str(&block.text);
                    }
                    said.push(TranscriptItem::Text { by, text: block.text });
                }
                _ => {}
            }
        }
        said
    }

    fn note_retry(&mut self, retry: &Retry) -> TranscriptItem {
        let kind = retry.error.as_deref().unwrap_or("no answer");
        let status = retry.error_status.map(|status| format!(" ({status})")).unwrap_or_default();
        let why = format!("{kind}{status}, retry {} of {}", retry.attempt, retry.max_retries);
        match ErrorClass::of(retry.error_status, retry.error.as_deref()) {
            ErrorClass::Auth => {
                self.spending.note_rejection();
                self.login = Some(format!("{kind}{status}"));
            }
            ErrorClass::Quota => self.error.note_retry(retry),
            ErrorClass::Transient | ErrorClass::Task => {}
        }
        TranscriptItem::Retries { why }
    }

    fn note_task_start(&mut self, task: Task) {
        // A shell asks no model.
        if task.kind != "local_bash" {
            let call = task.call.clone().unwrap_or_else(|| task.id.clone());
            self.spending.agent_started(call, task.id.clone());
        }
        if task.is_backgrounded != Some(false) {
            self.note_task_running(task);
        }
    }

    fn note_task_change(&mut self, task: Task) {
        match task.patch.status.as_deref() {
            Some("completed" | "failed" | "killed") => self.note_task_end(&task),
            _ if task.patch.is_backgrounded == Some(true) => self.note_task_running(task),
            _ => {}
        }
    }

    fn note_task_running(&mut self, task: Task) {
        if !task.ambient {
            self.tasks.insert(task.id);
        }
    }

    fn note_task_end(&mut self, task: &Task) {
        self.tasks.remove(&task.id);
    }

    /// Every result tells of all calls so far that were denied: those that are new.
    fn note_denial(&mut self, denial: &Denial) -> Option<TranscriptItem> {
        const MOST: usize = 1000;
        let is_listed = denial.call.as_ref().is_some_and(|id| self.denied_calls.contains(id));
        if denial.tool.is_empty() || is_listed {
            return None;
        }
        if self.denied.len() == MOST {
            self.health
                .warnings
                .add_message(format!("more than {MOST} calls were denied; the rest is not listed"));
            return None;
        }
        self.denied_calls.extend(denial.call.clone());
        self.denied.push(denial.clone());
        Some(TranscriptItem::Denied { tool: tools::permission_rule(&denial.tool, &denial.input) })
    }

    fn conclude(&mut self, conclusion: Conclusion) -> Vec<TranscriptItem> {
        self.spending.note_result(&conclusion, |task| self.tasks.contains(task));
        self.stage = Stage::Done;
        self.health.unread = false;
        let denials = conclusion.permission_denials.iter();
        let mut said: Vec<TranscriptItem> =
            denials.filter_map(|denial| self.note_denial(denial)).collect();
        let last = std::mem::take(&mut self.last);
        if self.error.kind.is_none() {
            said.extend(transcript_parser::unstreamed_items(&conclusion, &last.text));
        }
        let message = Some(last.text).filter(|text| !text.is_empty() && !last.calls_tools);
        let api_error = std::mem::take(&mut self.error);
        let ended = RoundResult { conclusion, message, api_error };
        if ended.has_lost_session() {
            // The session that it names is none that it opened.
            self.lost += 1;
        } else {
            self.note_session(ended.conclusion.session_id.clone());
        }
        // A later round that was cut off takes nothing from an answer that was complete.
        if !ended.was_interrupted() || self.result.as_ref().is_none_or(RoundResult::was_interrupted)
        {
            self.result = Some(ended);
        }
        said
    }
}

/// Whether a line that is not JSON may have been a message: a part of one, or bytes that a disk lost.
/// Other text, such as a log line, was none.
fn is_damaged(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('{')
        || line.ends_with('}')
        || line.contains(['\0', char::REPLACEMENT_CHARACTER])
}

impl RoundResult {
    /// Whether the client stopped in the middle.
    pub(super) fn was_interrupted(&self) -> bool {
        self.conclusion.was_interrupted()
    }

    /// Whether the client does not know the session.
    pub(super) fn has_lost_session(&self) -> bool {
        self.conclusion.has_lost_session()
    }
}

#[cfg(test)]
mod tests;
