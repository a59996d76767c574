//! Splits a prompt into frontmatter and body.
//!
//! Only lines are compared here, without YAML: a prompt without frontmatter needs no parser, and
//! the body must stay as it is, byte for byte.

use std::ops::Range;

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
}
