//! Command line of the simulator, the crash sweep and the comparisons with the reference.
//!
//! Every failure prints the command that reproduces it. `cargo xtask torture` runs the commands in
//! bulk and adds up the counts.

mod workers;

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use raymond_testkit::sim;
use raymond_testkit::sim::Coverage;
use raymond_testkit::sim::fault_plan::MachineFault;
use raymond_testkit::sweep::{self, Case, Counts, RunSpec, corpus};
use raymond_testkit::violation::Violation;
use raymond_testkit::{compare, sim::simulate, steps, steps::crashes, tally};

use workers::{Failures, run_on_all_cores};

const USAGE: &str = "\
simulate runs N [SEED]                 N random runs; every fifth seed is also compared
simulate seed SEED                     the trace of one of them
simulate compare N [SEED]              N random runs compared with the reference
simulate compared SEED                 the trace of one of them
simulate steps N [SEED]                N random documents of steps compared with the reference
simulate stepped SEED                  the smallest document on which one of them fails
simulate crashes N [SEED]              the same on a machine that crashes
simulate crashed SEED                  the trace of one of them
simulate sweep [NAME]                  fault at every call of every small workflow
simulate sweep --one-in N              the same; one crash in N is crashed again while it recovers
simulate sweep NAME K FAULT [J]        the trace of one of those runs";

