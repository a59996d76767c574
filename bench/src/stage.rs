//! Where programs are measured: what is compared, and a fresh directory for each attempt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use raymond_core::run::{Event, Record};
use raymond_store::Journal;
use raymond_store::disk::RealDisk;
use tempfile::TempDir;

use crate::measure::{Came, Cost, Running, program};
use crate::series::{Costs, Series};

/// The programs that are compared.
pub(crate) struct Stage {
    /// How often each of them has its turn.
    pub(crate) rounds: u32,
    /// Where the programs are.
    pub(crate) programs: PathBuf,
    /// Where others are, if they are measured, too.
    pub(crate) peers: Option<PathBuf>,
    /// The directories of all attempts, until everything is measured.
    // Not removed one by one: some file systems look at recently removed names whenever a file is
    // created, and the next attempt would pay for that.
    pub(crate) places: TempDir,
}

impl Stage {
    /// Returns the cost of another tool, or zero if other tools are not measured.
    pub(crate) fn peer(&self, attempt: impl FnOnce(&Path) -> Result<Cost>) -> Result<Cost> {
        self.peers.as_deref().map_or(Ok(Cost::default()), attempt)
    }

    /// That figure of it, where they are measured.
    pub(crate) fn shown(&self, took: Series) -> Option<Series> {
        self.peers.is_some().then_some(took)
    }

    /// Which Raymond it is.
    pub(crate) fn version(&self) -> Result<String> {
        let place = self.place(&[])?;
        place.run(place.ours("raymond", "--version"))?;
        Ok(place.read("stdout")?.lines().next().unwrap_or_default().to_owned())
    }

    /// A fresh directory with these files.
    pub(crate) fn place(&self, files: &[(&str, &str)]) -> Result<Place> {
        let directory = tempfile::tempdir_in(self.places.path())?.keep();
        let place = Place { directory, programs: self.programs.clone() };
        for (name, text) in files {
            place.write(name, text)?;
        }
        Ok(place)
    }
}

/// A directory of its own, and the programs that work in it.
pub(crate) struct Place {
    directory: PathBuf,
    programs: PathBuf,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path().join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, text).with_context(|| format!("writing {name}"))
    }

    pub(crate) fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.path().join(name)).with_context(|| format!("reading {name}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// One of our programs, with these words.
    pub(crate) fn ours(&self, name: &str, words: &str) -> Command {
        let mut command = program(&self.programs.join(name), self.path());
        command.args(words.split_whitespace());
        command
    }

    pub(crate) fn start(&self, command: &mut Command) -> Result<Running> {
        Running::start(command, self.path())
    }

    /// Runs a program to its end, which has to be a good one.
    pub(crate) fn run(&self, mut command: Command) -> Result<Cost> {
        let Came { cost, status } = self.start(&mut command)?.came()?;
        let said = || self.read("stderr").unwrap_or_default();
        ensure!(status.success(), "{command:?} failed: {status}\n{}", said());
        Ok(cost)
    }

    /// It has done its work only if the last program printed this.
    pub(crate) fn printed(&self, text: &str) -> Result<()> {
        let printed = self.read("stdout")?;
        ensure!(printed == text, "it printed {printed:.200?} instead of {text:?}");
        Ok(())
    }

    /// Everything that happened in all its runs, by their journals, whose sums have to be right.
    pub(crate) fn events(&self) -> Result<Vec<Event>> {
        let runs =
            fs::read_dir(self.path().join(".raymond/runs")).context("nothing is recorded")?;
        let mut events = Vec::new();
        for run in runs {
            // `read` verifies the checksums, so a program that writes wrong records quickly does
            // not win.
            let journal = Journal::read(&RealDisk, &run?.path().join("journal.jsonl"))?;
            for line in journal.lines.iter() {
                let record: Record = serde_json::from_slice(line.body)?;
                events.extend(record.steps.into_iter().flat_map(|step| step.events));
            }
        }
        Ok(events)
    }

    /// Checks that the journals contain this many settled turns: otherwise the work was not done.
    pub(crate) fn settled(&self, turns: u32) -> Result<()> {
        let events = self.events()?;
        let settled = events.iter().filter(|event| matches!(event, Event::TurnSettled { .. }));
        let settled = settled.count();
        ensure!(settled == turns as usize, "{settled} of {turns} turns were recorded");
        Ok(())
    }

    /// It has done its work only if this file has so many lines.
    pub(crate) fn counted(&self, name: &str, lines: u32) -> Result<()> {
        let count = self.read(name)?.lines().count();
        ensure!(count == lines as usize, "{name} has {count} lines instead of {lines}");
        Ok(())
    }
}

/// A program whose work is measured, with its name.
pub(crate) type Attempt<'a> = (&'a str, &'a dyn Fn() -> Result<Cost>);

/// Measures all of them in turns.
pub(crate) fn compare<const N: usize>(
    rounds: u32,
    attempts: [Attempt<'_>; N],
) -> Result<[Costs; N]> {
    let mut all = std::array::from_fn(|_| Costs::default());
    for _ in 0..rounds {
        // In turns and not one program after the other, because the speed of a machine changes with
        // time.
        for ((name, attempt), costs) in attempts.iter().zip(&mut all) {
            costs.0.push(attempt().with_context(|| format!("measuring {name}"))?);
        }
    }
    Ok(all)
}
