//! What is killed: a run of every kind, and what must hold of it however often that happens.

mod client;
mod states;
mod steps;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Project, Running};
use raymond_testkit::strike;

pub(crate) use client::Client;
pub(crate) use states::States;
pub(crate) use steps::Steps;
pub(crate) use tool::Tool;

/// What was done to a run before it came to its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Strikes {
    /// Its owner was killed so many times; whatever it had started lived on.
    pub(crate) kills: usize,
    /// It was asked to end so many times, and ended whatever it had started.
    pub(crate) ends: usize,
}

impl Strikes {
    pub(crate) fn kills(kills: usize) -> Self {
        Self { kills, ends: 0 }
    }

    /// How often turns in flight were cut off.
    fn interruptions(self) -> usize {
        self.kills + self.ends
    }
}

/// A run in a project of its own.
pub(crate) trait Scene {
    /// What it comes to when nobody disturbs it.
    type Outcome: Send + Sync;

    /// A fresh one.
    fn new() -> Self;

    /// Starts a program in its project.
    fn start(&self, words: &[&str]) -> Running;

    /// The words that start the run, or continue with it.
    fn words(&self) -> &'static str;

    /// What a run that is over came to.
    fn outcome(&self) -> Self::Outcome;

    /// Checks everything that must hold of a run that is over, after all that was done to it.
    fn audit(&self, expected: &Self::Outcome, strikes: Strikes);

    /// Where it is.
    fn project(&self) -> &Project;

    /// The processes that belong to the run.
    fn processes(&self) -> Vec<u32> {
        self.project().processes("r")
    }

    /// Starts the run, or continues with it.
    fn start_or_resume(&self) -> Running {
        let words: Vec<&str> = self.words().split_whitespace().collect();
        self.start(&[&[env!("CARGO_BIN_EXE_raymond")], &words[..]].concat())
    }

    /// The same, stopped before its first step: for whoever follows it.
    fn start_paused(&self) -> Running {
        let program = strike::stopped(env!("CARGO_BIN_EXE_raymond").as_ref());
        let mut words: Vec<&str> = program.iter().map(String::as_str).collect();
        words.extend(self.words().split_whitespace());
        self.start(&words)
    }

    /// Comes to its end, and everything holds.
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

/// What an undisturbed run comes to.
#[track_caller]
pub(crate) fn undisturbed<S: Scene>() -> S::Outcome {
    let scene = S::new();
    let output = scene.start_or_resume().wait();
    assert_eq!(output.code(), 0, "{output:?}");
    let outcome = scene.outcome();
    scene.audit(&outcome, Strikes::default());
    outcome
}
