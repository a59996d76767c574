//! The real binary: its output, its exit codes and its files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]
#![expect(clippy::print_stdout, reason = "what was not run must be known")]

mod abandoned_calls;
mod asking;
mod completing;
mod configuring;
mod crayfish;
mod daemons;
mod disks;
mod doctor;
mod event_readers;
mod finding;
mod following;
mod harness;
mod hostile;
mod init;
mod inspecting;
mod joining;
mod journals;
mod json;
mod logs;
mod mixed_backends;
mod money;
mod mounts;
mod outputs;
mod pinning;
mod projects;
mod pruning;
mod ralph;
mod regressions;
mod resource_limits;
mod resuming;
mod run_summary;
mod running;
mod scale;
mod secrets;
mod steps;
mod stopping;
mod suspending;
mod version;
mod waiting;
mod workflows;
