//! Tests with real processes and real signals.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use raymond_core::failure::Clock;
use raymond_core::ids::Nonce;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::test_fixture::{
    Fixture, IMPATIENT, LONG, PATIENT, first_line_and_end, peak_memory, trapping,
};
use super::*;

fn limits(grace: Grace) -> Limits {
    Limits { grace, ..Limits::default() }
}

async fn finished(bash: &str, limits: Limits) -> FinishedProcess {
    let fixture = Fixture::new();
    let ended = fixture.start(bash).finish(&limits, &CancellationToken::new()).await;
    assert_eq!(fixture.left(), Vec::<String>::new());
    ended
}

/// Cancels when the processes have closed the FIFO, and expects that all of them end.
async fn cancelled(bash: &str, grace: Grace) -> FinishedProcess {
    let fixture = Fixture::new();
    let cancel = CancellationToken::new();
    let ready = fixture.fifo();
    let process = fixture.start(bash);
    let (limits, canceller) = (limits(grace), cancel.clone());
    let (ended, pids) = tokio::join!(process.finish(&limits, &cancel), async {
        let pids = ready.await.unwrap();
        canceller.cancel();
        pids
    });
    assert_eq!(fixture.left(), Vec::<String>::new());
    assert_eq!(ended.survivors, []);
    assert!(!pids.trim().is_empty());
    for pid in pids.split_whitespace() {
        let living = table::snapshot(None);
        let pid: i32 = pid.parse().unwrap();
        assert!(living.iter().all(|entry| entry.identity.pid != pid));
    }
    ended
}

const CUT: ProcessEnd = ProcessEnd::Cancelled { progressed: false };
fn exit(code: i32) -> ProcessEnd {
    ProcessEnd::Exited(ExitStatus::from_raw(code << 8))
}

fn killed(signal: i32) -> ProcessEnd {
    ProcessEnd::Exited(ExitStatus::from_raw(signal))
}

#[tokio::test]
async fn end_includes_all_output() {
    let check = async |bash: &str, end: ProcessEnd, text: &str, invalid: bool, stderr: &str| {
        let ended = finished(bash, limits(PATIENT)).await;
        let found = (ended.end, ended.text, ended.invalid_utf8, ended.stderr);
        assert_eq!(found, (end, text.to_owned(), invalid, stderr.to_owned()), "{bash}");
    };
    check("echo hello", exit(0), "hello\n", false, "").await;
    check("true", exit(0), "", false, "").await;
    check("echo out; echo err >&2; exit 3", exit(3), "out\n", false, "err").await;
    check("kill -9 $$", killed(9), "", false, "").await;
    check("printf 'a\\xff\\xfeb'", exit(0), "a\u{fffd}\u{fffd}b", true, "").await;
    check("printf '\\xe2\\x82'", exit(0), "\u{fffd}", true, "").await;
    check("printf '\\xe2'; true; printf '\\x82\\xac'", exit(0), "\u{20ac}", false, "").await;
    check("exec >&-; true", exit(0), "", false, "").await;
    check("exec 2>&-; echo x", exit(0), "x\n", false, "").await;
    check("cat", exit(0), "", false, "").await;
}

#[tokio::test]
async fn process_gets_directory_environment_and_input() {
    let fixture = Fixture::new();
    let spec = Spec {
        set: vec![("GIVEN".into(), "value".into())],
        unset: vec!["HOME".into()],
        stdin: ProcessStdin::Bytes(b"input".to_vec()),
        ..fixture.spec("pwd -P; echo $GIVEN ${HOME-none} $RAYMOND_TURN; cat; ps -o pgid= $$")
    };
    let process = start_within(spec, None).unwrap();
    let group = process.id();
    let ended = process.finish(&limits(PATIENT), &CancellationToken::new()).await;
    let place = fixture.directory.canonicalize().unwrap();
    let nonce = &fixture.nonce;
    let lines: Vec<_> = ended.text.lines().map(str::trim).collect();
    assert_eq!(lines[0], place.to_string_lossy());
    assert_eq!(lines[1], format!("value none {nonce}/main.1.1.1"));
    assert_eq!(lines[2].replace(' ', ""), format!("input{group}"));
}

