//! Runs random documents on a simulated machine with faults. A run must end like the reference, and
//! a step with a recorded success must never run again.

use raymond_core::budget::Micros;
use raymond_core::run::Program;
use raymond_core::run::program::AnswerSource;
use serde_json::Map;

use super::agree::compare;
use super::drive::{definition, settings};
use super::random;
use super::random_replies::RandomReplies;
use super::reference::interpret;
use crate::dice::Dice;
use crate::sim::drive::drive;
use crate::sim::host::{HelpLimits, Host, Leftovers, Seeds};
use crate::sim::random_faults::RandomFaults;
use crate::violation::Violation;

/// Runs the document of a seed with faults, and returns the number of programs and questions.
pub fn compare_with_crashes(seed: u64) -> Result<usize, Violation> {
    run_both(seed, false).1
}

/// Runs the document of a seed with faults, and also returns a trace of it.
pub fn compare_with_trace(seed: u64) -> (Vec<String>, Result<usize, Violation>) {
    run_both(seed, true)
}

fn run_both(seed: u64, traced: bool) -> (Vec<String>, Result<usize, Violation>) {
    let mut lines = Vec::new();
    let mut both = || {
        let mut done = 0;
        for answers in [AnswerSource::Backend, AnswerSource::Caller] {
            let mut host = host(seed, answers)?;
            if traced {
                host.world.borrow_mut().trace.enable();
            }
            let ended = drive_and_compare(seed, answers, &mut host);
            lines.extend(host.world.borrow_mut().trace.take_lines());
            done += ended.map_err(|why| Violation(format!("{answers:?}: {why}")))?;
        }
        Ok(done)
    };
    let ended = both();
    (lines, ended)
}

fn host(seed: u64, answers: AnswerSource) -> Result<Host, Violation> {
    let definition = definition(&random::document(seed), &Map::new())?;
    let mut settings = settings();
    let mut dice = Dice::new(seed ^ 0x5e77);
    // Five answers at 20,000 each. Then the run is over budget, and the simulated user adds money.
    settings.budget = dice.percent(50).then_some(Micros(100_000));
    settings.max_parallel = 1 + u32::try_from(dice.below(4)).unwrap_or(0);
    let seeds = Seeds { world: seed, disk: seed };
    let mut host = Host::new(seeds, definition, Box::new(RandomReplies::new(seed)), settings)?;
    host.program = Program::steps_of(answers);
    host.leftovers = Leftovers::Progress;
    host.help_limits = HelpLimits::NONE;
    Ok(host)
}

fn drive_and_compare(
    seed: u64,
    answers: AnswerSource,
    host: &mut Host,
) -> Result<usize, Violation> {
    let document = random::document(seed);
    let expected = interpret(&document, &Map::new(), RandomReplies::new(seed));
    // A quarter runs without faults, to distinguish a wrong decision from a wrong recovery.
    let chance = if seed.is_multiple_of(4) { 0 } else { 8 };
    let mut faults = RandomFaults { dice: Dice::new(seed ^ 0xd157), chance, stops: 0 };
    drive(host, &mut faults)?;
    compare(&document, &expected, &host.step_trace()?, answers).map_err(Violation)?;
    Ok(expected.ran.len() + expected.asked.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_steps_never_run_again_after_crashes() {
        let things: usize = (0..300)
            .map(|seed| match compare_with_crashes(seed) {
                Ok(count) => count,
                Err(why) => panic!("simulate crashed {seed}: {why}"),
            })
            .sum();
        assert!(things > 1_000, "{things} things happened");
    }
}
