//! The script, directive by directive, to its exit code.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use super::arguments::Arguments;
use super::directive::{Directive, Hang, kind_of};
use super::invocation::Invocation;
use super::offspring;
use super::opening::{Refusal, complain, open};
use super::scene::{Ending, Purse, Scene, Shared};
use super::sessions::Sessions;
use super::stream::{self, Denied};

/// What an invocation costs that does not say.
const USUAL_COST: f64 = 0.01;
const MOMENT: Duration = Duration::from_millis(5);

/// Plays an invocation to its exit code.
pub(super) fn play(words: &[String], scene: &Shared) -> u8 {
    let Some(sessions) = Sessions::from_environment() else {
        return complain("fake-claude needs CLAUDE_CONFIG_DIR or HOME");
    };
    let mut invocation = Invocation::begin(words);
    let script = match open(&sessions, &mut invocation, scene) {
        Ok(script) => script,
        Err(refusal) => {
            let (Refusal::Said(text) | Refusal::Lost(text)) = &refusal;
            invocation.refused = Some(text.clone());
            sessions.remember(&invocation).ok();
            return refusal.end(scene);
        }
    };
    if let Err(error) = sessions.remember(&invocation) {
        return complain(&format!("fake-claude cannot write: {error}"));
    }
    Player {
        scene,
        sessions,
        result: ResultLine::Whole,
        after: After::Exit,
        code: None,
        paid: false,
    }
    .play(script)
}

/// How much of the last line is written.
enum ResultLine {
    Whole,
    Half,
    None,
}

/// What follows the last line.
enum After {
    Exit,
    Hang,
}

struct Player<'a> {
    scene: &'a Shared,
    sessions: Sessions,
    result: ResultLine,
    after: After,
    code: Option<u8>,
    paid: bool,
}

/// The script is over.
struct Over(u8);

