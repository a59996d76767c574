use super::*;
use crate::model::reply::DEFAULT_USAGE;

fn reply_id() -> ReplyId {
    ReplyId { id: "f00d".to_owned(), model: "m".to_owned() }
}

fn message() -> Message {
    let blocks = vec![
        Block::Thinking("hm".to_owned()),
        Block::Text("abc".to_owned()),
        Block::Tool { name: "Bash".to_owned(), input: json!({ "command": "ls" }) },
    ];
    Message { blocks, stop: StopReason::Tool, usage: DEFAULT_USAGE, cut: None }
}

#[test]
fn request_is_parsed() {
    let body = json!({
        "model": "m", "stream": true, "tools": [{ "name": "Bash" }, { "name": "Edit" }],
        "system": [{ "type": "text", "text": "you are" }, { "type": "text", "text": "a test" }],
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "<system-reminder>x</system-reminder>\n" },
                { "type": "text", "text": "one\n" },
                { "type": "text", "text": "two" },
            ]},
            { "role": "system", "content": "in between" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "text", "text": "so" },
                { "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t",
                  "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            ]},
            { "role": "assistant", "content": "end" },
            { "role": "user", "content": "more" },
        ],
    });
    let expected = ParsedRequest {
        model: "m".to_owned(),
        system: "you are\na test\nin between".to_owned(),
        conversation: vec![
            ConversationItem::new(Role::User, "one\n"),
            ConversationItem::new(Role::User, "two"),
            ConversationItem::new(Role::Assistant, "so"),
            ConversationItem::new(Role::Call, "Bash {\"command\":\"ls\"}"),
            ConversationItem::new(Role::Outcome, "a\nb"),
            ConversationItem::new(Role::Assistant, "end"),
            ConversationItem::new(Role::User, "more"),
        ],
        tools: vec!["Bash".to_owned(), "Edit".to_owned()],
        form: Form::Stream,
    };
    assert_eq!(read(&body), expected);
    assert_eq!(read(&json!(7)), ParsedRequest::default());
}

#[test]
fn events_add_up_to_the_whole_message() {
    let events = events(&message(), &reply_id());
    let mut sum = events[0].data["message"].clone();
    let mut inputs = String::new();
    for event in &events {
        assert_eq!(event.data["type"], event.name);
        let index = usize::try_from(event.data["index"].as_u64().unwrap_or(0)).unwrap();
        let delta = &event.data["delta"];
        let mut add = |kind: &str| {
            let old = string_of(&sum["content"][index][kind]);
            sum["content"][index][kind] = format!("{old}{}", string_of(&delta[kind])).into();
        };
        match (event.name, delta["type"].as_str()) {
            ("content_block_start", _) => {
                let block = event.data["content_block"].clone();
                sum["content"].as_array_mut().unwrap().push(block);
            }
            ("content_block_delta", Some("text_delta")) => add("text"),
            ("content_block_delta", Some("thinking_delta")) => add("thinking"),
            ("content_block_delta", Some("signature_delta")) => add("signature"),
            ("content_block_delta", _) => inputs.push_str(&string_of(&delta["partial_json"])),
            ("content_block_stop", _) if !inputs.is_empty() => {
                let input: Value = serde_json::from_str(&std::mem::take(&mut inputs)).unwrap();
                sum["content"][index]["input"] = input;
            }
            ("message_delta", _) => {
                sum["stop_reason"] = delta["stop_reason"].clone();
                sum["usage"] = event.data["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(sum, whole(&message(), &reply_id()));
    assert_eq!(events.last().unwrap().name, "message_stop");
    let texts = events.iter().filter(|event| event.data["delta"]["type"] == "text_delta");
    assert_eq!(texts.count(), 2, "a cut may leave half a text");
}

#[test]
fn error_kind_follows_from_the_status() {
    let check = |failure: &Failure, kind: &str| assert_eq!(error(failure)["error"]["type"], kind);
    check(&Failure::new(400), "invalid_request_error");
    check(&Failure::new(401), "authentication_error");
    check(&Failure::new(429), "rate_limit_error");
    check(&Failure::new(500), "api_error");
    check(&Failure::new(529), "overloaded_error");
    check(&Failure::new(500).with_kind("odd"), "odd");
}
