//! Hostile input for every parser of Raymond.
//!
//! A [`Target`] is a parser with the rules that hold for any bytes. [`campaign`] plays it every
//! file of its corpus, and then a given number of inputs that [`mutate`] makes of them. The same
//! seed makes the same inputs on every machine. An input that breaks a rule, panics, or takes too
//! much time or memory is kept in `fuzz/found`. The stable compiler is enough; the binary `hunt`
//! uses [`coverage`] if the build has it.

#![expect(clippy::panic, reason = "whatever breaks a rule ends its test")]

pub mod campaign;
pub mod corpus;
pub mod coverage;
pub mod meter;
pub mod mutate;
pub mod target;
pub mod targets;

pub use target::Target;
