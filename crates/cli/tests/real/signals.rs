//! lab
use rustix::process::Signal;
use crate::kills::scene::{FLAGS, Kind, Scene, signal_clients};
use crate::harness::until;
use crate::shown;

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_client() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] { for gate in ["first", "tool"] {
        let scene = Scene::new(Kind::Resumed);
        if gate == "tool" { scene.stage.opens("first"); }
        let running = scene.stage.start_run(FLAGS);
        scene.stage.reaches(gate);
        let before = scene.stage.processes();
        signal_clients(&scene.stage, signal);
        until("failed", || !scene.of_the_turn("turn_failed").is_empty());
        let after = scene.stage.processes();
        scene.opens_all();
        let output = running.wait();
        eprintln!("=== {signal:?} {gate} {} {}", output.code(), output.stdout);
        eprintln!("{}", output.stderr);
        eprintln!("{:?}\n{:?}", scene.of_the_turn("turn_failed"), scene.stage.charges());
        eprintln!("before {before:?}\nafter {after:?}");
        for seen in scene.stage.requests() { eprintln!("  {} | {} {:?}", &shown::session(&seen)[..4], shown::conversation(&seen.conversation), seen.fate); }
        eprintln!("{:?} billed {} spent {}", scene.tool(), scene.stage.billed(), scene.stage.spent());
    }}
}
#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_owner() {
    for signal in [Signal::INT, Signal::TERM] { for gate in ["first", "tool"] {
        let scene = Scene::new(Kind::Resumed);
        if gate == "tool" { scene.stage.opens("first"); }
        let running = scene.stage.start_run(FLAGS);
        scene.stage.reaches(gate);
        running.signal(signal);
        let output = running.wait();
        eprintln!("=== {signal:?} {gate} {} {}", output.code(), output.stdout);
        eprintln!("{}", output.stderr);
        eprintln!("{:?}\n", scene.stage.charges());
        eprintln!("after {:?}", scene.stage.processes());
        eprintln!("{}", scene.stage.raymond("status r").stdout);
        scene.opens_all();
        let output = scene.stage.raymond("resume r");
        eprintln!("{} {}", output.stderr, output.stdout);
        for seen in scene.stage.requests() { eprintln!("  {} | {} {:?}", &shown::session(&seen)[..4], shown::conversation(&seen.conversation), seen.fate); }
        eprintln!("{:?} billed {} spent {}", scene.tool(), scene.stage.billed(), scene.stage.spent());
    }}
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn lab_int() {
    for gate in ["first", "tool"] {
        let scene = Scene::new(Kind::Resumed);
        if gate == "tool" { scene.stage.opens("first"); }
        let running = scene.stage.start_run(FLAGS);
        scene.stage.reaches(gate);
        signal_clients(&scene.stage, Signal::INT);
        until("failed", || !scene.of_the_turn("turn_failed").is_empty());
        eprintln!("=== {:?}", scene.of_the_turn("turn_failed"));
        for line in scene.file("jsonl").lines() { eprintln!("  {}", line.chars().take(150).collect::<String>()); }
        running.signal(Signal::KILL);
        running.wait();
    }
}
