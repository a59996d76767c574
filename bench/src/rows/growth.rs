//! D: what a step takes as agents, texts, journals and scopes grow.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use memchr::memchr_iter;
use raymond_core::run::Event;
use raymond_core::value::Hash;
use rustix::process::Signal;
use serde_json::Value;

use super::steps::STEPPING;
use crate::measure::Cost;
use crate::series::Costs;
use crate::stage::{Place, Stage, compare};
use crate::table::{Figure, Goal};

/// The gotos that are measured, and those before them that are not.
// The first ones overlap with the start of the other agents, so they are not measured.
const GOTOS: u32 = 1_000;
const FIRST: u32 = 50;

/// Measures an agent that moves from step to step while others wait for an answer: the cost of each
/// of its steps, and the memory of the others.
fn among(stage: &Stage, others: u32) -> Result<Cost> {
    let last = FIRST + GOTOS;
    let step = format!(
        "n=${{RAYMOND_INPUT:-1}}
test $n -eq {FIRST} && touch first
test $n -eq {last} && touch last && exec sleep 300
echo \"<goto input='$((n + 1))'>STEP</goto>\"
"
    );
    let fork =
        format!("for i in $(seq {others}); do echo '<fork next=\"STEP\">WAIT</fork>'; done\n");
    let start = format!("{fork}echo '<goto>STEP</goto>'\n");
    let start = if others == 0 { &start } else { &fork };
    let place = stage.place(&[
        ("wf/START.sh", start),
        ("wf/STEP.sh", &step),
        ("wf/WAIT.md", "wait"),
        ("replies.yaml", "WAIT: { hang: true }\n"),
    ])?;
    // All agents wait at the same time, so each needs a slot.
    let most = others + 1;
    let words = format!(
        "run wf --run-id r --replies replies.yaml --quiet --budget none --max-agents {most} --max-parallel {most}"
    );
    let running = place.start(&mut place.ours("raymond", &words))?;
    running.until("the others wait", || place.has("first"))?;
    let before = running.taken()?;
    running.until("the last goto is made", || place.has("last"))?;
    let after = running.taken()?;
    place.settled(last)?;
    let begun = |event: &Event| matches!(event, Event::TurnStarted { .. });
    let begun = place.events()?.iter().filter(|event| begun(event)).count();
    // Agents that were never started would cost nothing.
    ensure!(begun >= (others + last) as usize, "only {begun} turns were begun");
    running.signal(Signal::INT)?;
    let came = running.came()?;
    ensure!(came.status.code() == Some(130), "it ended with {}", came.status);
    let own = (after.own - before.own) / f64::from(GOTOS);
    Ok(Cost { own, peak: after.peak, ..Cost::default() })
}

/// A step while others live.
pub(crate) fn agents(stage: &Stage) -> Result<Vec<Figure>> {
    let [none, hundred, thousand, many] = compare(
        stage.rounds,
        [
            ("an agent alone", &|| among(stage, 0)),
            ("100 agents", &|| among(stage, 100)),
            ("1,000 agents", &|| among(stage, 1_000)),
            ("10,000 agents", &|| among(stage, 10_000)),
        ],
    )?;
    let figure = |what: &str, cost: &Costs| {
        let what = format!("transition beside {what} agents (floor: beside none), own CPU");
        Figure::new('D', what, "ms", cost.own()).floor(none.own())
    };
    Ok(vec![
        figure("100", &hundred),
        figure("1,000", &thousand).goal(Goal::Times(1.15)),
        figure("10,000", &many),
        Figure::new('D', "10,000 idle agents, peak memory", "MB", many.peak().times(1.048_576))
            .goal(Goal::AtMost(40.0)),
    ])
}

/// How many texts follow each other: a single one is too short.
const TEXTS: u32 = 20;

/// Longer texts are kept in files.
const LONG: u32 = 16 * 1024;

