//! Runs this program as a child process and shows its lines as they arrive.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::config;
use crate::failure::Failure;

use super::{differs, directory, expect};

/// Time limit of a child. Its runs take a few seconds, so a slower one hangs.
const PATIENCE: Duration = Duration::from_secs(25);

pub(super) struct Binary {
    path: PathBuf,
    home: PathBuf,
}

pub(super) struct Running {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

/// The exit code and the output of an ended child.
pub(super) struct FinishedCommand {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: Vec<String>,
}

impl Binary {
    /// Finds the program of this process, to be run in `home`.
    pub(super) fn this(home: &Path) -> Result<Self, Failure> {
        let path = std::env::current_exe().map_err(|error| {
            Failure::environment(format!("could not find this program: {error}"))
        })?;
        Ok(Self { path, home: home.to_owned() })
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<FinishedCommand, Failure> {
        let running = self.start(arguments)?;
        match timeout(PATIENCE, running.finish()).await {
            Ok(finished) => finished.map_err(lost),
            Err(_) => {
                Err(differs(format!("`raymond {}` did not end in time", arguments.join(" "))))
            }
        }
    }

    /// Starts a command.
    ///
    /// It does not go through `backends::process`, which collects the output of a turn until its
    /// end and ends whole process trees. The demo shows every line at once, and kills one process
    /// only.
    pub(super) fn start(&self, arguments: &[&str]) -> Result<Running, Failure> {
        directory::command(arguments);
        #[expect(clippy::disallowed_methods, reason = "an interactive child, see above")]
        let mut command = Command::new(&self.path);
        // A Ctrl-C drops the future of the act; its child must not outlive the demo.
        command.args(arguments).current_dir(&self.home).kill_on_drop(true);
        // The user's own configuration must not change the demo.
        command.env("XDG_CONFIG_HOME", &self.home);
        for variable in config::variables() {
            command.env_remove(variable);
        }
        // The directory is removed at the end, so it must not remain among the user's projects.
        command.env("RAYMOND_REGISTRY", "false");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(lost)?;
        let stderr = child.stderr.take().ok_or_else(|| differs("a child has no stderr"))?;
        Ok(Running { child, stderr: BufReader::new(stderr).lines() })
    }
}

impl Running {
    /// Shows the lines until the child has ended.
    async fn finish(mut self) -> std::io::Result<FinishedCommand> {
        let mut stderr = Vec::new();
        while let Some(line) = self.stderr.next_line().await? {
            directory::quote(&line);
            stderr.push(line);
        }
        // The output of the demo's runs fits into a pipe buffer, so reading stdout only now cannot
        // block the child.
        let mut stdout = String::new();
        if let Some(pipe) = &mut self.child.stdout {
            pipe.read_to_string(&mut stdout).await?;
        }
        stdout.lines().for_each(directory::quote);
        directory::say("");
        let code = self.child.wait().await?.code();
        Ok(FinishedCommand { code, stdout, stderr })
    }

    /// Shows the lines up to the first one that is `the_moment`, then kills the child.
    ///
    /// Raymond prints a line after its record is durable, so the journal contains the event
    /// already.
    pub(super) async fn kill_when(
        mut self,
        the_moment: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        loop {
            let line = timeout(PATIENCE, self.stderr.next_line()).await;
            let line = line.map_err(|_| differs("the moment to kill never came"))?;
            let Some(line) = line.map_err(lost)? else {
                return Err(differs("the run ended before it could be killed"));
            };
            directory::quote(&line);
            if the_moment(&line) {
                break;
            }
        }
        directory::kill(self.child.id());
        self.child.start_kill().map_err(lost)?;
        let status: ExitStatus = self.child.wait().await.map_err(lost)?;
        expect("the signal that ended the run", &status.signal(), &Some(9))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err calls")]
fn lost(error: std::io::Error) -> Failure {
    Failure::environment(format!("could not run this program: {error}"))
}
