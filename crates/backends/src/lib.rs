//! Processes and agent clients behind one contract.
//!
//! `process` is the only module that spawns, stops or finds processes. `script` runs a script
//! state, and `exec` runs a step of a Crayfish workflow inside a `workspace`. `contract` is the
//! trait of every agent client, and `conformance` is the test suite that each client passes.
//!
//! `headless` contains the parts that clients without a terminal share. `claude` is Claude Code and
//! `codex` is Codex; `registry` lists them, with everything in which they differ outside of a turn.
//! `transcript_parser` turns their transcripts into readable items. `scripted` plays replies from a
//! file.
//!
//! This crate decides nothing: it observes failures, names them and returns them to the engine.

pub mod claude;
pub mod codex;
pub mod conformance;
pub mod contract;
pub mod exec;
mod foreign_variables;
pub mod headless;
pub mod process;
pub mod registry;
pub mod script;
pub mod scripted;
pub mod transcript_parser;
pub mod workspace;
