//! Templates: replaces `{{name}}` in prompts, in one pass.
//!
//! An inserted value is never scanned again, so that nothing an agent writes can become a template.
//! Names are `[A-Za-z_][A-Za-z0-9_-]*`, with blanks allowed around them; other braces are text.
//! [`Bindings`] decides the meaning of names. Documents of steps have templates of their own in
//! [`crate::crayfish`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;

pub mod bindings;

pub use bindings::{Bindings, Bound};

/// A text with its names replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedText {
    pub text: String,
    /// Unknown names, each once, in order. They stay in the text as written.
    pub unknown: Vec<String>,
    /// Whether the text would be larger than [`LARGEST`], so that it is incomplete.
    pub too_large: bool,
}

/// Largest prompt, in bytes. A bound on memory: a template can repeat a large result many times.
pub const LARGEST: usize = 64 * 1024 * 1024;

/// Replaces the names of `body` that `lookup` knows.
pub fn render<'v>(
    body: &str,
    lookup: &mut dyn FnMut(&str) -> Option<Cow<'v, str>>,
) -> RenderedText {
    render_within(LARGEST, body, lookup)
}

fn render_within<'v>(
    largest: usize,
    body: &str,
    lookup: &mut dyn FnMut(&str) -> Option<Cow<'v, str>>,
) -> RenderedText {
    let mut rendered = RenderedText::default();
    let mut unknown = BTreeSet::new();
    let mut copied = 0;
    for Placeholder { name, span } in placeholders(body) {
        rendered.text.push_str(&body[copied..span.start]);
        copied = span.end;
        if let Some(value) = lookup(name) {
            // Tested before the copy: the value alone may be as large as the limit.
            if rendered.text.len() + value.len() > largest {
                rendered.too_large = true;
                return rendered;
            }
            rendered.text.push_str(&value);
        } else {
            rendered.text.push_str(&body[span]);
            if unknown.insert(name) {
                rendered.unknown.push(name.to_owned());
            }
        }
    }
    rendered.text.push_str(&body[copied..]);
    rendered
}

/// A name between braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder<'b> {
    pub name: &'b str,
    /// The bytes in the text, with the braces.
    pub span: Range<usize>,
}

/// Returns the placeholders of a text, in order.
pub fn placeholders(body: &str) -> impl Iterator<Item = Placeholder<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let open = from + memmem::find(&body.as_bytes()[from..], b"{{")?;
            if let Some((name, length)) = placeholder(&body[open..]) {
                from = open + length;
                return Some(Placeholder { name, span: open..from });
            }
            // Skip one brace and not two: in `{{{name}}` the second and third brace open the
            // placeholder.
            from = open + 1;
        }
    })
}

/// Returns whether a text is a valid name.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// Returns the name of the placeholder at the start of `text`, and the length of the placeholder.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let blank = |c| c == ' ' || c == '\t';
    let inner = text.strip_prefix("{{")?.trim_start_matches(blank);
    let (name, after) = inner.split_at(name_length(inner));
    let rest = after.trim_start_matches(blank).strip_prefix("}}")?;
    (!name.is_empty()).then_some((name, text.len() - rest.len()))
}

fn name_length(text: &str) -> usize {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let continues = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if starts { text.bytes().take_while(continues).count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lookup(name: &str) -> Option<Cow<'static, str>> {
        match name {
            "a" => Some("1".into()),
            "b-2_C" => Some("{{a}}".into()),
            "open" => Some("{{".into()),
            "empty" => Some("".into()),
            _ => None,
        }
    }

    #[test]
    fn names_between_braces_are_replaced_once() {
        let check = |body: &str, expected: &str, unknown: &[&str]| {
            let rendered = render(body, &mut lookup);
            assert_eq!(rendered.text, expected, "{body}");
            assert_eq!(rendered.unknown, unknown, "{body}");
        };
        check("", "", &[]);
        check("x {{a}} y", "x 1 y", &[]);
        check("{{ a }}{{\ta\t}}{{a}}", "111", &[]);
        check("{{b-2_C}}", "{{a}}", &[]);
        check("{{open}}a}}", "{{a}}", &[]);
        check("{{empty}}", "", &[]);
        check("{{{a}}}", "{1}", &[]);
        check("{{{{a}}}}", "{{1}}", &[]);
        check("{{ {{a}} }}", "{{ 1 }}", &[]);
        check("{{nope}} {{ nope }} {{NO}}", "{{nope}} {{ nope }} {{NO}}", &["nope", "NO"]);
        for text in [
            "{{}}", "{{ }}", "{{a", "{{a}", "{a}", "{{a b}}", "{{.a}}", "{{1a}}", "{{-a}}",
            "{{ä}}", "{{a\n}}", "{{a.b}}", "}}{{",
        ] {
            check(text, text, &[]);
        }
    }

    #[test]
    fn too_large_text_is_not_completed() {
        assert_eq!(LARGEST, 67_108_864);
        let check = |largest: usize, expected: &str, too_large: bool| {
            let rendered = render_within(largest, "ab{{a}}c{{b-2_C}}", &mut lookup);
            assert_eq!((rendered.text.as_str(), rendered.too_large), (expected, too_large));
        };
        check(10, "ab1c{{a}}", false);
        check(9, "ab1c{{a}}", false);
        check(8, "ab1c", true);
        check(3, "ab1c", true);
        check(2, "ab", true);
    }

    #[test]
    fn names_are_letters_digits_dashes_and_underscores() {
        for name in ["a", "_", "A-b_9"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "9", "-a", "a b", "a.b", "ä"] {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn hostile_braces_are_read_in_linear_time() {
        for piece in ["{", "{{ ", "{{a", "{{a ", "{{a}"] {
            let body = piece.repeat(100_000);
            assert_eq!(render(&body, &mut lookup).text, body);
        }
    }

    proptest! {
        // proves: S28
        #[test]
        fn inserted_values_are_never_scanned_again(
            pieces in proptest::collection::vec("[{}a-c ]{0,6}|\\{\\{x\\}\\}", 0..20),
            value in "[{}ax ]{0,8}",
        ) {
            let body = pieces.concat();
            let mut asked = 0;
            let rendered = render(&body, &mut |name| {
                asked += 1;
                (name == "x").then_some(Cow::Borrowed(value.as_str()))
            });
            // The same body with a value that holds no brace: only the values may differ.
            let marked = render(&body, &mut |name| (name == "x").then_some(Cow::Borrowed("\u{1}")));
            prop_assert_eq!(rendered.text, marked.text.replace('\u{1}', &value));
            prop_assert_eq!(rendered.unknown, marked.unknown);
            prop_assert!(asked <= body.matches("}}").count());
        }

        #[test]
        fn text_without_known_names_stays_as_it_is(body in "([{}a-z ]|\\PC|\n){0,60}") {
            prop_assert_eq!(render(&body, &mut |_| None).text, body);
        }
    }
}