/// With this many runs or more, the coverage table must have no empty cell.
const FULL_COVERAGE_RUNS: u64 = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let clean = match Command::parse(&arguments) {
        None => {
            print_line(USAGE);
            return ExitCode::from(2);
        }
        Some(Command::Runs { count, first }) => runs(count, first),
        Some(Command::Compare { count, first }) => {
            comparisons("compared", "compared runs", first..first + count, compare::compare)
        }
        Some(Command::Steps { count, first }) => {
            comparisons("stepped", "documents of steps", first..first + count, steps::agree)
        }
        Some(Command::Seed(seed)) => print_trace(sim::simulate_with_trace(seed)),
        Some(Command::Compared(seed)) => print_trace(compare::compare_with_trace(seed)),
        Some(Command::Crashes { count, first }) => comparisons(
            "crashed",
            "documents under crashes",
            first..first + count,
            crashes::compare_with_crashes,
        ),
        Some(Command::Crashed(seed)) => print_trace(crashes::compare_with_trace(seed)),
        Some(Command::Stepped(seed)) => print_trace(steps::shrink(seed)),
        Some(Command::Sweep(cases, stride)) => sweeps(&cases, stride),
        Some(Command::RunSpec(case, spec)) => print_trace(sweep::run_with_trace(case, spec)),
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
    Crashes {
        count: u64,
        first: u64,
    },
    Crashed(u64),
    /// The number is a stride: one crash in so many is repeated with a second crash at every call
    /// of its recovery.
    Sweep(Vec<&'static Case>, usize),
    RunSpec(&'static Case, RunSpec),
}

impl Command {
    fn parse(arguments: &[&str]) -> Option<Self> {
        let number = |word: &str| word.parse::<u64>().ok();
        let call = |word: &str| word.parse::<usize>().ok();
        let named = |name: &str| corpus().find(|case| case.name == name);
        let spec = |name: &str, k: &str, fault: &str, second: Option<usize>| {
            let case = named(name)?;
            let first = Some((call(k)?, MachineFault::named(fault)?));
            Some(Self::RunSpec(case, RunSpec { case: case.name, first, second }))
        };
        Some(match arguments {
            ["runs", count] => Self::Runs { count: number(count)?, first: 1 },
            ["runs", count, first] => Self::Runs { count: number(count)?, first: number(first)? },
            ["compare", count] => Self::Compare { count: number(count)?, first: 1 },
            ["compare", count, first] => {
                Self::Compare { count: number(count)?, first: number(first)? }
            }
            ["steps", count] => Self::Steps { count: number(count)?, first: 1 },
            ["steps", count, first] => Self::Steps { count: number(count)?, first: number(first)? },
            ["crashes", count] => Self::Crashes { count: number(count)?, first: 1 },
            ["crashes", count, first] => {
                Self::Crashes { count: number(count)?, first: number(first)? }
            }
            ["crashed", seed] => Self::Crashed(number(seed)?),
            ["stepped", seed] => Self::Stepped(number(seed)?),
            ["seed", seed] => Self::Seed(number(seed)?),
            ["compared", seed] => Self::Compared(number(seed)?),
            ["sweep"] => Self::Sweep(corpus().collect(), 1),
            ["sweep", "--one-in", n] => Self::Sweep(corpus().collect(), call(n)?),
            ["sweep", name] => Self::Sweep(vec![named(name)?], 1),
            ["sweep", name, k, fault] => spec(name, k, fault, None)?,
            ["sweep", name, k, fault, j] => spec(name, k, fault, Some(call(j)?))?,
            _ => return None,
        })
    }
}

fn runs(count: u64, first: u64) -> bool {
    let (started, failures) = (Instant::now(), Failures::default());
    let found =
        run_on_all_cores(first..first + count, &failures, |found: &mut (Coverage, usize), seed| {
            if let Some(met) = failures.watch(&format!("seed {seed}"), || simulate(seed)) {
                found.0.add(&met);
            }
            if seed % 5 == 0 {
                let compared =
                    failures.watch(&format!("compared {seed}"), || compare::compare(seed));
                found.1 += compared.unwrap_or(0);
            }
        });
    let (mut coverage, mut lines) = (Coverage::default(), 0);
    for (met, compared) in found {
        coverage.add(&met);
        lines += compared;
    }
    print_line(&coverage.to_string());
    if let Some((cell, least)) = coverage.rarest() {
        print_line(&format!("rarest: {cell}, {least} times"));
    }
    let Coverage { records, events, .. } = coverage;
    let tallies = [("runs", count), ("records audited", records), ("events", events)];
    count_all(&tallies, &[("lines compared with the reference", lines)]);
    for (fault, times) in &coverage.faults {
        tally::count("simulation", &format!("fault: {}", fault.name()), *times);
    }
    let (seconds, failed) = (started.elapsed().as_secs_f64(), failures.count());
    print_line(&format!(
        "{count} runs in {seconds:.1} s, {records} records, {lines} lines compared, {failed} violations"
    ));
    let missing = coverage.missing();
    let complete = count < FULL_COVERAGE_RUNS || missing.is_empty();
    if !complete {
        print_line(&format!("never met: {}", missing.join(", ")));
    }
    complete && failed == 0
}

/// Adds numbers to the table that `cargo xtask torture` prints.
fn count_all(numbers: &[(&str, u64)], lengths: &[(&str, usize)]) {
    let lengths = lengths.iter().map(|(what, length)| (*what, *length as u64));
    for (what, number) in numbers.iter().copied().chain(lengths) {
        tally::count("simulation", what, number);
    }
}

fn comparisons(
    command: &str,
    what: &str,
    seeds: Range<u64>,
    compare: fn(u64) -> Result<usize, Violation>,
) -> bool {
    let (started, failures) = (Instant::now(), Failures::default());
    let count = seeds.end - seeds.start;
    let found = run_on_all_cores(seeds, &failures, |lines: &mut usize, seed| {
        let compared = failures.watch(&format!("{command} {seed}"), || compare(seed));
        *lines += compared.unwrap_or(0);
    });
    let lines: usize = found.into_iter().sum();
    count_all(&[(what, count)], &[("lines compared with the reference", lines)]);
    let (seconds, failed) = (started.elapsed().as_secs_f64(), failures.count());
    print_line(&format!(
        "{count} {what}, {lines} lines compared in {seconds:.1} s, {failed} violations"
    ));
    failed == 0
}

fn sweeps(cases: &[&'static Case], stride: usize) -> bool {
    let (started, failures) = (Instant::now(), Failures::default());
    let found = run_on_all_cores(0..cases.len() as u64, &failures, |total: &mut Counts, index| {
        let case = cases[usize::try_from(index).unwrap_or(0)];
        match sweep::sweep(case, stride) {
            Ok(Counts { calls, crashes, recoveries }) => {
                let name = case.name;
                print_line(&format!(
                    "{name:<24}{calls:>6} calls{crashes:>7} crashes{recoveries:>8} in recovery"
                ));
                total.calls += calls;
                total.crashes += crashes;
                total.recoveries += recoveries;
            }
            Err(failed) => {
                failures.report(&format!("sweep {}", failed.spec), &failed.violation.to_string());
            }
        }
    });
    let sum = |number: fn(&Counts) -> usize| found.iter().map(number).sum::<usize>();
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
    let seconds = started.elapsed().as_secs_f64();
    print_line(&format!(
        "{} workflows, {calls} calls, {crashes} crashes, {recoveries} in recovery, {seconds:.1} s",
        cases.len()
    ));
    failures.count() == 0
}

fn print_trace<T>(traced: (Vec<String>, Result<T, Violation>)) -> bool {
    let (lines, ended) = traced;
    for line in lines {
        print_line(&line);
    }
    match ended {
        Ok(_) => true,
        Err(violation) => {
            print_line(&format!("violation: {violation}"));
            false
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command line prints")]
fn print_line(line: &str) {
    println!("{line}");
}
