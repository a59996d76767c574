//! Tests of the server as a client sees it: bytes on a connection.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Starts a model, and returns the directory of its gates.
fn model() -> (Model, TempDir) {
    let gates = tempfile::tempdir().unwrap();
    let settings = ModelSettings { gates: gates.path().to_owned(), ..ModelSettings::default() };
    (Model::start(settings).unwrap(), gates)
}

/// The reply that a client received.
#[derive(Debug, PartialEq)]
struct Got {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    end: End,
}

#[derive(Debug, PartialEq)]
enum End {
    /// Ended as HTTP requires.
    Proper,
    /// The connection closed early.
    Cut,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn events(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}

fn connect(model: &Model) -> TcpStream {
    let stream = TcpStream::connect(model.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(10))).unwrap();
    stream
}

fn prompt(text: &str) -> Value {
    json!({ "model": "claude-sonnet-4-5", "messages": [{ "role": "user", "content": text }] })
}

fn streamed(text: &str) -> Value {
    let mut body = prompt(text);
    body["stream"] = true.into();
    body
}

/// Sends a request. If the connection closes meanwhile, the missing reply shows it.
fn post(stream: &mut TcpStream, body: &Value) {
    let body = body.to_string();
    let head = "POST /v1/messages?beta=true HTTP/1.1\r\nHost: x";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok();
}

/// Reads the reply; `None` if the connection was closed without a byte.
fn reply(stream: &mut TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        // A connection that was reset has no line either.
        reader.read_line(&mut line).ok();
        line.trim_end().to_owned()
    };
    let status = line().split(' ').nth(1)?.parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let header = line();
        let Some((name, value)) = header.split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let (body, end) = match length {
        Some((_, length)) => {
            let length = length.parse().unwrap();
            let mut body = Vec::new();
            reader.take(length).read_to_end(&mut body).unwrap();
            let whole = body.len() == usize::try_from(length).unwrap();
            (String::from_utf8(body).unwrap(), if whole { End::Proper } else { End::Cut })
        }
        None => chunks(&mut reader),
    };
    Some(Got { status, headers, body, end })
}

