//! `raymond demo`: the tour.
//!
//! Three acts, played by this same binary in a directory of their own: a call and a function, a
//! fork, and a `kill -9` with the resume after it. Nothing is acted: after each act the journal is
//! read, and the demo succeeds only when everything that it tells has really happened.

mod binary;
mod facts;
mod stage;

use raymond_core::budget::Micros;
use raymond_core::run::Run;
use raymond_core::view::Status;
use raymond_engine::inspect::Inspection;

use crate::args::Demo;
use crate::failure::Failure;

use binary::Binary;
use facts::Facts;
use stage::Stage;

/// What `notes` is known to return.
const PUBLISHED: &str = "published, 8/10: Search is twice as fast. There is a dark mode.";

pub(crate) fn demo(flags: &Demo) -> Result<u8, Failure> {
    let stage = Stage::set()?;
    let binary = Binary::this(stage.directory())?;
    let played = crate::runtime()?.block_on(async {
        tokio::select! {
            played = play(&stage, &binary) => Some(played),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    match played {
        Some(Ok(())) if flags.keep => stage.keep(),
        Some(Ok(())) => stage.strike()?,
        Some(Err(failure)) => {
            stage.keep();
            return Err(failure);
        }
        None => {
            stage.strike()?;
            return Ok(Status::Interrupted.exit_code());
        }
    }
    Ok(0)
}

async fn play(stage: &Stage, binary: &Binary) -> Result<(), Failure> {
    stage::say(&format!(
        "Raymond runs agents as programs: a folder of prompts and scripts, each of which names the\n\
         next one with a tag. This tour plays three short runs in {}.\n\
         A file of replies stands in for the model, and its prices are made up; the rest is real.",
        stage.directory().display()
    ));
    let undisturbed = call_and_function(stage, binary).await?;
    fork(stage, binary).await?;
    kill_and_resume(stage, binary, &undisturbed).await?;
    stage::say(
        "\nAll of this was checked against the journals. Now you, in a project of yours:\n\
         \n  raymond init           writes a workflow for it, which can be tried without a model\
         \n  raymond init --list    names examples to copy",
    );
    Ok(())
}

async fn call_and_function(stage: &Stage, binary: &Binary) -> Result<Inspection, Failure> {
    stage::title("Act 1: a call and a function");
    stage::say(
        "notes/ writes release notes: 1_START.sh, PLAN.md, DIG.md, WRITE.md, JUDGE.md, PUBLISH.sh.\n\
         PLAN calls DIG: a branch of its conversation, which knows the plan, reads a lot, and is\n\
         then thrown away. WRITE has JUDGE look at its line as a function: with an empty mind.\n\
         This is WRITE.md; notes.yaml holds the replies:",
    );
    stage.show("notes/WRITE.md")?;
    let words = ["run", "notes", "--run-id", "first", "--replies", "notes.yaml", "--budget", "2"];
    let finished = binary.run(&words).await?;
    expect("the exit code of the first run", &finished.code, &Some(0))?;
    expect("the result of the first run", &finished.stdout.trim_end(), &PUBLISHED)?;
    let seen = stage.look("first")?;
    let sessions = Facts::of(&seen).sessions();
    let expected = [
        "PLAN.md   opens conversation A",
        "DIG.md    works in B, a branch of A",
        "WRITE.md  goes on in A, with the result of DIG",
        "JUDGE.md  opens conversation C",
    ];
    expect("the conversations of the first run", &sessions, &expected.map(str::to_owned).to_vec())?;
    stage::say("What DIG read stayed in B, and JUDGE never saw A. The journal says so:");
    stage::list(&sessions);
    Ok(seen)
}

async fn fork(stage: &Stage, binary: &Binary) -> Result<(), Failure> {
    stage::title("Act 2: a fork");
    stage::say(
        "audit/ starts three workers in one message. Each has a name that says whose worker it is,\n\
         an empty conversation, and the attributes of its fork as variables. This is 1_START.sh:",
    );
    stage.show("audit/1_START.sh")?;
    let words = ["run", "audit", "--run-id", "second", "--replies", "audit.yaml", "--budget", "2"];
    let finished = binary.run(&words).await?;
    expect("the exit code of the second run", &finished.code, &Some(0))?;
    let seen = stage.look("second")?;
    let facts = Facts::of(&seen);
    let expected = [
        "main          three workers are on their way",
        "main_check1   parser: 2 mistakes",
        "main_check2   network: none",
        "main_transl3  French: 12 pages",
    ];
    expect("the results of the workers", &facts.results, &expected.map(str::to_owned).to_vec())?;
    expect("how many workers were at work at once", &facts.workers_at_once(), &3)?;
    stage::say("All three were at work at the same time, and the run keeps what each returned:");
    stage::list(&facts.results);
    Ok(())
}

async fn kill_and_resume(
    stage: &Stage,
    binary: &Binary,
    undisturbed: &Inspection,
) -> Result<(), Failure> {
    stage::title("Act 3: kill -9, and on");
    stage::say(
        "notes/ once more, but now JUDGE is slow (slow.yaml). While its turn is in flight, the\n\
         process that drives the run is killed: no warning, no time to tidy up.",
    );
    let words = ["run", "notes", "--run-id", "third", "--replies", "slow.yaml", "--budget", "2"];
    let running = binary.start(&words)?;
    running.kill_when(|line| line.contains("→ JUDGE.md")).await?;
    let cut = stage.look("third")?;
    expect("the status of the killed run", &cut.status, &Status::Interrupted)?;
    expect("the turns in flight when it was killed", &in_flight(&cut.head.run), &vec!["JUDGE.md"])?;
    stage::say("The journal knows what was finished and what was not:");
    binary.run(&["status", "third"]).await?;
    stage::say(
        "What is finished is used again. What was in flight goes on in its own conversation:",
    );
    let finished = binary.run(&["resume", "third"]).await?;
    expect("the exit code of the resume", &finished.code, &Some(0))?;
    let plan = "third: reused 4 turns ($0.21), continuing 1, repeating 0";
    expect(
        "what the resume says first",
        &finished.stderr.first().map(String::as_str),
        &Some(plan),
    )?;
    expect("the result after the kill", &finished.stdout.trim_end(), &PUBLISHED)?;
    let resumed = stage.look("third")?;
    account(stage, undisturbed, &resumed)
}

/// The states of the turns in flight.
fn in_flight(run: &Run) -> Vec<&str> {
    let agents = run.scheduler.in_flight.iter().filter_map(|id| run.agents.get(id));
    agents.map(|agent| agent.visit.state.as_str()).collect()
}

/// Counts, in the journals, what was done and what it cost.
fn account(stage: &Stage, undisturbed: &Inspection, resumed: &Inspection) -> Result<(), Failure> {
    let (before, after) = (Facts::of(undisturbed), Facts::of(resumed));
    expect("the turns that were finished after the kill", &after.settled, &before.settled)?;
    let more_than_once = after.settled.values().filter(|times| **times != 1).count();
    expect("the turns that were finished more than once", &more_than_once, &0)?;
    let published = stage.lines("published.log")?;
    expect("the lines of published.log", &published, &2)?;
    let (spent, cap) = (resumed.head.run.spent, resumed.head.run.settings.budget);
    let plain = undisturbed.head.run.spent;
    expect("what was spent", &spent, &plain.plus(after.cut_off))?;
    let within = cap.is_some_and(|cap| spent <= cap);
    expect("whether that is within the cap", &within, &true)?;
    let turns = after.settled.len();
    stage::say("The same result as in act 1, and the journal says what it took:");
    stage::list(&[
        format!("{turns} turns finished, each of them once; 1 attempt was cut off"),
        format!("spent {spent} of {}: {plain} as in act 1,", cap.unwrap_or(Micros::ZERO)),
        format!("and {} for the attempt that was cut off, estimated, never nothing", after.cut_off),
        format!("published.log has {published} lines, one for each run"),
    ]);
    Ok(())
}

/// Ends the demo when something did not happen as it is told.
fn expect<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(differs(format!("{what}: expected {expected:?}, found {found:?}")))
}

/// Something did not happen as it is told.
fn differs(what: impl std::fmt::Display) -> Failure {
    Failure::environment(format!("the demo did not go as it is told: {what}")).code(1)
}