/// Whether so many different texts of at least so many bytes are kept in files, if they are long.
fn kept(place: &Place, folder: &str, texts: u32, bytes: u32) -> Result<()> {
    if bytes < LONG {
        return Ok(());
    }
    let mut whole = BTreeSet::new();
    for file in std::fs::read_dir(place.path().join(folder))? {
        let path = file?.path();
        if path.is_file() && path.metadata()?.len() >= u64::from(bytes) {
            let text = std::fs::read(path)?;
            // A file of the right length could contain something else than the text, which consists
            // of this letter.
            if memchr_iter(b'x', &text).count() >= bytes as usize {
                whole.insert(Hash::of(&text));
            }
        }
    }
    ensure!(whole.len() >= texts as usize, "{} of {texts} texts were kept", whole.len());
    Ok(())
}

/// Where the run `r` keeps them.
const BLOBS: &str = ".raymond/runs/r/blobs";

/// Runs `TEXTS` scripts that print a text and continue.
fn printing(stage: &Stage, bytes: u32) -> Result<[Costs; 2]> {
    // No two texts are the same: what is known already is not kept again.
    let script = format!(
        "echo $RAYMOND_VISIT; head -c {bytes} /dev/zero | tr '\\0' x; echo
case $RAYMOND_VISIT in *.{TEXTS}) echo '<result>done</result>';; *) echo '<goto>STEP</goto>';; esac
echo x >> steps
"
    );
    let ours = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = place.run(place.ours("raymond", STEPPING))?;
        place.printed("done\n")?;
        place.counted("steps", TEXTS)?;
        place.settled(TEXTS)?;
        kept(&place, BLOBS, TEXTS, bytes)?;
        Ok(cost.each(TEXTS))
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[("wf/STEP.sh", &script)])?;
        let cost = place.run(place.ours("floor", &format!("steps {TEXTS} bash wf/STEP.sh")))?;
        place.counted("steps", TEXTS)?;
        place.counted("journal", TEXTS)?;
        kept(&place, ".", TEXTS, bytes)?;
        Ok(cost.each(TEXTS))
    };
    compare(stage.rounds, [("Raymond", &ours), ("the floor", &floor)])
}

/// Measures the cost of growing texts, and the memory of the largest.
fn growing(
    what: &str,
    goal: Goal,
    measure: impl Fn(u32) -> Result<[Costs; 2]>,
) -> Result<Vec<Figure>> {
    const LARGEST: u32 = 10_000_000;
    let mut figures = Vec::new();
    for (name, bytes) in [("1 KB", 1_000), ("1 MB", 1_000_000), ("10 MB", LARGEST)] {
        let [ours, floor] = measure(bytes)?;
        let own = format!("{name} of {what}, own CPU");
        let own = Figure::new('D', own, "ms", ours.own()).floor(floor.own());
        if bytes < LARGEST {
            figures.push(own);
        } else {
            let peak = format!("{name} of {what}, peak memory");
            let peak = Figure::new('D', peak, "MiB", ours.peak()).floor(floor.peak());
            figures.extend([own.goal(goal), peak]);
        }
    }
    Ok(figures)
}

/// Measures the output of scripts.
pub(crate) fn texts(stage: &Stage) -> Result<Vec<Figure>> {
    growing("script output", Goal::Times(1.5), |bytes| printing(stage, bytes))
}

/// How many calls follow each other.
const CALLS: u32 = 10;

