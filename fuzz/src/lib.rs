//! Hostile input for every parser of Raymond.
//!
//! A [`Target`] is a parser and what must hold for any bytes that it is given. [`campaign`] plays it
//! every file of its corpus, and then inputs that [`mutate`] makes of them, as many as a number says:
//! the same seed makes the same inputs on every machine. An input that breaks a rule, panics, takes too
//! long or too much memory is kept in `fuzz/found`. Nothing here needs a compiler other than the
//! stable one; the binary `hunt` uses [`coverage`] where a build offers it.

#![expect(clippy::panic, reason = "whatever breaks a rule ends its test")]

pub mod campaign;
pub mod corpus;
pub mod coverage;
pub mod meter;
pub mod mutate;
pub mod target;
pub mod targets;

pub use target::Target;
