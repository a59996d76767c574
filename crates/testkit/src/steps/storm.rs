//! Random documents on a machine that goes wrong: whatever happens, a run comes to what the reference
//! comes to, and nothing whose success was recorded is done again.

use raymond_core::budget::Micros;
use raymond_core::run::program::Answers;
use serde_json::Map;

use super::agree::compare;
use super::drive::{definition, settings};
use super::random;
use super::reference::interpret;
use super::world::World;
use crate::dice::Dice;
use crate::sim::disturber::Disturber;
use crate::sim::host::{Host, Leftovers, Patience, Seeds};
use crate::sim::passage::drive;
use crate::violation::Violation;

/// Takes the document of a seed through trouble; how many programs and questions there were.
pub fn weather(seed: u64) -> Result<usize, Violation> {
    storm(seed, false).1
}

/// The same, and what happens.
pub fn tell(seed: u64) -> (Vec<String>, Result<usize, Violation>) {
    storm(seed, true)
}

fn storm(seed: u64, listen: bool) -> (Vec<String>, Result<usize, Violation>) {
    let mut lines = Vec::new();
    let mut both = || {
        let mut done = 0;
        for answers in [Answers::Backend, Answers::Caller] {
            let mut host = host(seed, answers)?;
            if listen {
                host.reality.borrow_mut().story.listen();
            }
            let ended = passage(seed, answers, &mut host);
            lines.extend(host.reality.borrow_mut().story.lines());
            done += ended.map_err(|why| Violation(format!("{answers:?}: {why}")))?;
        }
        Ok(done)
    };
    let ended = both();
    (lines, ended)
}

fn host(seed: u64, answers: Answers) -> Result<Host, Violation> {
    let definition = definition(&random::document(seed), &Map::new())?;
    let mut settings = settings(answers);
    let mut dice = Dice::new(seed ^ 0x5e77);
    settings.budget = dice.percent(50).then_some(Micros(100_000));
    settings.max_parallel = 1 + u32::try_from(dice.below(4)).unwrap_or(0);
    let seeds = Seeds { world: seed, disk: seed };
    let mut host = Host::new(seeds, definition, Box::new(World::new(seed)), settings)?;
    host.leftovers = Leftovers::Progress;
    host.patience = Patience::NONE;
    Ok(host)
}

fn passage(seed: u64, answers: Answers, host: &mut Host) -> Result<usize, Violation> {
    let document = random::document(seed);
    let expected = interpret(&document, &Map::new(), World::new(seed));
    let chance = if seed.is_multiple_of(4) { 0 } else { 8 };
    let mut disturber = Disturber { dice: Dice::new(seed ^ 0xd157), chance, stops: 0 };
    drive(host, &mut disturber)?;
    compare(&document, &expected, &host.told()?, answers).map_err(Violation)?;
    Ok(expected.ran.len() + expected.asked.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_done_is_done_again_whatever_goes_wrong() {
        let things: usize = (0..300)
            .map(|seed| match weather(seed) {
                Ok(count) => count,
                Err(why) => panic!("simulate stormed {seed}: {why}"),
            })
            .sum();
        assert!(things > 1_000, "{things} things happened");
    }
}
