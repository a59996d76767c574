//! Turns of an earlier owner: a running client, or only its transcript.

use super::*;

/// Starts a client as an owner does that is then killed.
fn abandon(harness: &Harness, request: &PromptRequest) {
    let step = SessionStep::of(&request.started.plan).remove(0);
    let mut turn = harness.claude.protocol.begin(&request.started);
    harness.claude.start(&step, request, request.message(), &mut turn).unwrap().keep_running();
}

#[tokio::test]
async fn a_client_that_still_runs_is_followed_on() {
    let script = format!(
        "{}; read < go; {}",
        say(&[init(), text("m", "one ")]),
        say(&[text("m", "two"), success("two")])
    );
    let harness = Harness::new(&script, PATIENT);
    let request = harness.request("hello");
    abandon(&harness, &request);
    assert_eq!(harness.claude.attach(&request.started), AttachResult::Running);
    harness.go();
    let observer = TurnObserver::silent(CancellationToken::new());
    let answer = harness.claude.follow(request.started.clone(), observer).await;
    assert_eq!(answer, replied("one two", 2800));
    assert_eq!(harness.claude.attach(&request.started), AttachResult::Ended(answer.clone()));
    let observer = TurnObserver::silent(CancellationToken::new());
    assert_eq!(harness.claude.follow(request.started, observer).await, answer);
}

/// Returns the answer of an adopted client that writes nothing more.
async fn adopted_and_silent(timeouts: ClientTimeouts, limits: [Option<Span>; 2]) -> Answer {
    let script = format!("{}; exec sleep 600", say(&[init(), text("m", "one ")]));
    let harness = Harness::new(&script, timeouts);
    let request = harness.request("hello");
    abandon(&harness, &request);
    let [timeout, idle_timeout] = limits;
    let started = StartedTurn { timeout, idle_timeout, ..request.started };
    let answer =
        harness.claude.follow(started, TurnObserver::silent(CancellationToken::new())).await;
    assert_eq!(leftovers::find(&harness.nonce()), []);
    answer
}

