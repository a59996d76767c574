//! Invariants of a run after any kill at any time.

use raymond_testkit::model::{ConversationItem, RecordedRequest, Role};

use super::points::{Ending, Moment};
use super::scene::{CALL, GOTO, Kind, Scene};
use crate::harness::Output;
use crate::shown;

/// Messages that the client adds to a conversation: after a prompt without an answer, and after it
/// was asked to stop.
const MADE_UP: [&str; 2] = ["No response requested.", "[Request interrupted by user"];

/// The cost of the usual message, in micro-dollars.
const MESSAGE: u64 = 6_000;

/// How many replies of the model were lost with a client that was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Known(u64),
    /// The client was not blocked, so its progress is unknown.
    Unknown,
}

impl Lost {
    const fn of(moment: Moment, ending: Ending) -> Self {
        match (moment, ending) {
            (_, Ending::Adopted | Ending::Finished) => Self::Known(0),
            (moment, Ending::Killed) => match moment {
                Moment::Recorded
                | Moment::Opened
                | Moment::Executed
                | Moment::Spawned
                | Moment::Spoken
                | Moment::Kept
                | Moment::Asked
                | Moment::AskedTwice
                | Moment::Blind(_) => Self::Known(0),
                Moment::Tool
                | Moment::ToolTwice
                | Moment::ToolEnded
                | Moment::Returned
                | Moment::ToolReported
                | Moment::ToolReportedTwice => Self::Known(1),
                Moment::Called
                | Moment::Answered
                | Moment::Resulted
                | Moment::Settled
                | Moment::After(_) => Self::Unknown,
            },
        }
    }
}

/// Checks a run whose owner was killed at this moment.
#[track_caller]
pub(crate) fn audit(scene: &Scene, moment: Moment, ending: Ending, output: &Output) {
    let lost = Lost::of(moment, ending);
    holds(scene, lost, output);
    if let Lost::Known(_) = lost {
        ends_as_expected(scene, moment, ending, output);
    }
}

/// Checks all requests to the model, and all records.
#[track_caller]
pub(crate) fn holds(scene: &Scene, lost: Lost, output: &Output) {
    output.prints(scene.kind.result()).mentions(0, &[]);
    scene.stage.leaves_nothing();
    history_is_whole(scene);
    only_interrupted_turns_are_continued(scene);
    conversations_are_kept(scene);
    finished_turns_are_not_repeated(scene, lost);
    nothing_is_paid_twice(scene, lost, output);
}

/// Checks that the requests are the steps of one history, in order, and that no step returns.
#[track_caller]
fn history_is_whole(scene: &Scene) {
    let requests = scene.stage.requests();
    let mut stories: Vec<Vec<String>> =
        requests.iter().map(|seen| story(&seen.conversation)).collect();
    stories.dedup();
    let expected: &[&[&str]] = match scene.kind {
        Kind::Fresh => &[&["START"]],
        Kind::Resumed => &[&["START"], &["START", GOTO, "WORK"]],
        Kind::Branching => &[&["START"], &["START", CALL, "WORK"], &["START", CALL, "BACK"]],
    };
    assert_eq!(stories, expected, "{:#?}", shown(scene));
    let state = scene.kind.state();
    let body = scene.stage.project.read(&format!("wf/{state}.md"));
    for seen in turn(scene) {
        let mut prompts = seen.conversation.iter().filter(|said| said.role == Role::User);
        assert!(prompts.next_back().unwrap().text.ends_with(&body), "{seen:#?}");
    }
}

/// Checks that a notice about an interruption was sent only in a turn that was interrupted or whose
/// client failed, whichever turn the kill hit.
#[track_caller]
fn only_interrupted_turns_are_continued(scene: &Scene) {
    let interrupted =
        ["turn_interrupted", "turn_failed"].map(|event| scene.stage.events(event)).concat();
    for seen in scene.stage.requests() {
        let prompt = shown::prompt(&seen);
        let Some(step) = prompt.strip_prefix("again ") else { continue };
        let turn = match step {
            "START" => "main.1.1",
            "WORK" => "main.2.1",
            "BACK" => "main.3.1",
            other => panic!("no such step: {other}"),
        };
        assert!(interrupted.iter().any(|event| event["turn"] == turn), "{step}: {interrupted:?}");
    }
}