/// Results of so many bytes that a callee returns to its caller, which counts them.
fn returning(stage: &Stage, bytes: u32) -> Result<[Costs; 2]> {
    // Columns for the visit, so that all results have the same length but no two are equal.
    const VISIT: u32 = 40;
    let again = format!(
        "test -z \"$RAYMOND_RESULT_FILE\" || wc -c < \"$RAYMOND_RESULT_FILE\" >> sizes
case $RAYMOND_VISIT in *.{}) echo '<result>done</result>';; *) echo '<call return=\"STEP\">CHILD</call>';; esac
",
        2 * CALLS + 1
    );
    let child = format!(
        "printf '<result>%-{VISIT}s' \"$RAYMOND_VISIT\"; head -c {bytes} /dev/zero | tr '\\0' x; echo '</result>'\n"
    );
    let files = [("wf/STEP.sh", &*again), ("wf/CHILD.sh", &child)];
    let counted = |place: &Place, bytes: u32| -> Result<()> {
        let sizes = place.read("sizes")?;
        let whole = sizes.lines().filter(|line| line.trim() == bytes.to_string()).count();
        ensure!(whole == CALLS as usize, "the sizes were {sizes:?}");
        Ok(())
    };
    let ours = || -> Result<Cost> {
        let place = stage.place(&files)?;
        let cost = place.run(place.ours("raymond", STEPPING))?;
        place.printed("done\n")?;
        counted(&place, bytes + VISIT)?;
        place.settled(2 * CALLS + 1)?;
        kept(&place, BLOBS, CALLS, bytes)?;
        Ok(cost.each(CALLS))
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&files)?;
        let words = format!("calls {CALLS} bash wf/CHILD.sh wf/STEP.sh");
        let cost = place.run(place.ours("floor", &words))?;
        // It takes no tag off what was said.
        let tags = "<result></result>\n".len();
        counted(&place, bytes + VISIT + u32::try_from(tags)?)?;
        place.counted("journal", 2 * CALLS)?;
        kept(&place, ".", CALLS, bytes)?;
        Ok(cost.each(CALLS))
    };
    compare(stage.rounds, [("Raymond", &ours), ("the floor", &floor)])
}

/// Measures the results of callees.
pub(crate) fn payloads(stage: &Stage) -> Result<Vec<Figure>> {
    growing("result through a call", Goal::AtMost(20.0), |bytes| returning(stage, bytes))
}

/// A goto settles a turn, moves, enters, queues and starts.
const EVENTS_OF_A_GOTO: u32 = 5;
const EVENTS: u32 = 100_000;
const SNAPSHOT: &str = ".raymond/runs/r/snapshot.json";

/// A run of so many events whose owner was killed in its last step.
fn killed(stage: &Stage) -> Result<Place> {
    let again = format!("---\nmax_visits: {}\nthen: LAST\n---\nagain\n", EVENTS / EVENTS_OF_A_GOTO);
    let last = "echo x >> log; test -e go || exec sleep 300; echo '<result>done</result>'\n";
    let place = stage.place(&[
        ("log", ""),
        ("wf/START.md", &again),
        ("wf/LAST.sh", last),
        ("replies.yaml", "START: { text: '<goto>START</goto>', cost: 0 }\n"),
    ])?;
    let words = "run wf --replies replies.yaml --quiet --run-id r";
    let running = place.start(&mut place.ours("raymond", words))?;
    running.until("the last step runs", || place.counted("log", 1).is_ok())?;
    // Otherwise the row with a snapshot would measure a resume without one.
    running.until("a snapshot is kept", || place.has(SNAPSHOT))?;
    // Not SIGINT, which would end the run in order: the resume has to recover the last step.
    running.signal(Signal::KILL)?;
    running.came()?;
    let events = place.events()?.len();
    ensure!(events >= EVENTS as usize, "there are only {events} events");
    Ok(place)
}

/// Measures a resume until the last step of that run continues; then the run is stopped again.
fn resumed(place: &Place, lines: u32) -> Result<Cost> {
    let begun = Instant::now();
    let running = place.start(&mut place.ours("raymond", "resume r --quiet"))?;
    // The script appends a line each time it starts, so the number of lines counts the resumes.
    let goes_on = running.until("it continues", || place.counted("log", lines).is_ok());
    goes_on.with_context(|| place.read("stderr").unwrap_or_default())?;
    let (wall, taken) = (begun.elapsed().as_secs_f64() * 1e3, running.taken()?);
    running.signal(Signal::INT)?;
    let came = running.came()?;
    ensure!(came.status.code() == Some(130), "it ended with {}", came.status);
    Ok(Cost { own: taken.own, wall, peak: taken.peak, ..Cost::default() })
}

