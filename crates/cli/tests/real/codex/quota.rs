//! Usage limits of Codex: a run waits for them, even across restarts, but agents of other clients
//! do not.

use raymond_testkit::model::{Api, RecordedRequest};
use rustix::process::Signal;

use super::thread;
use crate::harness::{Running, until};
use crate::quota::{hold, now, starts, status};
use crate::shown::conversation;
use crate::stage::Stage;

/// A prompt that meets a limit once, and then gets this result. The limit ends before the shortest
/// hold.
fn limited(result: &str) -> String {
    let reset = now() + 2;
    format!(
        "model: error 429 type=usage_limit_reached header:x-codex-primary-used-percent=100 \
         header:x-codex-primary-window-minutes=300 header:x-codex-primary-reset-at={reset} \
         message=enough\nmodel: again\nmodel: say <result>{result}</result>"
    )
}

/// Kills the owner of a run that waits for a limit, and checks that the next owner waits, too,
/// without a request.
fn restarts_while_it_waits(stage: &Stage, running: Running) -> Running {
    until("codex is held", || !stage.events("backend_held").is_empty());
    until("it says that it waits", || status(stage)["status"] == "waiting");
    let asked = stage.requests().len();
    running.signal(Signal::KILL);
    running.wait();
    stage.leaves_nothing();
    let next = stage.start("resume r");
    until("the run is resumed", || !stage.events("run_resumed").is_empty());
    until("it waits again", || status(stage)["status"] == "waiting");
    assert_eq!(stage.requests().len(), asked, "nothing is asked before the limit is lifted");
    next
}

/// Checks that the limit was met once, that its thread was continued only after the limit was
/// lifted, and that so many turns of another client started meanwhile.
#[track_caller]
fn is_waited_for(stage: &Stage, state: &str, others: &[&str], meanwhile: usize) {
    let held = stage.events("backend_held");
    assert_eq!(held.iter().map(|held| &held["backend"]).collect::<Vec<_>>(), ["codex"]);
    let (held, lifted) = hold(stage);
    let early = starts(stage).into_iter().filter(|at| (held..lifted).contains(at));
    assert_eq!(early.count(), meanwhile, "{held} {:?} {lifted}", starts(stage));
    assert_eq!((stage.events("turn_failed").len(), stage.events("retry_at").len()), (1, 0));
    let requests = stage.requests().into_iter().filter(|seen| seen.api == Api::Responses);
    let (asked, later): (Vec<RecordedRequest>, Vec<RecordedRequest>) =
        requests.partition(|seen| conversation(&seen.conversation).starts_with(state));
    let shown = |seen: &RecordedRequest| conversation(&seen.conversation);
    let conversations: Vec<String> = asked.iter().map(shown).collect();
    assert_eq!(conversations, [state.to_owned(), format!("{state}, again {state}")]);
    assert_eq!(thread(&asked[0]), thread(&asked[1]));
    assert_eq!(later.iter().map(shown).collect::<Vec<_>>(), others);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn usage_limit_survives_restart_and_lifts() {
    let stage = Stage::prompts(&[("START", &limited("done"))]);
    let running = stage.start_run("--backend codex --retries 0");
    let next = restarts_while_it_waits(&stage, running);
    next.wait().prints("done\n").mentions(0, &["tries again"]);
    is_waited_for(&stage, "START", &[], 0);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn codex_limit_does_not_hold_claude() {
    let look = format!("backend: codex\n---\n{}", limited("looked"));
    let stage = Stage::prompts(&[
        ("START", "model: say <fork next='NEXT'>LOOK</fork>"),
        ("NEXT", "model: wait gate\nmodel: say <fork next='MORE'>SECOND</fork>"),
        ("MORE", "model: say <result>done</result>"),
        ("LOOK", &look),
        ("SECOND", "backend: codex\n---\nmodel: say <result>seconded</result>"),
    ]);
    let running = stage.start_run("--retries 0");
    stage.reaches("gate");
    until("codex is held", || !stage.events("backend_held").is_empty());
    stage.opens("gate");
    until("claude is done", || stage.project.state("r")["results"]["main"] == "done");
    let agents = stage.raymond("status r").stdout;
    assert!(agents.contains("main_second2     SECOND.md #1"), "{agents}");
    let next = restarts_while_it_waits(&stage, running);
    next.wait().prints("done\n").mentions(0, &["tries again"]);
    let results = &stage.project.state("r")["results"];
    assert_eq!(
        (&results["main_look1"], &results["main_second2"]),
        (&"looked".into(), &"seconded".into())
    );
    is_waited_for(&stage, "LOOK", &["SECOND"], 1);
}