impl Player<'_> {
    fn play(mut self, (script, arguments): (Vec<Directive>, Arguments)) -> u8 {
        if script.first() == Some(&Directive::Hang(Hang::Silent)) {
            return self.hang();
        }
        self.scene.lock().init();
        for directive in script {
            if let Err(Over(code)) = self.act(directive, &arguments) {
                return code;
            }
        }
        if !self.paid
            && let Err(Over(code)) = self.spend(USUAL_COST)
        {
            return code;
        }
        self.end(Ending::Completed, 0).0
    }

    #[expect(clippy::too_many_lines, reason = "one flat table of all directives reads best")]
    fn act(&mut self, directive: Directive, arguments: &Arguments) -> Result<(), Over> {
        let mut scene = self.scene.lock();
        match directive {
            Directive::Say(text) => scene.say(&text),
            Directive::More(text) => scene.more(&text),
            Directive::Pad(bytes) => scene.more(&"x".repeat(bytes)),
            Directive::Usage { input, output } => scene.tokens = (input, output),
            Directive::Tool { name, input } if arguments.allows(&name, &input) => {
                scene.tool(&name, &input, "done", Denied::No);
            }
            Directive::Tool { name, input } | Directive::Deny { name, input } => {
                let output = "This command requires approval";
                scene.tool(&name, &input, output, Denied::Yes);
            }
            Directive::ToolTag(text) => scene.tool("Bash", "cat notes", &text, Denied::No),
            Directive::Line(bytes) => {
                scene.tool("Bash", "cat big", &"x".repeat(bytes), Denied::No);
            }
            Directive::Background => {
                scene.start_task();
                let line = scene.result(Ending::Completed);
                stream::emit(&line);
            }
            Directive::Notify => scene.end_task(),
            Directive::Retry(status) => scene.system("api_retry", retry(status)),
            Directive::Raw(text) => stream::print(text.as_bytes()),
            Directive::Stderr(text) => drop(complain(&text)),
            Directive::Ignore(signal) => scene.ignored.push(signal),
            Directive::Offspring(kind) => {
                drop(scene);
                let child = offspring::start(kind, &self.sessions.root);
                self.scene.lock().children.extend(child.ok().flatten());
            }
            Directive::Half => self.result = ResultLine::Half,
            Directive::NoResult => self.result = ResultLine::None,
            Directive::Exit(code) => self.code = Some(code),
            Directive::Hang(Hang::AfterResult) => self.after = After::Hang,
            Directive::Hang(Hang::Silent | Hang::Stall) => {
                drop(scene);
                return Err(Over(self.hang()));
            }
            Directive::Cost(dollars) => {
                drop(scene);
                return self.spend(dollars);
            }
            Directive::Cap => {
                let left = scene.left();
                drop(scene);
                return self.spend(left);
            }
            Directive::ClaimCap => {
                drop(scene);
                self.paid = true;
                return Err(self.end_at_cap());
            }
            Directive::Wait(file) => {
                drop(scene);
                self.wait(&file);
            }
            Directive::Flood(bytes) => {
                drop(scene);
                self.flood(bytes);
            }
            Directive::Forget => scene.forget(),
            Directive::Stay => scene.stay(arguments.resume.as_deref()),
            Directive::Kill => {
                kill_process(getpid(), Signal::KILL).ok();
            }
            ending @ (Directive::Error { .. }
            | Directive::Refuse
            | Directive::Quota(_)
            | Directive::Fail(_)
            | Directive::MaxTurns) => {
                let ending = fail(&mut scene, ending);
                drop(scene);
                return Err(self.end(ending, 1));
            }
        }
        Ok(())
    }

    fn spend(&mut self, dollars: f64) -> Result<(), Over> {
        self.paid = true;
        let purse = self.scene.lock().spend(dollars);
        match purse {
            Purse::Open => Ok(()),
            Purse::Empty => Err(self.end_at_cap()),
        }
    }

    fn end_at_cap(&self) -> Over {
        let cap = self.scene.lock().cap.unwrap_or_default();
        let errors = vec![format!("Reached maximum budget (${cap})")];
        let (subtype, reason) = ("error_max_budget_usd", "max_budget");
        self.end(Ending::Failed { subtype, reason, errors }, 1)
    }

    fn end(&self, ending: Ending, code: u8) -> Over {
        let line = self.scene.lock().result(ending);
        match self.result {
            ResultLine::Whole => stream::emit(&line),
            ResultLine::Half => stream::print_half(&line),
            ResultLine::None => {}
        }
        if let After::Hang = self.after {
            self.hang();
        }
        Over(self.code.unwrap_or(code))
    }

    /// For ever, which is as long as anybody can be interested.
    fn hang(&self) -> u8 {
        while self.sessions.root.exists() {
            sleep(MOMENT);
        }
        1
    }

    fn wait(&self, file: &str) {
        let root = &self.sessions.root;
        std::fs::write(root.join(format!("{file}.waiting")), "").ok();
        while !root.join(file).exists() && root.exists() {
            sleep(MOMENT);
        }
    }

    fn flood(&self, bytes: u64) {
        let content = "x".repeat(64 * 1024);
        let line = stream::tool_result(self.scene.lock().id(), "toolu_flood", &content, Denied::No);
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

/// The lines before a result that says that the turn failed.
fn fail(scene: &mut Scene, directive: Directive) -> Ending {
    let api_error = |scene: &mut Scene, status: Option<u16>, kind: &str, text: String| {
        scene.error(&text, kind);
        Ending::ApiError { status, text }
    };
    match directive {
        Directive::Error { status: Some(status), kind } => {
            let text = format!("API Error: {status} {{\"type\":\"error\",\"error\":\"{kind}\"}}");
            api_error(scene, Some(status), &kind, text)
        }
        Directive::Error { status: None, kind } => {
            let text = "API Error: Connection error.".to_owned();
            api_error(scene, None, &kind, text)
        }
        Directive::Refuse => {
            scene.system("model_refusal_no_fallback", json!({ "model": scene.model }));
            let text = "API Error: Claude Code is unable to respond to this request.".to_owned();
            api_error(scene, None, "unknown", text)
        }
        Directive::Quota(seconds) => {
            if let Some(seconds) = seconds {
                stream::emit(&rate_limit(scene.id(), seconds));
            }
            let text = "You've hit your limit".to_owned();
            api_error(scene, Some(429), "rate_limit", text)
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

/// When a usage limit is lifted, as a time of the Unix clock.
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
