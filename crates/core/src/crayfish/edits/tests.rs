use serde_json::{Value as Json, json};

use super::*;
use crate::crayfish::Document;
use crate::crayfish::stored::Stored;

const PLAIN: &str = r#"{
  "env": { "A": "{{vars.a}}" },
  "vars": { "a": 1, "b": 2, "list": [1, 2], "unused": 3 },
  "steps": [
    { "id": "build", "kind": "exec", "shell": "make {{vars.b}}", "retries": 2 },
    { "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "body": [
      { "id": "judge", "kind": "agent", "prompt": "Judge {{locals.x}}.", "schema": {} } ] },
    { "id": "write", "kind": "exec", "shell": "true" },
    { "id": "extra", "kind": "exec", "shell": "true" }
  ]
}"#;

fn definition(document: &Json) -> StepsDefinition {
    let document = Document::parse(document).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let vars = document.vars.clone();
    StepsDefinition { document, vars }
}

fn edits(edit: impl FnOnce(&mut Json)) -> Edits {
    let plain: Json = serde_json::from_str(PLAIN).unwrap();
    let mut now = plain.clone();
    edit(&mut now);
    let mut state = StepsState::default();
    for (key, ok) in [("build", true), ("each[0].judge", true), ("write", false)] {
        state.results.insert(key.parse().unwrap(), Stored::inline(json!({ "ok": ok }), ok));
    }
    Edits::between(&definition(&plain), &definition(&now), &state)
}

fn shown(conflict: &Conflict) -> String {
    match conflict {
        Conflict::Changed { step, differences } => format!("{step}: {}", differences.join(", ")),
        Conflict::Returned { step } => format!("{step}: returned"),
        Conflict::FewerAttempts { step, attempts } => format!("{step}: {attempts} attempts"),
        Conflict::EndedLoop { step } => format!("{step}: ended"),
    }
}

/// Checks the conflicts after a value in the document was replaced.
fn check(pointer: &str, value: Json, expected: &[&str]) {
    let edits = edits(|document| match document.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = document.pointer_mut(parent).and_then(Json::as_object_mut).unwrap();
            parent.insert(key.to_owned(), value);
        }
    });
    let conflicts = edits.conflicts.iter().map(shown);
    assert_eq!(conflicts.collect::<Vec<_>>(), expected, "{pointer}");
}

#[test]
fn finished_step_keeps_its_meaning() {
    check("/steps/0/shell", json!("make all"), &["build: `shell`"]);
    check("/steps/0/env", json!({ "B": "2" }), &["build: `env`"]);
    check("/steps/0/io", json!({ "mode": "stream" }), &["build: `io`"]);
    check("/steps/1/body/0/prompt", json!("Judge."), &["judge: `prompt`"]);
    check("/steps/1/body/0/schema", json!(true), &["judge: `schema`"]);
    check("/steps/1/body/0/input", json!(1), &["judge: `input`"]);
    check("/vars/b", json!(9), &["build: the variable `b`"]);
    check("/vars/list", json!([1]), &["judge: the variable `list`"]);
    check("/env/A", json!("x"), &["build: `env` of the document"]);
    check("/vars/a", json!(9), &["build: the variable `a`"]);
    check("/steps/1/parallel", json!(true), &["judge: `parallel` of the loop each"]);
    let body = json!([
        { "id": "judge", "kind": "agent", "prompt": "Judge {{locals.y}}.", "schema": {} } ]);
    let each = json!({ "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "y",
        "body": body });
    check("/steps/1", each, &["judge: `prompt`, `itemVar` of the loop each"]);
    let exec = json!({ "id": "judge", "kind": "exec", "shell": "true" });
    let conflict = "judge: `kind`, the loops around it, `env` of the document";
    let edits = edits(|document| {
        document["steps"][1]["body"] = json!([]);
        document["steps"][3] = exec;
        document["env"] = json!({});
    });
    assert_eq!(edits.conflicts.last().map(shown).as_deref(), Some(conflict));
}

#[test]
fn unfinished_steps_and_limits_may_change() {
    check("/steps/0/retries", json!(5), &[]);
    check("/steps/0/timeoutMs", json!(5), &[]);
    check("/steps/0/description", json!("builds"), &[]);
    check("/steps/1/body/0/retries", json!(5), &[]);
    check("/steps/1/body/0/model", json!("small"), &[]);
    check("/steps/2/shell", json!("touch done"), &[]);
    check("/steps/3/kind", json!("exec"), &[]);
    check("/vars/unused", json!(4), &[]);
    check("/vars/more", json!(4), &[]);
    check("/name", json!("other"), &[]);
}

#[test]
fn steps_are_changed_added_and_removed() {
    let ids = |ids: &[StepId]| ids.iter().map(StepId::as_str).collect::<Vec<_>>().join(" ");
    let edits = edits(|document| {
        document["steps"][0]["retries"] = json!(1);
        document["steps"][2]["shell"] = json!("touch done");
        document["steps"][3]["id"] = json!("new");
    });
    let found = [ids(&edits.changed), ids(&edits.added), ids(&edits.removed)];
    assert_eq!(found, ["build write", "new", "extra"]);
    assert_eq!(Edits::default(), self::edits(|_| {}));
}

#[test]
fn step_that_returns_is_refused() {
    // `gone` had a result before an earlier edit removed it.
    let plain: Json = serde_json::from_str(PLAIN).unwrap();
    let mut state = StepsState::default();
    state.results.insert("gone".parse().unwrap(), Stored::inline(json!(1), true));
    let mut now = plain.clone();
    now["steps"][3]["id"] = json!("gone");
    let edits = Edits::between(&definition(&plain), &definition(&now), &state);
    assert_eq!(edits.conflicts.iter().map(shown).collect::<Vec<_>>(), ["gone: returned"]);
}

#[test]
fn limits_fit_what_has_happened() {
    let document = |retries: u32, most: u32| {
        let body = json!([{ "id": "ask", "kind": "agent", "prompt": "?", "schema": {}, "retries": retries }]);
        let until = json!({ "op": "exists", "path": "$.results.ask" });
        definition(&json!({ "steps": [
            { "id": "again", "kind": "while", "until": until, "maxIters": most, "body": body },
            { "id": "after", "kind": "exec", "shell": "true" },
        ] }))
    };
    let mut state = StepsState::default();
    state.attempts.insert("again[0].ask".parse().unwrap(), 3);
    let check = |state: &StepsState, retries: u32, most: u32, expected: &[&str]| {
        let edits = Edits::between(&document(5, 2), &document(retries, most), state);
        assert_eq!(edits.conflicts.iter().map(shown).collect::<Vec<_>>(), expected);
    };
    check(&state, 2, 2, &["ask: 3 attempts"]);
    check(&state, 3, 4, &[]);
    state.results.insert("after".parse().unwrap(), Stored::inline(json!(1), true));
    check(&state, 5, 4, &["again: ended"]);
}
