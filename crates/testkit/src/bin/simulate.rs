//! `simulate runs N [SEED]`: N simulated runs, with the coverage table. `simulate seed SEED`: one.

use std::process::ExitCode;
use std::time::Instant;

use raymond_testkit::sim::{Coverage, simulate};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
    let (count, first) = match (words.first().map(String::as_str), number(1)) {
        (Some("runs"), Some(count)) => (count, number(2).unwrap_or(1)),
        (Some("seed"), Some(seed)) => (1, seed),
        _ => {
            eprintln!("simulate runs N [SEED] | simulate seed SEED");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let mut coverage = Coverage::default();
    let mut failures = 0;
    for seed in first..first + count {
        match std::panic::catch_unwind(|| simulate(seed)) {
            Ok(Ok(met)) => coverage.add(&met),
            Ok(Err(violation)) => {
                failures += 1;
                println!("seed {seed}: {violation}\n  cargo run --profile simulation -p raymond-testkit --bin simulate -- seed {seed}");
            }
            Err(_) => {
                failures += 1;
                println!("seed {seed}: panicked");
            }
        }
        if failures >= 20 {
            break;
        }
    }
    println!("{coverage}");
    println!("{count} runs in {:.1} s, {failures} violations", begun.elapsed().as_secs_f64());
    let missing = coverage.missing();
    if count >= 10_000 && !missing.is_empty() {
        println!("never met: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
