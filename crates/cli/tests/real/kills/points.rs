//! When the owner is killed, and what becomes of its client until the next one comes.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use super::scene::{Scene, kill_clients};
use crate::harness::{Running, until};

/// When the owner is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The journal says that the turn starts.
    Recorded,
    /// The client has a process, and has said nothing.
    Spawned,
    /// The client has said its first word.
    Spoken,
    /// The model has been asked, and holds its reply.
    Asked,
    /// The tool runs.
    Tool,
    /// The model has been told what the tool said, and holds its reply.
    AskedAgain,
    /// The owner stands still since then, and sees nothing of what the client does.
    BlindSince(Gate),
    /// The journal says how the turn ended.
    Settled,
    /// The model has been asked; then the next owner is killed, too, when it has recorded that it
    /// goes on.
    AskedTwice,
    /// So long after the start.
    After(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    First,
    Last,
}

/// What becomes of the client until somebody resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It still runs.
    Adopted,
    /// It goes on to its end.
    Finished,
    /// It is killed, too.
    Killed,
}

impl Moment {
    /// Starts the run, and kills its owner then.
    pub(crate) fn strike(self, scene: &Scene) {
        if let Self::Settled | Self::After(_) = self {
            scene.opens_all();
        }
        if let Self::AskedAgain | Self::BlindSince(Gate::Last) = self {
            scene.stage.opens("first");
            scene.stage.opens("tool");
        }
        let running = scene.stage.start_run(super::scene::FLAGS);
        self.reach(scene, &running);
        kill(running);
        if self == Self::AskedTwice {
            kill(resumed(scene));
        }
    }

    fn reach(self, scene: &Scene, running: &Running) {
        let stage = &scene.stage;
        match self {
            Self::Recorded => until("it is recorded", || !scene.of_the_turn("turn_started").is_empty()),
            Self::Spawned => until("it has a process", || !scene.file("pid").is_empty()),
            Self::Spoken => until("it has spoken", || scene.transcript().contains('\n')),
            Self::Asked | Self::AskedTwice => stage.reaches("first"),
            Self::Tool => {
                stage.opens("first");
                stage.reaches("tool");
            }
            Self::AskedAgain => stage.reaches("last"),
            Self::BlindSince(gate) => {
                stage.reaches(gate.name());
                running.signal(Signal::STOP);
                scene.opens_all();
                until("the client is done", || scene.clients().is_empty());
            }
            Self::Settled => until("it is settled", || !scene.of_the_turn("turn_settled").is_empty()),
            Self::After(time) => sleep(time),
        }
    }
}

impl Gate {
    const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

impl Ending {
    /// What happens between the owners; returns the next one, which nothing holds up.
    pub(crate) fn come(self, scene: &Scene) -> Running {
        match self {
            Self::Adopted => {}
            Self::Finished => {
                scene.opens_all();
                until("the client is done", || scene.clients().is_empty());
            }
            Self::Killed => kill_clients(&scene.stage),
        }
        let next = resumed(scene);
        scene.opens_all();
        next
    }
}

/// An owner that has recorded that it goes on.
fn resumed(scene: &Scene) -> Running {
    let before = scene.stage.events("run_resumed").len();
    let mut next = scene.stage.start("resume r");
    until("it goes on", || scene.stage.events("run_resumed").len() > before || !next.is_alive());
    next
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    running.wait();
}
