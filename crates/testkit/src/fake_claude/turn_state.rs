//! The state of an invocation. The script runner changes it; a signal may end the invocation at any
//! point.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::directive::CatchableSignal;
use super::invocation::{Message, Role};
use super::sessions::{Session, Sessions, Usage};
use super::stream::{self, Block, Denied};

/// A turn state that the signal handler can also reach.
#[derive(Clone, Default)]
pub(super) struct SharedTurnState(Arc<Mutex<TurnState>>);

impl SharedTurnState {
    /// Locks the state. Callers release it before they wait, so that a signal is never blocked.
    pub(super) fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(super) struct TurnState {
    pub(super) sessions: Option<Sessions>,
    pub(super) session: Option<Session>,
    pub(super) model: String,
    pub(super) mode: String,
    pub(super) cap: Option<f64>,
    pub(super) tokens: (u64, u64),
    pub(super) ignored: Vec<CatchableSignal>,
    pub(super) children: Vec<Child>,
    /// The session lock, held for the life of the process.
    pub(super) hold: Option<File>,
    cost: f64,
    since: BTreeMap<String, Usage>,
    denials: Vec<Value>,
    messages: u32,
    text: String,
    results: u32,
    task: Option<String>,
}

/// The outcome that a result line reports.
pub(super) enum Ending {
    Completed,
    ApiError { status: Option<u16>, text: String },
    Failed { subtype: &'static str, reason: &'static str, errors: Vec<String> },
}

/// Whether the client's own cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapState {
    Below,
    Reached,
}

impl TurnState {
    pub(super) fn id(&self) -> &str {
        self.session.as_ref().map_or("", |session| session.id.as_str())
    }

    pub(super) fn init(&self) {
        stream::emit(&stream::init(self.id(), &self.model, &self.mode));
    }

    pub(super) fn system(&self, subtype: &str, more: Value) {
        stream::emit(&stream::system(subtype, self.id(), more));
    }

    /// Starts a new message.
    pub(super) fn say(&mut self, text: &str) {
        self.messages += 1;
        self.text.clear();
        if let Some(session) = &mut self.session {
            session.messages.push(Message { role: Role::Assistant, text: String::new() });
        }
        self.more(text);
    }

    /// Adds a block to the last message.
    pub(super) fn more(&mut self, text: &str) {
        self.text.push_str(text);
        let whole = self.text.clone();
        if let Some(last) = self.session.as_mut().and_then(|s| s.messages.last_mut()) {
            last.text = whole;
        }
        // The session before the stream: a client that is killed in between has said more than it
        // printed, as the real program may.
        self.save();
        stream::emit(&self.block(json!({ "type": "text", "text": text })));
    }

    fn block(&self, content: Value) -> Value {
        stream::assistant(&Block {
            session: self.id(),
            model: &self.model,
            message: &format!("msg_{}_{}", std::process::id(), self.messages),
            content,
            tokens: self.tokens,
        })
    }

    /// Prints an API error as a message of the client.
    pub(super) fn error(&mut self, text: &str, kind: &str) {
        self.messages += 1;
        let mut line = self.block(json!({ "type": "text", "text": text }));
        line["error"] = json!(kind);
        // No model wrote this message, so it must not be priced.
        line["message"]["model"] = json!("<synthetic>");
        stream::emit(&line);
    }

    /// Prints a tool call and its output.
    pub(super) fn tool(&mut self, name: &str, input: &str, output: &str, denied: Denied) {
        self.messages += 1;
        let call = format!("toolu_{}_{}", std::process::id(), self.messages);
        let input = stream::tool_input(name, input);
        let content = json!({ "type": "tool_use", "id": call, "name": name, "input": input });
        stream::emit(&self.block(content));
        if denied == Denied::Yes {
            self.system("permission_denied", json!({ "tool_name": name, "tool_use_id": call }));
            let denial = json!({ "tool_name": name, "tool_use_id": call, "tool_input": input });
            self.denials.push(denial);
        }
        stream::emit(&stream::tool_result(self.id(), &call, output, denied));
        // A result reports only the text after the last tool call.
        self.text.clear();
    }

