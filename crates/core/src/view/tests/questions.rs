//! Questions to a person, as viewers see them.

use super::ledger;
use crate::decide::tests::play::{Play, workflow};
use crate::time::{Span, Timestamp};
use crate::view::RunView;
use crate::view::run_view::OpenQuestion;

fn open_question(attributes: &str) -> Option<OpenQuestion> {
    let states = [("A.md", "---\nallowed_tags: [ask]\n---\na"), ("D.md", "d"), ("E.md", "e")];
    let mut play = Play::new(workflow(&states)).started();
    play.says("main", &format!("<ask next=\"D\"{attributes}>Shall I?</ask>"));
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
