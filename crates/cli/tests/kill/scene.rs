//! The runs that are killed, one for each kind, and the rules that hold after any number of kills.

mod client;
mod states;
mod steps;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Project, Running};
use raymond_testkit::ptrace;

pub(crate) use client::Client;
pub(crate) use states::States;
pub(crate) use steps::Steps;
pub(crate) use tool::Tool;

/// The number of interruptions of a run before its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Strikes {
    /// Kills of the owner; the processes that it had started continued.
    pub(crate) kills: usize,
    /// Requests to end; the owner ended the processes that it had started.
    pub(crate) ends: usize,
}

impl Strikes {
    pub(crate) fn kills(kills: usize) -> Self {
        Self { kills, ends: 0 }
    }

    /// The number of interruptions of turns in flight.
    fn interruptions(self) -> usize {
        self.kills + self.ends
    }
}

/// A run in a project of its own.
pub(crate) trait Scene {
    /// The outcome of an undisturbed run.
    type Outcome: Send + Sync;

    fn new() -> Self;

    /// Starts a program in its project.
    fn start(&self, words: &[&str]) -> Running;

    /// The arguments that start the run, or resume it.
    fn words(&self) -> &'static str;

    /// Returns the outcome of an ended run.
    fn outcome(&self) -> Self::Outcome;

    /// Checks an ended run after all interruptions.
    fn audit(&self, expected: &Self::Outcome, strikes: Strikes);

    fn project(&self) -> &Project;

    /// The processes that belong to the run.
    fn processes(&self) -> Vec<u32> {
        self.project().processes("r")
    }

    /// Starts the run, or resumes it.
    fn start_or_resume(&self) -> Running {
        let words: Vec<&str> = self.words().split_whitespace().collect();
        self.start(&[&[env!("CARGO_BIN_EXE_raymond")], &words[..]].concat())
    }

    /// Starts or resumes the run, but stops the process before its first instruction, so that it
    /// can be traced.
    fn start_paused(&self) -> Running {
        let program = ptrace::stopped_command(env!("CARGO_BIN_EXE_raymond").as_ref());
        let mut words: Vec<&str> = program.iter().map(String::as_str).collect();
        words.extend(self.words().split_whitespace());
        self.start(&words)
    }

    /// Resumes the run to its end, and checks it.
    #[track_caller]
    fn finishes(&self, expected: &Self::Outcome, strikes: Strikes) {
        let output = self.start_or_resume().wait();
        assert_eq!(output.code(), 0, "{output:?}");
        self.audit(expected, strikes);
        assert_eq!(self.processes(), [0; 0], "nothing is left running");
        let unfinished = unfinished(&self.project().path(".raymond"));
        assert!(unfinished.is_empty(), "{unfinished:?}");
    }

    /// Checks that each time no more turns were started again than may be in flight.
    #[track_caller]
    fn starts_few_again(&self, in_flight: usize, strikes: Strikes) {
        let count = |name| self.project().events("r", name).len();
        let (started, settled) = (count("turn_started"), count("turn_settled"));
        let most = settled + in_flight * strikes.interruptions();
        assert!(started <= most, "{started} turns started, {settled} settled, {strikes:?}");
    }
}

/// The files in a directory that a killed writer did not finish.
fn unfinished(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(unfinished(&entry.path()));
        } else if entry.file_name().to_str().unwrap().starts_with(".temporary-") {
            found.push(entry.path());
        }
    }
    found
}

/// Returns the outcome of an undisturbed run.
#[track_caller]
pub(crate) fn undisturbed<S: Scene>() -> S::Outcome {
    let scene = S::new();
    let output = scene.start_or_resume().wait();
    assert_eq!(output.code(), 0, "{output:?}");
    let outcome = scene.outcome();
    scene.audit(&outcome, Strikes::default());
    outcome
}
