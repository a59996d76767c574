//! How turns, agents and runs end.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{AgentId, BackendName};
use raymond_core::run::input::Outcome;
use raymond_core::run::settings::InterruptedScripts;
use raymond_core::run::stop::{Interruption, StopMode};
use raymond_core::run::{Event, Input, Record, Step};
use raymond_core::time::Span;
use raymond_core::value::Value;

use super::super::stage::{Stage, cut};

const TWO: &[(&str, &str)] = &[("A.md", "One."), ("B.md", "Two.")];

fn retry(stage: &mut Stage, failure: TurnFailure) {
    stage.fails("main", failure);
    stage.after(Span::minutes(60));
}

/// Every way in which a turn fails.
pub(super) fn failures() -> Stage {
    let mut stage = Stage::states(TWO).started();
    for clock in [Clock::FirstOutput, Clock::Idle, Clock::Wall] {
        retry(&mut stage, TurnFailure::Timeout { clock, after: Span::seconds(90) });
    }
    let until = Some(stage.now() + Span::minutes(30));
    retry(&mut stage, TurnFailure::Quota { until, why: "5 hour limit".to_owned() });
    retry(&mut stage, TurnFailure::Quota { until: None, why: "limit".to_owned() });
    stage.fails("main", TurnFailure::Auth { why: "log in".to_owned() });
    stage.resume(|_| {});
    let (head, tail) = ("begins".to_owned(), "ends".to_owned());
    stage.fails("main", TurnFailure::OutputTooLarge { limit: 64 << 20, head, tail });
    stage.resume(|_| {});
    let (head, tail) = (String::new(), String::new());
    stage.fails("main", TurnFailure::OutputTooLarge { limit: 64 << 20, head, tail });
    stage.resume(|_| {});
    stage.fails("main", TurnFailure::NotStarted { why: "no such client".to_owned() });
    stage.resume(|_| {});
    stage.says("main", "<result>at last</result>");
    stage
}

/// An owner dies again and again, until that fails its agent.
pub(super) fn crashes() -> Stage {
    let mut stage = Stage::states(TWO).started();
    let cost = Cost::Estimated(Micros(1_000));
    stage.recovers(|| cut(Interruption::Crash, cost, true));
    for _ in 0..5 {
        stage.recovers(|| cut(Interruption::Crash, cost, false));
    }
    stage.resume(|_| {});
    stage.says("main", "<result>done</result>");
    stage
}

/// A script that is not to be run twice.
pub(super) fn interrupted_script() -> Stage {
    let stage = Stage::states(&[("A.sh", "deploy")]);
    let mut stage =
        stage.with(|settings| settings.interrupted_scripts = InterruptedScripts::Fail).started();
    stage.recovers(|| cut(Interruption::Crash, Cost::Free, false));
    stage.resume(|settings| settings.interrupted_scripts = InterruptedScripts::Rerun);
    stage.says("main", "<result>deployed</result>");
    stage
}

/// A turn of which nobody knows what it cost, and one that is charged like the most expensive.
pub(super) fn unpriced() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.recovers(|| cut(Interruption::Crash, Cost::Unknown, true));
    stage.says("main", "<goto>B</goto>");
    stage.recovers(|| cut(Interruption::Crash, Cost::Unknown, true));
    stage.says("main", "<result>done</result>");
    stage
}

/// A run that is stopped when its turn is over, and one that is stopped at once.
pub(super) fn drained() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.stop(StopMode::AfterTurn);
    stage.says("main", "<goto>B</goto>");
    stage.resume(|_| {});
    stage.stop(StopMode::Now);
    stage.ends("main", cut(Interruption::Stop, Cost::Reported(Micros(5_000)), true));
    stage.resume(|_| {});
    stage.says("main", "<result>done</result>");
    stage
}

/// A run that is ended for good, after somebody had asked to stop it.
pub(super) fn cancelled() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.stop(StopMode::AfterTurn);
    stage.stop(StopMode::Cancel);
    stage.ends("main", cut(Interruption::Stop, Cost::Unknown, false));
    stage
}

/// A run that went back to an earlier record.
pub(super) fn rewound() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.says("main", r#"<call return="A">B</call>"#);
    stage.says("main", "<result>a future that is abandoned</result>");
    stage.rewind(2, "fedcba9876543210");
    let cost = Cost::Estimated(Micros(2_000));
    stage.recovers(|| cut(Interruption::Crash, cost, true));
    stage.says("main", "<result>another one</result>");
    stage.says("main", "<result>done</result>");
    stage
}

