//! What proves Raymond: tools for tests only, never a part of the program.
//!
//! [`mod@reference`] is a second interpreter of the state language, slow and plain. It shares with core
//! the types of names and amounts, and none of its logic, so that a mistake in one is not repeated
//! in the other.

#![forbid(unsafe_code)]

pub mod reference;
