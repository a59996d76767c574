//! The rules of the specification, row by row.

mod agreement;
mod failures;
mod faults;
mod reading;
mod soup;
mod stage;
mod transitions;
