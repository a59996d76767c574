//! Killed before and after every call of the kernel by which it changes a disk or another process.
//!
//! The process that goes on is killed at a call of its own, too, before a third one comes to the end.

use std::collections::BTreeSet;
use std::path::Path;

use raymond_testkit::dice::Dice;
use raymond_testkit::strike::{self, Call, Edge, Signal, Struck, Then};
use raymond_testkit::tally;

use crate::harness::{Output, Project, Running, until};
use crate::scene::{Client, Scene, States, Steps, Strikes, undisturbed};
use crate::{cycles, seed};

/// Follows a process that stands ready, and kills it at the first call that is the chosen one. It says
/// at which; one that was never struck ends well.
fn strike(running: Running, mut chosen: impl FnMut(&Call) -> bool) -> Option<Call> {
    let at = |call: &Call| if chosen(call) { Then::Dies } else { Then::GoesOn };
    let struck = follow(&running, at);
    let output = running.wait();
    match struck {
        Struck::At(call) => {
            assert_eq!(output.status.code(), None, "it was killed {call}: {output:?}");
            tally::count("kill", &format!("kill -9 {} {}", call.edge, call.verb), 1);
            Some(call)
        }
        Struck::Never => {
            assert_eq!(output.code(), 0, "{output:?}");
            None
        }
    }
}

fn follow(running: &Running, at: impl FnMut(&Call) -> Then) -> Struck {
    let program = Path::new(env!("CARGO_BIN_EXE_raymond"));
    strike::follow(running.pid(), program, at).unwrap()
}

/// The one that comes after so many others.
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

/// So many places in a row of `length`, as far apart from each other as can be, from anywhere on: all
/// of them, when there are as many.
fn spread(length: usize, cycles: u64, dice: &mut Dice) -> Vec<usize> {
    let cycles = usize::try_from(cycles).unwrap().min(length);
    let first = dice.index(length);
    (0..cycles).map(|cycle| (first + cycle * length / cycles) % length).collect()
}

/// Each cycle is a fresh run: killed at a call of its own, killed again while it goes on, finished.
fn check<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let calls = calls(S::new().stands_ready());
    for place in spread(calls.len(), cycles(short), &mut dice) {
        let scene = S::new();
        let again = dice.index(calls.len());
        let struck = [place, again].map(|place| strike(scene.stands_ready(), after(place)));
        println!("{place}: {struck:?}");
        scene.finishes(&expected, Strikes::kills(struck.iter().flatten().count()));
    }
    let verbs: BTreeSet<&str> = calls.iter().map(|call| call.verb).collect();
    println!("{} calls: {verbs:?}", calls.len());
    for verb in ["write", "fdatasync", "fsync", "rename", "mkdir", "create", "spawn"] {
        assert!(verbs.contains(verb), "{verb} is among what is called: {verbs:?}");
    }
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_run_of_states_survives_a_kill_at_any_call() {
    check::<States>(60);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_run_of_steps_survives_a_kill_at_any_call() {
    check::<Steps>(60);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_client_is_asked_once_whatever_call_its_owner_is_killed_at() {
    check::<Client>(60);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_run_that_is_asked_to_end_at_any_call_ends_and_goes_on() {
    ends::<States>(20);
    ends::<Steps>(20);
    ends::<Client>(20);
}

/// Each cycle is a fresh run: asked to end at a call of its own, then finished.
fn ends<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let calls = calls(S::new().stands_ready());
    for place in spread(calls.len(), cycles(short), &mut dice) {
        let scene = S::new();
        let running = scene.stands_ready();
        let mut chosen = after(place);
        let gets = Then::Gets(Signal::SIGTERM);
        let struck = follow(&running, |call| if chosen(call) { gets } else { Then::GoesOn });
        println!("{place}: {struck:?}");
        let output = running.wait();
        // By its own handler, or before there was one; or too late.
        let code = output.status.code();
        assert!(matches!(code, Some(143 | 0) | None), "{output:?}");
        assert_eq!(scene.processes(), [0; 0], "nothing outlives a run that was asked to end");
        tally::count("kill", "SIGTERM at a call", 1);
        scene.finishes(&expected, Strikes { kills: 0, ends: 1 });
    }
}

/// A run that waits, and the file that lets it come to its end.
fn waiting() -> (Project, Running) {
    let script = "until test -e quick; do sleep 0.01; done; echo '<result>done</result>'";
    let project = Project::of(&[("wf/START.sh", script)]);
    let owner = project.start("run wf --run-id r");
    until("it runs", || project.events("r", "turn_started").len() == 1);
    (project, owner)
}

/// `raymond` with these words, stopped before its first step.
fn ready(project: &Project, words: &str) -> Running {
    let program = strike::stopped(env!("CARGO_BIN_EXE_raymond").as_ref());
    let all: Vec<&str> =
        program.iter().map(String::as_str).chain(words.split_whitespace()).collect();
    project.spawn(all[0], &all[1..])
}

#[test]
fn whoever_comes_second_goes_on_with_the_run_that_it_finds() {
    let expected = undisturbed::<States>();
    let moments = [
        ("create runs/r/lock", 0),
        ("create runs/r/journal.jsonl", 6),
        // The header is written, and nothing else.
        ("fdatasync runs/r/journal.jsonl", 6),
    ];
    for (name, code) in moments {
        let scene = States::new();
        let slow = scene.stands_ready();
        let mut other = None;
        follow(&slow, |call| {
            let is_it = call.edge == Edge::Before && format!("{} {}", call.verb, call.path) == name;
            if is_it && other.is_none() {
                other = Some(scene.goes_on().wait());
            }
            Then::GoesOn
        });
        assert_eq!(other.as_ref().map(Output::code), Some(code), "before {name}: {other:?}");
        assert_eq!(slow.wait().code(), 0);
        scene.finishes(&expected, Strikes::default());
    }
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_request_is_taken_whole_or_not_at_all_wherever_its_sender_is_killed() {
    let mut dice = Dice::new(seed());
    let (project, owner) = waiting();
    let calls = calls(ready(&project, "stop r"));
    owner.wait();
    let renames = |call: &Call| call.verb == "rename" && call.path.contains("inbox");
    assert!(calls.iter().any(renames), "{calls:?}");
    for place in spread(calls.len(), cycles(30), &mut dice) {
        let (project, owner) = waiting();
        let struck = strike(ready(&project, "stop r"), after(place));
        println!("{place}: {struck:?}");
        let again = project.raymond("stop r");
        assert_eq!(again.code(), 0, "{again:?}");
        assert_eq!(owner.wait().code(), 130);
        assert_eq!(project.processes("r"), [0; 0], "nothing is left running");
        assert_eq!(project.read(".raymond/runs/r/inbox"), "", "every request was answered");
        project.write("quick", "");
        project.raymond("resume r").prints("done\n");
    }
}
