//! The simulator: the real core, driver and journal on a machine that goes wrong.
//!
//! Everything outside is made up and seeded: a disk that forgets what was not synced, a clock that
//! jumps, clients that say anything and go on when their owner dies. After every record an auditor
//! compares the run with books of its own. A failing seed prints the one line that repeats it.

pub mod auditor;
pub mod client_cost;
pub mod clients;
pub mod coverage;
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
pub mod world;

pub use coverage::Coverage;
pub use scenario::{machine, simulate, simulate_with_trace};
