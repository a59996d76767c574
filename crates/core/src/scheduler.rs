//! The scheduler: it decides which agent gets a turn, when, and with how much money.
//!
//! It knows nothing about states and tags. A program asks for a turn by key; the scheduler queues
//! it, starts it when a slot and a budget share are free, and counts attempts. The state language
//! and documents of steps share this scheduler, so that one cap and one limit on parallel turns
//! covers both. It is data that `apply` changes: the choice of the next turn is in
//! [`crate::decide::advance()`].

pub mod backoff;
mod hold;
mod timers;
pub mod turn;

pub use hold::Hold;
pub use timers::{Timer, Timers};
pub use turn::{Lane, Prompt, Scheduler, Turn, TurnPhase};
