//! Owners that are suspended and continued at random moments: a suspended owner still owns its run.

use raymond_testkit::tally;
use rustix::process::Signal;

use crate::cycles;
use crate::moments::Moments;
use crate::scene::{Client, Scene, States, Steps, Strikes};

/// Each cycle suspends a fresh run for a while; meanwhile no other process can drive it.
fn check<S: Scene>(short: u64) {
    let (mut moments, expected) = Moments::of::<S>();
    let mut refused = 0;
    let mut left = cycles(short);
    // On a busy machine, all moments may come too late at first.
    while left > 0 || refused == 0 {
        left = left.saturating_sub(1);
        let scene = S::new();
        let mut running = scene.start_or_resume();
        moments.wait();
        if running.is_alive() {
            running.signal(Signal::STOP);
            tally::count("kill", "SIGSTOP, then SIGCONT", 1);
            let intruder = scene.start_or_resume().wait();
            // Before the process takes the lock, or after it releases it, another process may
            // continue.
            assert!(matches!(intruder.code(), 0 | 6), "{intruder:?}");
            refused += u64::from(intruder.code() == 6);
            running.signal(Signal::CONT);
        } else {
            moments.came_too_late();
        }
        let output = running.wait();
        assert!(matches!(output.code(), 0 | 6), "{output:?}");
        scene.finishes(&expected, Strikes::default());
    }
    println!("{refused} refused");
}

// proves: P9
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn suspended_owner_stays_owner() {
    check::<States>(6);
    check::<Steps>(6);
    check::<Client>(6);
}
