//! Runs of states.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{BackendName, SessionId};
use raymond_core::prices::Price;
use raymond_core::protocol::TagName;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::permissions::{Checks, Permissions};
use raymond_core::run::prepared_answers::{PreparedAnswers, StateAnswers};
use raymond_core::run::settings::{ConfigHome, Pinning};
use raymond_core::run::start_flags::StartFlags;
use raymond_core::run::stop::{Interruption, StopMode};
use raymond_core::run::warning::Warning;
use raymond_core::run::{Input, Program, Ralph};
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::Value;
use raymond_core::workflow::EntryPoint;

use super::super::builder::{JournalBuilder, cut};

fn backend(name: &str) -> BackendName {
    BackendName::new(name)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Every setting.
pub(super) fn settings() -> JournalBuilder {
    let builder = JournalBuilder::states(&[("A.md", "Look at {{input}}."), ("B.md", "Go on.")]);
    let builder = builder.with(|settings| {
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
    let mut builder = builder.started_as(|start| {
        start.input = Some(Value::from("the tests"));
        start.backends = BTreeSet::from([backend("claude")]);
    });
    builder.says("main", r#"<call return="A">B</call>"#);
    builder.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    builder.resume(|settings| {
        settings.permissions =
            Permissions { mode: Some("plan".to_owned()), ..Permissions::default() };
        settings.start_flags =
            StartFlags { workspace: Some("/project".to_owned()), ..StartFlags::default() };
    });
    builder.fails("main", TurnFailure::Task { why: "gave up again".to_owned() });
    builder.resume(|settings| {
        settings.permissions = Permissions { allow: texts(&["Edit"]), ..Permissions::default() };
        settings.start_flags =
            StartFlags { schema_paths: texts(&["schemas"]), ..StartFlags::default() };
    });
    builder.says("main", "<result>done</result>");
    builder
}

/// The user's own prices, and other prices on a resume.
pub(super) fn priced() -> JournalBuilder {
    let prices = |dollars: u64| {
        let each = Micros(dollars * 1_000_000);
        let price = Price { input: each, output: each, cache_write: each, cache_read: each };
        Some(BTreeMap::from([("house-model".to_owned(), price)]))
    };
    let builder = JournalBuilder::states(&[("A.md", "Go on.")]);
    let mut builder = builder.with(|settings| settings.prices = prices(1)).started_as(|_| {});
    builder.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    builder.resume(|settings| settings.prices = prices(2));
    builder.says("main", "<result>done</result>");
    builder
}

const LIMITED: &[(&str, &str)] =
    &[("START.md", "Begin."), ("X.md", "---\nmax_visits: 1\n---\nOnce."), ("Y.md", "Go on.")];

/// Every tag, kept by an agent that may not take it, and taken after an edit.
pub(super) fn kept_transitions() -> JournalBuilder {
    let mut builder =
        JournalBuilder::states(LIMITED).with(|settings| settings.max_parallel = 20).started();
    let tags = [
        r#"<goto input="i">X</goto>"#,
        r#"<reset cd="sub" input="i" stack="clear">X</reset>"#,
        "<reset>X</reset>",
        r#"<call return="Y" input="i" model="opus">X</call>"#,
        r#"<call return="Y">X</call>"#,
        r#"<function return="Y">X</function>"#,
    ];
    let forks = r#"<fork next="Y">X</fork>"#.repeat(tags.len() + 1);
    builder.says("main", &forks);
    builder.says("main", "<result>parent</result>");
    for (index, tag) in tags.iter().enumerate() {
        builder.says(&format!("main_x{}", index + 1), tag);
    }
    let caller = format!("main_x{}", tags.len() + 1);
    builder.says(&caller, r#"<function return="X">Y</function>"#);
    builder.says(&caller, "<result>paid for</result>");
    builder.adopt(&[("START.md", "Begin."), ("X.md", "Again."), ("Y.md", "Go on.")]);
    builder.resume(|_| {});
    for index in 1..=tags.len() + 1 {
        let worker = format!("main_x{index}");
        builder.says(&worker, "<result>done</result>");
        if builder.run.scheduler.turns.contains_key(&worker.as_str().into()) {
            builder.says(&worker, "<result>returned</result>");
        }
    }
    builder
}

/// A fork with every attribute waits for a free place, beside a `goto` that names its next state.
pub(super) fn held_fork() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("B.md", "Wait."), ("W.md", "Work on {{item}}.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.max_agents = 1).started();
    builder.says("main", r#"<fork next="B" cd="sub" input="first" item="1">W</fork>"#);
    builder
        .says("main", r#"<fork cd="sub" input="second" item="2">W</fork><goto input="p">B</goto>"#);
    builder.says("main_w1", "<result>one</result>");
    builder.says("main_w2", "<result>two</result>");
    builder.says("main", "<result>all</result>");
    builder
}

/// Waits of a parent and its worker, beside a fork that is held: over in time, by a user, by a
/// resume after the clock was set back, and without a process.
pub(super) fn waits() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("B.md", "Wait."), ("W.md", "Work on {{item}}.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.max_agents = 1).started();
    builder.says("main", r#"<fork>W</fork><goto after="5m" input="p">B</goto>"#);
    builder.says("main_w1", r#"<goto at="2026-09-23T00:00:00Z">W</goto>"#);
    builder.after(Span::minutes(5));
    builder.says("main", r#"<fork>W</fork><goto after="21d">B</goto>"#);
    builder.feed(vec![Input::Now]);
    builder.says("main_w1", "<result>one</result>");
    builder.says("main_w2", "<result>two</result>");
    builder.stop(StopMode::Now);
    // A day back.
    builder.at = Timestamp(builder.at.0 - 86_400_000);
    builder.resume(|settings| settings.no_wait = true);
    builder.at = builder.at + Span::minutes(21 * 24 * 60);
    builder.resume(|_| {});
    builder.says("main", "<result>all</result>");
    builder
}

/// A held fork whose parent will wait.
pub(super) fn held_wait() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("W.md", "Work.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.max_agents = 1).started();
    builder.says("main", r#"<fork next="A">W</fork>"#);
    builder.says("main", r#"<fork>W</fork><goto at="2026-09-22T14:00:00Z">A</goto>"#);
    builder.says("main_w1", r#"<reset after="1s">W</reset>"#);
    builder.after(Span::minutes(1));
    builder.says("main_w1", "<result>one</result>");
    builder.says("main_w2", r#"<fork>W</fork><goto after="5m">A</goto>"#);
    builder
}

/// Waits for workers: met by all, by one, with a failure, over because of one, and too long.
pub(super) fn joins() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("B.md", "Gather."), ("W.md", "Work on {{item}}.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.reminders = 0).started();
    let fork = r#"<fork item="1">W</fork><fork item="2">W</fork>"#;
    builder.says("main", &format!(r#"{fork}<goto wait="all">A</goto>"#));
    builder.says("main_w2", "<result>two</result>");
    builder.says("main_w1", "<result>one</result>");
    builder.says("main", &format!(r#"{fork}<goto wait="any">A</goto>"#));
    builder.says("main_w3", "<result>three</result>");
    builder.says("main_w4", "<result>late</result>");
    builder.says("main", &format!(r#"{fork}<goto wait="done">A</goto>"#));
    builder.says("main_w5", "no tag");
    builder.says("main_w6", "<result>six</result>");
    builder.says("main", &format!(r#"{fork}<goto wait="2" then="B">A</goto>"#));
    builder.says("main_w7", "no tag");
    builder.ends("main_w8", cut(Interruption::Stop, Cost::Estimated(Micros(5_000)), true));
    builder.says("main", &format!(r#"{fork}<goto wait="all" timeout="5m" then="B">A</goto>"#));
    builder.says("main_w9", "<result>nine</result>");
    builder.after(Span::minutes(5));
    builder.ends("main_w10", cut(Interruption::Stop, Cost::Estimated(Micros(5_000)), true));
    builder.says("main", "<result>all</result>");
    builder
}

/// A user cancels a worker that works, one that failed, and with it the workers below.
pub(super) fn joins_cancelled() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("B.md", "Gather."), ("W.md", "Work.")];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.reminders = 0).started();
    let cancel = |agent: &str, key: &str| Input::CancelAgent {
        agent: agent.into(),
        by: "ada".to_owned(),
        key: key.to_owned(),
    };
    builder.says("main", r#"<fork>W</fork><fork>W</fork><goto wait="all">B</goto>"#);
    builder.says("main_w1", r#"<fork>W</fork><goto wait="all">W</goto>"#);
    builder.feed(vec![cancel("main_w1", "c1")]);
    builder.ends("main_w1_w1", cut(Interruption::Stop, Cost::Estimated(Micros(5_000)), true));
    builder.says("main_w2", "no tag");
    builder.feed(vec![cancel("main_w2", "c2")]);
    builder.resume(|_| {});
    builder.says("main", "<result>none</result>");
    builder
}

/// Asks people: an expired question, a default answer, an answer, and one that a limit holds back.
pub(super) fn questions() -> JournalBuilder {
    const OPEN: &str = "---\nallowed_tags: [ask, goto]\n---\nAsk.";
    let limited = "---\nmax_visits: 1\n---\n{{result}}";
    let mut builder =
        JournalBuilder::states(&[("A.md", OPEN), ("D.md", limited), ("E.md", OPEN)]).started();
    let answer = |ask: &str, key: &str| Input::Answer {
        ask: ask.parse().unwrap(),
        value: "yes".into(),
        by: "ada".to_owned(),
        key: key.to_owned(),
    };
    builder.says("main", r#"<ask next="D" options="yes|no" timeout="5m" then="E">One?</ask>"#);
    builder.after(Span::minutes(5));
    builder.says("main", r#"<ask next="A" timeout="5m" default="no">Two?</ask>"#);
    builder.after(Span::minutes(5));
    builder.says("main", r#"<ask next="D">Three?</ask>"#);
    builder.feed(vec![answer("main.3.1", "k1")]);
    builder.resume(|_| {});
    builder.says("main", "<goto>A</goto>");
    builder.says("main", r#"<ask next="D" options="yes|no">Four?</ask>"#);
    builder.feed(vec![answer("main.5.1", "k2")]);
    builder.resume(|_| {});
    builder
}

/// Replies answer one question, and have no option for another.
pub(super) fn answers() -> JournalBuilder {
    const OPEN: &str = "---\nallowed_tags: [ask]\n---\nAsk.";
    let answers = [
        ("A", StateAnswers::ByVisit(vec!["YES".to_owned()])),
        ("D.md", StateAnswers::Every("maybe".to_owned())),
    ];
    let answers = answers.map(|(state, answers)| (state.to_owned(), answers)).into();
    let mut builder = JournalBuilder::states(&[("A.md", OPEN), ("D.md", OPEN), ("E.md", "End.")])
        .with(|settings| settings.answers = PreparedAnswers(answers))
        .started();
    builder.says("main", r#"<ask next="D" options="yes|no">One?</ask>"#);
    builder.says("main", r#"<ask next="E" options="yes|no">Two?</ask>"#);
    builder
}

/// A process ends the wait of one agent, and leaves the failed one as it is.
pub(super) fn woken() -> JournalBuilder {
    let files = [("A.md", "Fork."), ("W.md", "Work.")];
    let mut builder = JournalBuilder::states(&files)
        .with(|settings| (settings.reminders, settings.no_wait) = (0, true))
        .started();
    builder.says("main", r#"<fork>W</fork><goto after="5m">A</goto>"#);
    builder.says("main_w1", "no tag");
    builder.at = builder.at + Span::minutes(5);
    let Input::Resume(mut resume) = builder.resume_input() else { unreachable!() };
    resume.is_wake = true;
    builder.feed(vec![Input::Resume(resume)]);
    builder.says("main", "<result>done</result>");
    builder
}

/// A failed agent, an edit of its states, and a transition that only the edit allows.
pub(super) fn adopted() -> JournalBuilder {
    let before = [("A.md", "---\nallowed_tags: [result]\n---\nOne."), ("B.md", "Two.")];
    let mut builder =
        JournalBuilder::states(&before).with(|settings| settings.reminders = 0).started();
    builder.says("main", "<goto>B</goto>");
    builder.adopt(&[("A.md", "One, edited."), ("B.md", "Two.")]);
    builder.resume(|_| {});
    builder.says("main", "<goto>B</goto>");
    builder.says("main", "<result>done</result>");
    builder
}

/// Two backends; one chooses its session ids itself, and estimates costs.
pub(super) fn client_chosen_sessions() -> JournalBuilder {
    let files = [
        ("A.md", "Ask."),
        ("B.md", "---\nbackend: codex\n---\nLook."),
        ("C.md", "---\nbackend: codex\n---\nGo on."),
    ];
    let mut builder = JournalBuilder::states(&files).started();
    builder.says_with("main", r#"<function return="A">B</function>"#, |finished| {
        finished.model = Some("claude-sonnet-4-5".to_owned());
    });
    let (cost, session) = (Cost::Estimated(Micros(30_000)), || Some(SessionId::new("thread-1")));
    let denied = vec!["Bash(rm)".to_owned()];
    builder.ends(
        "main",
        Outcome::Capped { cost, progressed: true, denied: denied.clone(), session: session() },
    );
    // A single agent's share was the whole budget.
    builder.resume(|settings| settings.budget = settings.budget.map(|cap| Micros(2 * cap.0)));
    let failure = TurnFailure::Transient { why: "overloaded".to_owned() };
    builder.ends("main", Outcome::Failed { failure, cost, denied, session: session() });
    builder.after(Span::minutes(10));
    let by = Interruption::Crash;
    builder.recovers(|| Outcome::Interrupted { by, cost, progressed: true, session: session() });
    builder.says_with("main", "<goto>C</goto>", |finished| {
        (finished.cost, finished.session) = (cost, session());
        finished.model = Some("gpt-5".to_owned());
    });
    builder.says_with("main", r#"<call return="C">B</call>"#, |finished| finished.cost = cost);
    builder.says_with("main", "<result>inner</result>", |finished| {
        (finished.cost, finished.session) = (cost, Some(SessionId::new("thread-2")));
    });
    builder.says_with("main", "<result>outer</result>", |finished| finished.cost = cost);
    builder.says("main", "<result>done</result>");
    builder
}

/// Every warning.
pub(super) fn warnings() -> JournalBuilder {
    let mut builder =
        JournalBuilder::states(&[("A.md", "Say {{nothing}}."), ("B.sh", "echo")]).started();
    builder.says_with("main", r#"<goto mood="good">B</goto> <goto>"#, |finished| {
        finished.warnings = vec![
            Warning::UnknownVariable { name: "nothing".to_owned(), nearest: None },
            Warning::Other { message: "a line of its stream is not JSON".to_owned() },
        ];
        finished.denied = vec!["WebFetch".to_owned()];
    });
    builder.says_with("main", "<result>done</result>", |finished| {
        finished.warnings = vec![Warning::InvalidUtf8];
        "careful\n".clone_into(&mut finished.reply.stderr);
    });
    builder
}

/// A reminder for every fault, and the failures that end them.
pub(super) fn faults() -> JournalBuilder {
    let files = [
        ("A.md", "---\nallowed_targets: {reset: [B]}\n---\nTry."),
        ("B.md", "---\non_denied: remind\n---\nTry."),
        ("C.md", "---\non_denied: fail\n---\nTry."),
        ("D.md", "---\nbackend: codex\n---\nTry."),
        ("E.sh", "true"),
    ];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.reminders = 20).started();
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
        builder.says("main", text);
    }
    builder.says("main", "<goto>B</goto>");
    let denied = || vec!["Bash(cargo test)".to_owned()];
    builder.says_with("main", "<goto>C</goto>", |finished| finished.denied = denied());
    builder.says("main", "<goto>C</goto>");
    builder.says_with("main", "<goto>E</goto>", |finished| finished.denied = denied());
    builder.resume(|_| {});
    builder.says("main", "<goto>E</goto>");
    builder
        .says_with("main", "no tag", |finished| "oh no\n".clone_into(&mut finished.reply.stderr));
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}

/// Texts without a usable tag, and a script that fails after it printed one.
pub(super) fn untagged() -> JournalBuilder {
    let files = [
        ("A.md", "Try."),
        ("B.md", "---\nallowed_transitions: [{tag: goto, target: C}]\n---\nTry."),
        ("C.sh", "true"),
    ];
    let mut builder =
        JournalBuilder::states(&files).with(|settings| settings.reminders = 20).started();
    for text in [
        "",
        "I would write `<goto>B</goto>` here.",
        "<GOTO>B</GOTO>",
        r#"<call return="NOWHERE">B</call>"#,
        "<goto>B</goto>",
        "I cannot do that.",
    ] {
        builder.says("main", text);
    }
    let failure = TurnFailure::Script {
        status: "exit status 3".to_owned(),
        stderr: String::new(),
        tag: Some(TagName::Goto),
    };
    builder.fails("main", failure);
    builder.resume(|_| {});
    builder.says("main", "<result>done</result>");
    builder
}

/// `max_visits` leads a return to a state of another backend.
pub(super) fn crossing_backends() -> JournalBuilder {
    let files = [
        ("A.md", "Begin."),
        ("B.md", "---\nmax_visits: 1\nthen: X\n---\nOnce."),
        ("X.md", "---\nbackend: codex\n---\nElsewhere."),
        ("Y.md", "Callee."),
    ];
    let mut builder = JournalBuilder::states(&files).started();
    builder.says("main", "<goto>B</goto>");
    builder.says("main", r#"<function return="B">Y</function>"#);
    builder.says("main", "<result>paid</result>");
    builder
}

/// A callee and a worker that end as failed on purpose, and `main`, which learns of the callee.
pub(super) fn declared_failures() -> JournalBuilder {
    let files = [
        ("START.md", "Begin."),
        ("TRY.md", "Try."),
        ("NEXT.md", "It is {{result_status}}: {{result}}."),
        ("WORKER.md", "Work."),
    ];
    let mut builder = JournalBuilder::states(&files).started();
    builder.says("main", r#"<call return="NEXT">TRY</call>"#);
    builder.says("main", r#"<result status="failed">no way</result>"#);
    builder.says("main", r#"<fork next="NEXT">WORKER</fork>"#);
    builder.says("main_worker1", r#"<result status="failed">nothing to do</result>"#);
    builder.says("main", "<result>half of it</result>");
    builder
}

/// A failed result that could not be returned, and a name in a prompt that is nearly another.
pub(super) fn kept_failed_result() -> JournalBuilder {
    let files =
        [("A.md", "{{staet}}"), ("B.md", "---\nmax_visits: 1\n---\nOnce."), ("Y.md", "Try.")];
    let mut builder = JournalBuilder::states(&files).started();
    builder.says_with("main", "<goto>B</goto>", |finished| {
        let (name, nearest) = ("staet".to_owned(), Some("state".to_owned()));
        finished.warnings = vec![Warning::UnknownVariable { name, nearest }];
    });
    builder.says("main", r#"<function return="B">Y</function>"#);
    builder.says("main", r#"<result status="failed">paid</result>"#);
    builder
}

/// A loop without a command that ends without a result.
pub(super) fn ralph_without_success() -> JournalBuilder {
    let files = [("PROMPT.md", "Do it.")];
    let mut builder = JournalBuilder::of(&files, &EntryPoint::Ralph("PROMPT.md".to_owned()));
    builder.program = Program::Ralph(Ralph::default());
    let mut builder = builder.with(|settings| settings.max_iterations = 1).started();
    builder.says("main", "not yet");
    builder
}

/// A loop whose command never passes.
pub(super) fn ralph_exhausted() -> JournalBuilder {
    let files = [("PROMPT.md", "Do it."), ("UNTIL.sh", "make check")];
    let mut builder = JournalBuilder::of(&files, &EntryPoint::Ralph("PROMPT.md".to_owned()));
    builder.program = Program::Ralph(Ralph { until: Some("make check".to_owned()) });
    let mut builder = builder.with(|settings| settings.max_iterations = 1).started();
    builder.says("main", "not yet");
    let failure = TurnFailure::Script {
        status: "exit status 2".to_owned(),
        stderr: String::new(),
        tag: None,
    };
    builder.fails("main", failure);
    builder
}

/// One prompt repeated without a result.
pub(super) fn ralph_without_result() -> JournalBuilder {
    let files = [("PROMPT.md", "Do it.")];
    let mut builder = JournalBuilder::of(&files, &EntryPoint::Ralph("PROMPT.md".to_owned()));
    builder.program = Program::Ralph(Ralph::default());
    let mut builder = builder
        .with(|settings| {
            settings.max_iterations = 2;
            settings.definition = Pinning::Unpinned;
        })
        .started();
    builder.says("main", "<goto>PROMPT</goto>");
    builder.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    builder
}
