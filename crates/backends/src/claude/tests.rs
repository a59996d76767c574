//! Clients of bash. They write lines as the real one does, and say through what they write when it is
//! time for the test to act.

use std::fs::{self, Permissions as Mode};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use raymond_core::budget::Micros;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{Nonce, SessionId, TurnId};
use raymond_core::machine::SessionPlan;
use raymond_core::run::Permissions;
use raymond_core::run::effect::Extras;
use raymond_core::time::Span;
use rustix::fs::{CWD, FileType, Mode as FileMode, mknodat};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::sample::{self, SESSION, bash, init, success, text};
use super::*;
use crate::conformance::{self, Situation, planned};
use crate::contract::{Reply, Sign};
use crate::headless::not_started;
use crate::process::leftovers;

const LONG: Duration = Duration::from_mins(10);
const SHORT: Duration = Duration::from_millis(50);

/// Would turn any wait that should not be into a test that is ended as too slow.
const PATIENT: Clocks =
    Clocks { first_output: LONG, idle: LONG, silent: LONG, after_result: LONG, start: LONG };

/// Whoever is asked to go may take its time.
const GRACE: Grace = Grace { after_exit: LONG, interrupt: LONG, terminate: LONG, kill: LONG };

/// For those who do not listen.
const IMPATIENT: Grace = Grace { interrupt: SHORT, terminate: SHORT, ..GRACE };

struct Bench {
    directory: TempDir,
    claude: Claude,
}

impl Bench {
    /// A client that is this script. `say LINE…` writes lines; `$prompt` is what it was sent.
    fn new(script: &str, clocks: Clocks) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let command = directory.path().join("claude");
        let prelude = "#!/bin/bash\nsay() { printf '%s\\n' \"$@\"; }\nprompt=$(cat)\n";
        fs::write(&command, format!("{prelude}{script}\n")).unwrap();
        fs::set_permissions(&command, Mode::from_mode(0o755)).unwrap();
        let fifo = directory.path().join("go");
        mknodat(CWD, &fifo, FileType::Fifo, FileMode::RWXU, 0).unwrap();
        let settings =
            Settings { command: command.into(), clocks, grace: GRACE, ..Settings::default() };
        Self { directory, claude: Claude::new(settings) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn nonce(&self) -> Nonce {
        let name = self.directory.path().file_name().unwrap().to_string_lossy();
        Nonce::new(name.replace('.', "test"))
    }

    fn request(&self, prompt: &str) -> Request {
        Request {
            started: Started {
                nonce: self.nonce(),
                turn: TurnId::try_from("main.1.1".to_owned()).unwrap(),
                attempt: 1,
                plan: SessionPlan::Fresh(SessionId::new(SESSION)),
                transcript: self.path(&format!("{prompt}.jsonl")),
                timeout: None,
                idle_timeout: None,
                cap: None,
                config_home: None,
            },
            state: "START.md".into(),
            count: 1,
            prompt: prompt.to_owned(),
            notice: None,
            cwd: self.directory.path().to_owned(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: None,
        }
    }

    async fn ask(&self, request: Request) -> Answer {
        let answer = self.claude.answer(request, Watch::unseen(CancellationToken::new())).await;
        assert_eq!(leftovers::find(&self.nonce()), []);
        answer
    }

    /// Lets go whoever reads the FIFO.
    fn go(&self) {
        let fifo = self.path("go");
        tokio::task::spawn_blocking(move || fs::write(fifo, "go\n").unwrap());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

async fn answered(script: &str, clocks: Clocks) -> Answer {
    let bench = Bench::new(script, clocks);
    bench.ask(bench.request("hello")).await
}

/// Writes these lines.
fn say(lines: &[String]) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
    format!("say {}", quoted.join(" "))
}

/// Cancels the turn when the client is seen to do this.
fn cancelling(cue: fn(&Sign) -> bool) -> Watch {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let listener = move |sign: Sign| {
        if cue(&sign) {
            token.cancel();
        }
    };
    Watch { cancel, listener: Arc::new(listener) }
}

fn replied(text: &str, cost: u64) -> Answer {
    let model = Some("claude-opus-5-5".to_owned());
    Answer::Replied(Box::new(Reply { model, ..Reply::new(text, Cost::Reported(Micros(cost))) }))
}

struct Stage(Bench);

impl conformance::Bench for Stage {
    fn backend(&self) -> &dyn Backend {
        &self.0.claude
    }

    fn request(&self, situation: Situation) -> Request {
        let request = self.0.request(match situation {
            Situation::Replies | Situation::KnowsNoSession => "replies",
            Situation::RepliesDifferently => "differs",
            Situation::Complies => "complies",
            Situation::NeverComplies => "never",
            Situation::SpendsTooMuch => "spends",
            Situation::Hangs => "hangs",
            Situation::Fails => "400",
            Situation::FailsTransiently => "529",
            Situation::IsOverQuota => "429",
            Situation::IsLoggedOut => "401",
        });
        // Turns at once have transcripts of their own.
        let transcript = request.started.transcript.with_file_name(format!("{situation:?}.jsonl"));
        Request { started: Started { transcript, ..request.started }, ..request }
    }

    fn shown(&self) -> Option<Vec<String>> {
        Some(self.0.read("shown").lines().map(str::to_owned).collect())
    }
}

/// Keeps a file for each session, as the real client does, and leaves what the model was shown.
const SESSIONS: &str = r#"
while (($#)); do case $1 in --session-id) id=$2;; --resume) from=$2;; esac; shift; done
if [[ $from && ! -e $from.said ]]; then LOST; exit 1; fi
id=${id-$from}
if [[ ! $from ]]; then : > $id.said; elif [[ $from != $id ]]; then cp $from.said $id.said; fi
echo "$prompt" >> $id.said
cp $id.said shown
say() { printf '%s\n' "${@//FIRST/$id}"; }"#;

#[tokio::test]
async fn the_backend_conforms() {
    let reply = say(&[init(), text("m", "done"), success("done")]);
    let script = format!(
        r#"{sessions}
case $prompt in
    replies) echo done >> $id.said; {reply};;
    differs) echo other >> $id.said; {differs};;
    complies) {complies};;
    never) {reply};;
    spends) {spends}; exit 1;;
    hangs) exec sleep 600;;
    *) {error} | sed "s/STATUS/$prompt/"; exit 1;;