/// A run that went back to before its only paid worker, and then back to where it was.
pub(super) fn rewound_workers() -> Stage {
    let files = [("A.sh", "fork"), ("B.md", "Ask."), ("C.sh", "wait")];
    let mut stage = Stage::states(&files).started();
    stage.says("main", r#"<fork next="C">B</fork>"#);
    stage.says("main_b1", "<result>paid</result>");
    stage.rewind(1, "fedcba9876543210");
    stage.rewind(2, "0123456789fedcba");
    stage.recovers(|| cut(Interruption::Crash, Cost::Free, false));
    stage.says("main", "<result>done</result>");
    stage
}

/// A run that went back to before its cap was lowered.
pub(super) fn governed() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.fails("main", TurnFailure::Task { why: "no".to_owned() });
    stage.resume(|settings| settings.budget = Some(Micros(2_000_000)));
    stage.fails("main", TurnFailure::Task { why: "no".to_owned() });
    stage.rewind(2, "fedcba9876543210");
    stage.resume(|_| {});
    stage.says("main", "<result>done</result>");
    stage
}

/// One message that asks for more workers than there may be.
pub(super) fn too_many_agents() -> Stage {
    let mut stage = Stage::states(TWO).with(|settings| settings.max_agents = 2).started();
    stage.says("main", &r#"<fork next="A">B</fork>"#.repeat(3));
    stage.resume(|settings| settings.max_agents = 3);
    for agent in ["main", "main_b1", "main_b2", "main_b3"] {
        stage.says(agent, "<result>done</result>");
    }
    stage
}

/// Workers of workers, until a name would be too long.
pub(super) fn too_deep() -> Stage {
    let files = [("WORKER.md", "Fork."), ("END.md", "End.")];
    let mut stage = Stage::states(&files).with(|settings| settings.budget = None).started();
    let mut agent = AgentId::main();
    while stage.run.failed.is_empty() {
        stage.says(agent.as_str(), r#"<fork next="END">WORKER</fork>"#);
        if stage.run.failed.is_empty() {
            stage.says(agent.as_str(), "<result>done</result>");
        }
        agent = agent.worker(&"WORKER.md".into(), 1);
    }
    stage
}

/// Events that a journal may hold, and that nothing decides in this release.
pub(super) fn nothing_decides_yet() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.says("main", "<goto>B</goto>");
    let ask = "main.2.1".parse().unwrap();
    let due = Some(stage.now() + Span::minutes(1));
    let asked = Event::Asked { ask, question: Value::from("Which?"), due };
    let turn = "main.1.1".parse().unwrap();
    let adjusted = Event::CostAdjusted { turn, spent: Micros(123_456) };
    let released = Event::BackendReleased { backend: BackendName::new("claude") };
    let events = vec![asked, adjusted, released];
    for event in &events {
        raymond_core::run::apply(&mut stage.run, event);
    }
    let steps = vec![Step { cause: Input::Due, events }];
    stage.records.push(Record { seq: 3, at: stage.now(), steps });
    stage.after(Span::minutes(2));
    stage
}

/// A lower cap recalls a client that still runs; later the turn uses up its share without any output.
pub(super) fn lower_cap() -> Stage {
    let mut stage = Stage::states(&[("A.md", "Work."), ("W.sh", "sleep 1")]).started();
    stage.says("main", &r#"<fork next="A">W</fork>"#.repeat(3));
    stage.resume(|settings| settings.budget = Some(Micros(2_000_000)));
    stage.ends("main", cut(Interruption::Stop, Cost::AtLeast(Micros(30_000)), true));
    for _ in 0..5 {
        let cost = Cost::Reported(Micros(1));
        stage.ends(
            "main",
            Outcome::Capped { cost, progressed: false, denied: Vec::new(), session: None },
        );
    }
    stage
}

/// An answer is complete when its client has used up the share.
pub(super) fn capped_answer() -> Stage {
    let mut stage = Stage::states(TWO).started();
    stage.says_so("main", "<goto>B</goto>", |finished| finished.capped = true);
    stage.resume(|settings| settings.budget = Some(Micros(20_000_000)));
    stage.says("main", "<result>done</result>");
    stage
}

/// A disk without room ends the run until somebody resumes it.
pub(super) fn full_disk() -> Stage {
    let mut stage = Stage::states(&[("A.md", "Work.")]).started();
    stage.fails("main", TurnFailure::Environment { why: "no room on the disk".to_owned() });
    stage.resume(|_| {});
    stage.says("main", "<result>done</result>");
    stage
}
