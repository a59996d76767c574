//! Every end of the server leaves no program behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A server over streams with a program that runs until it is ended, and the ids of its processes.
fn at_work(stage: &Stage) -> (Child, Vec<String>) {
    let line = stage.command_line();
    let mut command = stage.program(&line[0]);
    command.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let shell = "sleep 300 & echo $$ $! > new; mv new pids; wait";
    let workflow = json!({ "steps": [{ "id": "long", "kind": "exec", "shell": shell }] });
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "name": "crayfish", "arguments": { "workflow": workflow } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    server.stdin = Some(input);
    let pids = stage.workspace().join("pids");
    let deadline = Instant::now() + Duration::from_mins(10);
    while !pids.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        sleep(Duration::from_millis(10));
    }
    let pids = fs::read_to_string(pids).unwrap();
    (server, pids.split_whitespace().map(str::to_owned).collect())
}

fn lives(pid: &String) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The last answer on stdout.
fn last(server: &mut Child) -> Value {
    let output = BufReader::new(server.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().map(|line| line.unwrap()).collect();
    serde_json::from_str(lines.last().unwrap()).unwrap()
}

#[test]
fn end_of_input_ends_server_and_its_programs() {
    let stage = Stage::new();
    let (mut server, pids) = at_work(&stage);
    assert!(pids.iter().all(lives), "{pids:?}");
    drop(server.stdin.take());
    let answer = last(&mut server);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert_eq!(answer["result"]["structuredContent"]["error"], "cancelled", "{answer}");
    assert_eq!(pids.iter().filter(|pid| lives(pid)).count(), 0);
}

#[test]
fn a_signal_ends_the_server_and_its_programs() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let stage = Stage::new();
        let (mut server, pids) = at_work(&stage);
        kill_process(Pid::from_child(&server), signal).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(code));
        assert_eq!(pids.iter().filter(|pid| lives(pid)).count(), 0);
    }
}

#[test]
fn a_server_over_http_ends_by_a_signal() {
    let stage = Stage::new();
    let mut server = stage.listening();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(143));
}

#[test]
fn other_hosts_need_permission() {
    let stage = Stage::new();
    let line = stage.command_line();
    let output =
        stage.program(&line[0]).args(&line[1..]).args(["--http", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--allow-host"), "{said}");
}

#[test]
fn other_origins_and_hosts_are_rejected() {
    let stage = Stage::new();
    let server = stage.listening();
    let address = server.address.strip_prefix("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let port = address.rsplit_once(':').unwrap().1;
    let check = |path: &str, headers: &[String], expected: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let headers = headers.join("\r\n");
        write!(stream, "POST /{path} HTTP/1.1\r\n{headers}\r\nContent-Length: 0\r\n\r\n").unwrap();
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).unwrap();
        assert!(status.contains(expected), "/{path} {headers}: {status}");
    };
    let host = |host: &str| format!("Host: {host}:{port}");
    let origin = |origin: &str| format!("Origin: {origin}");
    let refused = "403 Forbidden";
    check(path, &[host("evil.example")], refused);
    check(path, &[host("localhost"), origin("http://evil.example")], refused);
    check(path, &[host("localhost"), origin("null")], refused);
    check(path, &[host("localhost"), origin("https://localhost:1")], refused);
    // These requests pass the check, and fail because they are empty.
    let read = "406 Not Acceptable";
    check(path, &[host("localhost")], read);
    check(path, &[host("localhost"), origin("http://localhost:3000")], read);
    check(path, &[host("127.0.0.1"), origin("http://127.0.0.1:1")], read);
    check(path, &[host("[::1]"), origin("http://[::1]:1")], read);
    check("other", &[host("localhost")], "404 Not Found");
}
