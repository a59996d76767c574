//! The state of a turn of Claude Code, folded from its lines.
//!
//! The same fold serves a running client, an adopted client and a finished transcript. A turn may
//! have several rounds, each with a result; the last result counts. Only the last message is kept,
//! because only that message can be the answer. `outcome` turns this state into an answer.

use std::collections::BTreeSet;

use raymond_core::ids::SessionId;
use raymond_core::time::Timestamp;

use super::api_error::ApiError;
use super::error_class::ErrorClass;
use super::final_texts::unstreamed_items;
use super::line::{self, Line};
use super::spending::Spending;
use super::tools;
use super::wire::{
    Assistant, Compaction, Conclusion, Denial, Init, Message, Retry, Task, Tokens, User,
};
use crate::headless::{
    Speaker, Stage, StreamHealth, TranscriptItem, TurnReader, UnknownLine, is_safe_id,
};

/// The state of a turn.
#[derive(Debug, Default)]
pub(super) struct ClaudeTurn {
    pub(super) spending: Spending,
    /// The session to open if the planned id is taken.
    spare: Option<SessionId>,
    /// The session that the client reports.
    session: Option<SessionId>,
    /// The model of the last message, or the model that the client reported.
    pub(super) model: Option<String>,
    /// The last result that counts.
    pub(super) result: Option<RoundResult>,
    /// The denied calls in order, up to a limit.
    pub(super) denied: Vec<Denial>,
    /// When the usage limit ends.
    pub(super) limited_until: Option<Timestamp>,
    /// How often a client reported an unknown session.
    pub(super) lost: usize,
    pub(super) health: StreamHealth,
    /// The ids of the listed denied calls.
    denied_calls: BTreeSet<String>,
    last: JoinedMessage,
    error: ApiError,
    login: Option<String>,
    /// The tasks that run in the background.
    tasks: BTreeSet<String>,
    stage: Stage,
    spoke: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundResult {
    pub(super) conclusion: Conclusion,
    /// The last message of the round, if it calls no tool.
    pub(super) message: Option<String>,
    /// The API error of the round.
    pub(super) api_error: ApiError,
}

/// A message, joined from its lines.
#[derive(Debug, Default)]
struct JoinedMessage {
    id: String,
    text: String,
    calls_tools: bool,
}

/// The model name of messages that the client writes itself.
const SYNTHETIC: &str = "<synthetic>";

impl TurnReader for ClaudeTurn {
    fn health(&mut self) -> &mut StreamHealth {
        &mut self.health
    }

    fn read(&mut self, line: &str) -> Result<Vec<TranscriptItem>, UnknownLine> {
        if !line.trim().is_empty() {
            self.spending.note_line();
        }
        let read = line::read(line);
        // A damaged line may have been a message, which would cost something.
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

    // The planned session is known to the caller; only the spare one is news.
    fn session(&self) -> Option<SessionId> {
        self.session.clone().filter(|named| self.spare.as_ref() == Some(named))
    }

    // The spending stays: the failed client belongs to the same turn and the same budget share.
    fn successor(&self) -> Self {
        Self { spending: self.spending.clone(), ..Self::with_spare_session(self.spare.clone()) }
    }
}

impl ClaudeTurn {
    /// Creates a turn without output.
    pub(super) fn with_spare_session(session: Option<SessionId>) -> Self {
        Self { spare: session, ..Self::default() }
    }

