//! Every transition: which session its turn gets, and what the model sees there.

use serde_json::{Value, json};

use crate::harness::until;
use crate::stage::Stage;

/// Runs a workflow of prompts one turn at a time; `contexts` has one line per turn, in order.
#[track_caller]
fn check(states: &[(&str, &str)], result: &str, contexts: &[&str]) -> Stage {
    let stage = Stage::prompts(states);
    stage.run("--max-parallel 1").prints(&format!("{result}\n")).mentions(0, &[]);
    assert_eq!(stage.turn_contexts(), contexts);
    stage.leaves_nothing();
    stage
}

#[test]
fn goto_continues_the_session() {
    check(
        &[
            ("START", "fake: say <goto>NEXT</goto>"),
            ("NEXT", "fake: say <goto>END</goto>"),
            ("END", "fake: say <result>done</result>"),
        ],
        "done",
        &[
            "new A | START",
            "resume A | START, <goto>NEXT</goto>, NEXT",
            "resume A | START, <goto>NEXT</goto>, NEXT, <goto>END</goto>, END",
        ],
    );
}

#[test]
fn reset_begins_a_fresh_session() {
    check(
        &[("START", "fake: say <reset>NEXT</reset>"), ("NEXT", "fake: say <result>done</result>")],
        "done",
        &["new A | START", "new B | NEXT"],
    );
}

#[test]
fn caller_never_sees_its_callees_messages() {
    check(
        &[
            ("START", "fake: say <call return='BACK'>SUB</call>"),
            ("SUB", "fake: say <goto>DEEPER</goto>"),
            ("DEEPER", "fake: say <result>found</result>"),
            ("BACK", "got {{result}}\nfake: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            "branch A to B | START, <call return='BACK'>SUB</call>, SUB",
            "resume B | START, <call return='BACK'>SUB</call>, SUB, <goto>DEEPER</goto>, DEEPER",
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
}

// proves: P3, S34
#[test]
fn callee_in_the_callers_session_is_rejected() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <call return='BACK'>SUB</call>"),
        ("SUB", "fake[1]: stay\nfake: say <goto>DEEPER</goto>"),
        ("DEEPER", "fake: say <result>found</result>"),
        ("BACK", "fake: say <result>{{result}}!</result>"),
    ]);
    stage.run("").mentions(1, &["the client should have branched session ", " but continued it"]);
    let call = "START, <call return='BACK'>SUB</call>";
    let branched = ["new A | START".to_owned(), format!("branch A to B | {call}, SUB")];
    assert_eq!(stage.turn_contexts(), branched);
    assert_eq!(stage.charges().len(), 2, "what it spent there is paid");
    stage.raymond("resume r").prints("found!\n").mentions(0, &[]);
    let again = format!("resume B | {call}, SUB, again SUB");
    let deeper = format!("{again}, <goto>DEEPER</goto>, DEEPER");
    assert_eq!(stage.turn_contexts()[2..4], [again, deeper], "the callee stays in its own session");
    stage.leaves_nothing();
}

