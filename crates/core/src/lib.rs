//! The pure core of Raymond: it decides, and never acts.
//!
//! A run is a fold of events. `decide` takes an observed input, the run and its definition, and
//! returns the events that follow; `run::apply` folds these in and cannot fail. There is no clock,
//! no file, no process, no randomness and no hash map in this crate: time, ids and observations
//! arrive inside inputs, so the same inputs give the same run on every machine. ARCHITECTURE.md
//! lists the modules.

#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod agent;
pub mod budget;
pub mod capability;
pub mod clock;
pub mod crayfish;
pub mod decide;
pub mod diagnostic;
pub mod extension;
pub mod failure;
pub mod few;
pub mod ids;
pub mod machine;
mod pairs;
pub mod prices;
mod program;
pub mod protocol;
pub mod redact;
pub mod run;
pub mod scheduler;
pub mod steps;
pub mod text;
pub mod time;
pub mod value;
pub mod view;
pub mod workflow;
pub mod yaml;
