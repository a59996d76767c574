//! The file format by examples, and the conformance suite for the scripted backend.

mod writes;

use std::io::Write as _;

use raymond_core::agent::Location;
use raymond_core::extension::Extension;
use raymond_core::ids::{StateName, TurnId};
use raymond_core::run::Permissions;
use raymond_core::run::prepared_answers::StateAnswers;
use raymond_core::run::turn_spec::Extras;

use super::*;
use crate::conformance::{self, Harness, Situation, planned};
use crate::contract::StartedTurn;

fn request(agent: &str, state: &str, visit: u32, turn: u32) -> PromptRequest {
    let started = StartedTurn {
        nonce: "c0ffee".into(),
        turn: TurnId { agent: agent.into(), visit: 40 + visit, turn },
        attempt: 1,
        plan: SessionPlan::Fresh("s-1".into()),
        transcript: "/nowhere".into(),
        timeout: None,
        idle_timeout: None,
        cap: None,
        config_home: None,
    };
    // A state has an extension, a key has none.
    let location = match Extension::of(state) {
        Some(_) => StateName::new(state).into(),
        None => Location::Step(state.parse().unwrap()),
    };
    PromptRequest {
        started,
        location,
        count: visit,
        prompt: "Look at the diff.".into(),
        notice: None,
        cwd: "/".into(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        extras: Extras::default(),
        schema: None,
        environment: None,
    }
}

fn client(yaml: &str) -> Scripted {
    Scripted::new(Replies::parse("replies.yaml", yaml).unwrap())
}

async fn ask(client: &Scripted, request: PromptRequest) -> Answer {
    client.answer(request, TurnObserver::silent(CancellationToken::new())).await
}

fn replied(text: &str, micros: u64) -> Answer {
    Answer::Finished(Box::new(Finished::new(Reply::new(text), Cost::Reported(Micros(micros)))))
}

fn task(why: &str, micros: u64) -> Answer {
    let why = why.to_owned();
    failed(TurnFailure::Task { why }, Cost::Reported(Micros(micros)))
}

fn not_started(why: &str, micros: u64) -> Answer {
    let why = why.to_owned();
    failed(TurnFailure::NotStarted { why }, Cost::Reported(Micros(micros)))
}

#[tokio::test]
async fn reply_is_chosen_by_position_in_run() {
    let client = client(
        "
START: every time
REVIEW:
  - first
  - [second, second again]
  - text: third
    cost: 0.02
FIX.md:
  1: one
  3: { 1: three, '*': three more }
  '*': other
agents:
  main_worker2:
    START: { '*': [mine] }
  main_worker3:
    '*': whatever
",
    );
    let check = async |agent: &str, state: &str, (visit, turn), expected: Answer| {
        let found = ask(&client, request(agent, state, visit, turn)).await;
        assert_eq!(found, expected, "{agent} {state} {visit} {turn}");
    };
    let say = |text| replied(text, 0);
    check("main", "START.md", (1, 1), say("every time")).await;
    check("main", "START.md", (9, 4), say("every time")).await;
    check("main", "REVIEW.md", (1, 1), say("first")).await;
    check("main", "REVIEW.md", (1, 3), say("first")).await;
    check("main", "REVIEW.md", (2, 1), say("second")).await;
    check("main", "REVIEW.md", (2, 2), say("second again")).await;
    check("main", "REVIEW.md", (3, 1), replied("third", 20_000)).await;
    check("main", "FIX.md", (1, 1), say("one")).await;
    check("main", "FIX.md", (2, 1), say("other")).await;
    check("main", "FIX.md", (3, 1), say("three")).await;
    check("main", "FIX.md", (3, 2), say("three more")).await;
    check("main_worker2", "START.md", (7, 1), say("mine")).await;
    check("main_worker2", "FIX.md", (1, 1), say("one")).await;
    check("main_worker3", "FIX.md", (1, 1), say("whatever")).await;
    let missing = |key: &str, place: &str| {
        not_started(&format!("no reply for {key} in replies.yaml: add one under {place}"), 0)
    };
    let key = "main / REVIEW.md / visit 4 / turn 1";
    check("main", "REVIEW.md", (4, 1), missing(key, "REVIEW")).await;
    let key = "main / REVIEW.md / visit 2 / turn 3";
    check("main", "REVIEW.md", (2, 3), missing(key, "REVIEW")).await;
    let key = "main_worker2 / START.md / visit 1 / turn 2";
    check("main_worker2", "START.md", (1, 2), missing(key, "START of agent main_worker2")).await;
    let key = "main / OTHER.md / visit 1 / turn 1";
    check("main", "OTHER.md", (1, 1), missing(key, "OTHER")).await;
}

#[tokio::test]
async fn attempts_differ_and_the_last_one_stays() {
    let client = client("A: { attempts: [{ fail: transient }, { capped: true, cost: 1 }, done] }");
    let check = async |attempt, expected: Answer| {
        let mut request = request("main", "A.md", 1, 1);
        request.started.attempt = attempt;
        assert_eq!(ask(&client, request).await, expected, "{attempt}");
    };
    let why = "scripted transient failure".to_owned();
    let transient = TurnFailure::Transient { why };
    let cost = Cost::Reported(Micros(1_000_000));
    check(1, failed(transient, Cost::Reported(Micros::ZERO))).await;
    check(2, Answer::Capped { cost, progressed: true, denied: Vec::new(), session: None }).await;
    check(3, replied("done", 0)).await;
    check(9, replied("done", 0)).await;
}

#[tokio::test]
async fn list_of_a_step_counts_its_attempts() {
    let client = client(
        "
once: same
v: [first, second]
w: [[first, second]]
loop[1].x: [own]
x: [first, second]
",
    );
    let check = async |state: &str, attempt, expected: &str| {
        let found = ask(&client, request("main", state, attempt, 1)).await;
        assert_eq!(found, replied(expected, 0), "{state} {attempt}");
    };
    for step in ["v", "w", "loop[0].x"] {
        check(step, 1, "first").await;
        check(step, 2, "second").await;
    }
    check("once", 2, "same").await;
    check("loop[1].x", 1, "own").await;
    let why = "no reply for main / attempt 3 of v in replies.yaml: add one under v";
    assert_eq!(ask(&client, request("main", "v", 3, 1)).await, not_started(why, 0));
}

#[tokio::test]
async fn expectation_of_step_shows_its_own_prompt() {
    let client = client("v: { text: x, expect: patch }");
    let prompt = "Answer in JSON.\n{ \"instructions\": \"Look.\" }".to_owned();
    let request = PromptRequest { prompt, ..request("main", "v", 1, 1) };
    let why = "main / attempt 1 of v expects \"patch\" in the prompt, which is \
               \"{ \"instructions\": \"Look.\" }\"";
    assert_eq!(ask(&client, request).await, not_started(why, 0));
}

#[tokio::test]
async fn reply_text_is_unchanged() {
    let check = async |yaml: &str, expected: Answer| {
        let client = client(&format!("defaults: {{cost: 0.01}}\nA: {yaml}"));
        let found = ask(&client, request("main", "A.md", 1, 1)).await;
        assert_eq!(found, expected, "{yaml}");
    };
    let fails = async |yaml: &str, failure| {
        check(yaml, failed(failure, Cost::Reported(Micros(10_000)))).await;
    };
    check("plain", replied("plain", 10_000)).await;
    check("{ text: x, cost: $2.50 }", replied("x", 2_500_000)).await;
    check("{ text: x, cost: 3 }", replied("x", 3_000_000)).await;
    check("{ messages: [one, two], delay: 1ms }", replied("two", 10_000)).await;
    check("{ text: x, expect: [diff, Look] }", replied("x", 10_000)).await;
    let unpriced = Finished::new(Reply::new("x"), Cost::Unknown);
    check("{ text: x, cost: unknown }", Answer::Finished(Box::new(unpriced))).await;
    let partly = Finished::new(Reply::new("x"), Cost::AtLeast(Micros(200_000)));
    check("{ text: x, cost: at least 0.20 }", Answer::Finished(Box::new(partly))).await;
    let denied = Finished {
        denied: vec!["Bash(ls)".into(), "Edit".into()],
        ..Finished::new(Reply::new("x"), Cost::Reported(Micros(10_000)))
    };
    check("{ text: x, denied: [Bash(ls), Edit] }", Answer::Finished(Box::new(denied))).await;
    let key = "main / A.md / visit 1 / turn 1";
    let why = format!("{key} expects \"patch\" in the prompt, which is \"Look at the diff.\"");
    check("{ text: x, expect: patch }", not_started(&why, 10_000)).await;
    let why = format!("{key} expects \"a b\" in the prompt, which is \"Look at the diff.\"");
    check("{ text: x, expect: \"a\\nb\" }", not_started(&why, 10_000)).await;
    check("{ text: x, delay: 0s }", replied("x", 10_000)).await;
    let why = "broken".to_owned();
    fails("{ fail: { kind: task, message: broken } }", TurnFailure::Task { why }).await;
    let why = "scripted auth failure".to_owned();
    fails("{ fail: auth }", TurnFailure::Auth { why }).await;
    let (why, until) = ("scripted quota failure".to_owned(), None);
    fails("{ fail: quota }", TurnFailure::Quota { until, why }).await;
    let (why, until) = ("later".to_owned(), Some(Timestamp(1000)));
    let quota = "{ fail: { kind: quota, message: later, until: '1970-01-01T00:00:01Z' } }";
    fails(quota, TurnFailure::Quota { until, why }).await;
    let (clock, after) = (Clock::Idle, Span::minutes(30));
    fails("{ fail: timeout }", TurnFailure::Timeout { clock, after }).await;
    let why = format!("{key} cannot lose its session because it opens a new one");
    fails("{ fail: lost_session }", TurnFailure::Task { why }).await;
}

#[tokio::test]
async fn a_quota_may_be_lifted_after_a_while() {
    let client = client("A: { fail: { kind: quota, for: 1h } }");
    let before = reset_time(Reset::After(Span::minutes(60)));
    let found = ask(&client, request("main", "A.md", 1, 1)).await;
    let after = reset_time(Reset::After(Span::minutes(60)));
    match found {
        Answer::Failed { failure: TurnFailure::Quota { until, .. }, .. } => {
            assert!((before..=after).contains(&until));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn session_is_lost_only_if_required() {
    let client = client("A: { fail: lost_session }");
    let lost = |session: &str| TurnFailure::LostSession { session: session.into() };
    let check = async |plan: SessionPlan, session: &str| {
        let request = planned(request("main", "A.md", 1, 1), plan);
        let expected = failed(lost(session), Cost::Reported(Micros::ZERO));
        assert_eq!(ask(&client, request).await, expected);
    };
    let branch = SessionPlan::Branch { from: "caller".into(), to: "new".into() };
    check(SessionPlan::Resume("own".into()), "own").await;
    check(branch.clone(), "caller").await;
    let continued = SessionPlan::Continue { session: "new".into(), or_else: Box::new(branch) };
    check(continued, "caller").await;
}

#[tokio::test]
async fn a_cancelled_turn_says_whether_it_had_spoken() {
    let check = async |yaml: &str, progressed| {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let client = client(yaml);
        let found =
            client.answer(request("main", "A.md", 1, 1), TurnObserver::silent(cancel)).await;
        let cost = Cost::Reported(Micros(50_000));
        assert_eq!(
            found,
            Answer::Interrupted { by: Interruption::Stop, cost, progressed, session: None },
            "{yaml}"
        );
    };
    check("A: { hang: true, cost: 0.05 }", false).await;
    check("A: { text: x, delay: 10m, cost: 0.05 }", false).await;
    check("A: { messages: [x, y], delay: 10m, cost: 0.05 }", true).await;
}

fn mistaken(yaml: &str, expected: &[&str]) {
    let mistakes = Replies::parse("r.yaml", yaml).unwrap_err();
    let found: Vec<_> = mistakes
        .iter()
        .map(|mistake| {
            let hint = mistake.hint.as_deref().map(|hint| format!("; {hint}"));
            format!("{mistake}{}", hint.unwrap_or_default())
        })
        .collect();
    assert_eq!(found, expected, "{yaml}");
}

#[test]
fn every_mistake_has_its_position() {
    mistaken(
        "A: { txt: x }\nB:\n  - { text: x, delay: soon }\n  - 7\nagents: [x]\n",
        &[
            "r.yaml:1:6: error: unknown key \"txt\"; did you mean \"text\"?",
            "r.yaml:3:23: error: \"soon\" is not a duration such as 250ms, 90s, 10m, 2h or 7d",
            "r.yaml:4:5: error: expected a reply: text or a mapping, found a number (quote it to \
             make it text)",
            "r.yaml:5:9: error: expected a mapping from agents to their replies, found a list",
        ],
    );
    mistaken(
        "- x",
        &["r.yaml:1:1: error: expected a mapping from states to replies, found a list"],
    );
    mistaken(
        "q: { grade: 3 }",
        &["r.yaml:1:6: error: unknown key \"grade\"; known keys: text, messages, fail, hang, \
             capped, cost, delay, denied, expect, write, attempts; an answer in JSON is a text in \
             quotes: '{\"grade\": 1}'"],
    );
    mistaken(
        "A: { text: Done, <goto>B</goto> }",
        &["r.yaml:1:18: error: unknown key \"<goto>B</goto>\"; known keys: text, messages, fail, \
             hang, capped, cost, delay, denied, expect, write, attempts; in braces, a text that \
             contains a comma needs quotes"],
    );
    let deep = format!("A: {}{}", "[".repeat(40), "]".repeat(40));
    mistaken(
        &deep,
        &["r.yaml:1:19: error: lists and mappings are nested more than 16 levels deep"],
    );
    mistaken("A: []", &["r.yaml:1:4: error: an empty list has no visit"]);
    mistaken("A: [[]]", &["r.yaml:1:5: error: an empty list has no turn"]);
    mistaken("A:", &["r.yaml:1:2: error: expected a reply: text or a mapping, found nothing"]);
    mistaken("A: { attempts: [] }", &["r.yaml:1:16: error: an empty list has no attempt"]);
}

#[test]
fn answers_are_read_by_state() {
    let yaml = "answers: { START: approve, B.sh: [a, b] }\nSTART: <result>x</result>\n";
    let answers = Replies::parse("replies.yaml", yaml).unwrap().answers();
    let list = StateAnswers::ByVisit(vec!["a".into(), "b".into()]);
    let expected = [("START", StateAnswers::Every("approve".into())), ("B.sh", list)];
    assert_eq!(answers.0, expected.map(|(name, of)| (name.to_owned(), of)).into());
    mistaken(
        "answers: yes",
        &["r.yaml:1:10: error: expected a mapping from states to answers, found text"],
    );
    mistaken(
        "answers: { A: 1, B: [x, {}], C: { 1: x } }",
        &[
            "r.yaml:1:15: error: expected text, found a number (quote it to make it text)",
            "r.yaml:1:25: error: expected text, found a mapping",
            "r.yaml:1:33: error: expected text, found a mapping",
        ],
    );
    let long = format!("answers: {{ A: {} }}", "x".repeat(16 * 1024 + 1));
    mistaken(&long, &["r.yaml:1:15: error: an answer has at most 16 KiB"]);
}

#[test]
fn conflicting_keys_are_mistakes() {
    let one = "error: a reply has exactly one of text, messages, fail, hang and capped";
    mistaken("A: { text: x, hang: true }", &[&format!("r.yaml:1:4: {one}")]);
    mistaken("A: { cost: 1 }", &[&format!("r.yaml:1:4: {one}")]);
    mistaken(
        "A: { fail: task, denied: [x] }",
        &["r.yaml:1:4: error: `denied` goes with text or messages only"],
    );
    mistaken(
        "A: { text: x, attempts: [y] }",
        &["r.yaml:1:15: error: `attempts` must be the only key: each attempt is a separate reply"],
    );
    mistaken(
        "A: { 1: x, two: y, 0: z }",
        &[
            "r.yaml:1:12: error: expected the number of a visit from 1, or \"*\"",
            "r.yaml:1:20: error: expected the number of a visit from 1, or \"*\"",
        ],
    );
}

#[test]
fn invalid_values_are_mistakes() {
    mistaken("A: x\nA.md: y", &["r.yaml:2:1: error: \"A\" and \"A.md\" name the same state"]);
    mistaken(
        "A: { fail: qota }",
        &["r.yaml:1:12: error: unknown kind \"qota\"; did you mean \"quota\"?"],
    );
    let keys = "only quota has `for` or `until`; timeout and lost_session have no `message`";
    mistaken(
        "A: { fail: { kind: timeout, message: x } }",
        &[&format!("r.yaml:1:20: error: {keys}")],
    );
    mistaken(
        "A: { fail: { message: x } }",
        &[
            "r.yaml:1:12: error: a failure needs a kind: transient, timeout, quota, auth, task, lost_session",
        ],
    );
    mistaken(
        "A: { text: x, cost: -1 }",
        &["r.yaml:1:21: error: \"-1\" is negative; an amount of dollars is zero or more"],
    );
    mistaken(
        "A: { hang: false }",
        &["r.yaml:1:12: error: expected true; leave the key out otherwise"],
    );
    mistaken("A: 'x", &["r.yaml:1:4: error: unclosed quote"]);
}

#[test]
fn diagnostics_name_the_file() {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(b"START: [a").unwrap();
    let name = file.path().file_name().unwrap().to_str().unwrap().to_owned();
    let mistakes = Replies::load(file.path()).unwrap_err();
    assert_eq!(mistakes[0].file.as_deref(), Some(&*name));
    let gone = Replies::load("/no/such/replies.yaml".as_ref()).unwrap_err();
    assert_eq!(
        gone[0].to_string(),
        "replies.yaml: error: could not read /no/such/replies.yaml: No such file or directory (os \
         error 2)"
    );
}

#[test]
fn mistyped_state_is_an_error_another_a_warning() {
    let yaml = "START: x\nREVEIW: x\nFIX.md: x\n'*': x\nagents: { main: { BANANA: x } }";
    let replies = Replies::parse("r.yaml", yaml).unwrap();
    let states = ["START.md", "REVIEW.md", "FIX.md"].map(StateName::from);
    let found: Vec<_> = replies
        .check(&states, "state")
        .into_iter()
        .map(|warning| (warning.to_string(), warning.hint))
        .collect();
    let hint = Some("did you mean \"REVIEW\"?".to_owned());
    let expected = [
        ("r.yaml:2:1: error: no state is called \"REVEIW\"", hint),
        ("r.yaml:5:19: warning: no state is called \"BANANA\"", None),
    ];
    assert_eq!(found, expected.map(|(text, hint)| (text.to_owned(), hint)));
}

#[test]
fn steps_are_named_by_id_or_loop_key() {
    let yaml = "judge: all\n'each[2].judge': third\n'each[2].judgee': x\nother: x";
    let replies = Replies::parse("r.yaml", yaml).unwrap();
    let steps = ["judge", "ask"].map(StateName::from);
    let found: Vec<String> =
        replies.check(&steps, "agent step").iter().map(ToString::to_string).collect();
    let expected = [
        "r.yaml:3:1: warning: no agent step is called \"each[2].judgee\"",
        "r.yaml:4:1: warning: no agent step is called \"other\"",
    ];
    assert_eq!(found, expected);
    let silent = replies.unanswered(&steps).map(|warning| warning.to_string());
    assert_eq!(silent.as_deref(), Some("r.yaml: warning: no reply for ask, if it is reached"));
    // A key in loops names the step; it is not a file name with an extension.
    let only = Replies::parse("r.yaml", "'each[0].ask': x").unwrap();
    assert_eq!(only.unanswered(&steps[1..]), None);
    let check = |state: &str, expected: Result<(), &str>| {
        let found = replies.find(&request("main", state, 1, 1)).map(|_| ());
        assert_eq!(found, expected.map_err(str::to_owned), "{state}");
    };
    check("judge", Ok(()));
    check("each[0].judge", Ok(()));
    check("each[2].judge", Ok(()));
    check(
        "each[1].ask",
        Err("no reply for main / attempt 1 of each[1].ask in r.yaml: add one under each[1].ask"),
    );
    let of = |state: &str| replies.find(&request("main", state, 1, 1)).unwrap().clone();
    assert_ne!(of("each[2].judge"), of("each[1].judge"));
    assert_eq!(of("judge"), of("outer[0].each[1].judge"));
}

struct OnBench<B>(B);

const SITUATIONS: &str = "
REPLIES: one
DIFFERENT: two
CAPPED: { capped: true, cost: 0.01 }
HANGS: { hang: true }
LOST: { fail: lost_session }
FAILS: { fail: task }
TRANSIENT: { fail: transient }
QUOTA: { fail: quota }
AUTH: { fail: auth }
";

impl<B: Backend> Harness for OnBench<B> {
    fn backend(&self) -> &dyn Backend {
        &self.0
    }

    fn request(&self, situation: Situation) -> PromptRequest {
        let state = match situation {
            Situation::Replies | Situation::Complies | Situation::NeverComplies => "REPLIES.md",
            Situation::SpendsTooMuch => "CAPPED.md",
            Situation::RepliesDifferently => "DIFFERENT.md",
            Situation::Hangs => "HANGS.md",
            Situation::KnowsNoSession => "LOST.md",
            Situation::Fails => "FAILS.md",
            Situation::FailsTransiently => "TRANSIENT.md",
            Situation::IsOverQuota => "QUOTA.md",
            Situation::IsLoggedOut => "AUTH.md",
        };
        request("main", state, 1, 1)
    }
}

#[tokio::test]
async fn it_passes_the_suite_of_every_backend() {
    assert_eq!(conformance::violations(&OnBench(client(SITUATIONS))).await, []);
}

/// A backend that breaks every rule that can be broken without hanging.
struct Careless(std::sync::atomic::AtomicU32);

impl Backend for Careless {
    fn name(&self) -> BackendName {
        "".into()
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::Resume,
            Capability::Cost,
            Capability::Branch,
            Capability::Schema,
            Capability::Cap,
        ]
    }

    fn answer(&self, request: PromptRequest, _: TurnObserver) -> AnswerFuture<'_> {
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let cost = match request.started.cap {
            Some(_) => Cost::Unknown,
            None => Cost::Reported(Micros(count.into())),
        };
        Box::pin(async move {
            Answer::Capped { cost, progressed: true, denied: Vec::new(), session: None }
        })
    }
}

#[tokio::test]
async fn the_suite_finds_a_careless_backend_out() {
    let found = conformance::violations(&OnBench(Careless(0.into()))).await;
    let rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
    assert_eq!(
        rules,
        [
            "a backend has a name, opens sessions, and declares each capability once",
            "a reply has a text and, where declared, a cost",
            "a session has the chosen id, or one that the client reports",
            "the same request has the same answer",
            "parallel turns have the same answers as sequential turns",
            "a cancelled request is interrupted",
            "a turn is cancelled promptly",
            "a timeout names its clock",
            "an unknown session is reported as lost",
            "a turn whose session was never opened starts by its original plan",
            "an opened session can be continued",
            "a reply has JSON exactly if it was requested and the model complied",
            "a turn that exceeds its cap is ended and has a cost",
            "a failure has the right kind",
        ]
    );
}
