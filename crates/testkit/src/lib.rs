//! What proves Raymond: a simulator, a crash sweep, a second interpreter, a fake client,
//! a scripted model for real clients, and journals that every build applies.
//!
//! Nothing of the product depends on this crate.

pub mod compare;
pub mod dice;
pub mod fake_claude;
pub mod journals;
pub mod model;
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
