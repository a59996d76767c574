//! Ends of turns, agents and runs.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{AgentId, BackendName};
use raymond_core::run::outcome::Outcome;
use raymond_core::run::settings::InterruptedScripts;
use raymond_core::run::stop::{Interruption, StopMode, StopOrigin};
use raymond_core::run::{Event, Input, Record, RecordStep};
use raymond_core::time::Span;
use raymond_core::value::Value;

use super::super::builder::{JournalBuilder, cut};

const TWO: &[(&str, &str)] = &[("A.md", "One."), ("B.md", "Two.")];

fn retry(builder: &mut JournalBuilder, failure: TurnFailure) {
    builder.fails("main", failure);
    builder.after(Span::minutes(60));
}

/// Every kind of failure of a turn.
pub(super) fn failures() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    for clock in [Clock::FirstOutput, Clock::Idle, Clock::Wall] {
        retry(&mut builder, TurnFailure::Timeout { clock, after: Span::seconds(90) });
    }
    let until = Some(builder.now() + Span::minutes(30));
    retry(&mut builder, TurnFailure::Quota { until, why: "5 hour limit".to_owned() });
    retry(&mut builder, TurnFailure::Quota { until: None, why: "limit".to_owned() });
    builder.fails("main", TurnFailure::Auth { why: "log in".to_owned() });
    builder.resume(|_| {});
    let (head, tail) = ("begins".to_owned(), "ends".to_owned());
    builder.fails("main", TurnFailure::OutputTooLarge { limit: 64 << 20, head, tail });
    builder.resume(|_| {});
    let (head, tail) = (String::new(), String::new());
    builder.fails("main", TurnFailure::OutputTooLarge { limit: 64 << 20, head, tail });
    builder.resume(|_| {});
    builder.fails("main", TurnFailure::NotStarted { why: "no such client".to_owned() });
    builder.resume(|_| {});
    builder.says("main", "<result>at last</result>");
    builder
}

/// An owner dies repeatedly, until its agent fails.
pub(super) fn crashes() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    let cost = Cost::Estimated(Micros(1_000));
    builder.recovers(|| cut(Interruption::Crash, cost, true));
    for _ in 0..5 {
        builder.recovers(|| cut(Interruption::Crash, cost, false));
    }
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}

/// A script that must not run twice.
pub(super) fn interrupted_script() -> JournalBuilder {
    let builder = JournalBuilder::states(&[("A.sh", "deploy")]);
    let mut builder =
        builder.with(|settings| settings.interrupted_scripts = InterruptedScripts::Fail).started();
    builder.recovers(|| cut(Interruption::Crash, Cost::Free, false));
    builder.resume(|settings| settings.interrupted_scripts = InterruptedScripts::Rerun);
    builder.says("main", "<result>deployed</result>");
    builder
}

/// A turn with an unknown cost, and one that is charged like the most expensive.
pub(super) fn unpriced() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.recovers(|| cut(Interruption::Crash, Cost::Unknown, true));
    builder.says("main", "<goto>B</goto>");
    builder.recovers(|| cut(Interruption::Crash, Cost::Unknown, true));
    builder.says("main", "<result>done</result>");
    builder
}

/// A run that is stopped after its turn, and one that is stopped at once.
pub(super) fn drained() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.stop(StopMode::AfterTurn);
    builder.says("main", "<goto>B</goto>");
    builder.resume(|_| {});
    builder.stop(StopMode::Now);
    builder.ends("main", cut(Interruption::Stop, Cost::Reported(Micros(5_000)), true));
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}

/// A run that its process stops: for a signal, for an error, and for a caller that gave up.
pub(super) fn stopped_by_its_process() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    for by in [StopOrigin::Signal, StopOrigin::Trouble, StopOrigin::Caller] {
        builder.stop_by(by, StopMode::Now);
        builder.ends("main", cut(Interruption::Stop, Cost::Reported(Micros(5_000)), true));
        builder.resume(|_| {});
    }
    builder.says("main", "<result>done</result>");
    builder
}

/// A run that is cancelled after a stop request.
pub(super) fn cancelled() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.stop(StopMode::AfterTurn);
    builder.stop(StopMode::Cancel);
    builder.ends("main", cut(Interruption::Stop, Cost::Unknown, false));
    builder
}

