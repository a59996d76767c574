//! The start of clients, and their sessions.

use super::*;

#[tokio::test]
async fn client_gets_prompt_arguments_and_environment() {
    let script = format!(
        r#"printf %s "$prompt" > stdin; printf '%s\n' "$@" > arguments
        echo "$CLAUDE_CODE_MAX_RETRIES $CLAUDE_CONFIG_DIR ${{HOME-none}} ${{PATH:+path}}" > variables
        {}"#,
        say(&[init(), success("x")])
    );
    let harness = Harness::new(&script, PATIENT);
    let home = harness.path("homes/main");
    let request = PromptRequest {
        prompt: "-p \"quoted\"\n€".into(),
        notice: Some("a notice".into()),
        model: Some("opus".into()),
        started: StartedTurn {
            config_home: Some(home.clone()),
            ..harness.request("hello").started
        },
        environment: Some(vec!["PATH".into()]),
        ..harness.request("hello")
    };
    assert_eq!(harness.ask(request).await, replied("x", 2800));
    assert_eq!(harness.read("stdin"), "a notice\n\n-p \"quoted\"\n€");
    let arguments = harness.read("arguments");
    let session = format!("--session-id={SESSION}");
    let flags = ["-p", "--output-format", "stream-json", "--verbose"];
    let expected =
        [&flags[..], &[&session, "--permission-mode=acceptEdits", "--model=opus"]].concat();
    assert_eq!(arguments.lines().collect::<Vec<_>>(), expected);
    assert_eq!(harness.read("variables"), format!("2 {} none path\n", home.display()));
    assert_eq!(fs::metadata(home).unwrap().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn turn_without_session_restarts_in_same_transcript() {
    // The chosen id may be taken nevertheless; then another session is opened.
    let script = format!(
        r#"echo "$*: $prompt" >> log
        case "$*" in
            *--resume*) {lost}; exit 1;;
            *{SESSION}*) echo "Error: Session ID {SESSION} is already in use." >&2; exit 1;;
        esac
        reply={reply}
        say "${{reply//{SESSION}/${{5#*=}}}}""#,
        lost = say(&[sample::lost(SESSION)]),
        reply = say(&[init(), success("x")]).replace("say ", "").replace("' '", "'$'\\n''"),
    );
    let harness = Harness::new(&script, PATIENT);
    let request = harness.request("hello");
    let plan = request.started.plan.continued();
    let request = PromptRequest { notice: Some("again".into()), ..planned(request, plan) };
    let started = request.started.clone();
    let spare = started.turn.spare_session(&started.nonce, 1);
    let expected = opened(replied("x", 2800), &spare);
    assert_eq!(harness.ask(request).await, expected);
    let flags = "-p --output-format stream-json --verbose";
    let mode = "--permission-mode=acceptEdits";
    let log = format!(
        "{flags} --resume={SESSION} {mode}: again\n\nhello\n\
         {flags} --session-id={spare} {mode}: hello\n"
    );
    assert_eq!(harness.read("log"), log);
    assert_eq!(harness.read("hello.jsonl").lines().count(), 3);
    assert_eq!(harness.claude.attach(&started), AttachResult::Ended(expected));
}

