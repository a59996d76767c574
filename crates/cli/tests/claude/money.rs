//! Costs of turns, caps, and runs over budget.

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::stage::Stage;

fn status(stage: &Stage) -> Value {
    stage.raymond("status r --json").json()
}

/// `(turn, micro-dollars, basis)`
fn charge(turn: &str, amount: u64, basis: &str) -> (String, u64, String) {
    (turn.to_owned(), amount, basis.to_owned())
}

#[test]
fn turn_is_charged_its_invocation_not_its_session() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.25\nfake: say <goto>NEXT</goto>"),
        ("NEXT", "fake: cost 0.5\nfake: say <call return='BACK'>SUB</call>"),
        ("SUB", "fake: cost 0.125\nfake: say <goto>DEEP</goto>"),
        ("DEEP", "fake: cost 0.0625\nfake: say <result>x</result>"),
        ("BACK", "fake: cost 1\nfake: say <result>done</result>"),
    ]);
    let output = stage.run("");
    output.prints("done\n").mentions(0, &["spent $1.9375 of $10.00"]);
    assert_eq!(
        stage.charges(),
        [
            charge("main.1.1", 250_000, "reported"),
            charge("main.2.1", 500_000, "reported"),
            charge("main.3.1", 125_000, "reported"),
            charge("main.4.1", 62_500, "reported"),
            charge("main.5.1", 1_000_000, "reported"),
        ]
    );
    assert_eq!(status(&stage)["spent_usd"], json!(1.9375));
    assert_eq!(stage.project.state("r")["total_cost_usd"], json!(1.9375));
}

#[test]
fn workers_and_parent_are_charged_separately() {
    let stage = Stage::prompts(&[
        (
            "START",
            "fake: cost 1\nfake: say <fork next='NEXT' n='1'>W</fork><fork next='NEXT' n='2'>W</fork>",
        ),
        ("NEXT", "fake: cost 0.5\nfake: say <result>done</result>"),
        ("W", "fake: cost 0.25\nfake: say <goto>MORE</goto>"),
        ("MORE", "fake: cost 0.125\nfake: say <result>{{n}}</result>"),
    ]);
    stage.run("").prints("done\n");
    assert_eq!(status(&stage)["spent_usd"], json!(2.25));
}

#[test]
fn failed_turns_are_paid_too() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: cost 0.5
        fake[1]: error 529
        fake[2]: cost 0.25
        fake[2]: say <result>done</result>",
    )]);
    stage.run("").prints("done\n");
    assert_eq!(
        stage.charges(),
        [charge("main.1.1", 500_000, "reported"), charge("main.1.1", 250_000, "reported")]
    );
}

#[test]
fn finished_turn_at_its_cap_is_an_answer() {
    let stage = Stage::prompts(&[
        ("START", "budget: 0.25\n---\nfake: say <goto>\nfake: more END</goto>\nfake: cap"),
        ("END", "fake: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(
        stage.charges(),
        [charge("main.1.1", 250_000, "reported"), charge("main.2.1", 10_000, "reported")]
    );
    assert_eq!(stage.invocations().len(), 2);
}

// proves: A9
#[test]
fn claimed_cap_is_charged_in_full() {
    for says in ["fake: say <goto>START</goto>", "fake: tool Bash make"] {
        for strict in ["", " --strict-budget"] {
            let stage = Stage::prompts(&[("START", &format!("{says}\nfake: claim-cap"))]);
            let output = stage.run(&format!("--budget 1{strict}"));
            output.mentions(5, &["spent $1.00 of $1.00"]);
            assert_eq!(stage.charges(), [charge("main.1.1", 1_000_000, "estimated")]);
            assert_eq!(stage.invocations().len(), 1);
        }
    }
}

#[test]
fn capped_turn_continues_with_a_new_share() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='NEXT'>WORKER</fork>"),
        ("NEXT", "fake: say <result>done</result>"),
        (
            "WORKER",
            "fake[1]: tool Bash make
            fake[1]: wait gate
            fake[1]: cap
            fake[2]: say <result>worked</result>",
        ),
    ]);
    let running = stage.start_run("--budget 1 --max-parallel 2");
    stage.reaches("gate");
    crate::harness::until("the parent is done", || {
        !stage.project.events("r", "agent_ended").is_empty()
    });
    stage.opens("gate");
    running.wait().prints("done\n").mentions(0, &["share used up"]);
    let results = json!({ "main": "done", "main_worker1": "worked" });
    assert_eq!(stage.project.state("r")["results"], results);
    let worker: Vec<_> = stage
        .invocations()
        .into_iter()
        .filter(|sent| sent.stdin.as_ref().unwrap().contains("WORKER\n"))
        .collect();
    let caps: Vec<Vec<&str>> = worker.iter().map(|sent| sent.values("--max-budget-usd")).collect();
    assert_eq!(caps, [["0.495000"], ["0.485000"]]);
    assert_eq!(worker[1].values("--resume"), [worker[0].session.as_deref().unwrap()]);
    let body = stage.project.read("wf/WORKER.md");
    let notice = "Your last turn on the task below was stopped at its spending limit, which is now \
                  renewed: check what is already done, then continue.";
    assert_eq!(worker[1].stdin, Some(format!("{notice}\n\n{body}")));
}

