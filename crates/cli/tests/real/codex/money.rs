//! Costs of turns, and budget shares that end them.

use raymond_testkit::model::RecordedRequest;
use rustix::process::Signal;

use super::{TOOL, run, thread, turn_contexts};
use crate::harness::until;
use crate::stage::Stage;

/// The cost of 1000 input and 100 output tokens, in micro-dollars.
const DEFAULT_USAGE: u64 = 8_000;

fn charges(stage: &Stage) -> Vec<(String, u64)> {
    let charges = stage.charges();
    assert!(charges.iter().all(|(_, _, basis)| basis == "estimated"), "{charges:?}");
    charges.into_iter().map(|(turn, amount, _)| (turn, amount)).collect()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn cumulative_token_counts_are_charged_once() {
    let stage = Stage::prompts(&[
        (
            "START",
            &format!(
                "{TOOL}
                model: usage input=1000 output=10 cache_read=20000 cache_write=2000
                model: say <call return='BACK' model='gpt-6.1-sol'>SUB</call>"
            ),
        ),
        ("SUB", "model: say <result>found</result>"),
        ("BACK", "model: say <result>{{result}}!</result>"),
    ]);
    run(&stage, "").prints("found!\n").mentions(0, &[]);
    // The client first summarizes a branch with the old model, if another model continues it.
    let expensive = 5_000 + 300 + 10_000 + 10_000;
    let expected = [
        ("main.1.1", DEFAULT_USAGE + expensive),
        ("main.2.1", expensive + 3_000),
        ("main.3.1", DEFAULT_USAGE),
    ];
    assert_eq!(charges(&stage), expected.map(|(turn, amount)| (turn.to_owned(), amount)));
    assert_eq!(stage.spent(), stage.billed());
    let models: Vec<String> = stage.requests().into_iter().map(|seen| seen.model).collect();
    assert_eq!(models, ["gpt-5.5", "gpt-5.5", "gpt-5.5", "gpt-6.1-sol", "gpt-5.5"]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn subagents_are_charged_to_their_turn() {
    let spawn = r#"model: tool multi_agent_v1/spawn_agent {"message": "CHILD\nmodel: say done"}"#;
    let stage = Stage::prompts(&[(
        "START",
        &format!(
            "{spawn}\nmodel: tool exec_command {{\"cmd\": \"sleep 1\"}}\nmodel: wait child\nmodel: say <result>x</result>"
        ),
    )]);
    let running = stage.start_run("--backend codex");
    let is_child = |seen: &RecordedRequest| {
        seen.is_answered() && seen.conversation.iter().any(|said| said.text.starts_with("CHILD"))
    };
    until("the child has its answer", || stage.requests().iter().any(is_child));
    stage.opens("child");
    running.wait().prints("x\n").mentions(0, &[]);
    let requests = stage.requests();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    assert_eq!(charges(&stage), [("main.1.1".to_owned(), 4 * DEFAULT_USAGE)]);
    assert_eq!(stage.spent(), stage.billed());
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn model_without_a_price_is_not_free() {
    let stage =
        Stage::prompts(&[("START", "model: house-model\n---\nmodel: say <result>x</result>")]);
    let refused = "START.md:2:1: error: the model \"house-model\" has no price";
    let refused = [refused, "[prices.\"house-model\"]"];
    run(&stage, "--budget 0.05").prints("").mentions(2, &refused);
    assert_eq!(turn_contexts(&stage), Vec::<String>::new());
    run(&stage, "--budget none").prints("x\n").mentions(0, &["unpriced"]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn exhausted_share_continues_in_its_thread() {
    // Each request costs 50 cents; the visit has two dollars. The tool of the second request ends
    // only with the client, which Raymond ends when it sees the costs.
    let quick = "model: tool exec_command {\"cmd\": \"true\"}";
    let endless = "model: tool exec_command {\"cmd\": \"sleep 600\"}";
    let stage = Stage::prompts(&[
        ("START", "model: say <fork next='NEXT'>WORKER</fork>"),
        ("NEXT", "model: wait parent\nmodel: say <result>done</result>"),
        (
            "WORKER",
            &format!(
                "model: usage input=100000 output=0
                {quick}
                {endless}
                {endless}
                model: say <result>never</result>
                model: again
                model: usage
                model: say <result>worked</result>"
            ),
        ),
    ]);
    let running = stage.start_run("--backend codex --budget 2 --max-parallel 2");
    stage.reaches("parent");
    until("the worker has used up its share", || !stage.events("turn_continues").is_empty());
    stage.opens("parent");
    running.wait().prints("done\n").mentions(0, &["share used up"]);
    let requests = stage.requests();
    let worker: Vec<_> = requests
        .iter()
        .filter(|seen| seen.conversation[0].text.starts_with("WORKER"))
        .map(|seen| (thread(seen).to_owned(), seen.usage().input))
        .collect();
    let one = worker[0].0.clone();
    // Its share was 99.6 cents: the second request used it up, and a third never started.
    let expected = [100_000, 100_000, 1_000].map(|input| (one.clone(), input));
    assert_eq!(worker, expected);
    assert_eq!(stage.spent(), stage.billed());
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn final_answer_counts_after_the_share_is_spent() {
    let stage = Stage::prompts(&[
        ("START", "model: usage input=100000 output=0\nmodel: say <goto>NEXT</goto>"),
        ("NEXT", "model: say <result>never</result>"),
    ]);
    let output = run(&stage, "--budget 0.20");
    output.mentions(5, &["spent $0.50 of $0.20"]);
    assert_eq!(turn_contexts(&stage), ["new A | START"]);
    let resumed = stage.raymond("resume r --budget 1");
    resumed.prints("never\n").mentions(0, &[]);
    assert_eq!(
        turn_contexts(&stage),
        ["new A | START", "resume A | START, <goto>NEXT</goto>, NEXT"]
    );
}

// proves: A1
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lower_cap_binds_an_adopted_client() {
    let stage = Stage::prompts(&[(
        "START",
        &format!(
            "{TOOL}
            model: wait gate
            model: usage input=2000000 output=10
            model: say <result>expensive</result>
            model: again
            model: usage input=1000 output=10
            model: say <result>cheap</result>"
        ),
    )]);
    let running = stage.start_run("--backend codex --max-parallel 1 --budget 10");
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    let clients = stage.processes();
    let resumed = stage.start("resume r --budget 1");
    until("the client is ended", || !stage.processes().iter().any(|one| clients.contains(one)));
    stage.opens("gate");
    resumed.wait().prints("cheap\n").mentions(0, &["continues with a new budget share"]);
    assert!(stage.spent() < 1_000_000, "{:?}", stage.charges());
    stage.leaves_nothing();
}
