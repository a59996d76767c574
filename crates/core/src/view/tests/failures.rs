//! Failures: each is one sentence.

use insta::assert_snapshot;

use super::{auth, quota};
use crate::decide::tests::play::usd;
use crate::failure::{AgentFailure, Clock, TurnFailure};
use crate::protocol::{Fault, TagName, Untagged};
use crate::time::Span;

/// Returns the failure of an agent that wrote no tag.
fn no_tag(stderr: &str, accepted: &[&str]) -> AgentFailure {
    let untagged = Untagged { last_line: "Done.".into(), ..Untagged::default() };
    AgentFailure::Protocol {
        fault: Box::new(Fault::NoTag(untagged)),
        stderr: stderr.into(),
        accepted: accepted.iter().map(|tag| (*tag).to_owned()).collect(),
    }
}

/// Returns one failure of each kind, and several where the words differ.
fn failures() -> Vec<AgentFailure> {
    let turn = |failure| AgentFailure::Turn(failure);
    let timeout = |clock| turn(TurnFailure::Timeout { clock, after: Span::minutes(30) });
    let script = |stderr: &str| TurnFailure::Script {
        status: "signal 9".into(),
        stderr: stderr.into(),
        tag: None,
    };
    vec![
        turn(TurnFailure::Transient { why: "502".into() }),
        timeout(Clock::FirstOutput),
        timeout(Clock::Idle),
        timeout(Clock::Wall),
        turn(quota(60)),
        turn(auth()),
        turn(TurnFailure::Task { why: "refused".into() }),
        turn(TurnFailure::LostSession { session: "s1".into() }),
        turn(script("")),
        turn(script("out of memory")),
        turn(TurnFailure::Script {
            status: "exit status 3".into(),
            stderr: "oh".into(),
            tag: Some(TagName::Goto),
        }),
        turn(TurnFailure::OutputTooLarge {
            limit: 64 << 20,
            head: String::new(),
            tail: String::new(),
        }),
        turn(TurnFailure::NotStarted { why: "no such client".into() }),
        no_tag("", &[]),
        no_tag("", &["<goto>A</goto>", "<result>TEXT</result>"]),
        no_tag("oh", &[]),
        AgentFailure::Visits { state: "A.md".into(), limit: 2 },
        AgentFailure::VisitBudget { budget: usd("0.50") },
        AgentFailure::TooManyAgents { asked: 9, limit: 3 },
        AgentFailure::HeldForGood { limit: 3 },
        AgentFailure::TooDeep { parent: "main_w1".into() },
        AgentFailure::Crashes { count: 5 },
        AgentFailure::InterruptedScript,
        AgentFailure::Denied { tools: vec!["Bash".into(), "Write".into()] },
        AgentFailure::Unanswered,
    ]
}

#[test]
fn every_failure_of_an_agent_is_a_sentence() {
    let lines: Vec<String> = failures().iter().map(ToString::to_string).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    transient failure: 502
    timed out: no first output after 30m
    timed out: no output after 30m
    timed out: not done after 30m
    usage limit: resets at noon
    not logged in: run claude login
    the client reports failure: refused
    the client knows no session s1
    script: signal 9
    script: signal 9: out of memory
    script: exit status 3, so its <goto> does not count: oh
    output too large: more than 64 MiB
    could not start: no such client
    no tag: the output ends with "Done."
    no tag: the output ends with "Done."; write <goto>A</goto> or <result>TEXT</result>
    no tag: the output ends with "Done."; stderr: oh
    A.md reached its limit of 2 visits and has no `then`
    the visit's budget of $0.50 is spent
    one message asks for 9 workers, and the limit is 3 agents
    cannot fork: the limit is 3 agents and no running agent can finish
    the name of a worker of main_w1 is too long
    the turn was interrupted 5 times in a row without any progress
    the script was interrupted and is not repeated
    the client denied Bash, Write
    the question was not answered in time
    "#);
}
