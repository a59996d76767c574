//! `.raymond/` on a separate disk that is full at some byte, or read-only between two owners.

use raymond_testkit::dice::Dice;
use raymond_testkit::tally;
use rustix::process::Signal;

use crate::harness::until;
use crate::mounts::{in_private, mount};
use crate::scene::{Scene, States, Steps, Strikes, undisturbed};
use crate::{cycles, seed};

/// Each cycle is a fresh run on a disk of another size; with more room, the run finishes.
fn fills<S: Scene>(short: u64) {
    let mut dice = Dice::new(seed());
    let expected = undisturbed::<S>();
    let mut full = 0;
    for _ in 0..cycles(short) {
        let scene = S::new();
        let pages = 1 + dice.below(12);
        mount(
            scene.project(),
            ".raymond",
            &["-t", "tmpfs", "-o", &format!("size={}k", pages * 4), "tmpfs"],
        );
        let output = scene.start_or_resume().wait();
        println!("{pages} pages: {}", output.stderr.lines().last().unwrap_or_default());
        // A script without room for its files fails its agent, which a resume continues.
        assert!(matches!(output.code(), 0 | 1 | 7), "{output:?}");
        if output.code() != 0 {
            let says_why = ["the disk is full", "No space left"].map(|w| output.stderr.contains(w));
            assert_ne!(says_why, [false, false], "{output:?}");
            full += 1;
        }
        assert_eq!(scene.processes(), [0; 0], "nothing outlives a run without room");
        mount(scene.project(), ".raymond", &["-o", "remount,size=64m"]);
        scene.finishes(&expected, Strikes { kills: 0, ends: 1 });
    }
    tally::count("disks", "disks that were full", full);
    assert!(full > 0, "some disks are too small");
}

// proves: P1
#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn full_disk_at_any_byte_loses_no_record() {
    in_private("disks::full_disk_at_any_byte_loses_no_record", || {
        fills::<States>(12);
        fills::<Steps>(12);
    });
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn read_only_disk_loses_nothing() {
    in_private("disks::read_only_disk_loses_nothing", || {
        let expected = undisturbed::<States>();
        for cycle in 0..cycles(6) {
            let scene = States::new();
            mount(scene.project(), ".raymond", &["-t", "tmpfs", "tmpfs"]);
            let running = scene.start_or_resume();
            until("there is progress", || scene.settled() as u64 > cycle % 6);
            running.signal(Signal::KILL);
            running.wait();
            // Leftover processes may still have a file open there.
            until("it is read-only", || {
                let target = scene.project().path(".raymond");
                let words = ["-o", "remount,ro", target.to_str().unwrap()];
                scene.project().spawn("mount", &words).wait().code() == 0
            });
            let refused = scene.start_or_resume().wait();
            assert!(refused.stderr.contains("the file system is read-only"), "{refused:?}");
            assert_eq!(refused.code(), 7, "{refused:?}");
            assert_eq!(scene.project().raymond("status r --json").code(), 0);
            mount(scene.project(), ".raymond", &["-o", "remount,rw"]);
            scene.finishes(&expected, Strikes::kills(1));
            tally::count("disks", "disks that were read-only", 1);
        }
    });
}
