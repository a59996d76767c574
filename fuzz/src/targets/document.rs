//! Documents of steps. Strict JSON is also JSON for the ordinary reader, every problem points into
//! the document, and a printed document is read as the same document.

use raymond_core::crayfish::reading::{self, Reason, UnreadableJson};
use raymond_core::crayfish::validate::{doubts, schemas};
use raymond_core::crayfish::{Document, Problem, explain};
use serde_json::Value;

use crate::Target;

/// A document, read and checked as a whole.
pub const TARGET: Target =
    Target { name: "document", inputs: 2_500, words: WORDS, memory: Target::MEMORY, check };

/// Words of documents; requests hold them, too.
pub(super) const WORDS: &[&str] = &[
    "\"steps\":[",
    "\"name\":",
    "\"version\":1,",
    "\"vars\":{",
    "\"env\":{",
    "\"id\":\"a\",",
    "\"kind\":\"exec\",",
    "\"kind\":\"agent\",",
    "\"kind\":\"if\",",
    "\"kind\":\"forEach\",",
    "\"kind\":\"while\",",
    "\"shell\":\"true\"",
    "\"run\":{\"kind\":\"cmd\",\"cmd\":\"x\",\"args\":[]}",
    "\"timeoutMs\":1,",
    "\"retries\":3,",
    "\"io\":{\"mode\":\"stream\",",
    "\"inputFrom\":\"a\"",
    "\"inputFrom\":{\"stepId\":\"a\",\"jsonPath\":\"$.x[0]\"}",
    "\"in\":[",
    "\"out\":[",
    "\"schema\":{",
    "\"outputSchema\":{}",
    "\"prompt\":\"p\",",
    "\"input\":",
    "\"session\":{\"mode\":\"sticky\",\"label\":\"l\"}",
    "\"assigneeAgentId\":\"x\"",
    "\"cond\":{\"exists\":\"$.vars.x\"}",
    "\"until\":{\"eq\":[\"$.results.a.json.x\",1]}",
    "\"then\":[",
    "\"else\":[]",
    "\"body\":[",
    "\"listPath\":\"$.vars.l\",",
    "\"itemVar\":\"i\",",
    "\"maxIters\":5,",
    "\"parallel\":true,",
    "\"maxParallel\":2,",
    "\"onError\":\"collect\"",
    "\"onMaxIters\":\"continue\"",
    "\"output\":[",
    "{{results.l.items[0].a.ok}}",
    "{{vars.x}}",
    "{{results.a.json.y}}",
    "{{locals.i}}",
    "{{ ",
    "}}",
    "$.vars",
    "$.results.a",
    "$.locals.i",
    "[0]",
    "\\ud83e",
    "\\u0000",
    "null",
    "true",
    "-0.0",
    "1e-7",
    "1E+2",
    "{}",
    "[]",
    "{\"",
    "\":",
    "},{",
    "]}",
    "NaN",
    "\"$ref\":\"Name\"",
];

fn check(bytes: &[u8]) {
    let read = reading::read(bytes);
    check_reading(bytes, &read);
    let Ok(value) = read else { return };
    let found = schemas(&value);
    assert!(found.iter().all(|(pointer, schema)| value.pointer(pointer) == Some(*schema)));
    let parsed = Document::parse(&value);
    // A run keeps its document as printed text and reads it again at every resume.
    let printed = reading::read(value.to_string().as_bytes()).expect("what is printed can be read");
    assert_eq!(printed, value, "printing changes the value");
    let again = Document::parse(&printed);
    assert_eq!(again, parsed, "reading again finds something else");
    match parsed {
        Ok(document) => check_document(&document, &value),
        Err(problems) => check_problems(&String::from_utf8_lossy(bytes), &problems),
    }
}

/// Checks that strict reading accepts only JSON, loses nothing, and reports where it stopped.
pub(super) fn check_reading(bytes: &[u8], read: &Result<Value, UnreadableJson>) {
    let ordinary = serde_json::from_slice::<Value>(bytes);
    match (read, ordinary) {
        (Ok(value), Ok(other)) => assert_eq!(*value, other, "two readers read something else"),
        (Ok(_), Err(error)) => {
            // The ordinary reader stops at 128 levels; the strict one has a limit of its own.
            assert!(error.to_string().contains("recursion limit"), "this is not JSON: {error}");
        }
        (Err(unread), other) => {
            // Readers disagree about duplicate keys, so a document with one could mean two things.
            let stricter = matches!(unread.reason, Reason::DuplicateKey(_) | Reason::TooDeep(_));
            assert!(stricter || other.is_err(), "this is JSON: {unread}");
            let before = String::from_utf8_lossy(&bytes[..unread.offset]);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let line = before.matches('\n').count() + 1;
            assert_eq!((unread.line, unread.column), (line, column), "{unread} is somewhere else");
        }
    }
}

/// Checks that problems are reported, that their texts are bounded, and that they point into the
/// text.
pub(super) fn check_problems(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty(), "it is refused, and nothing is said");
    // A thousand, and one that says how many more there are.
    assert!(problems.len() <= 1_001, "{} problems are told", problems.len());
    let places = reading::places(text, problems.iter().map(|problem| &*problem.path));
    assert_eq!(places.len(), problems.len());
    assert!(places.iter().all(|place| text.get(*place..).is_some()), "a place outside the text");
    for problem in problems {
        assert!(!problem.message.is_empty() && problem.message.len() < 64 << 10, "{problem:?}");
        assert!(problem.path.is_empty() || problem.path.starts_with('/'), "{problem:?}");
    }
}

/// Steps are where they say they are.
fn check_document(document: &Document, value: &Value) {
    for (index, step) in document.indexed() {
        let written =
            value.pointer(&document.pointer(index)).expect("a step stands in its document");
        assert_eq!(written["id"], step.id.as_str());
        assert_eq!(document.find(step.id.as_str()), Some(index));
    }
    assert!(document.schemas().all(|(pointer, schema)| value.pointer(&pointer) == Some(schema)));
    assert!(doubts(value).iter().all(|doubt| !doubt.message.is_empty()));
    assert!(!explain::title(document).contains('\n'));
    assert!(explain::lines(document).count() >= document.steps().len());
    assert!(explain::shared(document).len() <= 3);
}
