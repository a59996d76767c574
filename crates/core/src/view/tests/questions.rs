//! Questions to a person, as viewers see them.

use insta::assert_snapshot;

use super::{ledger, shown};
use crate::decide::tests::play::{Play, workflow};
use crate::run::Input;
use crate::time::{Span, Timestamp};
use crate::view::plan::Plan;
use crate::view::run_view::OpenQuestion;
use crate::view::{OwnerState, RunView};

fn asking(attributes: &str) -> Play {
    let states = [("A.md", "---\nallowed_tags: [ask]\n---\na"), ("D.md", "d"), ("E.md", "e")];
    let mut play = Play::new(workflow(&states)).started();
    play.says("main", &format!("<ask next=\"D\"{attributes}>Shall I?</ask>"));
    play
}

fn open_question(attributes: &str) -> Option<OpenQuestion> {
    let play = asking(attributes);
    let view = RunView::of(&play.run, &ledger(&play));
    view.agents().find_map(|(_, row)| row.question.clone())
}

#[test]
fn question_is_due_after_its_timeout() {
    let asked = Timestamp(0);
    let timed = open_question(" timeout=\"1m\" then=\"E\"").unwrap();
    assert_eq!(timed.due(), Some(asked + Span::minutes(1)));
    assert_eq!(open_question("").unwrap().due(), None);
}

#[test]
fn answered_agent_can_continue() {
    let mut play = asking(" options=\"yes|no\"");
    let waiting = |play: &Play| Plan::of(&play.run, &ledger(play), &play.settings).waiting;
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"waiting: main asks: Shall I? (yes | no): Answer { agent: Some("main"), options: ["yes", "no"] }"#);
    assert_eq!((play.run.answered_agents(), waiting(&play)), (0, 1));
    let ask = play.run.scheduler.asks.keys().next().cloned().unwrap();
    let (value, by, key) = ("yes".into(), "ada".to_owned(), "k".to_owned());
    play.feed(vec![Input::Answer { ask, value, by, key }]);
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: an agent can continue with its answer: Resume([])");
    assert_eq!((play.run.answered_agents(), waiting(&play)), (1, 0));
}
