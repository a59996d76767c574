//! Runs the simulator, the crash sweep and the comparison with the reference.

mod crew;

use std::process::ExitCode;
use std::time::Instant;

use raymond_testkit::sim;
use raymond_testkit::sim::Coverage;
use raymond_testkit::sim::plan::Trouble;
use raymond_testkit::sweep::{self, Case, Spot, Tally, corpus};
use raymond_testkit::violation::Violation;
use raymond_testkit::{compare, sim::simulate, steps, steps::storm, tally};

use crew::{Failures, share};

const USAGE: &str = "\
simulate runs N [SEED]                 N random runs; every fifth seed is also compared
simulate seed SEED                     the story of one of them
simulate compare N [SEED]              N random runs compared with the reference
simulate compared SEED                 the story of one of them
simulate steps N [SEED]                N random documents of steps compared with the reference
simulate stepped SEED                  one of them
simulate storms N [SEED]               the same on a machine that goes wrong
simulate stormed SEED                  the story of one of them
simulate sweep [NAME]                  trouble at every call of every small workflow
simulate sweep --one-in N              the same; one crash in N is crashed again while it recovers
simulate sweep NAME K TROUBLE [J]      the story of one of those runs";

/// From so many runs on, every cell of the table must have been met.
const THOROUGH: u64 = 10_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let clean = match Command::parse(&words) {
        None => {
            say(USAGE);
            return ExitCode::from(2);
        }
        Some(Command::Runs { count, first }) => runs(count, first),
        Some(Command::Compare { count, first }) => {
            comparisons(("compared", "compared runs"), (count, first), compare::compare)
        }
        Some(Command::Steps { count, first }) => {
            comparisons(("stepped", "documents of steps"), (count, first), steps::agree)
        }
        Some(Command::Seed(seed)) => story(sim::tell(seed)),
        Some(Command::Compared(seed)) => story(compare::tell(seed)),
        Some(Command::Storms { count, first }) => {
            comparisons(("stormed", "documents under crashes"), (count, first), storm::weather)
        }
        Some(Command::Stormed(seed)) => story(storm::tell(seed)),
        Some(Command::Stepped(seed)) => story(steps::tell(seed)),
        Some(Command::Sweep(cases, stride)) => sweeps(&cases, stride),
        Some(Command::Spot(case, spot)) => story(sweep::tell(case, spot)),
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Command {
    Runs {
        count: u64,
        first: u64,
    },
    Compare {
        count: u64,
        first: u64,
    },
    Steps {
        count: u64,
        first: u64,
    },
    Seed(u64),
    Compared(u64),
    Stepped(u64),
    Storms {
        count: u64,
        first: u64,
    },
    Stormed(u64),
    /// One crash in so many is crashed again, at every call of its recovery.
    Sweep(Vec<&'static Case>, usize),
    Spot(&'static Case, Spot),
}

impl Command {
    fn parse(words: &[&str]) -> Option<Self> {
        let number = |word: &str| word.parse::<u64>().ok();
        let call = |word: &str| word.parse::<usize>().ok();
        let named = |name: &str| corpus().iter().find(|case| case.name == name);
        let spot = |name: &str, k: &str, trouble: &str, second: Option<usize>| {
            let case = named(name)?;
            let first = Some((call(k)?, Trouble::named(trouble)?));
            Some(Self::Spot(case, Spot { case: case.name, first, second }))
        };
        Some(match words {
            ["runs", count] => Self::Runs { count: number(count)?, first: 1 },
            ["runs", count, first] => Self::Runs { count: number(count)?, first: number(first)? },
            ["compare", count] => Self::Compare { count: number(count)?, first: 1 },
            ["compare", count, first] => {
                Self::Compare { count: number(count)?, first: number(first)? }
            }
            ["steps", count] => Self::Steps { count: number(count)?, first: 1 },
            ["steps", count, first] => Self::Steps { count: number(count)?, first: number(first)? },
            ["storms", count] => Self::Storms { count: number(count)?, first: 1 },
            ["storms", count, first] => {
                Self::Storms { count: number(count)?, first: number(first)? }
            }
            ["stormed", seed] => Self::Stormed(number(seed)?),
            ["stepped", seed] => Self::Stepped(number(seed)?),
            ["seed", seed] => Self::Seed(number(seed)?),
            ["compared", seed] => Self::Compared(number(seed)?),
            ["sweep"] => Self::Sweep(corpus().iter().collect(), 1),
            ["sweep", "--one-in", n] => Self::Sweep(corpus().iter().collect(), call(n)?),
            ["sweep", name] => Self::Sweep(vec![named(name)?], 1),
            ["sweep", name, k, trouble] => spot(name, k, trouble, None)?,
            ["sweep", name, k, trouble, j] => spot(name, k, trouble, Some(call(j)?))?,
            _ => return None,
        })
    }
}

fn runs(count: u64, first: u64) -> bool {
    let (begun, failures) = (Instant::now(), Failures::default());
    let found = share(first..first + count, &failures, |found: &mut (Coverage, usize), seed| {
        if let Some(met) = failures.watch(&format!("seed {seed}"), || simulate(seed)) {
            found.0.add(&met);
        }
        if seed % 5 == 0 {
            let compared = failures.watch(&format!("compared {seed}"), || compare::compare(seed));
            found.1 += compared.unwrap_or(0);
        }
    });
    let (mut coverage, mut lines) = (Coverage::default(), 0);
    for (met, compared) in found {
        coverage.add(&met);
        lines += compared;
    }
    say(&coverage.to_string());
    if let Some((cell, least)) = coverage.rarest() {
        say(&format!("rarest: {cell}, {least} times"));
    }
    let Coverage { records, events, .. } = coverage;
    let tallies = [("runs", count), ("records audited", records), ("events", events)];
    count_all(&tallies, &[("lines compared with the reference", lines)]);
    for (trouble, times) in &coverage.troubles {
        tally::count("simulation", &format!("fault: {}", trouble.name()), *times);
    }
    let (seconds, failed) = (begun.elapsed().as_secs_f64(), failures.count());
    say(&format!(
        "{count} runs in {seconds:.1} s, {records} records, {lines} lines compared, {failed} violations"
    ));
    let missing = coverage.missing();
    let complete = count < THOROUGH || missing.is_empty();
    if !complete {
        say(&format!("never met: {}", missing.join(", ")));
    }
    complete && failed == 0
}

/// Counts for the table of the torture.
fn count_all(numbers: &[(&str, u64)], lengths: &[(&str, usize)]) {
    let lengths = lengths.iter().map(|(what, length)| (*what, *length as u64));
    for (what, number) in numbers.iter().copied().chain(lengths) {
        tally::count("simulation", what, number);
    }
}

fn comparisons(
    (command, what): (&str, &str),
    (count, first): (u64, u64),
    compare: fn(u64) -> Result<usize, Violation>,
) -> bool {
    let (begun, failures) = (Instant::now(), Failures::default());
    let found = share(first..first + count, &failures, |lines: &mut usize, seed| {
        let compared = failures.watch(&format!("{command} {seed}"), || compare(seed));
        *lines += compared.unwrap_or(0);
    });
    let lines: usize = found.into_iter().sum();
    count_all(&[(what, count)], &[("lines compared with the reference", lines)]);
    let (seconds, failed) = (begun.elapsed().as_secs_f64(), failures.count());
    say(&format!("{count} {what}, {lines} lines compared in {seconds:.1} s, {failed} violations"));
    failed == 0
}

fn sweeps(cases: &[&'static Case], stride: usize) -> bool {
    let (begun, failures) = (Instant::now(), Failures::default());
    let found = share(0..cases.len() as u64, &failures, |total: &mut Tally, place| {
        let case = cases[usize::try_from(place).unwrap_or(0)];
        match sweep::sweep(case, stride) {
            Ok(Tally { calls, crashes, recoveries }) => {
                let name = case.name;
                say(&format!(
                    "{name:<24}{calls:>6} calls{crashes:>7} crashes{recoveries:>8} in recovery"
                ));
                total.calls += calls;
                total.crashes += crashes;
                total.recoveries += recoveries;
            }
            Err(failed) => {
                failures.tell(&format!("sweep {}", failed.spot), &failed.violation.to_string());
            }
        }
    });
    let sum = |number: fn(&Tally) -> usize| found.iter().map(number).sum::<usize>();
    let (calls, crashes) = (sum(|tally| tally.calls), sum(|tally| tally.crashes));
    let recoveries = sum(|tally| tally.recoveries);
    let numbers = [
        ("workflows", cases.len()),
        ("port calls", calls),
        ("crashes, one at each", crashes),
        ("crashes in recovery", recoveries),
    ];
    for (what, number) in numbers {
        tally::count("sweep", what, number as u64);
    }
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "{} workflows, {calls} calls, {crashes} crashes, {recoveries} in recovery, {seconds:.1} s",
        cases.len()
    ));
    failures.count() == 0
}

fn story<T>((lines, ended): (Vec<String>, Result<T, Violation>)) -> bool {
    for line in lines {
        say(&line);
    }
    match ended {
        Ok(_) => true,
        Err(violation) => {
            say(&format!("violation: {violation}"));
            false
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command line talks")]
fn say(line: &str) {
    println!("{line}");
}
