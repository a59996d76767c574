//! The moments of a kill, and the fate of the client until the next owner starts.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use super::scene::{FLAGS, Scene, kill_clients};
use crate::harness::{Running, until};

/// The moments at which the owner is killed, in the order of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The journal contains the start of the turn.
    Recorded,
    /// The transcript of the client exists.
    Opened,
    /// The client runs, and its process may not be recorded yet.
    Executed,
    /// Its process is recorded.
    Spawned,
    /// The client has written its first line.
    Spoken,
    /// The client has saved the prompt.
    Kept,
    /// The model has received the request, and holds back its reply.
    Asked,
    /// As `Asked`, and the next owner is killed as soon as it has recorded the resume.
    AskedTwice,
    /// The transcript contains the call of the tool, which may run or not.
    Called,
    /// The tool runs.
    Tool,
    /// As `Tool`, and the next owner is killed, too.
    ToolTwice,
    /// The tool has ended, and the client may know it or not.
    ToolEnded,
    /// The transcript contains the output of the tool.
    Returned,
    /// The model has received the output of the tool, and holds back its reply.
    ToolReported,
    /// As `ToolReported`, and the next owner is killed, too.
    ToolReportedTwice,
    /// The owner is suspended since then, and misses everything that the client does.
    Blind(Since),
    /// The transcript contains the last message of the model. Nothing blocks the client.
    Answered,
    /// The transcript contains the result.
    Resulted,
    /// The journal contains the end of the turn.
    Settled,
    /// This long after the start of the run is recorded.
    After(Duration),
}

/// The moment since which an owner is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    Asked,
    ToolReported,
}

/// The fate of the client until the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It still runs.
    Adopted,
    /// It continues to its end.
    Finished,
    /// It is killed, too.
    Killed,
}

impl Moment {
    /// Starts the run, and kills its owner at this moment.
    pub(crate) fn kill_owner(self, scene: &Scene) {
        self.prepare(scene);
        let running = scene.stage.start_run(FLAGS);
        self.reach(scene, &running);
        kill(running);
        if let Self::AskedTwice | Self::ToolTwice | Self::ToolReportedTwice = self {
            kill(resumed(scene));
        }
    }

    /// Opens the gates before this moment.
    fn prepare(self, scene: &Scene) {
        match self {
            Self::Recorded
            | Self::Opened
            | Self::Executed
            | Self::Spawned
            | Self::Spoken
            | Self::Kept
            | Self::Asked
            | Self::AskedTwice
            | Self::Blind(Since::Asked) => {}
            Self::Called | Self::Tool | Self::ToolTwice => scene.stage.opens("first"),
            Self::ToolEnded
            | Self::Returned
            | Self::ToolReported
            | Self::ToolReportedTwice
            | Self::Blind(Since::ToolReported) => {
                scene.stage.opens("first");
                scene.stage.opens("tool");
            }
            Self::Answered | Self::Resulted | Self::Settled | Self::After(_) => {
                scene.open_all_gates();
            }
        }
    }

    fn reach(self, scene: &Scene, running: &Running) {
        let recorded = |event: &str| !scene.turn_events(event).is_empty();
        let until = |is_so: &dyn Fn() -> bool| until(&format!("it is {self:?}"), is_so);
        match self {
            Self::Recorded => until(&|| recorded("turn_started")),
            Self::Opened => until(&|| scene.has_a_transcript()),
            Self::Executed => until(&|| recorded("turn_started") && !scene.clients().is_empty()),
            Self::Spawned => until(&|| !scene.file("pid").is_empty()),
            Self::Spoken => until(&|| scene.file("jsonl").contains('\n')),
            Self::Kept => until(&|| scene.keeps_the_prompt()),
            Self::Asked | Self::AskedTwice => scene.stage.reaches("first"),
            Self::Called => until(&|| scene.transcribes("assistant", "tool_use")),
            Self::Tool | Self::ToolTwice => scene.stage.reaches("tool"),
            Self::ToolEnded => until(&|| scene.tool().1 > 0),
            Self::Returned => until(&|| scene.transcribes("user", "tool_result")),
            Self::ToolReported | Self::ToolReportedTwice => scene.stage.reaches("last"),
            Self::Blind(since) => since.pause_owner(scene, running),
            Self::Answered => until(&|| scene.transcribes("assistant", "<result>")),
            Self::Resulted => until(&|| scene.transcribes("result", "")),
            Self::Settled => until(&|| recorded("turn_settled")),
            Self::After(time) => {
                until(&|| !scene.stage.events("run_started").is_empty());
                sleep(time);
            }
        }
    }
}

impl Since {
    /// Suspends the owner until the client is done.
    fn pause_owner(self, scene: &Scene, running: &Running) {
        scene.stage.reaches(match self {
            Self::Asked => "first",
            Self::ToolReported => "last",
        });
        running.signal(Signal::STOP);
        scene.open_all_gates();
        until("the client is done", || scene.clients().is_empty());
        assert!(scene.turn_events("turn_settled").is_empty(), "no owner recorded the end");
    }
}

impl Ending {
    /// Ends the client accordingly, and starts the next owner, which nothing blocks.
    pub(crate) fn resume(self, scene: &Scene) -> Running {
        match self {
            Self::Adopted => {}
            Self::Finished => {
                scene.open_all_gates();
                until("the client is done", || scene.clients().is_empty());
            }
            Self::Killed => kill_clients(&scene.stage),
        }
        let next = resumed(scene);
        scene.open_all_gates();
        next
    }
}

/// Starts an owner, and waits until it has recorded the resume or had nothing to do.
fn resumed(scene: &Scene) -> Running {
    let count = || scene.stage.events("run_resumed").len();
    let before = count();
    let mut next = scene.stage.start("resume r");
    until("the run is resumed", || count() > before || !next.is_alive());
    next
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    running.wait();
}
