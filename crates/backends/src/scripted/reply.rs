//! Parses one reply of a file: a text, or a mapping with more keys.
//!
//! Each mistake is reported with its line, and the rest of the file is still read, so that a user
//! sees all mistakes at once. `replies` finds the reply to a turn.

use std::ops::Range;

use raymond_core::budget::{Cost, Micros};
use raymond_core::text::nearest;
use raymond_core::time::{BadSpan, Span, Timestamp};

use super::reader::{Reader, Rejected};
use super::replies::{Action, Attempts, Reset, ScriptedFailure, ScriptedReply};
use super::writes::{Write, writes};
use super::yaml::{Node, Value};

/// The keys of a reply.
pub const KEYS: [&str; 11] = [
    "text", "messages", "fail", "hang", "capped", "cost", "delay", "denied", "expect", "write",
    "attempts",
];
const FAIL_KEYS: [&str; 4] = ["kind", "message", "for", "until"];
const KINDS: [&str; 6] = ["transient", "timeout", "quota", "auth", "task", "lost_session"];

/// Parses the replies for the attempts at a turn.
pub(super) fn attempts(reader: &mut Reader<'_>, node: Node) -> Result<Attempts, Rejected> {
    let is_attempts = |entries: &[(Node, Node)]| matches!(entries, [(key, _)] if key.value == Value::Text("attempts".into()));
    let single = |last| Attempts { earlier: Vec::new(), last };
    match node.value {
        Value::Map(mut entries) if is_attempts(&entries) => {
            let (_, list) = entries.remove(0);
            attempt_list(reader, list)
        }
        value => {
            let span = node.span;
            parse_reply(reader, Node { value, span }).map(single)
        }
    }
}

fn attempt_list(reader: &mut Reader<'_>, list: Node) -> Result<Attempts, Rejected> {
    let Value::List(items) = list.value else {
        return Err(reader.mistyped(&list, "a list of replies"));
    };
    // Collected first, so that the mistakes of all items are recorded.
    let replies: Vec<_> = items.into_iter().map(|item| parse_reply(reader, item)).collect();
    let mut replies = replies.into_iter().collect::<Result<Vec<_>, _>>()?;
    match replies.pop() {
        Some(last) => Ok(Attempts { earlier: replies, last }),
        None => Err(reader.reject("empty-value", list.span, "an empty list has no attempt".into())),
    }
}

fn parse_reply(reader: &mut Reader<'_>, node: Node) -> Result<ScriptedReply, Rejected> {
    match node.value {
        Value::Text(last) => Ok(ScriptedReply {
            expect: Vec::new(),
            delay: None,
            cost: reader.cost,
            writes: Vec::new(),
            action: Action::Say { earlier: Vec::new(), last, denied: Vec::new() },
        }),
        Value::Map(entries) => ReplyBuilder::read(reader, entries).finish(reader, node.span),
        Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Number(_) | Value::List(_) => {
            Err(reader.mistyped(&node, "a reply: text or a mapping"))
        }
    }
}

/// A reply whose keys are read one by one.
#[derive(Default)]
struct ReplyBuilder {
    actions: Vec<Action>,
    cost: Option<Cost>,
    delay: Option<Span>,
    denied: Vec<String>,
    expect: Vec<String>,
    writes: Vec<Write>,
    is_invalid: bool,
}

impl ReplyBuilder {
    fn read(reader: &mut Reader<'_>, entries: Vec<(Node, Node)>) -> Self {
        let mut builder = Self::default();
        for (key, node) in entries {
            let taken = reader.name(&key).and_then(|name| match name.as_str() {
                "text" => text(reader, node).map(|last| builder.say(Vec::new(), last)),
                "messages" => {
                    messages(reader, node).map(|(earlier, last)| builder.say(earlier, last))
                }
                "fail" => fail(reader, node).map(|fail| builder.actions.push(Action::Fail(fail))),
                "hang" => only_true(reader, &node).map(|()| builder.actions.push(Action::Hang)),
                "capped" => only_true(reader, &node).map(|()| builder.actions.push(Action::Cap)),
                "cost" => cost(reader, &node).map(|cost| builder.cost = Some(cost)),
                "delay" => {
                    span(reader, node, Span::parse_any).map(|delay| builder.delay = Some(delay))
                }
                "denied" => texts(reader, node).map(|denied| builder.denied = denied),
                "expect" => texts(reader, node).map(|expect| builder.expect = expect),
                "write" => writes(reader, node).map(|writes| builder.writes = writes),
                "attempts" => {
                    let message =
                        "`attempts` must be the only key: each attempt is a separate reply";
                    Err(reader.reject("misplaced-key", key.span, message.into()))
                }
                // A key that resembles no known key is probably part of a JSON answer without
                // quotes.
                other if nearest(other, KEYS).is_none() => Err(unquoted(reader, other, key.span)),
                other => Err(reader.unknown("key", other, key.span, &KEYS)),
            });
            builder.is_invalid |= taken.is_err();
        }
        builder
    }