/// Checks that each step has one conversation, however often it is continued. Only a client that
/// was killed before it saved anything starts again from the beginning.
#[track_caller]
fn conversations_are_kept(scene: &Scene) {
    let requests = scene.stage.requests();
    let mut places: Vec<(String, &str)> = Vec::new();
    for seen in &requests {
        let session = shown::session(seen);
        assert_ne!(session, "", "{seen:#?}");
        places.push((shown::prompt(seen).trim_start_matches("again ").to_owned(), session));
        let first = shown::conversation(&seen.conversation[..1]);
        assert_eq!(first, "START", "the conversation lacks its beginning: {:#?}", shown(scene));
    }
    places.dedup();
    places.dedup_by(|next, place| {
        let again = next.0 == place.0 && !scene.stage.keeps(place.1);
        if again {
            *place = next.clone();
        }
        again
    });
    let steps: Vec<&str> = places.iter().map(|(step, _)| step.as_str()).collect();
    let sessions: Vec<&str> = places.iter().map(|(_, session)| *session).collect();
    assert!(sessions.iter().all(|session| scene.stage.keeps(session)), "{places:?}");
    match scene.kind {
        Kind::Fresh => assert_eq!(steps, ["START"], "{places:?}"),
        Kind::Resumed => {
            assert_eq!(steps, ["START", "WORK"], "{places:?}");
            assert_eq!(sessions[0], sessions[1], "the turn stays in its conversation");
        }
        Kind::Branching => {
            assert_eq!(steps, ["START", "WORK", "BACK"], "{places:?}");
            assert_eq!(sessions[0], sessions[2], "the caller stays in its own conversation");
            assert_ne!(sessions[0], sessions[1], "the callee has its own");
        }
    }
}

/// Returns the messages without tools, and without the messages about interruptions. A continued
/// step replaces the part of it that was interrupted, and that part may end with the reply of the
/// model, because the client saves a reply before it prints it.
fn story(conversation: &[ConversationItem]) -> Vec<String> {
    let made_up = |said: &&ConversationItem| MADE_UP.iter().any(|text| said.text.starts_with(text));
    let mut lines: Vec<String> = Vec::new();
    for said in conversation.iter().filter(|said| !made_up(said)) {
        match said.role {
            Role::User => {
                let label = shown::conversation(std::slice::from_ref(said));
                let continued = label.strip_prefix("again ");
                let step = continued.unwrap_or(&label);
                let begun = continued.and_then(|_| lines.iter().rposition(|line| line == step));
                lines.truncate(begun.unwrap_or(lines.len()));
                lines.push(step.to_owned());
            }
            Role::Assistant => lines.push(said.text.clone()),
            Role::Call | Role::Outcome => {}
        }
    }
    lines.dedup();
    lines
}

/// Every request, for messages of failed assertions.
fn shown(scene: &Scene) -> Vec<String> {
    let line = |seen: &RecordedRequest| {
        format!("{} {:?}", shown::conversation(&seen.conversation), seen.outcome)
    };
    scene.stage.requests().iter().map(line).collect()
}

/// The requests of the turn that was killed.
fn turn(scene: &Scene) -> impl Iterator<Item = RecordedRequest> {
    let state = scene.kind.state();
    let last = |seen: &RecordedRequest| story(&seen.conversation).pop();
    scene.stage.requests().into_iter().filter(move |seen| last(seen).as_deref() == Some(state))
}

#[track_caller]
fn finished_turns_are_not_repeated(scene: &Scene, lost: Lost) {
    let mut settled: Vec<String> = Vec::new();
    for event in scene.stage.events("turn_settled") {
        settled.push(event["turn"].as_str().unwrap().to_owned());
    }
    let expected: &[&str] = match scene.kind {
        Kind::Fresh => &["main.1.1"],
        Kind::Resumed => &["main.1.1", "main.2.1"],
        Kind::Branching => &["main.1.1", "main.2.1", "main.3.1"],
    };
    assert_eq!(settled, expected);
    if let Lost::Known(lost) = lost {
        let answered = scene.stage.requests().iter().filter(|seen| seen.is_answered()).count();
        // One message for each turn, and one for the tool.
        let needed = expected.len() as u64 + 1;
        assert_eq!(answered as u64, needed + lost, "{:#?}", shown(scene));
        let again = usize::from(lost > 0);
        assert_eq!(scene.tool().0, 1 + again, "how often the tool ran");
    }
}

