//! A second implementation of the state language: slow, plain, and written from the specification
//! alone.
//!
//! Random workflows run in the engine and in [`interpret`]; their histories must be the same text.
//! Random texts go through core's scanner and through [`read`]. The reference takes only plain
//! types from core, such as ids and names of tags. It has no events and no scheduler, and runs one
//! agent after the other, so that a mistake in the design of core is not repeated here.
//!
//! The reference leaves out everything that depends on timing. There is no cap on money, no agent
//! waits for a free place, and a quota failure only repeats the turn. An `auth` or `environment`
//! failure leaves its own agent waiting, so use it only in workflows without forks. A lost session
//! fails its agent.
//!
//! # The lines of a history
//!
//! Agents in the order of their names; the lines of one agent in the order in which things happen.
//! A visit is `AGENT#VISIT` (agent-wide, from 1), a turn `AGENT#VISIT.TURN` (from 1, reminders
//! included, retries not), a session is the turn that opened it. Texts are JSON strings.
//!
//! ```text
//! enter main#3 REVIEW.md count=2 input="text" cwd=/w model=opus depth=1
//! turn main#3.1 plan=PLAN
//! failed main#3.1 attempt=1 KIND
//! remind main#3 FAULT
//! move main#3 TAG STATE.md
//! move main#3 TAG STATE.md instead-of OTHER.md
//! fork main -> main_worker1 WORKER.md cwd=/w key="value" other="value"
//! end main "payload"
//! fail main FAILURE
//! wait main auth
//! wait main environment
//! ```
//!
//! - `enter`: `count` is how often this agent has entered this state. `input` is what is bound as
//!   result, or `-`. `model` is the effective one, or `-` for none and for scripts. `depth` is the
//!   number of pending returns.
//! - `turn`: once per turn, for any number of attempts. PLAN is the plan of the first attempt:
//!   `fresh`, `resume(main#1.1)`, `branch(main#1.1)`, or `carry` for scripts.
//! - `failed`: once per failed attempt (attempts count from 1 in each turn). KIND: `transient`,
//!   `timeout`, `quota`, `auth`, `environment`, `task`, `lost_session`, `script`.
//! - `remind`: a reminder that is given; the turn that gives it follows. FAULT: `no_tag`,
//!   `several_tags`, `malformed`, `unresolved`, `next_differs`, `no_directory`, `forbidden`,
//!   `other_backend`. The fault for which no reminder is left shows in `fail` only.
//! - `move`: the transition that ends the visit; the state is the one that is entered, and
//!   `instead-of` the one that `max_visits` closed. A result that ends its agent is only an `end`.
//! - `fork`: one per worker, after the parent's `move`, in tag order, among the parent's lines.
//!   Attributes in the order of their names.
//! - `fail`: FAILURE is a KIND, `protocol FAULT`, `visits`, `other_backend`, `visit_budget`,
//!   `too_many_agents` or `too_deep`.

mod agent;
mod decide;
mod history;
mod interpret;
mod message_context;
pub mod money;
mod names;
mod policy;
mod read;
mod tags;
#[cfg(test)]
mod tests;
mod workflow;

pub use history::{Failure, Fault, HandedEnd, History, Line, Plan, TurnName, VisitName};
pub use interpret::{AttemptLimit, interpret};
pub use raymond_core::protocol::Source;
pub use read::{Reading, read};
pub use tags::Tag;
pub use workflow::{
    Allowed, Answer, Attempt, FailureKind, InterpreterSettings, Outcome, Policy, Prompt, State,
    Workflow,
};
