use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::reply::Failure;

fn user(text: &str) -> ConversationItem {
    ConversationItem::new(Role::User, text)
}

fn assistant(text: &str) -> ConversationItem {
    ConversationItem::new(Role::Assistant, text)
}

fn call() -> ConversationItem {
    ConversationItem::new(Role::Call, "Bash {}")
}

fn outcome() -> ConversationItem {
    ConversationItem::new(Role::Outcome, "done")
}

fn speaks(blocks: Vec<Block>, stop: StopReason, usage: Usage) -> Reply {
    let message = Message { blocks, stop, usage, cut: None };
    Reply { pauses: Vec::new(), action: Action::Send(message) }
}

fn says(text: &str) -> Reply {
    speaks(vec![Block::Text(text.to_owned())], StopReason::Ended, DEFAULT_USAGE)
}

fn tool() -> Block {
    Block::Tool { name: "Bash".to_owned(), input: json!({ "command": "ls" }) }
}

#[track_caller]
fn check(conversation: &[ConversationItem], expected: Reply) {
    assert_eq!(reply(conversation), Ok(expected), "{conversation:?}");
}

#[test]
fn prompt_lines_define_the_message() {
    let fails = |failure| Reply { pauses: Vec::new(), action: Action::Fail(failure) };
    check(&[], says("ok"));
    check(&[user("do it")], says("ok"));
    check(&[user("do it\nmodel: say <goto>A</goto>")], says("<goto>A</goto>"));
    check(&[user("  model:   say a\\nb  \nmodel: say c")], says("a\nb"));
    check(
        &[user("model: tool Bash {\"command\": \"ls\"}")],
        speaks(vec![tool()], StopReason::Tool, DEFAULT_USAGE),
    );
    check(
        &[user("model: think hm\nmodel: text so\nmodel: tool Bash {\"command\":\"ls\"}")],
        speaks(
            vec![Block::Thinking("hm".to_owned()), Block::Text("so".to_owned()), tool()],
            StopReason::Tool,
            DEFAULT_USAGE,
        ),
    );
    check(
        &[user("model: usage input=1 output=2 cache_read=3 cache_write=4\nmodel: refuse")],
        speaks(
            Vec::new(),
            StopReason::Refused,
            Usage { input: 1, output: 2, cache_read: 3, cache_write: 4 },
        ),
    );
    check(&[user("model: error 529")], fails(Failure::new(529)));
    check(
        &[user("model: error 429 type=t retry-after=3 header:x-y=z message=no more = no")],
        fails(
            Failure::new(429)
                .with_kind("t")
                .with_header("retry-after", "3")
                .with_header("x-y", "z")
                .with_message("no more = no"),
        ),
    );
    let action = |action| Reply { pauses: Vec::new(), action };
    check(&[user("model: drop")], action(Action::Drop));
    check(&[user("model: hang")], action(Action::Hang));
    let pauses = vec![
        Pause::Latency(Duration::from_millis(300)),
        Pause::Latency(Duration::from_secs(2)),
        Pause::Gate("gate".to_owned()),
    ];
    check(
        &[user("model: latency 300ms\nmodel: latency 2s\nmodel: wait gate\nmodel: hang")],
        Reply { pauses, action: Action::Hang },
    );
    let Ok(Reply { action: Action::Send(cut), .. }) = reply(&[user("model: cut 3\nmodel: say a")])
    else {
        panic!("a cut message is a message");
    };
    assert_eq!(cut.cut, Some(3));
}

