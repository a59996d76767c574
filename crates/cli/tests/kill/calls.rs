//! Killed before and after every call of the kernel by which it changes a disk or another process.
//!
//! The process that goes on is killed at a call of its own, too, before a third one comes to the end.

use std::collections::BTreeSet;
use std::path::Path;

use raymond_testkit::dice::Dice;
use raymond_testkit::strike::{self, Call, Struck, Then};
use raymond_testkit::tally;

use crate::scene::{Client, Scene, States, Steps, undisturbed};
use crate::{cycles, seed};

/// Follows a run, and kills it at the first call that is the chosen one. It says at which.
fn strike(scene: &impl Scene, mut chosen: impl FnMut(&Call) -> bool) -> Option<Call> {
    let running = scene.stands_ready();
    let program = Path::new(env!("CARGO_BIN_EXE_raymond"));
    let at = |call: &Call| if chosen(call) { Then::Dies } else { Then::GoesOn };
    let struck = strike::follow(running.pid(), program, at).unwrap();
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

/// The one that comes after so many others.
fn after(mut others: usize) -> impl FnMut(&Call) -> bool {
    move |_| {
        let is_it = others == 0;
        others = others.saturating_sub(1);
        is_it
    }
}

/// The calls of an undisturbed run.
fn calls<S: Scene>() -> Vec<Call> {
    let mut calls = Vec::new();
    let note = |call: &Call| {
        calls.push(call.clone());
        false
    };
    assert_eq!(strike(&S::new(), note), None);
    calls
}

/// Each cycle is a fresh run: killed at a call of its own, killed again while it goes on, finished.
fn check<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let calls = calls::<S>();
    let cycles = cycles(short).min(calls.len() as u64);
    let first = dice.index(calls.len());
    for cycle in 0..usize::try_from(cycles).unwrap() {
        // All of them when there are enough cycles; else as many, as far apart from each other.
        let place = (first + cycle * calls.len() / usize::try_from(cycles).unwrap()) % calls.len();
        let scene = S::new();
        let again = dice.index(calls.len());
        let struck = [strike(&scene, after(place)), strike(&scene, after(again))];
        let kills = struck.iter().flatten().count();
        println!("{place}: {struck:?}");
        scene.finishes(&expected, kills);
    }
    let names: BTreeSet<&str> = calls.iter().map(|call| call.verb).collect();
    println!("{cycles} of {} calls: {names:?}", calls.len());
    for verb in ["write", "fdatasync", "fsync", "rename", "mkdir", "create", "spawn"] {
        assert!(names.contains(verb), "{verb} is among what is called: {names:?}");
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
