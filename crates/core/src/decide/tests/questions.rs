//! `ask`: an agent waits for the answer of a person.

use insta::assert_snapshot;

use super::play::{Play, usd, workflow};
use crate::decide::{Refusal, decide};
use crate::protocol::Fault;
use crate::run::prepared_answers::{PreparedAnswers, StateAnswers};
use crate::run::stop::StopMode;
use crate::run::{Ending, Event, Input, Phase};
use crate::time::Span;
use crate::value::Value;

const OPEN: &str = "---\nallowed_tags: [ask, goto, fork, result]\n---\na";

fn play() -> Play {
    let states = [("A.md", OPEN), ("D.md", "d"), ("E.md", "e"), ("W.sh", "w")];
    Play::new(workflow(&states)).started()
}

fn asking(attributes: &str) -> Play {
    let mut play = play();
    play.says("main", &format!("<ask next=\"D\"{attributes}>Shall I?</ask>"));
    play
}

fn answer(play: &Play, text: &str, key: &str) -> Input {
    let ask = play.run.scheduler.asks.keys().next().cloned();
    Input::Answer {
        ask: ask.unwrap_or_else(|| "main.1.1".parse().unwrap()),
        value: Value::Inline(text.to_owned()),
        by: "ada".to_owned(),
        key: key.to_owned(),
    }
}