#[test]
fn number_of_replies_selects_the_next_message() {
    let script = user(
        "model: tool Bash {\"command\":\"ls\"}
        model: usage input=7
        model: say a",
    );
    let a = speaks(
        vec![Block::Text("a".to_owned())],
        StopReason::Ended,
        Usage { input: 7, ..DEFAULT_USAGE },
    );
    let ok = speaks(
        vec![Block::Text("ok".to_owned())],
        StopReason::Ended,
        Usage { input: 7, ..DEFAULT_USAGE },
    );
    check(std::slice::from_ref(&script), speaks(vec![tool()], StopReason::Tool, DEFAULT_USAGE));
    check(&[script.clone(), call(), outcome()], a.clone());
    check(&[script.clone(), assistant("so"), call(), call(), outcome(), outcome()], a);
    check(&[script.clone(), call(), outcome(), assistant("x"), call(), outcome()], ok);
    let earlier =
        [user("model: say early"), assistant("early"), user("no script"), assistant("ok")];
    let again = [earlier.as_slice(), std::slice::from_ref(&script)].concat();
    check(&again, speaks(vec![tool()], StopReason::Tool, DEFAULT_USAGE));
    check(
        &[script.clone(), call(), outcome(), script],
        speaks(vec![tool()], StopReason::Tool, DEFAULT_USAGE),
    );
}

#[test]
fn then_answers_prompts_without_a_script() {
    let script = user(
        "model: say a\nmodel: then\nmodel: tool Bash {\"command\":\"ls\"}\nmodel: say b\nmodel: then\nmodel: say c",
    );
    let reminded = [script.clone(), assistant("a"), user("a tag is missing")];
    check(std::slice::from_ref(&script), says("a"));
    check(&reminded, speaks(vec![tool()], StopReason::Tool, DEFAULT_USAGE));
    check(&[reminded.as_slice(), &[call(), outcome()]].concat(), says("b"));
    let twice = [reminded.as_slice(), &[assistant("b"), user("still missing")]].concat();
    check(&twice, says("c"));
    check(&[twice.as_slice(), &[assistant("c"), user("once more")]].concat(), says("ok"));
    check(&[twice.as_slice(), &[user("model: say own")]].concat(), says("own"));
}

#[test]
fn again_answers_a_repeated_script() {
    let lines =
        "model: say a\nmodel: again\nmodel: usage input=7\nmodel: say b\nmodel: then\nmodel: say c";
    let (first, again) = (user(lines), user(&format!("go on\n\n{lines}")));
    let cheap = Usage { input: 7, ..DEFAULT_USAGE };
    let cheaply = |text: &str| speaks(vec![Block::Text(text.to_owned())], StopReason::Ended, cheap);
    check(std::slice::from_ref(&first), says("a"));
    check(&[first.clone(), again.clone()], cheaply("b"));
    check(
        &[first.clone(), assistant("a"), again.clone(), assistant("b"), user("hm")],
        cheaply("c"),
    );
    check(&[first.clone(), again.clone(), again], cheaply("b"));
    check(&[user("model: say other"), first], says("a"));
}

#[test]
fn error_names_the_unreadable_line() {
    let check = |text: &str, why: &str| assert_eq!(reply(&[user(text)]), Err(why.to_owned()));
    check("model: sing a", "model: sing a: unknown directive");
    check("model: say", "model: say: a text is missing");
    check("model: drop it", "model: drop it: unexpected text after it: \"it\"");
    check("model: tool", "model: tool: the name of a tool is missing");
    check("model: tool Bash [1]", "model: tool Bash [1]: its input is not an object");
    check("model: cut it", "model: cut it: expected a number of events");
    check("model: error 200", "model: error 200: expected a status from 400 to 599");
    check("model: error 500 often", "model: error 500 often: \"often\" has no =");
    check("model: error 500 a=b", "model: error 500 a=b: unknown field \"a\" of an error");
    check("model: latency soon", "model: latency soon: expected a time such as 300ms or 2s");
    check(
        "model: usage input=all",
        "model: usage input=all: \"input=all\" is not a number of input, output, cache_read or \
         cache_write tokens",
    );
    check(
        "model: text a\nmodel: drop",
        "model: think, text and cut belong to a message: say, tool or refuse",
    );
    let open = "model: the last message is not complete: say, tool, refuse, error, drop or hang is \
                missing";
    check("model: text a", open);
    check("model: latency 1s\nmodel: then\nmodel: say a", open);
    assert!(reply(&[user("model: tool Bash {")]).is_err_and(|why| why.contains("is not JSON")));
}
