//! Readers of `--events` that come late, never, or leave.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};

use rustix::pipe::fcntl_getpipe_size;
use rustix::process::Signal;

use crate::harness::{Project, until};

const WAIT: &str =
    "until test -e go; do test -d $PWD || exit 1; sleep 0.01; done; echo '<result>done</result>'";

/// A pipe that is full already, and how much that is.
fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = pipe().unwrap();
    let room = fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'\n'; room]).unwrap();
    (reader, writer, room)
}

#[test]
fn run_with_unread_events_obeys_a_signal() {
    let check = |signal: Signal, code: i32| {
        let project = Project::of(&[("wf/START.sh", WAIT)]);
        let (reader, writer, _) = full_pipe();
        let running = project.start_into(writer, "run wf --run-id r --events");
        until("it works", || project.events("r", "turn_started").len() == 1);
        running.signal(signal);
        running.wait().mentions(code, &["to continue: raymond resume r\n"]);
        assert_eq!(project.processes("r"), [0; 0]);
        drop(reader);
    };
    check(Signal::INT, 130);
    check(Signal::TERM, 143);
}

#[test]
fn run_with_unread_events_obeys_a_stop() {
    let project = Project::of(&[("wf/START.sh", WAIT)]);
    let (reader, writer, _) = full_pipe();
    let running = project.start_into(writer, "run wf --run-id r --events");
    until("it works", || project.events("r", "turn_started").len() == 1);
    project.raymond("stop r").mentions(0, &[]);
    running.wait().mentions(130, &[]);
    drop(reader);
}

#[test]
fn late_reader_gets_every_event() {
    let project = Project::of(&[("wf/START.sh", WAIT)]);
    project.write("go", "");
    let (mut reader, writer, room) = full_pipe();
    let running = project.start_into(writer, "run wf --run-id r --events");
    until("it has ended", || project.events("r", "run_ended").len() == 1);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    running.wait().mentions(0, &[]);
    let records = project.records("r");
    let steps = records.iter().flat_map(|record| record["steps"].as_array().unwrap());
    let events: usize = steps.map(|step| step["events"].as_array().unwrap().len()).sum();
    assert_eq!(text[room..].lines().count(), events, "{}", &text[room..]);
}

#[test]
fn unread_result_does_not_block_a_signal() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>done</result>'")]);
    let (reader, writer, _) = full_pipe();
    let running = project.start_into(writer, "run wf --run-id r");
    until("it has said how it went", || running.stderr_contains("spent $0.00"));
    running.signal(Signal::TERM);
    running.wait().mentions(143, &[]);
    drop(reader);
}
