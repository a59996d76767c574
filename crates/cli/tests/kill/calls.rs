//! Kills before and after every system call that changes a disk or another process.
//!
//! The process that resumes the run is killed at a call, too, before a third process finishes the
//! run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use raymond_testkit::dice::Dice;
use raymond_testkit::ptrace::{self, Action, Call, Edge, FollowEnd, Signal};
use raymond_testkit::tally;

use crate::harness::{Output, Project, Running, until};
use crate::scene::{Client, Scene, States, Steps, Strikes, Tool, undisturbed};
use crate::{cycles, seed};

/// Traces a paused process, kills it at the chosen call, and returns that call. A process that
/// never makes the call must succeed.
fn strike(running: Running, mut chosen: impl FnMut(&Call) -> bool) -> Option<Call> {
    let at = |call: &Call| if chosen(call) { Action::Kill } else { Action::Continue };
    let struck = follow(&running, at);
    let output = running.wait();
    match struck {
        FollowEnd::At(call) => {
            assert_eq!(output.status.code(), None, "it was killed {call}: {output:?}");
            tally::count("kill", &format!("kill -9 {} {}", call.edge, call.verb), 1);
            Some(call)
        }
        FollowEnd::Exited => {
            assert_eq!(output.code(), 0, "{output:?}");
            None
        }
    }
}

fn follow(running: &Running, at: impl FnMut(&Call) -> Action) -> FollowEnd {
    let program = Path::new(env!("CARGO_BIN_EXE_raymond"));
    ptrace::follow(running.pid(), program, at).unwrap()
}

/// Chooses the call after so many others.
fn after(mut others: usize) -> impl FnMut(&Call) -> bool {
    move |_| {
        let is_it = others == 0;
        others = others.saturating_sub(1);
        is_it
    }
}

/// The calls of an undisturbed run.
fn calls(running: Running) -> Vec<Call> {
    let mut calls = Vec::new();
    let note = |call: &Call| {
        calls.push(call.clone());
        false
    };
    assert_eq!(strike(running, note), None);
    calls
}

/// Returns evenly spread places below `length`, from a random one on: all of them if `cycles` is
/// not smaller.
fn spread(length: usize, cycles: u64, dice: &mut Dice) -> Vec<usize> {
    let cycles = usize::try_from(cycles).unwrap().min(length);
    let first = dice.index(length);
    (0..cycles).map(|cycle| (first + cycle * length / cycles) % length).collect()
}

/// Returns spread places, and every place of a call in the inbox.
fn spread_with_inbox(calls: &[Call], cycles: u64, dice: &mut Dice) -> BTreeSet<usize> {
    let inbox = (0..calls.len()).filter(|place| calls[*place].path.contains("inbox"));
    inbox.chain(spread(calls.len(), cycles, dice)).collect()
}

/// Each cycle is a fresh run: killed at one call, killed again at another while it resumes, then
/// finished.
fn check<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let calls = calls(S::new().start_paused());
    for place in spread(calls.len(), cycles(short), &mut dice) {
        let scene = S::new();
        let again = dice.index(calls.len());
        let struck = [place, again].map(|place| strike(scene.start_paused(), after(place)));
        println!("{place}: {struck:?}");
        scene.finishes(&expected, Strikes::kills(struck.iter().flatten().count()));
    }
    let verbs: BTreeSet<&str> = calls.iter().map(|call| call.verb).collect();
    println!("{} calls: {verbs:?}", calls.len());
    for verb in ["write", "fdatasync", "fsync", "rename", "mkdir", "create", "spawn"] {
        assert!(verbs.contains(verb), "{verb} is among what is called: {verbs:?}");
    }
}

// proves: P1
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn states_survive_a_kill_at_any_call() {
    check::<States>(40);
}

// proves: P2
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn steps_survive_a_kill_at_any_call() {
    check::<Steps>(40);
}

