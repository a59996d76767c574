//! Tests of the fake client: it behaves as the real one was observed to behave.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and a client is a process"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use raymond_testkit::fake_claude::{Invocation, Message, Role, VERSION};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const PRINT: &str = "-p --output-format stream-json --verbose";

/// A configuration directory, and the client that uses it.
struct Client {
    config: TempDir,
}

/// The output and exit status of an invocation.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    lines: Vec<Value>,
    stdout: String,
    stderr: String,
}

impl Client {
    fn new() -> Self {
        Self { config: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.config.path().join(name)
    }

    fn start(&self, flags: &str, prompt: &str) -> Started {
        self.start_with(&flags.split_whitespace().collect::<Vec<_>>(), prompt)
    }

    /// Starts the client. Its output goes to a file, as in a real turn.
    fn start_with(&self, flags: &[&str], prompt: &str) -> Started {
        let number = fs::read_dir(self.config.path()).unwrap().count();
        let (stdout, stderr) =
            (self.path(&format!("{number}.out")), self.path(&format!("{number}.err")));
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-claude"))
            .args(PRINT.split(' '))
            .args(flags)
            .env("CLAUDE_CONFIG_DIR", self.config.path())
            .env_remove("IS_SANDBOX")
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&stdout).unwrap())
            .stderr(fs::File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(prompt.as_bytes()).ok();
        Started { child, stdout, stderr }
    }

    fn run(&self, flags: &str, prompt: &str) -> Ended {
        self.start(flags, prompt).wait()
    }

    fn invocations(&self) -> Vec<Invocation> {
        Invocation::all(self.config.path())
    }

    /// Returns the processes that were started to outlive the client and still run.
    fn offspring(&self) -> Vec<i32> {
        let signed = fs::read_dir(self.path("offspring")).into_iter().flatten().flatten();
        let pids = signed.filter_map(|file| fs::read_to_string(file.path()).ok()?.parse().ok());
        pids.filter(|pid| is_alive(*pid)).collect()
    }
}

struct Started {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Started {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn wait(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        let stdout = String::from_utf8_lossy(&fs::read(&self.stdout).unwrap()).into_owned();
        let lines = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let stderr = fs::read_to_string(&self.stderr).unwrap().trim().to_owned();
        Ended { code, lines, stdout, stderr }
    }
}

impl Ended {
    /// Returns `type/subtype` of every line.
    fn kinds(&self) -> Vec<String> {
        let kind = |line: &Value| match line["subtype"].as_str() {
            Some(subtype) => format!("{}/{subtype}", line["type"].as_str().unwrap()),
            None => line["type"].as_str().unwrap().to_owned(),
        };
        self.lines.iter().map(kind).collect()
    }

    fn results(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == "result").collect()
    }

    #[track_caller]
    fn result(&self) -> &Value {
        self.results().last().copied().unwrap_or_else(|| unreachable!("no result in {self:?}"))
    }

    /// Returns the cost of this invocation, which no single field contains.
    fn cost(&self) -> f64 {
        let since = |line: &&Value| {
            let models = line["model_usage_since_last_result"].as_object().unwrap().clone();
            models.values().map(|model| model["costUSD"].as_f64().unwrap()).sum::<f64>()
        };
        self.results().iter().map(since).sum()
    }
}

/// Returns whether a process runs; a zombie has an empty command line.
fn is_alive(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        sleep(Duration::from_millis(2));
    }
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

fn user(text: &str) -> Message {
    Message { role: Role::User, text: text.to_owned() }
}

fn assistant(text: &str) -> Message {
    Message { role: Role::Assistant, text: text.to_owned() }
}

#[test]
fn version_flag_prints_the_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_fake-claude")).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{VERSION}\n"));
}

#[test]
fn ordinary_turn_has_init_messages_and_result() {
    let client = Client::new();
    let ended =
        client.run(&format!("--session-id {A} --model opus"), "fake: say one\nfake: say two");
    assert_eq!(ended.kinds(), ["system/init", "assistant", "assistant", "result/success"]);
    let init = &ended.lines[0];
    assert_eq!((&init["session_id"], &init["model"]), (&json!(A), &json!("opus")));
    let result = ended.result();
    assert_eq!(
        (ended.code, &result["result"], &result["is_error"], &result["terminal_reason"]),
        (Some(0), &json!("two"), &json!(false), &json!("completed"))
    );
    assert!(!ended.stdout.lines().last().unwrap().starts_with("{\"type\""));
}

