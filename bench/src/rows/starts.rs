//! C: what a start takes.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::steps::step;
use crate::measure::{Cost, program};
use crate::stage::{Stage, compare};
use crate::table::{Figure, Goal};

const LOBSTER: &str = "node_modules/.bin/lobster";

/// How many starts follow each other: a single one is too short.
const STARTS: u32 = 20;

fn many(start: impl Fn() -> Result<Cost>) -> Result<Cost> {
    let costs = (0..STARTS).map(|_| start()).collect::<Result<Vec<Cost>>>()?;
    let sum = |part: fn(&Cost) -> f64| costs.iter().map(part).sum();
    let (tree, wall) = (sum(|cost| cost.tree), sum(|cost| cost.wall));
    Ok(Cost { tree, wall, ..Cost::default() }.each(STARTS))
}

/// The shortest that a program can do.
pub(crate) fn help(stage: &Stage) -> Result<Vec<Figure>> {
    let ours = || -> Result<Cost> {
        let place = stage.place(&[])?;
        let cost = place.run(place.ours("raymond", "--help"))?;
        ensure!(place.read("stdout")?.contains("resume"), "it did not help");
        Ok(cost)
    };
    // To look for it is not its work.
    let nothing = ["/usr/bin/true", "/bin/true"].map(Path::new);
    let nothing = nothing.into_iter().find(|path| path.exists()).context("there is no true")?;
    let nothing = || -> Result<Cost> {
        let place = stage.place(&[])?;
        place.run(program(nothing, place.path()))
    };
    let lobster = || -> Result<Cost> {
        stage.peer(|peers| {
            let place = stage.place(&[])?;
            let mut lobster = program(&peers.join(LOBSTER), place.path());
            lobster.arg("help");
            let cost = place.run(lobster)?;
            ensure!(place.read("stdout")?.contains("run"), "it did not help");
            Ok(cost)
        })
    };
    let [ours, nothing, lobster] = compare(
        stage.rounds,
        // lobster starts once in a round: its start takes long enough to be measured alone.
        [("Raymond", &|| many(ours)), ("true", &|| many(nothing)), ("lobster", &lobster)],
    )?;
    let figure = Figure::new('C', "--help, CPU", "ms", ours.tree()).floor(nothing.tree());
    Ok(vec![figure.goal(Goal::AtMost(2.0)).peer("lobster", stage.shown(lobster.tree()))])
}

/// A run of one script, in a project that had one before.
pub(crate) fn one(stage: &Stage) -> Result<Vec<Figure>> {
    let script = step(1);
    let ours = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let once = || -> Result<Cost> {
            let cost = place.run(place.ours("raymond", "run wf/STEP.sh --quiet --budget none"))?;
            place.printed("done\n")?;
            Ok(cost)
        };
        // The first run creates `.raymond/`, which has a figure of its own.
        once()?;
        let cost = many(once)?;
        place.counted("steps", 1 + STARTS)?;
        place.settled(1 + STARTS)?;
        Ok(cost)
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = many(|| place.run(place.ours("floor", "steps 1 bash wf/STEP.sh")))?;
        place.counted("steps", STARTS)?;
        place.counted("journal", 1)?;
        Ok(cost)
    };
    let first = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = place.run(place.ours("raymond", "run wf/STEP.sh --quiet --budget none"))?;
        place.printed("done\n")?;
        place.counted("steps", 1)?;
        place.settled(1)?;
        Ok(cost)
    };
    let lobster = || -> Result<Cost> {
        stage.peer(|peers| {
            let place = stage.place(&[("one.lobster", ONE), ("steps", "")])?;
            let mut lobster = program(&peers.join(LOBSTER), place.path());
            lobster.args(["run", "one.lobster"]);
            let cost = place.run(lobster)?;
            place.counted("steps", 1)?;
            ensure!(place.read("stdout")?.contains("done"), "it said something else");
            Ok(cost)
        })
    };
    let [ours, first, floor, lobster] = compare(
        stage.rounds,
        [
            ("Raymond", &ours),
            ("a first run", &|| many(first)),
            ("the floor", &floor),
            ("lobster", &lobster),
        ],
    )?;
    Ok(vec![
        Figure::new('C', "a run of one script, CPU with the script", "ms", ours.tree())
            .floor(floor.tree())
            .goal(Goal::Times(1.5))
            .peer("lobster", stage.shown(lobster.tree())),
        Figure::new('C', "a run of one script, wall", "ms", ours.wall())
            .floor(floor.wall())
            .peer("lobster", stage.shown(lobster.wall())),
        Figure::new('C', "the first run in a project, CPU with the script", "ms", first.tree())
            .floor(floor.tree()),
    ])
}

/// A workflow of lobster with one step.
const ONE: &str =
    "name: one\nsteps:\n  - id: a\n    command: bash -c 'echo x >> steps; echo done'\n";
