//! Another, unprivileged user of the machine. Only root can run these tests.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use raymond_store::host::{Host as _, ThisHost};

use super::web::Server;
use crate::harness::{Output, Project, Running, until};

const STRANGER: u32 = 65534;

/// A project whose directory every user may enter.
fn open_to_all(files: &[(&str, &str)]) -> Project {
    let project = Project::of(files);
    fs::set_permissions(project.root(), fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// Starts a line of bash as another user; `None`, with a printed reason, if that is impossible.
fn start_as_stranger(project: &Project, line: &str) -> Option<Running> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return None;
    }
    let become_ = ["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", line];
    Some(project.spawn("setpriv", &become_))
}

fn as_stranger(project: &Project, line: &str) -> Option<Output> {
    Some(start_as_stranger(project, line)?.wait())
}

/// `raymond` as ourselves, in a folder of the project.
fn within(project: &Project, folder: &str, words: &str) -> Output {
    let line = format!("cd {folder} && exec {} {words}", env!("CARGO_BIN_EXE_raymond"));
    project.spawn("bash", &["-c", &line]).wait()
}

const SLOW: &str = "until test -e ready; do sleep 0.02; done; echo '<result>x</result>'";

// proves: S53
#[test]
fn files_are_private_with_any_umask() {
    let start = "until test -e ready; do sleep 0.01; done; echo 'said'; echo '<goto>NEXT</goto>'";
    let next = format!("# {}\necho '<result>done</result>'", "x".repeat(20_000));
    let project = Project::of(&[("wf/START.sh", start), ("wf/NEXT.sh", &next)]);
    let line = format!("umask 000; exec {} run wf -d --run-id r", env!("CARGO_BIN_EXE_raymond"));
    assert_eq!(project.spawn("bash", &["-c", &line]).wait().code(), 0);
    // Now Raymond writes and runs the pinned copy.
    project.write("wf/NEXT.sh", "exit 1");
    project.write("ready", "");
    assert_eq!(project.raymond("wait r").code(), 0);
    let mut waiting = vec![project.path(".raymond")];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        seen += 1;
        // A link has no mode of its own: those beside a pinned script are as closed as their
        // directory.
        if !found.is_symlink() {
            assert_eq!(found.mode() & 0o077, 0, "{}", path.display());
        }
        if found.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 12, "{seen}");
}

// proves: S53, S54
#[test]
fn another_user_cannot_read_or_stop_a_run() {
    let project = open_to_all(&[("wf/START.sh", SLOW)]);
    // The other user may have no access to the build directory.
    fs::copy(env!("CARGO_BIN_EXE_raymond"), project.path("raymond")).unwrap();
    let running = project.start("run wf --run-id r");
    until("it runs", || project.events("r", "turn_started").len() == 1);
    for line in [
        "cat .raymond/runs/r/journal.jsonl",
        "ls .raymond",
        "./raymond status r",
        "./raymond stop r",
        "echo '{}' > .raymond/runs/r/inbox/x.json",
        "rm -rf .raymond",
        &format!("kill -USR1 {}", running.pid()),
    ] {
        let Some(output) = as_stranger(&project, line) else { break };
        assert_ne!(output.code(), 0, "{line}: {output:?}");
        assert_eq!(output.stdout, "", "{line}");
    }
    project.write("ready", "");
    running.wait().prints("x\n");
}

