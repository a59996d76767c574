use std::collections::BTreeSet;

use super::*;

#[test]
fn every_code_is_listed_once_with_its_word() {
    let listed: BTreeSet<ProblemCode> = ProblemCode::ALL.into_iter().collect();
    assert_eq!(listed.len(), ProblemCode::ALL.len());
    // A variant added after the last one makes the list too short.
    assert_eq!(listed.last().map(|code| *code as usize), Some(ProblemCode::ALL.len() - 1));
    for code in ProblemCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert_eq!(format!("{code:>20}"), format!("{:>20}", code.as_str()));
    }
}

#[test]
fn every_code_has_a_cause_of_its_own() {
    let causes: BTreeSet<&str> = ProblemCode::ALL.iter().map(|code| code.cause()).collect();
    assert_eq!(causes.len(), ProblemCode::ALL.len());
}

#[test]
fn words_are_stable() {
    let words: Vec<&str> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    let expected = "not_json not_utf8 duplicate_key too_deep too_large unreadable wrong_type unknown_key \
        missing_key conflicting_keys unknown_kind unknown_word out_of_range bad_id \
        duplicate_id too_many_steps bad_name bad_text bad_path unknown_namespace \
        unknown_local too_early injection unknown_step unknown_result unusable_step escaping_path \
        missing_file bad_reference missing_schema unreadable_schema circular_schema invalid_schema \
        mixed_drafts \
        unasked_output stale_output invalid_output more_problems internal";
    assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>());
}
