//! One line `model: …` of a prompt.
//!
//! It is another language than `fake: …`, because it writes an HTTP reply that follows from the
//! conversation alone, and the other one scripts a process with signals, streams and exit codes.
//! They share three of their 42 words in the same form.

use std::time::Duration;

use raymond_core::prices::Usage;
use serde_json::Value;

use super::reply::{DEFAULT_USAGE, Failure};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Directive {
    Say(String),
    Tool { name: String, input: Value },
    Text(String),
    Think(String),
    Usage(Usage),
    Error(Failure),
    Latency(Duration),
    Cut(usize),
    Wait(String),
    Drop,
    Hang,
    Refuse,
    Then,
    Again,
}

/// Returns the directives of a text; an error names the line that cannot be parsed.
pub(super) fn directives(text: &str) -> Result<Vec<Directive>, String> {
    // In the envelope of an agent step the lines are inside a JSON string, where no line begins
    // with `model:`.
    let instructions = instructions(text);
    let text = instructions.as_deref().unwrap_or(text);
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("model:"));
    lines
        .map(|line| read(line.trim()).map_err(|why| format!("model: {}: {why}", line.trim())))
        .collect()
}

/// Returns the instructions if the text is the message of an agent step.
fn instructions(text: &str) -> Option<String> {
    let envelope = text.get(text.find("\n{")?..)?;
    let envelope: Value = serde_json::from_str(envelope).ok()?;
    envelope.get("instructions")?.as_str().map(str::to_owned)
}

fn read(line: &str) -> Result<Directive, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let text = || match rest {
        "" => Err("a text is missing".to_owned()),
        text => Ok(text.replace("\\n", "\n")),
    };
    let alone = |directive| match rest {
        "" => Ok(directive),
        rest => Err(format!("unexpected text after it: {rest:?}")),
    };
    match word {
        "say" => text().map(Directive::Say),
        "text" => text().map(Directive::Text),
        "think" => text().map(Directive::Think),
        "wait" => text().map(Directive::Wait),
        "tool" => tool(rest),
        "usage" => usage(rest).map(Directive::Usage),
        "error" => error(rest).map(Directive::Error),
        "latency" => latency(rest).map(Directive::Latency),
        "cut" => rest.parse().map(Directive::Cut).map_err(|_| "expected a number of events".into()),
        "drop" => alone(Directive::Drop),
        "hang" => alone(Directive::Hang),
        "refuse" => alone(Directive::Refuse),
        "then" => alone(Directive::Then),
        "again" => alone(Directive::Again),
        _ => Err("unknown directive".to_owned()),
    }
}

fn tool(rest: &str) -> Result<Directive, String> {
    let (name, input) = rest.split_once(' ').unwrap_or((rest, ""));
    if name.is_empty() {
        return Err("the name of a tool is missing".to_owned());
    }
    let input: Value =
        serde_json::from_str(input).map_err(|error| format!("its input is not JSON: {error}"))?;
    match input {
        Value::Object(_) => Ok(Directive::Tool { name: name.to_owned(), input }),
        _ => Err("its input is not an object".to_owned()),
    }
}

fn usage(rest: &str) -> Result<Usage, String> {
    let mut usage = DEFAULT_USAGE;
    for entry in rest.split_whitespace() {
        let unreadable = || {
            format!("{entry:?} is not a number of input, output, cache_read or cache_write tokens")
        };
        let (kind, count) = entry.split_once('=').ok_or_else(unreadable)?;
        let place = match kind {
            "input" => &mut usage.input,
            "output" => &mut usage.output,
            "cache_read" => &mut usage.cache_read,
            "cache_write" => &mut usage.cache_write,
            _ => return Err(unreadable()),
        };
        *place = count.parse().map_err(|_| unreadable())?;
    }
    Ok(usage)
}

/// `429 type=rate_limit retry-after=3 header:x-should-retry=true message=the rest of the line`
fn error(rest: &str) -> Result<Failure, String> {
    let (entries, message) = match rest.split_once("message=") {
        Some((entries, message)) => (entries, Some(message)),
        None => (rest, None),
    };
    let mut entries = entries.split_whitespace();
    let status = entries.next().and_then(|status| status.parse().ok());
    let status = status.filter(|status| (400..=599).contains(status));
    let mut failure = Failure::new(status.ok_or("expected a status from 400 to 599")?);
    for entry in entries {
        let (name, value) = entry.split_once('=').ok_or_else(|| format!("{entry:?} has no ="))?;
        failure = match (name, name.strip_prefix("header:")) {
            ("type", _) => failure.with_kind(value),
            ("retry-after", _) => failure.with_header(name, value),
            (_, Some(header)) => failure.with_header(header, value),
            _ => return Err(format!("unknown field {name:?} of an error")),
        };
    }
    Ok(match message {
        Some(message) => failure.with_message(message.trim()),
        None => failure,
    })
}

fn latency(rest: &str) -> Result<Duration, String> {
    let millis = rest.strip_suffix("ms").and_then(|number| number.parse().ok());
    let seconds = rest.strip_suffix('s').and_then(|number| number.parse().ok());
    millis
        .map(Duration::from_millis)
        .or_else(|| seconds.map(Duration::from_secs))
        .ok_or_else(|| "expected a time such as 300ms or 2s".to_owned())
}
