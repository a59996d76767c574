//! Processes and agent clients behind one contract.
//!
//! `process` is the only door through which anything is spawned, stopped or found again. `script`
//! runs a script state through it. `contract` is what every agent client implements, `conformance`
//! is the suite that each of them passes, `claude` is Claude Code, and `scripted` plays replies from a
//! file. Nothing here decides: failures are observed, named and handed back.

pub mod claude;
pub mod conformance;
pub mod contract;
pub mod headless;
pub mod process;
pub mod script;
pub mod scripted;