#[test]
fn higher_budget_continues_the_call_it_interrupted() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.5\nfake: say <call return='BACK'>SUB</call>"),
        ("SUB", "fake: say <result>found</result>\nfake: cost 0.5"),
        ("BACK", "fake: say <result>{{result}}!</result>"),
    ]);
    stage.run("--budget 1").prints("").mentions(5, &["spent $1.00 of $1.00", "--budget"]);
    assert_eq!(status(&stage)["status"], "over_budget");
    assert_eq!(stage.invocations().len(), 2, "nothing returns into the caller and spends again");
    stage.raymond("resume r").mentions(5, &[]);
    assert_eq!(stage.invocations().len(), 2);
    stage.raymond("resume r --budget 2").prints("found!\n").mentions(0, &[]);
    let call = "<call return='BACK'>SUB</call>";
    assert_eq!(
        stage.turn_contexts(),
        [
            "new A | START".to_owned(),
            format!("branch A to B | START, {call}, SUB"),
            format!("resume A | START, {call}, BACK"),
        ]
    );
}

#[test]
fn final_result_counts_with_no_budget_left() {
    let stage = Stage::prompts(&[("START", "fake: say <result>done</result>\nfake: cap")]);
    stage.run("--budget 0.5").prints("done\n").mentions(0, &["spent $0.50 of $0.50"]);
}

#[test]
fn spending_warns_at_50_80_and_95_percent() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.4\nfake: say <goto>A</goto>"),
        ("A", "fake: cost 0.1\nfake: say <goto>B</goto>"),
        ("B", "fake: cost 0.3\nfake: say <goto>C</goto>"),
        ("C", "fake: cost 0.15\nfake: say <goto>D</goto>"),
        ("D", "fake: say <result>done</result>"),
    ]);
    stage.run("--budget 1").prints("done\n").mentions(0, &["50 %", "80 %", "95 %"]);
    let spent: Vec<Value> =
        stage.warnings().iter().map(|warning| warning["spent"]["percent"].clone()).collect();
    assert_eq!(spent, [50, 80, 95]);
}

#[test]
fn killed_turn_is_estimated_from_its_stream() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: usage 1000000 1000
        fake[1]: say thinking
        fake[1]: kill
        fake[2]: say <result>done</result>",
    )]);
    stage.run("--model claude-sonnet-4-5").prints("done\n").mentions(0, &["estimated"]);
    let charges = stage.charges();
    assert_eq!(charges[0].2, "estimated", "{charges:?}");
    assert!(charges[0].1 > 1_000_000, "a million tokens cost dollars: {charges:?}");
    assert_eq!(charges[1], charge("main.1.1", 10_000, "reported"));
}

#[test]
fn silent_turn_is_charged_like_the_most_expensive() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.75\nfake: say <goto>END</goto>"),
        ("END", "fake[1]: kill\nfake[2]: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &["estimated"]);
    assert_eq!(stage.charges()[1], charge("main.2.1", 750_000, "estimated"));
}

// proves: P5, S36
#[test]
fn turn_of_unknown_cost_is_unpriced() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: kill
        fake[2]: say <result>done</result>",
    )]);
    stage.run("").prints("done\n").mentions(0, &["unpriced"]);
    assert_eq!(stage.charges()[0], charge("main.1.1", 0, "unpriced"));
}

#[test]
fn unknown_model_is_not_estimated() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: usage 1000000 1000
        fake[1]: say thinking
        fake[1]: kill
        fake[2]: say <result>done</result>",
    )]);
    stage.run("--model mystery-1").prints("done\n").mentions(0, &["unpriced"]);
    assert_eq!(stage.charges()[0], charge("main.1.1", 0, "unpriced"));
}

#[test]
fn configured_prices_make_an_estimate() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: usage 1000000 1000
        fake[1]: say thinking
        fake[1]: kill
        fake[2]: say <result>done</result>",
    )]);
    stage.project.write("raymond.toml", "[prices.mystery]\ninput = 2.00\noutput = 10.00\n");
    stage.run("--model mystery-1").prints("done\n").mentions(0, &["$4.02 of it estimated"]);
    // One message, and the same amount for the request in flight.
    assert_eq!(stage.charges()[0], charge("main.1.1", 2 * 2_010_000, "estimated"));
}

