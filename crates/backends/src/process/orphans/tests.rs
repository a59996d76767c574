//! Tests of subreapers. Each runs in its own process, because it ends everything below itself.

use raymond_core::ids::TurnId;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::process::child::may_have_adopted;
use crate::process::test_fixture::{Fixture, IMPATIENT, hear};
use crate::process::{
    Background, Client, LeftoverPolicy, Limits, ProcessEnd, detach, start_client, start_within,
};

/// Runs the body in its own process.
async fn alone(test: &str, body: impl AsyncFnOnce(Fixture)) {
    if let Some(fixture) = Fixture::from_environment() {
        return body(fixture).await;
    }
    let fixture = Fixture::new();
    let ended = fixture.in_own_process(module_path!(), test).await;
    let well = matches!(ended.end, ProcessEnd::Exited(status) if status.success());
    assert!(well && ended.text.contains("1 passed"), "{ended:?}");
    assert_eq!(fixture.left(), Vec::<String>::new());
}

fn own() -> i32 {
    std::process::id().cast_signed()
}

fn marker(fixture: &Fixture, turn: &str) -> Marker {
    Marker::new(&fixture.nonce, &turn.parse::<TurnId>().unwrap(), 1)
}

fn client_of(fixture: &Fixture, turn: &str, bash: &str) -> Client {
    let spec = crate::process::Spec { marker: marker(fixture, turn), ..fixture.spec(bash) };
    start_client(spec, &fixture.files()).unwrap()
}

fn briefly(found: &[Leftover]) -> Vec<(i32, Option<Marker>, &str)> {
    let brief = found.iter().map(|left| (left.identity.pid, left.marker.clone(), &*left.command));
    brief.collect()
}

/// A daemon that leaves its group, its parent and its environment.
const DAEMON: &str = "(env -i setsid bash -c 'echo $$ > fifo; exec sleep 600' >/dev/null 2>&1 &)";

#[tokio::test]
async fn daemon_without_marker_is_ended_with_run() {
    alone("daemon_without_marker_is_ended_with_run", async |fixture| {
        become_subreaper().unwrap();
        let ready = fixture.fifo();
        hear(&mut fixture.client(DAEMON)).await;
        let pid: i32 = ready.await.unwrap().trim().parse().unwrap();
        assert_eq!(fixture.left(), Vec::<String>::new());
        let none = BTreeSet::new();
        while table::command(table::identity(pid).unwrap()) != "sleep 600" {
            tokio::task::yield_now().await;
        }
        let daemon = vec![(pid, None, "sleep 600")];
        assert_eq!(briefly(&find_escaped(own(), &fixture.nonce, &none)), daemon);
        let (found, survivors) = end_orphans(&fixture.nonce, &IMPATIENT).await;
        assert_eq!((briefly(&found), survivors), (daemon, Vec::new()));
        assert_eq!(table::identity(pid), None, "it was reaped too");
    })
    .await;
}

#[tokio::test]
async fn process_of_turn_in_flight_has_not_escaped() {
    alone("process_of_turn_in_flight_has_not_escaped", async |fixture| {
        let ready = fixture.fifo();
        let bash = "setsid bash -c 'echo $$ > fifo; read < go' &";
        let mut daemon = client_of(&fixture, "main.1.1", bash);
        hear(&mut daemon).await;
        let left: i32 = ready.await.unwrap().trim().parse().unwrap();
        let ready = fixture.fifo();
        let bash = "env -i bash -c 'echo $$ > fifo; read < go' & wait";
        let mut client = client_of(&fixture, "main.2.1", bash);
        let shed: i32 = ready.await.unwrap().trim().parse().unwrap();
        let (leader, bash) = (client.identity().pid, format!("bash -c {bash}"));

        let escapes = |turns: &[&str]| -> Vec<_> {
            let in_flight = turns.iter().map(|turn| marker(&fixture, turn)).collect();
            let found = find_escaped(own(), &fixture.nonce, &in_flight);
            found.into_iter().map(|left| (left.identity.pid, left.marker)).collect()
        };
        let left = vec![(left, Some(marker(&fixture, "main.1.1")))];
        let leader = (leader, Some(marker(&fixture, "main.2.1")));
        assert_eq!(escapes(&["main.1.1", "main.2.1"]), []);
        assert_eq!(escapes(&["main.2.1"]), left);
        let running = vec![leader, (shed, None)];
        assert_eq!(escapes(&["main.1.1"]), running);
        assert_eq!(escapes(&[]), [left, running].concat());
        let elsewhere = find_escaped(own(), &"f00d".into(), &BTreeSet::new());
        assert_eq!(elsewhere.iter().filter(|left| left.marker.is_some()).count(), 0);
        assert!(elsewhere.iter().any(|left| left.command == bash));

        let (found, survivors) = end_orphans(&fixture.nonce, &IMPATIENT).await;
        assert_eq!((found.len(), survivors), (3, Vec::new()));
        hear(&mut client).await;
    })
    .await;
}

