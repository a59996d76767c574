//! Every transition: which session its turn gets, and what the model sees there.

use raymond_testkit::model::{ConversationItem, DEFAULT_USAGE, RequestOutcome, Role};
use serde_json::json;

use crate::harness::until;
use crate::shown;
use crate::stage::Stage;

/// Runs a workflow of prompts one turn at a time; `contexts` has one line per turn, in order.
#[track_caller]
fn check(states: &[(&str, &str)], result: &str, contexts: &[&str]) -> Stage {
    let stage = Stage::prompts(states);
    let flags = "--max-parallel 1 --allow Bash(echo:*)";
    stage.run(flags).prints(&format!("{result}\n")).mentions(0, &[]);
    assert_eq!(stage.turn_contexts(), contexts);
    assert_eq!(
        stage.events("turn_settled").len(),
        contexts.len(),
        "every turn was settled at once"
    );
    assert_eq!(stage.spent(), stage.billed(), "what the model took is what was paid");
    stage.leaves_nothing();
    stage
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn only_goto_sees_the_earlier_turns() {
    check(
        &[
            ("START", "model: say <goto>NEXT</goto>"),
            ("NEXT", "model: say <reset>FRESH</reset>"),
            ("FRESH", "model: say <function return='BACK'>PURE</function>"),
            ("PURE", "model: say <goto>MORE</goto>"),
            ("MORE", "model: say <result>found</result>"),
            ("BACK", "got {{result}}\nmodel: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            "resume A | START, <goto>NEXT</goto>, NEXT",
            "new B | FRESH",
            "new C | PURE",
            "resume C | PURE, <goto>MORE</goto>, MORE",
            "resume B | FRESH, <function return='BACK'>PURE</function>, BACK",
        ],
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn caller_sees_only_the_result_of_callee() {
    let stage = check(
        &[
            ("START", "model: say <call return='BACK'>SUB</call>"),
            (
                "SUB",
                "of the zebra
                model: think thought of the zebra
                model: tool Bash {\"command\": \"echo tool of the zebra\"}
                model: say <goto>DEEPER</goto>",
            ),
            ("DEEPER", "of the zebra\nmodel: say <result>found</result> zebra"),
            ("BACK", "got {{result}}\nmodel: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            "branch A to B | START, <call return='BACK'>SUB</call>, SUB",
            "resume B | START, <call return='BACK'>SUB</call>, SUB, Bash, done, \
             <goto>DEEPER</goto>, DEEPER",
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
    let requests = stage.requests();
    let back = requests.last().unwrap();
    let expected = [
        ConversationItem::new(Role::User, stage.project.read("wf/START.md")),
        ConversationItem::new(Role::Assistant, "<call return='BACK'>SUB</call>"),
        ConversationItem::new(Role::User, "BACK\ngot found\nmodel: say <result>found!</result>\n"),
    ];
    assert_eq!(back.conversation, expected);
    let zebra =
        |seen: &raymond_testkit::model::RecordedRequest| seen.body.to_string().contains("zebra");
    let callee = requests.iter().map(zebra).collect::<Vec<_>>();
    assert_eq!(callee, [false, true, true, true, false], "of all that the client sent");
    let done = requests[3].conversation.iter().find(|said| said.role == Role::Outcome);
    assert_eq!(done, Some(&ConversationItem::new(Role::Outcome, "tool of the zebra")));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn nested_calls_branch_from_their_own_callers() {
    let one = "START, <call return='LAST'>ONE</call>, ONE";
    check(
        &[
            ("START", "model: say <call return='LAST'>ONE</call>"),
            ("ONE", "model: say <call return='TWO'>DEEP</call>"),
            ("DEEP", "model: say <result>1</result>"),
            ("TWO", "model: say <result>{{result}}2</result>"),
            ("LAST", "model: say <result>{{result}}3</result>"),
        ],
        "123",
        &[
            "new A | START",
            &format!("branch A to B | {one}"),
            &format!("branch B to C | {one}, <call return='TWO'>DEEP</call>, DEEP"),
            &format!("resume B | {one}, <call return='TWO'>DEEP</call>, TWO"),
            "resume A | START, <call return='LAST'>ONE</call>, LAST",
        ],
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn second_call_branches_from_the_current_caller() {
    let middle = "START, <call return='MIDDLE'>SUB</call>, MIDDLE";
    check(
        &[
            ("START", "model: say <call return='MIDDLE'>SUB</call>"),
            ("SUB", "model: say <reset>ANEW</reset>"),
            ("ANEW", "model: say <result>found</result>"),
            ("MIDDLE", "model: say <call return='END'>LEAF</call>"),
            ("LEAF", "model: say <result>more</result>"),
            ("END", "model: say <result>{{result}}!</result>"),
        ],
        "more!",
        &[
            "new A | START",
            "branch A to B | START, <call return='MIDDLE'>SUB</call>, SUB",
            "new C | ANEW",
            &format!("resume A | {middle}"),
            &format!("branch A to D | {middle}, <call return='END'>LEAF</call>, LEAF"),
            &format!("resume A | {middle}, <call return='END'>LEAF</call>, END"),
        ],
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn reminder_stays_in_session_without_repeating_the_prompt() {
    let no_tag = "Your message contains no transition tag, so the workflow cannot continue. (In code, a \
                  tag counts only if it is alone on its lines.)";
    let nowhere = "The <goto> tag of your message leads nowhere: there is no state \"NOWHERE\".";
    let sub = "START, <call return='BACK'>SUB</call>, SUB";
    let stage = check(
        &[
            ("START", "model: say <call return='BACK'>SUB</call>"),
            (
                "SUB",
                "model: say hm
                model: then
                model: say <goto>NOWHERE</goto>
                model: then
                model: say <result>found</result>",
            ),
            ("BACK", "model: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            &format!("branch A to B | {sub}"),
            &format!("resume B | {sub}, hm, {no_tag}"),
            &format!("resume B | {sub}, hm, {no_tag}, <goto>NOWHERE</goto>, {nowhere}"),
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
    assert_eq!(stage.events("reminded").len(), 2);
    let reminder = stage.requests()[2].conversation.last().unwrap().text.clone();
    assert!(reminder.contains("<call return=") && !reminder.contains("model:"), "{reminder}");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn four_parallel_agents_share_nothing() {
    let stage = Stage::prompts(&[
        (
            "START",
            "model: say <fork n='1'>W</fork><fork n='2'>W</fork><fork n='3'>W</fork><goto>NEXT</goto>",
        ),
        ("NEXT", "model: wait gate4\nmodel: say <result>parent</result>"),
        ("MORE", "model: say <result>worker {{n}}</result>"),
    ]);
    stage.state("W.md", "W {{n}}\nmodel: wait gate{{n}}\nmodel: say <goto>MORE</goto>\n");
    let running = stage.start_run("");
    for gate in ["gate1", "gate2", "gate3", "gate4"] {
        stage.reaches(gate);
    }
    let open = stage.requests().iter().filter(|seen| seen.outcome == RequestOutcome::Open).count();
    assert_eq!((open, stage.requests().len()), (4, 5), "all four are being answered");
    // In another order than they started.
    for gate in ["gate3", "gate1", "gate4", "gate2"] {
        stage.opens(gate);
    }
    running.wait().prints("parent\n").mentions(0, &[]);
    let forks = "<fork n='1'>W</fork><fork n='2'>W</fork><fork n='3'>W</fork><goto>NEXT</goto>";
    let mut conversations: Vec<String> =
        stage.requests().iter().map(|seen| shown::conversation(&seen.conversation)).collect();
    conversations.sort();
    let expected = [
        "START".to_owned(),
        format!("START, {forks}, NEXT"),
        "W 1".to_owned(),
        "W 1, <goto>MORE</goto>, MORE".to_owned(),
        "W 2".to_owned(),
        "W 2, <goto>MORE</goto>, MORE".to_owned(),
        "W 3".to_owned(),
        "W 3, <goto>MORE</goto>, MORE".to_owned(),
    ];
    assert_eq!(conversations, expected);
    let sessions = |label: &str| {
        let requests = stage.requests().into_iter();
        let of = requests.filter(|seen| seen.conversation[0].text.starts_with(label));
        of.map(|seen| shown::session(&seen).to_owned()).collect::<Vec<_>>()
    };
    let each = ["START", "W 1", "W 2", "W 3"].map(sessions);
    assert!(each.iter().all(|of| of.len() == 2 && of[0] == of[1]), "{each:?}");
    let different: std::collections::BTreeSet<&String> = each.iter().flatten().collect();
    assert_eq!(different.len(), 4, "{each:?}");
    let results = json!({
        "main": "parent", "main_w1": "worker 1", "main_w2": "worker 2", "main_w3": "worker 3",
    });
    assert_eq!(stage.project.state("r")["results"], results);
    assert!(
        stage.requests().iter().all(|seen| seen.outcome == RequestOutcome::Answered(DEFAULT_USAGE))
    );
    assert_eq!(stage.spent(), stage.billed());
    until("nothing is left", || stage.processes().is_empty());
}