/// Measures the resume of a long run.
pub(crate) fn journals(stage: &Stage) -> Result<Vec<Figure>> {
    let place = killed(stage)?;
    let snapshot = place.read(SNAPSHOT)?;
    // It is kept now and then: what came after it is read.
    let head: Value = serde_json::from_str(snapshot.lines().next().unwrap_or_default())?;
    let records = place.read(".raymond/runs/r/journal.jsonl")?.lines().count() as u64 - 1;
    let behind = records - head["seq"].as_u64().context("a snapshot without a number")?;
    let lines = Cell::new(1);
    let next = || {
        lines.set(lines.get() + 1);
        resumed(&place, lines.get())
    };
    let with = || {
        // `without` removes the file, and each round has to start from the same snapshot.
        place.write(SNAPSHOT, &snapshot)?;
        next()
    };
    let without = || {
        std::fs::remove_file(place.path().join(SNAPSHOT))?;
        next()
    };
    let [with, without] =
        compare(stage.rounds, [("with a snapshot", &with), ("without", &without)])?;
    place.write("go", "")?;
    place.run(place.ours("raymond", "resume r --quiet"))?;
    place.printed("done\n")?;
    let figures = |what: &str, costs: &Costs| {
        let what = |figure: &str| format!("resume of 100,000 events{what}, {figure}");
        [
            Figure::new('D', what("wall"), "ms", costs.wall()).goal(Goal::AtMost(200.0)),
            Figure::new('D', what("own CPU"), "ms", costs.own()),
            Figure::new('D', what("peak memory"), "MiB", costs.peak()),
        ]
    };
    let what = format!(" and a snapshot that is {behind} records behind");
    Ok([figures(&what, &with), figures(" without a snapshot", &without)].concat())
}

/// A run of one script beside so many others that are never reached.
fn beside(stage: &Stage, states: u32) -> Result<Cost> {
    let client = stage.programs.join("instant");
    let config = format!("claude = {:?}\n", client.to_string_lossy());
    let start = "echo x >> steps; echo '<result>done</result>'\n";
    let place = stage.place(&[("wf/START.sh", start), (".config/raymond/config.toml", &config)])?;
    for n in 1..states {
        place.write(&format!("wf/STATE{n}.md"), "Never reached. <goto>START</goto>\n")?;
    }
    let cost = place.run(place.ours("raymond", "run wf --quiet --budget none"))?;
    place.printed("done\n")?;
    place.counted("steps", 1)?;
    place.settled(1)?;
    // Each of them is read.
    place.write(&format!("wf/STATE{}.md", states - 1), "---\nno: such key: at all\n---\n")?;
    // Behind the measurement: a mistake in the last state shows that Raymond reads all of them.
    let refused =
        place.start(&mut place.ours("raymond", "run wf --quiet --budget none"))?.came()?;
    ensure!(!refused.status.success(), "it did not read the last state");
    Ok(cost)
}

/// A scope of many states.
pub(crate) fn scopes(stage: &Stage) -> Result<Vec<Figure>> {
    let [two, many] = compare(
        stage.rounds,
        [("two states", &|| beside(stage, 2)), ("5,000 states", &|| beside(stage, 5_000))],
    )?;
    let more = many.tree().with(&two.tree(), |many, two| many - two);
    Ok(vec![
        Figure::new(
            'D',
            "a run in a scope of 5,000 states, CPU with the script",
            "ms",
            many.tree(),
        ),
        Figure::new('D', "each state of a scope, CPU", "µs", more.times(1e3 / 4_998.0)),
    ])
}
