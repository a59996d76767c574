//! Runs the directives of a script, one by one, and returns the exit code.
//!
//! A directive changes the shared turn state and prints lines. A signal may end the invocation
//! between any two of them, so every wait happens without the lock of the state.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use super::arguments::Arguments;
use super::child_processes;
use super::directive::{Directive, Hang, kind_of};
use super::invocation::Invocation;
use super::sessions::Sessions;
use super::startup::{Refusal, prepare, print_error};
use super::stream::{self, Denied};
use super::turn_state::{CapState, Ending, SharedTurnState, TurnState};

/// The cost of an invocation without `cost`, in US dollars.
const DEFAULT_COST_USD: f64 = 0.01;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs one invocation, and returns its exit code.
pub(super) fn run(words: &[String], state: &SharedTurnState) -> u8 {
    let Some(sessions) = Sessions::from_environment() else {
        return print_error("fake-claude needs CLAUDE_CONFIG_DIR or HOME");
    };
    let mut invocation = Invocation::begin(words);
    let (script, arguments) = match prepare(&sessions, &mut invocation, state) {
        Ok(ready) => ready,
        Err(refusal) => {
            let (Refusal::Stderr(text) | Refusal::NoSession(text)) = &refusal;
            invocation.refused = Some(text.clone());
            // A refusal is recorded too, because tests count every start of the program.
            sessions.append(&invocation).ok();
            return refusal.end(state);
        }
    };
    // Before the script runs: a client that is killed must still be in the record.
    if let Err(error) = sessions.append(&invocation) {
        return print_error(&format!("fake-claude cannot write: {error}"));
    }
    ScriptRunner {
        state,
        sessions,
        result: ResultLine::Whole,
        after: After::Exit,
        code: None,
        paid: false,
    }
    .run(script, &arguments)
}

/// How much of the result line is printed.
enum ResultLine {
    Whole,
    Half,
    None,
}

/// The behaviour after the result line.
enum After {
    Exit,
    Hang,
}

struct ScriptRunner<'a> {
    state: &'a SharedTurnState,
    sessions: Sessions,
    result: ResultLine,
    after: After,
    code: Option<u8>,
    paid: bool,
}

/// The script has ended with this exit code.
struct Exit(u8);

