//! `ask` and `raymond answer`. The cases Q1 to Q10 of the specification.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};

/// Returns the answer that D.sh received.
const CAT: &str = r#"echo "<result>$(cat "$RAYMOND_RESULT_FILE")</result>""#;

/// A script that asks, and one that returns the answer.
fn asking(attributes: &str) -> Project {
    Project::of(&[
        ("wf/START.sh", &format!("echo x >> asked\necho '<ask next=\"D\"{attributes}>ok?</ask>'")),
        ("wf/D.sh", CAT),
        ("wf/E.sh", "echo \"<result>E:$RAYMOND_RESULT</result>\""),
    ])
}

const CHOICE: &str = " options=\"approve|reject\"";

#[test]
fn q1_answer_continues_the_run() {
    let project = asking(CHOICE);
    project.raymond("run wf --run-id r").prints("").mentions(
        3,
        &[
            "START.sh asks: ok? (approve | reject)\n",
            "waiting: main asks: ok? (approve | reject)\n",
            "to continue: raymond answer r approve\n",
        ],
    );
    project
        .raymond("answer")
        .prints("r · main\n  ok?\n  (approve | reject)\n  → raymond answer r approve\n");
    project.raymond("answer r perhaps").says(
        2,
        "raymond: could not answer `main`: \"perhaps\" is not an option; choose approve or reject",
    );
    let answered = project.raymond("answer r APPROVE --by ada");
    answered
        .prints("approve\n")
        .mentions(0, &["main: approve\n", "START.sh → D.sh (ask), ada answered: approve\n"]);
    project
        .raymond("answer r reject")
        .mentions(2, &["raymond: could not answer `main`: ada already answered \"approve\" at "]);
    assert_eq!(project.read("asked"), "x\n", "START ran once");
    project.raymond("replay r").mentions(0, &[]);
}

#[test]
fn q2_owner_continues_at_once() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"ASK\">W</fork>'"),
        ("wf/W.sh", "until [ -e go ]; do sleep 0.05; done; echo '<result>w</result>'"),
        ("wf/ASK.sh", "echo '<ask next=\"D\">ok?</ask>'"),
        ("wf/D.sh", CAT),
    ]);
    project.raymond("run wf --run-id r -d").prints("r\n");
    until("it asks", || !project.events("r", "agent_asks").is_empty());
    let status = project.raymond("status r --json").json();
    assert_eq!(status["questions"][0]["question"], json!("ok?"));
    assert_eq!(status["agents"][0]["status"], json!("waiting: answer"));
    project.raymond("answer r yes").prints("").says(0, "main: yes");
    until("it has continued", || !project.events("r", "agent_ended").is_empty());
    project.write("go", "");
    project.raymond("wait r").prints("yes\n");
}

#[test]
fn q3_expired_question_has_a_state_or_an_answer() {
    let project = asking(" timeout=\"1s\" then=\"E\"");
    project
        .raymond("run wf --run-id r")
        .prints("E:\n")
        .mentions(0, &["START.sh → E.sh (ask): no answer in time\n"]);
    let project = asking(&format!("{CHOICE} timeout=\"1s\" default=\"reject\""));
    project
        .raymond("run wf --run-id r")
        .prints("reject\n")
        .mentions(0, &["START.sh → D.sh (ask), timeout answered: reject\n"]);
}

#[test]
fn q4_tend_ends_an_expired_question() {
    let project = asking(" timeout=\"1s\" then=\"E\"");
    project
        .raymond("run wf --run-id r --no-wait")
        .mentions(3, &["waiting: main asks: ok? (until "]);
    until("its time has come", || project.raymond("tend --once").stdout == "r\n");
    project.raymond("wait r").prints("E:\n");
}

