use serde_json::json;

use super::*;
use crate::crayfish::stored::written;
use crate::value::Hash;

fn key(text: &str) -> StepKey {
    text.parse().unwrap()
}

#[test]
fn stored_results_are_loaded_again() {
    let mut flow = StepsState::default();
    for name in ["a", "b"] {
        let stored = Stored::inline(json!({ "ok": true, "json": name }), true);
        flow.apply(&AgentId::main(), &StepEvent::Done { key: key(name), stored });
    }
    assert_eq!(flow.unread().count(), 0);
    let mut flow: StepsState =
        serde_json::from_value(serde_json::to_value(&flow).unwrap()).unwrap();
    let text = Value::from(r#"{"json":"b","ok":true}"#);
    assert_eq!(flow.unread().last(), Some((&key("b"), &text)));
    flow.read(&key("b"), json!({ "ok": true, "json": "b" }));
    flow.read(&key("gone"), json!(1));
    assert_eq!(flow.results[&key("b")].json(), Some(&json!({ "ok": true, "json": "b" })));
    assert_eq!(flow.unread().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn latest_result_has_the_highest_iteration() {
    let mut flow = StepsState::default();
    let stored = || Stored::inline(json!({ "ok": true }), true);
    for name in ["l[1].a", "l[10].a", "l[2].a", "z"] {
        flow.apply(&AgentId::main(), &StepEvent::Done { key: key(name), stored: stored() });
    }
    let stored = Some(Stored::inline(json!({ "ok": false }), false));
    flow.apply(&AgentId::main(), &StepEvent::Failed { key: key("f"), stored, contained: false });
    let latest: Vec<String> = flow.latest.values().map(ToString::to_string).collect();
    assert_eq!(latest, ["l[10].a", "f", "z"]);
}

#[test]
fn accepted_answer_is_stored_as_written() {
    let left = accepted(json!([1, "two"]));
    assert_eq!(left, json!({ "ok": true, "json": [1, "two"] }));
    assert_eq!(written(&left), left.to_string());
    let mut lengths = Vec::new();
    let mut store = |bytes: &[u8]| {
        lengths.push(bytes.len());
        Ok::<_, std::convert::Infallible>(Hash::of(bytes))
    };
    let Ok(stored) = Stored::keep(left.clone(), true, &mut store);
    assert_eq!(stored, Stored::inline(left.clone(), true));
    assert_eq!(stored.json(), Some(&left));
    let long = accepted("x".repeat(crate::value::INLINE_MAX).into());
    let Ok(stored) = Stored::keep(long.clone(), false, &mut store);
    assert_eq!(lengths, [written(&long).len()]);
    assert_eq!((stored.ok, stored.value.len()), (false, written(&long).len() as u64));
}
