//! The owner's loop: requests from the inbox, signals, and clients that an earlier owner started.

use std::path::Path;

use raymond_core::run::settings::ConfigHome;
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Ending, Phase, Settings, effect};
use raymond_core::time::Span;
use raymond_store::Inbox;

use super::*;
use crate::test_runs::{AttachedClient, Client, SilentWatcher, TestRun, answered_by};
use crate::turn_files::transcript;

const STATE: &[(&str, &str)] = &[("START.md", "go")];

fn runner(owned: OwnedRun, watch: &mut SilentWatcher) -> Runner<'_> {
    Runner::new(owned, Backends::default(), &[], watch)
}

fn inbox(setup: &TestRun) -> Inbox {
    let paths = setup.project.paths(&TestRun::run());
    Inbox::new(Arc::clone(&setup.project.disk), paths.inbox)
}

fn waiting(setup: &TestRun) -> Vec<String> {
    let taken = inbox(setup).take_all().unwrap();
    taken.messages.into_iter().map(|message| message.key).collect()
}

fn post(setup: &TestRun, input: &Input) {
    let key = request_key(input).unwrap();
    inbox(setup).post(&key, &serde_json::to_vec(input).unwrap()).unwrap();
}

fn requests() -> [Input; 2] {
    let value = raymond_core::value::Value::Inline("1".to_owned());
    [
        Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: "stop".to_owned() },
        Input::Answer {
            ask: "main.1.1".parse().unwrap(),
            value,
            by: "somebody".to_owned(),
            key: "answer".to_owned(),
        },
    ]
}

#[tokio::test]
async fn request_stays_in_the_inbox_until_recorded() {
    for request in requests() {
        let setup = TestRun::in_memory();
        let (mut nobody, key) = (SilentWatcher, request_key(&request).unwrap());
        let mut runner = runner(setup.begun(STATE), &mut nobody);
        post(&setup, &request);
        // Not even the ballast is left, so nothing can be recorded.
        setup.project.root.ballast(Arc::clone(&setup.project.disk)).free().unwrap();
        setup.memory.set_capacity(Some(setup.memory.used()));
        let inputs = runner.requests();
        assert_eq!(inputs, [request]);
        // Beside the request something happens that is recorded in any case.
        let stop =
            Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: "other".to_owned() };
        let handled = runner.handle([inputs, vec![stop]].concat());
        assert!(matches!(handled, Err(RunnerError::Driver(DriverError::Commit(_)))), "{handled:?}");
        assert_eq!(waiting(&setup), [key], "the next owner, or whoever asked, must still find it");
    }
}

#[tokio::test]
async fn recorded_or_refused_request_leaves_the_inbox() {
    for request in requests() {
        let setup = TestRun::in_memory();
        let mut nobody = SilentWatcher;
        let mut runner = runner(setup.begun(STATE), &mut nobody);
        post(&setup, &request);
        let inputs = runner.requests();
        runner.handle(inputs).unwrap();
        assert_eq!(waiting(&setup), [""; 0], "{request:?}");
    }
}

#[tokio::test]
async fn second_signal_keeps_the_first_exit_code() {
    let all = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
    for (first, second) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
        let setup = TestRun::in_memory();
        let mut nobody = SilentWatcher;
        let mut runner = runner(setup.begun(STATE), &mut nobody);
        let inputs = runner.handle_signal(first).expect("the first signal is a request to stop");
        assert!(matches!(inputs[..], [Input::Stop { mode: StopMode::Now, .. }]), "{inputs:?}");
        assert_eq!(runner.shutdown, Shutdown::Graceful);
        assert_eq!(
            runner.handle_signal(Signal::Wake),
            Some(Vec::new()),
            "a wake_owner is no second signal"
        );
        assert_eq!(runner.shutdown, Shutdown::Graceful);
        assert_eq!(runner.handle_signal(second), None, "{first:?}, then {second:?}");
        assert_eq!(
            (runner.shutdown, runner.signal),
            (Shutdown::Immediate, Some(first)),
            "then {second:?}"
        );
    }
}

