//! Usage limits of Codex: a run waits for them, restarts included, and whoever asks another client does not.

use raymond_testkit::model::{Api, Seen};
use rustix::process::Signal;

use super::thread;
use crate::harness::{Running, until};
use crate::quota::{hold, now, starts, status};
use crate::shown::conversation;
use crate::stage::Stage;

/// A limit that is met once, and what is said when it is lifted. It would end sooner than is believed.
fn limited(result: &str) -> String {
    let reset = now() + 2;
    format!(
        "model: error 429 type=usage_limit_reached header:x-codex-primary-used-percent=100 \
         header:x-codex-primary-window-minutes=300 header:x-codex-primary-reset-at={reset} \
         message=enough\nmodel: again\nmodel: say <result>{result}</result>"
    )
}

/// Kills the owner of a run that waits for a limit, and sees the next one wait, too, and asks nothing.
fn restarts_while_it_waits(stage: &Stage, running: Running) -> Running {
    until("codex is held", || !stage.events("backend_held").is_empty());
    until("it says that it waits", || status(stage)["status"] == "waiting");
    let asked = stage.requests().len();
    running.signal(Signal::KILL);
    running.wait();
    stage.leaves_nothing();
    let next = stage.start("resume r");
    until("it goes on", || !stage.events("run_resumed").is_empty());
    until("it waits again", || status(stage)["status"] == "waiting");
    assert_eq!(stage.requests().len(), asked, "nothing is asked before the limit is lifted");
    next
}

/// The limit was met once, in a thread that was gone on with when it was lifted, and not before.
#[track_caller]
fn is_waited_for(stage: &Stage, state: &str) {
    let held = stage.events("backend_held");
    assert_eq!(held.iter().map(|held| &held["backend"]).collect::<Vec<_>>(), ["codex"]);
    let (_, lifted) = hold(stage);
    assert!(*starts(stage).last().unwrap() >= lifted, "{:?}", starts(stage));
    assert_eq!((stage.events("turn_failed").len(), stage.events("retry_at").len()), (1, 0));
    let asked: Vec<Seen> =
        stage.requests().into_iter().filter(|seen| seen.api == Api::Responses).collect();
    let shown: Vec<String> = asked.iter().map(|seen| conversation(&seen.conversation)).collect();
    assert_eq!(shown, [state.to_owned(), format!("{state}, again {state}")]);
    assert_eq!(thread(&asked[0]), thread(&asked[1]));
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_run_waits_for_a_limit_restarts_meanwhile_and_goes_on_by_itself() {
    let stage = Stage::prompts(&[("START", &limited("done"))]);
    let running = stage.start_run("--backend codex --retries 0");
    let next = restarts_while_it_waits(&stage, running);
    next.wait().prints("done\n").mentions(0, &["tries again"]);
    is_waited_for(&stage, "START");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn claude_goes_on_while_codex_is_held() {
    let look = format!("backend: codex\n---\n{}", limited("looked"));
    let stage = Stage::prompts(&[
        ("START", "model: say <fork next='NEXT'>LOOK</fork>"),
        ("NEXT", "model: wait gate\nmodel: say <goto>MORE</goto>"),
        ("MORE", "model: say <result>done</result>"),
        ("LOOK", &look),
    ]);
    let running = stage.start_run("--retries 0");
    stage.reaches("gate");
    until("codex is held", || !stage.events("backend_held").is_empty());
    let before = starts(&stage).len();
    stage.opens("gate");
    until("claude is done", || stage.project.state("r")["results"]["main"] == "done");
    let (held, lifted) = hold(&stage);
    let meanwhile = starts(&stage).split_off(before);
    assert_eq!(meanwhile.len(), 1, "MORE");
    assert!((held..lifted).contains(&meanwhile[0]), "{held} {meanwhile:?} {lifted}");
    let next = restarts_while_it_waits(&stage, running);
    next.wait().prints("done\n").mentions(0, &["tries again"]);
    assert_eq!(stage.project.state("r")["results"]["main_look1"], "looked");
    is_waited_for(&stage, "LOOK");
}
