//! Tests with real clients. Tests of a killed owner kill a real owner.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::process::test_fixture::{
    Fixture, IMPATIENT, PATIENT, hear, line, peak_memory, trapping,
};
use crate::process::{
    Limits, OutputFiles, ProcessStdin, Spec, Transcript, leftovers, reap_orphans, start, table,
};

mod disk_reservation;

/// Returns the client of an earlier owner.
fn found(fixture: &Fixture) -> Option<Client> {
    adopt(&fixture.marker(), &fixture.files()).unwrap()
}

fn exited(code: i32) -> StreamEvent {
    StreamEvent::Exited(Some(ExitStatus::from_raw(code << 8)))
}

#[tokio::test]
async fn client_is_read_by_lines_until_exit() {
    let check = async |bash: &str, expected: &[StreamEvent], stderr: &str| {
        let fixture = Fixture::new();
        let mut client = fixture.client(bash);
        let mut event = hear(&mut client).await;
        event.dedup_by(|one, other| *one == StreamEvent::Stderr && one == other);
        assert_eq!(event, expected, "{bash}");
        assert_eq!(client.stderr(), stderr);
        assert_eq!(client.next(Some(Instant::now())).await, *expected.last().unwrap());
    };
    let half = StreamEvent::Line(b"half \xe2\x82".to_vec());
    check("true", &[exited(0)], "").await;
    check("echo one; echo; echo two", &[line("one"), line(""), line("two"), exited(0)], "").await;
    check("printf 'one\\ntwo'; exit 3", &[line("one"), line("two"), exited(3)], "").await;
    check("printf 'half \\xe2\\x82'", &[half, exited(0)], "").await;
    check("kill -9 $$", &[StreamEvent::Exited(Some(ExitStatus::from_raw(9)))], "").await;
    check("echo oops >&2; exit 1", &[StreamEvent::Stderr, exited(1)], "oops").await;
    check("exec >&- 2>&-; true", &[exited(0)], "").await;
    let long = format!("…{}end", "x".repeat(2045));
    check("printf 'x%.0s' {1..9000} >&2; printf end >&2", &[StreamEvent::Stderr, exited(0)], &long)
        .await;
}

#[tokio::test]
async fn pieces_are_joined_into_lines() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let mut client = fixture.client("echo one; printf tw; echo > fifo; read < go; echo o");
    ready.await.unwrap();
    assert_eq!(client.next(Some(Instant::now())).await, line("one"));
    assert_eq!(client.next(Some(Instant::now())).await, StreamEvent::Deadline);
    fixture.go().await.unwrap();
    assert_eq!(hear(&mut client).await, [line("two"), exited(0)]);
}

#[tokio::test]
async fn large_input_is_a_private_unlinked_file() {
    let fixture = Fixture::new();
    let bash = "stat -Lc %a /dev/stdin; readlink /proc/self/fd/0; wc -c; read < go; ls";
    let input = vec![b'x'; 3 * 1024 * 1024];
    let spec = Spec { stdin: ProcessStdin::Bytes(input), ..fixture.spec(bash) };
    // The files of an owner that died before it could start its client.
    fs::write(fixture.path("turn.stdin"), "old").unwrap();
    let mut client = start_client(spec, &fixture.files()).unwrap();
    fixture.go().await.unwrap();
    let deleted = format!("{} (deleted)", fixture.path("turn.stdin").display());
    let said = ["600", &deleted, "3145728", "fifo", "go", "turn.err", "turn.jsonl", "turn.pid"];
    let said: Vec<_> = said.into_iter().map(line).chain([exited(0)]).collect();
    assert_eq!(hear(&mut client).await, said);
    let mut client = fixture.client("readlink /proc/self/fd/0");
    assert_eq!(hear(&mut client).await, [line("/dev/null"), exited(0)]);
}

#[tokio::test]
async fn a_small_input_is_whole_in_a_pipe() {
    let fixture = Fixture::new();
    let bash = "readlink /proc/self/fd/0 | cut -c 1-5; wc -c";
    let spec = Spec { stdin: ProcessStdin::Bytes(vec![b'x'; 4000]), ..fixture.spec(bash) };
    let mut client = start_client(spec, &fixture.files()).unwrap();
    assert_eq!(hear(&mut client).await, [line("pipe:"), line("4000"), exited(0)]);
}

