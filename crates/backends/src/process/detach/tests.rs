//! Tests with real detached processes.

use std::fs;
use std::path::Path;

use rustix::process::{Signal, getpid, getsid};

use super::*;
use crate::process::table;
use crate::process::test_fixture::Fixture;

fn background(fixture: &Fixture, bash: &str) -> Background {
    let log = fixture.path("console.log");
    Background {
        program: "bash".into(),
        arguments: vec!["-c".into(), bash.into()],
        cwd: fixture.directory.clone(),
        stdin: Vec::new(),
        files: OutputFiles { stdout: log.clone(), stderr: log },
    }
}

fn log(fixture: &Fixture) -> String {
    fs::read_to_string(fixture.path("console.log")).unwrap()
}

#[tokio::test]
async fn detached_process_reads_what_its_starter_gave() {
    let fixture = Fixture::new();
    let given = Background { stdin: b"from the starter".into(), ..background(&fixture, "cat") };
    assert!(detach(&given).unwrap().exited().await.unwrap().success());
    assert_eq!(log(&fixture), "from the starter");
}

#[tokio::test]
async fn a_detached_process_has_files_and_no_markers() {
    let fixture = Fixture::new();
    let bash = "echo $RAYMOND_TURN; readlink /proc/self/fd/0 >&2; exit 3";
    let mut detached = detach(&background(&fixture, bash)).unwrap();
    assert_eq!(detached.exited().await.unwrap().code(), Some(3));
    assert_eq!(log(&fixture), "detached\n/dev/null\n");
    let missing = Background { program: "/no/such".into(), ..background(&fixture, "") };
    assert_eq!(detach(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn dropped_detached_process_keeps_running() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let detached =
        detach(&background(&fixture, "echo > fifo; read < go; echo done > fifo")).unwrap();
    let identity = table::identity(detached.id()).unwrap();
    ready.await.unwrap();
    drop(detached);
    assert!(table::living(identity.pid).is_some());
    let done = fixture.fifo();
    fixture.go().await.unwrap();
    assert_eq!(done.await.unwrap(), "done\n");
    table::signal(identity, Signal::KILL);
    // The runtime reaps it when it is notified of the end of any child.
    while Path::new(&format!("/proc/{}", identity.pid)).exists() {
        let _another = detach(&background(&fixture, "true")).unwrap().exited().await;
    }
}

#[tokio::test]
async fn detached_process_creates_its_own_session() {
    if Fixture::from_environment().is_some() {
        own_session().unwrap();
        assert_eq!(getsid(None).unwrap(), getpid());
        own_session().unwrap();
        return;
    }
    let fixture = Fixture::new();
    let name = "detached_process_creates_its_own_session";
    let spec = fixture.own_process(module_path!(), name);
    let (name, value) = &spec.set[0];
    let words = spec.arguments.iter().map(|word| word.to_str().unwrap().to_owned());
    let bash = format!(
        "export {}={}; exec {} {}",
        name.display(),
        value.display(),
        spec.program.display(),
        words.collect::<Vec<_>>().join(" ")
    );
    let mut detached = detach(&background(&fixture, &bash)).unwrap();
    assert_eq!(detached.exited().await.unwrap().code(), Some(0), "{}", log(&fixture));
    assert!(log(&fixture).contains("1 passed"));
}
