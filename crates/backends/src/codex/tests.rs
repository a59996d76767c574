//! Tests with clients written in bash. They write the lines and rollouts of the real client, which
//! is tested with the whole program.

use std::fs::{self, Permissions as Mode};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use raymond_core::agent::SessionPlan;
use raymond_core::budget::Micros;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{Nonce, SessionId, StateName, TurnId};
use raymond_core::run::Permissions;
use raymond_core::run::outcome::{Finished, Reply};
use raymond_core::run::turn_spec::Extras;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::sample::{self, THREAD, USED};
use super::*;
use crate::contract::{AttachResult, TurnObserver};
use crate::process::leftovers;

const FORK: &str = "01a1df23-b000-7e62-ac75-9fbb433c5c8e";
const CHOSEN: &str = "00000000-0000-8000-8000-000000000001";

struct Harness {
    directory: TempDir,
    codex: Headless<CodexProtocol>,
}

impl Harness {
    /// Creates a client that is this script. `$prompt` is the prompt.
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let command = directory.path().join("codex");
        let prelude = "#!/bin/bash\nsay() { printf '%s\\n' \"$@\"; }\nprompt=$(cat)\n\
                       echo \"$*\" >> \"$CODEX_HOME/arguments\"\n";
        fs::write(&command, format!("{prelude}{script}\n")).unwrap();
        fs::set_permissions(&command, Mode::from_mode(0o755)).unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        let settings = ClientSettings::of(command);
        Self { directory, codex: Headless::new(settings) }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn nonce(&self) -> Nonce {
        let name = self.directory.path().file_name().unwrap().to_string_lossy();
        Nonce::new(name.replace('.', "test"))
    }

    fn request(&self, plan: SessionPlan) -> PromptRequest {
        PromptRequest {
            started: StartedTurn {
                nonce: self.nonce(),
                turn: "main.1.1".parse::<TurnId>().unwrap(),
                attempt: 1,
                plan,
                transcript: self.directory.path().join("transcript.jsonl"),
                timeout: None,
                idle_timeout: None,
                cap: None,
                config_home: Some(self.home()),
            },
            location: StateName::new("START.md").into(),
            count: 1,
            prompt: "hello".to_owned(),
            notice: Some("a notice".to_owned()),
            cwd: self.directory.path().to_owned(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: None,
        }
    }

    async fn ask(&self, request: PromptRequest) -> Answer {
        let answer =
            self.codex.answer(request, TurnObserver::silent(CancellationToken::new())).await;
        assert_eq!(leftovers::find(&self.nonce()), []);
        answer
    }

    /// Returns the subcommands of all clients.
    fn asked(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.home().join("arguments")).unwrap_or_default();
        let after = |line: &str| line.rsplit_once("\"never\" ").unwrap().1.to_owned();
        asked.lines().map(after).collect()
    }

    fn rollout(&self, thread: &str, entries: &[String]) {
        sample::write(&self.home(), thread, entries);
    }
}

/// Returns a script that writes these lines.
fn say(lines: &[String]) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
    format!("say {}", quoted.join(" "))
}

fn answering(thread: &str) -> String {
    say(&[sample::thread(thread), sample::begins(), sample::text("hi"), sample::completed()])
}

fn id(id: &str) -> SessionId {
    SessionId::new(id)
}

fn turn(entries: &[String]) -> Vec<String> {
    sample::began("a").into_iter().chain(entries.iter().cloned()).collect()
}

#[tokio::test]
async fn fresh_turn_reports_the_opened_thread() {
    let harness = Harness::new(&answering(THREAD));
    harness.rollout(THREAD, &turn(&[sample::used("a")]));
    let answer = harness.ask(harness.request(SessionPlan::Fresh(id(CHOSEN)))).await;
    let cost = Cost::Estimated(Micros(USED));
    let (session, model) = (Some(id(THREAD)), Some(sample::MODEL.to_owned()));
    let expected = Finished { session, model, ..Finished::new(Reply::new("hi"), cost) };
    assert_eq!(answer, Answer::Finished(Box::new(expected)));
    assert_eq!(harness.asked(), ["-"]);
}

