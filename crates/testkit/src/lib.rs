//! What proves Raymond: a simulator, a crash sweep, and a second interpreter.
//!
//! Nothing of the product depends on this crate.

pub mod compare;
pub mod dice;
pub mod reference;
pub mod sim;
pub mod sweep;

#[cfg(test)]
mod tests;