/// Checks that reported costs equal the billed costs, and that other charges are labelled and never
/// zero.
#[track_caller]
fn nothing_is_paid_twice(scene: &Scene, lost: Lost, output: &Output) {
    let (charges, billed) = (scene.stage.charges(), scene.stage.billed());
    let of_basis = |wanted: &str| -> Vec<u64> {
        let charges = charges.iter().filter(|(_, _, basis)| basis == wanted);
        charges.map(|(_, amount, _)| *amount).collect()
    };
    let (reported, estimated) = (of_basis("reported").iter().sum::<u64>(), of_basis("estimated"));
    match lost {
        Lost::Known(lost) => {
            let unreported = if estimated.is_empty() { 0 } else { lost * MESSAGE };
            assert_eq!(reported, billed - unreported, "{charges:?}");
        }
        Lost::Unknown => assert!(reported <= billed, "{charges:?}, and {billed} was billed"),
    }
    assert_eq!(scene.stage.spent(), reported + estimated.iter().sum::<u64>());
    assert!(estimated.iter().all(|amount| *amount > 0), "{charges:?}");
    let unpriced = of_basis("unpriced");
    assert_eq!(output.stderr.contains("estimated"), !estimated.is_empty(), "{output:?}");
    assert_eq!(output.stderr.contains("unpriced"), !unpriced.is_empty(), "{output:?}");
    if scene.kind != Kind::Fresh && lost != Lost::Unknown {
        assert!(unpriced.is_empty(), "there is a turn to compare it with: {charges:?}");
    }
}

/// Checks that the plan of the next owner fits the moment of the kill.
#[track_caller]
fn ends_as_expected(scene: &Scene, moment: Moment, ending: Ending, output: &Output) {
    let plan = match (moment, ending) {
        // The owner may have progressed further before it died, or the client had not started yet.
        (
            Moment::Recorded
            | Moment::Opened
            | Moment::Executed
            | Moment::Answered
            | Moment::Resulted
            | Moment::Settled
            | Moment::After(_),
            _,
        ) => return,
        (_, Ending::Adopted) => "adopting 1, continuing 0",
        (_, Ending::Finished) => "1 finished meanwhile, continuing 0",
        (_, Ending::Killed) => "continuing 1",
    };
    output.mentions(0, &[plan]);
    let interrupted = usize::from(ending == Ending::Killed);
    assert_eq!(scene.turn_events("turn_interrupted").len(), interrupted);
    let leftovers = output.stderr.matches("ended a leftover process").count();
    let expected = match (moment, ending) {
        (Moment::Tool | Moment::ToolTwice, Ending::Killed) => true,
        // The tool has printed its last line, and may still run.
        (Moment::ToolEnded, Ending::Killed) => return,
        _ => false,
    };
    assert_eq!(leftovers > 0, expected, "{output:?}");
}

#[test]
fn continued_step_replaces_its_interrupted_part() {
    let again = |body: &str| {
        let notice = "Raymond was interrupted. Look at what is done, then continue.";
        (Role::User, format!("{notice}\n\n{body}"))
    };
    let user = |text: &str| (Role::User, text.to_owned());
    let reply = |text: &str| (Role::Assistant, text.to_owned());
    let check = |conversation: &[(Role, String)], expected: &[&str]| {
        let items = conversation.iter().map(|(role, text)| ConversationItem::new(*role, text));
        assert_eq!(story(&items.collect::<Vec<_>>()), expected);
    };
    check(&[user("START"), reply(GOTO), user("WORK")], &["START", GOTO, "WORK"]);
    check(&[user("START"), again("START")], &["START"]);
    check(&[user("START"), reply(GOTO), again("START")], &["START"]);
    let first = [user("START"), reply(GOTO), again("START"), reply(GOTO), user("WORK")];
    check(&first, &["START", GOTO, "WORK"]);
    let second = [user("START"), reply(GOTO), user("WORK"), reply("done"), again("WORK")];
    check(&second, &["START", GOTO, "WORK"]);
    let repeated = [user("START"), reply(GOTO), user("START")];
    check(&repeated, &["START", GOTO, "START"]);
}
