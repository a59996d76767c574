//! kill -9 of the owner at every point of a fresh, a resumed and a branching turn, then `resume`.
//!
//! Points are told by what the journal, the transcript or the model holds, and a few by chance. Each
//! has what may become of the client meanwhile: it still runs, it has finished, it was killed too.

pub(crate) mod audit;
mod points;
pub(crate) mod scene;

use std::time::{Duration, SystemTime};

use raymond_testkit::dice::Dice;

use audit::audit;
use points::{Ending, Moment, Since};
use scene::{Kind, Scene};

#[expect(clippy::print_stderr, reason = "shown when it fails")]
fn check(kind: Kind, points: &[(Moment, Ending)]) {
    for point in points {
        eprintln!("{kind:?}, {point:?}");
        let scene = Scene::new(kind);
        let (moment, ending) = *point;
        moment.strike(&scene);
        let output = ending.come(&scene).wait();
        audit(&scene, *point, &output);
    }
}

const WHILE_THE_CLIENT_STARTS: [(Moment, Ending); 6] = [
    (Moment::Recorded, Ending::Adopted),
    (Moment::Recorded, Ending::Killed),
    (Moment::Spawned, Ending::Adopted),
    (Moment::Spawned, Ending::Killed),
    (Moment::Spoken, Ending::Adopted),
    (Moment::Spoken, Ending::Killed),
];

const WHILE_THE_MODEL_IS_ASKED: [(Moment, Ending); 5] = [
    (Moment::Asked, Ending::Adopted),
    (Moment::Asked, Ending::Finished),
    (Moment::Asked, Ending::Killed),
    (Moment::AskedTwice, Ending::Adopted),
    (Moment::AskedTwice, Ending::Killed),
];

const WHILE_A_TOOL_RUNS: [(Moment, Ending); 6] = [
    (Moment::Tool, Ending::Adopted),
    (Moment::Tool, Ending::Finished),
    (Moment::Tool, Ending::Killed),
    (Moment::ToldTheModel, Ending::Adopted),
    (Moment::ToldTheModel, Ending::Finished),
    (Moment::ToldTheModel, Ending::Killed),
];

const AROUND_THE_RESULT: [(Moment, Ending); 3] = [
    (Moment::Blind(Since::Asked), Ending::Finished),
    (Moment::Blind(Since::ToldTheModel), Ending::Finished),
    (Moment::Settled, Ending::Finished),
];

/// Two moments of chance; `KILL_SEED=N` repeats them as far as a clock can.
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
        let ending = *dice.pick(&[Ending::Adopted, Ending::Finished, Ending::Killed]);
        check(kind, &[(moment, ending)]);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_fresh_turn_is_killed_while_its_client_starts() {
    check(Kind::Fresh, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_fresh_turn_is_killed_while_the_model_is_asked() {
    check(Kind::Fresh, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_fresh_turn_is_killed_while_a_tool_runs() {
    check(Kind::Fresh, &WHILE_A_TOOL_RUNS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_fresh_turn_is_killed_around_its_result() {
    check(Kind::Fresh, &AROUND_THE_RESULT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_fresh_turn_is_killed_by_chance() {
    by_chance(Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_resumed_turn_is_killed_while_its_client_starts() {
    check(Kind::Resumed, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_resumed_turn_is_killed_while_the_model_is_asked() {
    check(Kind::Resumed, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_resumed_turn_is_killed_while_a_tool_runs() {
    check(Kind::Resumed, &WHILE_A_TOOL_RUNS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_resumed_turn_is_killed_around_its_result() {
    check(Kind::Resumed, &AROUND_THE_RESULT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_resumed_turn_is_killed_by_chance() {
    by_chance(Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_branching_turn_is_killed_while_its_client_starts() {
    check(Kind::Branching, &WHILE_THE_CLIENT_STARTS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_branching_turn_is_killed_while_the_model_is_asked() {
    check(Kind::Branching, &WHILE_THE_MODEL_IS_ASKED);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_branching_turn_is_killed_while_a_tool_runs() {
    check(Kind::Branching, &WHILE_A_TOOL_RUNS);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_branching_turn_is_killed_around_its_result() {
    check(Kind::Branching, &AROUND_THE_RESULT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_branching_turn_is_killed_by_chance() {
    by_chance(Kind::Branching);
}