// proves: A23
#[test]
fn run_keeps_the_prices_of_its_start() {
    const EXPENSIVE: &str = "[prices.mystery]\ninput = 2.00\noutput = 10.00\n";
    const FREE: &str = "[prices.mystery]\ninput = 0\noutput = 0\n";
    let check = |begun: &str, flags: &str, amount: u64, lines: &[&str]| {
        let stage = Stage::prompts(&[(
            "START",
            "fake[1]: usage 1000000 1000
            fake[1]: say thinking
            fake[1]: wait gate
            fake[2]: say <result>done</result>",
        )]);
        stage.project.write("raymond.toml", begun);
        let running = stage.start_run("--model mystery-1 --budget 20");
        stage.reaches("gate");
        running.signal(Signal::KILL);
        running.wait();
        let client = i32::try_from(stage.invocations()[0].pid).unwrap();
        rustix::process::kill_process(Pid::from_raw(client).unwrap(), Signal::KILL).unwrap();
        // An agent could do this to spend more.
        stage.project.write("raymond.toml", FREE);
        let resumed = stage.raymond(&format!("resume r {flags}"));
        resumed.prints("done\n").mentions(0, lines);
        assert_eq!(stage.charges()[0].1, amount, "{begun} {flags}");
    };
    let kept =
        "prices in the configuration changed since the run started; this run keeps its prices";
    check(EXPENSIVE, "", 2 * 2_010_000, &[kept]);
    let renewed = "this run uses the current prices from now on; changed: mystery";
    check(EXPENSIVE, "--current-prices", 0, &[renewed]);
    check("", "", 0, &[kept, "unpriced"]);
}

// proves: A25
#[test]
fn client_of_earlier_boot_is_unpriced() {
    for (boot, basis) in [(None, "estimated"), (Some("earlier"), "unpriced")] {
        let stage = Stage::prompts(&[(
            "START",
            "fake[1]: usage 1000 1000
            fake[1]: say thinking
            fake[1]: wait gate
            fake[2]: say <result>done</result>",
        )]);
        let running = stage.start_run("--model claude-sonnet-4-5");
        stage.reaches("gate");
        running.signal(Signal::KILL);
        running.wait();
        let client = i32::try_from(stage.invocations()[0].pid).unwrap();
        rustix::process::kill_process(Pid::from_raw(client).unwrap(), Signal::KILL).unwrap();
        if let Some(boot) = boot {
            // The journal was written after the boot, as if another turn was recorded since.
            let file = ".raymond/runs/r/transcripts/main.1.1.1.pid";
            let named = stage.project.read(file);
            let process = named.rsplit_once(' ').unwrap().0;
            stage.project.write(file, format!("{process} {boot}\n"));
        }
        stage.raymond("resume r").prints("done\n");
        assert_eq!(stage.charges()[0].2, basis);
    }
}

#[test]
fn strict_budget_charges_full_share_of_silent_turn() {
    let stage = Stage::prompts(&[("START", "budget: 0.5\n---\nfake: kill")]);
    stage.run("--strict-budget").mentions(1, &["budget of $0.50 is spent"]);
    assert_eq!(stage.charges(), [charge("main.1.1", 500_000, "estimated")]);
}

// proves: A7
#[test]
fn repeated_stops_make_no_request_free() {
    // Each client gets one answer, and is stopped while its second request is in flight.
    const REQUEST: u64 = 600_000;
    const MOST: usize = 13;
    let gates: Vec<String> = (1..=MOST).map(|n| format!("fake[{n}]: wait gate{n}")).collect();
    let start = format!("fake: usage 200000 0\nfake: say thinking\n{}", gates.join("\n"));
    let stage = Stage::prompts(&[("START", &start)]);
    let mut running = stage.start_run("--model claude-sonnet-4-5 --budget 5");
    for stops in 1..=MOST {
        stage.reaches(&format!("gate{stops}"));
        stage.raymond("stop r").mentions(0, &[]);
        running.wait();
        let made = 2 * REQUEST * u64::try_from(stops).unwrap();
        let charged: u64 = stage.charges().iter().map(|(_, amount, _)| amount).sum();
        assert!(charged >= made, "{stops}: {:?}", stage.charges());
        if charged >= 5_000_000 {
            stage.raymond("resume r").mentions(5, &["--budget"]);
            assert_eq!(stage.invocations().len(), stops, "no request starts beyond the cap");
            return;
        }
        running = stage.start("resume r");
    }
    panic!("the cap was never reached: {:?}", stage.charges());
}

#[test]
fn fractional_tokens_are_unknown() {
    let usage = r#""usage":{"input_tokens":1000000.0,"output_tokens":1}"#;
    let message = format!(
        r#"{{"type":"assistant","message":{{"id":"m","model":"claude-sonnet-4-5","content":[],{usage}}},"parent_tool_use_id":null}}"#
    );
    let start = format!("fake[1]: raw {message}\nfake[1]: kill\nfake[2]: say <result>x</result>");
    let stage = Stage::prompts(&[("START", &start)]);
    stage.run("").prints("x\n").mentions(0, &["1 attempt is unpriced"]);
    assert_eq!(stage.charges()[0].2, "unpriced");
}

#[test]
fn stopped_turn_reports_its_cost() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: cost 0.5
        fake[1]: wait gate
        fake: say <result>done</result>",
    )]);
    let running = stage.start_run("");
    stage.reaches("gate");
    stage.raymond("stop r").mentions(0, &[]);
    running.wait().mentions(130, &[]);
    // The report has only requests that were answered, and the client was waiting for another one.
    assert_eq!(stage.charges(), [charge("main.1.1", 500_000, "unpriced")]);
    stage.leaves_nothing();
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(status(&stage)["spent_usd"], json!(0.51));
}