#[test]
fn function_runs_in_a_fresh_session() {
    check(
        &[
            ("START", "fake: say <function return='BACK'>SUB</function>"),
            ("SUB", "fake: say <result>found</result>"),
            ("BACK", "fake: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            "new B | SUB",
            "resume A | START, <function return='BACK'>SUB</function>, BACK",
        ],
    );
}

#[test]
fn nested_calls_branch_from_their_own_callers() {
    check(
        &[
            ("START", "fake: say <call return='LAST'>ONE</call>"),
            ("ONE", "fake: say <call return='TWO'>DEEP</call>"),
            ("DEEP", "fake: say <result>1</result>"),
            ("TWO", "fake: say <result>{{result}}2</result>"),
            ("LAST", "fake: say <result>{{result}}3</result>"),
        ],
        "123",
        &[
            "new A | START",
            "branch A to B | START, <call return='LAST'>ONE</call>, ONE",
            "branch B to C | START, <call return='LAST'>ONE</call>, ONE, \
             <call return='TWO'>DEEP</call>, DEEP",
            "resume B | START, <call return='LAST'>ONE</call>, ONE, \
             <call return='TWO'>DEEP</call>, TWO",
            "resume A | START, <call return='LAST'>ONE</call>, LAST",
        ],
    );
}

#[test]
fn each_call_branches_from_the_current_caller() {
    check(
        &[
            ("START", "fake: say <call return='MIDDLE'>SUB</call>"),
            ("MIDDLE", "fake: say <call return='END'>SUB</call>"),
            ("SUB", "fake: say <result>x</result>"),
            ("END", "fake: say <result>done</result>"),
        ],
        "done",
        &[
            "new A | START",
            "branch A to B | START, <call return='MIDDLE'>SUB</call>, SUB",
            "resume A | START, <call return='MIDDLE'>SUB</call>, MIDDLE",
            "branch A to C | START, <call return='MIDDLE'>SUB</call>, MIDDLE, \
             <call return='END'>SUB</call>, SUB",
            "resume A | START, <call return='MIDDLE'>SUB</call>, MIDDLE, \
             <call return='END'>SUB</call>, END",
        ],
    );
}

#[test]
fn reset_inside_a_call_keeps_the_return() {
    check(
        &[
            ("START", "fake: say <call return='BACK'>SUB</call>"),
            ("SUB", "fake: say <reset>ANEW</reset>"),
            ("ANEW", "fake: say <result>found</result>"),
            ("BACK", "fake: say <result>{{result}}!</result>"),
        ],
        "found!",
        &[
            "new A | START",
            "branch A to B | START, <call return='BACK'>SUB</call>, SUB",
            "new C | ANEW",
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
}

#[test]
fn calls_and_functions_nest() {
    check(
        &[
            ("START", "fake: say <call return='END'>ONE</call>"),
            ("ONE", "fake: say <function return='TWO'>PURE</function>"),
            ("PURE", "fake: say <call return='THREE'>LEAF</call>"),
            ("LEAF", "fake: say <result>1</result>"),
            ("THREE", "fake: say <result>{{result}}2</result>"),
            ("TWO", "fake: say <result>{{result}}3</result>"),
            ("END", "fake: say <result>{{result}}4</result>"),
        ],
        "1234",
        &[
            "new A | START",
            "branch A to B | START, <call return='END'>ONE</call>, ONE",
            "new C | PURE",
            "branch C to D | PURE, <call return='THREE'>LEAF</call>, LEAF",
            "resume C | PURE, <call return='THREE'>LEAF</call>, THREE",
            "resume B | START, <call return='END'>ONE</call>, ONE, \
             <function return='TWO'>PURE</function>, TWO",
            "resume A | START, <call return='END'>ONE</call>, END",
        ],
    );
}

#[test]
fn forked_worker_gets_a_fresh_session() {
    let stage = check(
        &[
            ("START", "fake: say <fork next='NEXT' item='7'>WORKER</fork>"),
            ("NEXT", "fake: say <result>parent</result>"),
            ("WORKER", "item {{item}}\nfake: say <result>worker {{item}}</result>"),
        ],
        "parent",
        &[
            "new A | START",
            "resume A | START, <fork next='NEXT' item='7'>WORKER</fork>, NEXT",
            "new B | WORKER",
        ],
    );
    let results = json!({ "main": "parent", "main_worker1": "worker 7" });
    assert_eq!(stage.project.state("r")["results"], results);
    assert_eq!(stage.project.state("r")["fork_counters"], json!({ "main": 1 }));
}

#[test]
fn each_fork_of_a_message_gets_fresh_session() {
    let tags = "<fork item='1'>WORKER</fork><fork item='2'>WORKER</fork><goto>NEXT</goto>";
    let stage = check(
        &[
            ("START", &format!("fake: say {tags}")),
            ("NEXT", "fake: say <result>parent</result>"),
            ("WORKER", "item {{item}}\nfake: say <goto>MORE</goto>"),
            ("MORE", "fake: say <result>worker {{item}}</result>"),
        ],
        "parent",
        &[
            "new A | START",
            &format!("resume A | START, {tags}, NEXT"),
            "new B | WORKER",
            "new C | WORKER",
            "resume B | WORKER, <goto>MORE</goto>, MORE",
            "resume C | WORKER, <goto>MORE</goto>, MORE",
        ],
    );
    assert_eq!(
        stage.project.state("r")["results"],
        json!({ "main": "parent", "main_worker1": "worker 1", "main_worker2": "worker 2" })
    );
}

#[test]
fn only_the_parent_returns_after_fork_in_call() {
    check(
        &[
            ("START", "fake: say <call return='BACK'>SUB</call>"),
            ("SUB", "fake: say <fork next='NEXT'>WORKER</fork>"),
            ("NEXT", "fake: say <result>sub</result>"),
            ("WORKER", "fake: say <result>worker</result>"),
            ("BACK", "fake: say <result>{{result}}!</result>"),
        ],
        "sub!",
        &[
            "new A | START",
            "branch A to B | START, <call return='BACK'>SUB</call>, SUB",
            "resume B | START, <call return='BACK'>SUB</call>, SUB, \
             <fork next='NEXT'>WORKER</fork>, NEXT",
            "new C | WORKER",
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
}

#[test]
fn scripts_keep_the_session() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <goto>BUILD</goto>"),
        ("END", "built {{result}}\nfake: say <result>done</result>"),
    ]);
    stage.project.write("wf/BUILD.sh", "echo \"<goto input='well'>END</goto>\"");
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(
        stage.turn_contexts(),
        ["new A | START", "resume A | START, <goto>BUILD</goto>, END"]
    );
    assert!(stage.prompts_sent()[1].starts_with("END\nbuilt well\n"));
}

#[test]
fn max_visits_continues_elsewhere_in_the_session() {
    let stage = check(
        &[
            ("START", "max_visits: 2\nthen: END\n---\nfake: say <goto>START</goto>"),
            ("END", "fake: say <result>done</result>"),
        ],
        "done",
        &[
            "new A | START",
            "resume A | START, <goto>START</goto>, START",
            "resume A | START, <goto>START</goto>, START, <goto>START</goto>, END",
        ],
    );
    assert_eq!(stage.project.state("r")["iteration_count"], 3);
}

#[test]
fn reminder_stays_in_session_without_repeating_the_prompt() {
    let no_tag = "Your message contains no transition tag, so the workflow cannot continue. (In code, a \
                  tag counts only if it is alone on its lines.)";
    let stage = check(
        &[
            (
                "START",
                "allowed_tags: [goto]\nallowed_targets: {goto: [END]}\n---\n\
                 fake: say hm\nfake[reminder 1]: say <goto>END</goto>",
            ),
            ("END", "fake: say <result>done</result>"),
        ],
        "done",
        &[
            "new A | START",
            &format!("resume A | START, hm, {no_tag}"),
            &format!("resume A | START, hm, {no_tag}, <goto>END</goto>, END"),
        ],
    );
    assert_eq!(
        stage.prompts_sent()[1],
        format!(
            "{no_tag}\n\nDo not repeat finished work. End your next message with this tag, written \
             as plain text, not in code:\n\n<goto>END</goto>\n"
        )
    );
}

#[test]
fn reminder_inside_a_call_stays_in_branch() {
    check(
        &[
            ("START", "fake: say <call return='BACK'>SUB</call>"),
            ("SUB", "fake: say <goto>NOWHERE</goto>\nfake[reminder 1]: say <result>x</result>"),
            ("BACK", "fake: say <result>done</result>"),
        ],
        "done",
        &[
            "new A | START",
            "branch A to B | START, <call return='BACK'>SUB</call>, SUB",
            "resume B | START, <call return='BACK'>SUB</call>, SUB, <goto>NOWHERE</goto>, \
             The <goto> tag of your message leads nowhere: there is no state \"NOWHERE\".",
            "resume A | START, <call return='BACK'>SUB</call>, BACK",
        ],
    );
}

/// The agents of the state file, without times.
fn agents(stage: &Stage) -> Value {
    let mut agents = stage.project.state("r")["agents"].take();
    for agent in agents.as_array_mut().unwrap() {
        agent.as_object_mut().unwrap().remove("cwd");
        agent.as_object_mut().unwrap().remove("failure");
    }
    agents
}

#[test]
fn state_file_contains_session_and_stack_of_callee() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <call return='BACK'>SUB</call>"),
        ("SUB", "fake: say <goto>SLOW</goto>"),
        ("SLOW", "fake: wait gate\nfake: say <result>found</result>"),
        ("BACK", "fake: say <result>{{result}}!</result>"),
    ]);
    let running = stage.start_run("");
    stage.reaches("gate");
    let sessions: Vec<String> =
        stage.invocations().into_iter().map(|invocation| invocation.session.unwrap()).collect();
    let expected = json!([{
        "id": "main",
        "current_state": "SLOW.md",
        "session_id": sessions[1],
        "stack": [{ "session": sessions[0], "state": "BACK.md" }],
        "fork_attributes": {},
        "status": "live",
        "visits": { "START.md": 1, "SUB.md": 1, "SLOW.md": 1 },
    }]);
    until("the state file says so", || agents(&stage) == expected);
    stage.opens("gate");
    running.wait().prints("found!\n").mentions(0, &[]);
    assert_eq!(agents(&stage), json!([]));
    assert_eq!(stage.project.state("r")["status"], "completed");
}