    fn say(&mut self, earlier: Vec<String>, last: String) {
        let denied = Vec::new();
        self.actions.push(Action::Say { earlier, last, denied });
    }

    fn finish(
        mut self,
        reader: &mut Reader<'_>,
        span: Range<usize>,
    ) -> Result<ScriptedReply, Rejected> {
        // The mistakes are already recorded; checks of the whole would only repeat them.
        if self.is_invalid {
            return Err(Rejected);
        }
        let (Some(mut action), true) = (self.actions.pop(), self.actions.is_empty()) else {
            let message = "a reply has exactly one of text, messages, fail, hang and capped";
            return Err(reader.reject("one-of", span, message.into()));
        };
        match &mut action {
            Action::Say { denied, .. } => *denied = self.denied,
            Action::Cap | Action::Hang | Action::Fail(_) if self.denied.is_empty() => {}
            Action::Cap | Action::Hang | Action::Fail(_) => {
                let message = "`denied` goes with text or messages only";
                return Err(reader.reject("misplaced-key", span, message.into()));
            }
        }
        Ok(ScriptedReply {
            expect: self.expect,
            delay: self.delay,
            cost: self.cost.unwrap_or(reader.cost),
            writes: self.writes,
            action,
        })
    }
}

/// Records an unknown key of a reply. The author may have meant an answer in JSON, or a text with a
/// comma.
fn unquoted(reader: &mut Reader<'_>, name: &str, span: Range<usize>) -> Rejected {
    let known = KEYS.join(", ");
    let answer = if name.contains(['<', '>', ' ']) {
        "in braces, a text that contains a comma needs quotes".to_owned()
    } else {
        format!("an answer in JSON is a text in quotes: '{{\"{name}\": 1}}'")
    };
    reader.no_such("key", name, span, format!("known keys: {known}; {answer}"))
}

fn text(reader: &mut Reader<'_>, node: Node) -> Result<String, Rejected> {
    match node.value {
        Value::Text(text) => Ok(text),
        Value::Null
        | Value::Bool(_)
        | Value::Whole(_)
        | Value::Number(_)
        | Value::List(_)
        | Value::Map(_) => Err(reader.mistyped(&node, "text")),
    }
}

/// Parses a text or a list of texts.
fn texts(reader: &mut Reader<'_>, node: Node) -> Result<Vec<String>, Rejected> {
    match node.value {
        Value::List(items) => items.into_iter().map(|item| text(reader, item)).collect(),
        value => {
            let span = node.span;
            Ok(vec![text(reader, Node { value, span })?])
        }
    }
}

fn messages(reader: &mut Reader<'_>, node: Node) -> Result<(Vec<String>, String), Rejected> {
    let span = node.span.clone();
    let mut messages = texts(reader, node)?;
    match messages.pop() {
        Some(last) => Ok((messages, last)),
        None => Err(reader.reject("empty-value", span, "an empty list has no message".into())),
    }
}

fn only_true(reader: &mut Reader<'_>, node: &Node) -> Result<(), Rejected> {
    if node.value == Value::Bool(true) {
        return Ok(());
    }
    let message = "expected true; leave the key out otherwise";
    Err(reader.reject("wrong-type", node.span.clone(), message.into()))
}