#[tokio::test]
async fn input_of_any_size_may_stay_unread() {
    let bytes = vec![b'x'; 3 * 1024 * 1024];
    let check = async |bash: &str, expected: &str| {
        let fixture = Fixture::new();
        let spec = Spec { stdin: ProcessStdin::Bytes(bytes.clone()), ..fixture.spec(bash) };
        let process = start(spec).unwrap();
        let ended = process.finish(&limits(PATIENT), &CancellationToken::new()).await;
        assert_eq!((ended.end, ended.text.trim()), (exit(0), expected));
    };
    check("wc -c", "3145728").await;
    check("cat | wc -c; cat", "3145728").await;
    check("echo deaf", "deaf").await;
}

#[tokio::test]
async fn cancelling_ends_the_whole_tree() {
    let check = async |bash: &str| {
        let ended = cancelled(bash, IMPATIENT).await;
        assert_eq!(ended.end, CUT, "{bash}");
    };
    // A plain tree with one group.
    check("sleep 600 & a=$!; sleep 600 & echo $$ $a $! > fifo; wait").await;
    // A process that left the group.
    check("setsid sleep 600 & echo $$ $! > fifo; wait").await;
    // A process that also left its parent.
    check("(setsid bash -c 'echo $$ > fifo; exec sleep 600' &); exec sleep 600").await;
    // A process that left the group and removed the marker.
    check("env -i setsid sleep 600 & echo $$ $! > fifo; wait").await;
    // A stopped process.
    check("sleep 600 & kill -STOP $!; echo $! > fifo; wait").await;
    // A process that keeps forking.
    check("f() { sleep 0.01; f & exit; }; echo $$ > fifo; while :; do f & wait; done").await;
}

#[tokio::test]
async fn a_process_that_ignores_signals_is_killed() {
    let bash = "trap '' INT TERM; sleep 600 & echo $$ $! > fifo; wait; wait; sleep 600";
    assert_eq!(cancelled(bash, IMPATIENT).await.end, CUT);
}

#[tokio::test]
async fn interrupted_process_may_clean_up() {
    let bash = trapping("trap 'bash -c \"echo interrupted >&2\"; exit' INT");
    let ended = cancelled(&bash, PATIENT).await;
    assert_eq!((ended.end, ended.stderr.as_str()), (CUT, "interrupted"));
}

#[tokio::test]
async fn the_signals_come_in_order_and_once_each() {
    let bash = trapping("trap 'echo INT >&2' INT; trap 'echo TERM >&2; exit' TERM");
    let patience = Grace { interrupt: Duration::from_secs(1), ..PATIENT };
    let ended = cancelled(&bash, patience).await;
    assert_eq!(ended.stderr, "INT\nTERM");
}

#[tokio::test]
async fn last_output_does_not_block_on_full_pipe() {
    let bash = trapping("trap 'head -c 1000000 /dev/zero; echo said >&2; exit' INT");
    let ended = cancelled(&bash, PATIENT).await;
    assert_eq!((ended.end, ended.stderr.as_str()), (CUT, "said"));
}

#[tokio::test]
async fn a_cancelled_process_says_whether_it_had_spoken() {
    let ended = cancelled("echo something; echo $$ > fifo; sleep 600", IMPATIENT).await;
    assert_eq!(ended.text, "something\n");
    assert_eq!(ended.end, ProcessEnd::Cancelled { progressed: true });
}

#[tokio::test]
async fn cancelled_token_ends_process_at_once() {
    let fixture = Fixture::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let process = fixture.start("sleep 600 & sleep 600");
    let ended = process.finish(&limits(IMPATIENT), &cancel).await;
    assert_eq!((ended.end, fixture.left()), (CUT, Vec::new()));
}

#[tokio::test]
async fn open_stdout_does_not_delay_success() {
    for bash in [
        "sleep 600 & echo done",
        "setsid sleep 600 & echo done",
        "(trap '' INT TERM; sleep 600; sleep 600) & echo done",
    ] {
        let ended = finished(bash, limits(IMPATIENT)).await;
        assert_eq!((ended.end, ended.text.as_str()), (exit(0), "done\n"), "{bash}");
    }
}

#[tokio::test]
async fn output_within_the_grace_is_read() {
    let bash = "(read < fifo; echo later) & echo first; exec 3> fifo; exit 4";
    let ended = finished(bash, limits(PATIENT)).await;
    assert_eq!((ended.end, ended.text.as_str()), (exit(4), "first\nlater\n"));
}