fn chunks(reader: &mut BufReader<&mut TcpStream>) -> (String, End) {
    let mut body = String::new();
    loop {
        let mut length = String::new();
        if reader.read_line(&mut length).unwrap() == 0 {
            return (body, End::Cut);
        }
        let length = usize::from_str_radix(length.trim_end(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).unwrap();
        if length == 0 {
            return (body, End::Proper);
        }
        body.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
}

fn ask(model: &Model, body: &Value) -> Option<Got> {
    let mut stream = connect(model);
    post(&mut stream, body);
    reply(&mut stream)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::yield_now();
    }
}

fn outcomes(model: &Model) -> Vec<RequestOutcome> {
    model.requests().iter().map(|request| request.outcome).collect()
}

const TWO: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

#[test]
fn message_is_one_value_or_events() {
    let (model, _gates) = model();
    let whole = ask(&model, &prompt("model: say hello")).unwrap();
    assert_eq!((whole.status, &whole.end), (200, &End::Proper));
    assert_eq!(whole.json()["content"], json!([{ "type": "text", "text": "hello" }]));
    let stream = ask(&model, &streamed("model: say hello")).unwrap();
    assert_eq!((stream.status, &stream.end, stream.events()), (200, &End::Proper, TWO.to_vec()));
    assert_eq!(
        outcomes(&model),
        [RequestOutcome::Answered(DEFAULT_USAGE), RequestOutcome::Answered(DEFAULT_USAGE)]
    );
}

#[test]
fn the_same_request_gets_the_same_reply() {
    let (model, _gates) = model();
    let body = streamed("model: think hm\nmodel: tool Bash {\"command\":\"ls\"}");
    let first = ask(&model, &body);
    assert!(first.is_some());
    assert_eq!(first, ask(&model, &body));
    assert_ne!(first, ask(&model, &streamed("model: tool Bash {\"command\":\"ls\"}")));
}

#[test]
fn connection_stays_open_and_accepts_chunks() {
    let (model, _gates) = model();
    let mut stream = connect(&model);
    post(&mut stream, &streamed("model: say one"));
    assert_eq!(reply(&mut stream).unwrap().end, End::Proper);
    let body = prompt("model: say two").to_string();
    let (half, rest) = body.split_at(10);
    let head = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    write!(stream, "{head}a\r\n{half}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()).unwrap();
    assert_eq!(reply(&mut stream).unwrap().json()["content"][0]["text"], "two");
}

#[test]
fn unknown_paths_are_404_and_tokens_are_counted() {
    let (model, _gates) = model();
    let mut stream = connect(&model);
    let mut get = |head: &str| {
        write!(stream, "{head} HTTP/1.1\r\n\r\n").unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(&mut stream);
        reader.read_line(&mut line).unwrap();
        let mut rest = vec![0; reader.buffer().len()];
        reader.read_exact(&mut rest).unwrap();
        (line, String::from_utf8(rest).unwrap())
    };
    let (status, rest) = get("HEAD /");
    assert!(status.contains("404") && rest.ends_with("\r\n\r\n"), "{rest:?}");
    let (status, rest) = get("GET /api/hello");
    assert!(status.contains("404") && rest.contains("not_found_error"), "{rest:?}");
    let body = prompt("model: usage input=77\nmodel: say a").to_string();
    let head = "POST /v1/messages/count_tokens HTTP/1.1\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    assert_eq!(reply(&mut stream).unwrap().json(), json!({ "input_tokens": 77 }));
    assert_eq!(
        outcomes(&model),
        [RequestOutcome::Status(404), RequestOutcome::Status(404), RequestOutcome::Status(200)]
    );
}

#[test]
fn errors_have_their_status_and_headers() {
    let (model, _gates) = model();
    let line = "model: error 429 retry-after=3 header:x-should-retry=false message=slow down";
    let got = ask(&model, &streamed(line)).unwrap();
    assert_eq!(got.status, 429);
    let error = json!({ "type": "rate_limit_error", "message": "slow down" });
    assert_eq!(got.json(), json!({ "type": "error", "error": error }));
    for header in [("retry-after", "3"), ("x-should-retry", "false")] {
        assert!(got.headers.contains(&(header.0.to_owned(), header.1.to_owned())), "{got:?}");
    }
    let got = ask(&model, &streamed("model: sing")).unwrap();
    assert_eq!(
        (got.status, &got.json()["error"]["message"]),
        (400, &json!("model: sing: unknown directive"))
    );
    assert_eq!(outcomes(&model), [RequestOutcome::Status(429), RequestOutcome::Status(400)]);
}

#[test]
fn stream_is_cut_and_connection_dropped() {
    let (model, _gates) = model();
    let got = ask(&model, &streamed("model: cut 3\nmodel: say hello")).unwrap();
    assert_eq!((got.events(), &got.end), (TWO[..3].to_vec(), &End::Cut));
    let got = ask(&model, &prompt("model: cut 3\nmodel: say hello")).unwrap();
    assert_eq!(got.end, End::Cut);
    assert_eq!(ask(&model, &streamed("model: drop")), None);
    assert_eq!(outcomes(&model), [RequestOutcome::Broken; 3]);
}

#[test]
fn client_can_leave_a_hanging_model() {
    let (model, _gates) = model();
    let mut stream = connect(&model);
    post(&mut stream, &streamed("model: hang"));
    until("the request has arrived", || outcomes(&model) == [RequestOutcome::Open]);
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(stream);
    until("the server has seen it", || outcomes(&model) == [RequestOutcome::Broken]);
}

#[test]
fn reply_waits_for_its_latency() {
    let (model, _gates) = model();
    let start = Instant::now();
    ask(&model, &streamed("model: latency 30ms\nmodel: say a")).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn replies_wait_for_gates_in_parallel() {
    let (model, gates) = model();
    let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(&model)).collect();
    for (index, stream) in streams.iter_mut().enumerate() {
        post(stream, &streamed(&format!("model: wait gate{index}\nmodel: say {index}")));
    }
    let waiting = |index| gates.path().join(format!("gate{index}.waiting")).exists();
    until("all of them wait", || (0..4).all(waiting));
    assert_eq!(outcomes(&model), [RequestOutcome::Open; 4]);
    for (index, stream) in streams.iter_mut().enumerate().rev() {
        std::fs::write(gates.path().join(format!("gate{index}")), "").unwrap();
        assert_eq!(
            reply(stream).unwrap().events(),
            TWO[..3].iter().chain(&TWO[4..]).copied().collect::<Vec<_>>()
        );
    }
    assert_eq!(outcomes(&model), [RequestOutcome::Answered(DEFAULT_USAGE); 4]);
}

#[test]
fn network_faults_come_before_the_script() {
    let (model, _gates) = model();
    let hello = streamed("model: say hello");
    let ask = || ask(&model, &hello);
    let failure = Failure::new(529).with_header("retry-after", "1");
    model.set_network(NetworkState::Failing(failure, FaultDuration::NextRequests(2))).unwrap();
    assert_eq!([ask().unwrap().status, ask().unwrap().status], [529, 529]);
    assert_eq!(ask().unwrap().status, 200);
    model.set_network(NetworkState::Dropping(FaultDuration::UntilChanged)).unwrap();
    assert_eq!([ask(), ask()], [None, None]);
    model.set_network(NetworkState::Cutting(2, FaultDuration::NextRequests(1))).unwrap();
    assert_eq!(ask().unwrap().events(), TWO[..2]);
    assert_eq!(ask().unwrap().events(), TWO);
    let (answered, broken) = (RequestOutcome::Answered(DEFAULT_USAGE), RequestOutcome::Broken);
    let failed = RequestOutcome::Status(529);
    let expected = [failed, failed, answered, broken, broken, broken, answered];
    assert_eq!(outcomes(&model), expected);
}

#[test]
fn refusing_port_can_listen_again() {
    let (model, _gates) = model();
    let mut kept = connect(&model);
    model.set_network(NetworkState::Refusing).unwrap();
    let refused = TcpStream::connect(model.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    post(&mut kept, &streamed("model: say hello"));
    assert_eq!(reply(&mut kept), None, "a connection from before is closed");
    model.set_network(NetworkState::Normal).unwrap();
    assert_eq!(ask(&model, &streamed("model: say hello")).unwrap().status, 200);
}

#[test]
fn requests_and_usage_are_recorded() {
    let (model, _gates) = model();
    ask(&model, &streamed("START\nmodel: usage input=1000000 output=100000\nmodel: say hello"));
    ask(&model, &streamed("model: error 500"));
    let seen = model.requests();
    assert_eq!((seen[0].index, seen[1].index), (0, 1));
    assert_eq!((seen[0].api, seen[0].method.as_str()), (Api::Messages, "POST"));
    assert_eq!(
        (seen[0].path.as_str(), seen[0].header("host")),
        ("/v1/messages?beta=true", Some("x"))
    );
    let text = "START\nmodel: usage input=1000000 output=100000\nmodel: say hello";
    assert_eq!(seen[0].conversation, [ConversationItem::new(Role::User, text)]);
    assert_eq!(seen[0].body["stream"], true);
    assert_eq!(seen[1].usage(), Usage::default());
    let usage = Usage { input: 1_000_000, output: 100_000, ..Usage::default() };
    assert_eq!(model.usage(), [("claude-sonnet-4-5".to_owned(), usage)].into());
    assert_eq!(model.cost(&Prices::default()), Some(Micros(4_500_000)));
}

#[test]
fn requests_are_logged() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let settings =
        ModelSettings { log: Some(File::create(&log).unwrap()), ..ModelSettings::default() };
    let model = Model::start(settings).unwrap();
    ask(&model, &prompt("model: say hello"));
    drop(model);
    let line: Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(line["conversation"], json!([{ "role": "user", "text": "model: say hello" }]));
    assert_eq!(line["outcome"]["answered"]["input"], 1000);
}

#[test]
fn dropped_model_stops_serving() {
    let (model, _gates) = model();
    let address = model.address();
    let mut waiting = connect(&model);
    post(&mut waiting, &streamed("model: hang"));
    until("the request has arrived", || outcomes(&model) == [RequestOutcome::Open]);
    drop(model);
    assert_eq!(reply(&mut waiting), None);
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
