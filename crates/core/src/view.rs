//! Read models that every door draws.