    /// Returns the session that the client reports, even if it is not the planned one.
    pub(super) const fn announced_session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Returns the client's message about a missing login.
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
                // A known type without its fields: it may have been a message or a result.
                if matches!(kind.as_str(), "assistant" | "result" | "system") {
                    self.spending.note_unread_output();
                }
                return Err(UnknownLine::Unknown(kind));
            }
        }
        Ok(Vec::new())
    }

    fn read_tool_results(&mut self, user: User) -> Vec<TranscriptItem> {
        // A later line proves that the unreadable line was not the last one.
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
        // A new client follows after an interrupted one, so the interrupted result no longer
        // counts.
        self.result = self.result.take().filter(|ended| !ended.was_interrupted());
        self.note_session(init.session_id);
        self.model = init.model.or_else(|| self.model.take());
        for server in init.mcp_servers {
            if matches!(server.status.as_str(), "failed" | "needs-auth") {
                let (name, status) = (server.name, server.status);
                self.health
                    .warnings
                    .add_message(format!("the MCP server {name} is not available: {status}"));
            }
        }
    }

    /// Charges the request for the summary, which the client does not stream.
    fn note_compaction(&mut self, compaction: &Compaction) {
        let usage = Tokens { input: compaction.about.pre_tokens, ..Tokens::default() };
        let model = self.model.clone();
        self.spending.add_message(&Message { model, usage, ..Message::default() }, None);
    }

    fn note_session(&mut self, session: Option<String>) {
        // Its id is displayed and may become an argument of the next client, so unsafe ids are
        // dropped.
        match session {
            None => {}
            Some(id) if is_safe_id(&id) => self.session = Some(SessionId::new(id)),
            Some(_) => {
                self.health.warnings.add_message("ignored an invalid session id from the client");
            }
        }
    }

    fn read_message(&mut self, line: Assistant) -> Vec<TranscriptItem> {
        // Messages of subagents carry the id of the tool call that started them.
        let own = line.parent_tool_use_id.is_none();
        let is_synthetic = line.message.model.as_deref() == Some(SYNTHETIC);
        if !is_synthetic {
            self.spending.add_message(&line.message, line.parent_tool_use_id.clone());
        }
        if line.error.is_some() || is_synthetic {
            if own {
                self.error.note_error(&line);
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
                // A new message means that the client recovered from the earlier error.
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
        // A shell sends no requests to a model.
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

    /// Adds a denied call.
    fn note_denial(&mut self, denial: &Denial) -> Option<TranscriptItem> {
        // Every result lists all denied calls so far, so only new ones are added.
        // A bound for memory and journal; a client in a loop can be denied without end.
        const MAX_DENIED: usize = 1000;
        let is_listed = denial.call.as_ref().is_some_and(|id| self.denied_calls.contains(id));
        if denial.tool.is_empty() || is_listed {
            return None;
        }
        if self.denied.len() == MAX_DENIED {
            self.health.warnings.add_message(format!(
                "more than {MAX_DENIED} calls were denied; the rest is not listed"
            ));
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
            said.extend(unstreamed_items(&conclusion, &last.text));
        }
        let message = Some(last.text).filter(|text| !text.is_empty() && !last.calls_tools);
        let api_error = std::mem::take(&mut self.error);
        let ended = RoundResult { conclusion, message, api_error };
        if ended.has_lost_session() {
            // The reported session is not one that this client opened.
            self.lost += 1;
        } else {
            self.note_session(ended.conclusion.session_id.clone());
        }
        // A later interrupted round does not invalidate an answer that was complete.
        if !ended.was_interrupted() || self.result.as_ref().is_none_or(RoundResult::was_interrupted)
        {
            self.result = Some(ended);
        }
        said
    }
}

/// Whether a line that is not JSON may have been a message: a part of one, or bytes that the disk
/// lost.
fn is_damaged(line: &str) -> bool {
    // Other text, such as a log line, was not a message.
    let line = line.trim();
    line.starts_with('{')
        || line.ends_with('}')
        || line.contains(['\0', char::REPLACEMENT_CHARACTER])
}

impl RoundResult {
    pub(super) fn was_interrupted(&self) -> bool {
        self.conclusion.was_interrupted()
    }

    pub(super) fn has_lost_session(&self) -> bool {
        self.conclusion.has_lost_session()
    }
}

#[cfg(test)]
mod tests;