#[tokio::test]
async fn adopted_client_keeps_its_clocks_and_cap() {
    let setup = TestRun::in_memory();
    let state = "---\ntimeout: 7m\nidle_timeout: 3m\n---\ngo";
    let settings = Settings { config_home: ConfigHome::PerAgent, ..TestRun::settings() };
    let mut owned = setup.begun_with(&[("START.md", state)], settings.clone());
    let turn = effect::in_flight(&owned.head.run).next().unwrap().clone();
    let released =
        raymond_core::decide::turn_spec(&owned.head.run, &owned.definition, &turn).unwrap();
    let released = released.prompt().unwrap().clone();
    let client = Client::new(AttachedClient::Running, "<result>done</result>");
    let backends = answered_by(&client);
    let inputs = owned.resume_inputs(settings, &backends).await.unwrap();
    let paths = owned.paths.clone();
    let driven = drive(owned, backends, inputs, &mut SilentWatcher).await.unwrap();
    assert_eq!(driven.head.run.phase, Phase::Ended(Ending::Completed));
    let followed = client.followed.lock().unwrap().clone();
    let [started] = &followed[..] else { panic!("it is followed once: {followed:?}") };
    let minutes = |count: u64| Some(Span(count * 60_000));
    assert_eq!((started.timeout, started.idle_timeout), (minutes(7), minutes(3)));
    assert!(released.cap.is_some(), "the run has a budget");
    assert_eq!(started.cap, released.cap);
    assert_eq!((&started.turn, started.attempt), (&turn.id, turn.attempt));
    assert_eq!(started.nonce, setup.nonce());
    assert_eq!(Some(&started.plan), turn.current.as_ref());
    assert_eq!(started.transcript, transcript(&paths.transcripts, &turn.id, turn.attempt));
    assert_eq!(started.config_home, Some(paths.homes.join("main")));
}

#[tokio::test]
async fn answer_of_an_adopted_client_uses_its_directory() {
    let setup = TestRun::in_files();
    let inner = setup.cwd.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut owned = setup.begun(&[("START.md", "go"), ("END.sh", "pwd > place; exit 1")]);
    let client = Client::new(AttachedClient::Running, "<reset cd='inner'>END</reset>");
    let backends = answered_by(&client);
    let inputs = owned.resume_inputs(TestRun::settings(), &backends).await.unwrap();
    let driven = drive(owned, backends, inputs, &mut SilentWatcher).await.unwrap();
    let main = &driven.head.run.agents[&raymond_core::ids::AgentId::main()];
    assert_eq!(Path::new(&main.cwd), inner);
    assert_eq!(client.followed.lock().unwrap().len(), 1, "it need not be reminded");
}

#[tokio::test]
async fn restored_directory_gets_its_ballast_back() {
    let setup = TestRun::in_memory();
    let mut nobody = SilentWatcher;
    let mut runner = runner(setup.begun(STATE), &mut nobody);
    let disk = Arc::clone(&setup.project.disk);
    let ballast = setup.project.root.path().join("ballast");
    let paths = setup.project.paths(&TestRun::run());
    for gone in [&ballast, &paths.journal, &paths.lock] {
        disk.remove(gone).unwrap();
    }
    runner.restore_directory().unwrap();
    for back in [&ballast, &paths.journal, &paths.lock] {
        assert!(disk.metadata(back).is_ok(), "{}", back.display());
    }
}

#[tokio::test]
async fn script_is_ended_by_its_clocks() {
    let clocks = |timeout, idle_timeout| Settings {
        timeout,
        idle_timeout,
        retries: 0,
        ..TestRun::settings()
    };
    let short = Some(Span(50));
    for (settings, clock) in [(clocks(short, None), "wall"), (clocks(None, short), "idle")] {
        let setup = TestRun::in_files();
        let script = "exec sleep 600";
        let (owned, start) = setup.created(&[("START.sh", script)], settings);
        let driven =
            drive(owned, Backends::default(), vec![start], &mut SilentWatcher).await.unwrap();
        assert_eq!(driven.status, Status::Failed);
        let failure = format!("{:?}", driven.head.run.agents);
        assert!(failure.to_lowercase().contains(clock), "{failure}");
    }
}
