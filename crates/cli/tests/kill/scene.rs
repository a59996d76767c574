//! What is killed: a run of every kind, and what must hold of it however often that happens.

mod client;
mod states;
mod steps;

use crate::harness::{Project, Running};
use raymond_testkit::strike;

pub(crate) use client::Client;
pub(crate) use states::States;
pub(crate) use steps::Steps;

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
}

/// A run in a project of its own.
pub(crate) trait Scene {
    /// What it comes to when nobody disturbs it.
    type Outcome: Send + Sync;

    /// A fresh one.
    fn new() -> Self;

    /// Starts a program in its project.
    fn start(&self, words: &[&str]) -> Running;

    /// The words that start the run, or go on with it.
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

    /// Starts the run, or goes on with it.
    fn goes_on(&self) -> Running {
        let words: Vec<&str> = self.words().split_whitespace().collect();
        self.start(&[&[env!("CARGO_BIN_EXE_raymond")], &words[..]].concat())
    }

    /// The same, stopped before its first step: for whoever follows it.
    fn stands_ready(&self) -> Running {
        let program = strike::stopped(env!("CARGO_BIN_EXE_raymond").as_ref());
        let mut words: Vec<&str> = program.iter().map(String::as_str).collect();
        words.extend(self.words().split_whitespace());
        self.start(&words)
    }

    /// Comes to its end, and everything holds.
    #[track_caller]
    fn finishes(&self, expected: &Self::Outcome, strikes: Strikes) {
        let output = self.goes_on().wait();
        assert_eq!(output.code(), 0, "{output:?}");
        self.audit(expected, strikes);
        assert_eq!(self.processes(), [0; 0], "nothing is left running");
    }
}

/// What an undisturbed run comes to.
#[track_caller]
pub(crate) fn undisturbed<S: Scene>() -> S::Outcome {
    let scene = S::new();
    let output = scene.goes_on().wait();
    assert_eq!(output.code(), 0, "{output:?}");
    let outcome = scene.outcome();
    scene.audit(&outcome, Strikes::default());
    outcome
}
