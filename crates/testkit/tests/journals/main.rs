//! Golden journals: every build applies them to the same run, whichever release wrote them. If this
//! release would decide something differently, the difference is listed with its reason.
//!
//! `UPDATE=1` writes the missing ones. An existing one is never overwritten.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod coverage;
mod made;
mod source;

use std::collections::BTreeMap;

use raymond_engine::replay::replay;
use raymond_store::disk::RealDisk;
use raymond_testkit::journals::{Golden, all, directory};
use raymond_testkit::tally;

fn golden() -> Vec<Golden> {
    all().expect("golden journals")
}

// proves: P7
#[test]
fn every_golden_journal_applies_to_its_run() {
    for golden in golden() {
        let name = &golden.name;
        let run = golden.applied().unwrap_or_else(|why| panic!("{name}: {why}"));
        let run = serde_json::to_value(run).unwrap();
        let expected = golden.expected().unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(run, expected, "{name}");
        tally::count("journals", "applied", 1);
    }
}

/// Reads the known differences, each with its reason: `NAME: DIFFERENCE | REASON`.
fn known() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(directory().join("differences.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let known = lines.map(|line| {
        let (name, rest) = line.split_once(": ").expect("a name");
        let (difference, reason) = rest.rsplit_once(" | ").expect("a reason");
        assert!(!reason.trim().is_empty(), "{name} has no reason");
        (name.to_owned(), difference.to_owned())
    });
    known.collect()
}

// proves: P7
#[test]
fn replayed_decisions_match_or_differ_as_known() {
    let mut found = BTreeMap::new();
    for golden in golden() {
        let name = &golden.name;
        let replayed = replay(&RealDisk, &golden.journal(), &golden.blobs());
        let replayed = replayed.unwrap_or_else(|why| panic!("{name}: {why:?}"));
        if let Some(difference) = replayed.difference {
            found.insert(name.clone(), difference.to_string().replace('\n', "; "));
        } else {
            let run = serde_json::to_value(replayed.run).unwrap();
            assert_eq!(Ok(run), golden.expected(), "{name}");
        }
        tally::count("journals", "decided again", 1);
    }
    assert_eq!(found, known());
}

#[test]
fn golden_journals_contain_no_machine_paths() {
    // Journals from a real directory were rewritten as if that directory were `/project`.
    const MACHINE_PATHS: [&str; 4] = ["/tmp", "/root", "/work", "/Users"];
    for golden in golden() {
        let text = std::fs::read_to_string(golden.journal()).unwrap();
        let strange: Vec<&&str> =
            MACHINE_PATHS.iter().filter(|path| text.contains(**path)).collect();
        assert!(strange.is_empty(), "{} names {strange:?}", golden.name);
    }
}
