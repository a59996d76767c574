//! When the owner is killed, and what becomes of its client until the next one comes.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use super::scene::{FLAGS, Scene, kill_clients};
use crate::harness::{Running, until};

/// When the owner is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The journal says that the turn starts.
    Recorded,
    /// The client has a process.
    Spawned,
    /// The client has said its first word.
    Spoken,
    /// The model has been asked, and holds its reply.
    Asked,
    /// The same; and the next owner is killed as soon as it has recorded that it goes on.
    AskedTwice,
    /// The tool runs.
    Tool,
    /// The model has been told what the tool said, and holds its reply.
    ToldTheModel,
    /// The owner stands still since then, and sees nothing of what the client does to its end.
    Blind(Since),
    /// The journal says how the turn ended.
    Settled,
    /// So long after the journal says that the run exists.
    After(Duration),
}

/// Since when an owner stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    Asked,
    ToldTheModel,
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
        self.prepare(scene);
        let running = scene.stage.start_run(FLAGS);
        self.reach(scene, &running);
        kill(running);
        if self == Self::AskedTwice {
            kill(resumed(scene));
        }
    }

    /// Opens what does not hold up the turn before this moment.
    fn prepare(self, scene: &Scene) {
        match self {
            Self::Tool => scene.stage.opens("first"),
            Self::ToldTheModel | Self::Blind(Since::ToldTheModel) => {
                scene.stage.opens("first");
                scene.stage.opens("tool");
            }
            Self::Settled | Self::After(_) => scene.opens_all(),
            Self::Recorded
            | Self::Spawned
            | Self::Spoken
            | Self::Asked
            | Self::AskedTwice
            | Self::Blind(Since::Asked) => {}
        }
    }

    fn reach(self, scene: &Scene, running: &Running) {
        let stage = &scene.stage;
        let told = |event: &str| !scene.of_the_turn(event).is_empty();
        match self {
            Self::Recorded => until("it is recorded", || told("turn_started")),
            Self::Spawned => until("it has a process", || !scene.file("pid").is_empty()),
            Self::Spoken => until("it has spoken", || scene.file("jsonl").contains('\n')),
            Self::Asked | Self::AskedTwice => stage.reaches("first"),
            Self::Tool => stage.reaches("tool"),
            Self::ToldTheModel => stage.reaches("last"),
            Self::Blind(since) => {
                match since {
                    Since::Asked => stage.reaches("first"),
                    Since::ToldTheModel => stage.reaches("last"),
                }
                running.signal(Signal::STOP);
                scene.opens_all();
                until("the client is done", || scene.clients().is_empty());
                assert!(!told("turn_settled"), "nobody saw it");
            }
            Self::Settled => until("it is settled", || told("turn_settled")),
            Self::After(time) => {
                until("the run exists", || !stage.events("run_started").is_empty());
                sleep(time);
            }
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

/// An owner that has recorded that it goes on, or had nothing to do.
fn resumed(scene: &Scene) -> Running {
    let count = || scene.stage.events("run_resumed").len();
    let before = count();
    let mut next = scene.stage.start("resume r");
    until("it goes on", || count() > before || !next.is_alive());
    next
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    running.wait();
}
