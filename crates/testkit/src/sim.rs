//! The simulator: the real core, driver and journal on a simulated machine with faults.
//!
//! Everything else is simulated and seeded: a disk that loses unsynced data, a clock that jumps,
//! and clients that reply anything and outlive their owner. After every record an auditor compares
//! the run with its own, independent state. A failing seed prints the command that reproduces it.
//!
//! Read [`scenario`] first: it runs one seed.

pub mod auditor;
pub mod client_cost;
pub mod clients;
pub mod coverage;
mod definitions;
pub mod drive;
pub mod fault_plan;
pub mod history;
pub mod host;
pub mod observer;
pub mod outages;
pub mod outcome;
pub mod random_agents;
pub mod random_faults;
pub mod random_workflow;
pub mod reply;
pub mod scenario;
pub mod trace;
pub mod views;
pub mod world;

pub use coverage::Coverage;
pub use scenario::{machine, simulate, simulate_with_trace};