#[tokio::test]
async fn detached_process_belongs_to_no_outer_run() {
    alone("detached_process_belongs_to_no_outer_run", async |fixture| {
        let ready = fixture.fifo();
        let background = Background {
            program: "bash".into(),
            arguments: vec!["-c".into(), "echo > fifo; read < go".into()],
            cwd: fixture.directory.clone(),
            stdin: Vec::new(),
            files: fixture.files(),
        };
        let mut detached = detach(&background).unwrap();
        let identity = table::identity(detached.id()).unwrap();
        ready.await.unwrap();
        assert_eq!(find_escaped(own(), &fixture.nonce, &BTreeSet::new()), []);
        let ended = end_orphans(&fixture.nonce, &IMPATIENT).await;
        assert_eq!(ended, (Vec::new(), Vec::new()));
        assert!(table::living(identity.pid).is_some());
        table::signal(identity, Signal::KILL);
        detached.exited().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_detached_run_ends_its_own_processes() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let bash = "setsid sleep 600 & echo > fifo; sleep 600";
    let process = start_within(fixture.spec(bash), Some("detached".into())).unwrap();
    ready.await.unwrap();
    drop(process);
    assert_eq!(fixture.left(), Vec::<String>::new());
}

#[tokio::test]
async fn an_orphan_that_has_died_is_reaped() {
    alone("an_orphan_that_has_died_is_reaped", async |fixture| {
        become_subreaper().unwrap();
        let ready = fixture.fifo();
        hear(&mut fixture.client("(bash -c 'echo $$ > fifo; read < go' &)")).await;
        let pid: i32 = ready.await.unwrap().trim().parse().unwrap();
        let orphan = table::identity(pid).unwrap();
        fixture.go().await.unwrap();
        while !table::dead_children().contains(&orphan) {
            tokio::task::yield_now().await;
        }
        reap_orphans();
        assert_eq!(table::identity(pid), None);
    })
    .await;
}

#[tokio::test]
async fn subreaper_ends_leftovers_of_a_step() {
    alone("subreaper_ends_leftovers_of_a_step", async |fixture| {
        assert!(may_have_adopted(), "whoever is no subreaper cannot know");
        become_subreaper().unwrap();
        let mut other = client_of(&fixture, "main.1.2", "read < go");
        assert!(!may_have_adopted(), "it was started here");
        let bash = "(setsid bash -c 'echo > fifo; sleep 600' >/dev/null 2>&1 &); read < fifo";
        let limits =
            Limits { leftovers: LeftoverPolicy::End, grace: IMPATIENT, ..Limits::default() };
        let ended = fixture.start(bash).finish(&limits, &CancellationToken::new()).await;
        assert!(matches!(ended.end, ProcessEnd::Exited(status) if status.success()), "{ended:?}");
        assert_eq!(fixture.left(), ["bash -c read < go"]);
        fixture.go().await.unwrap();
        hear(&mut other).await;
    })
    .await;
}

#[tokio::test]
async fn daemon_started_during_the_end_is_ended() {
    alone("daemon_started_during_the_end_is_ended", async |fixture| {
        become_subreaper().unwrap();
        let ready = fixture.fifo();
        let bash = "trap '(env -i setsid sleep 600 >/dev/null 2>&1 &); exit' INT; \
                    echo > fifo; read < go";
        let mut client = fixture.client(bash);
        ready.await.unwrap();
        let (found, survivors) = end_orphans(&fixture.nonce, &IMPATIENT).await;
        assert_eq!((found.len(), survivors), (1, Vec::new()));
        hear(&mut client).await;
        let below = table::snapshot(None).into_iter().filter(|entry| entry.parent == own());
        assert_eq!(below.count(), 0);
    })
    .await;
}
