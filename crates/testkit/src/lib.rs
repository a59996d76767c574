//! Tools that test Raymond: a simulator, a crash sweep, two reference interpreters, a fake client,
//! a scripted model for real clients, and golden journals.
//!
//! No product crate depends on this crate. ARCHITECTURE.md ("How we know it works") explains which
//! tool checks which promise.

pub mod compare;
pub mod dice;
pub mod fake_claude;
pub mod journals;
pub mod model;
pub mod private_command;
#[cfg(target_os = "linux")]
pub mod ptrace;
pub mod reference;
pub mod sim;
pub mod step_trace;
pub mod steps;
pub mod sweep;
pub mod tally;
pub mod violation;

#[cfg(test)]
mod tests;
