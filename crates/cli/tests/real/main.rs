//! The real binary over the real clients, whose model is scripted by the prompts.
//!
//! The tests use no network and no configuration of the user: see [`stage`]. The module
//! [`raymond_testkit::model`] describes the language of the `model:` lines. `cargo xtask test real`
//! installs the clients and runs these tests.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod alone;
mod clients;
mod codex;
mod contexts;
mod contract;
mod faults;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod installs;
mod isolation;
mod kills;
mod mixed;
mod money;
mod options;
mod prompts;
mod quota;
mod shown;
mod signals;
mod stage;
mod steps;
mod structured;
mod tools;
