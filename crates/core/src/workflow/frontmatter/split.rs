//! Splits a prompt into frontmatter and body.
//!
//! Only lines are compared here, without YAML: a prompt without frontmatter needs no parser, and
//! the body must stay as it is, byte for byte.

use std::ops::Range;

use super::KEYS;

/// The parts of a prompt, as bytes of its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// The YAML between the `---` lines; `None` if the text does not start with `---`.
    pub(super) block: Option<Range<usize>>,
    /// The start of the body.
    pub(super) body: usize,
}

/// The error that no second `---` closes the frontmatter, with the bytes of the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclosed(pub(super) Range<usize>);

/// Splits a prompt at the lines `---`.
pub(super) fn split(text: &str) -> Result<Split, Unclosed> {
    // Editors on Windows write a byte order mark, which must hide neither frontmatter nor body.
    let top = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[top..].split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| is_fence(line)) else {
        return Ok(Split { block: None, body: top });
    };
    let start = top + opening.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Ok(Split { block: Some(start..end), body: end + line.len() });
        }
        end += line.len();
    }
    Err(Unclosed(top..top + 3))
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches(['\n', '\r', ' ', '\t']) == "---"
}

/// Lines at the top of a prompt in which misplaced frontmatter is searched, without blank ones.
const SEARCHED: usize = 5;

/// Returns the line of a prompt without frontmatter that looks like the start of one: a rule that a
/// known key follows, or a known key at the very top with a `---` after it. Sent as text, the keys
/// would silently lose their effect.
pub(super) fn misplaced(text: &str) -> Option<Range<usize>> {
    let mut last: Option<(Range<usize>, &str)> = None;
    let mut place = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        place += line.len();
        (place - line.len()..place - line.len() + line.trim_end().len(), line.trim_end())
    });
    for (span, line) in lines.filter(|(_, line)| !line.is_empty()).take(SEARCHED) {
        if names_a_key(line) {
            match &last {
                Some((rule, before)) if is_rule(before) => return Some(rule.clone()),
                None if text[span.end..].lines().any(is_fence) => return Some(span),
                Some(_) | None => {}
            }
        }
        last = Some((span, line));
    }
    None
}

/// Returns whether a line could be meant as the opening of frontmatter: `----`, `+++`, or a block
/// of YAML in Markdown.
fn is_rule(line: &str) -> bool {
    let is_of = |mark: char| line.len() >= 3 && line.chars().all(|c| c == mark);
    is_of('-') || is_of('+') || matches!(line, "```yaml" | "```yml")
}

fn names_a_key(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, _)| KEYS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_is_between_two_fences() {
        let check = |text: &str, block: Option<&str>, body: &str| {
            let split = split(text).unwrap();
            assert_eq!(
                (split.block.map(|span| &text[span]), &text[split.body..]),
                (block, body),
                "{text:?}"
            );
        };
        check("", None, "");
        check("hello\n", None, "hello\n");
        check("---\na: 1\n---\nbody\n", Some("a: 1\n"), "body\n");
        check("---\r\na: 1\r\n---\r\nbody\r\n", Some("a: 1\r\n"), "body\r\n");
        check("\u{feff}---\na: 1\n---\nbody", Some("a: 1\n"), "body");
        check("\u{feff}body", None, "body");
        check("---\n---\n\nbody", Some(""), "\nbody");
        check("---  \na: 1\n--- \t\nbody", Some("a: 1\n"), "body");
        check("---\na: 1\n---", Some("a: 1\n"), "");
        check("---\na: |\n  ---\n---\nb", Some("a: |\n  ---\n"), "b");
        check("---\na: 1\n---\none\n---\ntwo", Some("a: 1\n"), "one\n---\ntwo");
        check("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n");
        check("----\na\n----\n", None, "----\na\n----\n");
        check("--- # note\n", None, "--- # note\n");
    }

    #[test]
    fn an_open_end_is_a_mistake() {
        for text in ["---", "---\n", "---\na: 1\n", "---\na: 1\n --- \n", "---\r\na: 1\r\n----\r\n"]
        {
            assert_eq!(split(text), Err(Unclosed(0..3)), "{text:?}");
        }
    }

    #[test]
    fn misplaced_frontmatter_is_found() {
        let check = |text: &str, found: Option<&str>| {
            assert_eq!(misplaced(text).map(|span| &text[span]), found, "{text:?}");
        };
        check("\n---\nbudget: 1\n---\nx", Some("---"));
        check("# Fix\n\n---\nbudget: 1\n---\nx", Some("---"));
        check("----\nmax_visits: 2\n----\nx", Some("----"));
        check("```yaml\nallow: [Edit]\n```\nx", Some("```yaml"));
        check("budget: 0.6\nmax_visits: 2\n---\nx", Some("budget: 0.6"));
        for prompt in [
            "",
            "Fix it.\n---\nThen stop.\n",
            "# Fix\n---\nsteps: one\n",
            "model: a sentence that begins like a key\n",
            "Read this:\nmodel: x\n---\n",
            "1\n2\n3\n4\n5\n---\nbudget: 1\n---\n",
        ] {
            check(prompt, None);
        }
    }
}