esac"#,
        sessions = SESSIONS.replace("LOST", &say(&[sample::lost("s")])).replace("FIRST", SESSION),
        complies = reply.replace(r#""result":"#, r#""structured_output":{"a":1},"result":"#),
        spends = say(&[init(), bash("m", "ls"), sample::capped()]),
        differs = reply.replace("done", "other"),
        error = say(&[init(), sample::api_error("STATUS")]),
    );
    let stage = Stage(Bench::new(&script, PATIENT));
    assert_eq!(conformance::violations(&stage).await, []);
    assert_eq!(leftovers::find(&stage.0.nonce()), []);
}

#[tokio::test]
async fn a_client_is_sent_the_prompt_and_told_the_rest() {
    let script = format!(
        r#"printf %s "$prompt" > stdin; printf '%s\n' "$@" > arguments
        echo "$CLAUDE_CODE_MAX_RETRIES $CLAUDE_CONFIG_DIR ${{HOME-none}} ${{PATH:+path}}" > variables
        {}"#,
        say(&[init(), success("x")])
    );
    let bench = Bench::new(&script, PATIENT);
    let home = bench.path("homes/main");
    let request = Request {
        prompt: "-p \"quoted\"\n€".into(),
        notice: Some("a notice".into()),
        model: Some("opus".into()),
        started: Started { config_home: Some(home.clone()), ..bench.request("hello").started },
        environment: Some(vec!["PATH".into()]),
        ..bench.request("hello")
    };
    assert_eq!(bench.ask(request).await, replied("x", 2800));
    assert_eq!(bench.read("stdin"), "a notice\n\n-p \"quoted\"\n€");
    let arguments = bench.read("arguments");
    let expected = ["-p", "--output-format", "stream-json", "--verbose", "--session-id", SESSION];
    let expected =
        [&expected[..], &["--permission-mode", "acceptEdits", "--model", "opus"]].concat();
    assert_eq!(arguments.lines().collect::<Vec<_>>(), expected);
    assert_eq!(bench.read("variables"), format!("2 {} none path\n", home.display()));
    assert_eq!(fs::metadata(home).unwrap().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_turn_whose_session_was_never_opened_starts_clean_in_the_same_transcript() {
    // The id that was chosen may be taken all the same: another one is opened.
    let script = format!(
        r#"echo "$*: $prompt" >> log
        case "$*" in
            *--resume*) {lost}; exit 1;;
            *{SESSION}*) echo "Error: Session ID {SESSION} is already in use." >&2; exit 1;;
        esac
        reply={reply}
        say "${{reply//{SESSION}/$6}}""#,
        lost = say(&[sample::lost(SESSION)]),
        reply = say(&[init(), success("x")]).replace("say ", "").replace("' '", "'$'\\n''"),
    );
    let bench = Bench::new(&script, PATIENT);
    let request = bench.request("hello");
    let plan = request.started.plan.continued();
    let request = Request { notice: Some("again".into()), ..planned(request, plan) };
    let started = request.started.clone();
    let spare = started.turn.spare_session(&started.nonce, 1);
    let expected = opened(replied("x", 2800), &spare);
    assert_eq!(bench.ask(request).await, expected);
    let flags = "-p --output-format stream-json --verbose";
    let mode = "--permission-mode acceptEdits";
    let log = format!(
        "{flags} --resume {SESSION} {mode}: again\n\nhello\n\
         {flags} --session-id {spare} {mode}: hello\n"
    );
    assert_eq!(bench.read("log"), log);
    assert_eq!(bench.read("hello.jsonl").lines().count(), 3);
    assert_eq!(bench.claude.attach(&started), Attached::Finished(expected));
}

