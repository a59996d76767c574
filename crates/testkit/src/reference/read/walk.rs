//! Walking over a text from tag to tag.

use raymond_core::protocol::TagName;

use super::Tag;
use super::opening::{self, LONGEST_NAME, Meaning};

/// A tag in the text: from where to where it stands, and where reading goes on.
pub(super) struct Found {
    start: usize,
    end: usize,
    go_on: usize,
    /// The tag with its unknown attributes; none when it is malformed.
    pub(super) tag: Option<(Tag, Vec<String>)>,
}

impl Found {
    fn malformed(start: usize, end: usize, go_on: usize) -> Self {
        Self {
            start,
            end,
            go_on,
            tag: None,
        }
    }

    /// Whether its first and last line hold nothing else but backticks.
    pub(super) fn stands_alone(&self, text: &str) -> bool {
        let before = text[..self.start].rsplit('\n').next();
        let after = text[self.end..].split('\n').next();
        [before, after].into_iter().flatten().all(|rest| {
            rest.bytes()
                .all(|byte| byte == b'`' || byte.is_ascii_whitespace())
        })
    }
}

/// All tags whose opening is not in code, and whether an opening in code was passed.
pub(super) fn walk(text: &str, code: &[bool]) -> (Vec<Found>, bool) {
    let mut found = Vec::new();
    let mut in_code = false;
    let mut at = 0;
    while at < text.len() {
        let Some(name) = opening::name_at(text, at) else {
            at += 1;
            continue;
        };
        if code[at] {
            in_code = true;
            at += 1;
            continue;
        }
        let tag = match name {
            TagName::Result => result_at(text, at, code),
            TagName::Goto | TagName::Reset | TagName::Call | TagName::Function | TagName::Fork => {
                targeted_at(text, at, name)
            }
        };
        at = tag.go_on;
        found.push(tag);
    }
    (found, in_code)
}

/// A tag with a target. Malformed, it only takes its opening: reading goes on right after that.
fn targeted_at(text: &str, start: usize, name: TagName) -> Found {
    let after_name = start + 1 + name.as_str().len();
    let (written, open) = match opening::attributes(text, after_name) {
        Ok(opening) => opening,
        Err(broken) => return Found::malformed(start, broken_end(text, broken, name), broken),
    };
    let malformed = || Found::malformed(start, closed_end(text, open, name).unwrap_or(open), open);
    let Some((close, end)) = closing_after(text, open, name) else {
        return malformed();
    };
    let target = text[open..close].trim();
    if target.is_empty() || target.contains(['<', '\n']) || target.len() > LONGEST_NAME {
        return malformed();
    }
    let Some(Meaning { known, unknown }) = opening::meaning(name, written) else {
        return malformed();
    };
    let tag = Tag {
        name,
        body: target.to_owned(),
        attributes: known,
    };
    Found {
        start,
        end,
        go_on: end,
        tag: Some((tag, unknown)),
    }
}

/// A result. Its payload is raw; a second opening in it, or a second close after it, makes
/// everything up to that close malformed.
fn result_at(text: &str, start: usize, code: &[bool]) -> Found {
    let name = TagName::Result;
    let after_name = start + 1 + name.as_str().len();
    let opening = opening::attributes(text, after_name);
    let open = match &opening {
        Ok((_, open)) => *open,
        Err(broken) => *broken,
    };
    let Some((close, end)) = closing_after(text, open, name) else {
        let stands_to = opening.map_or_else(|broken| broken_end(text, broken, name), |(_, o)| o);
        return Found::malformed(start, stands_to, open);
    };
    let opens = |at: usize| opening::name_at(text, at).filter(|_| !code[at]);
    if (open..close).any(|at| opens(at) == Some(name)) {
        return Found::malformed(start, end, end);
    }
    if let Some((further, further_end)) = closing_after(text, end, name)
        && !(end..further).any(|at| opens(at).is_some())
    {
        return Found::malformed(start, further_end, further_end);
    }
    let meaning = opening
        .ok()
        .and_then(|(written, _)| opening::meaning(name, written));
    let tag = meaning.map(|Meaning { known, unknown }| {
        let tag = Tag {
            name,
            body: text[open..close].to_owned(),
            attributes: known,
        };
        (tag, unknown)
    });
    Found {
        start,
        end,
        go_on: end,
        tag,
    }
}

/// The first `</name>` from here on, with optional whitespace before its `>`: where it starts and ends.
fn closing_after(text: &str, from: usize, name: TagName) -> Option<(usize, usize)> {
    let head = format!("</{name}");
    text[from..].match_indices(&head).find_map(|(at, _)| {
        let start = from + at;
        let rest = text[start + head.len()..].trim_ascii_start();
        let rest = rest.strip_prefix('>')?;
        Some((start, text.len() - rest.len()))
    })
}

/// Where a malformed tag ends whose opening was closed.
fn closed_end(text: &str, from: usize, name: TagName) -> Option<usize> {
    let (close, end) = closing_after(text, from, name)?;
    let target = text[from..close].trim();
    (!target.contains(['<', '\n'])).then_some(end)
}

/// Where a malformed tag ends whose opening breaks off here: at its close, at its `>`, or here.
fn broken_end(text: &str, broken: usize, name: TagName) -> usize {
    let bracket = text[broken..].find(['<', '\n', '>']).map(|at| broken + at);
    let bracket = bracket.filter(|at| text[*at..].starts_with('>'));
    closed_end(text, broken, name)
        .or_else(|| bracket.map(|at| at + 1))
        .unwrap_or(broken)
}
