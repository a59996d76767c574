//! Several inputs, one record: what stands in which step, and what follows by itself.

use super::play::{Play, prompts};
use crate::run::{Input, batch};
use crate::time::{Span, Timestamp};
use crate::value::Value;

#[test]
fn what_follows_stands_in_the_last_step_that_has_events() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let inputs = vec![play.finished("main", "no tag", |_| {}), Input::Due];
    let decided = batch(&mut play.run, &play.definition, Timestamp(1), inputs.clone());
    let causes: Vec<&Input> = decided.steps.iter().map(|step| &step.cause).collect();
    assert_eq!(causes, [&inputs[0]]);
}

#[test]
fn what_is_refused_lets_nothing_follow() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stumbles("main");
    let late = play.at + Span::minutes(60);
    let begin = play.begin();
    let refused = batch(&mut play.run, &play.definition, late, vec![begin]);
    assert_eq!((refused.steps.len(), refused.verdicts.len()), (0, 1));
    assert!(refused.verdicts[0].is_err());
    let due = batch(&mut play.run, &play.definition, late, vec![Input::Due]);
    assert_eq!(due.steps.len(), 1, "the retry was due all the time");
}

#[test]
fn whoever_changes_only_the_ground_starts_nothing() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stumbles("main");
    let late = play.at + Span::minutes(60);
    let adopt = Input::Adopt { manifest: Value::from("v2") };
    let adopted = batch(&mut play.run, &play.definition, late, vec![adopt]);
    let events: usize = adopted.steps.iter().map(|step| step.events.len()).sum();
    assert_eq!(events, 1, "{adopted:?}");
}
