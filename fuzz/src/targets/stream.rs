//! Rules for the streams of all clients: pieces of any size give the same result, and a transcript
//! gives the same result each time it is read.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use raymond_backends::contract::{Answer, AttachResult, Backend, StartedTurn};
use raymond_backends::process::{StreamEvent, Transcript, read_transcript};
use raymond_backends::transcript_parser::{TranscriptItem, TranscriptParser};
use raymond_core::agent::SessionPlan;
use raymond_core::budget::{Cost, Micros};
use raymond_core::ids::{Nonce, SessionId, TurnId};
use raymond_testkit::dice::Dice;
use tempfile::TempDir;

/// The session that a turn is planned with.
const SESSION: &str = "00000000-0000-8000-8000-000000000001";

thread_local! {
    static BENCH: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Checks a stream of this client.
pub(super) fn check(client: &dyn Backend, bytes: &[u8]) {
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(|| tempfile::tempdir().expect("a directory"));
        let transcript = bench.path().join("turn.jsonl");
        fs::write(&transcript, bytes).expect("a transcript");
        check_pieces(client, bytes, &transcript);
        for plan in plans() {
            check_left(client, &started(bench.path(), &transcript, plan));
        }
        let names: Vec<_> = fs::read_dir(bench.path()).expect("a directory").collect();
        assert_eq!(names.len(), 1, "reading left something behind: {names:?}");
    });
}

/// Lines do not depend on how they arrive, nor does what they say.
fn check_pieces(client: &dyn Backend, bytes: &[u8], transcript: &Path) {
    let mut whole = Vec::new();
    read_transcript(transcript, &mut |heard| whole.push(heard)).expect("a transcript");
    let growing = transcript.with_extension("growing");
    let mut file = fs::File::create(&growing).expect("a file");
    let mut reader = Transcript::open(&growing).expect("a transcript");
    let mut pieces = Vec::new();
    let mut dice = Dice::new(bytes.len() as u64);
    let mut rest = bytes;
    // Few pieces, because each costs a write and a read of the file. Their borders also fall inside
    // lines and characters.
    for _ in 0..4 {
        let (piece, after) = rest.split_at(dice.index(rest.len() + 1));
        file.write_all(piece).expect("a file");
        reader.read_on(&mut |heard| pieces.push(heard)).expect("a file");
        rest = after;
    }
    file.write_all(rest).expect("a file");
    reader.finish(&mut |heard| pieces.push(heard)).expect("a file");
    fs::remove_file(&growing).expect("a file");
    assert_eq!(pieces, whole, "pieces give other lines than the whole");
    assert_eq!(said(client, &pieces), said(client, &whole), "the same lines say something else");
}

fn said(client: &dyn Backend, heard: &[StreamEvent]) -> Vec<TranscriptItem> {
    let mut recount = TranscriptParser::of(&client.name()).expect("a client with transcripts");
    heard.iter().flat_map(|heard| recount.read_event(heard)).collect()
}

/// Checks that a transcript gives the same result each time, and names its own session.
fn check_left(client: &dyn Backend, started: &StartedTurn) {
    let left = client.attach(started);
    // A recovery that fails reads the transcript again, and must come to the same outcome.
    assert_eq!(client.attach(started), left, "reading again finds something else");
    let session = match left {
        AttachResult::Running => panic!("nobody was started"),
        AttachResult::Unreadable { why } => panic!("could not read a file that is there: {why}"),
        AttachResult::Ended(Answer::Finished(reply)) => reply.session,
        AttachResult::Ended(
            Answer::Capped { session, .. }
            | Answer::Failed { session, .. }
            | Answer::Interrupted { session, .. },
        ) => session,
    };
    if let Some(session) = session {
        let id = session.as_str();
        // The id becomes an argument of the client. With a dash it would be a flag.
        let usable = id.bytes().all(|byte| byte.is_ascii_graphic()) && !id.starts_with('-');
        assert!(usable && !id.is_empty() && id.len() <= 200, "{id:?} would be an argument");
    }
}

/// A client that may have asked a model is not free because it wrote more. Only a result can report
/// that nothing was used, and only a refused login makes a request free.
pub(super) fn check_never_free(client: &dyn Backend, bytes: &[u8]) {
    let forgives = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    if ["result", "api_retry"].into_iter().any(forgives) {
        return;
    }
    let bench = tempfile::tempdir().expect("a directory");
    let transcript = bench.path().join("turn.jsonl");
    let [fresh, ..] = plans();
    let started = started(bench.path(), &transcript, fresh);
    let is_free = |bytes: &[u8]| {
        fs::write(&transcript, bytes).expect("a transcript");
        match client.attach(&started) {
            AttachResult::Ended(Answer::Interrupted { cost, .. }) => {
                cost == Cost::Reported(Micros::ZERO)
            }
            AttachResult::Running | AttachResult::Ended(_) | AttachResult::Unreadable { .. } => {
                false
            }
        }
    };
    // At the end of a line, because a client that was interrupted there is a possible case.
    let half = bytes[..bytes.len() / 2].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    assert!(!is_free(bytes) || is_free(&bytes[..half]), "more output made a turn free");
}

fn plans() -> [SessionPlan; 3] {
    let (id, from) = (SessionId::new(SESSION), SessionId::new("from"));
    let fresh = SessionPlan::Fresh(id.clone());
    let continued = fresh.continued();
    [fresh, continued, SessionPlan::Branch { from, to: id }]
}

fn started(home: &Path, transcript: &Path, plan: SessionPlan) -> StartedTurn {
    StartedTurn {
        nonce: Nonce::new("fuzz"),
        turn: "main.1.1".parse::<TurnId>().expect("the name of a turn"),
        attempt: 1,
        plan,
        transcript: PathBuf::from(transcript),
        timeout: None,
        idle_timeout: None,
        cap: None,
        // Nothing of this user's own is looked at.
        config_home: Some(home.to_owned()),
    }
}
