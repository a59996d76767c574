//! The lines `fake: …` of a prompt, which define the model's behaviour.
//!
//! The lines are in the prompt and not in a file beside it, so that each turn brings its own
//! script, also after a crash and in a branch of a conversation.

use super::invocation::{Message, Role};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Directive {
    Say(String),
    More(String),
    Pad(usize),
    Cost(f64),
    Cap,
    /// Reports that the cap is reached, but no cost.
    ClaimCap,
    Usage {
        input: u64,
        output: u64,
    },
    Tool {
        name: String,
        input: String,
    },
    Deny {
        name: String,
        input: String,
    },
    ToolTag(String),
    Background,
    Notify,
    Retry(u16),
    Error {
        status: Option<u16>,
        kind: String,
    },
    Refuse,
    Quota(Option<u64>),
    Fail(String),
    MaxTurns,
    Wait(String),
    Hang(Hang),
    Flood(u64),
    Line(usize),
    Raw(String),
    Stderr(String),
    ChildKind(ChildKind),
    Ignore(CatchableSignal),
    Half,
    NoResult,
    Kill,
    Forget,
    Stay,
    Exit(u8),
}

/// The point from which the client prints nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hang {
    Silent,
    Stall,
    AfterResult,
}

/// A process that outlives the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildKind {
    Grandchild,
    Daemon,
    BareDaemon,
}

/// A signal that a script can ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatchableSignal {
    Int,
    Term,
    Hup,
}

/// The condition of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Time(u32),
    From(u32),
    AnyReminder,
    Reminder(u32),
}

/// The lines that a message runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptLines {
    /// The lines as written; runs of the same text are counted together.
    pub(super) lines: String,
    /// `None` if the message has lines of its own; otherwise the number of this reminder, from 1.
    pub(super) reminder: Option<u32>,
}

/// Returns the lines for the last message of a conversation.
pub(super) fn prompt_lines(history: &[Message]) -> PromptLines {
    let asked = history.iter().rev().filter(|message| message.role == Role::User);
    for (silent, message) in (0..).zip(asked) {
        let lines: Vec<&str> = message.text.lines().map(str::trim).filter(is_directive).collect();
        if !lines.is_empty() {
            let reminder = (silent > 0).then_some(silent);
            return PromptLines { lines: lines.join("\n"), reminder };
        }
    }
    PromptLines { lines: String::new(), reminder: None }
}

fn is_directive(line: &&str) -> bool {
    line.strip_prefix("fake").is_some_and(|rest| rest.starts_with([':', '[']))
}

impl PromptLines {
    /// Returns the directives of the `time`-th run; an error names the line that cannot be parsed.
    pub(super) fn script(&self, time: u32) -> Result<Vec<Directive>, String> {
        let mut script = Vec::new();
        for line in self.lines.lines() {
            let unreadable = || format!("fake-claude cannot read the line {line:?}");
            let (when, text) = split(line).ok_or_else(unreadable)?;
            let directive = read(text).ok_or_else(unreadable)?;
            // Lines without a condition do not run for reminders; otherwise a reminder would repeat
            // the mistake that it is about.
            let holds = match (when, self.reminder) {
                (When::Always, None) | (When::AnyReminder, Some(_)) => true,
                (When::Time(n), None) => n == time,
                (When::From(n), None) => n <= time,
                (When::Reminder(n), Some(reminder)) => n == reminder,
                (When::Always | When::Time(_) | When::From(_), Some(_))
                | (When::AnyReminder | When::Reminder(_), None) => false,
            };
            if holds {
                script.push(directive);
            }
        }
        Ok(script)
    }
}

