//! A web page in a browser on this machine. It can send requests to loopback, also under its own
//! host name if that resolves to loopback.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::harness::{Project, Running, until};

/// A server over HTTP.
pub(super) struct Server {
    pub(super) address: String,
    process: Running,
}

impl Server {
    pub(super) fn start(project: &Project, words: &[&str]) -> Self {
        let words: Vec<&str> = ["mcp"].into_iter().chain(words.iter().copied()).collect();
        let process = project.spawn(env!("CARGO_BIN_EXE_raymond"), &words);
        let mut address = String::new();
        until("it listens", || {
            let said = process.stderr_text();
            let found = said.split_once("http://").and_then(|(_, rest)| rest.split_once("/mcp"));
            address = found.map(|(address, _)| address.to_owned()).unwrap_or_default();
            !address.is_empty()
        });
        Self { address, process }
    }

    /// Calls the tool with these headers, and returns the answer.
    fn call(&self, headers: &[&str]) -> String {
        self.call_at("/mcp", headers)
    }

    /// Calls the tool with this request target instead of the path.
    fn call_at(&self, target: &str, headers: &[&str]) -> String {
        let step = r#"{"id":"a","kind":"exec","shell":"touch sprung"}"#;
        let arguments = format!(r#"{{"action":"run","workflow":{{"steps":[{step}]}}}}"#);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"crayfish","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"t","version":"1"}}}}}}}}"#
        );
        let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        let head = format!(
            "POST {target} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).ok();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok();
        answer
    }
}

const JSON: &str = "Content-Type: application/json";
const BOTH: &str = "Accept: application/json, text/event-stream";
const ERA: [&str; 3] =
    ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: crayfish"];

// proves: S47, S48, S50
#[test]
fn web_page_cannot_call_a_tool() {
    let project = Project::of(&[]);
    let server = Server::start(&project, &["--http", "127.0.0.1:0"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let check = |host: &str, more: &[&str], expected: &str| {
        let host = format!("Host: {host}");
        let headers: Vec<&str> = [&host[..]].iter().chain(more).chain(&ERA).copied().collect();
        let answer = server.call(&headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{host} {more:?}: {answer}");
        let ran = fs::remove_file(project.path("sprung")).is_ok();
        assert_eq!(ran, expected == "200", "{host} {more:?}");
    };
    let here = format!("127.0.0.1:{port}");
    check(&here, &[JSON, BOTH], "200");
    check(&here, &[JSON, BOTH, &format!("Origin: http://localhost:{port}")], "200");
    // A page of another site: the browser names its origin.
    check(&here, &[JSON, BOTH, "Origin: https://evil.example"], "403");
    check(&here, &[JSON, BOTH, "Origin: null"], "403");
    // DNS rebinding: the name resolves to this machine since the page was loaded.
    check(&format!("evil.example:{port}"), &[JSON, BOTH], "403");
    check(
        &format!("evil.example:{port}"),
        &[JSON, BOTH, &format!("Origin: http://evil.example:{port}")],
        "403",
    );
    // Content types that a browser sends without a preflight request.
    for simple in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        check(&here, &[&format!("Content-Type: {simple}"), BOTH], "415");
    }
}

// proves: A19, S49
#[test]
fn host_and_origin_are_parsed_as_a_whole() {
    let project = Project::of(&[]);
    let server = Server::start(&project, &["--http", "127.0.0.1:0"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let check = |target: &str, headers: &[&str], expected: &str| {
        let headers: Vec<&str> = headers.iter().chain(&[JSON, BOTH]).chain(&ERA).copied().collect();
        let answer = server.call_at(target, &headers);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{target} {headers:?}: {answer}"
        );
        let ran = fs::remove_file(project.path("sprung")).is_ok();
        assert_eq!(ran, expected == "200", "{target} {headers:?}");
    };
    for (host, expected) in [
        ("localhost", "200"),
        ("LOCALHOST", "200"),
        ("[::1]:80", "200"),
        ("localhost:evil.com", "400"),
        ("localhost:", "400"),
        ("localhost:99999", "400"),
        ("localhost:80:80", "400"),
        ("localhost.", "400"),
        ("[::1].evil.com", "400"),
        ("user@localhost", "400"),
        ("localhost@evil.com", "400"),
        ("127.0.0.1.evil.com", "403"),
        ("localhost.evil.com", "403"),
    ] {
        check("/mcp", &[&format!("Host: {host}")], expected);
    }
    check("/mcp", &[], "400");
    check("/mcp", &["Host: localhost", "Host: evil.com"], "400");
    check("/mcp", &["Host: localhost", "Host: localhost"], "400");
    check("http://localhost/mcp", &["Host: localhost"], "200");
    check("http://evil.com/mcp", &["Host: localhost"], "400");
    check("http://localhost:evil.com/mcp", &["Host: localhost"], "400");
    check("http://localhost/mcp", &["Host: evil.com"], "400");
    check("http://evil.com/mcp", &["Host: evil.com"], "403");
    for (origin, expected) in [
        (format!("http://localhost:{port}"), "200"),
        ("http://localhost/.evil.com".to_owned(), "403"),
        ("http://localhost:evil.com".to_owned(), "403"),
        ("http://[::1].evil.com".to_owned(), "403"),
        ("http://localhost@evil.com".to_owned(), "403"),
        ("http://127.0.0.1.evil.com".to_owned(), "403"),
        ("http://localhost, http://evil.com".to_owned(), "403"),
        ("null".to_owned(), "403"),
        (String::new(), "403"),
    ] {
        check("/mcp", &["Host: localhost", &format!("Origin: {origin}")], expected);
    }
    let two = ["Host: localhost", "Origin: http://localhost", "Origin: http://evil.com"];
    check("/mcp", &two, "403");
}

// proves: S52
#[test]
fn other_machines_need_an_allowed_host_name() {
    let project = Project::of(&[]);
    let refused = project.raymond("mcp --http 0.0.0.0:0");
    refused
        .prints("")
        .mentions(2, &["can be reached from other machines, and every caller may run programs"]);
    let server = Server::start(&project, &["--http", "0.0.0.0:0", "--allow-host", "build.example"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let server = Server { address: format!("127.0.0.1:{port}"), ..server };
    let call = |host: &str| server.call(&[&[host, JSON, BOTH][..], &ERA].concat());
    assert!(call("Host: build.example").starts_with("HTTP/1.1 200 "));
    assert!(call("Host: evil.example").starts_with("HTTP/1.1 403 "));
    assert!(server.process.stderr_text().contains("listening"));
}