#[tokio::test]
async fn cost_before_lost_session_belongs_to_turn() {
    let spent = sample::lost(SESSION).replace(r#""permission_denials":[]"#, sample::USAGE);
    let lost = format!("case \"$*\" in *--resume*) {}; exit 1;; esac", say(&[init(), spent]));
    let check = async |script: &str, expected: &dyn Fn(&SessionId) -> Answer| {
        let harness = Harness::new(&format!("{lost}\n{script}"), PATIENT);
        let request = harness.request("hello");
        let spare = request.started.turn.spare_session(&request.started.nonce, 1);
        let plan = request.started.plan.continued();
        assert_eq!(harness.ask(planned(request, plan)).await, expected(&spare));
    };
    let answer = say(&[init(), success("x")]).replace(SESSION, r#"'"${5#*=}"'"#);
    check(&answer, &|spare| opened(replied("x", 5600), spare)).await;
    let death_message = |_: &SessionId| Answer::Failed {
        failure: TurnFailure::Transient {
            why: "the client died without a result, with exit status 3".into(),
        },
        cost: Cost::Reported(Micros(2800)),
        denied: Vec::new(),
        session: None,
    };
    check("exit 3", &death_message).await;
}

// proves: A30
#[tokio::test]
async fn fallback_gets_the_rest_of_the_share() {
    let check = async |usage: &str, cap: u64, expected: &[&str], cost: Cost| {
        let spent = sample::lost(SESSION).replace(r#""permission_denials":[]"#, usage);
        let lost = format!("case \"$*\" in *--resume*) {}; exit 1;; esac", say(&[init(), spent]));
        let answer = say(&[init(), success("x")]).replace(SESSION, r#"'"${5#*=}"'"#);
        let log = r#"for word; do [[ $word = --max* ]] && echo "${word#*=}" >> log; done"#;
        let harness = Harness::new(&format!("{log}\n{lost}\n{answer}"), PATIENT);
        let request = harness.request("hello");
        let plan = request.started.plan.continued();
        let request = planned(request, plan);
        let started = StartedTurn { cap: Some(Micros(cap)), ..request.started };
        let mut found = harness.ask(PromptRequest { started, ..request }).await;
        assert_eq!(harness.read("log").lines().collect::<Vec<_>>(), expected, "{usage} {found:?}");
        assert_eq!(*found.cost_mut(), cost, "{usage}");
        let is_capped = matches!(found, Answer::Capped { progressed: false, .. });
        assert_eq!(is_capped, expected.len() == 1, "{usage} {found:?}");
    };
    let reported = |amount| Cost::Reported(Micros(amount));
    check(sample::USAGE, 10_000, &["0.010000", "0.007200"], reported(5600)).await;
    check(sample::USAGE, 2800, &["0.002800"], reported(2800)).await;
    check(sample::USAGE, 2000, &["0.002000"], reported(2800)).await;
    // The rest of the budget share is unknown.
    check(r#""errors_of":0"#, 10_000, &["0.010000"], Cost::Unknown).await;
}

#[tokio::test]
async fn missing_transcript_directory_is_created_again() {
    let harness = Harness::new(&say(&[init(), success("x")]), PATIENT);
    let request = harness.request("hello");
    let transcript = harness.path("run/transcripts/hello.jsonl");
    let started = StartedTurn { transcript, ..request.started };
    assert_eq!(harness.ask(PromptRequest { started, ..request }).await, replied("x", 2800));
    assert_eq!(fs::metadata(harness.path("run/transcripts")).unwrap().mode() & 0o777, 0o700);
    // If that is impossible, the failure is not the client's.
    fs::write(harness.path("file"), "").unwrap();
    let request = harness.request("hello");
    let started = StartedTurn { transcript: harness.path("file/hello.jsonl"), ..request.started };
    let answer = harness.ask(PromptRequest { started, ..request }).await;
    let why =
        format!("could not write {}: File exists (os error 17)", harness.path("file").display());
    assert_eq!(answer, unpaid(TurnFailure::Environment { why }));
}

#[tokio::test]
async fn failed_start_has_a_reason() {
    let harness = Harness::new("", PATIENT);
    let check = async |claude: &Headless<ClaudeProtocol>, request: PromptRequest, why: &str| {
        let observer = TurnObserver::silent(CancellationToken::new());
        assert_eq!(claude.answer(request, observer).await, not_started(why));
    };
    let blank = PromptRequest { prompt: " \n".into(), ..harness.request("hello") };
    check(&harness.claude, blank, "the prompt is empty, but the client needs one").await;
    let script = planned(harness.request("hello"), SessionPlan::Carry);
    check(&harness.claude, script, "the plan of the turn has no conversation").await;
    let gone = Headless::new(ClientSettings::of("/no/such/client"));
    let why = "could not find a program at /no/such/client";
    check(&gone, harness.request("hello"), why).await;
    let huge = PromptRequest { model: Some("x".repeat(200_000)), ..harness.request("hello") };
    let why = format!(
        "cannot run {}: Argument list too long (os error 7) (its arguments or its environment are \
         too large)",
        harness.path("claude").display()
    );
    check(&harness.claude, huge, &why).await;
}

#[tokio::test]
async fn clients_with_shared_configuration_start_in_sequence() {
    let script = format!(
        "case $prompt in silent) exec sleep 600;; begun) {}; exec sleep 600;; *) {};; esac",
        say(&[init()]),
        say(&[init(), success("x")])
    );
    let ask = async |harness: &Harness, first: &str, cancelled: CancellationToken| {
        let seen = CancellationToken::new();
        let token = seen.clone();
        let before = harness.claude.answer(harness.request(first), TurnObserver::silent(seen));
        let after = async {
            let answer = harness
                .claude
                .answer(harness.request("next"), TurnObserver::silent(cancelled))
                .await;
            token.cancel();
            answer
        };
        tokio::join!(before, after).1
    };
    let never = CancellationToken::new;
    // A shell that gets a signal while it reads its prompt ignores it.
    let harness = |timeouts| {
        let mut harness = Harness::new(&script, timeouts);
        harness.claude.grace = IMPATIENT;
        harness
    };
    // The gate opens after the first output, or after some time.
    let begins = harness(PATIENT);
    assert_eq!(ask(&begins, "begun", never()).await, replied("x", 2800));
    let waits = harness(ClientTimeouts { start: SHORT, ..PATIENT });
    assert_eq!(ask(&waits, "silent", never()).await, replied("x", 2800));
    // A waiting turn can be cancelled and has started nothing.
    let harness = harness(PATIENT);
    let cancelled = CancellationToken::new();
    let token = cancelled.clone();
    let (answer, ()) = tokio::join!(ask(&harness, "silent", cancelled), async {
        tokio::task::yield_now().await;
        token.cancel();
    });
    let free = Cost::Reported(Micros::ZERO);
    assert_eq!(
        answer,
        Answer::Interrupted {
            by: Interruption::Stop,
            cost: free,
            progressed: false,
            session: None
        }
    );
    assert!(!harness.path("next.jsonl").exists());
}