#[test]
fn q5_several_questions_need_an_agent() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">W</fork><fork next=\"END\">W</fork>'"),
        ("wf/END.sh", "echo '<result>main</result>'"),
        ("wf/W.sh", "echo '<ask next=\"D\">ok?</ask>'"),
        ("wf/D.sh", CAT),
    ]);
    project.raymond("run wf --run-id r").mentions(3, &["to continue: raymond answer r\n"]);
    project.raymond("answer r approve").says(
        2,
        "raymond: could not answer `r`: 2 questions are open (main_w1, main_w2); choose one with \
         `--agent main_w1`",
    );
    project
        .raymond("answer r approve --agent main_w1")
        .mentions(3, &["main_w1: approve\n", "main_w1          ended: approve\n"]);
    project.raymond("answer r no --agent main_w2").mentions(0, &["main_w2          ended: no\n"]);
}

#[test]
fn q6_recorded_answer_survives_a_kill() {
    let project = asking("");
    project.write("wf/D.sh", format!("until [ -e go ]; do sleep 0.05; done\n{CAT}"));
    project.raymond("run wf --run-id r").mentions(3, &[]);
    let owner = project.start("answer r yes");
    until("D starts", || project.events("r", "turn_started").len() == 2);
    owner.signal(Signal::KILL);
    owner.wait();
    project.write("go", "");
    project.raymond("resume r").prints("yes\n");
    assert_eq!(project.events("r", "ask_answered").len(), 1);
    assert_eq!(project.read("asked"), "x\n");
}

#[test]
fn q7_prompt_asks_only_if_its_policy_names_it() {
    let check = |policy: &str, replies: &str, code: i32, words: &str| {
        let start = format!("{policy}Work.");
        let project = Project::of(&[
            ("wf/START.md", &start),
            ("wf/D.sh", CAT),
            ("replies.yaml", &format!("START: {replies}\n")),
        ]);
        let ran = project.raymond("run wf --replies replies.yaml --run-id r");
        ran.mentions(code, &[words]);
    };
    let ask = "\"<ask next='D'>x?</ask>\"";
    check(
        "",
        &format!("[[{ask}, <result>r</result>]]"),
        0,
        "START.md: reminder 1: <ask> is not allowed here\n",
    );
    check("---\nallowed_tags: [ask]\n---\n", ask, 3, "START.md asks: x?\n");
    check("---\nallowed_targets: { ask: [D] }\n---\n", ask, 3, "START.md asks: x?\n");
    check("---\nallowed_transitions: [{ tag: ask, next: D }]\n---\n", ask, 3, "asks: x?\n");
    check(
        "---\nallowed_transitions: [{ tag: ask, next: D }, { tag: result }]\n---\n",
        "[[nothing, { text: <result>r</result>, expect: '<ask next=\"D\">YOUR QUESTION</ask>' }]]",
        0,
        "reminder 1",
    );
}

#[test]
fn q8_long_answer_comes_from_stdin() {
    let project = asking("");
    project.write("wf/D.sh", "wc -c < \"$RAYMOND_RESULT_FILE\" > size; echo '<result>d</result>'");
    project.raymond("run wf --run-id r").mentions(3, &[]);
    let long = "y".repeat(1_000_000);
    project.sends(&long, "answer r -").prints("d\n");
    assert_eq!(project.read("size").trim(), "1000000");
}

#[test]
fn q9_replies_answer_questions() {
    let project = asking(CHOICE);
    let answered = "START.sh → D.sh (ask), replies answered: approve\n";
    project.write("r.yaml", "answers: { START: Approve }\n");
    project
        .raymond("run wf --run-id r --replies r.yaml")
        .prints("approve\n")
        .mentions(0, &[answered]);
    // By visit: the second question has no answer, so a person is asked.
    project.write("wf/D.sh", "echo '<goto>START</goto>'");
    project.write("r.yaml", "answers: { START.sh: [approve] }\n");
    let run = project.raymond("run wf --run-id two --replies r.yaml");
    run.mentions(3, &[answered, "to continue: raymond answer two approve\n"]);
    project.raymond("replay two").mentions(0, &[]);
    project.write("r.yaml", "answers: { START: maybe }\n");
    project.raymond("run wf --run-id other --replies r.yaml --quiet").mentions(
        3,
        &["the answer \"maybe\" in the replies is not an option; the options are approve, reject"],
    );
    project.write("r.yaml", "answers: { STRAT: approve }\n");
    project.raymond("run wf --replies r.yaml").mentions(
        2,
        &["r.yaml:1:12: error: no state is called \"STRAT\"", "did you mean \"START\"?"],
    );
}

