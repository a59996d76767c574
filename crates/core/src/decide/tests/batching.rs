//! Several inputs, one record: what stands in which step, and what follows by itself.

use super::play::{Play, prompts, turn};
use crate::decide::batch;
use crate::decide::batch::batch_of;
use crate::protocol::Notice;
use crate::run::{DiscardedCost, Event, Input, apply};
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
    // A turn that could start at once, as a record that is the last one kept may leave it.
    let requeued =
        Event::TurnRequeued { turn: turn("main.1.1"), order: 1, notice: Notice::Interrupted };
    apply(&mut play.run, &requeued);
    let mut starts = |input: Input| -> bool {
        let decided = batch(&mut play.run, &play.definition, play.at, vec![input]);
        assert_eq!(decided.verdicts, [Ok(())]);
        !play.run.scheduler.in_flight.is_empty()
    };
    assert!(!starts(Input::Adopt { manifest: Value::from("v2") }));
    assert!(!starts(Input::Rewind {
        kept: 3,
        nonce: "new".into(),
        discarded: DiscardedCost::default(),
        again: Vec::new(),
        governed: None,
    }));
    assert!(starts(Input::Due));
}

#[test]
fn what_follows_beyond_the_most_of_a_record_follows_later() {
    let check = |most: usize, expected: (usize, bool)| {
        let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
        let forks = r#"<fork next="A">W</fork>"#.repeat(3);
        let inputs = vec![play.finished("main", &forks, |_| {})];
        let decided = batch_of(most, &mut play.run, &play.definition, Timestamp(1), inputs);
        assert_eq!((play.run.scheduler.in_flight.len(), decided.more), expected, "{most}");
        let rest = batch(&mut play.run, &play.definition, Timestamp(2), vec![Input::Due]);
        assert_eq!((play.run.scheduler.in_flight.len(), rest.more), (4, false), "{most}");
    };
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", &r#"<fork next="A">W</fork>"#.repeat(3));
    let all = play.last.len();
    check(all, (4, false));
    check(all - 1, (4, true));
    check(all - 2, (3, true));
    check(0, (1, true));
}