#[test]
fn answer_leads_to_the_next_state() {
    let mut play = play();
    assert_snapshot!(play.says("main", "<ask next=\"D\" options=\"yes|no\">Shall I?</ask>"), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main asks main.1.1 to enter D.md
    ask main.1.1: Shall I?
    ended: NeedsPerson
    ");
    assert_eq!((play.run.parked, play.run.phase), (1, Phase::Ended(Ending::NeedsPerson)));
    let yes = answer(&play, " YES ", "k");
    assert_snapshot!(play.feed(vec![yes]), @"answer main.1.1: yes");
    assert_snapshot!(play.scene(), @r#"
    Ended(NeedsPerson): $0.10 spent
    main at A.md: has the answer Inline("yes")
    "#);
    assert_snapshot!(play.resume(), @r#"
    resumed
    main ask: at main.1.1
    main enters D.md (1) as visit 2 with "yes"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.agent("main").visit.input, Some(Value::from("yes")));
}

#[test]
fn running_run_continues_at_once() {
    let mut play = play();
    play.says("main", "<fork next=\"A\">W</fork>");
    play.says("main", "<ask next=\"D\">Shall I?</ask>");
    assert_eq!(play.run.phase, Phase::Open, "the worker works");
    let any = answer(&play, "any text", "k");
    assert_snapshot!(play.feed(vec![any]), @r#"
    answer main.2.1: any text
    main ask: at main.1.1, forks 1
    main enters D.md (1) as visit 3 with "any text"
    queue main.3.1 at 3 for claude: resume main.1.1
    start main.3.1 #1 with $4.90: resume main.1.1
    "#);
}

#[test]
fn one_answer_counts() {
    let mut play = asking(" options=\"yes|no\"");
    let (first, second) = (answer(&play, "2", "k1"), answer(&play, "yes", "k2"));
    play.feed(vec![first.clone()]);
    assert_eq!(play.feed(vec![first]), "", "the same request again");
    let refused = decide(&play.run, &play.definition, play.at, &second);
    let ask = "main.1.1".parse().unwrap();
    assert_eq!(refused, Err(Refusal::NoSuchQuestion(ask)));
}

#[test]
fn other_words_are_refused() {
    let play = asking(" options=\"yes|no\"");
    for text in ["perhaps", "0", "3", ""] {
        let refused = decide(&play.run, &play.definition, play.at, &answer(&play, text, "k"));
        let message = refused.unwrap_err().to_string();
        let expected =
            format!("could not answer `main`: {text:?} is not an option; choose yes or no");
        assert_eq!(message, expected);
    }
}

#[test]
fn expired_question_has_a_state_or_an_answer() {
    let mut play = asking(" timeout=\"1m\" then=\"E\"");
    assert_eq!(play.run.phase, Phase::Open, "the process waits for the time");
    assert_snapshot!(play.after(Span::minutes(1)), @r#"
    main.1.1 expires
    main ask: at main.1.1
    main enters E.md (1) as visit 2 with ""
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    let mut play = asking(" options=\"yes|no\" timeout=\"1m\" default=\"No\"");
    assert_snapshot!(play.after(Span::minutes(1)), @r#"
    answer main.1.1: no
    main ask: at main.1.1
    main enters D.md (1) as visit 2 with "no"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.agent("main").visit.input, Some(Value::from("no")));
}

#[test]
fn first_of_answer_and_expiry_counts() {
    let mut play = asking(" timeout=\"1m\" then=\"E\"");
    play.at = play.at + Span::minutes(1);
    let late = answer(&play, "yes", "k");
    play.feed(vec![Input::Due, late]);
    assert_eq!(play.agent("main").visit.location.to_string(), "E.md");

    let mut play = asking(" timeout=\"1m\" then=\"E\"");
    play.at = play.at + Span::minutes(1);
    let just_in_time = answer(&play, "yes", "k");
    play.feed(vec![just_in_time, Input::Due]);
    assert_eq!(play.agent("main").visit.location.to_string(), "D.md");
}

#[test]
fn resume_settles_an_expired_question() {
    let mut play = asking(" timeout=\"1m\" then=\"E\"");
    play.stop(StopMode::Now);
    play.at = play.at + Span::minutes(2);
    play.resume();
    assert_eq!(play.agent("main").visit.location.to_string(), "E.md");
}

#[test]
fn prompt_asks_only_if_its_policy_names_it() {
    let states = [("A.md", "a"), ("D.md", "d")];
    let check = |text: &str, expected: &str| {
        let mut play = Play::new(workflow(&states)).started();
        play.says("main", text);
        let is_reminder =
            |event: &Event| matches!(event, Event::Reminded { fault: Fault::Forbidden { .. }, .. });
        let place = play.agent("main").visit.location.to_string();
        let found = if play.last.iter().any(is_reminder) { "reminded" } else { &place };
        assert_eq!(found, expected, "{text}");
    };
    check("<ask next=\"D\">Shall I?</ask>", "reminded");
    check("<ask>Shall I?</ask>", "reminded");
    check("<ask next=\"D\">Shall I?</ask> <goto>D</goto>", "D.md");
    check("I could <ask>. <goto>D</goto>", "D.md");
}

#[test]
fn cancelled_run_closes_its_questions() {
    let mut play = asking("");
    play.stop(StopMode::Cancel);
    let late = decide(&play.run, &play.definition, play.at, &answer(&play, "yes", "k"));
    assert_eq!(late, Err(Refusal::Ended(Ending::Cancelled)));
}

#[test]
fn limit_of_next_state_counts_with_answer() {
    let limited = "---\nmax_visits: 1\n---\nd";
    let states = [("A.md", OPEN), ("D.md", limited), ("E.md", "e")];
    let mut play = Play::new(workflow(&states)).started();
    play.says("main", "<goto>D</goto>");
    play.says("main", "<goto>A</goto>");
    play.says("main", "<ask next=\"D\">Again?</ask>");
    let yes = answer(&play, "yes", "k");
    play.feed(vec![yes]);
    assert_snapshot!(play.resume(), @"
    resumed
    main fails: D.md reached its limit of 1 visit and has no `then`, kept
    ended: Failed
    ");
    assert_eq!(play.run.spent, usd("0.30"));
}

#[test]
fn replies_answer_at_once() {
    let answers = |answer: &str| {
        let answers = StateAnswers::ByVisit(vec![answer.to_owned()]);
        PreparedAnswers([("A".to_owned(), answers)].into())
    };
    let mut play = play();
    play.run.settings.answers = answers("YES");
    assert_snapshot!(play.says("main", "<ask next=\"D\" options=\"yes|no\">Shall I?</ask>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main asks main.1.1 to enter D.md
    ask main.1.1: Shall I?
    answer main.1.1: yes
    main ask: at main.1.1
    main enters D.md (1) as visit 2 with "yes"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.agent("main").visit.input, Some(Value::from("yes")));

    let mut play = self::play();
    play.run.settings.answers = answers("maybe");
    assert_snapshot!(play.says("main", "<ask next=\"D\" options=\"yes|no\">Shall I?</ask>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main asks main.1.1 to enter D.md
    ask main.1.1: Shall I?
    warn main: the answer "maybe" in the replies is not an option; the options are yes, no
    ended: NeedsPerson
    "#);
    let open = answer(&play, "no", "k");
    play.feed(vec![open]);
    play.resume();
    assert_eq!(play.agent("main").visit.input, Some(Value::from("no")));
}

#[test]
fn answer_survives_an_edit_that_forbids_it() {
    let edited = |tags: &str| {
        let front = format!("---\nallowed_tags: [{tags}]\n---\na");
        workflow(&[("A.md", &front), ("D.md", "d"), ("E.md", "e"), ("W.sh", "w")])
    };
    let mut play = asking("");
    let yes = answer(&play, "yes", "k");
    play.feed(vec![yes]);
    play.adopt(edited("goto, result"));
    assert_snapshot!(play.resume(), @"
    resumed
    main fails: <ask> is not allowed here; write <goto>STATE</goto> or <result>YOUR RESULT</result>, kept
    ended: Failed
    ");
    // The next edit brings it back.
    play.adopt(edited("ask, goto"));
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    main ask: at main.1.1
    main enters D.md (1) as visit 2 with "yes"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.agent("main").visit.input, Some(Value::from("yes")));
}

#[test]
fn late_and_empty_answers_are_refused() {
    let mut play = asking(" timeout=\"1m\" then=\"E\"");
    let refusal = |play: &Play, text: &str| {
        decide(&play.run, &play.definition, play.at, &answer(play, text, "k")).unwrap_err()
    };
    assert_eq!(refusal(&play, " \n"), Refusal::EmptyAnswer("main".into()));
    play.stop(StopMode::Now);
    play.at = play.at + Span::minutes(1);
    assert!(decide(&play.run, &play.definition, play.at, &answer(&play, "yes", "k")).is_ok());
    play.at = play.at + Span(1);
    assert_eq!(refusal(&play, "yes"), Refusal::QuestionExpired("main".into()));
}
