//! kill -9 of the owner at twenty points of a fresh, a resumed and a branching turn, then `resume`.
//!
//! The state of the journal, the transcript, the client or the model defines each point; two more
//! points are random. Meanwhile the client still runs, has finished or is killed, too: each point
//! is tested with one of these endings for each kind of turn, and with another ending for the next
//! kind.

pub(crate) mod audit;
mod points;
pub(crate) mod scene;

use std::time::{Duration, SystemTime};

use raymond_testkit::dice::Dice;
use raymond_testkit::tally;

use audit::audit;
use points::{Ending, Moment, Since};
use scene::{Kind, Scene};

#[expect(clippy::print_stderr, reason = "shown when it fails")]
fn kill_and_resume(kind: Kind, moment: Moment, ending: Ending) {
    eprintln!("{kind:?}, {moment:?}, {ending:?}");
    let scene = Scene::new(kind);
    moment.kill_owner(&scene);
    tally::count("kill", "kill -9 of the owner of a real client", 1);
    let output = ending.resume(&scene).wait();
    audit(&scene, moment, ending, &output);
}

const ENDINGS: [Ending; 3] = [Ending::Adopted, Ending::Finished, Ending::Killed];

fn check(kind: Kind, moments: &[Moment]) {
    let turn = match kind {
        Kind::Fresh => 0,
        Kind::Resumed => 1,
        Kind::Branching => 2,
    };
    for (place, moment) in moments.iter().enumerate() {
        let ending = match moment {
            // The client is done already.
            Moment::Blind(_) => Ending::Finished,
            _ => ENDINGS[(place + turn) % ENDINGS.len()],
        };
        kill_and_resume(kind, *moment, ending);
    }
}

const WHILE_THE_CLIENT_STARTS: [Moment; 6] = [
    Moment::Recorded,
    Moment::Opened,
    Moment::Executed,
    Moment::Spawned,
    Moment::Spoken,
    Moment::Kept,
];

const WHILE_THE_MODEL_IS_ASKED: [Moment; 3] =
    [Moment::Asked, Moment::AskedTwice, Moment::Blind(Since::Asked)];

const WHILE_A_TOOL_RUNS: [Moment; 5] =
    [Moment::Called, Moment::Tool, Moment::ToolTwice, Moment::ToolEnded, Moment::Returned];

const AROUND_THE_RESULT: [Moment; 6] = [
    Moment::ToolReported,
    Moment::ToolReportedTwice,
    Moment::Blind(Since::ToolReported),
    Moment::Answered,
    Moment::Resulted,
    Moment::Settled,
];

/// Two random moments; `KILL_SEED=N` repeats them as far as timing allows.
#[expect(clippy::print_stderr, reason = "a failure can be repeated")]
fn by_chance(kind: Kind) {
    let given = std::env::var("KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos())
    });
    eprintln!("KILL_SEED={seed}");
    let mut dice = Dice::new(seed);
    for _ in 0..2 {
        let moment = Moment::After(Duration::from_millis(dice.below(4_000)));
        kill_and_resume(kind, moment, *dice.pick(&ENDINGS));
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn fresh_turn_is_killed_while_its_client_starts() {
    check(Kind::Fresh, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn fresh_turn_is_killed_during_a_request() {
    check(Kind::Fresh, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn fresh_turn_is_killed_while_a_tool_runs() {
    check(Kind::Fresh, &WHILE_A_TOOL_RUNS);
}

// proves: P2
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn fresh_turn_is_killed_around_its_result() {
    check(Kind::Fresh, &AROUND_THE_RESULT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn fresh_turn_is_killed_at_random() {
    by_chance(Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resumed_turn_is_killed_while_its_client_starts() {
    check(Kind::Resumed, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resumed_turn_is_killed_during_a_request() {
    check(Kind::Resumed, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resumed_turn_is_killed_while_a_tool_runs() {
    check(Kind::Resumed, &WHILE_A_TOOL_RUNS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resumed_turn_is_killed_around_its_result() {
    check(Kind::Resumed, &AROUND_THE_RESULT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resumed_turn_is_killed_at_random() {
    by_chance(Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn branching_turn_is_killed_while_its_client_starts() {
    check(Kind::Branching, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn branching_turn_is_killed_during_a_request() {
    check(Kind::Branching, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn branching_turn_is_killed_while_a_tool_runs() {
    check(Kind::Branching, &WHILE_A_TOOL_RUNS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn branching_turn_is_killed_around_its_result() {
    check(Kind::Branching, &AROUND_THE_RESULT);
}

// proves: P3
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn branching_turn_is_killed_at_random() {
    by_chance(Kind::Branching);
}
