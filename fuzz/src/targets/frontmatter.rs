//! Prompts: every mistake has a place inside the text, and reading twice gives the same result.

use std::borrow::Cow;

use raymond_core::diagnostic::Diagnostic;
use raymond_core::extension::Platform;
use raymond_core::workflow::{Definition, EntryPoint, SourceFile, frontmatter, template};

use crate::Target;

/// The frontmatter of a prompt, its template, and a workflow of nothing else.
pub const TARGET: Target = Target {
    name: "frontmatter",
    inputs: 2_000,
    words: &[
        "---\n",
        "---",
        "allowed_tags: ",
        "allowed_targets:\n  goto: ",
        "allowed_transitions:\n  - ",
        "{tag: goto, target: START}",
        "{ tag: fork, target: A, next: B }",
        "- {child: A, return: B}",
        "model: ",
        "effort: high\n",
        "backend: codex\n",
        "permission_mode: plan\n",
        "allow: [Bash]\n",
        "deny: [\"Bash(rm:*)\"]\n",
        "on_denied: fail\n",
        "add_dirs: [..]\n",
        "mcp_config: x.json\n",
        "append_system_prompt: |\n  text\n",
        "timeout: 90s\n",
        "idle_timeout: 1h\n",
        "max_visits: 3\n",
        "then: START\n",
        "budget: 0.50\n",
        "description: \"x\"\n",
        "&a ",
        "*a",
        "<<: *a",
        "!!str ",
        "? ",
        "| ",
        ">-\n",
        "{{result}}",
        "{{ name }}",
        "{{{",
        "}}",
        "%YAML 1.1\n",
        "...",
        "\u{feff}",
        ".inf",
        "0x1F",
        "~",
    ],
    memory: Target::MEMORY,
    check,
};

fn check(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let prompt = frontmatter::parse(text);
    assert!(text.ends_with(prompt.body), "the body is the end of the text");
    let spans = prompt.keys.iter().map(|key| &key.span);
    for span in spans.chain(prompt.mentions.iter().map(|mention| &mention.span)) {
        assert!(text.get(span.clone()).is_some(), "{span:?} is not inside the text");
    }
    check_places(text, &prompt.diagnostics);
    assert_eq!(frontmatter::parse(text), prompt, "reading again finds something else");
    check_template(prompt.body);
    check_definition(bytes);
}

/// Checks that every mistake is in the text, at its reported line and column.
pub(super) fn check_places(text: &str, diagnostics: &[Diagnostic]) {
    // To look at all of many would take longer than to find them.
    for found in diagnostics.iter().take(50).chain(diagnostics.last()) {
        assert!(!found.message.is_empty(), "{found:?} says nothing");
        let Some(place) = &found.place else { continue };
        assert!(text.get(place.span.clone()).is_some(), "{found:?} is not inside the text");
        let before = &text[..place.span.start];
        let line = before.rsplit('\n').next().unwrap_or_default();
        let expected = (before.matches('\n').count() + 1, line.chars().count() + 1);
        assert_eq!((place.line, place.column), expected, "{found:?} is somewhere else");
    }
}

/// Values are never looked at again, and what means nothing stays as it was.
fn check_template(body: &str) {
    let rendered = template::render(body, &mut |_| None);
    assert_eq!(rendered.text, body, "a template without values changes the text");
    // A value comes from a model. If it were read as a template, it could ask for other values.
    let value = "{{result}}{{";
    let rendered = template::render(body, &mut |_| Some(Cow::Borrowed(value)));
    assert!(rendered.unknown.is_empty(), "every name is known");
    // Rendered once with a mark that is not a template: replacing the mark must give the same text.
    let marked = template::render(body, &mut |_| Some(Cow::Borrowed("\u{1}")));
    if !body.contains('\u{1}') {
        assert_eq!(rendered.text, marked.text.replace('\u{1}', value), "a value was looked at");
    }
}

fn check_definition(bytes: &[u8]) {
    let file =
        |name: &str| SourceFile { name: name.to_owned(), bytes: bytes.into(), executable: false };
    let parse = || {
        Definition::parse(vec![file("START.md"), file("A.md")], &EntryPoint::Entry, Platform::Unix)
    };
    match (parse(), parse()) {
        (Ok(one), Ok(other)) => assert_eq!(one.warnings, other.warnings),
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(!one.is_empty(), "a workflow is refused, and nothing is said");
            check_places(&String::from_utf8_lossy(bytes), &one);
        }
        _ => panic!("reading a workflow again finds something else"),
    }
}
