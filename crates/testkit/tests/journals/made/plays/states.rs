//! Runs of states.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{BackendName, SessionId};
use raymond_core::prices::Price;
use raymond_core::run::input::Outcome;
use raymond_core::run::permissions::{Checks, Permissions};
use raymond_core::run::settings::{ConfigHome, Pinning};
use raymond_core::run::start_flags::StartFlags;
use raymond_core::run::stop::Interruption;
use raymond_core::run::warning::Warning;
use raymond_core::run::{Program, Ralph};
use raymond_core::time::Span;
use raymond_core::value::Value;
use raymond_core::workflow::Start as Entry;

use super::super::stage::Stage;

fn backend(name: &str) -> BackendName {
    BackendName::new(name)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Everything that can be set.
pub(super) fn settings() -> Stage {
    let stage = Stage::states(&[("A.md", "Look at {{input}}."), ("B.md", "Go on.")]);
    let stage = stage.with(|settings| {
        settings.strict_budget = true;
        settings.no_branch = BTreeSet::from([backend("claude")]);
        settings.replies = Some("/project/replies.yaml".to_owned());
        settings.replayed_backend = Some(backend("claude"));
        settings.model = Some("sonnet".to_owned());
        settings.effort = Some("high".to_owned());
        settings.permissions = Permissions {
            mode: Some("plan".to_owned()),
            allow: texts(&["Bash(make:*)"]),
            deny: texts(&["WebFetch"]),
            checks: Checks::Skipped,
        };
        settings.config_home = ConfigHome::PerAgent;
        settings.environment = Some(texts(&["PATH", "HOME"]));
        settings.timeout = Some(Span::minutes(20));
        settings.idle_timeout = Some(Span::seconds(90));
        settings.definition = Pinning::Unpinned;
        settings.vars = BTreeMap::from([("goal".to_owned(), "ship".to_owned())]);
        settings.start_flags = StartFlags {
            workspace: Some("/project".to_owned()),
            schema_paths: texts(&["schemas"]),
            backend: Some(backend("claude")),
        };
        settings.clients = BTreeMap::from([(backend("claude"), "2.0.0".to_owned())]);
    });
    let mut stage = stage.started_as(|start| {
        start.input = Some(Value::from("the tests"));
        start.backends = BTreeSet::from([backend("claude")]);
    });
    stage.says("main", r#"<call return="A">B</call>"#);
    stage.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    stage.resume(|settings| {
        settings.permissions =
            Permissions { mode: Some("plan".to_owned()), ..Permissions::default() };
        settings.start_flags =
            StartFlags { workspace: Some("/project".to_owned()), ..StartFlags::default() };
    });
    stage.fails("main", TurnFailure::Task { why: "gave up again".to_owned() });
    stage.resume(|settings| {
        settings.permissions = Permissions { allow: texts(&["Edit"]), ..Permissions::default() };
        settings.start_flags =
            StartFlags { schema_paths: texts(&["schemas"]), ..StartFlags::default() };
    });
    stage.says("main", "<result>done</result>");
    stage
}

/// Prices of the user's own, and others on a resume.
pub(super) fn priced() -> Stage {
    let prices = |dollars: u64| {
        let each = Micros(dollars * 1_000_000);
        let price = Price { input: each, output: each, cache_write: each, cache_read: each };
        Some(BTreeMap::from([("house-model".to_owned(), price)]))
    };
    let stage = Stage::states(&[("A.md", "Go on.")]);
    let mut stage = stage.with(|settings| settings.prices = prices(1)).started_as(|_| {});
    stage.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    stage.resume(|settings| settings.prices = prices(2));
    stage.says("main", "<result>done</result>");
    stage
}

const LIMITED: &[(&str, &str)] =
    &[("START.md", "Begin."), ("X.md", "---\nmax_visits: 1\n---\nOnce."), ("Y.md", "Go on.")];

/// Every tag, kept by an agent that may not take it, and taken after an edit.
pub(super) fn kept_transitions() -> Stage {
    let mut stage = Stage::states(LIMITED).with(|settings| settings.max_parallel = 20).started();
    let tags = [
        r#"<goto input="i">X</goto>"#,
        r#"<reset cd="sub" input="i" stack="clear">X</reset>"#,
        "<reset>X</reset>",
        r#"<call return="Y" input="i" model="opus">X</call>"#,
        r#"<call return="Y">X</call>"#,
        r#"<function return="Y">X</function>"#,
    ];
    let forks = r#"<fork next="Y">X</fork>"#.repeat(tags.len() + 1);
    stage.says("main", &forks);
    stage.says("main", "<result>parent</result>");
    for (index, tag) in tags.iter().enumerate() {
        stage.says(&format!("main_x{}", index + 1), tag);
    }
    let caller = format!("main_x{}", tags.len() + 1);
    stage.says(&caller, r#"<function return="X">Y</function>"#);
    stage.says(&caller, "<result>paid for</result>");
    stage.adopt(&[("START.md", "Begin."), ("X.md", "Again."), ("Y.md", "Go on.")]);
    stage.resume(|_| {});
    for index in 1..=tags.len() + 1 {
        let worker = format!("main_x{index}");
        stage.says(&worker, "<result>done</result>");
        if stage.run.scheduler.turns.contains_key(&worker.as_str().into()) {
            stage.says(&worker, "<result>returned</result>");
        }
    }
    stage
}

/// A fork with everything that it may carry waits for room, beside a `goto` that names its next.
pub(super) fn held_fork() -> Stage {
    let files = [("A.md", "Fork."), ("B.md", "Wait."), ("W.md", "Work on {{item}}.")];
    let mut stage = Stage::states(&files).with(|settings| settings.max_agents = 1).started();
    stage.says("main", r#"<fork next="B" cd="sub" input="first" item="1">W</fork>"#);
    stage
        .says("main", r#"<fork cd="sub" input="second" item="2">W</fork><goto input="p">B</goto>"#);
    stage.says("main_w1", "<result>one</result>");
    stage.says("main_w2", "<result>two</result>");
    stage.says("main", "<result>all</result>");
    stage
}

/// A failed agent, an edit of its states, and a transition that only the edit allows.
pub(super) fn adopted() -> Stage {
    let before = [("A.md", "---\nallowed_tags: [result]\n---\nOne."), ("B.md", "Two.")];
    let mut stage = Stage::states(&before).with(|settings| settings.reminders = 0).started();
    stage.says("main", "<goto>B</goto>");
    stage.adopt(&[("A.md", "One, edited."), ("B.md", "Two.")]);
    stage.resume(|_| {});
    stage.says("main", "<goto>B</goto>");
    stage.says("main", "<result>done</result>");
    stage
}

/// Two backends; one of them names its sessions itself, and estimates what turns cost.
pub(super) fn client_chosen_sessions() -> Stage {
    let files = [
        ("A.md", "Ask."),
        ("B.md", "---\nbackend: codex\n---\nLook."),
        ("C.md", "---\nbackend: codex\n---\nGo on."),
    ];
    let mut stage = Stage::states(&files).started();
    stage.says_so("main", r#"<function return="A">B</function>"#, |finished| {
        finished.model = Some("claude-sonnet-4-5".to_owned());
    });
    let (cost, session) = (Cost::Estimated(Micros(30_000)), || Some(SessionId::new("thread-1")));
    let denied = vec!["Bash(rm)".to_owned()];
    stage.ends(
        "main",
        Outcome::Capped { cost, progressed: true, denied: denied.clone(), session: session() },
    );
    // The share of a single agent was all of the budget.
    stage.resume(|settings| settings.budget = settings.budget.map(|cap| Micros(2 * cap.0)));
    let failure = TurnFailure::Transient { why: "overloaded".to_owned() };
    stage.ends("main", Outcome::Failed { failure, cost, denied, session: session() });
    stage.after(Span::minutes(10));
    let by = Interruption::Crash;
    stage.recovers(|| Outcome::Interrupted { by, cost, progressed: true, session: session() });
    stage.says_so("main", "<goto>C</goto>", |finished| {
        (finished.cost, finished.session) = (cost, session());
        finished.model = Some("gpt-5".to_owned());
    });
    stage.says_so("main", r#"<call return="C">B</call>"#, |finished| finished.cost = cost);
    stage.says_so("main", "<result>inner</result>", |finished| {
        (finished.cost, finished.session) = (cost, Some(SessionId::new("thread-2")));
    });
    stage.says_so("main", "<result>outer</result>", |finished| finished.cost = cost);
    stage.says("main", "<result>done</result>");
    stage
}

/// Everything that is worth a look and stops nothing.
pub(super) fn warnings() -> Stage {
    let mut stage = Stage::states(&[("A.md", "Say {{nothing}}."), ("B.sh", "echo")]).started();
    stage.says_so("main", r#"<goto mood="good">B</goto> <goto>"#, |finished| {
        finished.warnings = vec![
            Warning::UnknownVariable { name: "nothing".to_owned() },
            Warning::Other { message: "a line of its stream is not JSON".to_owned() },
        ];
        finished.denied = vec!["WebFetch".to_owned()];
    });
    stage.says_so("main", "<result>done</result>", |finished| {
        finished.warnings = vec![Warning::InvalidUtf8];
        "careful\n".clone_into(&mut finished.stderr);
    });
    stage
}

/// A reminder for every fault, and the failures that end them.
pub(super) fn faults() -> Stage {
    let files = [
        ("A.md", "---\nallowed_targets: {reset: [B]}\n---\nTry."),
        ("B.md", "---\non_denied: remind\n---\nTry."),
        ("C.md", "---\non_denied: fail\n---\nTry."),
        ("D.md", "---\nbackend: codex\n---\nTry."),
        ("E.sh", "true"),
    ];
    let mut stage = Stage::states(&files).with(|settings| settings.reminders = 20).started();
    for text in [
        "nothing",
        "<goto>B</goto><goto>C</goto>",
        "<goto>B",
        "<goto>NOWHERE</goto>",
        r#"<fork next="A">B</fork><fork next="B">B</fork>"#,
        r#"<fork next="A" cd="gone">B</fork>"#,
        "<reset>C</reset>",
        "<goto>D</goto>",
    ] {
        stage.says("main", text);
    }
    stage.says("main", "<goto>B</goto>");
    let denied = || vec!["Bash(cargo test)".to_owned()];
    stage.says_so("main", "<goto>C</goto>", |finished| finished.denied = denied());
    stage.says("main", "<goto>C</goto>");
    stage.says_so("main", "<goto>E</goto>", |finished| finished.denied = denied());
    stage.resume(|_| {});
    stage.says("main", "<goto>E</goto>");
    stage.says_so("main", "no tag", |finished| "oh no\n".clone_into(&mut finished.stderr));
    stage.resume(|_| {});
    stage.says("main", "<result>done</result>");
    stage
}

/// A limit leads a return to a state that another backend answers.
pub(super) fn crossing_backends() -> Stage {
    let files = [
        ("A.md", "Begin."),
        ("B.md", "---\nmax_visits: 1\nthen: X\n---\nOnce."),
        ("X.md", "---\nbackend: codex\n---\nElsewhere."),
        ("Y.md", "Callee."),
    ];
    let mut stage = Stage::states(&files).started();
    stage.says("main", "<goto>B</goto>");
    stage.says("main", r#"<function return="B">Y</function>"#);
    stage.says("main", "<result>paid</result>");
    stage
}

/// One prompt again and again, to no end.
pub(super) fn ralph_without_result() -> Stage {
    let files = [("PROMPT.md", "Do it.")];
    let stage = Stage::of(&files, &Entry::Ralph("PROMPT.md".to_owned()));
    let mut stage = stage
        .with(|settings| {
            settings.program = Program::Ralph(Ralph { max_iterations: 2, until: None });
            settings.definition = Pinning::Unpinned;
        })
        .started();
    stage.says("main", "<goto>PROMPT</goto>");
    stage.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    stage
}