/// A run that is rewound to an earlier record.
pub(super) fn rewound() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.says("main", r#"<call return="A">B</call>"#);
    builder.says("main", "<result>a future that is abandoned</result>");
    builder.rewind(2, "fedcba9876543210");
    let cost = Cost::Estimated(Micros(2_000));
    builder.recovers(|| cut(Interruption::Crash, cost, true));
    builder.says("main", "<result>another one</result>");
    builder.says("main", "<result>done</result>");
    builder
}

/// A run that is rewound to before its only paid worker, and then back again.
pub(super) fn rewound_workers() -> JournalBuilder {
    let files = [("A.sh", "fork"), ("B.md", "Ask."), ("C.sh", "wait")];
    let mut builder = JournalBuilder::states(&files).started();
    builder.says("main", r#"<fork next="C">B</fork>"#);
    builder.says("main_b1", "<result>paid</result>");
    builder.rewind(1, "fedcba9876543210");
    builder.rewind(2, "0123456789fedcba");
    builder.recovers(|| cut(Interruption::Crash, Cost::Free, false));
    builder.says("main", "<result>done</result>");
    builder
}

/// A run that is rewound to before its cap was lowered.
pub(super) fn governed() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.fails("main", TurnFailure::Task { why: "no".to_owned() });
    builder.resume(|settings| settings.budget = Some(Micros(2_000_000)));
    builder.fails("main", TurnFailure::Task { why: "no".to_owned() });
    builder.rewind(2, "fedcba9876543210");
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}

/// One message that asks for more workers than `max_agents`.
pub(super) fn too_many_agents() -> JournalBuilder {
    let mut builder =
        JournalBuilder::states(TWO).with(|settings| settings.max_agents = 2).started();
    builder.says("main", &r#"<fork next="A">B</fork>"#.repeat(3));
    builder.resume(|settings| settings.max_agents = 3);
    for agent in ["main", "main_b1", "main_b2", "main_b3"] {
        builder.says(agent, "<result>done</result>");
    }
    builder
}

/// Workers of workers, until a name would be too long.
pub(super) fn too_deep() -> JournalBuilder {
    let files = [("WORKER.md", "Fork."), ("END.md", "End.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.budget = None).started();
    let mut agent = AgentId::main();
    while builder.run.failed.is_empty() {
        builder.says(agent.as_str(), r#"<fork next="END">WORKER</fork>"#);
        if builder.run.failed.is_empty() {
            builder.says(agent.as_str(), "<result>done</result>");
        }
        agent = agent.worker(&"WORKER.md".into(), 1);
    }
    builder
}

/// Events that a journal may contain, but that this release never decides.
pub(super) fn unused_events() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.says("main", "<goto>B</goto>");
    let ask = "main.2.1".parse().unwrap();
    let due = Some(builder.now() + Span::minutes(1));
    let asked = Event::Asked { ask, question: Value::from("Which?"), due };
    let released = Event::BackendReleased { backend: BackendName::new("claude") };
    let events = vec![asked, released];
    for event in &events {
        raymond_core::run::apply(&mut builder.run, event);
    }
    let steps = vec![RecordStep { cause: Input::Due, events }];
    builder.records.push(Record { seq: 3, at: builder.now(), steps });
    builder.after(Span::minutes(2));
    builder
}

/// A lower cap recalls a running client; later the turn uses up its share without output.
pub(super) fn lower_cap() -> JournalBuilder {
    let mut builder = JournalBuilder::states(&[("A.md", "Work."), ("W.sh", "sleep 1")]).started();
    builder.says("main", &r#"<fork next="A">W</fork>"#.repeat(3));
    builder.resume(|settings| settings.budget = Some(Micros(2_000_000)));
    builder.ends("main", cut(Interruption::Stop, Cost::AtLeast(Micros(30_000)), true));
    for _ in 0..5 {
        let cost = Cost::Reported(Micros(1));
        builder.ends(
            "main",
            Outcome::Capped { cost, progressed: false, denied: Vec::new(), session: None },
        );
    }
    builder
}

/// An answer is complete although its client has used up the share.
pub(super) fn capped_answer() -> JournalBuilder {
    let mut builder = JournalBuilder::states(TWO).started();
    builder.says_with("main", "<goto>B</goto>", |finished| finished.capped = true);
    builder.resume(|settings| settings.budget = Some(Micros(20_000_000)));
    builder.says("main", "<result>done</result>");
    builder
}

/// A full disk ends the run until it is resumed.
pub(super) fn full_disk() -> JournalBuilder {
    let mut builder = JournalBuilder::states(&[("A.md", "Work.")]).started();
    builder.fails("main", TurnFailure::Environment { why: "no room on the disk".to_owned() });
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}