#[tokio::test]
async fn files_of_a_first_turn_are_private() {
    let harness = Harness::new(&answering(THREAD));
    harness.rollout(THREAD, &turn(&[sample::used("a")]));
    let transcripts = harness.directory.path().join("transcripts");
    let mut request = harness.request(SessionPlan::Fresh(id(CHOSEN)));
    request.schema = Some(json!({ "type": "string" }));
    request.started.transcript = transcripts.join("main.1.1.1.jsonl");
    let answer = harness.ask(request).await;
    let Answer::Finished(finished) = answer else { panic!("it answered: {answer:?}") };
    assert_eq!(finished.warnings, []);
    let mode =
        |name: &str| fs::metadata(transcripts.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("main.1.1.1.past.json")), (0o700, 0o600));
    assert_eq!(mode("main.1.1.1.schema.json"), 0o600);
}

#[tokio::test]
async fn unknown_thread_falls_back_only_to_plan() {
    let script = format!(
        "case \"$*\" in\n*resume*|*fork*) echo \"Error: no rollout found for thread id ${{@: -2:1}}\" >&2; exit 1;;\nesac\n{}",
        answering(THREAD)
    );
    let harness = Harness::new(&script);
    let fresh = SessionPlan::Fresh(id(CHOSEN));
    let answer = harness.ask(harness.request(fresh.continued_in(&id(FORK)))).await;
    assert!(matches!(answer, Answer::Finished(_)), "{answer:?}");
    assert_eq!(harness.asked(), [format!("resume -- {FORK} -"), "-".to_owned()]);
    let lost = |session: &str| Answer::Failed {
        failure: TurnFailure::LostSession { session: id(session) },
        cost: Cost::Reported(Micros::ZERO),
        denied: Vec::new(),
        session: None,
    };
    let resume = SessionPlan::Resume(id(THREAD));
    assert_eq!(harness.ask(harness.request(resume)).await, lost(THREAD));
    let branch = SessionPlan::Branch { from: id(THREAD), to: id(CHOSEN) };
    assert_eq!(harness.ask(harness.request(branch)).await, lost(THREAD));
    assert_eq!(harness.asked().len(), 4);
    // The client would take this for a name and open a thread.
    let resume = SessionPlan::Resume(id("my-thread"));
    assert_eq!(harness.ask(harness.request(resume)).await, lost("my-thread"));
    assert_eq!(harness.asked().len(), 4, "no client was asked");
}

#[tokio::test]
async fn client_is_ended_when_share_is_used_up() {
    let script = format!("{}\nexec sleep 600", say(&[sample::thread(THREAD), sample::begins()]));
    let harness = Harness::new(&script);
    harness.rollout(THREAD, &turn(&[sample::calls(), sample::used("a")]));
    let mut request = harness.request(SessionPlan::Fresh(id(CHOSEN)));
    request.started.cap = Some(Micros(USED));
    let expected = Answer::Capped {
        progressed: true,
        cost: Cost::Estimated(Micros(USED)),
        denied: Vec::new(),
        session: Some(id(THREAD)),
    };
    assert_eq!(harness.ask(request).await, expected);
}

// proves: P5
#[tokio::test]
async fn adopted_client_over_its_share_is_ended() {
    let script = format!("{}\nexec sleep 600", say(&[sample::thread(THREAD), sample::begins()]));
    let harness = Harness::new(&script);
    let request = [sample::calls(), sample::used("a")];
    harness.rollout(THREAD, &turn(&[request.clone(), request.clone(), request].concat()));
    let mut request = harness.request(SessionPlan::Fresh(id(CHOSEN)));
    request.started.cap = Some(Micros(USED));
    let step = SessionStep::Open(id(CHOSEN));
    let mut turn = harness.codex.protocol.begin(&request.started);
    harness.codex.start(&step, &request, request.message(), &mut turn).unwrap().keep_running();
    assert_eq!(harness.codex.attach(&request.started), AttachResult::Running);
    let observer = TurnObserver::silent(CancellationToken::new());
    let expected = Answer::Capped {
        progressed: true,
        cost: Cost::Estimated(Micros(3 * USED)),
        denied: Vec::new(),
        session: Some(id(THREAD)),
    };
    assert_eq!(harness.codex.follow(request.started, observer).await, expected);
    assert_eq!(leftovers::find(&harness.nonce()), []);
}