/// The same answer, in a session that nobody chose for the turn at first.
fn opened(answer: Answer, id: &SessionId) -> Answer {
    match answer {
        Answer::Replied(reply) => {
            Answer::Replied(Box::new(Reply { session: Some(id.clone()), ..*reply }))
        }
        other => panic!("it has no text: {other:?}"),
    }
}

#[tokio::test]
async fn what_a_client_spent_before_it_lost_its_session_is_part_of_the_turn() {
    let spent = sample::lost(SESSION).replace(r#""permission_denials":[]"#, sample::USAGE);
    let lost = format!("case \"$*\" in *--resume*) {}; exit 1;; esac", say(&[init(), spent]));
    let check = async |script: &str, expected: Answer| {
        let bench = Bench::new(&format!("{lost}\n{script}"), PATIENT);
        let request = bench.request("hello");
        let plan = request.started.plan.continued();
        assert_eq!(bench.ask(planned(request, plan)).await, expected);
    };
    check(&say(&[init(), success("x")]), replied("x", 5600)).await;
    let why = "the client died without a result, with exit status 3".into();
    let cost = Cost::Reported(Micros(2800));
    let died = Answer::Failed {
        failure: TurnFailure::Transient { why },
        cost,
        denied: Vec::new(),
        session: None,
    };
    check("exit 3", died).await;
}

#[tokio::test]
async fn a_directory_of_transcripts_that_vanished_is_made_again() {
    let bench = Bench::new(&say(&[init(), success("x")]), PATIENT);
    let request = bench.request("hello");
    let transcript = bench.path("run/transcripts/hello.jsonl");
    let started = Started { transcript, ..request.started };
    assert_eq!(bench.ask(Request { started, ..request }).await, replied("x", 2800));
    assert_eq!(fs::metadata(bench.path("run/transcripts")).unwrap().mode() & 0o777, 0o700);
    // Where that cannot be, the client is not to blame.
    fs::write(bench.path("file"), "").unwrap();
    let request = bench.request("hello");
    let started = Started { transcript: bench.path("file/hello.jsonl"), ..request.started };
    let answer = bench.ask(Request { started, ..request }).await;
    let why = format!("cannot create {}: File exists (os error 17)", bench.path("file").display());
    assert_eq!(answer, not_started(why));
}

#[tokio::test]
async fn a_client_that_stays_after_its_result_is_ended() {
    let lines = say(&[init(), text("m", "x"), success("x")]);
    let clocks = Clocks { after_result: SHORT, ..PATIENT };
    assert_eq!(answered(&format!("{lines}; exec sleep 600"), clocks).await, replied("x", 2800));
    // A child that holds stdout does not keep the turn.
    let script = format!("{lines}; sleep 600 & exit 0");
    let bench = Bench::new(&script, PATIENT);
    let request = bench.request("hello");
    let watch = Watch::unseen(CancellationToken::new());
    assert_eq!(bench.claude.answer(request, watch).await, replied("x", 2800));
    let left = leftovers::find(&bench.nonce());
    assert_eq!(left.len(), 1);
    leftovers::end(&left, &IMPATIENT).await;
}

#[tokio::test]
async fn a_child_of_a_client_that_died_in_the_middle_does_not_go_on() {
    let script = format!("{}; sleep 600 & exit 1", say(&[init(), text("m", "x")]));
    let mut bench = Bench::new(&script, PATIENT);
    // A shell makes children in the background deaf to SIGINT.
    bench.claude.0.grace = IMPATIENT;
    let answer = bench.ask(bench.request("hello")).await;
    let why = "the client died without a result, with exit status 1".to_owned();
    let failed = |failure: &TurnFailure| *failure == TurnFailure::Transient { why };
    assert!(matches!(&answer, Answer::Failed { failure, .. } if failed(failure)), "{answer:?}");
}

#[tokio::test]
async fn a_task_in_the_background_is_waited_for_and_the_last_result_counts() {
    let task = |subtype: &str| sample::system(subtype, r#""task_id":"b1","is_backgrounded":true"#);
    let script = format!(
        "{}; read < go; {}",
        say(&[init(), task("task_started"), success("first"), bash("m", "cue")]),
        say(&[task("task_notification"), init(), success("second")]),
    );
    // Without the task, the turn would be over with its first result.
    let bench = Arc::new(Bench::new(&script, Clocks { after_result: Duration::ZERO, ..PATIENT }));
    let cued = Arc::clone(&bench);
    let listener = move |sign: Sign| {
        if matches!(sign, Sign::Tool { .. }) {
            cued.go();
        }
    };
    let watch = Watch { cancel: CancellationToken::new(), listener: Arc::new(listener) };
    let answer = bench.claude.answer(bench.request("hello"), watch).await;
    assert_eq!(answer, replied("second", 5600));
}

#[tokio::test]
async fn a_client_that_is_logged_out_is_ended_at_the_first_sign() {
    let lines = say(&[init(), sample::retry("401", "authentication_failed")]);
    let answer = answered(&format!("{lines}; exec sleep 20"), PATIENT).await;
    let why = "run `claude /login` or set ANTHROPIC_API_KEY; the client says: \
               authentication_failed (401)";
    let failure = TurnFailure::Auth { why: why.into() };
    assert_eq!(
        answer,
        Answer::Failed {
            failure,
            cost: Cost::Reported(Micros::ZERO),
            denied: Vec::new(),
            session: None
        }
    );
}

#[tokio::test]
async fn a_cancelled_turn_says_what_it_cost_or_its_finished_answer() {
    let check = async |script: String, cue: fn(&Sign) -> bool, expected: Answer| {
        let bench = Bench::new(&script, PATIENT);
        let answer = bench.claude.answer(bench.request("hello"), cancelling(cue)).await;
        assert_eq!(answer, expected);
        assert_eq!(leftovers::find(&bench.nonce()), []);
    };
    let working = format!(
        "last='{}'; trap 'say \"$last\"; exit 0' INT; {}; sleep 600",
        sample::cut_off(),
        say(&[init(), bash("m", "ls")]),
    );
    let cost = Cost::Reported(Micros(2800));
    let interrupted = Answer::Interrupted { cost, progressed: true, session: None };
    check(working, |sign| matches!(sign, Sign::Tool { .. }), interrupted).await;
    let done = format!("{}; exec sleep 600", say(&[init(), text("m", "x"), success("x")]));
    check(done, |sign| *sign == Sign::Text, replied("x", 2800)).await;
}

#[tokio::test]
async fn each_clock_ends_the_client() {
    let check = async |script: String, clocks: Clocks, expected: Clock| {
        let failure = TurnFailure::Timeout { clock: expected, after: Span(50) };
        let answer = answered(&script, clocks).await;
        assert!(matches!(answer, Answer::Failed { failure: f, .. } if f == failure));
    };
    let silent = || "exec sleep 600".to_owned();
    let first = Clocks { first_output: SHORT, ..PATIENT };
    check(silent(), first, Clock::FirstOutput).await;
    check(silent(), Clocks { idle: SHORT, ..PATIENT }, Clock::Idle).await;
    let stalled = format!("{}; exec sleep 600", say(&[init()]));
    check(stalled, Clocks { idle: SHORT, ..PATIENT }, Clock::Idle).await;
}

#[tokio::test]
async fn a_silence_is_told() {
    let script = format!("{}; read < go; {}", say(&[init()]), say(&[success("x")]));
    let bench = Arc::new(Bench::new(&script, Clocks { silent: SHORT, ..PATIENT }));
    let cued = Arc::clone(&bench);
    // A slow start is a silence of its own.
    let once = Once::new();
    let listener = move |sign: Sign| {
        assert_eq!(sign, Sign::Silent(Span(50)));
        once.call_once(|| cued.go());
    };
    let watch = Watch { cancel: CancellationToken::new(), listener: Arc::new(listener) };
    let answer = bench.claude.answer(bench.request("hello"), watch).await;
    assert_eq!(answer, replied("x", 2800));
}

#[tokio::test]
async fn a_client_that_says_nothing_on_stdout_is_known_by_its_stderr() {
    let answer = answered("echo \"error: unknown option '--x'\" >&2; exit 1", PATIENT).await;
    let why = "the client died without a result, with exit status 1: error: unknown option '--x'";
    let failure = TurnFailure::Transient { why: why.into() };
    assert_eq!(
        answer,
        Answer::Failed {
            failure,
            cost: Cost::Reported(Micros::ZERO),
            denied: Vec::new(),
            session: None
        }
    );
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let bench = Bench::new("", PATIENT);
    let check = async |claude: &Claude, request: Request, why: &str| {
        let watch = Watch::unseen(CancellationToken::new());
        assert_eq!(claude.answer(request, watch).await, not_started(why));
    };
    let blank = Request { prompt: " \n".into(), ..bench.request("hello") };
    check(&bench.claude, blank, "the prompt is empty, and the client takes none").await;
    let script = planned(bench.request("hello"), SessionPlan::Carry);
    check(&bench.claude, script, "the plan of the turn has no conversation").await;
    let gone = Claude::new(Settings { command: "/no/such/client".into(), ..Settings::default() });
    let why = "there is no program at /no/such/client";
    check(&gone, bench.request("hello"), why).await;
    let huge = Request { model: Some("x".repeat(200_000)), ..bench.request("hello") };
    let why = format!(
        "cannot run {}: Argument list too long (os error 7) (its arguments or its environment are \
         too large)",
        bench.path("claude").display()
    );
    check(&bench.claude, huge, &why).await;
}

/// Starts a client as an owner does that is then killed.
fn abandon(bench: &Bench, request: &Request) {
    let step = Step::of(&request.started.plan).remove(0);
    bench.claude.0.start(&step, request, request.message()).unwrap().leave();
}

#[tokio::test]
async fn a_client_that_still_runs_is_followed_on() {
    let script = format!(
        "{}; read < go; {}",
        say(&[init(), text("m", "one ")]),
        say(&[text("m", "two"), success("two")])
    );
    let bench = Bench::new(&script, PATIENT);
    let request = bench.request("hello");
    abandon(&bench, &request);
    assert_eq!(bench.claude.attach(&request.started), Attached::Running);
    bench.go();
    let watch = Watch::unseen(CancellationToken::new());
    let answer = bench.claude.follow(request.started.clone(), watch).await;
    assert_eq!(answer, replied("one two", 2800));
    assert_eq!(bench.claude.attach(&request.started), Attached::Finished(answer.clone()));
    let watch = Watch::unseen(CancellationToken::new());
    assert_eq!(bench.claude.follow(request.started, watch).await, answer);
}

#[tokio::test]
async fn an_adopted_client_whose_session_was_never_opened_is_tried_again() {
    let script = format!("read < go; {}; exit 1", say(&[sample::lost(SESSION)]));
    let bench = Bench::new(&script, PATIENT);
    let request = bench.request("hello");
    let plan = request.started.plan.continued();
    let request = planned(request, plan);
    abandon(&bench, &request);
    bench.go();
    let watch = Watch::unseen(CancellationToken::new());
    let answer = bench.claude.follow(request.started, watch).await;
    let why = "the session was never opened, and its prompt went with the earlier owner";
    let failure = TurnFailure::Transient { why: why.into() };
    assert_eq!(
        answer,
        Answer::Failed {
            failure,
            cost: Cost::Reported(Micros::ZERO),
            denied: Vec::new(),
            session: None
        }
    );
}

#[test]
fn a_transcript_that_nobody_writes_any_more_is_read() {
    let bench = Bench::new("", PATIENT);
    let fresh = SessionPlan::Fresh(SessionId::new(SESSION));
    let from = SessionId::new("from");
    let branch = SessionPlan::Branch { from: from.clone(), to: SessionId::new(SESSION) };
    let check = |plan: &SessionPlan, lines: &[String], expected: Attached| {
        let request = planned(bench.request("hello"), plan.clone());
        fs::write(&request.started.transcript, lines.join("\n")).unwrap();
        assert_eq!(bench.claude.attach(&request.started), expected, "{plan:?} {lines:?}");
    };
    let free = Cost::Reported(Micros::ZERO);
    let absent = |cost, progressed| Attached::Absent { cost, progressed, session: None };
    let lost = |session: &SessionId| {
        let failure = TurnFailure::LostSession { session: session.clone() };
        Attached::Finished(Answer::Failed {
            failure,
            cost: free,
            denied: Vec::new(),
            session: None,
        })
    };
    check(&fresh, &[], absent(free, false));
    check(&fresh, &[init()], absent(Cost::Unknown, false));
    check(&fresh, &[init(), text("m", "x")], absent(Cost::Estimated(Micros(420)), true));
    let torn = success("x")[..40].to_owned();
    check(&fresh, &[init(), torn], absent(Cost::Unknown, false));
    check(&fresh, &[init(), success("x")], Attached::Finished(replied("x", 2800)));
    let capped =
        Answer::Capped { cost: Cost::Reported(Micros(2800)), denied: Vec::new(), session: None };
    check(&fresh, &[init(), sample::capped()], Attached::Finished(capped));
    // Whoever ended it had no use for it: that is no outcome.
    let cut = absent(Cost::Reported(Micros(2800)), true);
    check(&fresh, &[init(), text("m", "x"), sample::cut_off()], cut);
    check(&SessionPlan::Resume(from.clone()), &[sample::lost("from")], lost(&from));
    check(&branch, &[sample::lost("from")], lost(&from));
    // A continuation that finds no session goes on with the plan that it continues.
    let (again, branching) = (fresh.continued(), branch.continued());
    check(&again, &[sample::lost(SESSION)], absent(free, false));
    // That session has another id, and whoever goes on has to know it.
    let Started { turn, nonce, .. } = bench.request("hello").started;
    let spare = turn.spare_session(&nonce, 1);
    let spared = |line: String| line.replace(SESSION, spare.as_str());
    let left =
        Attached::Absent { cost: Cost::Unknown, progressed: false, session: Some(spare.clone()) };
    check(&again, &[sample::lost(SESSION), spared(init())], left);
    let finished = Attached::Finished(opened(replied("x", 2800), &spare));
    let lines = [sample::lost(SESSION), spared(init()), spared(success("x"))];
    check(&again, &lines, finished);
    check(&branching, &[sample::lost(SESSION)], absent(free, false));
    check(&branching, &[sample::lost(SESSION), sample::lost("from")], lost(&from));
    let nothing = planned(bench.request("never started"), fresh).started;
    assert_eq!(bench.claude.attach(&nothing), absent(free, false));
    let unreadable = Started { transcript: bench.directory.path().to_owned(), ..nothing };
    assert_eq!(bench.claude.attach(&unreadable), absent(Cost::Unknown, false));
}

#[tokio::test]
async fn clients_that_share_a_configuration_start_one_after_the_other() {
    let script = format!(
        "case $prompt in silent) exec sleep 600;; begun) {}; exec sleep 600;; *) {};; esac",
        say(&[init()]),
        say(&[init(), success("x")])
    );
    let ask = async |bench: &Bench, first: &str, cancelled: CancellationToken| {
        let seen = CancellationToken::new();
        let token = seen.clone();
        let before = bench.claude.answer(bench.request(first), Watch::unseen(seen));
        let after = async {
            let answer = bench.claude.answer(bench.request("next"), Watch::unseen(cancelled)).await;
            token.cancel();
            answer
        };
        tokio::join!(before, after).1
    };
    let never = CancellationToken::new;
    // A shell that is asked to go while it reads its prompt does not listen.
    let bench = |clocks| {
        let mut bench = Bench::new(&script, clocks);
        bench.claude.0.grace = IMPATIENT;
        bench
    };
    // The way is free after the first word, or after some time.
    let begins = bench(PATIENT);
    assert_eq!(ask(&begins, "begun", never()).await, replied("x", 2800));
    let waits = bench(Clocks { start: SHORT, ..PATIENT });
    assert_eq!(ask(&waits, "silent", never()).await, replied("x", 2800));
    // Whoever waits can be cancelled, and has started nothing.
    let bench = bench(PATIENT);
    let cancelled = CancellationToken::new();
    let token = cancelled.clone();
    let (answer, ()) = tokio::join!(ask(&bench, "silent", cancelled), async {
        tokio::task::yield_now().await;
        token.cancel();
    });
    let free = Cost::Reported(Micros::ZERO);
    assert_eq!(answer, Answer::Interrupted { cost: free, progressed: false, session: None });
    assert!(!bench.path("next.jsonl").exists());
}
