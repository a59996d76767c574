//! The rules of the specification, one row each.

mod agreement;
mod failures;
mod faults;
mod fixture;
mod random_text;
mod reading;
mod transitions;
