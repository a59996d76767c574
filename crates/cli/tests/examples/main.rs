//! Runs every example with its replies, so that examples cannot rot, and checks that they change a
//! repository as their READMEs say. The test `pages` plays the commands of the READMEs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod conventions;
mod eight_steps;
mod fix_until_green;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod issue_to_pr;
mod kills;
mod migrate_batch;
mod nightly_dispatcher;
mod patterns;
mod review_pr;
mod small;
mod stage;
mod steps;
