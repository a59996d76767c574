//! The end of clients: by themselves, by a timeout, by a cancellation.

use super::*;

#[tokio::test]
async fn client_that_stays_after_result_is_ended() {
    let lines = say(&[init(), text("m", "x"), success("x")]);
    let timeouts = ClientTimeouts { after_result: SHORT, ..PATIENT };
    assert_eq!(answered(&format!("{lines}; exec sleep 600"), timeouts).await, replied("x", 2800));
    // A child that keeps stdout open does not keep the turn open.
    let script = format!("{lines}; sleep 600 & exit 0");
    let harness = Harness::new(&script, PATIENT);
    let request = harness.request("hello");
    let observer = TurnObserver::silent(CancellationToken::new());
    assert_eq!(harness.claude.answer(request, observer).await, replied("x", 2800));
    let left = leftovers::find(&harness.nonce());
    assert_eq!(left.len(), 1);
    leftovers::end(&left, &IMPATIENT).await;
}

#[tokio::test]
async fn children_of_a_dead_client_are_ended() {
    let script = format!("{}; sleep 600 & exit 1", say(&[init(), text("m", "x")]));
    let mut harness = Harness::new(&script, PATIENT);
    // A shell makes background children ignore SIGINT.
    harness.claude.grace = IMPATIENT;
    let answer = harness.ask(harness.request("hello")).await;
    let why = "the client died without a result, with exit status 1".to_owned();
    let failed = |failure: &TurnFailure| *failure == TurnFailure::Transient { why };
    assert!(matches!(&answer, Answer::Failed { failure, .. } if failed(failure)), "{answer:?}");
}

#[tokio::test]
async fn last_result_after_background_tasks_counts() {
    let task = |subtype: &str| sample::system(subtype, r#""task_id":"b1","is_backgrounded":true"#);
    let script = format!(
        "{}; read < go; {}",
        say(&[init(), task("task_started"), success("first"), bash("m", "cue")]),
        say(&[task("task_notification"), init(), success("second")]),
    );
    // Without the task, the turn would end with its first result.
    let harness =
        Arc::new(Harness::new(&script, ClientTimeouts { after_result: Duration::ZERO, ..PATIENT }));
    let cued = Arc::clone(&harness);
    let listener = move |sign: ClientProgress| {
        if matches!(sign, ClientProgress::Tool { .. }) {
            cued.go();
        }
    };
    let observer = TurnObserver { cancel: CancellationToken::new(), listener: Arc::new(listener) };
    let answer = harness.claude.answer(harness.request("hello"), observer).await;
    assert_eq!(answer, replied("second", 5600));
}

#[tokio::test]
async fn logged_out_client_is_ended_at_once() {
    let lines = say(&[init(), sample::retry("401", "authentication_failed")]);
    let answer = answered(&format!("{lines}; exec sleep 20"), PATIENT).await;
    let why = "run `claude /login` or set ANTHROPIC_API_KEY; the client says: \
               authentication_failed (401)";
    let failure = TurnFailure::Auth { why: why.into() };
    assert_eq!(answer, unpaid(failure));
}

#[tokio::test]
async fn cancelled_turn_has_cost_or_finished_answer() {
    let check = async |script: String, cue: fn(&ClientProgress) -> bool, expected: Answer| {
        let harness = Harness::new(&script, PATIENT);
        let answer = harness.claude.answer(harness.request("hello"), cancelling(cue)).await;
        assert_eq!(answer, expected);
        assert_eq!(leftovers::find(&harness.nonce()), []);
    };
    let working = format!(
        "last='{}'; trap 'say \"$last\"; exit 0' INT; {}; while :; do sleep 0.1; done",
        sample::interrupted(),
        say(&[init(), bash("m", "ls")]),
    );
    let cost = Cost::Reported(Micros(2800));
    let interrupted =
        Answer::Interrupted { by: Interruption::Stop, cost, progressed: true, session: None };
    check(working, |sign| matches!(sign, ClientProgress::Tool { .. }), interrupted).await;
    let done = format!("{}; exec sleep 600", say(&[init(), text("m", "x"), success("x")]));
    check(done, |sign| *sign == ClientProgress::Text, replied("x", 2800)).await;
}

// proves: P11, S37
#[tokio::test]
async fn each_clock_ends_the_client() {
    let check = async |script: String, timeouts: ClientTimeouts, expected: Clock| {
        let failure = TurnFailure::Timeout { clock: expected, after: Span(50) };
        let answer = answered(&script, timeouts).await;
        assert!(matches!(answer, Answer::Failed { failure: f, .. } if f == failure));
    };
    let silent = || "exec sleep 600".to_owned();
    let first = ClientTimeouts { first_output: SHORT, ..PATIENT };
    check(silent(), first, Clock::FirstOutput).await;
    check(silent(), ClientTimeouts { idle: SHORT, ..PATIENT }, Clock::Idle).await;
    let stalled = format!("{}; exec sleep 600", say(&[init()]));
    check(stalled, ClientTimeouts { idle: SHORT, ..PATIENT }, Clock::Idle).await;
}

#[tokio::test]
async fn silence_is_reported() {
    let script = format!("{}; read < go; {}", say(&[init()]), say(&[success("x")]));
    let harness = Arc::new(Harness::new(&script, ClientTimeouts { silent: SHORT, ..PATIENT }));
    let cued = Arc::clone(&harness);
    // A slow start is a silence, too.
    let once = Once::new();
    let listener = move |sign: ClientProgress| {
        assert_eq!(sign, ClientProgress::Silent(Span(50)));
        once.call_once(|| cued.go());
    };
    let observer = TurnObserver { cancel: CancellationToken::new(), listener: Arc::new(listener) };
    let answer = harness.claude.answer(harness.request("hello"), observer).await;
    assert_eq!(answer, replied("x", 2800));
}

#[tokio::test]
async fn silent_client_is_described_by_its_stderr() {
    let answer = answered("echo \"error: unknown option '--x'\" >&2; exit 1", PATIENT).await;
    let why = "the client died without a result, with exit status 1: error: unknown option '--x'";
    let failure = TurnFailure::Transient { why: why.into() };
    assert_eq!(answer, unpaid(failure));
}
