//! Kills at random times.

use std::thread::sleep;
use std::time::{Duration, Instant};

use raymond_testkit::dice::Dice;
use raymond_testkit::tally;
use rustix::process::Signal;

use crate::harness::until;
use crate::scene::{Client, Scene, States, Steps, Strikes, undisturbed};
use crate::{cycles, seed};

/// The number of kills of one run before it may finish.
const IN_A_ROW: usize = 3;

/// Random moments of a run.
pub(crate) struct Moments {
    dice: Dice,
    /// The duration of a run in microseconds, as measured so far.
    span: u64,
}

impl Moments {
    /// Measures an undisturbed run; also returns its outcome.
    pub(crate) fn of<S: Scene>() -> (Self, S::Outcome) {
        let begun = Instant::now();
        let expected = undisturbed::<S>();
        let span = u64::try_from(begun.elapsed().as_micros()).unwrap();
        (Self { dice: Dice::new(seed()), span }, expected)
    }

    pub(crate) fn wait(&mut self) {
        sleep(Duration::from_micros(self.dice.below(self.span)));
    }

    /// Shortens the duration, because the run had ended before the kill.
    pub(crate) fn came_too_late(&mut self) {
        self.span -= self.span / 8;
    }
}

/// Each cycle is a fresh run: killed up to three times, then finished.
fn check<S: Scene>(short: u64) {
    let (mut moments, expected) = Moments::of::<S>();
    let wanted = cycles(short);
    let (mut cycles, mut hit) = (0, 0);
    // On a busy machine, many moments come too late at first.
    while cycles < wanted || hit <= wanted {
        cycles += 1;
        let scene = S::new();
        let mut kills = 0;
        while kills < IN_A_ROW {
            let mut running = scene.start_or_resume();
            moments.wait();
            if !running.is_alive() {
                running.wait();
                moments.came_too_late();
                break;
            }
            running.signal(Signal::KILL);
            running.wait();
            kills += 1;
        }
        scene.finishes(&expected, Strikes::kills(kills));
        hit += kills as u64;
    }
    tally::count("kill", "kill -9 at a random moment", hit);
    println!("{hit} kills of {cycles} runs");
}

// proves: P3
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn states_survive_a_kill_at_any_moment() {
    check::<States>(15);
}

// proves: P3
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn steps_survive_a_kill_at_any_moment() {
    check::<Steps>(15);
}

// proves: P4
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn kill_at_any_moment_never_asks_twice() {
    check::<Client>(15);
}

/// Each cycle is a fresh run: asked to end at some moment, then finished.
fn ends<S: Scene>(short: u64) {
    let (mut moments, expected) = Moments::of::<S>();
    for _ in 0..cycles(short) {
        let scene = S::new();
        let running = scene.start_or_resume();
        moments.wait();
        running.signal(Signal::TERM);
        let output = running.wait();
        // The handler ended the process, or the signal came before the handler was installed, or
        // too late.
        assert!(matches!(output.status.code(), Some(143 | 0) | None), "{output:?}");
        assert_eq!(scene.processes(), [0; 0], "nothing outlives a run that was asked to end");
        tally::count("kill", "SIGTERM at a random moment", 1);
        scene.finishes(&expected, Strikes { kills: 0, ends: 1 });
    }
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn stop_at_any_moment_ends_resumably() {
    ends::<States>(6);
    ends::<Steps>(6);
    ends::<Client>(6);
}

// proves: P4
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn long_run_survives_ten_kills_in_a_row() {
    let mut dice = Dice::new(seed());
    let laps = 150;
    let calm = States::with_laps(laps);
    assert_eq!(calm.start_or_resume().wait().code(), 0);
    let scene = States::with_laps(laps);
    // The last lap waits, because a fast run must not end before it was killed so often.
    scene.close_last_lap();
    let kills = 10;
    for _ in 0..kills {
        let before = scene.settled();
        let running = scene.start_or_resume();
        until("there is progress", || scene.settled() > before || scene.is_in_last_lap());
        sleep(Duration::from_micros(dice.below(60_000)));
        running.signal(Signal::KILL);
        running.wait();
    }
    scene.open_last_lap();
    tally::count("kill", "kill -9 at a random moment", kills as u64);
    scene.finishes(&calm.outcome(), Strikes::kills(kills));
}