    /// Adds to the cost. Like the real program, it spends first and checks the cap afterwards.
    pub(super) fn spend(&mut self, dollars: f64) -> CapState {
        let (input_tokens, output_tokens) = self.tokens;
        let spent = Usage { input_tokens, output_tokens, cost_usd: dollars };
        let model = self.model.clone();
        add(self.since.entry(model.clone()).or_default(), spent);
        if let Some(session) = &mut self.session {
            add(session.usage.entry(model).or_default(), spent);
        }
        self.cost += dollars;
        self.save();
        match self.cap {
            Some(cap) if self.cost >= cap => CapState::Reached,
            _ => CapState::Below,
        }
    }

    /// Returns the amount below the cap.
    pub(super) fn left(&self) -> f64 {
        self.cap.map_or(0.0, |cap| cap - self.cost)
    }

    /// Starts a background task, which outlives the message.
    pub(super) fn start_task(&mut self) {
        let task = format!("task_{}", self.results);
        let call = format!("toolu_{task}");
        self.system(
            "task_started",
            json!({
                "task_id": task, "tool_use_id": call, "task_type": "local_bash", "description": "a build",
                "is_backgrounded": true,
            }),
        );
        let tasks = json!([{ "task_id": task, "description": "a build" }]);
        self.system("background_tasks_changed", json!({ "tasks": tasks }));
        self.task = Some(task);
    }

    /// Ends the background task; later lines belong to a second result.
    pub(super) fn end_task(&mut self) {
        let task = self.task.clone().unwrap_or_default();
        let patch = json!({ "status": "completed" });
        self.system("task_updated", json!({ "task_id": task, "patch": patch }));
        self.system(
            "task_notification",
            json!({ "task_id": task, "status": "completed", "summary": "a build" }),
        );
        self.system("background_tasks_changed", json!({ "tasks": [] }));
        self.init();
        self.text.clear();
    }

    /// Builds the result line, and restarts the cost count for the next result.
    pub(super) fn result(&mut self, ending: Ending) -> Value {
        let total = self.session.as_ref().map(|s| s.usage.clone()).unwrap_or_default();
        let cost = total.values().fold(0.0, |sum, usage| sum + usage.cost_usd);
        let mut line = json!({
            "type": "result",
            "session_id": self.id(),
            "duration_ms": 12,
            "duration_api_ms": 10,
            "num_turns": self.messages,
            // Over all invocations of the session, as in the real program. Raymond must charge only
            // the part since the last result.
            "total_cost_usd": cost,
            "usage": { "input_tokens": self.tokens.0, "output_tokens": self.tokens.1 },
            "modelUsage": total,
            "model_usage_since_last_result": std::mem::take(&mut self.since),
            "permission_denials": self.denials,
            "api_error_status": null,
            "result_index": self.results,
            "uuid": stream::uuid(),
        });
        if self.results > 0 {
            line["origin"] = json!({ "kind": "task-notification" });
        }
        self.results += 1;
        ending.write(&mut line, &self.text);
        line
    }

    /// Empties the stored session, and stops storing it.
    pub(super) fn forget(&mut self) {
        // Taken, so that later messages are not stored either.
        if let Some(sessions) = self.sessions.take() {
            sessions.empty(self.id());
        }
    }

    /// Switches to the session that should have been branched.
    pub(super) fn stay(&mut self, from: Option<&str>) {
        if let (Some(session), Some(from)) = (&mut self.session, from) {
            from.clone_into(&mut session.id);
        }
        self.init();
    }

    pub(super) fn save(&self) {
        if let (Some(sessions), Some(session)) = (&self.sessions, &self.session) {
            sessions.save(session).ok();
        }
    }
}

impl Ending {
    fn write(self, line: &mut Value, text: &str) {
        let (subtype, reason) = match self {
            Self::Completed => {
                line["is_error"] = json!(false);
                line["result"] = json!(text);
                ("success", "completed")
            }
            Self::ApiError { status, text } => {
                line["is_error"] = json!(true);
                line["api_error_status"] = json!(status);
                line["result"] = json!(text);
                ("success", "api_error")
            }
            Self::Failed { subtype, reason, errors } => {
                line["is_error"] = json!(true);
                line["errors"] = json!(errors);
                (subtype, reason)
            }
        };
        line["subtype"] = json!(subtype);
        line["terminal_reason"] = json!(reason);
    }
}

fn add(to: &mut Usage, more: Usage) {
    to.input_tokens += more.input_tokens;
    to.output_tokens += more.output_tokens;
    to.cost_usd += more.cost_usd;
}