fn span(
    reader: &mut Reader<'_>,
    node: Node,
    parse: fn(&str) -> Result<Span, BadSpan>,
) -> Result<Span, Rejected> {
    let place = node.span.clone();
    if let Value::Whole(number) = node.value {
        let message = format!("the unit is missing: write {number}s");
        return Err(reader.reject("bad-duration", place, message));
    }
    let text = text(reader, node)?;
    parse(&text).map_err(|error| reader.reject("bad-duration", place, format!("{error}")))
}

/// Parses a cost: dollars as a number or a text, `at least` so many dollars, or `unknown`.
pub(super) fn cost(reader: &mut Reader<'_>, node: &Node) -> Result<Cost, Rejected> {
    let mut cost: fn(Micros) -> Cost = Cost::Reported;
    let written = match &node.value {
        Value::Text(text) if text == "unknown" => return Ok(Cost::Unknown),
        Value::Text(text) => match text.strip_prefix("at least ") {
            Some(known) => {
                cost = Cost::AtLeast;
                known.to_owned()
            }
            None => text.clone(),
        },
        Value::Whole(dollars) => dollars.to_string(),
        // Six digits are the precision of `Micros`.
        Value::Number(dollars) => format!("{dollars:.6}"),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
            return Err(reader.mistyped(node, "an amount of dollars, at least so many, or unknown"));
        }
    };
    let amount = written.parse::<Micros>();
    amount
        .map(cost)
        .map_err(|error| reader.reject("bad-amount", node.span.clone(), error.to_string()))
}

/// Parses a failure: a kind, or a mapping with more keys.
fn fail(reader: &mut Reader<'_>, node: Node) -> Result<ScriptedFailure, Rejected> {
    let entries = match node.value {
        Value::Map(entries) => entries,
        Value::Text(_) => {
            // `fail: quota` is short for `fail: { kind: quota }`.
            let kind = Node { value: Value::Text("kind".into()), span: node.span.clone() };
            vec![(kind, node.clone())]
        }
        Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Number(_) | Value::List(_) => {
            return Err(reader.mistyped(&node, "a kind of failure or a mapping"));
        }
    };
    let (mut kind, mut message, mut reset) = (None, None, None);
    for (key, node) in entries {
        let place = node.span.clone();
        match reader.name(&key)?.as_str() {
            "kind" => kind = Some((text(reader, node)?, place)),
            "message" => message = Some(text(reader, node)?),
            "for" => reset = Some(Reset::After(span(reader, node, str::parse)?)),
            "until" => reset = Some(Reset::At(time(reader, node)?)),
            other => return Err(reader.unknown("key", other, key.span, &FAIL_KEYS)),
        }
    }
    let Some((kind, place)) = kind else {
        let message = format!("a failure needs a kind: {}", KINDS.join(", "));
        return Err(reader.reject("missing-key", node.span, message));
    };
    let said = message.is_some();
    let why = message.unwrap_or_else(|| format!("scripted {kind} failure"));
    let found = match (kind.as_str(), reset) {
        ("quota", reset) => ScriptedFailure::Quota(why, reset.unwrap_or(Reset::Unknown)),
        ("transient", None) => ScriptedFailure::Transient(why),
        ("auth", None) => ScriptedFailure::Auth(why),
        ("task", None) => ScriptedFailure::Task(why),
        ("timeout", None) if !said => ScriptedFailure::Timeout,
        ("lost_session", None) if !said => ScriptedFailure::LostSession,
        (kind, _) if KINDS.contains(&kind) => {
            let keys =
                "only quota has `for` or `until`; timeout and lost_session have no `message`";
            return Err(reader.reject("misplaced-key", place, keys.into()));
        }
        (other, _) => return Err(reader.unknown("kind", other, place, &KINDS)),
    };
    Ok(found)
}

fn time(reader: &mut Reader<'_>, node: Node) -> Result<Timestamp, Rejected> {
    let place = node.span.clone();
    let text = text(reader, node)?;
    let time = text.parse::<jiff::Timestamp>().ok();
    time.and_then(|time| u64::try_from(time.as_millisecond()).ok()).map(Timestamp).ok_or_else(
        || {
            let message = format!("{text:?} is not a time such as 2026-01-31T09:00:00Z");
            reader.reject("bad-time", place, message)
        },
    )
}
