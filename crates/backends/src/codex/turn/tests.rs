use super::super::said::Recount;
use super::super::sample::{self, THREAD};
use super::*;
use crate::contract::Sign;
use crate::process::Heard;

fn told(lines: &[String]) -> Vec<Said> {
    let mut recount = Recount::default();
    let heard = lines.iter().map(|line| Heard::Line(line.clone().into_bytes()));
    heard.flat_map(|heard| recount.hear(&heard)).collect()
}

#[test]
fn everything_that_was_said_is_told_once_and_in_order() {
    let tool = |name: &str| Said::Tool { name: name.into() };
    let retries = "Reconnecting... 1/5 (unexpected status 502 Bad Gateway)";
    let lines = [
        sample::thread(THREAD),
        sample::begins(),
        sample::note("careful"),
        sample::command("item.started", "cargo test", "in_progress"),
        sample::command("item.completed", "cargo test", "failed"),
        sample::files("completed"),
        sample::trouble(retries),
        sample::text("done"),
        sample::trouble("no"),
        sample::failed("no"),
    ];
    let expected = [
        Said::Unread { what: "careful".into() },
        tool("Bash(cargo test)"),
        Said::ToolFailed { why: "no such file\n".into() },
        tool("Edit(/w/a.rs, /w/b.rs)"),
        Said::Retries { why: retries.into() },
        Said::Text { by: Speaker::Agent, text: "done".into() },
        Said::Final { by: Speaker::Client, text: "no".into() },
    ];
    assert_eq!(told(&lines), expected);
    let signs: Vec<Sign> = expected.iter().filter_map(Said::sign).collect();
    assert_eq!(signs.len(), 4);
}

#[test]
fn what_cannot_be_read_is_told_as_such() {
    let check = |line: &str, expected: &str| {
        assert_eq!(told(&[line.to_owned()]), [Said::Unread { what: expected.into() }]);
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
