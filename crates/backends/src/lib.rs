//! Processes and agent clients behind one contract.
//!
//! `process` is the only door through which anything is spawned, stopped or found again. `script`
//! runs a script state through it, `exec` a step of a Crayfish workflow, and `workspace` is the
//! directory that such steps do not leave. `contract` is what every agent client implements, `conformance`
//! is the suite that each of them passes. `headless` is what clients without a terminal share: `claude`
//! is Claude Code, `codex` is Codex, and `transcript_parser` reads their transcripts to people. `scripted` plays replies
//! from a file. Nothing here decides: failures are observed, named and handed back.

pub mod claude;
pub mod codex;
pub mod conformance;
pub mod contract;
pub mod exec;
pub mod headless;
pub mod process;
pub mod script;
pub mod scripted;
pub mod transcript_parser;
pub mod workspace;