#[test]
fn state_file_contains_both_agents_after_fork() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='NEXT' item='7'>WORKER</fork>"),
        ("NEXT", "fake: wait gate\nfake: say <result>parent</result>"),
        ("WORKER", "fake: say <goto>SLOW</goto>"),
        ("SLOW", "fake: wait gate\nfake: say <result>worker</result>"),
    ]);
    let running = stage.start_run("");
    let session = |label: &str| {
        let sent = stage.invocations().into_iter();
        let mut found = sent.filter(|sent| sent.stdin.as_ref().unwrap().starts_with(label));
        found.next().map(|invocation| invocation.session.unwrap())
    };
    until("both are there", || session("NEXT").is_some() && session("SLOW").is_some());
    let agent = |id: &str, state: &str, session: Option<String>, attributes: Value| {
        let visits = match id {
            "main" => json!({ "START.md": 1, "NEXT.md": 1 }),
            _ => json!({ "WORKER.md": 1, "SLOW.md": 1 }),
        };
        json!({
            "id": id, "current_state": state, "session_id": session, "stack": [],
            "fork_attributes": attributes, "status": "live", "visits": visits,
        })
    };
    let expected = json!([
        agent("main", "NEXT.md", session("NEXT"), json!({})),
        agent("main_worker1", "SLOW.md", session("SLOW"), json!({ "item": "7" })),
    ]);
    until("the state file says so", || agents(&stage) == expected);
    stage.opens("gate");
    running.wait().prints("parent\n").mentions(0, &[]);
    stage.leaves_nothing();
}
