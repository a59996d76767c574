//! Tests with real processes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use raymond_core::ids::{Nonce, TurnId};
use tempfile::TempDir;

use super::*;
use crate::process::leftovers;
use crate::process::test_fixture::peak_memory;

/// So long that a test that waits for it by mistake is ended as too slow.
const LONG: Duration = Duration::from_mins(10);

struct Fixture {
    directory: TempDir,
    limits: Limits,
}

impl Fixture {
    fn new() -> Self {
        let grace = Grace {
            after_exit: Duration::from_millis(100),
            interrupt: Duration::from_millis(50),
            terminate: Duration::from_millis(50),
            kill: LONG,
        };
        let limits = Limits { grace, ..limits(LONG) };
        Self { directory: tempfile::tempdir().unwrap(), limits }
    }

    fn nonce(&self) -> Nonce {
        let name = self.directory.path().file_name().unwrap().to_string_lossy();
        Nonce::new(name.replace('.', "test"))
    }

    fn exec(&self, command: ExecCommand) -> ExecRequest {
        let turn = "main.1.1".parse::<TurnId>().unwrap();
        ExecRequest {
            command,
            cwd: self.directory.path().to_owned(),
            environment: Vec::new(),
            inherit: Inherit::All,
            stdin: ProcessStdin::Null,
            marker: Marker::new(&self.nonce(), &turn, 1),
            timeout: LONG,
        }
    }

    fn shell(&self, text: &str) -> ExecRequest {
        self.exec(ExecCommand::Shell(text.to_owned()))
    }

