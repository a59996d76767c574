//! The rules of the specification, row by row.

mod agreement;
mod failures;
mod faults;
mod fixture;
mod random_text;
mod reading;
mod transitions;
