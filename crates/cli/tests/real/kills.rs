//! kill -9

mod points;
pub(crate) mod scene;

use std::time::Duration;

use points::{Ending, Gate, Moment};
use scene::{Kind, Scene};

fn check(kind: Kind, moment: Moment, ending: Ending) {
    let scene = Scene::new(kind);
    moment.strike(&scene);
    let left = scene.stage.processes();
    let output = ending.come(&scene).wait();
    eprintln!("=== {kind:?} {moment:?} {ending:?}: {} {:?}", output.code(), output.stdout);
    eprintln!("{}", output.stderr.lines().map(|l| format!("    {l}\n")).collect::<String>());
    for (p, c) in left { eprintln!("  left {p} {}", c.chars().take(150).collect::<String>()); }
    for (line, seen) in scene.stage.shown().iter().zip(scene.stage.requests()) { eprintln!("  {line}  {:?}", seen.fate); }
    eprintln!("  {:?} spent {} billed {} tool {:?}", scene.stage.charges(), scene.stage.spent(), scene.stage.billed(), scene.tool());
    eprintln!("  processes {:?}", scene.stage.processes());
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_fresh() { all(Kind::Fresh); }
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_resumed() { all(Kind::Resumed); }
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_branching() { all(Kind::Branching); }

fn all(kind: Kind) {
    use Ending::*;
    use Moment::*;
    for (moment, ending) in [
        (Recorded, Adopted), (Recorded, Killed), (Spawned, Killed), (Spoken, Adopted), (Spoken, Killed),
        (Asked, Adopted), (Asked, Finished), (Asked, Killed),
        (Tool, Adopted), (Tool, Finished), (Tool, Killed),
        (AskedAgain, Adopted), (AskedAgain, Finished), (AskedAgain, Killed),
        (BlindSince(Gate::First), Finished), (BlindSince(Gate::Last), Finished),
        (Settled, Finished), (AskedTwice, Killed), (After(Duration::from_millis(700)), Killed),
    ] { check(kind, moment, ending); }
}