#[test]
fn q10_callee_may_ask() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<call return=\"END\">SUB</call>'"),
        ("wf/SUB.sh", "echo '<ask next=\"D\">ok?</ask>'"),
        ("wf/D.sh", CAT),
        ("wf/END.sh", "echo \"<result>caller got $RAYMOND_RESULT</result>\""),
    ]);
    project.raymond("run wf --run-id r").mentions(3, &[]);
    let agent = project.raymond("status r --json").json()["agents"][0].clone();
    assert_eq!((&agent["depth"], &agent["status"]), (&json!(1), &json!("waiting: answer")));
    project.raymond("answer r fine").prints("caller got fine\n");
}

#[test]
fn stopped_run_keeps_the_answer_for_its_resume() {
    let project = asking(" timeout=\"2h\" then=\"E\"");
    project.raymond("run wf --run-id r -d").prints("r\n");
    until("it asks", || !project.events("r", "agent_asks").is_empty());
    project.raymond("stop r").says(0, "r: stopped");
    let plan = project.raymond("resume r --plan").stdout;
    assert!(plan.contains(", waiting 1"), "{plan}");
    project.raymond("answer r yes").prints("").says(0, "main: yes\nto continue: raymond resume r");
    project.raymond("resume r").prints("yes\n");
}

#[test]
fn closed_questions_have_clear_errors() {
    let project = asking("");
    project.raymond("answer").says(0, "no question is open");
    project.raymond("run wf --run-id r").mentions(3, &[]);
    project.raymond("cancel r").says(0, "r: cancelled");
    project.raymond("answer r yes").says(2, "raymond: could not answer `r`: no question is open");
    project.raymond("resume r").mentions(8, &["r was cancelled"]);
}

#[test]
fn malformed_question_is_reported_at_once() {
    let check = |attributes: &str, text: &str, words: &str| {
        let script = format!("echo '<ask{attributes}>{text}</ask>'");
        let project = Project::of(&[("wf/START.sh", &script), ("wf/D.sh", CAT)]);
        project.raymond("run wf").mentions(1, &[&format!("malformed <ask>: {words}")]);
    };
    check("", "ok?", "attribute `next` is missing");
    check(" next=\"D\"", " ", "the question is empty");
    let options = "`options` must list 2 to 20 options, separated by vertical bars";
    check(" next=\"D\" options=\"yes\"", "ok?", options);
    check(&format!(" next=\"D\" options=\"{}\"", "a|".repeat(20) + "a"), "ok?", options);
    check(" next=\"D\" timeout=\"1h\"", "ok?", "`timeout` needs either `then` or `default`");
    check(" next=\"D\" then=\"D\"", "ok?", "`then` needs `timeout`");
    check(" next=\"D\" default=\"x\"", "ok?", "`default` needs `timeout`");
    check(
        " next=\"D\" options=\"approve|reject\" timeout=\"1h\" default=\"maybe\"",
        "ok?",
        "`default` is \"maybe\", but the options are approve, reject",
    );
    check(" next=\"D\" after=\"5m\"", "ok?", "`after` is only valid on goto and reset");
    let elsewhere = Project::of(&[("wf/START.sh", "echo '<goto options=\"a|b\">D</goto>'")]);
    elsewhere.raymond("run wf").mentions(1, &["malformed <goto>: `options` is only valid on ask"]);
}

#[test]
fn emit_writes_a_question() {
    let project = Project::of(&[]);
    project
        .raymond("emit ask ok? --next D --options yes|no --timeout 2h --default no")
        .prints("<ask next=\"D\" timeout=\"2h\" options=\"yes|no\" default=\"no\">ok?</ask>\n");
    project
        .raymond("emit ask ok? --next D --wait all")
        .says(2, "raymond: could not write the tag: <ask>: `wait` is only valid on goto");
}

