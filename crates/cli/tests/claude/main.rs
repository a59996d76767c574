//! The real binary over a client that behaves as `claude` does, scripted by its prompts.
//!
//! Every test has a project, a configuration directory and a `PATH` of its own. The module
//! [`raymond_testkit::fake_claude`] describes the language of the `fake:` lines.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod caps;
mod crashes;
mod disks;
mod failures;
mod golden;
mod hangs;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod init;
mod money;
#[path = "../cli/mounts.rs"]
mod mounts;
mod outcomes;
mod permissions;
mod prompts;
mod ralph;
mod settings;
mod stage;
mod transitions;