impl ScriptRunner<'_> {
    fn run(mut self, script: Vec<Directive>, arguments: &Arguments) -> u8 {
        // Before the init line, because a silent client is one that has not written anything.
        if script.first() == Some(&Directive::Hang(Hang::Silent)) {
            return self.hang();
        }
        self.state.lock().init();
        for directive in script {
            if let Err(Exit(code)) = self.act(directive, arguments) {
                return code;
            }
        }
        // A forgotten `cost` line must not make a turn free, or a test of money would pass by
        // accident.
        if !self.paid
            && let Err(Exit(code)) = self.spend(DEFAULT_COST_USD)
        {
            return code;
        }
        self.end(Ending::Completed, 0).0
    }

    #[expect(clippy::too_many_lines, reason = "one flat table of all directives reads best")]
    fn act(&mut self, directive: Directive, arguments: &Arguments) -> Result<(), Exit> {
        let mut state = self.state.lock();
        match directive {
            Directive::Say(text) => state.say(&text),
            Directive::More(text) => state.more(&text),
            Directive::Pad(bytes) => state.more(&"x".repeat(bytes)),
            Directive::Usage { input, output } => state.tokens = (input, output),
            Directive::Tool { name, input } if arguments.allows(&name, &input) => {
                state.tool(&name, &input, "done", Denied::No);
            }
            Directive::Tool { name, input } | Directive::Deny { name, input } => {
                let output = "This command requires approval";
                state.tool(&name, &input, output, Denied::Yes);
            }
            Directive::ToolTag(text) => state.tool("Bash", "cat notes", &text, Denied::No),
            Directive::Line(bytes) => {
                state.tool("Bash", "cat big", &"x".repeat(bytes), Denied::No);
            }
            Directive::Background => {
                state.start_task();
                let line = state.result(Ending::Completed);
                stream::emit(&line);
            }
            Directive::Notify => state.end_task(),
            Directive::Retry(status) => state.system("api_retry", retry(status)),
            Directive::Raw(text) => stream::print(text.as_bytes()),
            Directive::Stderr(text) => drop(print_error(&text)),
            Directive::Ignore(signal) => state.ignored.push(signal),
            Directive::ChildKind(kind) => {
                // Starting a process waits for its pid file. A signal must be handled meanwhile,
                // and the handler needs this lock.
                drop(state);
                let child = child_processes::start(kind, &self.sessions.root);
                self.state.lock().children.extend(child.ok().flatten());
            }
            Directive::Half => self.result = ResultLine::Half,
            Directive::NoResult => self.result = ResultLine::None,
            Directive::Exit(code) => self.code = Some(code),
            Directive::Hang(Hang::AfterResult) => self.after = After::Hang,
            Directive::Hang(Hang::Silent | Hang::Stall) => {
                drop(state);
                return Err(Exit(self.hang()));
            }
            Directive::Cost(dollars) => {
                drop(state);
                return self.spend(dollars);
            }
            Directive::Cap => {
                let left = state.left();
                drop(state);
                return self.spend(left);
            }
            Directive::ClaimCap => {
                drop(state);
                self.paid = true;
                return Err(self.end_at_cap());
            }
            Directive::Wait(file) => {
                drop(state);
                self.wait(&file);
            }
            Directive::Flood(bytes) => {
                drop(state);
                self.flood(bytes);
            }
            Directive::Forget => state.forget(),
            Directive::Stay => state.stay(arguments.resume.as_deref()),
            Directive::Kill => {
                kill_process(getpid(), Signal::KILL).ok();
            }
            ending @ (Directive::Error { .. }
            | Directive::Refuse
            | Directive::Quota(_)
            | Directive::Fail(_)
            | Directive::MaxTurns) => {
                let ending = fail(&mut state, ending);
                drop(state);
                return Err(self.end(ending, 1));
            }
        }
        Ok(())
    }

    fn spend(&mut self, dollars: f64) -> Result<(), Exit> {
        self.paid = true;
        let cap = self.state.lock().spend(dollars);
        match cap {
            CapState::Below => Ok(()),
            CapState::Reached => Err(self.end_at_cap()),
        }
    }

    fn end_at_cap(&self) -> Exit {
        let cap = self.state.lock().cap.unwrap_or_default();
        let errors = vec![format!("Reached maximum budget (${cap})")];
        let (subtype, reason) = ("error_max_budget_usd", "max_budget");
        self.end(Ending::Failed { subtype, reason, errors }, 1)
    }

    fn end(&self, ending: Ending, code: u8) -> Exit {
        let line = self.state.lock().result(ending);
        match self.result {
            ResultLine::Whole => stream::emit(&line),
            ResultLine::Half => stream::print_half(&line),
            ResultLine::None => {}
        }
        if let After::Hang = self.after {
            self.hang();
        }
        Exit(self.code.unwrap_or(code))
    }

    /// Waits until the configuration directory is removed, which happens at the end of a test.
    fn hang(&self) -> u8 {
        while self.sessions.root.exists() {
            sleep(POLL_INTERVAL);
        }
        1
    }

    fn wait(&self, file: &str) {
        let root = &self.sessions.root;
        std::fs::write(root.join(format!("{file}.waiting")), "").ok();
        while !root.join(file).exists() && root.exists() {
            sleep(POLL_INTERVAL);
        }
    }

    fn flood(&self, bytes: u64) {
        let content = "x".repeat(64 * 1024);
        let line = stream::tool_result(self.state.lock().id(), "toolu_flood", &content, Denied::No);
        let line = line.to_string();
        let lines = bytes.div_ceil(line.len() as u64);
        for _ in 0..lines {
            if !self.sessions.root.exists() {
                return;
            }
            stream::print(line.as_bytes());
        }
    }
}

/// Prints the lines that come before the result of a failed turn.
fn fail(state: &mut TurnState, directive: Directive) -> Ending {
    let api_error = |state: &mut TurnState, status: Option<u16>, kind: &str, text: String| {
        state.error(&text, kind);
        Ending::ApiError { status, text }
    };
    match directive {
        Directive::Error { status: Some(status), kind } => {
            let text = format!("API Error: {status} {{\"type\":\"error\",\"error\":\"{kind}\"}}");
            api_error(state, Some(status), &kind, text)
        }
        Directive::Error { status: None, kind } => {
            let text = "API Error: Connection error.".to_owned();
            api_error(state, None, &kind, text)
        }
        Directive::Refuse => {
            state.system("model_refusal_no_fallback", json!({ "model": state.model }));
            let text = "API Error: Claude Code is unable to respond to this request.".to_owned();
            api_error(state, None, "unknown", text)
        }
        Directive::Quota(seconds) => {
            if let Some(seconds) = seconds {
                stream::emit(&rate_limit(state.id(), seconds));
            }
            let text = "You've hit your limit".to_owned();
            api_error(state, Some(429), "rate_limit", text)
        }
        Directive::MaxTurns => Ending::Failed {
            subtype: "error_max_turns",
            reason: "max_turns",
            errors: vec!["Reached maximum number of turns".to_owned()],
        },
        Directive::Fail(text) => Ending::Failed {
            subtype: "error_during_execution",
            reason: "error",
            errors: vec![text],
        },
        _ => Ending::Completed,
    }
}

fn retry(status: u16) -> serde_json::Value {
    json!({
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 500,
        "error_status": status,
        "error": kind_of(Some(status)),
    })
}

/// Builds the line that reports when a usage limit ends, in Unix seconds.
fn rate_limit(session: &str, seconds: u64) -> serde_json::Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({
        "type": "rate_limit_event",
        "rate_limit_info": {
            "status": "rejected",
            "resetsAt": now + seconds,
            "rateLimitType": "five_hour",
        },
        "session_id": session,
        "uuid": stream::uuid(),
    })
}
