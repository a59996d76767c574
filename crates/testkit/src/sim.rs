//! The simulator: the real core, driver and journal on a machine that goes wrong.
//!
//! Everything outside is made up and seeded: a disk that forgets what was not synced, a clock that
//! jumps, clients that say anything and go on when their owner dies. After every record an auditor
//! compares the run with books of its own. A failing seed prints the one line that repeats it.

pub mod auditor;
pub mod author;
pub mod bill;
pub mod cast;
pub mod clients;
pub mod coverage;
pub mod disturber;
pub mod history;
pub mod host;
pub mod observer;
pub mod outcome;
pub mod passage;
pub mod plan;
pub mod reality;
pub mod scenario;
pub mod speech;
pub mod story;
pub mod weather;

pub use coverage::Coverage;
pub use scenario::{machine, simulate, tell};
