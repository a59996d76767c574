//! The real binary, killed again and again: nothing that was finished is done again, nothing is
//! lost, nothing is left running.
//!
//! [`calls`] kills before and after system calls that change something; [`moments`] kills at random
//! times; [`signals`] suspends and continues owners; [`disks`] fills the disk. All of them use the
//! same [`scene`]s. Each test prints its seed: `KILL_SEED=N` repeats it as far as timing allows,
//! and `KILL_CYCLES=N` makes it longer.

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

/// Returns the random seed.
fn seed() -> u64 {
    let seed = variable("KILL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("KILL_SEED={seed}");
    seed
}

/// Returns how often each test kills: the short version, unless `KILL_CYCLES` is set.
fn cycles(short: u64) -> u64 {
    variable("KILL_CYCLES").unwrap_or(short)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
