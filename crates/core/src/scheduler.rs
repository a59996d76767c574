//! The scheduler: who may have a turn, when, and with how much money.
//!
//! It knows nothing of states and tags. A program wants a turn by key; the scheduler queues it, starts
//! it when a slot and a share are free, and counts attempts. The state language and Crayfish stand
//! at the same scheduler.

pub mod backoff;
mod hold;
pub mod turn;

pub use hold::Hold;
pub use turn::{Lane, Phase, Prompt, Scheduler, Turn};
