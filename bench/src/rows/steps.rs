//! A and B: what a step and a thousand workers take.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::measure::{Cost, program};
use crate::stage::{Place, Stage, compare};
use crate::table::{Figure, Goal};

/// How many steps follow each other.
const STEPS: u32 = 2_000;

/// The command for a script that leads to itself.
pub(super) const STEPPING: &str = "run wf/STEP.sh --quiet --budget none --run-id r";

/// Returns a script that logs its run and leads to itself until it is the last one.
pub(super) fn step(last: u32) -> String {
    format!(
        "echo x >> steps
case $RAYMOND_VISIT in *.{last}) echo '<result>done</result>';; *) echo '<goto>STEP</goto>';; esac
"
    )
}

/// A script after the other.
pub(crate) fn scripts(stage: &Stage) -> Result<Vec<Figure>> {
    let script = step(STEPS);
    let ours = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = place.run(place.ours("raymond", STEPPING))?;
        place.printed("done\n")?;
        place.counted("steps", STEPS)?;
        place.settled(STEPS)?;
        Ok(cost.each(STEPS))
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = place.run(place.ours("floor", &format!("steps {STEPS} bash wf/STEP.sh")))?;
        place.counted("steps", STEPS)?;
        place.counted("journal", STEPS)?;
        Ok(cost.each(STEPS))
    };
    let langgraph = || -> Result<Cost> {
        stage.peer(|peers| {
            let run = |steps: u32| -> Result<Cost> {
                let place = stage.place(&[("wf/STEP.sh", &step(steps))])?;
                let mut python = program(&peers.join("python/bin/python"), place.path());
                python.arg(peers.join("steps.py")).arg(steps.to_string());
                python.args(["bash", "wf/STEP.sh"]);
                let cost = place.run(python)?;
                place.printed(&format!("{steps} <result>done</result>\n"))?;
                place.counted("steps", steps)?;
                Ok(cost)
            };
            let (many, one) = (run(STEPS + 1)?, run(1)?);
            // Without its start, which is long.
            let more = Cost { wall: many.wall - one.wall, own: many.own - one.own, ..many };
            Ok(more.each(STEPS))
        })
    };
    let [ours, floor, langgraph] = compare(
        stage.rounds,
        [("Raymond", &ours), ("the floor", &floor), ("LangGraph", &langgraph)],
    )?;
    Ok(vec![
        Figure::new('A', "script transition, own CPU", "ms", ours.own())
            .floor(floor.own())
            .goal(Goal::Times(1.5))
            .peer("LangGraph", stage.shown(langgraph.own())),
        Figure::new('A', "script transition, CPU with the script", "ms", ours.tree())
            .floor(floor.tree())
            .goal(Goal::Times(1.05)),
        Figure::new('A', "script transition, wall", "ms", ours.wall())
            .floor(floor.wall())
            .peer("LangGraph", stage.shown(langgraph.wall())),
        Figure::new('A', "script transitions, peak memory", "MiB", ours.peak())
            .floor(floor.peak())
            .goal(Goal::AtMost(8.0))
            .peer("LangGraph", stage.shown(langgraph.peak())),
    ])
}

/// A turn of an instant client after the other.
pub(crate) fn turns(stage: &Stage) -> Result<Vec<Figure>> {
    let client = stage.programs.join("instant");
    let client = client.to_string_lossy();
    // In the configuration of the user, because a project cannot choose programs.
    let config = format!("claude = {client:?}\n");
    let prompt = format!("turn {{{{visit}}}} of {STEPS}\n");
    let ours = || -> Result<Cost> {
        let files = [("wf/STEP.md", &*prompt), (".config/raymond/config.toml", &config)];
        let place = stage.place(&files)?;
        let words = "run wf/STEP.md --quiet --budget none --run-id r";
        let cost = place.run(place.ours("raymond", words))?;
        place.printed("done\n")?;
        place.counted("turns", STEPS)?;
        place.settled(STEPS)?;
        Ok(cost.each(STEPS))
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[])?;
        let cost = place.run(place.ours("floor", &format!("turns {STEPS} {client}")))?;
        place.counted("turns", STEPS)?;
        place.counted("journal", STEPS)?;
        Ok(cost.each(STEPS))
    };
    let [ours, floor] = compare(stage.rounds, [("Raymond", &ours), ("the floor", &floor)])?;
    Ok(vec![
        Figure::new('A', "agent transition, own CPU", "ms", ours.own())
            .floor(floor.own())
            .goal(Goal::Times(1.5)),
        Figure::new('A', "agent transition, wall", "ms", ours.wall())
            .floor(floor.wall())
            .goal(Goal::Times(1.25)),
        Figure::new('A', "agent transitions, peak memory", "MiB", ours.peak())
            .floor(floor.peak())
            .goal(Goal::AtMost(8.0)),
    ])
}

const WORKERS: u32 = 1_000;

/// A thousand workers, four at a time.
pub(crate) fn workers(stage: &Stage) -> Result<Vec<Figure>> {
    let start = format!(
        "for i in $(seq {WORKERS}); do echo \"<fork next='END' n='$i'>WORKER</fork>\"; done\n"
    );
    let worker = "echo x >> steps; echo \"<result>$RAYMOND_ATTR_N</result>\"\n";
    let ours = || -> Result<Cost> {
        let files = [
            ("wf/START.sh", &*start),
            ("wf/WORKER.sh", worker),
            ("wf/END.sh", "echo '<result>done</result>'\n"),
        ];
        let place = stage.place(&files)?;
        // 1,001 agents: the workers and `main`, which forks all of them at once.
        let words = "run wf --max-parallel 4 --max-agents 1001 --json --quiet --budget none";
        let cost = place.run(place.ours("raymond", words))?;
        place.counted("steps", WORKERS)?;
        every_worker(&place)?;
        place.settled(WORKERS + 2)?;
        Ok(cost)
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[("WORKER.sh", worker)])?;
        let cost =
            place.run(place.ours("floor", &format!("workers {WORKERS} 4 bash WORKER.sh")))?;
        place.counted("steps", WORKERS)?;
        place.counted("journal", WORKERS)?;
        Ok(cost)
    };
    let [ours, floor] = compare(stage.rounds, [("Raymond", &ours), ("the floor", &floor)])?;
    Ok(vec![
        Figure::new('B', "1,000 workers, wall", "s", ours.wall().times(1e-3))
            .floor(floor.wall().times(1e-3))
            .goal(Goal::Times(1.1)),
        Figure::new('B', "1,000 workers, own CPU", "s", ours.own().times(1e-3))
            .floor(floor.own().times(1e-3))
            .goal(Goal::AtMost(0.5)),
        Figure::new('B', "1,000 workers, peak memory", "MiB", ours.peak())
            .floor(floor.peak())
            .goal(Goal::AtMost(12.0)),
    ])
}

/// Each worker ended with its own number.
fn every_worker(place: &Place) -> Result<()> {
    let said: serde_json::Value = serde_json::from_str(&place.read("stdout")?)?;
    ensure!(said["status"] == "completed", "it ended so: {}", said["status"]);
    ensure!(said["results"]["main"] == "done", "main ended with {}", said["results"]["main"]);
    for n in 1..=WORKERS {
        let result = &said["results"][format!("main_worker{n}")];
        // A count alone would not notice two workers that got the same attributes.
        ensure!(*result == json!(n.to_string()), "worker {n} ended with {result}");
    }
    Ok(())
}
