use super::super::sample;
use super::super::wire::{
    Answers, Block, Count, Denial, ErrorDetails, Message, ModelUsage, Patch, RateLimitInfo, Report,
    Server, Tokens, ToolInput, ToolResult,
};
use super::*;

fn check(text: &str, expected: &Line) {
    assert_eq!(read(text), *expected, "{text}");
}

#[test]
fn line_type_is_found_at_any_position() {
    let retry = Retry {
        attempt: 1,
        max_retries: 2,
        delay: 612,
        error_status: Some(401),
        error: Some("authentication_failed".into()),
    };
    check(&sample::retry("401", "authentication_failed"), &Line::Retry(retry.clone()));
    let last = r#"{"attempt":1,"max_retries":2,"retry_delay_ms":612,"error_status":401,"error":"authentication_failed","subtype":"api_retry","type":"system"}"#;
    check(last, &Line::Retry(retry));
    let refused = Retry { error_status: None, error: Some("unknown".into()), ..Retry::default() };
    let refused = Retry { attempt: 1, max_retries: 2, delay: 612, ..refused };
    check(&sample::retry("null", "unknown"), &Line::Retry(refused));
    let answered =
        ToolResult { kind: "tool_result".into(), call: Some("t".into()), ..ToolResult::default() };
    let user = User { message: Answers { content: vec![answered] }, ..User::default() };
    check(&sample::user(), &Line::User(user));
    check(r#"{"type":"user","message":"hello"}"#, &Line::User(User::default()));
    check("", &Line::Ignored);
    check(" \r", &Line::Ignored);
    check(r#"{"type":"stream_event","event":{}}"#, &Line::Ignored);
    check(&sample::system("hook_started", r#""x":1"#), &Line::Ignored);
    check(&sample::system("permission_denied", r#""tool_name":"Bash""#), &Line::Ignored);
    check(r#"{"type":"novelty"}"#, &Line::Unknown { kind: "novelty".into() });
    check(r#"{"type":7}"#, &Line::Unknown { kind: "none".into() });
    check(r#"{"kind":"x"}"#, &Line::Unknown { kind: "none".into() });
    check("[1]", &Line::Unknown { kind: "none".into() });
    check("17", &Line::Unknown { kind: "none".into() });
    check("Segmentation fault", &Line::NotJson);
    check(r#"{"type":"result","subt"#, &Line::NotJson);
}

#[test]
fn known_fields_are_read_and_others_ignored() {
    let server = Server { name: "x".into(), status: "failed".into() };
    let text = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":["Bash"],"mcp_servers":[{"name":"x","status":"failed","source":"dynamic"}]}"#;
    let init =
        Init { session_id: Some("s".into()), model: Some("m".into()), mcp_servers: vec![server] };
    check(text, &Line::Init(init));
    let input = r#"{"command":"ls","description":"x"}"#;
    let call = Block {
        kind: "tool_use".into(),
        name: "Bash".into(),
        input: ToolInput {
            command: Some("ls".into()),
            length: input.len(),
            ..ToolInput::default()
        },
        ..Block::default()
    };
    let message = Message {
        id: "m1".into(),
        model: Some("claude-opus-5-5".into()),
        content: vec![call],
        usage: Tokens {
            input: Count::Known(100),
            output: Count::Known(1),
            cache_write: Count::Known(0),
            cache_read: Count::Known(0),
            ..Tokens::default()
        },
    };
    let assistant = Assistant { message, ..Assistant::default() };
    check(&sample::bash("m1", "ls"), &Line::Assistant(assistant));
    let info = RateLimitInfo { status: "rejected".into(), resets_at: Some(1_900_000_000) };
    let text = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1900000000,"rateLimitType":"five_hour"},"session_id":"s"}"#;
    check(text, &Line::RateLimit(RateLimit { info: info.clone() }));
    let text = r#"{"type":"assistant","error":"rate_limit","is_api_error_message":true,"api_error":"usage_limit_reached","api_error_params":{"rate_limit_info":{"status":"rejected","resetsAt":1900000000,"isUsingOverage":false}},"timestamp":"2030-03-17T17:00:00.000Z"}"#;
    let error = Assistant {
        error: Some("rate_limit".into()),
        api_error: Some("usage_limit_reached".into()),
        api_error_params: ErrorDetails { rate_limit_info: info },
        timestamp: Some("2030-03-17T17:00:00.000Z".into()),
        ..Assistant::default()
    };
    check(text, &Line::Assistant(error));
    let refusal = Refusal { explanation: Some("no".into()) };
    let text = sample::system(
        "model_refusal_no_fallback",
        r#""api_refusal_category":null,"api_refusal_explanation":"no""#,
    );
    check(&text, &Line::Refusal(refusal));
}

#[test]
fn tasks_are_read() {
    let task = || Task { id: "b1".into(), ..Task::default() };
    let started = sample::system(
        "task_started",
        r#""task_id":"b1","tool_use_id":"t","task_type":"local_bash","description":"sleep","is_backgrounded":true"#,
    );
    let (call, kind) = (Some("t".into()), "local_bash".into());
    check(&started, &Line::TaskStarted(Task { call, kind, is_backgrounded: Some(true), ..task() }));
    let updated =
        sample::system("task_updated", r#""task_id":"b1","patch":{"status":"completed"}"#);
    let patch = Patch { status: Some("completed".into()), is_backgrounded: None };
    check(&updated, &Line::TaskUpdated(Task { patch, ..task() }));
    let ended =
        sample::system("task_notification", r#""task_id":"b1","status":"completed","summary":"""#);
    check(&ended, &Line::TaskEnded(task()));
    let none = sample::system("background_tasks_changed", r#""tasks":[]"#);
    check(&none, &Line::Tasks(Tasks::default()));
    let some =
        sample::system("background_tasks_changed", r#""tasks":[{"task_id":"b1","ambient":true}]"#);
    check(&some, &Line::Tasks(Tasks { tasks: vec![Task { ambient: true, ..task() }] }));
}

#[test]
fn a_result_is_read_as_it_was_seen() {
    let text = r#"{"duration_api_ms":397,"session_id":"s","total_cost_usd":7,"permission_denials":[{"tool_name":"Bash","tool_use_id":"t2","tool_input":{"command":"touch zz"}}],"terminal_reason":"completed","is_error":false,"subtype":"success","api_error_status":null,"result":"second","type":"result","model_usage_since_last_result":{"m":{"costUSD":0.0028,"inputTokens":200}}}"#;
    let command = Some("touch zz".to_owned());
    let denial = Denial {
        tool: "Bash".into(),
        call: Some("t2".into()),
        input: ToolInput { command, length: 22, ..ToolInput::default() },
    };
    let usage = ModelUsage {
        cost_usd: Some(0.0028),
        input_tokens: Count::Known(200),
        ..ModelUsage::default()
    };
    let conclusion = Conclusion {
        subtype: "success".into(),
        result: Some("second".into()),
        session_id: Some("s".into()),
        terminal_reason: Some("completed".into()),
        permission_denials: vec![denial],
        model_usage_since_last_result: Some(Report([("m".to_owned(), usage)].into())),
        ..Conclusion::default()
    };
    check(text, &Line::Result(Box::new(conclusion)));
}

#[test]
fn unexpected_field_type_keeps_the_rest_of_line() {
    let text = r#"{"type":"result","subtype":"success","result":"ok","is_error":"no","permission_denials":null,"errors":{},"session_id":[1],"model_usage_since_last_result":7,"api_error_status":70000}"#;
    let conclusion = Conclusion {
        subtype: "success".into(),
        result: Some("ok".into()),
        ..Conclusion::default()
    };
    check(text, &Line::Result(Box::new(conclusion)));
    let text =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a"},7]}}"#;
    let block = Block { kind: "text".into(), text: "a".into(), ..Block::default() };
    let message = Message { id: "m".into(), content: vec![block], ..Message::default() };
    check(text, &Line::Assistant(Assistant { message, ..Assistant::default() }));
}

#[test]
fn half_a_character_does_not_cost_the_result() {
    let text = r#"{"type":"result","subtype":"success","result":"<result>\ud83d</result>"}"#;
    let Line::Result(result) = read(text) else { unreachable!("{text}") };
    assert_eq!(result.result.as_deref(), Some("<result>\u{fffd}</result>"));
}
