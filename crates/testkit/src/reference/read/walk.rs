//! Walks over a text from tag to tag.

use raymond_core::protocol::{Source, TagName};

use super::Tag;
use super::opening::{self, Broken, Meaning};
use crate::reference::tags::{MAX_NAME_BYTES, grammar};

/// A tag in the text, its end, and the position where reading continues.
pub(super) struct FoundTag {
    pub(super) name: TagName,
    end: usize,
    /// The end of the opening.
    open: usize,
    resume_at: usize,
    /// The tag with its unknown attributes; `None` if it is malformed.
    pub(super) tag: Option<(Tag, Vec<String>)>,
}

impl FoundTag {
    /// A malformed tag with a target: reading continues right after its opening.
    fn malformed(name: TagName, open: usize, end: usize) -> Self {
        Self { name, end, open, resume_at: open, tag: None }
    }

    /// A malformed result: it covers everything up to its end.
    fn uncertain(name: TagName, open: usize, end: usize) -> Self {
        Self { name, end, open, resume_at: end, tag: None }
    }

    /// Returns whether its last line contains nothing else but backticks.
    fn ends_its_line(&self, text: &str) -> bool {
        text[self.end..].split('\n').next().is_none_or(is_margin)
    }
}

/// Returns whether a text has only backticks and white space.
fn is_margin(rest: &str) -> bool {
    rest.bytes().all(|byte| byte == b'`' || byte.is_ascii_whitespace())
}

/// Returns all tags whose opening is not in code, and whether an opening in code was skipped.
pub(super) fn outside_code(text: &str, source: Source, code: &[bool]) -> (Vec<FoundTag>, bool) {
    let mut found = Vec::new();
    let mut in_code = false;
    let mut at = 0;
    while at < text.len() {
        let Some(name) = opening::name_at(text, at, source) else {
            // Byte by byte, also inside characters: `name_at` compares bytes and matches only at a
            // `<`.
            at += 1;
            continue;
        };
        // Only the position of the opening decides: a closing counts in code as well.
        if code[at] {
            in_code = true;
            at += 1;
            continue;
        }
        let tag = tag_at(text, at, name, source, code);
        at = tag.resume_at;
        found.push(tag);
    }
    (found, in_code)
}

/// Returns all tags whose first and last line contain nothing else but backticks, and whether there
/// are others.
///
/// The others are text. Reading continues after the opening if only the last line is wrong,
/// otherwise one byte further.
pub(super) fn alone_on_lines(text: &str, source: Source) -> (Vec<FoundTag>, bool) {
    let code = vec![false; text.len()];
    let mut found = Vec::new();
    let mut others = false;
    let mut at = 0;
    while at < text.len() {
        let Some(name) = opening::name_at(text, at, source) else {
            at += 1;
            continue;
        };
        let begins_its_line = text[..at].rsplit('\n').next().is_none_or(is_margin);
        let tag = tag_at(text, at, name, source, &code);
        if begins_its_line && tag.ends_its_line(text) {
            at = tag.resume_at;
            found.push(tag);
        } else {
            others = true;
            at = if begins_its_line { tag.open } else { at + 1 };
        }
    }
    (found, others)
}

fn tag_at(text: &str, start: usize, name: TagName, source: Source, code: &[bool]) -> FoundTag {
    if grammar(name).has_target {
        targeted_at(text, start, name)
    } else {
        payload_at(text, start, name, source, code)
    }
}

/// Reads a tag with a target. A malformed tag covers only its opening; an opening without an end
/// covers only its name.
fn targeted_at(text: &str, start: usize, name: TagName) -> FoundTag {
    let after_name = start + 1 + name.as_str().len();
    let (written, open) = match opening::attributes(text, after_name) {
        Ok(opening) => opening,
        // Nothing after the name is covered, so that a good tag right after it still counts.
        Err(Broken { end: None }) => return FoundTag::malformed(name, after_name, after_name),
        Err(Broken { end: Some(open) }) => {
            let end = closed_end(text, open, name).unwrap_or(open);
            return FoundTag::malformed(name, open, end);
        }
    };
    let malformed =
        || FoundTag::malformed(name, open, closed_end(text, open, name).unwrap_or(open));
    let Some((close, end)) = closing_after(text, open, name) else {
        return malformed();
    };
    let target = text[open..close].trim();
    if target.is_empty() || target.contains(['<', '\n']) || target.len() > MAX_NAME_BYTES {
        return malformed();
    }
    let Some(Meaning { known, unknown }) = opening::meaning(name, written) else {
        return malformed();
    };
    let tag = Tag { name, body: target.to_owned(), attributes: known };
    FoundTag { name, end, open, resume_at: end, tag: Some((tag, unknown)) }
}

/// Reads a tag whose payload is raw text.
///
/// A second opening in the payload, or a second closing after it, makes everything up to that
/// closing malformed. If the first closing is outside code, later closings in code are text. A
/// first closing in code may be a quotation, so any later closing makes the result malformed.
fn payload_at(text: &str, start: usize, name: TagName, source: Source, code: &[bool]) -> FoundTag {
    let after_name = start + 1 + name.as_str().len();
    let opening = opening::attributes(text, after_name);
    let open = match &opening {
        Ok((_, open)) => *open,
        Err(broken) => broken.end.unwrap_or(after_name),
    };
    let Some((close, end)) = closing_after(text, open, name) else {
        return FoundTag::malformed(name, open, open);
    };
    if (open..close).any(|at| opening::name_at(text, at, source) == Some(name)) {
        return FoundTag::uncertain(name, open, end);
    }
    let mut further = closing_after(text, end, name);
    while let Some((_, after)) = further.filter(|(at, _)| code[*at] && !code[close]) {
        further = closing_after(text, after, name);
    }
    if let Some((further, further_end)) = further
        && !(end..further).any(|at| !code[at] && opening::name_at(text, at, source).is_some())
    {
        return FoundTag::uncertain(name, open, further_end);
    }
    let body = &text[open..close];
    let is_question = !body.trim().is_empty() && body.len() <= 64 * 1024;
    let meaning = opening.ok().and_then(|(written, _)| opening::meaning(name, written));
    let meaning = meaning.filter(|_| name != TagName::Ask || is_question);
    let tag = meaning.map(|Meaning { known, unknown }| {
        let tag = Tag { name, body: body.to_owned(), attributes: known };
        (tag, unknown)
    });
    FoundTag { name, end, open, resume_at: end, tag }
}

/// Returns start and end of the next `</name>`, with optional whitespace before its `>`.
fn closing_after(text: &str, from: usize, name: TagName) -> Option<(usize, usize)> {
    let head = format!("</{name}");
    text[from..].match_indices(&head).find_map(|(at, _)| {
        let start = from + at;
        let rest = text[start + head.len()..].trim_ascii_start();
        let rest = rest.strip_prefix('>')?;
        Some((start, text.len() - rest.len()))
    })
}

/// Returns the end of a malformed tag if it has a closing.
fn closed_end(text: &str, from: usize, name: TagName) -> Option<usize> {
    let (close, end) = closing_after(text, from, name)?;
    let target = text[from..close].trim();
    (!target.contains(['<', '\n'])).then_some(end)
}
