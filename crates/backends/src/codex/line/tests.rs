use super::super::sample;
use super::*;

#[test]
fn every_line_that_was_seen_is_read() {
    let check = |line: &str, expected: Line| assert_eq!(read(line), expected, "{line}");
    check(&sample::thread("t"), Line::Thread("t".into()));
    check(&sample::begins(), Line::Begins);
    check(&sample::text("hi"), Line::Done(Item::Message("hi".into())));
    let command = Item::Command {
        command: "/bin/bash -lc 'ls'".into(),
        status: "in_progress".into(),
        output: String::new(),
    };
    check(&sample::command("item.started", "ls", "in_progress"), Line::Doing(command.clone()));
    check(&sample::command("item.updated", "ls", "in_progress"), Line::Doing(command));
    let paths = vec!["/w/a.rs".into(), "/w/b.rs".into()];
    let files = Item::Files { paths, status: "completed".into() };
    check(&sample::files("completed"), Line::Done(files));
    let agents = Item::Agents { tool: "spawn_agent".into(), threads: vec!["u".into()] };
    check(&sample::spawned("u"), Line::Done(agents));
    check(&sample::note("careful"), Line::Done(Item::Note("careful".into())));
    let all = Usage { input: 9_000_000, output: 9_000_000, ..Usage::default() };
    check(&sample::completed(), Line::Completed(Some(all)));
    check(r#"{"type":"turn.completed"}"#, Line::Completed(None));
    check(&sample::failed("no"), Line::Failed("no".into()));
    check(&sample::error_notice("no"), Line::Error("no".into()));
    let tool = r#"{"type":"item.completed","item":{"type":"mcp_tool_call","server":"db","tool":"run","error":{"message":"gone"}}}"#;
    let call = Item::Tool { name: "mcp__db__run".into(), failed: Some("gone".into()) };
    check(tool, Line::Done(call));
    let search = r#"{"type":"item.started","item":{"type":"web_search","query":"rust"}}"#;
    let call = Item::Tool { name: "WebSearch(rust)".into(), failed: None };
    check(search, Line::Doing(call));
}

#[test]
fn unknown_lines_are_ignored() {
    let check = |line: &str, expected: Line| assert_eq!(read(line), expected, "{line}");
    check("", Line::Ignored);
    check("Segmentation fault", Line::NotJson);
    check(r#"{"type":"turn.compl"#, Line::NotJson);
    check(r#"{"type":"novelty"}"#, Line::Unknown("novelty".into()));
    check("17", Line::Unknown("none".into()));
    check(r#"{"type":"item.completed","item":{"type":"novelty"}}"#, Line::Done(Item::Other));
    check(r#"{"type":"item.completed","item":17}"#, Line::Done(Item::Other));
    check(r#"{"type":"thread.started","thread_id":17}"#, Line::Unknown("thread.started".into()));
    check(r#"{"type":"turn.failed"}"#, Line::Failed(String::new()));
}