    /// Runs a step, after which none of its processes may be left.
    async fn ran(&self, exec: ExecRequest) -> ExecResult {
        let ran = run_within(exec, &self.limits, &CancellationToken::new()).await;
        self.nothing_is_left();
        ran
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        let left = leftovers::find(&self.nonce());
        assert_eq!(left.iter().map(|one| &one.command).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

fn program(program: &str, arguments: &[&str]) -> ExecCommand {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    ExecCommand::Program { program: program.to_owned(), arguments }
}

fn ran(end: ExecEnd, stdout: &str, stderr: &str) -> ExecResult {
    ExecResult {
        end,
        stdout: stdout.to_owned(),
        invalid_utf8: false,
        stderr: stderr.to_owned(),
        survivors: Vec::new(),
    }
}

fn failed(status: &str) -> ExecEnd {
    ExecEnd::Failed { status: status.to_owned() }
}

#[tokio::test]
async fn shell_text_runs_in_bash_without_login() {
    let fixture = Fixture::new();
    let check = async |text: &str, end: ExecEnd, stdout: &str, stderr: &str| {
        assert_eq!(fixture.ran(fixture.shell(text)).await, ran(end, stdout, stderr), "{text}");
    };
    check("echo out; echo err >&2", ExecEnd::Succeeded, "out\n", "err\n").await;
    check("[[ ${BASH_VERSION} ]] && ! shopt -q login_shell", ExecEnd::Succeeded, "", "").await;
    check("echo $0 $#", ExecEnd::Succeeded, "bash 0\n", "").await;
    check("", ExecEnd::Succeeded, "", "").await;
    check("-x", failed("exit status 127"), "", "bash: line 1: -x: command not found\n").await;
    check("echo part; exit 3", failed("exit status 3"), "part\n", "").await;
    check("kill -9 $$", failed("signal 9 (SIGKILL)"), "", "").await;
    check("kill -TERM $$", failed("signal 15 (SIGTERM)"), "", "").await;
    check("cat", ExecEnd::Succeeded, "", "").await;
}

#[tokio::test]
async fn program_is_name_or_path_in_workspace() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.directory.path().join("bin")).unwrap();
    fixture.write("bin/tool", "#!/bin/sh\necho \"$# $1\"\n", 0o755);
    let check = async |command: ExecCommand, stdout: &str| {
        assert_eq!(fixture.ran(fixture.exec(command)).await, ran(ExecEnd::Succeeded, stdout, ""));
    };
    check(program("printf", &["%s|", "a b", "$HOME", "", "'"]), "a b|$HOME||'|").await;
    check(program("bin/tool", &["x y"]), "1 x y\n").await;
    check(program("./bin/tool", &[]), "0 \n").await;
    check(program("/bin/echo", &["-n", "x"]), "x").await;
}

#[tokio::test]
async fn step_gets_directory_environment_and_input() {
    let fixture = Fixture::new();
    let exec = ExecRequest {
        environment: vec![("GIVEN".into(), "a b".into()), ("LANG".into(), "xx".into())],
        stdin: ProcessStdin::Bytes(b"{\"x\":1}".to_vec()),
        ..fixture.shell("pwd -P; echo \"$GIVEN|$LANG|${PATH:+path}|${RAYMOND_TURN##*:}\"; cat")
    };
    let place = fixture.directory.path().canonicalize().unwrap();
    let marker = exec.marker.clone();
    let expected = format!("{}\na b|xx|path|{marker}\n{{\"x\":1}}", place.display());
    assert_eq!(fixture.ran(exec).await, ran(ExecEnd::Succeeded, &expected, ""));
}

#[tokio::test]
async fn unread_input_does_not_block() {
    let fixture = Fixture::new();
    let bytes = vec![b'x'; 3 * 1024 * 1024];
    for (text, expected) in [("echo deaf", "deaf\n"), ("exec wc -c", "3145728\n")] {
        let exec = ExecRequest { stdin: ProcessStdin::Bytes(bytes.clone()), ..fixture.shell(text) };
        assert_eq!(fixture.ran(exec).await, ran(ExecEnd::Succeeded, expected, ""));
    }
}

// proves: P11
#[tokio::test]
async fn timeout_ends_the_tree_and_keeps_output() {
    // Long enough for the output of a shell, even on a busy machine.
    let after = Duration::from_secs(4);
    let check = async |text: &str| {
        let mut fixture = Fixture::new();
        fixture.limits.wall = Some(after);
        let found = fixture.ran(fixture.shell(text)).await;
        let (end, stdout) = (found.end, found.stdout);
        assert_eq!((end, stdout.as_str()), (ExecEnd::TimedOut { after }, "before\n"), "{text}");
    };
    tokio::join!(
        check("echo before; sleep 600"),
        check("echo before; (trap '' INT TERM; sleep 600; sleep 600) & wait; wait"),
        check("echo before; setsid sleep 600 & sleep 600"),
    );
}

#[tokio::test]
async fn leftover_children_are_ended_after_grace() {
    let fixture = Fixture::new();
    for text in [
        "sleep 600 & echo done",
        "sleep 600 >/dev/null 2>&1 & echo done",
        "setsid sleep 600 >/dev/null 2>&1 & echo done",
        "(setsid bash -c 'trap \"\" INT TERM; sleep 600; sleep 600' &) >/dev/null 2>&1; echo done",
    ] {
        assert_eq!(
            fixture.ran(fixture.shell(text)).await,
            ran(ExecEnd::Succeeded, "done\n", ""),
            "{text}"
        );
    }
    let text = "sleep 600 >/dev/null 2>&1 & exit 3";
    assert_eq!(fixture.ran(fixture.shell(text)).await.end, failed("exit status 3"));
}

#[tokio::test]
async fn children_may_end_within_the_grace() {
    let mut fixture = Fixture::new();
    fixture.limits.grace.after_exit = LONG;
    let text = "mkfifo go; (read < go; echo late > file) >/dev/null 2>&1 & exec 3<> go; echo x >&3";
    // The FIFO is open until its reader has read, so nothing is lost.
    let text = format!("{text}; while read -t 0 -u 3; do :; done; echo done");
    let found = fixture.ran(fixture.shell(&text)).await;
    assert_eq!(found, ran(ExecEnd::Succeeded, "done\n", ""));
    assert_eq!(fs::read_to_string(fixture.directory.path().join("file")).unwrap(), "late\n");
}

#[tokio::test]
async fn an_exit_without_children_costs_no_grace() {
    let mut fixture = Fixture::new();
    fixture.limits.grace.after_exit = LONG;
    assert_eq!(fixture.ran(fixture.shell("echo x")).await, ran(ExecEnd::Succeeded, "x\n", ""));
}

#[tokio::test]
async fn gigabyte_of_output_is_too_large() {
    let fixture = Fixture::new();
    let before = peak_memory();
    let found = fixture.ran(fixture.shell("head -c 1000000000 /dev/zero; echo never > file")).await;
    assert_eq!(found.end, ExecEnd::TooLarge { limit: STDOUT_MAX });
    assert!(found.stdout.len() <= STDOUT_MAX + 64 * 1024);
    assert!(!fixture.directory.path().join("file").exists());
    let grown = peak_memory() - before;
    assert!(grown < 128 * 1024, "{grown} KiB");
}

#[tokio::test]
async fn the_end_of_stderr_is_kept() {
    let fixture = Fixture::new();
    let found = fixture.ran(fixture.shell("seq 1 100000 >&2; exit 1")).await;
    assert_eq!(found.end, failed("exit status 1"));
    assert!(found.stderr.starts_with('…') && found.stderr.ends_with("\n99999\n100000\n"));
    assert!(found.stderr.len() > STDERR_MAX - 100 && found.stderr.len() < STDERR_MAX + 10);
}

#[tokio::test]
async fn invalid_utf8_is_replaced_and_reported() {
    let fixture = Fixture::new();
    let found = fixture.ran(fixture.shell("printf 'a\\xffb'; printf 'c\\xff' >&2")).await;
    let expected = ran(ExecEnd::Succeeded, "a\u{fffd}b", "c\u{fffd}");
    assert_eq!(found, ExecResult { invalid_utf8: true, ..expected });
}

#[tokio::test]
async fn long_shell_text_is_read_from_file() {
    let fixture = Fixture::new();
    for length in [ARGUMENT_MAX - 200, 200 * 1024, 3 * 1024 * 1024] {
        let text = format!(": {}\necho ${{#1}} \"$0\"; cat; exit 4", "x".repeat(length));
        let exec =
            ExecRequest { stdin: ProcessStdin::Bytes(b"input".to_vec()), ..fixture.shell(&text) };
        let found = fixture.ran(exec).await;
        assert_eq!(found.end, failed("exit status 4"));
        let (line, rest) = found.stdout.split_once('\n').unwrap();
        let (count, name) = line.split_once(' ').unwrap();
        assert_eq!((count, rest), ("0", "input"));
        assert_eq!(name != "bash", length > ARGUMENT_MAX);
        assert!(!Path::new(name).exists(), "{name}");
    }
}

// proves: S55
#[tokio::test]
async fn shell_text_file_is_private_with_random_name() {
    let fixture = Fixture::new();
    let text = format!(": {}\numask; stat -c '%a %n' \"$0\"", "x".repeat(ARGUMENT_MAX));
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let found = fixture.ran(fixture.shell(&text)).await;
        let (_, line) = found.stdout.trim().split_once('\n').unwrap();
        let (mode, name) = line.split_once(' ').unwrap();
        assert_eq!(mode, "600");
        names.insert(name.to_owned());
    }
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn failed_start_has_a_reason() {
    let fixture = Fixture::new();
    fixture.write("plain", "#!/bin/sh\n", 0o644);
    fixture.write("orphan", "#!/no/such/interpreter\n", 0o755);
    fixture.write("headless", "echo\n", 0o755);
    let place = fixture.directory.path().display().to_string();
    let check = async |exec: ExecRequest, why: &str| {
        let why = why.replace("HERE", &place);
        assert_eq!(fixture.ran(exec).await, ran(ExecEnd::NotStarted { why }, "", ""));
    };
    check(
        fixture.exec(program("ls -la", &[])),
        "cannot run ls -la: No such file or directory (os error 2) (it is not in `PATH`; arguments \
         belong in `args`)",
    )
    .await;
    check(
        fixture.exec(program("./headless", &[])),
        "cannot run HERE/./headless: Exec format error (os error 8) (a script begins with a line \
         such as `#!/bin/sh`)",
    )
    .await;
    check(
        fixture.exec(program("no-such-program", &[])),
        "cannot run no-such-program: No such file or directory (os error 2) (it is not in `PATH`)",
    )
    .await;
    check(
        fixture.exec(program("./gone", &[])),
        "cannot run HERE/./gone: No such file or directory (os error 2)",
    )
    .await;
    check(
        fixture.exec(program("./plain", &[])),
        "cannot run HERE/./plain: Permission denied (os error 13) (it is not an executable file)",
    )
    .await;
    check(
        fixture.exec(program("./orphan", &[])),
        "cannot run HERE/./orphan: No such file or directory (os error 2) (the interpreter of its \
         `#!` line is missing)",
    )
    .await;
    check(
        fixture.exec(program("echo", &[&"x".repeat(200 * 1024)])),
        "cannot run echo: Argument list too long (os error 7) (its arguments are too large)",
    )
    .await;
    check(
        ExecRequest { cwd: fixture.directory.path().join("gone"), ..fixture.shell("true") },
        "the working directory HERE/gone does not exist",
    )
    .await;
    check(
        ExecRequest { environment: vec![("A=B".into(), String::new())], ..fixture.shell("true") },
        "`A=B` cannot be the name of an environment variable",
    )
    .await;
    check(fixture.shell("echo a\0b"), "cannot run bash: nul byte found in provided data").await;
}

// proves: S46
#[tokio::test]
async fn cancelling_ends_the_tree() {
    let fixture = Fixture::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let found = run_within(fixture.shell("sleep 600 & sleep 600"), &fixture.limits, &cancel).await;
    assert_eq!(found, ran(ExecEnd::Cancelled, "", ""));
    fixture.nothing_is_left();
}

#[tokio::test]
async fn the_clock_of_a_step_is_its_own() {
    let fixture = Fixture::new();
    let after = Duration::from_millis(50);
    let exec = ExecRequest { timeout: after, ..fixture.shell("sleep 600") };
    let found = run(exec, &CancellationToken::new()).await;
    assert_eq!(found.end, ExecEnd::TimedOut { after });
}