#[tokio::test]
async fn the_files_of_a_client_are_private() {
    let fixture = Fixture::new();
    hear(&mut fixture.client("echo out; echo err >&2")).await;
    for name in ["turn.jsonl", "turn.err", "turn.pid"] {
        assert_eq!(fs::metadata(fixture.path(name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn second_client_appends_and_is_read_alone() {
    let fixture = Fixture::new();
    hear(&mut fixture.client("echo first; echo first error >&2")).await;
    let mut client = fixture.client("echo second; echo error >&2");
    assert_eq!(hear(&mut client).await, [line("second"), StreamEvent::Stderr, exited(0)]);
    assert_eq!(client.stderr(), "error");
    assert_eq!(fs::read_to_string(fixture.files().stdout).unwrap(), "first\nsecond\n");
}

#[tokio::test]
async fn failed_start_is_an_error() {
    let fixture = Fixture::new();
    let missing = Spec { program: "/no/such/program".into(), ..fixture.spec("") };
    let error = start_client(missing, &fixture.files()).unwrap_err();
    let StartError::Program(error) = error else { panic!("it blames the machine: {error}") };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let nowhere = OutputFiles { stdout: "/no/such/file".into(), ..fixture.files() };
    let error = start_client(fixture.spec("true"), &nowhere).unwrap_err();
    let StartError::Environment(why) = error else { panic!("it blames the program: {error}") };
    assert_eq!(why, "could not write /no/such/file: No such file or directory (os error 2)");
}

// proves: S32
#[tokio::test]
async fn a_line_of_any_length_costs_bounded_memory() {
    let fixture = Fixture::new();
    let before = peak_memory();
    let mut client = fixture.client("head -c 50000000 /dev/zero; echo; echo after");
    let expected = [StreamEvent::LongLine { length: 50_000_000 }, line("after"), exited(0)];
    assert_eq!(hear(&mut client).await, expected);
    let grown = peak_memory() - before;
    assert!(grown < 40 * 1024, "grew by {grown} KiB");
}

#[tokio::test]
async fn too_much_output_is_reported_once() {
    let check = async |bash: &str, expected: &[StreamEvent]| {
        let fixture = Fixture::new();
        let mut client = fixture.client(bash);
        let found = hear(&mut client).await;
        assert_eq!(found, expected, "{bash}");
    };
    let flooded = StreamEvent::TooLarge { limit: TRANSCRIPT_MAX };
    let length = 257 * 1024 * 1024;
    let cut = StreamEvent::LongLine { length };
    check("truncate -s 257M turn.jsonl", &[flooded.clone(), cut, exited(0)]).await;
    check("truncate -s 257M turn.err", &[flooded, StreamEvent::Stderr, exited(0)]).await;
    check("truncate -s 256M turn.err", &[StreamEvent::Stderr, exited(0)]).await;
}

#[tokio::test]
async fn deadline_comes_after_all_earlier_output() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let mut client = fixture.client("echo one; echo two; echo > fifo; exec sleep 600");
    ready.await.unwrap();
    let deadline = Some(Instant::now());
    assert_eq!(client.next(deadline).await, line("one"));
    assert_eq!(client.next(deadline).await, line("two"));
    assert_eq!(client.next(deadline).await, StreamEvent::Deadline);
    let soon = Some(Instant::now() + Duration::from_millis(30));
    assert_eq!(client.next(soon).await, StreamEvent::Deadline);
    assert!(soon <= Some(Instant::now()));
}

#[tokio::test]
async fn later_deadline_includes_newer_output() {
    use std::io::Write as _;

    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let mut client = fixture.client("echo one; echo > fifo; exec sleep 600");
    ready.await.unwrap();
    let earlier = Instant::now();
    assert_eq!(client.next(Some(earlier)).await, line("one"));
    let mut transcript =
        fs::OpenOptions::new().append(true).open(fixture.path("turn.jsonl")).unwrap();
    transcript.write_all(b"two\n").unwrap();
    let later = Some(earlier + Duration::from_nanos(1));
    assert_eq!(client.next(later).await, line("two"));
    assert_eq!(client.next(later).await, StreamEvent::Deadline);
}

#[test]
fn identity_that_cannot_be_removed_is_an_error() {
    let fixture = Fixture::new();
    let identity = identity_file::IdentityFile::beside(&fixture.path("turn.jsonl"));
    identity.remove().unwrap();
    fs::create_dir(fixture.path("turn.pid")).unwrap();
    identity.remove().unwrap_err();
}

/// More than any test waits for, but no more than a disk can store if a test is killed.
const ENDLESS: &str = "yes $(printf 'y%.0s' {1..5000}) | head -c 2G";

#[tokio::test]
async fn endless_output_does_not_delay_a_deadline() {
    for bash in [ENDLESS, &format!("{{ {ENDLESS}; }} >&2"), &format!("{ENDLESS} | tr -d '\\n'")] {
        let fixture = Fixture::new();
        let mut client = fixture.client(bash);
        let deadline = Some(Instant::now() + Duration::from_millis(50));
        loop {
            match client.next(deadline).await {
                StreamEvent::Line(_) | StreamEvent::Stderr => {}
                other => {
                    assert_eq!(other, StreamEvent::Deadline, "{bash}");
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn open_stdout_does_not_delay_the_exit() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let daemon = "setsid bash -c 'echo > fifo; read < go'";
    let mut client = fixture.client(&format!("(read < go) & {daemon} & echo done"));
    assert_eq!(hear(&mut client).await, [line("done"), exited(0)]);
    ready.await.unwrap();
    drop(client);
    assert_eq!(fixture.left().len(), 2);
    leftovers::end(&leftovers::find(&fixture.nonce), &IMPATIENT).await;

    let mut client = fixture.client(&format!("{ENDLESS} & echo done; exit 3"));
    assert_eq!(hear(&mut client).await.last(), Some(&exited(3)));
    assert_eq!(client.end(&IMPATIENT).await, []);
    assert_eq!(fixture.left(), Vec::<String>::new());
}

#[tokio::test]
async fn ended_client_is_read_to_its_end() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let bash = trapping("trap 'echo last; echo word >&2; exit 5' INT; echo first");
    let mut client = fixture.client(&bash);
    ready.await.unwrap();
    assert_eq!(client.end(&PATIENT).await, []);
    let event = hear(&mut client).await;
    assert_eq!(event, [line("first"), line("last"), StreamEvent::Stderr, exited(5)]);
    assert_eq!(client.stderr(), "word");
}

#[tokio::test]
async fn ending_a_client_ends_its_tree() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let bash = "trap '' INT TERM; setsid sleep 600 & env -i setsid sleep 600 & echo $! > fifo; \
                sleep 600; sleep 600";
    let mut client = fixture.client(bash);
    let unmarked: i32 = ready.await.unwrap().trim().parse().unwrap();
    assert_eq!(client.end(&IMPATIENT).await, []);
    assert_eq!(hear(&mut client).await, [StreamEvent::Exited(Some(ExitStatus::from_raw(9)))]);
    assert_eq!(fixture.left(), Vec::<String>::new());
    assert_eq!(table::living(unmarked), None);
}

#[tokio::test]
async fn dropped_client_is_killed_unless_kept() {
    let fixture = Fixture::new();
    let bash = "setsid bash -c 'echo > fifo; read < go' & wait";
    let ready = fixture.fifo();
    let client = fixture.client(bash);
    ready.await.unwrap();
    drop(client);
    assert_eq!(fixture.left(), Vec::<String>::new());
    let ready = fixture.fifo();
    let client = fixture.client(bash);
    ready.await.unwrap();
    client.keep_running();
    assert_eq!(fixture.left().len(), 2);
    leftovers::end(&leftovers::find(&fixture.nonce), &IMPATIENT).await;
}

#[tokio::test]
async fn followed_child_is_not_reaped_elsewhere() {
    let fixture = Fixture::new();
    let mut client = fixture.client("exit 4");
    while !table::dead_children().contains(&client.identity()) {
        std::thread::yield_now();
    }
    reap_orphans();
    assert_eq!(hear(&mut client).await, [exited(4)]);
}

#[tokio::test(start_paused = true)]
async fn suspension_of_the_owner_is_reported() {
    let fixture = Fixture::new();
    let mut client = fixture.client("exec sleep 600");
    let check = async |client: &mut Client, slept: Duration, expected: StreamEvent| {
        let deadline = Some(Instant::now() + slept);
        let sleep = async {
            tokio::time::advance(slept).await;
            std::future::pending::<StreamEvent>().await
        };
        let event = tokio::select! {
            biased;
            event = client.next(deadline) => event,
            never = sleep => never,
        };
        assert_eq!(event, expected);
        client.pause = MIN_POLL_PAUSE;
    };
    let gap = Duration::from_mins(1);
    check(&mut client, gap + MIN_POLL_PAUSE, StreamEvent::Suspended { gap }).await;
    check(&mut client, Duration::from_secs(4), StreamEvent::Deadline).await;
}

#[test]
fn only_long_delays_count_as_suspension() {
    let check = |milliseconds: u64, expected: Option<u64>| {
        let asked = Instant::now();
        let found = suspended_for(asked, asked + Duration::from_millis(milliseconds));
        assert_eq!(found, expected.map(Duration::from_millis));
    };
    check(0, None);
    check(5_000, None);
    check(5_001, Some(5_001));
    let now = Instant::now();
    assert_eq!(suspended_for(now + Duration::from_mins(1), now), None);
}

/// A client that waits, then prints the length of its input.
const WAITING: &str = "echo before; echo $$ > fifo; read < go; wc -c; exit 7";

fn expected_events() -> [StreamEvent; 3] {
    [line("before"), line("3145728"), StreamEvent::Exited(None)]
}

fn waiting(fixture: &Fixture) -> Spec {
    Spec { stdin: ProcessStdin::Bytes(vec![b'x'; 3 * 1024 * 1024]), ..fixture.spec(WAITING) }
}

#[tokio::test]
async fn client_outlives_killed_owner_and_is_adopted() {
    if let Some(fixture) = Fixture::from_environment() {
        let mut client = start_client(waiting(&fixture), &fixture.files()).unwrap();
        hear(&mut client).await;
    }
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let name = "client_outlives_killed_owner_and_is_adopted";
    let owner = start(fixture.own_process(module_path!(), name)).unwrap();
    let pid: i32 = ready.await.unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(owner.id()).unwrap(), Signal::KILL).unwrap();
    owner.finish(&Limits::default(), &CancellationToken::new()).await;

    let mut client = found(&fixture).unwrap();
    assert_eq!(client.identity(), table::living(pid).unwrap().identity);
    assert_eq!(client.next(Some(Instant::now())).await, line("before"));
    assert_eq!(client.next(Some(Instant::now())).await, StreamEvent::Deadline);
    fixture.go().await.unwrap();
    assert_eq!(hear(&mut client).await, expected_events()[1..]);
}

/// Starts a client, releases its handle while it waits, and changes its identity file.
async fn left_client(fixture: &Fixture, identity_file: impl Fn(&str) -> Option<String>) {
    let ready = fixture.fifo();
    let client = start_client(waiting(fixture), &fixture.files()).unwrap();
    ready.await.unwrap();
    client.keep_running();
    let path = fixture.path("turn.pid");
    let text = fs::read_to_string(&path).unwrap();
    match identity_file(&text) {
        Some(text) => fs::write(&path, text).unwrap(),
        None => fs::remove_file(&path).unwrap(),
    }
}

#[tokio::test]
async fn client_is_found_without_its_identity_file() {
    let check = async |identity_file: fn(&str) -> Option<String>| {
        let fixture = Fixture::new();
        left_client(&fixture, identity_file).await;
        let mut client = found(&fixture).unwrap();
        fixture.go().await.unwrap();
        assert_eq!(hear(&mut client).await, expected_events());
        assert!(found(&fixture).is_none());
    };
    check(|text| Some(text.to_owned())).await;
    check(|_| None).await;
    check(|_| Some(String::new())).await;
    check(|text| Some(text[..text.len() - 1].to_owned())).await;
}

/// Returns the identity file with one word changed.
#[tokio::test]
async fn client_is_found_right_after_start() {
    let fixture = Fixture::new();
    // For a moment after its start a process has no environment.
    for _ in 0..50 {
        let client = fixture.client("exec sleep 600");
        let adopted = found(&fixture).unwrap();
        assert_eq!(adopted.identity(), client.identity());
        adopted.keep_running();
    }
}

fn changed(text: &str, at: usize, to: &str) -> String {
    let mut words: Vec<_> = text.trim().split(' ').collect();
    words[at] = to;
    format!("{}\n", words.join(" "))
}

#[tokio::test]
async fn a_stranger_is_not_adopted() {
    let check = async |identity_file: fn(&str) -> String| {
        let fixture = Fixture::new();
        left_client(&fixture, |text| Some(identity_file(text))).await;
        assert!(found(&fixture).is_none());
        assert_eq!(fixture.left().len(), 1, "nobody was harmed");
        leftovers::end(&leftovers::find(&fixture.nonce), &IMPATIENT).await;
    };
    // The pid was reused for a process that started later.
    check(|text| changed(text, 1, "1")).await;
    // The machine was restarted since.
    check(|text| changed(text, 2, "00000000-0000-0000-0000-000000000000")).await;
    // A process with this pid and start time that does not carry the marker.
    check(|text| {
        let own = table::living(std::process::id().cast_signed()).unwrap().identity;
        let text = changed(text, 0, &own.pid.to_string());
        changed(&text, 1, &own.start_time.to_string())
    })
    .await;
    // A process that has ended.
    check(|text| changed(text, 0, "2147483647")).await;
}

#[tokio::test]
async fn other_process_is_not_taken_for_client() {
    let check = async |bash: &str, look: fn(&Fixture) -> Option<Client>| {
        let fixture = Fixture::new();
        let ready = fixture.fifo();
        let mut client = fixture.client(bash);
        ready.await.unwrap();
        fs::remove_file(fixture.path("turn.pid")).unwrap();
        if bash.ends_with('&') {
            hear(&mut client).await;
        }
        client.keep_running();
        assert!(look(&fixture).is_none(), "{bash}");
        assert_eq!(fixture.left().len(), 1, "{bash}");
        leftovers::end(&leftovers::find(&fixture.nonce), &IMPATIENT).await;
    };
    let as_it_is = found;
    // A child of the client, in its group.
    check("(echo > fifo; read < go) &", as_it_is).await;
    // A daemon that the client left.
    check("setsid bash -c 'echo > fifo; read < go' &", as_it_is).await;
    // A process that writes elsewhere.
    check("exec > other; echo > fifo; read < go", as_it_is).await;
    // The client of a run inside the turn.
    let inner = "RAYMOND_TURN+=:f00d/main.1.1.1; exec bash -c 'echo > fifo; read < go'";
    check(inner, as_it_is).await;
    // Another transcript, and no transcript.
    check("echo > fifo; read < go", |fixture| {
        let files = OutputFiles { stdout: fixture.path("other"), ..fixture.files() };
        fs::write(&files.stdout, "").unwrap();
        adopt(&fixture.marker(), &files).unwrap()
    })
    .await;
    check("echo > fifo; read < go", |fixture| {
        fs::remove_file(fixture.files().stdout).unwrap();
        found(fixture)
    })
    .await;
}

#[tokio::test]
async fn an_adopted_client_is_ended_with_its_tree() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let bash = "setsid sleep 600 & env -i sleep 600 & sleep 600 & echo > fifo; wait";
    fixture.client(bash).keep_running();
    ready.await.unwrap();
    let mut client = found(&fixture).unwrap();
    let group = client.identity().pid;
    assert_eq!(client.end(&IMPATIENT).await, []);
    assert_eq!(hear(&mut client).await, [StreamEvent::Exited(None)]);
    assert_eq!(fixture.left(), Vec::<String>::new());
    assert!(table::snapshot(None).iter().all(|entry| entry.group != group));

    let ready = fixture.fifo();
    fixture.client(bash).keep_running();
    ready.await.unwrap();
    drop(found(&fixture).unwrap());
    assert_eq!(fixture.left(), Vec::<String>::new());
}
