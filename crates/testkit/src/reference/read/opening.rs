//! The opening of a tag: its position, its attributes, and its end.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::protocol::{Source, TagName};

use crate::reference::tags::{grammar, settle_options};

/// Returns the tag that opens at this byte: `<`, a whole name, and ASCII whitespace, `>` or `/`. An
/// iteration knows only one tag.
pub(super) fn name_at(text: &str, at: usize, source: Source) -> Option<TagName> {
    let rest = text.as_bytes().get(at..)?.strip_prefix(b"<")?;
    let names = match source {
        Source::Message | Source::Script => TagName::ALL.to_vec(),
        Source::Iteration => vec![TagName::Result],
    };
    names.into_iter().find(|name| {
        rest.strip_prefix(name.as_str().as_bytes())
            .and_then(|rest| rest.first())
            // So `<gotos>` and `<goto-x>` are text.
            .is_some_and(|next| next.is_ascii_whitespace() || *next == b'>' || *next == b'/')
    })
}

/// Attributes as written, in order, with their entities decoded.
pub(super) type Written = Vec<(String, String)>;

pub(super) struct Broken {
    /// Right after its `>`; `None` if the opening has no end.
    pub(super) end: Option<usize>,
}

/// Parses from right after the name to right after the `>`.
pub(super) fn attributes(text: &str, after_name: usize) -> Result<(Written, usize), Broken> {
    let mut written = Vec::new();
    let mut at = after_name;
    loop {
        let next = skip_whitespace(text, at);
        if text[next..].starts_with('>') {
            return Ok((written, next + 1));
        }
        // Attributes must be separated: `a="1"b="2"` is malformed.
        let spaced = next > at;
        let Some((attribute, end)) = spaced.then(|| attribute(text, next)).flatten() else {
            return Err(Broken { end: end_of_broken(text, after_name) });
        };
        written.push(attribute);
        at = end;
    }
}

/// Returns the end of a malformed opening: the first `>` outside a value, where a value is a quoted
/// text after `=`.
///
/// A `<`, a quote without a `=` before it, or a value without an end mean that the opening has no
/// end.
fn end_of_broken(text: &str, after_name: usize) -> Option<usize> {
    let mut at = after_name;
    let mut previous = ' ';
    loop {
        let c = text[at..].chars().next()?;
        at += c.len_utf8();
        match c {
            '>' => return Some(at),
            '<' => return None,
            '"' | '\'' if previous != '=' => return None,
            '"' | '\'' => at += text[at..].find(c)? + 1,
            _ => {}
        }
        // White space is allowed between `=` and the quote.
        if !c.is_ascii_whitespace() {
            previous = c;
        }
    }
}

fn attribute(text: &str, start: usize) -> Option<((String, String), usize)> {
    let name: String = text[start..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let equals = skip_whitespace(text, start + name.len());
    if !text[equals..].starts_with('=') {
        return None;
    }
    let quote = skip_whitespace(text, equals + 1);
    let mark = text[quote..].chars().next().filter(|c| "\"'".contains(*c))?;
    let value = &text[quote + 1..];
    let length = value.find(mark)?;
    Some(((name, decode(&value[..length])), quote + 1 + length + 1))
}

fn skip_whitespace(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_ascii_start().len()
}

/// Decodes the five entities, each once.
fn decode(value: &str) -> String {
    const ENTITIES: [(&str, char); 5] =
        [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];
    let mut decoded = String::new();
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        // Each position is decoded once, so `&amp;lt;` gives `&lt;` and not `<`.
        let entity = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity));
        let (length, character) = match entity {
            Some((entity, character)) => (entity.len(), *character),
            None => (first.len_utf8(), first),
        };
        decoded.push(character);
        rest = &rest[length..];
    }
    decoded
}

/// The known attributes of a tag, and the names of the others.
pub(super) struct Meaning {
    pub(super) known: BTreeMap<String, String>,
    pub(super) unknown: Vec<String>,
}

/// Interprets the attributes of a tag; `None` if they make it malformed. A missing `next` depends
/// on the other tags: see [`super::Reading::settled`].
pub(super) fn meaning(name: TagName, written: Written) -> Option<Meaning> {
    let names: BTreeSet<&String> = written.iter().map(|(name, _)| name).collect();
    // Before the split into known and unknown: an unknown attribute must not be repeated either.
    let repeated = names.len() < written.len();
    let grammar = grammar(name);
    let (known, unknown): (Written, Written) =
        written.into_iter().partition(|(attribute, _)| grammar.knows(attribute));
    let trimmed = |(key, value): (String, String)| {
        let value = if grammar.is_word(&key) { value.trim().to_owned() } else { value };
        (key, value)
    };
    let known: BTreeMap<String, String> = known.into_iter().map(trimmed).collect();
    let missing = grammar.required.iter().any(|key| !known.contains_key(*key));
    let refused = known.iter().any(|(key, value)| grammar.refuses(key, value));
    let all: Vec<String> =
        known.keys().chain(unknown.iter().map(|(name, _)| name)).cloned().collect();
    if repeated || missing || refused || grammar.refuses_together(&all) {
        return None;
    }
    let mut known = known;
    known.retain(|key, value| !grammar.is_default(key, value));
    if !settle_options(&mut known) {
        return None;
    }
    let unknown = unknown.into_iter().map(|(name, _)| name).collect();
    Some(Meaning { known, unknown })
}