#[test]
fn edit_must_keep_the_states_of_a_question() {
    let project = asking(" timeout=\"2h\" then=\"E\"");
    project.raymond("run wf --run-id r --no-wait --quiet");
    std::fs::remove_file(project.path("wf/E.sh")).unwrap();
    project.raymond("resume r --with-current").mentions(
        2,
        &["could not resume `r` with the edited workflow: `main` waits to enter `E.sh`, which no longer exists"],
    );
}

#[test]
fn late_answer_is_refused() {
    let project = asking(" timeout=\"1s\" then=\"E\"");
    project.raymond("run wf --run-id r --no-wait --quiet").mentions(3, &[]);
    until("the time is up", || project.raymond("answer").stdout.contains("its time is up"));
    let why = project.raymond("why r");
    assert!(why.stdout.ends_with("→ raymond resume r\n"), "{why:?}");
    project.raymond("answer r yes").mentions(
        2,
        &[
            "could not answer `main`: the time of its question is up",
            "raymond resume r continues without an answer",
        ],
    );
    project.raymond("resume r").prints("E:\n").mentions(0, &[]);
}

#[test]
fn empty_answer_is_refused() {
    let project = asking("");
    project.raymond("run wf --run-id r --quiet").mentions(3, &[]);
    for answer in ["", " \n"] {
        let output = project.sends(answer, "answer r -");
        output.mentions(2, &["could not answer `main`: the answer is empty"]);
    }
    // The only word is the answer, and the run is missing.
    project.raymond("answer yes").mentions(2, &["did you mean `raymond answer r yes`?"]);
    project.raymond("answer r yes").prints("yes\n");
}

#[test]
fn question_is_shown_beside_running_workers() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"ASK\">W</fork>'"),
        ("wf/W.sh", "until [ -e go ]; do sleep 0.05; done; echo '<result>w</result>'"),
        ("wf/ASK.sh", "echo '<ask next=\"D\">ok?</ask>'"),
        ("wf/D.sh", CAT),
    ]);
    project.raymond("run wf --run-id r -d --quiet").prints("r\n");
    until("it asks", || !project.events("r", "agent_asks").is_empty());
    project
        .raymond("why r")
        .prints("running: main_w1 is in turn 1 of W.sh; main asks: ok?\n→ raymond answer r TEXT\n");
    project.write("go", "");
    project.raymond("answer r yes").mentions(0, &["main: yes"]);
    project.raymond("wait r").prints("yes\n");
}

#[test]
fn tend_continues_a_run_that_was_answered() {
    let project = asking("");
    project.write("r.yaml", "W: x\n");
    project.raymond("run wf --run-id r --quiet --replies r.yaml").mentions(3, &[]);
    // The answer is recorded, and the resume after it fails.
    project.write("r.yaml", "W: [");
    project.raymond("answer r yes").mentions(2, &["main: yes"]);
    project
        .raymond("why r")
        .prints("waiting: an agent can continue with its answer\n→ raymond resume r\n");
    project.write("r.yaml", "W: x\n");
    project.raymond("tend --once").prints("r\n");
    project.raymond("wait r").prints("yes\n");
}

#[test]
fn answer_pays_no_failed_worker_again() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>P</fork><fork>Q</fork><goto wait=\"done\">M</goto>'"),
        ("wf/P.md", "pay"),
        ("wf/Q.sh", "echo '<ask next=\"D\">ok?</ask>'"),
        ("wf/D.sh", CAT),
        ("wf/M.sh", "echo '<result>joined</result>'"),
        ("r.yaml", "P: { fail: task, cost: 1 }\n"),
    ]);
    project.raymond("run wf --run-id r --replies r.yaml --quiet").mentions(3, &[]);
    project.raymond("answer r yes").prints("joined\n");
    assert_eq!(project.events("r", "turn_failed").len(), 1);
}
