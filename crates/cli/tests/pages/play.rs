//! The environment of a page: a private home, a project in it, and the binary on the path.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use raymond_testkit::private_command::private_command;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// The longest time that any command of a page may take.
const LIMIT: Duration = Duration::from_mins(10);

pub(crate) struct Stage {
    home: TempDir,
}

impl Stage {
    /// An empty project, or one with the examples if the page mentions them. The README of an
    /// example is played in its directory.
    pub(crate) fn for_page(top: &Path, page: &Path, text: &str) -> Self {
        let stage = Self { home: tempfile::tempdir().unwrap() };
        let project = stage.project();
        fs::create_dir_all(&project).unwrap();
        let example = page.strip_prefix(top.join("examples")).ok().and_then(Path::parent);
        if text.contains("examples") || example.is_some() {
            copy(&top.join("examples"), &project.join("examples"));
        }
        let start = match example {
            Some(name) => project.join("examples").join(name),
            None => project,
        };
        fs::write(stage.path("directory"), start.to_str().unwrap()).unwrap();
        fs::write(
            stage.path(".gitconfig"),
            "[user]\nname = You\nemail = you@example.org\n[init]\ndefaultBranch = main\n",
        )
        .unwrap();
        fs::create_dir(stage.path("bin")).unwrap();
        let binary = env!("CARGO_BIN_EXE_raymond");
        std::os::unix::fs::symlink(binary, stage.path("bin/raymond")).unwrap();
        stage
    }

    fn home(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The directory after the last command.
    fn directory(&self) -> PathBuf {
        PathBuf::from(fs::read_to_string(self.path("directory")).unwrap().trim_end())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a script in that directory, and returns its exit code and its output.
    pub(crate) fn run(&self, script: &str) -> (i32, Vec<String>) {
        let printed = self.path("printed");
        let output = File::create(&printed).unwrap();
        let script = format!("{script}\ncode=$?; pwd > ~/directory; exit $code");
        let mut command = private_command("bash", &self.home());
        let path = std::env::var("PATH").unwrap();
        command
            .args(["-c", &script])
            .current_dir(self.directory())
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.home())
            // The directories that the pages name.
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("XDG_STATE_HOME", self.path(".local/state"))
            .env("GIT_CONFIG_GLOBAL", self.path(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            // No client of the user.
            .env("RAYMOND_CLAUDE", "no-such-client")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0);
        let code = wait(&mut command, &script);
        let text = String::from_utf8_lossy(&fs::read(&printed).unwrap()).into_owned();
        let text = text.replace(self.home().to_str().unwrap(), "~");
        (code, text.lines().map(|line| line.trim_end().to_owned()).collect())
    }
}

/// The exit code of a command that ends in time.
fn wait(command: &mut Command, script: &str) -> i32 {
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if start.elapsed() > LIMIT {
            let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            kill_process_group(group, Signal::KILL).ok();
            child.wait().ok();
            panic!("this took longer than {LIMIT:?}: {script}");
        }
        sleep(Duration::from_millis(5));
    }
}

/// A copy of a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
