//! The text that the model gets, and the part of its answer that Raymond reads.

use std::fmt::Write as _;

use raymond_testkit::model::{ConversationItem, Role};

use crate::harness::until;
use crate::stage::{RUN, Stage};

const END: &str = "model: say <result>done</result>";

/// A megabyte of different lines with special characters.
fn megabyte(of: &str) -> String {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < 1_000_000 {
        line += 1;
        writeln!(text, "{of} {line}: äöü € 🦀 $HOME `x` \"y\" \\n & <b>\t  \r").unwrap();
    }
    text
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn megabyte_prompts_reach_the_model_unchanged() {
    let (state, payload) = (megabyte("state"), megabyte("payload"));
    let stage = Stage::new();
    let first = format!("{state}model: say <function return=\"NEXT\">MAKE</function>\n");
    stage.state("1_START.md", &first);
    stage.state("MAKE.sh", "printf '<result>'; cat payload; printf '</result>'\n");
    stage.state("NEXT.md", &format!("[{{{{result}}}}]\n{END}\n"));
    stage.project.write("payload", &payload);
    stage.run("").prints("done\n").mentions(0, &[]);
    let second = format!("[{payload}]\n{END}\n");
    let [_, last] = &stage.requests()[..] else {
        panic!("two requests: {:?}", stage.turn_contexts())
    };
    let called = "<function return=\"NEXT\">MAKE</function>";
    let expected = [
        ConversationItem::new(Role::User, first),
        ConversationItem::new(Role::Assistant, called),
        ConversationItem::new(Role::User, second),
    ];
    // They are too long to be printed.
    assert_eq!(last.conversation.len(), 3);
    assert!(last.conversation == expected);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn all_blocks_of_only_the_final_message_count() {
    let stage = Stage::prompts(&[
        (
            "1_START",
            "model: think I may say <goto>WRONG</goto>
            model: text Perhaps <goto>WRONG</goto>
            model: tool Bash {\"command\":\"echo '<goto>WRONG</goto>'\"}
            model: think Not <goto>WRONG</goto>
            model: text Well,\\n\\n<go
            model: text to>E
            model: say ND</goto>, of course",
        ),
        ("WRONG", "model: say <result>wrong</result>"),
        ("END", END),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let said = "Perhaps <goto>WRONG</goto>, Bash, done, Well,\n\n<go, to>E, ND</goto>, of course";
    assert_eq!(
        stage.turn_contexts(),
        ["new A | 1_START", &format!("resume A | 1_START, {said}, END")]
    );
    let requests = stage.requests();
    let outcome = &requests[1].conversation[3];
    assert_eq!(*outcome, ConversationItem::new(Role::Outcome, "<goto>WRONG</goto>"));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn background_task_delays_the_answer_until_it_ends() {
    let wait = "until [ -e go ]; do sleep 0.02; done; echo finished";
    let lines = format!(
        "allow: [Bash]\n---\n\
         model: tool Bash {{\"command\":\"{wait}\",\"run_in_background\":true}}\n\
         model: say <result>early</result>\n\
         model: usage input=3000 output=200\n\
         model: say <result>late</result>"
    );
    let stage = Stage::prompts(&[("START", &lines)]);
    let running = stage.start_run("");
    let transcript = format!(".raymond/runs/{RUN}/transcripts/main.1.1.1.jsonl");
    until("the first result", || stage.project.read(&transcript).contains("\"type\":\"result\""));
    assert_eq!(stage.events("turn_settled").len(), 0);
    stage.project.write("go", "");
    running.wait().prints("late\n").mentions(0, &[]);
    assert_eq!(stage.charges().len(), 1, "{:?}", stage.charges());
    assert_eq!(stage.spent(), stage.billed());
    let results = stage.project.read(&transcript).matches("\"type\":\"result\"").count();
    assert_eq!((results, stage.requests().len()), (2, 3));
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn endless_background_task_is_ended_after_the_answer() {
    let lines = "allow: [Bash]\n---\n\
         model: tool Bash {\"command\":\"setsid sleep 601 >/dev/null 2>&1 & echo started\"}\n\
         model: tool Bash {\"command\":\"sleep 600\",\"run_in_background\":true}\n\
         model: say <result>done</result>";
    let stage = Stage::prompts(&[("START", lines)]);
    // The client must answer within this time, even on a busy machine.
    stage.run("--idle-timeout 30s").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.charges(), [("main.1.1".to_owned(), stage.billed(), "reported".to_owned())]);
    assert_eq!(stage.requests().len(), 3);
    stage.leaves_nothing();
}