fn split(line: &str) -> Option<(When, &str)> {
    let rest = line.strip_prefix("fake")?;
    if let Some(text) = rest.strip_prefix(':') {
        return Some((When::Always, text.trim()));
    }
    let (when, text) = rest.strip_prefix('[')?.split_once("]:")?;
    let when = match (when.strip_prefix("reminder"), when.strip_suffix('-')) {
        (Some(""), _) => When::AnyReminder,
        (Some(number), _) => When::Reminder(number.trim().parse().ok()?),
        (None, Some(first)) => When::From(first.parse().ok()?),
        (None, None) => When::Time(when.parse().ok()?),
    };
    Some((when, text.trim()))
}

fn read(text: &str) -> Option<Directive> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let unescaped = || rest.replace("\\n", "\n");
    let number = || rest.parse().ok();
    let tool = || rest.split_once(' ').unwrap_or((rest, ""));
    Some(match word {
        "say" => Directive::Say(unescaped()),
        "more" => Directive::More(unescaped()),
        "pad" => Directive::Pad(rest.parse().ok()?),
        "cost" => Directive::Cost(rest.parse().ok()?),
        "cap" => Directive::Cap,
        "claim-cap" => Directive::ClaimCap,
        "usage" => {
            let (input, output) = rest.split_once(' ')?;
            Directive::Usage { input: input.parse().ok()?, output: output.parse().ok()? }
        }
        "tool" => Directive::Tool { name: tool().0.to_owned(), input: tool().1.to_owned() },
        "deny" => Directive::Deny { name: tool().0.to_owned(), input: tool().1.to_owned() },
        "tool-tag" => Directive::ToolTag(unescaped()),
        "background" => Directive::Background,
        "notify" => Directive::Notify,
        "retry" => Directive::Retry(rest.parse().ok()?),
        "error" => error(rest)?,
        "refuse" => Directive::Refuse,
        "quota" if rest.is_empty() => Directive::Quota(None),
        "quota" => Directive::Quota(Some(number()?)),
        "fail" => Directive::Fail(unescaped()),
        "max-turns" => Directive::MaxTurns,
        "wait" if !rest.is_empty() => Directive::Wait(rest.to_owned()),
        "hang" => Directive::Hang(match rest {
            "silent" => Hang::Silent,
            "stall" => Hang::Stall,
            "after-result" => Hang::AfterResult,
            _ => return None,
        }),
        "flood" => Directive::Flood(number()?),
        "line" => Directive::Line(rest.parse().ok()?),
        "raw" => Directive::Raw(rest.to_owned()),
        "not-json" => Directive::Raw("this line is not JSON".to_owned()),
        "stderr" => Directive::Stderr(unescaped()),
        "grandchild" => Directive::ChildKind(ChildKind::Grandchild),
        "daemon" => Directive::ChildKind(ChildKind::Daemon),
        "bare-daemon" => Directive::ChildKind(ChildKind::BareDaemon),
        "ignore" => Directive::Ignore(match rest {
            "INT" => CatchableSignal::Int,
            "TERM" => CatchableSignal::Term,
            "HUP" => CatchableSignal::Hup,
            _ => return None,
        }),
        "half" => Directive::Half,
        "no-result" => Directive::NoResult,
        "kill" => Directive::Kill,
        "forget" => Directive::Forget,
        "stay" => Directive::Stay,
        "exit" => Directive::Exit(rest.parse().ok()?),
        _ => return None,
    })
}

fn error(rest: &str) -> Option<Directive> {
    let (status, kind) = rest.split_once(' ').unwrap_or((rest, ""));
    let status = if status == "none" { None } else { Some(status.parse().ok()?) };
    let kind = if kind.is_empty() { kind_of(status) } else { kind };
    Some(Directive::Error { status, kind: kind.to_owned() })
}

/// Returns the real program's name for a status.
pub(super) const fn kind_of(status: Option<u16>) -> &'static str {
    match status {
        Some(401) => "authentication_failed",
        Some(402) => "billing_error",
        Some(404) => "model_not_found",
        Some(429) => "rate_limit",
        Some(400 | 413) => "invalid_request",
        Some(500..=599) => "server_error",
        _ => "unknown",
    }
}