#[tokio::test]
async fn cancelling_within_the_grace_keeps_the_exit() {
    let fixture = Fixture::new();
    let cancel = CancellationToken::new();
    // The FIFO ends when the script exits; its child has only stdout open.
    let exited = fixture.fifo();
    let process = fixture.start("exec 3> fifo; sleep 600 3>&- & echo done");
    let entry = format!("/proc/{}", process.id());
    let grace = Grace { after_exit: LONG, ..IMPATIENT };
    let limits = limits(grace);
    let (ended, ()) = tokio::join!(process.finish(&limits, &cancel), async {
        exited.await.unwrap();
        // A process leaves the table when its exit status was taken.
        while Path::new(&entry).exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!((ended.end, ended.text.as_str()), (exit(0), "done\n"));
    assert_eq!(fixture.left(), Vec::<String>::new());
}

#[tokio::test]
async fn daemon_that_closes_stdout_keeps_running() {
    for redirect in [">/dev/null 2>&1", ">/dev/null"] {
        let fixture = Fixture::new();
        let process = fixture.start(&format!("sleep 600 {redirect} & echo oops >&2; echo done"));
        let ended = process.finish(&limits(PATIENT), &CancellationToken::new()).await;
        assert_eq!((ended.end, ended.text.as_str()), (exit(0), "done\n"));
        assert_eq!(ended.stderr, "oops");
        let found = leftovers::find(&fixture.nonce);
        assert_eq!(found.len(), 1);
        assert_eq!(leftovers::end(&found, &IMPATIENT).await, []);
        assert_eq!(fixture.left(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_flood_ends_the_tree() {
    for bash in ["yes", "yes & yes", "cat /dev/urandom"] {
        let small = Limits { output: 1024 * 1024, ..limits(IMPATIENT) };
        let ended = finished(bash, small).await;
        assert_eq!(ended.end, ProcessEnd::TooLarge { limit: 1024 * 1024 });
        assert!(ended.text.len() <= 1024 * 1024 + 3 * 64 * 1024, "{bash}");
    }
}

#[tokio::test]
async fn memory_stays_bounded_for_any_output() {
    let before = peak_memory();
    let ended = finished("yes | head -c 1G", limits(PATIENT)).await;
    assert_eq!(ended.end, ProcessEnd::TooLarge { limit: OUTPUT_MAX });
    let grown = peak_memory() - before;
    assert!(grown < 200 * 1024, "grew by {grown} KiB");
    drop(ended);
    let ended = finished("yes | head -c 200M >&2", limits(PATIENT)).await;
    assert_eq!(ended.end, exit(0));
    assert_eq!(ended.stderr.len(), "…".len() + 2047);
}

#[tokio::test]
async fn timeout_names_its_clock() {
    let check = async |bash: &str, wall, idle, expected: (Clock, u64)| {
        let limits = Limits {
            wall: Some(Duration::from_millis(wall)),
            idle: Some(Duration::from_millis(idle)),
            ..limits(IMPATIENT)
        };
        let ended = finished(bash, limits).await;
        let after = Duration::from_millis(expected.1);
        let clock = expected.0;
        assert_eq!(ended.end, ProcessEnd::TimedOut { clock, after }, "{bash}");
    };
    check("sleep 600", 60_000, 100, (Clock::Idle, 100)).await;
    check("sleep 600", 100, 60_000, (Clock::Wall, 100)).await;
    check("exec >&- 2>&-; sleep 600", 60_000, 100, (Clock::Idle, 100)).await;
    let talking = "while :; do read -t 0.05 < <(sleep 1); echo x";
    // Between two lines, a busy machine may need a multiple of the usual time.
    let (stdout, stderr) = (format!("{talking}; done"), format!("{talking} >&2; done"));
    tokio::join!(
        check(&stdout, 4200, 4000, (Clock::Wall, 4200)),
        check(&stderr, 4200, 4000, (Clock::Wall, 4200)),
    );
}

#[tokio::test]
async fn dropped_process_is_killed_with_its_tree() {
    let fixture = Fixture::new();
    let fifo = fixture.path("fifo");
    let bash = "exec 3> fifo; setsid sleep 600 & echo ready >&3; sleep 600";
    let process = fixture.start(bash);
    let (ready, dead) =
        tokio::task::spawn_blocking(move || first_line_and_end(&fifo)).await.unwrap();
    assert_eq!(ready, "ready");
    drop(process);
    assert_eq!(dead.await.unwrap(), "");
}

#[tokio::test]
async fn both_runs_find_a_nested_process() {
    let (inner, outer) = (Fixture::new(), Fixture::new());
    let ready = inner.fifo();
    let marker = format!("{}/main.7.1.1", outer.nonce);
    let bash = "echo ready > fifo; read < go";
    let process = start_within(inner.spec(bash), Some(marker.into())).unwrap();
    ready.await.unwrap();
    let pid = process.id();
    let found = |nonce: &Nonce| -> Vec<_> {
        let found = leftovers::find(nonce).into_iter();
        found.map(|left| (left.identity.pid, left.marker.unwrap().to_string())).collect()
    };
    let by_inner = (pid, format!("{}/main.1.1.1", inner.nonce));
    let by_outer = (pid, format!("{}/main.7.1.1", outer.nonce));
    assert_eq!(found(&inner.nonce), [by_inner]);
    assert_eq!(found(&outer.nonce), [by_outer]);
    assert_eq!(found(&"f00d".into()), []);
    let survivors = leftovers::end(&leftovers::find(&outer.nonce), &IMPATIENT).await;
    assert_eq!(survivors, []);
    let ended = process.finish(&limits(PATIENT), &CancellationToken::new()).await;
    assert_eq!(ended.end, killed(Signal::INT.as_raw()));
}

// proves: S58
#[tokio::test]
async fn reused_pid_is_not_signalled() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let process = fixture.start("echo ready > fifo; read < go");
    ready.await.unwrap();
    let mut found = leftovers::find(&fixture.nonce);
    assert_eq!(found.len(), 1);
    let now = found[0].identity;
    table::signal(Identity { start_time: now.start_time - 1, ..now }, Signal::KILL);
    let identities = || -> Vec<_> {
        let found = leftovers::find(&fixture.nonce).into_iter();
        found.map(|leftover| leftover.identity).collect()
    };
    assert_eq!(identities(), [now]);
    found[0].identity.start_time -= 1;
    found[0].marker = None;
    assert_eq!(leftovers::end(&found, &IMPATIENT).await, []);
    assert_eq!(identities(), [now]);
    drop(process);
}

#[tokio::test]
async fn failed_start_is_an_error() {
    let fixture = Fixture::new();
    let missing = Spec { program: "/no/such/program".into(), ..fixture.spec("") };
    let kind = start(missing).unwrap_err().kind();
    assert_eq!(kind, io::ErrorKind::NotFound);
}

#[tokio::test]
async fn environment_is_inherited_or_listed() {
    let given = |name: &str, value: &str| (name.into(), value.into());
    let check = async |inherit: Inherit, unset: &[&str], expected: &[&str]| {
        let fixture = Fixture::new();
        let spec = Spec {
            program: "/usr/bin/env".into(),
            arguments: Vec::new(),
            inherit,
            set: vec![given("GIVEN", "value"), given("CARGO", "mine")],
            unset: unset.iter().map(Into::into).collect(),
            ..fixture.spec("")
        };
        let process = start_within(spec, None).unwrap();
        let ended = process.finish(&limits(PATIENT), &CancellationToken::new()).await;
        let names = ended.text.lines().filter_map(|line| line.split_once('='));
        let mut names: Vec<_> = names.map(|(name, _)| name.to_owned()).collect();
        names.sort();
        assert_eq!(names, expected);
        assert!(ended.text.contains("CARGO=mine\n"));
    };
    let only = |names: &[&str]| Inherit::Only(names.iter().map(Into::into).collect());
    check(only(&[]), &[], &["CARGO", "GIVEN", "RAYMOND_TURN"]).await;
    check(only(&["PATH"]), &[], &["CARGO", "GIVEN", "PATH", "RAYMOND_TURN"]).await;
    check(only(&["PATH", "NO_SUCH"]), &["PATH"], &["CARGO", "GIVEN", "RAYMOND_TURN"]).await;
    let mut ours: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    ours.extend(["CARGO", "GIVEN", "RAYMOND_TURN"].map(str::to_owned));
    ours.retain(|name| name != "PATH");
    ours.sort();
    ours.dedup();
    let ours: Vec<_> = ours.iter().map(String::as_str).collect();
    check(Inherit::All, &["PATH"], &ours).await;
}
