//! Tests with real script files.

use std::fs::{self, Permissions};
use std::time::Duration;

use raymond_core::failure::Clock;
use raymond_core::ids::TurnId;
use tempfile::TempDir;

use super::*;
use crate::process::{Grace, LeftoverPolicy, STDERR_KEPT};

const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;

const IMPATIENT: Limits = Limits {
    wall: None,
    idle: None,
    output: 1024 * 1024,
    stderr: STDERR_KEPT,
    leftovers: LeftoverPolicy::Keep,
    grace: Grace {
        after_exit: Duration::from_millis(50),
        interrupt: Duration::from_millis(50),
        terminate: Duration::from_millis(50),
        kill: Duration::from_mins(10),
    },
};

fn script(directory: &TempDir, text: &str, mode: u32) -> Script {
    let path = directory.path().join("STATE.sh");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    let turn = "main.1.1".parse::<TurnId>().unwrap();
    // Parallel tests must not find each other's processes.
    let nonce = directory.path().file_name().unwrap().to_str().unwrap();
    Script {
        path,
        cwd: directory.path().to_owned(),
        environment: vec![("RAYMOND_STATE".into(), "STATE.sh".into())],
        inherit: Inherit::All,
        marker: Marker::new(&nonce.into(), &turn, 1),
    }
}

async fn end_of(text: &str, mode: u32, limits: Limits) -> ScriptEnd {
    let directory = tempfile::tempdir().unwrap();
    let script = script(&directory, text, mode);
    run(script, &limits, &CancellationToken::new()).await
}

fn spoken(text: &str) -> ScriptEnd {
    ScriptEnd::Succeeded(ScriptSuccess {
        text: text.into(),
        invalid_utf8: false,
        stderr: String::new(),
        held_open: false,
        survivors: Vec::new(),
    })
}

fn failed(status: &str, stderr: &str, stdout: &str) -> ScriptEnd {
    let failure = TurnFailure::Script { status: status.into(), stderr: stderr.into(), tag: None };
    ScriptEnd::Failed {
        failure,
        output: ScriptOutput { stdout: stdout.into(), stderr: String::new() },
    }
}

#[tokio::test]
async fn script_runs_in_bash_or_own_interpreter() {
    let check = async |text: &str, mode, expected: &str| {
        assert_eq!(end_of(text, mode, IMPATIENT).await, spoken(expected), "{text}");
    };
    check("echo ${BASH_VERSION:+bash}", PLAIN, "bash\n").await;
    check("#!/bin/cat\necho x", PLAIN, "x\n").await;
    check("#!/bin/cat\nx\n", EXECUTABLE, "#!/bin/cat\nx\n").await;
    check("echo ${BASH_VERSION:+bash}", EXECUTABLE, "bash\n").await;
    check("", EXECUTABLE, "").await;
    check("#", EXECUTABLE, "").await;
    check("echo $RAYMOND_STATE; cat", PLAIN, "STATE.sh\n").await;
}

#[tokio::test]
async fn script_works_in_directory_of_agent() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = Script { cwd: elsewhere.path().to_owned(), ..script(&directory, "pwd -P", PLAIN) };
    let expected = elsewhere.path().canonicalize().unwrap();
    let end = run(script, &IMPATIENT, &CancellationToken::new()).await;
    assert_eq!(end, spoken(&format!("{}\n", expected.display())));
}

#[tokio::test]
async fn failure_includes_the_end_of_stderr() {
    let check = async |text: &str, expected: ScriptEnd| {
        assert_eq!(end_of(text, PLAIN, IMPATIENT).await, expected, "{text}");
    };
    check("echo so; echo no >&2; exit 3", failed("exit status 3", "no", "so\n")).await;
    check("kill -9 $$", failed("signal 9 (SIGKILL)", "", "")).await;
    check("kill -TERM $$", failed("signal 15 (SIGTERM)", "", "")).await;
    check("kill -40 $$", failed("signal 40", "", "")).await;
    let kept = "y\n".repeat(512);
    let (head, tail) = (format!("{kept}…"), format!("…{kept}"));
    let large = TurnFailure::OutputTooLarge { limit: 1024 * 1024, head, tail };
    let output = ScriptOutput { stdout: String::new(), stderr: "more".into() };
    check("echo more >&2; yes", ScriptEnd::Failed { failure: large, output }).await;
    check(
        "printf 'a\\xffb'; echo note >&2",
        ScriptEnd::Succeeded(ScriptSuccess {
            text: "a\u{fffd}b".into(),
            invalid_utf8: true,
            stderr: "note".into(),
            held_open: false,
            survivors: Vec::new(),
        }),
    )
    .await;
}

// proves: P11
#[tokio::test]
async fn a_clock_that_runs_out_is_a_timeout() {
    let timeout = |clock| {
        let failure = TurnFailure::Timeout { clock, after: Span(100) };
        ScriptEnd::Failed { failure, output: ScriptOutput::default() }
    };
    let after = Some(Duration::from_millis(100));
    let idle = Limits { idle: after, ..IMPATIENT };
    let wall = Limits { wall: after, ..IMPATIENT };
    assert_eq!(end_of("sleep 600", PLAIN, idle).await, timeout(Clock::Idle));
    assert_eq!(end_of("sleep 600", PLAIN, wall).await, timeout(Clock::Wall));
}

#[tokio::test]
async fn a_cancelled_script_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = run(script(&directory, "sleep 600", PLAIN), &IMPATIENT, &cancel).await;
    let output = ScriptOutput::default();
    assert_eq!(end, ScriptEnd::Interrupted { progressed: false, output });
}

#[tokio::test]
async fn failed_start_has_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display().to_string();
    let check = async |script: Script, expected: &str| {
        let end = run(script, &IMPATIENT, &CancellationToken::new()).await;
        let why = expected.replace("HERE", &place);
        assert_eq!(end, not_started(why));
    };
    let good = script(&directory, "#!/no/such/interpreter\n", EXECUTABLE);
    check(
        Script { cwd: directory.path().join("gone"), ..good.clone() },
        "the working directory HERE/gone does not exist",
    )
    .await;
    check(
        Script { path: directory.path().join("GONE.sh"), ..good.clone() },
        "could not read the script HERE/GONE.sh: No such file or directory (os error 2)",
    )
    .await;
    check(
        Script { path: directory.path().join("STATE.bat"), ..good.clone() },
        "HERE/STATE.bat cannot run on this platform",
    )
    .await;
    let huge = vec![("RAYMOND_RESULT".into(), "x".repeat(200 * 1024))];
    check(
        Script { environment: huge, ..good.clone() },
        "cannot run HERE/STATE.sh: Argument list too long (os error 7) (its environment is too \
         large)",
    )
    .await;
    check(
        good,
        "cannot run HERE/STATE.sh: No such file or directory (os error 2) (the interpreter of its \
         `#!` line is missing)",
    )
    .await;
}
