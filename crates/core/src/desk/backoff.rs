//! How long to wait before another try.
