use super::super::sample::{self, THREAD};
use super::super::transcript_parser::transcript_reader;
use super::*;
use crate::contract::ClientProgress;
use crate::process::StreamEvent;

fn reported_cost(lines: &[String]) -> Vec<TranscriptItem> {
    let mut parser = transcript_reader();
    let event = lines.iter().map(|line| StreamEvent::Line(line.clone().into_bytes()));
    event.flat_map(|event| parser.read_event(&event)).collect()
}

#[test]
fn every_item_appears_once_and_in_order() {
    let tool = |name: &str| TranscriptItem::Tool { name: name.into() };
    let is_retrying = "Reconnecting... 1/5 (unexpected status 502 Bad Gateway)";
    let lines = [
        sample::thread(THREAD),
        sample::begins(),
        sample::note("careful"),
        sample::command("item.started", "cargo test", "in_progress"),
        sample::command("item.completed", "cargo test", "failed"),
        sample::files("completed"),
        sample::error_notice(is_retrying),
        sample::text("done"),
        sample::error_notice("no"),
        sample::failed("no"),
    ];
    let expected = [
        TranscriptItem::Unread { what: "careful".into() },
        tool("Bash(cargo test)"),
        TranscriptItem::ToolFailed { why: "no such file\n".into() },
        tool("Edit(/w/a.rs, /w/b.rs)"),
        TranscriptItem::Retries { why: is_retrying.into() },
        TranscriptItem::Text { by: Speaker::Agent, text: "done".into() },
        TranscriptItem::Final { by: Speaker::Client, text: "no".into() },
    ];
    assert_eq!(reported_cost(&lines), expected);
    let signs: Vec<ClientProgress> = expected.iter().filter_map(TranscriptItem::progress).collect();
    assert_eq!(signs.len(), 4);
}

#[test]
fn unreadable_lines_are_items() {
    let check = |line: &str, expected: &str| {
        assert_eq!(
            reported_cost(&[line.to_owned()]),
            [TranscriptItem::Unread { what: expected.into() }]
        );
    };
    check("Segmentation fault", "not JSON: Segmentation fault");
    check(r#"{"type":"novelty"}"#, "a line of unknown type \"novelty\"");
}

#[test]
fn a_command_is_named_as_it_was_meant() {
    let check = |command: &str, expected: &str| assert_eq!(shell(command), expected);
    check("/bin/bash -lc 'cargo test'", "Bash(cargo test)");
    check("/bin/bash -lc \"echo 'x'\"", "Bash(echo 'x')");
    check("/bin/bash -lc true", "Bash(true)");
    check("ls", "Bash(ls)");
    let long = "x".repeat(3000);
    check(&long, &format!("Bash({}…)", "x".repeat(2000)));
}
