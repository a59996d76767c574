//! Runs the simulator, the crash sweep and the comparison with the reference.

use std::process::ExitCode;
use std::time::Instant;

use raymond_testkit::sim::plan::Trouble;
use raymond_testkit::sim::{self, Coverage, Violation};
use raymond_testkit::sweep::{self, Case, Spot, Tally, corpus};
use raymond_testkit::{compare, sim::simulate, steps, steps::storm};

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
simulate sweep NAME K TROUBLE [J]      the story of one of those runs";

/// So many failures are enough to look at.
const ENOUGH: u64 = 10;
/// From so many runs on, every cell of the table must have been met.
const THOROUGH: u64 = 10_000;
/// One crash in so many is crashed again, at every call of its recovery.
const STRIDE: usize = 1;

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
            comparisons("compared", (count, first), compare::compare)
        }
        Some(Command::Steps { count, first }) => {
            comparisons("stepped", (count, first), steps::agree)
        }
        Some(Command::Seed(seed)) => story(sim::tell(seed)),
        Some(Command::Compared(seed)) => story(compare::tell(seed)),
        Some(Command::Storms { count, first }) => {
            comparisons("stormed", (count, first), storm::weather)
        }
        Some(Command::Stormed(seed)) => story(storm::tell(seed)),
        Some(Command::Stepped(seed)) => story(steps::tell(seed)),
        Some(Command::Sweep(cases)) => sweeps(&cases),
        Some(Command::Spot(case, spot)) => story(sweep::tell(case, spot)),
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Command {
    Runs { count: u64, first: u64 },
    Compare { count: u64, first: u64 },
    Steps { count: u64, first: u64 },
    Seed(u64),
    Compared(u64),
    Stepped(u64),
    Storms { count: u64, first: u64 },
    Stormed(u64),
    Sweep(Vec<&'static Case>),
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
            ["sweep"] => Self::Sweep(corpus().iter().collect()),
            ["sweep", name] => Self::Sweep(vec![named(name)?]),
            ["sweep", name, k, trouble] => spot(name, k, trouble, None)?,
            ["sweep", name, k, trouble, j] => spot(name, k, trouble, Some(call(j)?))?,
            _ => return None,
        })
    }
}

fn runs(count: u64, first: u64) -> bool {
    let begun = Instant::now();
    let mut coverage = Coverage::default();
    let (mut failures, mut compared) = (Failures::default(), 0);
    for seed in first..first + count {
        if let Some(met) = failures.watch(&format!("seed {seed}"), || simulate(seed)) {
            coverage.add(&met);
        }
        if seed % 5 == 0 {
            let lines = failures.watch(&format!("compared {seed}"), || compare::compare(seed));
            compared += lines.unwrap_or(0);
        }
        if failures.0 >= ENOUGH {
            break;
        }
    }
    say(&coverage.to_string());
    if let Some((cell, least)) = coverage.rarest() {
        say(&format!("rarest: {cell}, {least} times"));
    }
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "{count} runs in {seconds:.1} s, {compared} lines compared, {failures} violations"
    ));
    let missing = coverage.missing();
    let complete = count < THOROUGH || missing.is_empty();
    if !complete {
        say(&format!("never met: {}", missing.join(", ")));
    }
    complete && failures.0 == 0
}

fn comparisons(
    command: &str,
    (count, first): (u64, u64),
    compare: fn(u64) -> Result<usize, Violation>,
) -> bool {
    let begun = Instant::now();
    let (mut failures, mut lines) = (Failures::default(), 0);
    for seed in first..first + count {
        let compared = failures.watch(&format!("{command} {seed}"), || compare(seed));
        lines += compared.unwrap_or(0);
        if failures.0 >= ENOUGH {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!("{count} runs, {lines} lines compared in {seconds:.1} s, {failures} violations"));
    failures.0 == 0
}

fn sweeps(cases: &[&'static Case]) -> bool {
    let begun = Instant::now();
    let mut total = Tally::default();
    let mut clean = true;
    for case in cases {
        match sweep::sweep(case, STRIDE) {
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
                clean = false;
                say(&format!("simulate sweep {}: {}", failed.spot, failed.violation));
            }
        }
    }
    let Tally { calls, crashes, recoveries } = total;
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "{} workflows, {calls} calls, {crashes} crashes, {recoveries} in recovery, {seconds:.1} s",
        cases.len()
    ));
    clean
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

/// Counts what went wrong, and prints the line that repeats it.
#[derive(Default)]
struct Failures(u64);

impl Failures {
    fn watch<T>(
        &mut self,
        command: &str,
        run: impl FnOnce() -> Result<T, Violation> + std::panic::UnwindSafe,
    ) -> Option<T> {
        let why = match std::panic::catch_unwind(run) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(violation)) => violation.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        self.0 += 1;
        say(&format!("simulate {command}: {why}"));
        None
    }
}

impl std::fmt::Display for Failures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[expect(clippy::print_stdout, reason = "a command line talks")]
fn say(line: &str) {
    println!("{line}");
}
