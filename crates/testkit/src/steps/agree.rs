//! Compares the core with the reference on random documents.
//!
//! A document that fails is shrunk step by step, because a random document has too many steps for a
//! person to see the cause.

use std::panic::catch_unwind;

use raymond_core::run::program::AnswerSource;
use serde_json::{Map, Value as Json};

use super::drive::{definition, drive};
use super::random;
use super::random_replies::RandomReplies;
use super::reference::interpret;
use crate::dice::Dice;
use crate::step_trace::StepTrace;
use crate::violation::Violation;

/// Compares both on the document of a seed, and returns the number of programs and questions.
pub fn agree(seed: u64) -> Result<usize, Violation> {
    agree_on(&random::document(seed), seed)
}

fn agree_on(document: &Json, seed: u64) -> Result<usize, Violation> {
    // Without large values, because this driver has no blobs.
    let (replies, vars) = (RandomReplies { large: 0, ..RandomReplies::new(seed) }, Map::new());
    let definition = definition(document, &vars)?;
    let expected = interpret(document, &vars, replies);
    for answers in [AnswerSource::Backend, AnswerSource::Caller] {
        let order = Dice::new(seed ^ 0x0dd5);
        drive(definition.clone(), replies, answers, order)
            .and_then(|found| compare(document, &expected, &found, answers).map_err(Violation))
            .map_err(|why| Violation(format!("{answers:?}: {why}")))?;
    }
    Ok(expected.ran.len() + expected.asked.len())
}

/// Returns the smallest document on which both still disagree, and the comparison.
pub fn shrink(seed: u64) -> (Vec<String>, Result<usize, Violation>) {
    let disagree = |document: &Json| {
        // A panic of the core counts as a disagreement.
        let wrong = catch_unwind(|| agree_on(document, seed));
        // Without a step, a document may become invalid, and would then fail for another reason.
        wrong.map_or(true, |agreed| agreed.is_err()) && definition(document, &Map::new()).is_ok()
    };
    let mut document = random::document(seed);
    if disagree(&document) {
        // Greedy: the first smaller document that still fails. The result is small, not the
        // smallest.
        while let Some(smaller) = smaller(&document).into_iter().find(&disagree) {
            document = smaller;
        }
    }
    let lines = format!("{document:#}").lines().map(str::to_owned).collect();
    (lines, agree_on(&document, seed))
}

/// Returns the document without one of its steps, for each step.
fn smaller(document: &Json) -> Vec<Json> {
    let mut pointers = vec!["/steps".to_owned()];
    let mut found = Vec::new();
    while let Some(pointer) = pointers.pop() {
        let steps = document.pointer(&pointer).and_then(Json::as_array);
        for number in 0..steps.map_or(0, Vec::len) {
            let mut less = document.clone();
            if let Some(list) = less.pointer_mut(&pointer).and_then(Json::as_array_mut) {
                list.remove(number);
            }
            found.push(less);
            let lists = ["then", "else", "body"];
            pointers.extend(lists.map(|list| format!("{pointer}/{number}/{list}")));
        }
    }
    found
}

