//! This same program, run as a child whose lines are shown as they come.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::config::Layer;
use crate::failure::Failure;

use super::{differs, directory, expect};

/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(25);

/// This program.
pub(super) struct Binary {
    path: PathBuf,
    home: PathBuf,
}

/// A child that runs.
pub(super) struct Running {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

/// What a child that ended has said.
pub(super) struct Finished {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: Vec<String>,
}

impl Binary {
    /// The program that is running, to be run in `home`.
    pub(super) fn this(home: &Path) -> Result<Self, Failure> {
        let path = std::env::current_exe().map_err(|error| {
            Failure::environment(format!("could not find this program: {error}"))
        })?;
        Ok(Self { path, home: home.to_owned() })
    }

    /// Runs it with these arguments to its end.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<Finished, Failure> {
        let running = self.start(arguments)?;
        match timeout(PATIENCE, running.finish()).await {
            Ok(finished) => finished.map_err(lost),
            Err(_) => {
                Err(differs(format!("`raymond {}` did not end in time", arguments.join(" "))))
            }
        }
    }

    /// Starts it with these arguments.
    ///
    /// Not through `backends::process`: that door gathers what a turn says until its end, and ends
    /// whole trees. Here every line is shown at once, and one process is killed and nothing else.
    pub(super) fn start(&self, arguments: &[&str]) -> Result<Running, Failure> {
        directory::command(arguments);
        #[expect(clippy::disallowed_methods, reason = "an interactive child, see above")]
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.home).kill_on_drop(true);
        // Nobody's own configuration decides how the demo goes.
        command.env("XDG_CONFIG_HOME", &self.home);
        for key in Layer::KEYS {
            command.env_remove(format!("RAYMOND_{}", key.to_ascii_uppercase()));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(lost)?;
        let stderr = child.stderr.take().ok_or_else(|| differs("a child has no stderr"))?;
        Ok(Running { child, stderr: BufReader::new(stderr).lines() })
    }
}

impl Running {
    /// Shows its lines until it has ended.
    async fn finish(mut self) -> std::io::Result<Finished> {
        let mut stderr = Vec::new();
        while let Some(line) = self.stderr.next_line().await? {
            directory::quote(&line);
            stderr.push(line);
        }
        // What the runs of the demo print fits into a pipe, so it could wait until now.
        let mut stdout = String::new();
        if let Some(pipe) = &mut self.child.stdout {
            pipe.read_to_string(&mut stdout).await?;
        }
        stdout.lines().for_each(directory::quote);
        directory::say("");
        let code = self.child.wait().await?.code();
        Ok(Finished { code, stdout, stderr })
    }

    /// Shows its lines up to the first one that is `the_moment`, and kills it then.
    ///
    /// A line is printed when what it tells is durable, so the journal knows of it too.
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
