//! Several inputs in one record: the step of each event, and the events without an input.

use super::play::{Play, prompts, turn};
use crate::decide::batch;
use crate::decide::batch::batch_of;
use crate::protocol::Notice;
use crate::run::{DiscardedCost, Event, Input, apply};
use crate::time::{Span, Timestamp};
use crate::value::Value;

#[test]
fn following_events_belong_to_the_last_step() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let inputs = vec![play.finished("main", "", |_| {}), Input::Due];
    let decided = batch(&mut play.run, &play.definition, Timestamp(1), inputs.clone());
    let causes: Vec<&Input> = decided.steps.iter().map(|step| &step.cause).collect();
    assert_eq!(causes, [&inputs[0]]);
}

#[test]
fn refused_input_leads_to_no_events() {
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
fn adopt_and_rewind_start_no_turn() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    // A turn that could start at once: a rewind may leave one in the last kept record.
    let requeued =
        Event::TurnRequeued { turn: turn("main.1.1"), order: 1, notice: Notice::Interrupted };
    apply(&mut play.run, &requeued);
    let mut starts = |input: Input| -> bool {
        let decided = batch(&mut play.run, &play.definition, play.at, vec![input]);
        assert_eq!(decided.verdicts, [Ok(())]);
        !play.run.scheduler.in_flight.is_empty()
    };
    assert!(!starts(Input::Adopt { manifest: Value::from("v2"), changed: Vec::new() }));
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
fn events_beyond_a_records_limit_follow_later() {
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
