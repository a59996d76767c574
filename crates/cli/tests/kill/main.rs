//! The real binary, killed again and again: nothing that was finished is done again, nothing is lost,
//! nothing is left running.
//!
//! [`calls`] kills it before and after the calls by which it changes anything, by name; [`moments`] at
//! moments of a clock; [`signals`] stops it, lets it continue; [`disks`] takes away its room. Everything is played by
//! the same [`scene`]s. A seed is printed; `KILL_SEED=N` repeats it as far as a clock can, and
//! `KILL_CYCLES=N` makes it longer.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]
#![expect(clippy::print_stdout, reason = "what a failing test did must be known")]

mod calls;
mod disks;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod moments;
#[path = "../cli/mounts.rs"]
mod mounts;
mod scene;
mod signals;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../claude/stage.rs"]
mod stage;

/// Where the dice begin.
fn seed() -> u64 {
    let seed = variable("KILL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("KILL_SEED={seed}");
    seed
}

/// How often each test kills; its short version, unless more is asked for.
fn cycles(short: u64) -> u64 {
    variable("KILL_CYCLES").unwrap_or(short)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
