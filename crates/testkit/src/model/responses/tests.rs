use super::super::script;
use super::*;

fn reply_id() -> ReplyId {
    ReplyId { id: "0123".to_owned(), model: "gpt-5.5".to_owned() }
}

fn message(blocks: Vec<Block>, stop: StopReason) -> Message {
    let usage = Usage { input: 10, output: 5, cache_write: 3, cache_read: 2 };
    Message { blocks, stop, usage, cut: None }
}

#[test]
fn conversation_has_users_models_and_tools() {
    let text = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let body = json!({
        "model": "gpt-5.5",
        "stream": true,
        "tools": [{ "type": "function", "name": "exec_command" }, { "type": "web_search" }],
        "input": [
            text("developer", "input_text", "be kind"),
            text("user", "input_text", "<environment_context>\n<cwd>/w</cwd></environment_context>"),
            text("user", "input_text", "go"),
            { "type": "reasoning", "summary": [] },
            { "type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}" },
            { "type": "function_call_output", "output": "Chunk ID: 1\nOutput:\na.txt\n" },
            { "type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin" },
            { "type": "custom_tool_call_output", "output": "aborted" },
            text("user", "input_text", "<turn_aborted>\nThe user interrupted"),
            text("assistant", "output_text", "done"),
        ],
    });
    let expected = ParsedRequest {
        model: "gpt-5.5".to_owned(),
        system: "be kind".to_owned(),
        conversation: vec![
            ConversationItem::new(Role::User, "go"),
            ConversationItem::new(Role::Call, "exec_command {\"cmd\":\"ls\"}"),
            ConversationItem::new(Role::Outcome, "a.txt\n"),
            ConversationItem::new(Role::Call, "apply_patch *** Begin"),
            ConversationItem::new(Role::Outcome, "aborted"),
            ConversationItem::new(Role::Assistant, "done"),
        ],
        tools: vec!["exec_command".to_owned()],
        form: Form::Stream,
    };
    assert_eq!(read(&body), expected);
    assert_eq!(read(&Value::Null), ParsedRequest::default());
}

#[test]
fn script_continues_after_client_additions() {
    let user = |text: &str| json!({ "role": "user", "content": [{ "text": text }] });
    let call = json!({ "type": "function_call", "name": "t", "arguments": "{}" });
    let done = json!({ "type": "function_call_output", "output": "x" });
    let script = "model: tool t {}\nmodel: say end";
    let body = json!({ "input": [user(script), call, done, user("<turn_aborted>")] });
    let reply = script::reply(&read(&body).conversation).unwrap();
    let super::super::reply::Action::Send(message) = reply.action else { panic!("it speaks") };
    assert_eq!(message.blocks, [Block::Text("end".to_owned())]);
}

#[test]
fn a_response_is_written_item_by_item() {
    let blocks = vec![Block::Thinking("hm".to_owned()), Block::Text("hi".to_owned())];
    let events = events(&message(blocks, StopReason::Ended), &reply_id());
    let names: Vec<&str> = events.iter().map(|event| event.name).collect();
    let item = ["response.output_item.added", "response.output_item.done"];
    let (added, done) = (item[0], item[1]);
    let delta = "response.output_text.delta";
    let expected =
        ["response.created", added, done, added, delta, delta, done, "response.completed"];
    assert_eq!(names, expected);
    let last = &events[7].data["response"];
    assert_eq!(last["output"][1]["content"][0]["text"], "hi");
    let counted = json!({
        "input_tokens": 15,
        "input_tokens_details": { "cached_tokens": 2, "cache_write_tokens": 3 },
        "output_tokens": 5,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 20,
    });
    assert_eq!(last["usage"], counted);
}

#[test]
fn call_names_tool_and_group() {
    let check = |name: &str, group: Value, tool: &str| {
        let block = Block::Tool { name: name.to_owned(), input: json!({ "a": 1 }) };
        let whole = whole(&message(vec![block], StopReason::Tool), &reply_id());
        let call = &whole["output"][0];
        assert_eq!((&call["namespace"], &call["name"]), (&group, &json!(tool)));
        assert_eq!(
            (&call["arguments"], &call["call_id"]),
            (&json!("{\"a\":1}"), &json!("call_0123_0"))
        );
    };
    check("exec_command", Value::Null, "exec_command");
    check("agents/spawn", json!("agents"), "spawn");
}

#[test]
fn refusal_is_an_incomplete_response() {
    let events = events(&message(Vec::new(), StopReason::Refused), &reply_id());
    let last = events.last().unwrap();
    assert_eq!(last.name, "response.incomplete");
    assert_eq!(last.data["response"]["incomplete_details"]["reason"], "content_filter");
}

#[test]
fn error_has_type_code_and_message() {
    let check = |failure: Failure, kind: &str| {
        let expected = json!({ "error": { "type": kind, "code": kind, "message": "no" } });
        assert_eq!(error(&failure.with_message("no")), expected);
    };
    check(Failure::new(401), "invalid_api_key");
    check(Failure::new(429), "rate_limit_exceeded");
    check(Failure::new(429).with_kind("usage_limit_reached"), "usage_limit_reached");
    check(Failure::new(500), "server_error");
    check(Failure::new(400), "invalid_request_error");
}
