//! The real binary, seen from outside: what it prints, how it exits, what it leaves on disk.

mod disks;
mod ending;
mod harness;
mod journals;
mod looking;
mod outputs;
mod resuming;
mod running;
mod scale;
mod workflows;