// proves: P2
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn kill_at_any_call_never_asks_twice() {
    check::<Client>(40);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn tool_survives_a_kill_at_any_call() {
    check::<Tool>(15);
}

// proves: P6
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn stop_at_any_call_ends_resumably() {
    ends::<States>(12);
    ends::<Steps>(12);
    ends::<Client>(12);
}

/// Each cycle is a fresh run: asked to end at one call, then finished.
fn ends<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let calls = calls(S::new().start_paused());
    for place in spread(calls.len(), cycles(short), &mut dice) {
        let scene = S::new();
        let running = scene.start_paused();
        let mut chosen = after(place);
        let gets = Action::Send(Signal::SIGTERM);
        let struck = follow(&running, |call| if chosen(call) { gets } else { Action::Continue });
        println!("{place}: {struck:?}");
        let output = running.wait();
        // The handler ended the process, or the signal came before the handler was installed, or
        // too late.
        let code = output.status.code();
        assert!(matches!(code, Some(143 | 0) | None), "{output:?}");
        assert_eq!(scene.processes(), [0; 0], "nothing outlives a run that was asked to end");
        tally::count("kill", "SIGTERM at a call", 1);
        scene.finishes(&expected, Strikes { kills: 0, ends: 1 });
    }
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn owner_suspended_at_any_call_stays_owner() {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<States>();
    let calls = calls(States::new().start_paused());
    let mut refused = 0;
    for place in spread(calls.len(), cycles(10), &mut dice) {
        let scene = States::new();
        let running = scene.start_paused();
        let mut chosen = after(place);
        let gets = Action::Send(Signal::SIGSTOP);
        let struck = follow(&running, |call| if chosen(call) { gets } else { Action::Continue });
        let intruder = scene.start_or_resume().wait();
        println!("{place}: {struck:?}, {:?}", intruder.status);
        // Before the process takes the lock, or after it releases it, another process may continue.
        assert!(matches!(intruder.code(), 0 | 6), "{intruder:?}");
        refused += u64::from(intruder.code() == 6);
        if struck != FollowEnd::Exited {
            running.signal(rustix::process::Signal::CONT);
            tally::count("kill", "SIGSTOP at a call, then SIGCONT", 1);
        }
        let output = running.wait();
        assert!(matches!(output.code(), 0 | 6), "{output:?}");
        scene.finishes(&expected, Strikes::default());
    }
    assert!(refused > 0, "some calls lie inside a run");
}

/// A project whose run waits for a file.
fn patient() -> Project {
    let script = "until test -e quick; do sleep 0.01; done; echo '<result>done</result>'";
    Project::of(&[("wf/START.sh", script)])
}

const RUNS: &str = "run wf --run-id r";

/// A run that waits.
fn waiting() -> (Project, Running) {
    let project = patient();
    let owner = project.start(RUNS);
    until("it runs", || project.events("r", "turn_started").len() == 1);
    (project, owner)
}

/// Checks that a stopped run continues, and that no request is left.
#[track_caller]
fn continues_after_a_stop(project: &Project) {
    assert_eq!(project.raymond("status r --json").json()["status"], "stopped");
    assert_eq!(project.processes("r"), [0; 0], "nothing is left running");
    project.write("quick", "");
    project.raymond("resume r").prints("done\n");
    let inbox = project.path(".raymond/runs/r/inbox");
    assert_eq!(fs::read_dir(inbox).unwrap().count(), 0, "nothing is left of any request");
}

/// `raymond` with these words, stopped before its first step.
fn ready(project: &Project, words: &str) -> Running {
    let program = ptrace::stopped_command(env!("CARGO_BIN_EXE_raymond").as_ref());
    let all: Vec<&str> =
        program.iter().map(String::as_str).chain(words.split_whitespace()).collect();
    project.spawn(all[0], &all[1..])
}

// proves: P9
#[test]
fn second_starter_resumes_the_existing_run() {
    let expected = undisturbed::<States>();
    let moments = [
        ("create runs/r/lock", 0),
        ("create runs/r/journal.jsonl", 6),
        // The header is written, and nothing else.
        ("fdatasync runs/r/journal.jsonl", 6),
    ];
    for (name, code) in moments {
        let scene = States::new();
        let slow = scene.start_paused();
        let mut other = None;
        follow(&slow, |call| {
            let is_it = call.edge == Edge::Before && format!("{} {}", call.verb, call.path) == name;
            if is_it && other.is_none() {
                other = Some(scene.start_or_resume().wait());
            }
            Action::Continue
        });
        assert_eq!(other.as_ref().map(Output::code), Some(code), "before {name}: {other:?}");
        assert_eq!(slow.wait().code(), 0);
        scene.finishes(&expected, Strikes::default());
    }
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn killed_sender_never_leaves_a_partial_request() {
    let mut dice = Dice::new(seed());
    let (project, owner) = waiting();
    let calls = calls(ready(&project, "stop r"));
    owner.wait();
    let renames = |call: &Call| call.verb == "rename" && call.path.contains("inbox");
    assert!(calls.iter().any(renames), "{calls:?}");
    for place in spread_with_inbox(&calls, cycles(20), &mut dice) {
        let (project, owner) = waiting();
        let struck = strike(ready(&project, "stop r"), after(place));
        println!("{place}: {struck:?}");
        let again = project.raymond("stop r");
        assert_eq!(again.code(), 0, "{again:?}");
        assert_eq!(owner.wait().code(), 130);
        continues_after_a_stop(&project);
    }
}

/// Traces the owner of a run, starts `raymond stop` once its script runs, and offers the calls from
/// there on. Returns the process of `raymond stop`.
fn stop_while_followed(
    project: &Project,
    owner: &Running,
    mut chosen: impl FnMut(&Call) -> bool,
) -> (FollowEnd, Running) {
    let mut asker = None;
    let struck = follow(owner, |call| {
        if asker.is_none() {
            if call.verb == "spawn" && call.edge == Edge::After {
                asker = Some(project.start("stop r"));
            }
            return Action::Continue;
        }
        if chosen(call) { Action::Kill } else { Action::Continue }
    });
    (struck, asker.unwrap())
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn killed_owner_answers_a_request_once() {
    let mut dice = Dice::new(seed());
    let project = patient();
    let owner = ready(&project, RUNS);
    let mut calls = Vec::new();
    let (_, asker) = stop_while_followed(&project, &owner, |call| {
        calls.push(call.clone());
        false
    });
    assert_eq!((owner.wait().code(), asker.wait().code()), (130, 0));
    let removes = |call: &Call| call.verb == "remove" && call.path.contains("inbox");
    assert!(calls.iter().any(removes), "{calls:?}");
    for place in spread_with_inbox(&calls, cycles(6), &mut dice) {
        let project = patient();
        let owner = ready(&project, RUNS);
        let (struck, asker) = stop_while_followed(&project, &owner, after(place));
        println!("{place}: {struck:?}");
        owner.wait();
        let asked = asker.wait();
        assert_eq!(asked.code(), 0, "{asked:?}");
        if let FollowEnd::At(call) = struck {
            tally::count("kill", &format!("kill -9 {} {}", call.edge, call.verb), 1);
        }
        assert_eq!(project.events("r", "run_ended").len(), 1, "it was stopped once");
        continues_after_a_stop(&project);
    }
}