#[tokio::test]
async fn adopted_client_is_ended_by_its_clocks() {
    let after = Span(50);
    let check = async |timeouts, limits, clock| {
        let answer = adopted_and_silent(timeouts, limits).await;
        let Answer::Failed { failure, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(failure, TurnFailure::Timeout { clock, after });
    };
    check(PATIENT, [None, Some(after)], Clock::Idle).await;
    check(PATIENT, [Some(after), None], Clock::Wall).await;
    check(ClientTimeouts { idle: SHORT, ..PATIENT }, [None, None], Clock::Idle).await;
}

#[tokio::test]
async fn adopted_client_without_session_fails_transiently() {
    let script = format!("read < go; {}; exit 1", say(&[sample::lost(SESSION)]));
    let harness = Harness::new(&script, PATIENT);
    let request = harness.request("hello");
    let plan = request.started.plan.continued();
    let request = planned(request, plan);
    abandon(&harness, &request);
    harness.go();
    let observer = TurnObserver::silent(CancellationToken::new());
    let answer = harness.claude.follow(request.started, observer).await;
    let why = "the session was never opened, and its prompt was lost with the earlier owner";
    let failure = TurnFailure::Transient { why: why.into() };
    assert_eq!(answer, unpaid(failure));
}

#[tokio::test]
async fn adopted_client_that_continues_a_session_counts() {
    let script = format!("read < go; {}", say(&[init(), text("m", "done"), success("done")]));
    let harness = Harness::new(&script, PATIENT);
    let request = harness.request("hello");
    let plan = request.started.plan.continued();
    let request = planned(request, plan);
    abandon(&harness, &request);
    harness.go();
    let observer = TurnObserver::silent(CancellationToken::new());
    let answer = harness.claude.follow(request.started, observer).await;
    assert_eq!(answer, replied("done", 2800));
}

#[test]
fn finished_transcript_gives_the_answer() {
    let harness = Harness::new("", PATIENT);
    let fresh = SessionPlan::Fresh(SessionId::new(SESSION));
    let from = SessionId::new("from");
    let branch = SessionPlan::Branch { from: from.clone(), to: SessionId::new(SESSION) };
    let check = |plan: &SessionPlan, lines: &[String], expected: AttachResult| {
        let request = planned(harness.request("hello"), plan.clone());
        fs::write(&request.started.transcript, lines.join("\n")).unwrap();
        assert_eq!(harness.claude.attach(&request.started), expected, "{plan:?} {lines:?}");
    };
    let free = Cost::Reported(Micros::ZERO);
    let absent = |cost, progressed| AttachResult::without_answer(cost, progressed, None);
    let lost = |session: &SessionId| {
        let failure = TurnFailure::LostSession { session: session.clone() };
        AttachResult::Ended(Answer::Failed {
            failure,
            cost: free,
            denied: Vec::new(),
            session: None,
        })
    };
    check(&fresh, &[], absent(free, false));
    check(&fresh, &[init()], absent(Cost::Unknown, false));
    check(&fresh, &[init(), text("m", "x")], absent(Cost::Estimated(Micros(2 * 420)), true));
    let torn = success("x")[..40].to_owned();
    check(&fresh, &[init(), torn], absent(Cost::Unknown, false));
    check(&fresh, &[init(), success("x")], AttachResult::Ended(replied("x", 2800)));
    let capped = Answer::Capped {
        cost: Cost::Reported(Micros(2800)),
        progressed: false,
        denied: Vec::new(),
        session: None,
    };
    check(&fresh, &[init(), sample::capped()], AttachResult::Ended(capped));
    // An interrupted result is not an outcome.
    let cut = absent(Cost::Reported(Micros(2800)), true);
    check(&fresh, &[init(), text("m", "x"), sample::interrupted()], cut);
    check(&SessionPlan::Resume(from.clone()), &[sample::lost("from")], lost(&from));
    check(&branch, &[sample::lost("from")], lost(&from));
    // A continuation that finds no session falls back to its plan.
    let (again, branching) = (fresh.continued(), branch.continued());
    check(&again, &[sample::lost(SESSION)], absent(free, false));
    // The spare session has another id, which the next owner must know.
    let StartedTurn { turn, nonce, .. } = harness.request("hello").started;
    let spare = turn.spare_session(&nonce, 1);
    let spared = |line: String| line.replace(SESSION, spare.as_str());
    let left = AttachResult::without_answer(Cost::Unknown, false, Some(spare.clone()));
    check(&again, &[sample::lost(SESSION), spared(init())], left);
    let finished = AttachResult::Ended(opened(replied("x", 2800), &spare));
    let lines = [sample::lost(SESSION), spared(init()), spared(success("x"))];
    check(&again, &lines, finished);
    // A result in the wrong session does not count.
    check(&branch, &[init().replace(SESSION, "from")], absent(Cost::Unknown, false));
    check(&again, &[init().replace(SESSION, "another")], absent(Cost::Unknown, false));
    check(&branching, &[sample::lost(SESSION)], absent(free, false));
    check(&branching, &[sample::lost(SESSION), sample::lost("from")], lost(&from));
    let nothing = planned(harness.request("never started"), fresh).started;
    assert_eq!(harness.claude.attach(&nothing), absent(free, false));
}

/// Creates the files that mark the client of a turn as started.
fn mark_started(started: &StartedTurn, extensions: &[&str]) {
    for extension in extensions {
        fs::write(started.transcript.with_extension(extension), "").unwrap();
    }
}

#[tokio::test]
async fn client_killed_before_first_output_is_free() {
    let harness = Harness::new("exec sleep 600", PATIENT);
    let request = harness.request("hello");
    abandon(&harness, &request);
    assert_eq!(leftovers::end(&leftovers::find(&harness.nonce()), &IMPATIENT).await, []);
    let cost = |cost| AttachResult::without_answer(cost, false, None);
    assert_eq!(harness.claude.attach(&request.started), cost(Cost::Reported(Micros::ZERO)));
    fs::write(&request.started.transcript, "").unwrap();
    assert_eq!(harness.claude.attach(&request.started), cost(Cost::Unknown), "somebody emptied it");
}

// proves: A28
#[tokio::test]
async fn silent_client_stays_free_after_owner_was_killed() {
    let harness = Harness::new("exec sleep 600", PATIENT);
    let request = harness.request("hello");
    abandon(&harness, &request);
    assert_eq!(leftovers::end(&leftovers::find(&harness.nonce()), &IMPATIENT).await, []);
    release_reserved_space(&OutputFiles::for_turn(&request.started.transcript)).unwrap();
    let cost = Cost::Reported(Micros::ZERO);
    let expected = AttachResult::without_answer(cost, false, None);
    assert_eq!(harness.claude.attach(&request.started), expected);
}

// proves: A27
#[test]
fn started_client_with_lost_output_is_not_free() {
    let check = |transcript: Option<&str>, beside: &[&str], expected: Cost| {
        let harness = Harness::new("", PATIENT);
        let started = harness.request("hello").started;
        mark_started(&started, beside);
        if let Some(text) = transcript {
            fs::write(&started.transcript, text).unwrap();
        }
        let AttachResult::Ended(Answer::Interrupted { cost, .. }) = harness.claude.attach(&started)
        else {
            panic!("it has no answer");
        };
        assert_eq!(cost, expected, "{transcript:?} {beside:?}");
    };
    for beside in [&["pid"][..], &["stderr"], &["pid", "stderr"]] {
        for transcript in [None, Some(""), Some("\n \n")] {
            check(transcript, beside, Cost::Unknown);
        }
    }
    let free = Cost::Reported(Micros::ZERO);
    check(None, &[], free);
    // The owner was killed before it had created all files of the client.
    check(Some(""), &[], free);
    // A client that was refused before its first request reports that.
    let refused = format!("{}\n{}\n", init(), sample::retry("401", "authentication_failed"));
    check(Some(&refused), &["pid", "stderr"], free);
}

// proves: A29
#[test]
fn lost_output_makes_cost_a_lower_bound() {
    let check = |lines: &[String], stderr: &str, expected: Cost| {
        let harness = Harness::new("", PATIENT);
        let started = harness.request("hello").started;
        fs::write(&started.transcript, lines.join("\n")).unwrap();
        fs::write(started.transcript.with_extension("stderr"), stderr).unwrap();
        let mut found = harness.claude.attach(&started);
        let cost = match &mut found {
            AttachResult::Ended(Answer::Interrupted { cost, .. }) => cost,
            AttachResult::Ended(answer) => answer.cost_mut(),
            found => panic!("{found:?}"),
        };
        assert_eq!(*cost, expected, "{lines:?} {stderr:?}");
    };
    let no_room = "Error: ENOSPC: no space left on device, write";
    let message = [init(), text("m", "x")];
    let with = |last: &str| [&message[..], &[last.to_owned()]].concat();
    let (estimate, known) = (Cost::Estimated(Micros(2 * 420)), Cost::AtLeast(Micros(2 * 420)));
    check(&message, "", estimate);
    check(&with("Loading the model"), "", estimate);
    check(&message, no_room, known);
    check(&message, &format!("{}{no_room}", "x".repeat(9000)), known);
    check(&message, "Disk quota exceeded", known);
    let torn = &success("x")[..40];
    for damaged in [torn, &success("x")[40..], "\0\0\0\0", &format!("\0\0{}", success("x"))] {
        check(&with(damaged), "", known);
    }
    let answered = |last: &str| [init(), text("m", "x"), success("x"), last.to_owned()];
    check(&answered(""), no_room, Cost::Reported(Micros(2800)));
    for damaged in [torn, "\0\0\0\0", "x\0"] {
        check(&answered(damaged), "", Cost::AtLeast(Micros(2800)));
    }
}

#[test]
fn a_next_client_that_wrote_nothing_is_free() {
    let harness = Harness::new("", PATIENT);
    let request = harness.request("hello");
    let plan = request.started.plan.continued();
    let started = planned(request, plan).started;
    fs::write(&started.transcript, sample::lost(SESSION)).unwrap();
    mark_started(&started, &["stderr"]);
    let expected = AttachResult::without_answer(Cost::Reported(Micros::ZERO), false, None);
    assert_eq!(harness.claude.attach(&started), expected);
}

// proves: A27
#[tokio::test]
async fn living_client_without_transcript_is_not_free() {
    let harness = Harness::new(&format!("{}; exec sleep 600", say(&[init()])), PATIENT);
    let request = harness.request("hello");
    abandon(&harness, &request);
    fs::remove_file(&request.started.transcript).unwrap();
    let found = harness.claude.attach(&request.started);
    let left = leftovers::find(&harness.nonce());
    assert_eq!(leftovers::end(&left, &IMPATIENT).await, []);
    let expected = AttachResult::without_answer(Cost::Unknown, true, None);
    assert_eq!(found, expected);
}

// proves: A27
#[tokio::test]
async fn adopted_client_with_emptied_transcript_is_not_free() {
    let script = format!("{}; read < go; exec sleep 600", say(&[init()]));
    let harness = Harness::new(&script, ClientTimeouts { first_output: SHORT, ..PATIENT });
    let request = harness.request("hello");
    abandon(&harness, &request);
    let written = async {
        while fs::read(&request.started.transcript).unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(10), written).await.expect("the client writes");
    fs::write(&request.started.transcript, "").unwrap();
    let observer = TurnObserver::silent(CancellationToken::new());
    let mut answer = harness.claude.follow(request.started, observer).await;
    assert_eq!(*answer.cost_mut(), Cost::Unknown);
}

#[tokio::test]
async fn unreadable_transcript_may_contain_an_answer() {
    let harness = Harness::new("", PATIENT);
    let started = harness.request("hello").started;
    let unreadable = StartedTurn { transcript: harness.directory.path().to_owned(), ..started };
    let why = format!(
        "could not read the transcript {}: Is a directory (os error 21)",
        unreadable.transcript.display()
    );
    assert_eq!(harness.claude.attach(&unreadable), AttachResult::Unreadable { why: why.clone() });
    // A client that was to be followed cost something and is not started again.
    let observer = TurnObserver::silent(CancellationToken::new());
    let expected = Answer::Failed {
        failure: TurnFailure::Environment { why },
        cost: Cost::Unknown,
        denied: Vec::new(),
        session: None,
    };
    assert_eq!(harness.claude.follow(unreadable, observer).await, expected);
}

// proves: A32
#[test]
fn fifo_in_place_of_file_does_not_block() {
    let check = |extension: &str| {
        let harness = Harness::new("", PATIENT);
        let started = harness.request("hello").started;
        mark_started(&started, &["jsonl", "stderr"]);
        let fifo = started.transcript.with_extension(extension);
        fs::remove_file(&fifo).ok();
        mknodat(CWD, &fifo, FileType::Fifo, FileMode::RWXU, 0).unwrap();
        harness.claude.attach(&started)
    };
    for extension in ["jsonl", "stderr"] {
        let found = check(extension);
        let AttachResult::Unreadable { why } = found else { panic!("{found:?}") };
        assert!(why.ends_with(&format!("hello.{extension}: it is not a regular file")), "{why}");
    }
    let expected = AttachResult::without_answer(Cost::Unknown, false, None);
    assert_eq!(check("pid"), expected);
}
