//! `raymond demo`: a short tour.
//!
//! It has three acts, run by this binary in a temporary project: a call and a function, a fork, and
//! a `kill -9` with a resume. After each act the demo reads the journal, and it succeeds only if
//! everything that it claims has really happened.

mod binary;
mod directory;
mod facts;

use raymond_core::budget::Micros;
use raymond_core::run::Run;
use raymond_core::view::Status;
use raymond_engine::inspect::Inspection;

use crate::args::Demo;
use crate::exit_code;
use crate::failure::Failure;

use binary::Binary;
use directory::DemoDirectory;
use facts::Facts;

/// The known result of `notes`.
const PUBLISHED: &str = "published, 8/10: Search is twice as fast. There is a dark mode.";

pub(crate) fn demo(flags: &Demo) -> Result<u8, Failure> {
    let demo = DemoDirectory::set()?;
    let binary = Binary::this(demo.directory())?;
    // Ctrl-C must remove the directory of the demo, so it is handled here and not by its default
    // action.
    let played = crate::runtime::runtime()?.block_on(async {
        tokio::select! {
            played = play(&demo, &binary) => Some(played),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    match played {
        Some(Ok(())) if flags.keep => demo.keep(),
        Some(Ok(())) => demo.remove()?,
        Some(Err(failure)) => {
            // The runs in the directory explain the failure.
            demo.keep();
            return Err(failure);
        }
        None => {
            demo.remove()?;
            return Ok(exit_code::of_run(Status::Interrupted));
        }
    }
    Ok(0)
}

async fn play(demo: &DemoDirectory, binary: &Binary) -> Result<(), Failure> {
    directory::say(&format!(
        "Raymond runs agents as programs: a folder of prompts and scripts. Each of them names the\n\
         next one with a tag. This tour plays three short runs in {}.\n\
         A file of replies stands in for the model and its prices are invented; the rest is real.",
        demo.directory().display()
    ));
    let undisturbed = call_and_function(demo, binary).await?;
    fork(demo, binary).await?;
    kill_and_resume(demo, binary, &undisturbed).await?;
    directory::say(
        "\nThe demo checked all of this against the journals. Next, in a project of your own:\n\
         \n  raymond init           writes a workflow for it, which can be tried without a model\
         \n  raymond init --list    names examples to copy",
    );
    Ok(())
}

async fn call_and_function(demo: &DemoDirectory, binary: &Binary) -> Result<Inspection, Failure> {
    directory::title("Act 1: a call and a function");
    directory::say(
        "notes/ writes release notes: 1_START.sh, PLAN.md, DIG.md, WRITE.md, JUDGE.md, PUBLISH.sh.\n\
         PLAN calls DIG in a branch of its conversation: DIG knows the plan and reads a lot, but\n\
         the branch is then discarded. WRITE calls JUDGE as a function, in an empty conversation.\n\
         This is WRITE.md; notes.yaml contains the replies:",
    );
    demo.show("notes/WRITE.md")?;
    let words = ["run", "notes", "--run-id", "first", "--replies", "notes.yaml", "--budget", "2"];
    let finished = binary.run(&words).await?;
    expect("the exit code of the first run", &finished.code, &Some(0))?;
    expect("the result of the first run", &finished.stdout.trim_end(), &PUBLISHED)?;
    let seen = demo.inspect("first")?;
    let sessions = Facts::of(&seen).sessions();
    let expected = [
        "PLAN.md   opens conversation A",
        "DIG.md    works in B, a branch of A",
        "WRITE.md  continues A, with the result of DIG",
        "JUDGE.md  opens conversation C",
    ];
    expect("the conversations of the first run", &sessions, &expected.map(str::to_owned).to_vec())?;
    directory::say(
        "The files that DIG read stayed in B, and JUDGE never saw A. The journal shows it:",
    );
    directory::list(&sessions);
    Ok(seen)
}

async fn fork(demo: &DemoDirectory, binary: &Binary) -> Result<(), Failure> {
    directory::title("Act 2: a fork");
    directory::say(
        "audit/ starts three workers in one message. Each has a name that starts with its parent's,\n\
         an empty conversation, and the attributes of its fork as variables. This is 1_START.sh:",
    );
    demo.show("audit/1_START.sh")?;
    let words = ["run", "audit", "--run-id", "second", "--replies", "audit.yaml", "--budget", "2"];
    let finished = binary.run(&words).await?;
    expect("the exit code of the second run", &finished.code, &Some(0))?;
    let seen = demo.inspect("second")?;
    let facts = Facts::of(&seen);
    let expected = [
        "main          three workers are on their way",
        "main_check1   parser: 2 mistakes",
        "main_check2   network: none",
        "main_transl3  French: 12 pages",
    ];
    expect("the results of the workers", &facts.results, &expected.map(str::to_owned).to_vec())?;
    expect("how many workers were at work at once", &facts.workers_at_once(), &3)?;
    directory::say("All three worked at the same time, and the run keeps the result of each:");
    directory::list(&facts.results);
    Ok(())
}

async fn kill_and_resume(
    demo: &DemoDirectory,
    binary: &Binary,
    undisturbed: &Inspection,
) -> Result<(), Failure> {
    directory::title("Act 3: kill -9 and resume");
    directory::say(
        "notes/ once more, but now JUDGE is slow (slow.yaml). While its turn runs, the demo\n\
         kills the process that drives the run: no warning, no time to clean up.",
    );
    let words = ["run", "notes", "--run-id", "third", "--replies", "slow.yaml", "--budget", "2"];
    let running = binary.start(&words)?;
    // The line is printed when JUDGE is entered; its reply in `slow.yaml` takes long enough for the
    // kill to meet its turn.
    running.kill_when(|line| line.contains("→ JUDGE.md")).await?;
    let cut = demo.inspect("third")?;
    expect("the status of the killed run", &cut.status, &Status::Interrupted)?;
    expect(
        "the turns in flight when it was killed",
        &in_flight(&cut.head.run),
        &vec!["JUDGE.md".to_owned()],
    )?;
    directory::say("The journal records which turns finished and which did not:");
    binary.run(&["status", "third"]).await?;
    directory::say(
        "Finished turns are reused. The interrupted turn continues in its own conversation:",
    );
    let finished = binary.run(&["resume", "third"]).await?;
    expect("the exit code of the resume", &finished.code, &Some(0))?;
    let plan = "third: reused 4 turns ($0.21), continuing 1, repeating 0";
    expect(
        "the first line of the resume",
        &finished.stderr.first().map(String::as_str),
        &Some(plan),
    )?;
    expect("the result after the kill", &finished.stdout.trim_end(), &PUBLISHED)?;
    let resumed = demo.inspect("third")?;
    account(demo, undisturbed, &resumed)
}

/// Returns the states of the running turns.
fn in_flight(run: &Run) -> Vec<String> {
    let agents = run.scheduler.in_flight.iter().filter_map(|id| run.agents.get(id));
    agents.map(|agent| agent.visit.location.to_string()).collect()
}

/// Counts turns, charges and published lines in the journals, and prints them.
fn account(
    demo: &DemoDirectory,
    undisturbed: &Inspection,
    resumed: &Inspection,
) -> Result<(), Failure> {
    let (before, after) = (Facts::of(undisturbed), Facts::of(resumed));
    expect("the turns that were finished after the kill", &after.settled, &before.settled)?;
    let more_than_once = after.settled.values().filter(|times| **times != 1).count();
    expect("the turns that were finished more than once", &more_than_once, &0)?;
    let published = demo.lines("published.log")?;
    expect("the lines of published.log", &published, &2)?;
    let (spent, cap) = (resumed.head.run.spent, resumed.head.run.settings.budget);
    let plain = undisturbed.head.run.spent;
    // The interrupted attempt is charged, so the run costs more than the undisturbed one by exactly
    // that charge.
    expect("the spent amount", &spent, &plain.plus(after.interrupted))?;
    let within = cap.is_some_and(|cap| spent <= cap);
    expect("whether that is within the cap", &within, &true)?;
    let turns = after.settled.len();
    directory::say(
        "The result is the same as in act 1. The journal shows the turns and their cost:",
    );
    directory::list(&[
        format!("{turns} turns finished, each of them once; 1 attempt was interrupted"),
        format!("spent {spent} of {}: {plain} as in act 1,", cap.unwrap_or(Micros::ZERO)),
        format!("and {} for the interrupted attempt (an estimate)", after.interrupted),
        format!("published.log has {published} lines, one for each run"),
    ]);
    Ok(())
}

/// Fails the demo if a fact differs from the claim.
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

/// The failure for a claim that is not true.
fn differs(what: impl std::fmt::Display) -> Failure {
    // Exit code 1, because a broken claim is a failure of the demo and not of the machine.
    Failure::environment(format!("the demo did not run as expected: {what}")).code(1)
}
