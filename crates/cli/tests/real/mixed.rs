//! Both clients in one run: each keeps its own conversations, and only results pass between them.

use raymond_testkit::model::{Api, Role, Seen};

use crate::shown;
use crate::stage::Stage;

/// Who asked, in which conversation, and what the model was shown; one line per turn.
fn told(stage: &Stage) -> Vec<(Api, String, String)> {
    let opens = |seen: &Seen| seen.conversation.last().is_some_and(|said| said.role == Role::User);
    let line = |seen: Seen| {
        let place = match seen.header("thread-id") {
            Some(thread) => thread.to_owned(),
            None => shown::session(&seen).to_owned(),
        };
        let words = shown::conversation(&seen.conversation);
        (seen.api, place, words)
    };
    stage.requests().into_iter().filter(opens).map(line).collect()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn claude_calls_a_codex_function_and_goes_on_in_its_own_conversation() {
    let stage = Stage::prompts(&[
        (
            "START",
            "backend: claude
---
model: say <goto>LOOK</goto>
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
model: say <goto>MORE</goto>",
        ),
        ("MORE", "backend: codex\n---\nmodel: say <result>fine</result>"),
        ("BACK", "backend: claude\n---\ngot {{result}}\nmodel: say <result>{{result}}!</result>"),
    ]);
    stage.run("").prints("fine!\n").mentions(
        0,
        &[
            "<goto>: LOOK.md is answered by codex, and claude holds the conversation",
            "<goto>: BACK.md is answered by claude, and codex holds the conversation",
        ],
    );
    let told = told(&stage);
    let (who, words): (Vec<_>, Vec<_>) =
        told.iter().map(|(api, place, words)| ((*api, place.clone()), words.as_str())).unzip();
    let [first, .., last] = who.as_slice() else { panic!("{told:#?}") };
    assert_eq!(first.0, Api::Messages);
    let codex = &who[2];
    assert_eq!(codex.0, Api::Responses);
    assert_eq!(who, [first, first, codex, codex, codex, last].map(Clone::clone));
    assert_eq!(first, last, "the caller goes on where it was");

    let start = "START, <goto>LOOK</goto>, The <goto> tag of your message cannot be followed: \
                 LOOK.md would go on in this conversation, which claude holds, and codex answers \
                 LOOK.md. A state of another backend needs a conversation of its own: enter it by \
                 <reset>, <function> or <fork>, or name a state that claude answers.";
    let look = "LOOK, <goto>BACK</goto>, The <goto> tag of your message cannot be followed: BACK.md \
                would go on in this conversation, which codex holds, and claude answers BACK.md. A \
                state of another backend needs a conversation of its own: enter it by <reset>, \
                <function> or <fork>, or name a state that codex answers.";
    let call = "<function return='BACK' input='my work'>LOOK</function>";
    let expected = [
        "START".to_owned(),
        start.to_owned(),
        "LOOK".to_owned(),
        look.to_owned(),
        format!("{look}, <goto>MORE</goto>, MORE"),
        format!("{start}, {call}, BACK"),
    ];
    assert_eq!(words, expected);

    let zebra = |seen: &Seen| seen.body.to_string().contains("zebra");
    let of_claude = stage.requests().into_iter().filter(|seen| seen.api == Api::Messages);
    assert!(!of_claude.into_iter().any(|seen| zebra(&seen)), "only the result came back");
    assert_eq!(stage.spent(), stage.billed(), "what both models took is what was paid");
    stage.leaves_nothing();
}
