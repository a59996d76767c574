//! Not built yet.

pub mod scope;