#[test]
fn each_block_has_its_own_line() {
    let client = Client::new();
    let ended = client.run("", "fake: say <goto>\nfake: more A.md</goto>\\nend\nfake: pad 3");
    let ids: Vec<&Value> = ended.lines[1..4].iter().map(|line| &line["message"]["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(ended.result()["result"], "<goto>A.md</goto>\nendxxx");
}

#[test]
fn refusals_go_to_stderr_only() {
    let client = Client::new();
    client.run(&format!("--session-id {A}"), "fake: say hello");
    let check = |flags: &str, prompt: &str, part: &str| {
        let ended = client.run(flags, prompt);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{flags}");
        assert!(ended.stderr.contains(part), "{part:?} is missing in {:?}", ended.stderr);
        let last = client.invocations().pop().unwrap();
        assert_eq!(last.refused.as_deref(), Some(ended.stderr.as_str()));
    };
    check("--frobnicate", "hello", "unknown option '--frobnicate'");
    check("--model", "hello", "argument missing");
    check("--permission-mode yolo", "hello", "is invalid");
    check("--session-id nonsense", "hello", "Must be a valid UUID");
    check("--max-budget-usd 0", "hello", "must be a positive number");
    check(&format!("--session-id {A}"), "hello", "is already in use");
    check(&format!("--resume {A} --session-id {B}"), "hello", "--fork-session");
    check(&format!("--resume {A} --fork-session --session-id {A}"), "hello", "already in use");
    check("", " \n", "Input must be provided");
    check("", "fake: dance", "cannot read the line \"fake: dance\"");
}

#[test]
fn root_skips_permissions_only_in_a_sandbox() {
    let client = Client::new();
    let refused = client.run("--dangerously-skip-permissions", "fake: say hello");
    let expected = if rustix::process::getuid().is_root() { Some(1) } else { Some(0) };
    assert_eq!(refused.code, expected);
}

#[test]
fn resumed_session_continues_and_fork_leaves_it() {
    let client = Client::new();
    client.run(&format!("--session-id {A}"), "fake: say one");
    client.run(&format!("--resume {A} --fork-session --session-id {B}"), "fake: say branch");
    client.run(&format!("--resume {A}"), "fake: say two");
    let history: Vec<_> =
        client.invocations().into_iter().map(|i| (i.session.unwrap(), i.history)).collect();
    let begun = [user("fake: say one"), assistant("one")];
    let then = |text: &str| [begun.as_slice(), &[user(text)]].concat();
    assert_eq!(
        history,
        [
            (A.to_owned(), vec![user("fake: say one")]),
            (B.to_owned(), then("fake: say branch")),
            (A.to_owned(), then("fake: say two")),
        ]
    );
}

#[test]
fn unknown_session_is_an_error_result() {
    let client = Client::new();
    let ended = client.run(&format!("--resume {A}"), "fake: say hello");
    assert_eq!(
        (ended.code, ended.kinds()),
        (Some(1), vec!["result/error_during_execution".into()])
    );
    let errors = json!([format!("No conversation found with session ID: {A}")]);
    assert_eq!(ended.result()["errors"], errors);
    assert!(ended.result().get("result").is_none());
}

#[test]
fn unstored_session_is_unknown_but_taken() {
    let client = Client::new();
    client.run(&format!("--session-id {A}"), "fake: forget\nfake: say one\nfake: kill");
    assert_eq!(client.run(&format!("--resume {A}"), "fake: say two").code, Some(1));
    let taken = client.run(&format!("--session-id {A}"), "fake: say two");
    assert_eq!((taken.code, taken.lines.len()), (Some(1), 0));
    assert!(taken.stderr.contains("already in use"), "{taken:?}");
}

#[test]
fn totals_are_cumulative_and_inherited() {
    let client = Client::new();
    let check = |flags: String, prompt: &str, cost: f64, total: f64| {
        let ended = client.run(&flags, prompt);
        let reported = ended.result()["total_cost_usd"].as_f64().unwrap();
        assert!(near(ended.cost(), cost) && near(reported, total), "{cost} {total}: {ended:?}");
    };
    check(format!("--session-id {A}"), "fake: cost 0.25\nfake: say one", 0.25, 0.25);
    check(format!("--resume {A}"), "fake: cost 0.5\nfake: say two", 0.5, 0.75);
    let fork = format!("--resume {A} --fork-session --session-id {B}");
    check(fork, "fake: cost 0.125\nfake: say three", 0.125, 0.875);
    check(format!("--resume {A}"), "fake: say four", 0.01, 0.76);
}

#[test]
fn cap_ends_a_turn_after_spending() {
    let client = Client::new();
    let check = |prompt: &str, messages: usize, cost: f64| {
        let ended = client.run("--max-budget-usd 0.25", prompt);
        let said = ended.kinds().iter().filter(|kind| *kind == "assistant").count();
        let result = ended.result();
        assert_eq!((ended.code, said), (Some(1), messages), "{prompt}");
        assert_eq!(result["subtype"], "error_max_budget_usd");
        assert!(result.get("result").is_none());
        assert!(near(ended.cost(), cost), "{ended:?}");
    };
    check("fake: cap", 0, 0.25);
    check("fake: say <goto>A.md</goto>\nfake: cap", 1, 0.25);
    check("fake: cost 0.3\nfake: say never", 0, 0.3);
    let under = client.run("--max-budget-usd 0.25", "fake: cost 0.2\nfake: say fine");
    assert_eq!(under.code, Some(0));
}

#[test]
fn api_error_has_subtype_success() {
    let client = Client::new();
    let check = |line: &str, status: Value, kind: &str| {
        let ended = client.run("", line);
        let result = ended.result();
        assert_eq!((ended.code, &result["subtype"]), (Some(1), &json!("success")), "{line}");
        assert_eq!(
            (&result["is_error"], &result["api_error_status"], &result["terminal_reason"]),
            (&json!(true), &status, &json!("api_error"))
        );
        let said = ended.lines.iter().find(|line| line["type"] == "assistant").unwrap();
        assert_eq!(said["error"], kind, "{line}");
    };
    check("fake: error 529", json!(529), "server_error");
    check("fake: error 401", json!(401), "authentication_failed");
    check("fake: error 400", json!(400), "invalid_request");
    check("fake: error 400 billing_error", json!(400), "billing_error");
    check("fake: error 404", json!(404), "model_not_found");
    check("fake: error none", json!(null), "unknown");
    check("fake: quota", json!(429), "rate_limit");
    check("fake: quota 3600", json!(429), "rate_limit");
    check("fake: refuse", json!(null), "unknown");
}

#[test]
fn retries_and_limits_print_extra_lines() {
    let client = Client::new();
    let check = |prompt: &str, kinds: &[&str]| {
        assert_eq!(client.run("", prompt).kinds(), kinds, "{prompt}");
    };
    check(
        "fake: refuse",
        &["system/init", "system/model_refusal_no_fallback", "assistant", "result/success"],
    );
    check("fake: quota 60", &["system/init", "rate_limit_event", "assistant", "result/success"]);
    check(
        "fake: retry 401\nfake: error 401",
        &["system/init", "system/api_retry", "assistant", "result/success"],
    );
    check("fake: max-turns", &["system/init", "result/error_max_turns"]);
    check("fake: fail it broke", &["system/init", "result/error_during_execution"]);
}

#[test]
fn tool_runs_only_if_flags_allow_it() {
    let client = Client::new();
    let check = |flags: &[&str], denied: usize| {
        let prompt = "fake: tool Bash cargo test --all\nfake: say done";
        let ended = client.start_with(flags, prompt).wait();
        let result = ended.result();
        assert_eq!(result["result"], "done");
        let denials = result["permission_denials"].as_array().unwrap();
        assert_eq!(denials.len(), denied, "{flags:?}");
        if let [denial] = denials.as_slice() {
            assert_eq!(denial["tool_name"], "Bash");
            assert_eq!(denial["tool_input"]["command"], "cargo test --all");
        }
    };
    check(&[], 1);
    check(&["--allowedTools", "Bash(cargo test:*)"], 0);
    check(&["--allowedTools", "Read,Bash(cargo test:*)"], 0);
    check(&["--allowedTools", "Read", "Bash(git:*)"], 1);
    check(&["--allowedTools", "Bash(cargo test)"], 1);
    check(&["--allowedTools", "Bash(cargo *)"], 0);
    check(&["--allowedTools", "Bash"], 0);
    check(&["--allowedTools", "Bash", "--disallowedTools", "Bash(cargo:*)"], 1);
}

#[test]
fn background_task_adds_second_init_and_result() {
    let client = Client::new();
    let prompt = "fake: say working\nfake: cost 0.1\nfake: background\nfake: notify\n\
                  fake: say done\nfake: cost 0.2";
    let ended = client.run("", prompt);
    assert_eq!(
        ended.kinds(),
        [
            "system/init",
            "assistant",
            "system/task_started",
            "system/background_tasks_changed",
            "result/success",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
    let texts: Vec<&Value> = ended.results().iter().map(|line| &line["result"]).collect();
    assert_eq!(texts, ["working", "done"]);
    assert_eq!(ended.result()["origin"]["kind"], "task-notification");
    assert!(near(ended.cost(), 0.3), "{ended:?}");
}

#[test]
fn signal_keeps_the_prompt_in_the_history() {
    let check = |signal: Signal, code: Option<i32>, results: usize| {
        let client = Client::new();
        let started = client.start(&format!("--session-id {A}"), "fake: cost 0.5\nfake: wait gate");
        until("it waits", || client.path("gate.waiting").exists());
        started.signal(signal);
        let ended = started.wait();
        assert_eq!((ended.code, ended.results().len()), (code, results), "{signal:?}");
        if let Some(result) = ended.results().first() {
            assert_eq!(result["subtype"], "error_during_execution");
            assert!(near(ended.cost(), 0.5));
        }
        client.run(&format!("--resume {A}"), "fake: say again");
        let history = client.invocations().pop().unwrap().history;
        let expected = [user("fake: cost 0.5\nfake: wait gate"), user("fake: say again")];
        assert_eq!(history, expected);
    };
    check(Signal::INT, Some(0), 1);
    check(Signal::TERM, Some(143), 0);
    check(Signal::HUP, Some(129), 0);
    check(Signal::KILL, None, 0);
}

#[test]
fn an_ignored_signal_does_nothing() {
    let client = Client::new();
    let started = client.start("", "fake: ignore TERM\nfake: wait gate\nfake: say done");
    until("it waits", || client.path("gate.waiting").exists());
    started.signal(Signal::TERM);
    fs::write(client.path("gate"), "").unwrap();
    let ended = started.wait();
    assert_eq!((ended.code, &ended.result()["result"]), (Some(0), &json!("done")));
}

#[test]
fn children_survive_sigkill_but_not_the_directory() {
    for line in ["grandchild", "daemon", "bare-daemon"] {
        let client = Client::new();
        let started = client.start("", &format!("fake: {line}\nfake: hang stall"));
        until("it has a child", || client.offspring().len() == 1);
        let child = client.offspring()[0];
        started.signal(Signal::KILL);
        assert_eq!(started.wait().code, None);
        assert_eq!(client.offspring(), [child], "{line}");
        let environment = fs::read(format!("/proc/{child}/environ")).unwrap();
        assert_eq!(environment.is_empty(), line == "bare-daemon");
        drop(client);
        until("it ends", || !is_alive(child));
    }
}

#[test]
fn sigterm_ends_tools_but_not_daemons() {
    let client = Client::new();
    let started = client.start("", "fake: grandchild\nfake: daemon\nfake: hang stall");
    until("it has both", || client.offspring().len() == 2);
    started.signal(Signal::TERM);
    assert_eq!(started.wait().code, Some(143));
    assert_eq!(client.offspring().len(), 1);
}

#[test]
fn every_kind_of_bad_output_is_printed() {
    let client = Client::new();
    let half = client.run("", "fake: say done\nfake: half");
    assert_eq!((half.code, half.results().len()), (Some(0), 0));
    assert!(!half.stdout.ends_with('\n') && half.stdout.ends_with('\u{fffd}'));
    let none = client.run("", "fake: say done\nfake: no-result\nfake: exit 3");
    assert_eq!(
        (none.code, none.kinds()),
        (Some(3), vec!["system/init".into(), "assistant".into()])
    );
    let noise = client.run("", "fake: not-json\nfake: stderr oops\nfake: say done");
    assert!(noise.stdout.contains("\nthis line is not JSON\n"));
    assert_eq!((noise.stderr.as_str(), &noise.result()["result"]), ("oops", &json!("done")));
    let flood = client.run("", "fake: flood 1000000\nfake: line 300000\nfake: say done");
    assert!(flood.stdout.len() > 1_300_000);
    assert!(flood.stdout.lines().any(|line| line.len() > 300_000));
    let tag = client.run("", "fake: tool-tag <goto>A.md</goto>\nfake: say done");
    assert!(tag.lines[2]["message"].to_string().contains("<goto>A.md</goto>"));
    assert_eq!(tag.result()["result"], "done");
    let killed = client.run("", "fake: say done\nfake: kill");
    assert_eq!((killed.code, killed.results().len()), (None, 0));
}

#[test]
fn hang_is_silent_stalls_or_follows_result() {
    let check = |line: &str, kinds: &[&str]| {
        let client = Client::new();
        let started = client.start("", &format!("{line}\nfake: say done"));
        let enough = kinds.len();
        until("it says so much", || {
            let said = fs::read_to_string(&started.stdout).unwrap();
            said.matches('\n').count() == enough && !client.invocations().is_empty()
        });
        started.signal(Signal::KILL);
        assert_eq!(started.wait().kinds(), kinds, "{line}");
    };
    check("fake: hang silent", &[]);
    check("fake: hang stall", &["system/init"]);
    check("fake: hang after-result", &["system/init", "assistant", "result/success"]);
}

#[test]
fn lines_depend_on_repetition_and_reminders() {
    let client = Client::new();
    let prompt = "fake[1]: error 529\nfake[2]: say two\nfake[3-]: say more\n\
                  fake[reminder 1]: say first\nfake[reminder 2]: say second";
    let check = |flags: String, prompt: &str, text: &str| {
        assert_eq!(client.run(&flags, prompt).result()["result"], text, "{prompt}");
    };
    let error = "API Error: 529 {\"type\":\"error\",\"error\":\"server_error\"}";
    check(format!("--session-id {A}"), prompt, error);
    check(format!("--resume {A}"), &format!("Go on.\n\n{prompt}"), "two");
    check(format!("--resume {A}"), "You forgot the tag.", "first");
    check(format!("--resume {A}"), "You forgot the tag again.", "second");
    check(format!("--resume {A}"), "And again.", "");
    check(String::new(), prompt, "more");
    check(String::new(), prompt, "more");
    let times: Vec<u32> = client.invocations().iter().map(|i| i.time).collect();
    assert_eq!(times, [1, 2, 1, 2, 3, 3, 4]);
}

#[test]
fn resume_ignores_appended_system_prompt_with_snapshot() {
    let client = Client::new();
    let check = |flags: String, expected: &str| {
        client.run(&flags, "fake: say hello");
        let last = client.invocations().pop().unwrap();
        assert_eq!(last.system_prompt.as_deref(), Some(expected), "{flags}");
    };
    check(format!("--session-id {A} --append-system-prompt one"), "one");
    check(format!("--resume {A} --append-system-prompt two"), "one");
    let off = "--append-system-prompt two --system-prompt-snapshot off";
    check(format!("--resume {A} {off}"), "two");
}

#[test]
fn two_clients_in_one_session_are_noticed() {
    let client = Client::new();
    client.run(&format!("--session-id {A}"), "fake: say one");
    let first = client.start(&format!("--resume {A}"), "fake: wait gate\nfake: say first");
    until("it waits", || client.path("gate.waiting").exists());
    client.run(&format!("--resume {A}"), "fake: say second");
    fs::write(client.path("gate"), "").unwrap();
    first.wait();
    let contended: Vec<bool> = client.invocations().iter().map(|i| i.contended).collect();
    assert_eq!(contended, [false, false, true]);
}

#[test]
fn invocation_records_arguments_prompt_and_environment() {
    let client = Client::new();
    client.run("--add-dir /a /b --effort high", "fake: say hello");
    let [only] = client.invocations().try_into().unwrap();
    assert_eq!(only.argv.join(" "), format!("{PRINT} --add-dir /a /b --effort high"));
    assert_eq!(only.values("--add-dir"), ["/a", "/b"]);
    assert_eq!(only.stdin.as_deref(), Some("fake: say hello"));
    assert_eq!(only.cwd, std::env::current_dir().unwrap());
    let config = only.environment.get("CLAUDE_CONFIG_DIR").unwrap();
    assert_eq!(Path::new(config), client.config.path());
}