/// Compares two traces.
///
/// If parallel iterations fail, the others may stop early. Then the core must do nothing that the
/// reference does not do, and must have the same first failure.
pub(super) fn compare(
    document: &Json,
    expected: &StepTrace,
    found: &StepTrace,
    answers: AnswerSource,
) -> Result<(), String> {
    if expected.is_indeterminate {
        return Ok(());
    }
    // The reference runs all iterations to their ends. The core stops starting steps after a
    // failure, so how far it gets depends on the order of events.
    let open = !expected.failures.is_empty() && has_parallel(&document["steps"]);
    let first = |trace: &StepTrace| trace.failures.first().cloned();
    let same_end = match answers {
        _ if !open => expected.failures == found.failures,
        // A step that waits for a caller does not fail any more after another step has failed.
        AnswerSource::Caller => {
            first(found).is_some_and(|first| expected.failures.contains(&first))
        }
        AnswerSource::Backend => first(expected) == first(found),
    };
    if !same_end {
        return Err(format!("fails with {:?}, not {:?}", found.failures, expected.failures));
    }
    let sets = [("runs", &expected.ran, &found.ran), ("asks", &expected.asked, &found.asked)];
    for (what, expected, found) in sets {
        if let Some(more) = found.difference(expected).next() {
            return Err(format!("{what} {more}, which is unexpected"));
        }
        if let Some(less) = expected.difference(found).next().filter(|_| !open) {
            return Err(format!("never {what} {less}"));
        }
    }
    let (results, attempts) = (&expected.results, &expected.attempts);
    for (key, left) in &found.results {
        if results.get(key) != Some(left) {
            return Err(format!("{key} leaves {left}, not {:?}", results.get(key)));
        }
    }
    for (key, attempt) in &found.attempts {
        let known = attempts.get(key).copied();
        // An iteration that stopped early may have used fewer attempts, but never more.
        if known != Some(*attempt) && !(open && known > Some(*attempt)) {
            return Err(format!("{key} asks for attempt {attempt}, not {known:?}"));
        }
    }
    if expected.output != found.output {
        return Err(format!("the output is {:?}, not {:?}", found.output, expected.output));
    }
    let complete = results.len() == found.results.len() && attempts.len() == found.attempts.len();
    if complete || open { Ok(()) } else { Err("results or attempts are missing".to_owned()) }
}

fn has_parallel(steps: &Json) -> bool {
    steps.as_array().into_iter().flatten().any(|step| {
        let lists = [&step["then"], &step["else"], &step["body"]];
        step["parallel"] == true || lists.into_iter().any(has_parallel)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn core_and_reference_agree_on_random_documents() {
        let (mut done, mut things) = (0, 0);
        for seed in FIRST..FIRST + SEEDS {
            match agree(seed) {
                Ok(count) => things += count,
                Err(why) => panic!("simulate stepped {seed}: {why}"),
            }
            let replies = RandomReplies::new(seed);
            let trace = interpret(&random::document(seed), &Map::new(), replies);
            done += u64::from(trace.failures.is_empty());
        }
        assert!(done > SEEDS / 3 && done < SEEDS, "{done} of {SEEDS} documents are done");
        assert!(things > 1_000, "{things} things happened");
    }

    fn both_agree(document: &Json) -> usize {
        agree_on(document, 4).unwrap_or_else(|why| panic!("{why}"))
    }

    fn exec(id: &str) -> Json {
        json!({ "id": id, "kind": "exec", "shell": "true", "retries": 5 })
    }

    #[test]
    fn many_steps_run_in_sequence() {
        let steps: Vec<Json> = (0..20_000).map(|n| exec(&format!("s{n}"))).collect();
        assert!(both_agree(&json!({ "steps": steps })) >= 20_000);
    }

    #[test]
    fn four_hundred_nested_levels_run() {
        let holds = json!({ "op": "exists", "path": "$.vars.l" });
        let inner = json!([exec("s")]);
        let steps = (0..400).fold(inner, |body, level| {
            let id = format!("l{level}");
            match level % 3 {
                0 => json!([{ "id": id, "kind": "if", "cond": holds, "then": body }]),
                1 => json!([{
                    "id": id, "kind": "forEach", "listPath": "$.vars.l", "itemVar": "x",
                    "parallel": level % 2 == 0, "body": body,
                }]),
                _ => json!([{
                    "id": id, "kind": "while", "maxIters": 1, "onMaxIters": "continue",
                    "until": { "op": "exists", "path": "$.vars.none" }, "body": body,
                }]),
            }
        });
        assert!(both_agree(&json!({ "vars": { "l": [1] }, "steps": steps })) > 0);
    }

    #[test]
    fn many_iterations_run_in_parallel() {
        let list: Vec<u32> = (0..1_000).collect();
        let ask = json!({
            "id": "v", "kind": "agent", "prompt": "{{locals.x}}", "schema": {}, "retries": 5,
            "session": { "mode": "sticky" },
        });
        let each = json!({
            "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
            "parallel": true, "onError": "collect", "body": [exec("a"), ask],
        });
        assert!(both_agree(&json!({ "vars": { "list": list }, "steps": [each] })) >= 1_000);
    }

    const FIRST: u64 = 0;
    const SEEDS: u64 = 1_200;
}