// proves: S56
#[test]
fn repository_of_another_user_above_is_rejected() {
    let project = open_to_all(&[("shared/mine/wf/START.sh", "echo '<result>x</result>'")]);
    fs::set_permissions(project.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    within(&project, "shared/mine", "run wf").prints("x\n");
    let plant =
        "cd shared && mkdir .git && touch .git/HEAD && echo 'budget = \"none\"' > raymond.toml";
    let Some(planted) = as_stranger(&project, plant) else { return };
    assert_eq!(planted.code(), 0, "{planted:?}");
    for command in ["run wf", "config", "list"] {
        within(&project, "shared/mine", command).prints("").mentions(
            7,
            &["raymond: could not use /project/shared/.git: it belongs to another user (65534)\n"],
        );
    }
    project.write("shared/mine/.git/HEAD", "");
    within(&project, "shared/mine", "run wf").prints("x\n");
}

// proves: S57
#[test]
fn runs_and_configuration_of_others_are_rejected() {
    let check = |plant: &str, named: &str| {
        let project =
            open_to_all(&[("wf/START.sh", "echo '<result>x</result>'"), ("shared/x", "")]);
        fs::set_permissions(project.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        let Some(planted) = as_stranger(&project, &format!("cd shared && {plant}")) else { return };
        assert_eq!(planted.code(), 0, "{planted:?}");
        within(&project, "shared", "run ../wf").prints("").mentions(
            7,
            &[&format!("could not use /project/shared/{named}: it belongs to another user")],
        );
    };
    check("mkdir -m 777 .raymond", ".raymond");
    check("mkdir theirs && ln -s theirs .raymond", ".raymond");
    check("echo 'budget = \"none\"' > raymond.toml", "raymond.toml");
}

/// The files in a container often belong to a user of its host.
// proves: S57
#[test]
fn directory_of_another_user_can_be_used() {
    let project = open_to_all(&[("host/x", "")]);
    fs::set_permissions(project.path("host"), fs::Permissions::from_mode(0o777)).unwrap();
    let theirs = "mkdir host/repository && cd host/repository && mkdir .git wf && touch .git/HEAD raymond.toml \
                  && echo 'echo \"<result>x</result>\"' > wf/START.sh";
    let Some(made) = as_stranger(&project, theirs) else { return };
    assert_eq!(made.code(), 0, "{made:?}");
    assert_eq!(fs::metadata(project.path("host/repository/.git")).unwrap().uid(), STRANGER);
    within(&project, "host/repository", "run wf").prints("x\n");
}

// proves: S58
#[test]
fn process_of_another_user_is_never_a_leftover() {
    let project = open_to_all(&[("wf/START.sh", "exit 1")]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    let header: serde_json::Value =
        serde_json::from_str(project.read(".raymond/runs/r/journal.jsonl").lines().next().unwrap())
            .unwrap();
    let forged =
        format!("RAYMOND_TURN={}/main.1.1.1 exec sleep 300", header["nonce"].as_str().unwrap());
    let Some(mut stranger) = start_as_stranger(&project, &forged) else { return };
    until("it carries the marker", || project.processes("r").len() == 1);
    let seen = project.raymond("status r").stdout;
    assert!(!seen.contains("left running"), "{seen}");
    project.raymond("cancel r");
    project.raymond("doctor --fix");
    assert!(stranger.is_alive());
}

/// A signal that its receiver does not expect ends it.
// proves: S14
#[test]
fn planted_lock_signals_no_process() {
    let project = Project::of(&[("wf/START.sh", "exit 1")]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    let mut bystander = project.spawn("sleep", &["300"]);
    let mut owner = ThisHost.me();
    (owner.pid, owner.started) = (bystander.pid(), owner.started + 1);
    let lock = format!(
        r#"{{"host":"{}","boot":"{}","pid":{},"started":{},"since":1,"version":"1"}}"#,
        owner.host,
        owner.boot,
        owner.pid,
        u64::MAX
    );
    project.write(".raymond/runs/r/lock", lock);
    project.raymond("cancel r");
    assert!(bystander.is_alive());
}

// proves: S59
#[test]
fn another_user_cannot_call_the_server() {
    let project = open_to_all(&[]);
    let server = Server::start(&project, &["--http", "127.0.0.1:0"]);
    let head = format!(
        "GET /mcp HTTP/1.1\\r\\nHost: {}\\r\\nConnection: close\\r\\n\\r\\n",
        server.address
    );
    let (host, port) = server.address.rsplit_once(':').unwrap();
    // The server may refuse and close the connection before `printf` writes; that must not end
    // bash.
    let line =
        format!("trap '' PIPE; exec 3<>/dev/tcp/{host}/{port}; printf '{head}' >&3; cat <&3");
    let ours = project.spawn("bash", &["-c", &line]).wait();
    assert!(!ours.stdout.contains("another user's"), "{ours:?}");
    // They are refused before they have sent anything.
    let silent = format!("exec 3<>/dev/tcp/{host}/{port}; cat <&3");
    for line in [&line, &silent] {
        let Some(theirs) = as_stranger(&project, line) else { return };
        assert!(theirs.stdout.starts_with("HTTP/1.1 403 "), "{theirs:?}");
        assert!(
            theirs.stdout.ends_with("forbidden: this server is another user's\n"),
            "{theirs:?}"
        );
    }
}
