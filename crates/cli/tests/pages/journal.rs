//! The page on the journal explains every event and every cause.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::top;

type Names = BTreeSet<String>;

#[test]
fn every_event_and_every_cause_is_explained() {
    let page = fs::read_to_string(top().join("docs/journal.md")).unwrap();
    let section = |heading: &str| {
        let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
        section.split("\n## ").next().unwrap().to_owned()
    };
    let rows = section("Events");
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `"));
    let heads = rows.map(|row| format!("`{}", row.split(" |").next().unwrap()));
    assert_eq!(heads.flat_map(|head| spoken(&head)).collect::<Names>(), known("event"));
    let causes = known("cause");
    let missing: Names = causes.difference(&spoken(&section("Causes"))).cloned().collect();
    assert_eq!(missing, Names::new(), "causes that the page does not name");
}

/// The names in backticks.
fn spoken(text: &str) -> Names {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names of all events, or of all causes: the fixture has every one of them.
fn known(what: &str) -> Names {
    let fixture = top().join("crates/core/tests/journal-format-1.jsonl");
    let lines = fs::read_to_string(fixture).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = lines.filter_map(|line| match line.get(what)? {
        Value::String(name) => Some(name.clone()),
        Value::Object(fields) => fields.keys().next().cloned(),
        _ => None,
    });
    let names: Names = names.collect();
    assert!(names.len() > 5, "the fixture is read wrongly: {names:?}");
    names
}
