//! Both clients in one run: each keeps its own conversations, and only results pass between them.

use std::fs;
use std::path::Path;

use raymond_testkit::model::{Api, RecordedRequest, Role};

use crate::shown;
use crate::stage::{RUN, Stage};

/// The client, its session and its conversation with the model, for each turn.
fn turn_contexts(stage: &Stage) -> Vec<(Api, String, String)> {
    let line = |seen: RecordedRequest| {
        let words = shown::conversation(&seen.conversation);
        (seen.api, place(&seen), words)
    };
    openings(stage).into_iter().map(line).collect()
}

/// The first request of every turn.
fn openings(stage: &Stage) -> Vec<RecordedRequest> {
    let opens = |seen: &RecordedRequest| {
        seen.conversation.last().is_some_and(|said| said.role == Role::User)
    };
    stage.requests().into_iter().filter(opens).collect()
}

/// The conversation that a request continues in.
fn place(seen: &RecordedRequest) -> String {
    seen.header("thread-id").unwrap_or_else(|| shown::session(seen)).to_owned()
}

/// Claude tries to call Codex, and Codex tries to return to Claude. Reminders make both begin a
/// conversation instead.
fn across() -> Stage {
    Stage::prompts(&[
        (
            "START",
            "backend: claude
---
model: say <call return='BACK'>LOOK</call>
model: then
model: say <function return='BACK' input='my work'>LOOK</function>",
        ),
        (
            "LOOK",
            "backend: codex
---
at {{input}}, says the zebra
model: say <goto>BACK</goto>
model: then
model: say <reset>MORE</reset>",
        ),
        ("MORE", "backend: claude\n---\nmodel: say <result>fine</result>"),
        ("BACK", "backend: claude\n---\ngot {{result}}\nmodel: say <result>{{result}}!</result>"),
    ])
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn claude_calls_codex_and_keeps_its_conversation() {
    let stage = across();
    stage.run("").prints("fine!\n").mentions(
        0,
        &[
            "<call>: LOOK.md is answered by codex, but the conversation belongs to claude",
            "<goto>: BACK.md is answered by claude, but the conversation belongs to codex",
        ],
    );
    let turn_contexts = turn_contexts(&stage);
    let (who, words): (Vec<_>, Vec<_>) = turn_contexts
        .iter()
        .map(|(api, place, words)| ((*api, place.clone()), words.as_str()))
        .unzip();
    let [first, .., last] = who.as_slice() else { panic!("{turn_contexts:#?}") };
    assert_eq!(first.0, Api::Messages);
    let codex = &who[2];
    assert_eq!(codex.0, Api::Responses);
    let reset = &who[4];
    assert_eq!(reset.0, Api::Messages);
    assert_eq!(who, [first, first, codex, codex, reset, last].map(Clone::clone));
    assert_eq!(first, last, "the caller continues in its conversation");
    assert_ne!(first, reset, "a conversation begins");

    let start = "START, <call return='BACK'>LOOK</call>, The <call> tag of your message cannot be followed: \
                 LOOK.md would continue this conversation, which belongs to claude, but codex answers \
                 LOOK.md. A state of another backend needs a conversation of its own: enter it by \
                 <reset>, <function> or <fork>, or name a state that claude answers.";
    let look = "LOOK, <goto>BACK</goto>, The <goto> tag of your message cannot be followed: BACK.md \
                would continue this conversation, which belongs to codex, but claude answers BACK.md. A \
                state of another backend needs a conversation of its own: enter it by <reset>, \
                <function> or <fork>, or name a state that codex answers.";
    let call = "<function return='BACK' input='my work'>LOOK</function>";
    let expected = [
        "START".to_owned(),
        start.to_owned(),
        "LOOK".to_owned(),
        look.to_owned(),
        "MORE".to_owned(),
        format!("{start}, {call}, BACK"),
    ];
    assert_eq!(words, expected);

    let zebra = |seen: &RecordedRequest| seen.body.to_string().contains("zebra");
    let of_claude = stage.requests().into_iter().filter(|seen| seen.api == Api::Messages);
    assert!(!of_claude.into_iter().any(|seen| zebra(&seen)), "only the result came back");
    assert_eq!(stage.spent(), stage.billed(), "what both models took is what was paid");
    stage.leaves_nothing();
}

/// A wrong change, the objections of Codex, a better change, and no more objections.
///
/// The input alone scripts the model: Claude by its own lines, and Codex by the lines that Claude
/// passes on.
const CHANGE: &str = r#"leap.sh YEAR says yes or no
model: tool Write {"file_path": "ROOT/leap.sh", "content": "test $(($1 % 4)) = 0 && echo yes || echo no\n"}
model: say <function return="ANSWER" input="I wrote leap.sh.\nmodel: tool exec_command {&quot;cmd&quot;: &quot;sh leap.sh 1900&quot;}\nmodel: say &lt;result>1900 was no leap year&lt;/result>">SECOND_OPINION</function>
model: then
model: tool Bash {"command": "sh mend.sh"}
model: say <function return="ANSWER" input="The centuries are right now.\nmodel: say &lt;result>none&lt;/result>">SECOND_OPINION</function>
model: then
model: say <result>leap.sh knows the centuries now</result>"#;

/// The client, the number of prompts in its conversation, and the quotation in the last one.
fn handed_over(seen: &RecordedRequest) -> (Api, usize, &str) {
    let prompts = seen.conversation.iter().filter(|said| said.role == Role::User);
    let last = prompts.clone().next_back().map(|said| said.text.lines());
    let quoted = last.and_then(|mut lines| lines.find(|line| line.starts_with("> ")));
    (seen.api, prompts.count(), quoted.unwrap_or_default())
}

/// The tool outputs in that conversation of a client which has most of them.
fn outcomes(stage: &Stage, api: Api) -> Vec<String> {
    let requests = stage.requests().into_iter().filter(|seen| seen.api == api);
    let outcomes = requests.map(|seen| {
        let outcomes = seen.conversation.into_iter().filter(|said| said.role == Role::Outcome);
        outcomes.map(|said| said.text.trim().to_owned()).collect::<Vec<_>>()
    });
    outcomes.max_by_key(Vec::len).unwrap_or_default()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn example_works_with_both_clients() {
    let stage = Stage::new();
    let workflow = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/claude-calls-codex/workflow")
        .read_dir()
        .unwrap();
    for file in workflow.flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        stage.state(file.file_name().to_str().unwrap(), &text);
    }
    stage.project.write("mend.sh", "sh leap.sh 1900; echo 'echo no' > leap.sh");
    let input = CHANGE.replace("ROOT", stage.project.root().to_str().unwrap());
    let words = ["run", "wf", "--run-id", RUN, "--input", &input];
    stage.start_words(&words).wait().prints("leap.sh knows the centuries now\n").mentions(0, &[]);
    assert_eq!(stage.project.read("leap.sh"), "echo no\n");

    let openings = openings(&stage);
    let turns: Vec<(Api, usize, &str)> = openings.iter().map(handed_over).collect();
    let expected = [
        (Api::Messages, 1, ""),
        (Api::Responses, 1, "> I wrote leap.sh."),
        (Api::Messages, 2, "> 1900 was no leap year"),
        (Api::Responses, 1, "> The centuries are right now."),
        (Api::Messages, 3, "> none"),
    ];
    assert_eq!(turns, expected, "Claude stays in its conversation, Codex begins one each time");
    let places: Vec<String> = openings.iter().map(place).collect();
    assert_eq!(places, [0, 1, 0, 3, 0].map(|first: usize| places[first].clone()));
    assert_ne!(places[1], places[3]);
    // Both have run the script that Claude wrote.
    assert_eq!(outcomes(&stage, Api::Responses), ["yes"]);
    assert_eq!(outcomes(&stage, Api::Messages)[1..], ["yes"]);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}