#[tokio::test]
async fn unsupported_option_is_never_ignored() {
    let harness = Harness::new(&answering(THREAD));
    let deny = vec!["Bash(rm:*)".to_owned()];
    let permissions = Permissions { deny, ..Permissions::default() };
    let request = PromptRequest { permissions, ..harness.request(SessionPlan::Fresh(id(CHOSEN))) };
    let why = preflight::PreflightProblem::Deny("Bash(rm:*)".into()).message();
    let expected = Answer::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Reported(Micros::ZERO),
        denied: Vec::new(),
        session: None,
    };
    assert_eq!(harness.ask(request).await, expected);
    assert_eq!(harness.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn too_long_prompt_is_not_sent() {
    let harness = Harness::new(&answering(THREAD));
    let fresh = || harness.request(SessionPlan::Fresh(id(CHOSEN)));
    let request =
        |length: usize| PromptRequest { prompt: "ä".repeat(length), notice: None, ..fresh() };
    let answer = harness.ask(request(LONGEST + 1)).await;
    assert!(format!("{answer:?}").contains("limit of 1048576 characters"), "{answer:?}");
    assert_eq!(harness.asked(), Vec::<String>::new());
    assert!(matches!(harness.ask(request(LONGEST)).await, Answer::Finished(_)));
}

#[tokio::test]
async fn a_schema_is_handed_over_in_a_file() {
    let harness = Harness::new(&answering(THREAD));
    let schema = Some(json!({ "type": "object" }));
    let request = PromptRequest { schema, ..harness.request(SessionPlan::Fresh(id(CHOSEN))) };
    let file = schema_file(&request.started);
    harness.ask(request).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), r#"{"type":"object"}"#);
    assert_eq!(harness.asked(), [format!("--output-schema={} -", file.display())]);
}

#[test]
fn finished_transcript_gives_thread_and_cost() {
    let harness = Harness::new("");
    harness.rollout(THREAD, &turn(&[sample::calls(), sample::used("a")]));
    let request = harness.request(SessionPlan::Fresh(id(CHOSEN)));
    let check = |lines: &[String], expected: AttachResult| {
        let text = lines.join("\n") + "\n";
        fs::write(&request.started.transcript, text).unwrap();
        assert_eq!(harness.codex.attach(&request.started), expected);
    };
    let free = Cost::Reported(Micros::ZERO);
    check(&[], AttachResult::without_answer(free, false, None));
    let lines = [sample::thread(THREAD), sample::begins()];
    let (cost, session) = (Cost::Estimated(Micros(USED)), Some(id(THREAD)));
    check(&lines, AttachResult::without_answer(cost, true, session.clone()));
    let [thread, begins] = lines;
    let model = Some(sample::MODEL.to_owned());
    let reply = Finished { session, model, ..Finished::new(Reply::new("hi"), cost) };
    let lines = [thread, begins, sample::text("hi"), sample::completed()];
    check(&lines, AttachResult::Ended(Answer::Finished(Box::new(reply))));
}

#[test]
fn earlier_attempt_is_not_charged_again() {
    let harness = Harness::new("");
    let prior_turns = turn(&[sample::calls(), sample::used("a")]);
    harness.rollout(THREAD, &prior_turns);
    let mut request = harness.request(SessionPlan::Resume(id(THREAD)));
    request.started.cap = Some(Micros(1));
    let step = SessionStep::Resume(id(THREAD));
    harness.codex.protocol.begin(&request.started).before_start(&step, &request).unwrap();
    let check = |entries: &[String], cost: Cost| {
        harness.rollout(THREAD, entries);
        let lines = [sample::thread(THREAD), sample::begins()].join("\n");
        fs::write(&request.started.transcript, lines).unwrap();
        let session = Some(id(THREAD));
        let progressed = cost != Cost::Unknown;
        let expected = AttachResult::without_answer(cost, progressed, session);
        assert_eq!(harness.codex.attach(&request.started), expected);
        let mut adopted = harness.codex.protocol.begin(&request.started);
        adopted.read_event(&crate::process::StreamEvent::Line(sample::thread(THREAD).into_bytes()));
        adopted.poll();
        assert_eq!(adopted.should_abort(), cost != Cost::Unknown, "it has spent nothing yet");
    };
    check(&prior_turns, Cost::Unknown);
    let used = [sample::used("b"), sample::calls(), sample::used("b")];
    let now: Vec<String> = sample::began("b").into_iter().chain(used).collect();
    check(&[prior_turns, now].concat(), Cost::Estimated(Micros(2 * USED)));
}

#[test]
fn a_home_of_its_own_comes_first() {
    let own = own_home(Some(PathBuf::from("/run/home")));
    assert_eq!(own.as_deref(), Some(Path::new("/run/home")));
    let relative = own_home(Some(PathBuf::from("home")));
    assert_eq!(relative, Some(env::current_dir().unwrap().join("home")));
}
